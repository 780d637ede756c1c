"""Lines continued by a backslash: their indentation is text, and follows a statement that moves."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from amp_migrate.rewrite.blocks.lines import Element, Gap


class _Shift(cst.CSTTransformer):
    def __init__(self, old: str, new: str) -> None:
        super().__init__()
        self.old = old
        self.new = new

    def leave_SimpleWhitespace(
        self, original_node: cst.SimpleWhitespace, updated_node: cst.SimpleWhitespace
    ) -> cst.SimpleWhitespace:
        first, *rest = updated_node.value.split("\n")
        if not rest:
            return updated_node
        moved = [self.new + r.removeprefix(self.old) if r.startswith(self.old) else r for r in rest]
        return updated_node.with_changes(value="\n".join([first, *moved]))


def shift(elements: Sequence[Element], old: str, new: str) -> list[Element]:
    """Give the backslash-continued lines of statements the indentation `new` in place of `old`."""
    if old == new:
        return list(elements)
    shifted: list[Element] = []
    for element in elements:
        if isinstance(element, (Gap, cst.EmptyLine)):
            shifted.append(element)
            continue
        moved = element.visit(_Shift(old, new))
        if isinstance(moved, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            shifted.append(moved)
    return shifted
