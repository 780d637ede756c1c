"""What is done and said about code that uses native AMP already, whether or not Apex is in the project."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from amp_migrate.facts.tree import Tree
from amp_migrate.plan.model import (
    Decision,
    Drop,
    DropBlock,
    Edit,
    Finding,
    Hoist,
    Move,
    Plan,
    Replace,
    ReplaceExpression,
)
from amp_migrate.project import Project
from amp_migrate.settings import Settings

_BESIDE = "AMP114"
_READS_SCALED = "AMP402"
_SPEAKS = re.compile(r"\b(?:GradScaler|autocast)\b")
_NATIVE = re.compile(r"torch\.(?:cuda\.)?amp\b|from\s+torch(?:\.cuda)?\s+import\s[^\n]*\bamp\b")


def applies(text: str) -> bool:
    """Tell whether a text may use native AMP, as far as a line can show."""
    return "amp" in text and bool(_NATIVE.search(text))


def upgrade(tree: Tree, edits: Sequence[Edit] = (), others: Iterable[Tree] = ()) -> list[Decision]:
    """Decide how a file says `torch.amp` in place of `torch.cuda.amp`.

    `edits` are those already planned for the file, which win. Names that one of the `others` may import
    from it keep their meaning.
    """
    if "cuda" not in tree.text:
        return []
    from amp_migrate.rules.native.amp401_torch_amp import taken_from, upgrade

    return upgrade(tree, edits, taken_from(tree, others))


class Remarks:
    """Notes on what native code certainly does wrong; nothing is edited.

    `project` is asked for the files as one project, and only where one of them speaks of native AMP. Where it `is_read`
    already, as it is for what uses Apex, its events are not asked for again.
    """

    def __init__(
        self, trees: Mapping[str, Tree], project: Callable[[], Project], *, is_read: bool = False
    ) -> None:
        self._trees = trees
        self._project = project
        self._is_read = is_read

    def of(self, path: str, settings: Settings) -> list[Decision]:
        """Return the notes on a file, without those that settings or a comment switch off."""
        from amp_migrate.source.mentions import skipped_lines

        found = [d for d in self.found.get(path, ()) if settings.enabled(d.finding.code)]
        skipped = skipped_lines(self._trees[path].text) if found else frozenset()
        return [d for d in found if d.finding.span.line not in skipped]

    @cached_property
    def found(self) -> dict[str, list[Decision]]:
        """All notes, by file."""
        if not any(_SPEAKS.search(tree.text) for tree in self._trees.values()):
            return {}
        found: dict[str, list[Decision]] = {}
        project = self._project()
        for part in [project] if self._is_read else _speaking(project):
            for decision in _remarks(part):
                found.setdefault(decision.finding.path, []).append(decision)
        return found


def beside(plan: Plan) -> frozenset[str]:
    """Return the files in which a way through Apex goes, beside a native one that stays."""
    return frozenset(d.finding.path for d in plan.decisions if d.finding.code == _BESIDE)


def holds_beside(plan: Plan, finding: Finding) -> bool:
    """Tell whether a finding holds of native code beside which Apex goes: scaled gradients are read in what no edit changes.

    What comes later in a step, as the update of the scale, may be done where Apex needed nothing.
    """
    return finding.code == _READS_SCALED and not any(
        edit.span.contains(finding.span)
        for edit in plan.edits(finding.path)
        if isinstance(edit, Replace | Drop | ReplaceExpression | Hoist | DropBlock | Move)
    )


def _speaking(project: Project) -> Iterator[Project]:
    """Yield the programs of a project that speak of native AMP."""
    for number in dict.fromkeys(project.programs.values()):
        part = project.part({number})
        if any(_SPEAKS.search(module.tree.text) for module in part.modules.values()):
            yield part


def _remarks(project: Project) -> Iterator[Decision]:
    from amp_migrate.protocol.certain.reading import Reading
    from amp_migrate.protocol.code.program import program_of
    from amp_migrate.rules import modules

    reading = Reading(program_of(project))
    for module in modules():
        yield from getattr(module, "remark", lambda _: ())(reading)
