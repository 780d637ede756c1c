"""Writes the trainings of older interfaces as today's amp, and keeps those whose description does not hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from amp_migrate.facts.stand_ins import TRACE
from amp_migrate.facts.tree import Kept, Tree
from amp_migrate.older import handle
from amp_migrate.older.found import Found
from amp_migrate.older.fp16 import masters, optimizer
from amp_migrate.older.sheet import Sheet
from amp_migrate.older.words import Words, in_words
from amp_migrate.plan.cannot import Unwritable
from amp_migrate.plan.model import Finding, Plan, Status
from amp_migrate.project import Module, Project, build
from amp_migrate.settings import Settings

Place = tuple[str, int]
_OF_THE_CHECK = ("AMP910", "AMP913")


class Training(Protocol):
    """A training that an older interface drives."""

    def describe(self, found: Found) -> dict[Module, Sheet]:
        """Return its files with it written as today's amp. Raises `Unwritable`."""

    @property
    def words(self) -> Words:
        """How it is spoken of."""

    @property
    def places(self) -> list[Place]:
        """The lines that speak of it and stay where it is left."""


@dataclass
class OlderInterfaces:
    """The older interfaces of some files; `known` is the project of the files, where it was built before."""

    parsed: Mapping[str, Tree]
    settings: Settings
    known: Project | None = None
    _kept: dict[Place, Kept] = field(default_factory=dict)
    _written: dict[Place, set[Place]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Look for the trainings."""
        self._trainings: list[Training] = []
        self.project = self.known or build(self.parsed)
        self._found = Found(self.project)
        if self.settings.enabled("AMP306"):
            self._trainings += optimizer.trainings(self._found)
            self._trainings += masters.every(self._found)
        if self.settings.enabled("AMP102"):
            self._trainings += handle.handles(self._found)

    def trees(self) -> dict[str, Tree]:
        """Return the files, with the trainings written as today's amp that can be."""
        trees = dict(self.parsed)
        sheets: dict[Module, Sheet] = {}
        self._written = {}
        for training in self._trainings:
            if training.places[0] in self._kept:
                continue
            try:
                own = training.describe(self._found)
                _refuse_shared(own, sheets)
            except Unwritable as cause:
                line = cause.module.tree.span(cause.node).line
                kept = Kept(cause.message, cause.advice, cause.module.path, line)
                self._kept[training.places[0]] = kept
                continue
            sheets |= {m: _joined(sheets.get(m), sheet) for m, sheet in own.items()}
            self._written[training.places[0]] = {
                (module.path, line)
                for module, sheet in own.items()
                for node in sheet.texts
                for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
            }
        for module, sheet in sheets.items():
            if sheet.texts:
                trees[module.path] = sheet.written()
        for training in self._trainings:
            kept_for = self._kept.get(training.places[0])
            if kept_for is not None:
                for path, line in training.places:
                    trees[path] = _with_kept(trees[path], self.parsed[path], line, kept_for)
        return trees

    def leave(self, findings: Iterable[Finding], texts: Mapping[str, str | None]) -> bool:
        """Leave the trainings that a plan leaves, or of which a text still holds traces; tell whether there are any."""
        found = list(findings)
        fresh = False
        for key, lines in self._written.items():
            left = [f for f in found if f.status is Status.LEFT and (f.path, f.span.line) in lines]
            places = {f.place: f for f in found if f.code.startswith("AMP9")}
            causes = [places[f.cause] for f in left if f.cause in places] or left
            named = [f for f in causes if f.code not in _OF_THE_CHECK]
            cause = next(iter([*named, *causes]), None)
            if cause is not None:
                words = self._words(key)
                said = in_words(cause.message, words), in_words(cause.advice, words)
                self._kept[key] = Kept(*said, cause.path, cause.span.line)
                fresh = True
        for path, text in texts.items():
            if text is not None and any(word in text for word in TRACE):
                for key, lines in self._written.items():
                    if any(p == path for p, _ in lines) and key not in self._kept:
                        message = "a part of it cannot be followed far enough"
                        self._kept[key] = Kept(
                            message, "write it in a plainer way, then run again", *key
                        )
                        fresh = True
        return fresh

    def reword(self, plan: Plan) -> None:
        """Put what a plan says about the lines of the trainings in the words of their interfaces."""
        for number, decision in enumerate(plan.decisions):
            finding = decision.finding
            for key, lines in self._written.items():
                if (finding.path, finding.span.line) in lines:
                    words = self._words(key)
                    said = in_words(finding.message, words), in_words(finding.advice, words)
                    told = replace(finding, message=said[0], advice=said[1])
                    plan.decisions[number] = replace(decision, finding=told)

    def _words(self, key: Place) -> Words:
        return next(t.words for t in self._trainings if t.places[0] == key)


def _refuse_shared(own: Mapping[Module, Sheet], others: Mapping[Module, Sheet]) -> None:
    """Refuse a training that needs another text where one stands already."""
    for module, sheet in own.items():
        other = others.get(module)
        for node, text in sheet.texts.items() if other is not None else ():
            if other is not None and other.texts.get(node, text) != text:
                raise Unwritable(
                    module,
                    node,
                    "two trainings share this",
                    "give each training code of its own, then run again",
                )


def _joined(one: Sheet | None, other: Sheet) -> Sheet:
    if one is None:
        return other
    return Sheet(one.module, {**one.texts, **other.texts}, [*one.said, *other.said])


def _with_kept(tree: Tree, parsed: Tree, line: int, kept: Kept) -> Tree:
    """Return a file that knows why what stands on a line is kept."""
    if tree is parsed:
        tree = Tree(parsed.path, parsed.text)
    tree.older = tree.older._replace(kept={**tree.older.kept, line: kept})
    return tree
