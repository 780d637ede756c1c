"""Holds the written text against the protocol of native AMP, and against the old text, before it is used.

It sees the old texts and the new ones, and of the plan between them nothing but the rules that say that they change
a training.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType

from amp_migrate.check.events.claims import Claims
from amp_migrate.check.judging.objections import Judgement, Texts, judge
from amp_migrate.check.judging.programs import Apart
from amp_migrate.facts.tree import Tree
from amp_migrate.processes import each, tidy
from amp_migrate.project import Project, build
from amp_migrate.project.once import forget
from amp_migrate.project.programs import number_of
from amp_migrate.protocol.code.program import Program, program_of


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
        self._apart = Apart()

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
        """Judge a group of files at once and, where something speaks against it, each program by itself."""
        texts = Texts(self._parts[number], trees, after)
        old = self._program(number)
        judgement = judge(old, self._built, texts, claims)
        stand = self._apart.confirmed(old.project, judgement.objections, texts, claims)
        return replace(judgement, objections=stand)

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
