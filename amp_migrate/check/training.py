"""Holds the written text against the protocol of native AMP, and against the old text, before it is used.

It sees the old texts and the new ones, and of the plan between them nothing but the rules that say that they change
a training.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

from amp_migrate.check.anew import set_anew
from amp_migrate.check.apex.assumed import initializes
from amp_migrate.check.compare import Parted, compare
from amp_migrate.check.events.claims import RAISES, Claims
from amp_migrate.check.events.labels import Does
from amp_migrate.check.events.sides import side_of
from amp_migrate.check.gradients.waiting import rescaled_between
from amp_migrate.check.swallowed import is_swallowed
from amp_migrate.facts.tree import Tree
from amp_migrate.processes import each, tidy
from amp_migrate.project import Project, build
from amp_migrate.project.imported import apart
from amp_migrate.project.once import forget
from amp_migrate.project.programs import number_of
from amp_migrate.protocol.check import faults
from amp_migrate.protocol.code.program import Program, program_of
from amp_migrate.protocol.faults import Breach, Fault, Place, Trouble
from amp_migrate.report import Compared
from amp_migrate.source.align import changes, moved_line

_NEW = Counter[tuple[Breach, str]]
_SHOWN = 8
_EVENTS = frozenset(does.value for does in Does)
_BREACHES = {
    Breach.REFUSED: Trouble.REFUSED_LOSS,
    Breach.NEVER_SCALED: Trouble.TOO_EARLY,
    Breach.KEPT_UNCHECKED: Trouble.KEPT,
    Breach.CACHED: Trouble.CACHED,
}


@dataclass(frozen=True)
class Objection:
    """Why new texts are not used: what goes wrong, where, and the way there, in lines of the old texts.

    `program` are the files of the one in which it goes wrong, none where that is not known.
    """

    sentence: str
    place: Place
    way: tuple[Place, ...]
    trouble: Trouble = Trouble.GRADIENTS
    program: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Judgement:
    """What speaks against new texts, the events of both sides that were compared, and the project of all new texts.

    There is no such project where the texts are several programs.
    """

    objections: list[Objection]
    compared: list[Compared]
    project: Project | None = None


class Judge:
    """Holds new texts of a training against the protocol of native AMP and against the old texts.

    `before` holds every file, and `project` is made of them. Files that nothing connects are judged apart, as if each
    program were given alone; what is asked of them is worked out once. `read` is a project of texts that were judged before.
    """

    def __init__(
        self,
        before: Mapping[str, Tree],
        project: Project,
        jobs: int = 1,
        read: Project | None = None,
    ) -> None:
        self._before = before
        self._project = project
        self._jobs = jobs
        self._read = read
        self._old: dict[int, Program] = {}
        self._known: dict[object, Judgement] = {}
        self._of_programs: dict[object, list[Objection]] = {}

    def judged(
        self,
        after: Mapping[str, str],
        claims: Claims,
        read: Mapping[str, Tree] = MappingProxyType({}),
    ) -> Judgement:
        """Return what speaks against the new texts of the files that change; `read` are those that are parsed already.

        The first place of the way of an objection that lies in a changed file comes last.
        """
        trees = {path: read.get(path) or Tree(path, text) for path, text in after.items()}
        numbers = dict.fromkeys(self._numbers[path] for path in after)
        if len(self._parts) == 1:
            judgement = self._by_program(0, trees, after, claims)
            tidy()
            return judgement
        made = self._judged_each(list(numbers), trees, after, claims)
        compared = [item for judgement in made for item in judgement.compared]
        return Judgement(
            [objection for judgement in made for objection in judgement.objections],
            sorted(compared, key=lambda item: (item.path, item.function)),
        )

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The group of connected files that each file belongs to."""
        return {path: number_of(self._project, path) for path in self._before}

    @cached_property
    def _parts(self) -> dict[int, dict[str, Tree]]:
        found: dict[int, dict[str, Tree]] = {}
        for path, tree in self._before.items():
            found.setdefault(self._numbers[path], {})[path] = tree
        return found

    def _judged_each(
        self,
        numbers: list[int],
        trees: Mapping[str, Tree],
        after: Mapping[str, str],
        claims: Claims,
    ) -> list[Judgement]:
        """Judge groups of files one by one; what was said of the same texts and claims is said again."""
        keys = []
        for number in numbers:
            part = self._parts[number]
            texts = tuple((path, text) for path, text in after.items() if path in part)
            own = replace(claims, every=tuple(c for c in claims.every if c.path in part))
            keys.append((number, texts, own))

        def judged(key: tuple[int, tuple[tuple[str, str], ...], Claims]) -> Judgement:
            number, texts, own = key
            judgement = self._by_program(number, trees, dict(texts), own)
            if judgement.project is not None:
                forget(judgement.project)
            if not judgement.objections:
                forget(self._old.pop(number).project)
            judgement = replace(judgement, project=None)
            tidy()
            return judgement

        fresh = [key for key in keys if key not in self._known]
        self._known |= zip(fresh, each(judged, fresh, self._jobs), strict=True)
        return [self._known[key] for key in keys]

    def _by_program(
        self, number: int, trees: Mapping[str, Tree], after: Mapping[str, str], claims: Claims
    ) -> Judgement:
        """Judge a group of files at once and, where something speaks against it, each program that comes there by itself.

        Files that no program runs together are no matter of each other.
        """
        before, old = self._parts[number], self._program(number)
        judgement = _judged(old, self._built, before, trees, after, claims)
        programs = apart(old.project) if judgement.objections else []
        if len(programs) < 2:
            return judgement
        every = frozenset().union(*programs)
        found = [o for o in judgement.objections if o.place.path not in every]
        for files in dict.fromkeys(programs):
            if any(o.place.path in files for o in judgement.objections):
                own = frozenset(p for p in before if p.replace("\\", "/") in files)
                made = self._of_program(own, before, trees, after, claims)
                found += (replace(o, program=files | own) for o in made)
        return replace(judgement, objections=found)

    def _of_program(
        self,
        files: frozenset[str],
        group: Mapping[str, Tree],
        trees: Mapping[str, Tree],
        after: Mapping[str, str],
        claims: Claims,
    ) -> list[Objection]:
        """Return what speaks against the new texts of the files of one program, as if it were given alone."""
        before = {path: tree for path, tree in group.items() if path in files}
        texts = {path: text for path, text in after.items() if path in files}
        own = replace(claims, every=tuple(c for c in claims.every if c.path in files))
        asked = (files, tuple(texts.items()), own)
        if texts and asked not in self._of_programs:
            old = build(before, meant=self._project.lookup.meant)
            judgement = _judged(program_of(old), build, before, trees, texts, own)
            self._of_programs[asked] = judgement.objections
            for project in (old, judgement.project):
                if project is not None:
                    forget(project)
            tidy()
        return self._of_programs[asked] if texts else []

    def _built(self, trees: Mapping[str, Tree]) -> Project:
        """Return the project of some texts, the one that was read before where there is one."""
        texts = {path.replace("\\", "/"): tree.text for path, tree in trees.items()}
        known = self._read
        if known is not None and {m.path: m.tree.text for m in known.modules.values()} == texts:
            return known
        return build(trees)

    def _program(self, number: int) -> Program:
        """Return the old texts of a group of files, read as a program."""
        if number not in self._old:
            whole = len(self._parts) == 1
            meant = self._project.lookup.meant
            part = self._project if whole else build(self._parts[number], meant=meant)
            self._old[number] = program_of(part)
        return self._old[number]


