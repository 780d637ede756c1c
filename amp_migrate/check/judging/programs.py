"""New texts of several programs that share files, each held against what there is by itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from amp_migrate.check.events.claims import Claims
from amp_migrate.check.judging.objections import Held, Objection, Texts, judge
from amp_migrate.processes import tidy
from amp_migrate.project import Project, build
from amp_migrate.project.imported import apart
from amp_migrate.project.once import forget
from amp_migrate.protocol.code.program import program_of


@dataclass
class Apart:
    """Judges each program of a project as if it were given alone.

    Files that no program runs together are no matter of each other: what is said against all texts at once counts where
    it is said of a program alone. What is said of one in other files comes of what it does not run. The first program
    of which something is said is the last one read, as other texts are planned then.
    """

    _known: dict[object, list[Objection]] = field(default_factory=dict)

    def confirmed(
        self, project: Project, objections: Sequence[Objection], texts: Texts, claims: Claims
    ) -> list[Objection]:
        """Return what is said of a program of a project against whose texts something is said at once."""
        programs = apart(project) if objections else []
        if len(programs) < 2:
            return list(objections)
        every = frozenset().union(*programs)
        found = [o for o in objections if o.place.path not in every]
        if found:
            return found
        against = frozenset(o.against for o in objections)
        told = {place.path for o in objections for place in (o.place, *o.way)}
        for files in _in_order(programs, objections, texts.after):
            own = frozenset(p for p in texts.before if p.replace("\\", "/") in files)
            made = self._of(project, texts.only(own), claims, against)
            if found := [replace(o, program=files | own) for o in made if o.place.path in told]:
                return found
        return []

    def _of(
        self, project: Project, texts: Texts, claims: Claims, against: frozenset[Held]
    ) -> list[Objection]:
        """Return what speaks against the new texts of one program."""
        if not texts.after:
            return []
        told = tuple(claim for claim in claims.every if claim.path in texts.before)
        own = replace(claims, every=told)
        asked = (frozenset(texts.before), tuple(texts.after.items()), own, against)
        if asked not in self._known:
            old = build(texts.before, meant=project.lookup.meant)
            judgement = judge(program_of(old), build, texts, own, against)
            self._known[asked] = judgement.objections
            for made in (old, judgement.project):
                if made is not None:
                    forget(made)
            tidy()
        return self._known[asked]


def _in_order(
    programs: Iterable[frozenset[str]], objections: Iterable[Objection], changed: Collection[str]
) -> list[frozenset[str]]:
    """Return the programs that run a place of an objection, those that run the most of what changes first."""
    places = {objection.place.path for objection in objections}
    asked = [files for files in dict.fromkeys(programs) if not files.isdisjoint(places)]
    return sorted(asked, key=lambda files: len(files.intersection(changed)), reverse=True)
