"""What speaks against new texts of files that are read as one program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto

from amp_migrate.check.anew import set_anew
from amp_migrate.check.apex.assumed import initializes
from amp_migrate.check.compare import Parted, compare
from amp_migrate.check.events.claims import RAISES, Claims
from amp_migrate.check.events.labels import Does
from amp_migrate.check.events.sides import side_of
from amp_migrate.check.gradients.waiting import rescaled_between
from amp_migrate.check.judging.swallowed import is_swallowed
from amp_migrate.facts.tree import Tree
from amp_migrate.processes import tidy
from amp_migrate.project import Project
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


class Held(Enum):
    """What new texts are held against."""

    PROTOCOL = auto()
    OLD_TEXTS = auto()
    SETTINGS = auto()


@dataclass(frozen=True)
class Objection:
    """Why new texts are not used: what goes wrong, where, and the way there, in lines of the old texts.

    `program` are the files of the one in which it goes wrong, none where that is not known. `against` is what shows it.
    """

    sentence: str
    place: Place
    way: tuple[Place, ...]
    trouble: Trouble = Trouble.GRADIENTS
    program: frozenset[str] = frozenset()
    against: Held = Held.PROTOCOL


@dataclass(frozen=True)
class Judgement:
    """What speaks against new texts, the events of both sides that were compared, and the project of all new texts.

    There is no such project where the texts are several programs.
    """

    objections: list[Objection]
    compared: list[Compared]
    project: Project | None = None


@dataclass(frozen=True)
class Texts:
    """The files of a program as they were, and the new texts of those that change, parsed and as they are written."""

    before: Mapping[str, Tree]
    trees: Mapping[str, Tree]
    after: Mapping[str, str]

    def only(self, files: Collection[str]) -> Texts:
        """Return those of some files."""
        return Texts(
            {path: tree for path, tree in self.before.items() if path in files},
            self.trees,
            {path: text for path, text in self.after.items() if path in files},
        )

    def written(self) -> dict[str, Tree]:
        """Return every file as it is written."""
        return {**self.before, **{path: self.trees[path] for path in self.after}}


def judge(
    old: Program,
    built: Callable[[Mapping[str, Tree]], Project],
    texts: Texts,
    claims: Claims,
    against: Collection[Held] = tuple(Held),
) -> Judgement:
    """Return what speaks against new texts, held against some of what there is; `built` makes a project of files."""
    project = built(texts.written())
    new = program_of(project)
    found: list[Objection] = []
    compared: list[Compared] = []
    if Held.PROTOCOL in against:
        found += _breaches(old, new, texts, claims)
    tidy()
    if Held.OLD_TEXTS in against:
        comparison = compare(old, new, claims)
        compared = comparison.compared
        found += [_parting(item, texts) for item in comparison.parted]
    if Held.SETTINGS in against:
        for fault in set_anew(side_of(old), side_of(new), initializes(old.project)):
            found.append(_objection(fault, Trouble.SET_ANEW, Held.SETTINGS))
    return Judgement(found, compared, project)


def _breaches(old: Program, new: Program, texts: Texts, claims: Claims) -> Iterator[Objection]:
    """Yield what the new texts do against the protocol of native AMP that the old ones did not."""
    found = faults(new.project)
    told = {(fault.breach, fault.place) for fault in found}
    waiting = rescaled_between(side_of(old), side_of(new))
    found = [*found, *(f for f in waiting if (f.breach, f.place) not in told)]
    known = _NEW(
        (fault.breach, fault.place.path) for fault in (faults(old.project) if found else ())
    )
    for raw in found:
        key = raw.breach, raw.place.path
        if known[key] > 0:
            known[key] -= 1
            continue
        fault = _in_old_lines(raw, texts)
        raised = fault.breach is Breach.REFUSED and claims.say(RAISES, fault.place)
        if not raised or is_swallowed(old, fault.place):
            trouble = _BREACHES.get(fault.breach, Trouble.GRADIENTS)
            yield _objection(fault, trouble, Held.PROTOCOL)


def _objection(fault: Fault, trouble: Trouble, against: Held) -> Objection:
    return Objection(fault.sentence(), fault.place, fault.way, trouble, against=against)


def _parting(item: Parted, texts: Texts) -> Objection:
    """Say where new texts part from the old ones."""
    *steps, last = item.difference.steps
    lost = last.new is None
    way = [step.old for step in steps[-_SHOWN:] if step.old is not None]
    place = last.old if last.old is not None else _old(last.new, texts)
    assert place is not None
    shown = tuple(dict.fromkeys([*way, place]))
    way_text = " -> ".join(map(str, shown))
    if last.label.kind not in _EVENTS:
        sentence = f"{last.label} {way_text}"
    else:
        what = "is lost on the way" if lost else "is added on the way"
        sentence = f"`{last.label}` {what} {way_text}"
    trouble = item.difference.trouble
    return Objection(sentence, place, shown, trouble, against=Held.OLD_TEXTS)


def _old(place: Place | None, texts: Texts) -> Place | None:
    """Return a place of the new texts in lines of the old ones."""
    if place is None or place.path not in texts.after:
        return place
    written, before = texts.after[place.path], texts.before[place.path].text
    differences = changes(written.split("\n"), before.split("\n"))
    return Place(place.path, moved_line(place.line - 1, differences) + 1)


def _in_old_lines(fault: Fault, texts: Texts) -> Fault:
    moved = [_old(place, texts) for place in (fault.place, *fault.way)]
    place, *way = [found for found in moved if found is not None]
    return replace(fault, place=place, way=tuple(dict.fromkeys(way)))
