"""The text of an edit as syntax, in the indentation of the place where it goes."""

from __future__ import annotations

import libcst as cst

from amp_migrate.plan.model import Edit
from amp_migrate.rewrite.blocks.lines import Element, flat
from amp_migrate.rewrite.errors import EditError

_UNIT = "    "


class _Reindent(cst.CSTTransformer):
    """Turns the 4-space indentation of a snippet into another one."""

    def __init__(self, unit: str, default: str) -> None:
        super().__init__()
        self.unit = unit
        self.block_indent = None if unit == default else unit

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        return updated_node.with_changes(indent=self.block_indent)

    def leave_ParenthesizedWhitespace(
        self, original_node: cst.ParenthesizedWhitespace, updated_node: cst.ParenthesizedWhitespace
    ) -> cst.ParenthesizedWhitespace:
        spaces = updated_node.last_line.value
        depth, rest = divmod(len(spaces), len(_UNIT))
        value = self.unit * depth + " " * rest if spaces.strip(" ") == "" else spaces
        return updated_node.with_changes(last_line=cst.SimpleWhitespace(value))


def parse_statements(edit: Edit, text: str, unit: str, default: str) -> list[Element]:
    """Return the lines of a snippet whose blocks are indented by `unit`."""
    try:
        module = cst.parse_module(text.strip("\n") + "\n")
    except cst.ParserSyntaxError as error:
        raise EditError(edit, f"the text does not parse: {error.message}") from error
    if unit != _UNIT or default != _UNIT:
        changed = module.visit(_Reindent(unit, default))
        assert isinstance(changed, cst.Module)
        module = changed
    return flat(module.body, module.footer, module.header)


def parse_expression(edit: Edit, text: str) -> cst.BaseExpression:
    """Return the expression that `text` spells."""
    try:
        return cst.parse_expression(text)
    except cst.ParserSyntaxError as error:
        raise EditError(edit, f"the text does not parse: {error.message}") from error


def parse_argument(edit: Edit, text: str) -> cst.Arg:
    """Return the argument that `text` spells, as ``x``, ``x=1`` or ``*x``."""
    call = parse_expression(edit, f"f({text})")
    if not isinstance(call, cst.Call) or len(call.args) != 1:
        raise EditError(edit, "the text is not one argument")
    return call.args[0]
