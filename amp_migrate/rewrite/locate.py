"""From the spans of edits to the nodes of the syntax tree, which counts parentheses differently."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import libcst as cst

from amp_migrate.rewrite.ranges import ranges
from amp_migrate.source.span import Span

Line = cst.SimpleStatementLine | cst.SimpleStatementSuite
StatementNode = cst.BaseSmallStatement | cst.BaseCompoundStatement
Start = tuple[int, int]
_LOOKED_AT = frozenset(
    {
        *(cst.SimpleStatementLine, cst.SimpleStatementSuite),
        *(cst.Tuple, cst.GeneratorExp, cst.FunctionDef, cst.ClassDef),
    }
)


@dataclass
class Places:
    """The nodes of one module that edits name, and where to look for them.

    `parenthesized` holds the tuples and generator expressions whose innermost parentheses belong to
    their span; `lines` the line of every small statement that stands in `statements`.
    """

    ranges: Mapping[cst.CSTNode, Span]
    statements: dict[Span, StatementNode] = field(default_factory=dict)
    expressions: dict[Span, cst.BaseExpression] = field(default_factory=dict)
    lines: dict[cst.CSTNode, Line] = field(default_factory=dict)
    starts: list[Start] = field(default_factory=list)

    def holds_target(self, node: cst.CSTNode) -> bool:
        """Tell whether a node that an edit names starts within `node`."""
        place = self.ranges.get(node)
        if place is None:
            return False
        at = bisect_left(self.starts, place[:2])
        return at < len(self.starts) and self.starts[at] <= place[2:]


def locate(
    module: cst.Module, text: str, statements: Iterable[Span], expressions: Iterable[Span]
) -> Places:
    """Find the nodes of statement and expression spans; a span that fits no node is left out."""
    places = Places(ranges(module))
    wanted, sought = {span[:2]: span for span in statements}, set(expressions)
    text_lines = text.split("\n")
    lines: list[Line] = []
    starts = {*wanted, *(span[:2] for span in sought)}
    for node, own in places.ranges.items():
        if type(node) not in _LOOKED_AT:
            pass  # Asking what a node of LibCST is an instance of takes long.
        elif isinstance(node, Line):
            lines.append(node)
        elif isinstance(node, (cst.Tuple, cst.GeneratorExp)):
            span = _with_parentheses(places, node, text_lines, own) if sought else own
            if span in sought:
                places.expressions[span] = node
                starts.add(own[:2])
        elif isinstance(node, (cst.FunctionDef, cst.ClassDef)) and node.decorators:
            _open_decorators(places, node, starts)
        if own[:2] in starts:
            if isinstance(node, StatementNode):
                if _same(wanted.get(own[:2]), own, text_lines):
                    places.statements[wanted[own[:2]]] = node
            elif isinstance(node, cst.BaseExpression) and own in sought:
                places.expressions.setdefault(own, node)
    targets = set(places.statements.values())
    places.lines = {small: line for line in lines for small in line.body if small in targets}
    places.starts = sorted(starts)
    return places


def _same(wanted: Span | None, span: Span, lines: list[str]) -> bool:
    """Tell whether a statement ends where a span does; the semicolon that ends its line may count."""
    if wanted is None or wanted.end_line != span.end_line:
        return False
    between = sorted((wanted.end_column, span.end_column))
    return lines[span.end_line - 1][slice(*between)].strip() in ("", ";")


def _open_decorators(
    places: Places, node: cst.FunctionDef | cst.ClassDef, starts: set[Start]
) -> None:
    first, last = places.ranges[node.decorators[0]][:2], places.ranges[node.decorators[-1]][2:]
    if any(first <= start <= last for start in starts):
        starts.add(places.ranges[node][:2])


def _with_parentheses(
    places: Places, node: cst.Tuple | cst.GeneratorExp, lines: list[str], own: Span
) -> Span:
    """Return the span of a tuple or generator expression with the parentheses that belong to it."""
    if node.lpar:
        return Span(*places.ranges[node.lpar[-1]][:2], *places.ranges[node.rpar[0]][2:])
    if isinstance(node, cst.Tuple):
        return own
    return _call_parentheses(lines, own)


def _call_parentheses(lines: list[str], own: Span) -> Span:
    """Return the span of the only argument of a call from parenthesis to parenthesis."""
    line, before = own.line, lines[own.line - 1][: own.column].rstrip()
    while not before and line > 1:
        line -= 1
        before = lines[line - 1].rstrip()
    end_line, end_column = own.end_line, own.end_column
    while ")" not in lines[end_line - 1][end_column:] and end_line < len(lines):
        end_line, end_column = end_line + 1, 0
    return Span(line, len(before) - 1, end_line, lines[end_line - 1].index(")", end_column) + 1)
