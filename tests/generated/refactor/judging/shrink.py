"""Makes a failing variant small: the fewest refactorings, then the fewest statements of its base."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from generated.refactor.code.blocks import blocks, put
from generated.refactor.judging.judge import Judged, judged, kind
from generated.refactor.judging.variant import Step, Variant, rebuilt
from generated.refactor.project import Project

_TRIES = 200


def shrunk(variant: Variant, verdict: Judged, tries: int = _TRIES) -> Variant:
    """Return a smaller variant with the same kind of failure; `tries` bounds how many are judged."""
    search = _Search(variant, kind(verdict), tries)
    search.drop_steps()
    search.drop_statements()
    return search.best


class _Search:
    def __init__(self, best: Variant, wanted: tuple[str, str], tries: int) -> None:
        self.best = best
        self._wanted = wanted
        self._tries = tries

    def drop_steps(self) -> None:
        """Leave out refactorings."""
        again = True
        while again and len(self.best.steps) > 1:
            again = any(
                self._accept(self.best.base.project, steps) for steps in _without(self.best.steps)
            )

    def drop_statements(self) -> None:
        """Leave out statements of the base, large ones first."""
        again = True
        while again and self._tries > 0:
            again = any(
                self._accept(project, self.best.steps)
                for project in _smaller(self.best.base.project)
            )

    def _accept(self, project: Project, steps: tuple[Step, ...]) -> bool:
        if self._tries <= 0:
            return False
        self._tries -= 1
        start = self.best.base
        if project is not start.project:
            start = replace(
                start, project=project, name=f"{start.name.partition('#')[0]}#{self._tries}"
            )
        candidate = rebuilt(start, steps)
        if candidate is None or kind(judged([candidate])[0]) != self._wanted:
            return False
        self.best = candidate
        return True


def _without(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    for k in reversed(range(len(steps))):
        yield (*steps[:k], *steps[k + 1 :])


def _smaller(project: Project) -> Iterator[Project]:
    """Yield the projects that lack one statement, those that lack much first; what they draw is always the same."""
    for path in project.files:
        module = project.module(path)
        for block in blocks(module):
            for k in reversed(range(len(block.body))):
                if len(block.body) > 1 and "manual_seed" not in cst.Module([block.body[k]]).code:
                    yield project.changed(path, put(module, block, k, k + 1, []))
