"""What one statement becomes: itself, other statements, the statements of one of its blocks, nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import libcst as cst

from amp_migrate.plan.model import Drop, Edit, Hoist, Insert, Move, Replace
from amp_migrate.rewrite.blocks.comments import (
    below,
    comment_lines,
    comments_inside,
    footer_lines,
    header_comment,
    own_lines,
    split_attached,
    split_header,
)
from amp_migrate.rewrite.blocks.compound import kept_block
from amp_migrate.rewrite.blocks.continuation import shift
from amp_migrate.rewrite.blocks.lines import (
    Element,
    Gap,
    Statement,
    assemble,
    bare,
    ends_as_it_was,
    flat_suite,
    statements,
    strip_blank,
    unindented,
)
from amp_migrate.rewrite.blocks.snippet import parse_statements
from amp_migrate.rewrite.errors import EditError
from amp_migrate.rewrite.index import Arrival, Index

Visit = Callable[[cst.CSTNode], cst.CSTNode]


@dataclass
class Part:
    """What a statement becomes: a statement, or lines (none where it goes)."""

    core: cst.BaseSmallStatement | cst.BaseCompoundStatement | list[Element]
    before: list[Element] = field(default_factory=list)
    after: list[Element] = field(default_factory=list)

    def fits_line(self) -> bool:
        """Tell whether the result is a small statement or nothing."""
        return isinstance(self.core, cst.BaseSmallStatement) or not self.core

    def lines(self, line: cst.SimpleStatementLine | None = None) -> list[Element]:
        """Return the lines of the result; a small statement goes into `line`, its comment with it."""
        if isinstance(self.core, cst.BaseCompoundStatement):
            return [bare(self.core)]
        if isinstance(self.core, list):
            if line is None or not self.core:
                return self.core or [Gap()]
            return with_trailing(self.core, line.trailing_whitespace)
        assert line is not None
        core = self.core
        if not (len(line.body) == 1 and line.body[0].semicolon == core.semicolon):
            core = core.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
        return [line.with_changes(body=[core])]


def with_trailing(elements: list[Element], trailing: cst.TrailingWhitespace) -> list[Element]:
    """Put the comment at the end of a replaced line at the end of the first new one.

    It becomes a line of its own where that one has a comment already.
    """
    first = statements(elements)
    if trailing.comment is None or not first:
        return elements
    at = elements.index(first[0])
    line = first[0]
    if isinstance(line, cst.SimpleStatementLine) and line.trailing_whitespace.comment is None:
        return [
            *elements[:at],
            line.with_changes(trailing_whitespace=trailing),
            *elements[at + 1 :],
        ]
    body = line.body
    if isinstance(body, cst.IndentedBlock) and not header_comment(body):
        headed = line.with_changes(body=body.with_changes(header=trailing))
        return [*elements[:at], headed, *elements[at + 1 :]]
    return [cst.EmptyLine(comment=trailing.comment), *elements]


class Statements:
    """Makes what the statements of a module become.

    `visit` rewrites a node on demand, `continued` tells whether the module has lines that a
    backslash continues, `units` and `nested` hold what the blocks being rewritten, and new ones in them, are indented by.
    """

    def __init__(self, index: Index, module: cst.Module, text: str, visit: Visit) -> None:
        self.index = index
        self.default_indent = module.default_indent
        self.units, self.nested = [module.default_indent], [module.default_indent]
        self.continued = "\\\n" in text
        self.moving: set[cst.CSTNode] = set()
        self._lines = text.split("\n")
        self._visit = visit
        self._first = module.body[0] if module.body else None
        self._header = split_header(module.header)[1]

    def block_indent(self, unit: str) -> str | None:
        """Return a unit as a block states it: None for that of the module."""
        return None if unit == self.default_indent else unit

    def block(self, elements: Sequence[Element], unit: str) -> cst.IndentedBlock:
        """Return elements as a block one `unit` deeper."""
        if len(self.units) == 1:
            elements = unindented(elements)
        body, footer = assemble(shift(elements, "", unit) if self.continued else elements)
        return cst.IndentedBlock(body=body, footer=footer, indent=self.block_indent(unit))

    def part(self, old: cst.CSTNode, new: cst.CSTNode) -> Part:
        """Return what the statement `old`, with the edits inside it applied as `new`, becomes."""
        assert isinstance(new, (cst.BaseSmallStatement, cst.BaseCompoundStatement))
        if old in self.index.leaving and old not in self.moving:
            return Part([])
        before = self.arrived(self.index.before.get(old, ()))
        core = self._core(old, new)
        return Part(core, before, self.arrived(self.index.after.get(old, ())))

    def _core(
        self, old: cst.CSTNode, new: cst.BaseSmallStatement | cst.BaseCompoundStatement
    ) -> cst.BaseSmallStatement | cst.BaseCompoundStatement | list[Element]:
        for removal in self.index.imported.get(old, ()) if old in self.index.emptied else ():
            if not isinstance(self.index.changes.get(old), Replace):
                self.index.mark(removal)
        change = self.index.changes.get(old)
        if change is None:
            return [] if old in self.index.emptied else new
        self.index.mark(change)
        match change:
            case Drop():
                return []
            case Hoist():
                return self._hoisted(old, change)
            case Replace():
                return self._replaced(old, change)

    def _replaced(self, old: cst.CSTNode, edit: Replace) -> cst.BaseSmallStatement | list[Element]:
        elements = self.written(edit, edit.text)
        if not isinstance(old, cst.BaseCompoundStatement):
            match elements:
                case [cst.SimpleStatementLine(body=[small]) as line] if (
                    line.trailing_whitespace.comment is None
                ):
                    return small
            return elements
        footer = footer_lines(old)
        behind = comment_lines(footer)
        found = comments_inside(old)
        inside = dict(c for c in found[: len(found) - len(behind)] if c[0] not in edit.text)
        unit = getattr(getattr(old, "body", None), "indent", None) or self.default_indent
        kept = own_lines(inside)
        after = below(footer, edit.text, "".join([*self.units[1:], unit]))
        if len(kept) == 1 and kept[0].comment is not None and inside[kept[0].comment.value]:
            space = cst.TrailingWhitespace(cst.SimpleWhitespace("  "), kept[0].comment)
            return [*with_trailing(elements, space), *after]
        return [*kept, *elements, *after]

    def _hoisted(self, old: cst.CSTNode, edit: Hoist) -> list[Element]:
        block, notes = kept_block(old, edit)
        if isinstance(block, cst.If):
            elements = self.elements_of_elif(block)
        else:
            elements = self._block_lines(block)
        only = statements(elements)
        if len(only) == 1 and _is_pass(only[0]):
            elements = [e for e in elements if e is not only[0]]
            only = []
        elements = [*own_lines(notes), *strip_blank(elements)]
        return elements if only else [*elements, Gap()]

    def _block_lines(self, block: cst.BaseSuite) -> list[Element]:
        unit = self.default_indent
        if isinstance(block, cst.IndentedBlock):
            unit = block.indent or self.default_indent
        updated = self._visit(block)
        assert isinstance(updated, cst.BaseSuite)
        lines = ends_as_it_was(flat_suite(updated), "".join([*self.units[1:], unit]))
        return shift(lines, unit, "") if self.continued else lines

    def elements_of_elif(self, node: cst.If) -> list[Element]:
        """Return the lines that an ``elif`` becomes as a statement of its own."""
        updated = self._visit(node)
        part = self.part(node, updated)
        lines = [line for line in node.leading_lines if line.comment is not None]
        return [*lines, *part.before, *part.lines(), *part.after]

    def written(self, edit: Edit, text: str) -> list[Element]:
        """Return the lines of new statements, in the indentation of where they go."""
        return parse_statements(edit, text, self.nested[-1], self.default_indent) if text else []

    def arrived(self, arrivals: Sequence[Arrival]) -> list[Element]:
        """Return the lines of statements that edits put in one place, in the order of the plan."""
        elements: list[Element] = []
        for edit in arrivals:
            self.index.mark(edit)
            if isinstance(edit, Insert):
                lines = self.written(edit, edit.text)
                elements += _set_apart(lines)
            else:
                elements += self._moved(edit)
        return elements

    def _moved(self, edit: Move) -> list[Element]:
        node = self.index.statement(edit, edit.span)
        if node in self.moving:
            raise EditError(edit, "statements move around each other")
        self.moving.add(node)
        part = self.part(node, self._visit(node))
        self.moving.discard(node)
        above, core = self._with_comments(node, part)
        elements = [*above, *part.before, *core, *part.after]
        if edit.header is not None:
            elements = [self.under(edit, edit.header, elements, self.nested[-1])]
        if not self.continued:
            return elements
        inside = self.units[-1] if edit.inside else ""
        new = self._margin(edit.anchor.line) + inside
        return shift(elements, self._margin(edit.span.line), new)

    def under(self, edit: Edit, header: str, body: list[Element], unit: str) -> Statement:
        """Return a compound statement that an edit puts around lines."""
        text = f"{header}\n    pass"
        made = statements(parse_statements(edit, text, self.default_indent, self.default_indent))
        if len(made) != 1 or not isinstance(made[0], cst.BaseCompoundStatement):
            raise EditError(edit, "the text is not the header of a compound statement")
        return made[0].with_changes(body=self.block(body, unit))

    def _with_comments(
        self, node: cst.CSTNode, part: Part
    ) -> tuple[list[cst.EmptyLine], list[Element]]:
        line = self.index.places.lines.get(node)
        if line is None:
            assert isinstance(node, cst.BaseCompoundStatement)
            return self._attached(node), part.lines()
        trailing = cst.TrailingWhitespace()
        if node is self._owner_of_trailing(line):
            trailing = line.trailing_whitespace
        above = []
        if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
            above = self._attached(line)
        return above, part.lines(
            cst.SimpleStatementLine([cst.Pass()], trailing_whitespace=trailing)
        )

    def _attached(
        self, statement: cst.SimpleStatementLine | cst.BaseCompoundStatement
    ) -> list[cst.EmptyLine]:
        """Return the comments directly above a statement; the first one's stand in the header."""
        lines = statement.leading_lines
        return split_attached([*self._header, *lines] if statement is self._first else lines)[1]

    def _owner_of_trailing(
        self, line: cst.SimpleStatementLine | cst.SimpleStatementSuite
    ) -> cst.CSTNode | None:
        """Return the statement that takes the comment of its line along: the last to leave it."""
        leaving = [small for small in line.body if small in self.index.leaving]
        gone = [small for small in line.body if self.index.is_gone(small)]
        return leaving[-1] if len(leaving) + len(gone) == len(line.body) else None

    def _margin(self, line: int) -> str:
        text = self._lines[line - 1]
        return text[: len(text) - len(text.lstrip(" \t\f"))]


def _set_apart(lines: list[Element]) -> list[Element]:
    """Put two blank lines around a definition."""
    if not isinstance(lines[0], cst.FunctionDef | cst.ClassDef):
        return lines
    blank = [cst.EmptyLine(indent=False)] * 2
    return [Gap(), *blank, *lines, *blank, Gap()]


def _is_pass(statement: cst.CSTNode) -> bool:
    return (
        isinstance(statement, cst.SimpleStatementLine)
        and len(statement.body) == 1
        and isinstance(statement.body[0], cst.Pass)
    )