def _judged(
    old: Program,
    built: Callable[[Mapping[str, Tree]], Project],
    before: Mapping[str, Tree],
    trees: Mapping[str, Tree],
    after: Mapping[str, str],
    claims: Claims,
) -> Judgement:
    """Return what speaks against the new texts of some files that are read as one program."""
    project = built({**before, **{path: trees[path] for path in after}})
    new = program_of(project)
    found = [
        Objection(
            fault.sentence(),
            fault.place,
            fault.way,
            _BREACHES.get(fault.breach, Trouble.GRADIENTS),
        )
        for fault in _breaches(old, new, before, after)
        if fault.breach is not Breach.REFUSED
        or not claims.say(RAISES, fault.place)
        or is_swallowed(old, fault.place)
    ]
    tidy()
    comparison = compare(old, new, claims)
    found += [_objection(item, before, after) for item in comparison.parted]
    for fault in set_anew(side_of(old), side_of(new), initializes(old.project)):
        found.append(Objection(fault.sentence(), fault.place, fault.way, Trouble.SET_ANEW))
    return Judgement(found, comparison.compared, project)


def _breaches(
    old: Program, new: Program, before: Mapping[str, Tree], after: Mapping[str, str]
) -> Iterator[Fault]:
    """Yield what the new texts do against the protocol of native AMP that the old ones did not."""
    found = faults(new.project)
    told = {(fault.breach, fault.place) for fault in found}
    waiting = rescaled_between(side_of(old), side_of(new))
    found = [*found, *(f for f in waiting if (f.breach, f.place) not in told)]
    known = _NEW(
        (fault.breach, fault.place.path) for fault in (faults(old.project) if found else ())
    )
    for fault in found:
        key = fault.breach, fault.place.path
        if known[key] > 0:
            known[key] -= 1
        else:
            yield _in_old_lines(fault, before, after)


def _objection(item: Parted, before: Mapping[str, Tree], after: Mapping[str, str]) -> Objection:
    *steps, last = item.difference.steps
    lost = last.new is None
    way = [step.old for step in steps[-_SHOWN:] if step.old is not None]
    place = last.old if last.old is not None else _old(last.new, before, after)
    assert place is not None
    shown = tuple(dict.fromkeys([*way, place]))
    way_text = " -> ".join(map(str, shown))
    if last.label.kind not in _EVENTS:
        sentence = f"{last.label} {way_text}"
    else:
        what = "is lost on the way" if lost else "is added on the way"
        sentence = f"`{last.label}` {what} {way_text}"
    return Objection(sentence, place, shown, item.difference.trouble)


def _old(place: Place | None, before: Mapping[str, Tree], after: Mapping[str, str]) -> Place | None:
    if place is None or place.path not in after:
        return place
    differences = changes(after[place.path].split("\n"), before[place.path].text.split("\n"))
    return Place(place.path, moved_line(place.line - 1, differences) + 1)


def _in_old_lines(fault: Fault, before: Mapping[str, Tree], after: Mapping[str, str]) -> Fault:
    moved = [_old(place, before, after) for place in (fault.place, *fault.way)]
    place, *way = [found for found in moved if found is not None]
    return replace(fault, place=place, way=tuple(dict.fromkeys(way)))
