"""Applies the edits of one file: one parse, one look-up of positions, one transformation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

import libcst as cst

from amp_migrate.plan.model import (
    AddDecorator,
    AddParameter,
    AddWithItem,
    DropBlock,
    DropKeyword,
    DropWithItem,
    Edit,
    RenameKeyword,
    RenameParameter,
)
from amp_migrate.rewrite.blocks.block import Slot, block_elements, block_slots
from amp_migrate.rewrite.blocks.comments import split_header
from amp_migrate.rewrite.blocks.compound import (
    WithBody,
    put_inside,
    suite_of,
    tidied,
    with_branch,
    without_body,
)
from amp_migrate.rewrite.blocks.lines import (
    Statement,
    assemble,
    flat_suite,
    nested_unit,
    statements,
)
from amp_migrate.rewrite.blocks.snippet import parse_expression
from amp_migrate.rewrite.blocks.statements import Statements
from amp_migrate.rewrite.errors import EditError
from amp_migrate.rewrite.index import Addition, Index, build_index
from amp_migrate.rewrite.locate import Line
from amp_migrate.rewrite.nested import joined
from amp_migrate.rewrite.parts.arguments import (
    add_argument,
    add_with_item,
    drop_keywords,
    drop_with_item,
    rename_keywords,
)
from amp_migrate.rewrite.parts.imports import (
    Import,
    add_names,
    added_names,
    drop_names,
    dropped_names,
)
from amp_migrate.rewrite.parts.parentheses import fitted
from amp_migrate.rewrite.parts.signature import add_decorator, add_parameter, rename_parameters
from amp_migrate.rewrite.parts.top import place_imports
from amp_migrate.rewrite.ranges import written
from amp_migrate.source.span import Span


def rewrite(text: str, edits: Iterable[Edit]) -> str:
    """Return `text` (with ``\\n`` newlines) with `edits` applied, each once.

    Raises `EditError` for an edit that fits no place or that another edit contradicts, and where
    LibCST cannot read the file.
    """
    listed = joined(text, list(edits))
    if not listed:
        return text
    try:
        module = cst.parse_module(text)
    except cst.ParserSyntaxError as error:
        raise EditError(listed[0], f"the file does not parse: {error.message}") from error
    index = build_index(module, text, listed)
    rewritten = module.visit(_Rewriter(module, text, index))
    index.check_done()
    assert isinstance(rewritten, cst.Module)
    return written(rewritten)


class _Rewriter(cst.CSTTransformer):
    """Rebuilds the nodes that edits name, and the blocks that hold them."""

    def __init__(self, module: cst.Module, text: str, index: Index) -> None:
        super().__init__()
        self.index = index
        self.make = Statements(index, module, text, lambda node: _node(node.visit(self)))
        self.parents: list[cst.CSTNode] = []
        self._lines = text.split("\n")

    def on_visit_attribute(self, node: cst.CSTNode, attribute: str) -> None:
        """Nothing hangs on it; LibCST would look for a method by the name of every attribute."""

    def on_leave_attribute(self, original_node: cst.CSTNode, attribute: str) -> None:
        """The same."""

    def on_visit(self, node: cst.CSTNode) -> bool:
        self.parents.append(node)
        if isinstance(node, cst.IndentedBlock):
            self.make.units.append(node.indent or self.make.default_indent)
            self.make.nested.append(nested_unit(node, self.make.default_indent))
        if self.index.is_replaced(node):
            return False
        if node in self.index.leaving and node not in self.make.moving:
            return False
        if isinstance(node, (cst.Module, cst.Param)):
            return True  # The range of a parameter ends before its default.
        return self.index.places.holds_target(node)

    def on_leave(  # type: ignore[override]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode:
        self.parents.pop()
        changed = updated_node
        if not self._stays_away(original_node):
            changed = self._changed(original_node, updated_node)
        if isinstance(original_node, cst.IndentedBlock):
            self.make.units.pop()
            self.make.nested.pop()
        return changed

    def _stays_away(self, node: cst.CSTNode) -> bool:
        """Tell whether a node is not rewritten where it stands, if at all."""
        index = self.index
        away = node in index.leaving and node not in self.make.moving
        return away or node in index.changes or node in index.skipped

    def _changed(self, old: cst.CSTNode, new: cst.CSTNode) -> cst.CSTNode:
        if not _may_change(type(new)):
            return new
        if isinstance(new, cst.BaseExpression):
            return self._expression(old, new)
        if isinstance(new, (cst.IndentedBlock, cst.SimpleStatementSuite)):
            return self._suite(old, new)
        if isinstance(new, WithBody):
            return self._compound(old, new)
        if isinstance(new, Import):
            return self._import(old, new)
        if isinstance(new, cst.Module):
            return self._module(old, new)
        return new

    def _expression(self, old: cst.CSTNode, new: cst.BaseExpression) -> cst.BaseExpression:
        edit = self.index.expressions.get(old)
        if edit is not None and isinstance(old, cst.BaseExpression):
            self.index.mark(edit)
            text = parse_expression(edit, edit.text)
            beside = self._touches_word(edit.span)
            return fitted(text, old, self.parents[-1], touches_word=beside)
        renames = self.index.keywords.get(old, [])
        if renames:
            new = self._with_keywords(new, renames)
        for addition in self.index.arguments.get(old, ()):
            if not isinstance(new, cst.Call):
                raise EditError(addition, "the expression is not a call")
            self.index.mark(addition)
            new = add_argument(new, addition)
        return new

    def _with_keywords(
        self, new: cst.BaseExpression, edits: Sequence[RenameKeyword | DropKeyword]
    ) -> cst.Call:
        if not isinstance(new, cst.Call):
            raise EditError(edits[0], "the expression is not a call")
        for edit in edits:
            self.index.mark(edit)
        new = rename_keywords(new, [e for e in edits if isinstance(e, RenameKeyword)])
        return drop_keywords(new, [e for e in edits if isinstance(e, DropKeyword)])

    def _touches_word(self, span: Span) -> bool:
        before = self._lines[span.line - 1][: span.column][-1:]
        after = self._lines[span.end_line - 1][span.end_column :][:1]
        return any(c.isalnum() or c == "_" for c in (before, after))

    def _suite(self, old: cst.CSTNode, new: cst.BaseSuite) -> cst.BaseSuite:
        unit = self.make.nested[-1]
        if isinstance(old, cst.IndentedBlock) and isinstance(new, cst.IndentedBlock):
            if not self._is_edited(old.body):
                return new
            slots = block_slots(self.make, old.body, new.body)
            elements = [*block_elements(self.make, _joined(slots), unit), *new.footer]
            return suite_of(elements, None, new)
        if isinstance(old, cst.SimpleStatementSuite) and self._is_edited([old]):
            slots = block_slots(self.make, [old], statements(flat_suite(new)))
            elements = block_elements(self.make, _joined(slots), unit)
            return suite_of(elements, self.make.block_indent(unit), new)
        return new

    def _is_edited(self, body: Sequence[cst.CSTNode]) -> bool:
        return any(
            self.index.is_edited(node)
            for line in body
            for node in (line.body if isinstance(line, Line) else (line,))
        )

    def _module(self, old: cst.CSTNode, new: cst.Module) -> cst.Module:
        assert isinstance(old, cst.Module)
        if not self.index.imports and not self._is_edited(old.body):
            return new
        (header, rest), body = split_header(new.header), list(new.body)
        if body and isinstance(body[0], Statement):
            lines = [*rest, *body[0].leading_lines]
            body[0] = body[0].with_changes(leading_lines=lines)
        else:
            header += rest
        slots = block_slots(self.make, old.body, body)
        top = place_imports(self.make, old.body, slots)
        below = block_elements(self.make, _joined(slots), self.make.default_indent)
        body_after, footer = assemble([*header, *top, *below, *new.footer])
        return new.with_changes(header=(), body=body_after, footer=footer)

    def _import(self, old: cst.CSTNode, new: Import) -> Import:
        edits = self.index.imported.get(old, ())
        if not edits or old in self.index.emptied:
            return new
        for edit in edits:
            self.index.mark(edit)
        if isinstance(new, cst.ImportFrom):
            new = add_names(new, added_names(old, edits))
        gone = dropped_names(old, edits)
        return drop_names(new, gone) if gone else new

    def _compound(self, old: cst.CSTNode, new: cst.CSTNode) -> cst.CSTNode:
        if isinstance(old, cst.If) and isinstance(new, cst.If):
            new = self._with_elif(old, new)
        indent = self.make.block_indent(self.make.nested[-1])
        for moves, top in ((self.index.top, True), (self.index.bottom, False)):
            if old in moves:
                new = put_inside(new, self.make.arrived(moves[old]), indent, top=top)
        renames = self.index.parameters.get(old, [])
        if renames:
            new = self._with_parameters(new, renames)
        for addition in self.index.additions.get(old, ()):
            new = self._added(addition, new)
        return tidied(new)

    def _with_elif(self, old: cst.If, new: cst.If) -> cst.If:
        """Return an `if` whose ``elif`` is edited as a statement: it may become an ``else``."""
        branch, updated = old.orelse, new.orelse
        if not isinstance(branch, cst.If) or not isinstance(updated, cst.If):
            return new
        if not self.index.is_edited(branch):
            return new
        slots = _joined(block_slots(self.make, [branch], [updated]))
        lines, slots[0].above = slots[0].above, []
        unit = self.make.nested[-1]
        elements = block_elements(self.make, slots, unit)
        return with_branch(new, lines, elements, self.make.block(elements, unit))

    def _with_parameters(
        self, new: cst.CSTNode, renames: Sequence[RenameParameter]
    ) -> cst.FunctionDef:
        if not isinstance(new, cst.FunctionDef):
            raise EditError(renames[0], "the statement is not a function")
        for rename in renames:
            self.index.mark(rename)
        return rename_parameters(new, renames)

    def _added(self, addition: Addition, new: cst.CSTNode) -> cst.CSTNode:
        self.index.mark(addition)
        match addition, new:
            case AddDecorator(), cst.FunctionDef():
                return add_decorator(new, addition)
            case AddParameter(), cst.FunctionDef():
                return add_parameter(new, addition)
            case AddWithItem(), cst.With():
                return add_with_item(new, addition)
            case DropWithItem(), cst.With():
                return drop_with_item(new, addition)
            case DropBlock(block="body"), cst.If():
                return without_body(new)
            case DropBlock(), _:
                return new.with_changes(orelse=None)
        raise EditError(addition, "the statement is of another kind")


@cache
def _may_change(kind: type[cst.CSTNode]) -> bool:
    """Tell whether edits are about nodes of a kind; asked once of each, as LibCST's classes answer slowly."""
    suites = (cst.IndentedBlock, cst.SimpleStatementSuite)
    return issubclass(kind, (cst.BaseExpression, *suites, WithBody, Import, cst.Module))


def _node(result: object) -> cst.CSTNode:
    assert isinstance(result, cst.CSTNode)
    return result


def _joined(lines: Sequence[Sequence[Slot]]) -> list[Slot]:
    return [slot for line in lines for slot in line]
