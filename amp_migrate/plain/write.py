"""The text of a file with its uses of Apex spelt out, line by line as before."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from amp_migrate.facts.paths import defs, uses
from amp_migrate.facts.tree import Respelt, Tree
from amp_migrate.plain.calls import Calls, Plain
from amp_migrate.plain.choice import Chosen
from amp_migrate.plain.inline import Inlined
from amp_migrate.plain.unused import Unused
from amp_migrate.source.span import Span


@dataclass(frozen=True, slots=True)
class Piece:
    """Text in place of a range of the source, which may be empty."""

    span: Span
    text: str


def filling(span: Span, text: str = "None") -> Piece:
    """Return what takes the place of an expression or a statement, in as many lines."""
    lines = span.end_line - span.line
    return Piece(span, f"({text}" + "\n" * lines + ")" if lines else text)


def taken_out(tree: Tree, statement: ast.Assign, kept: ast.expr) -> list[Piece]:
    """Return what takes one of several values that a line assigns at once out, before the others; nothing where one reads another."""
    target, value = statement.targets[0], statement.value
    if not isinstance(target, ast.Tuple | ast.List) or not isinstance(value, ast.Tuple | ast.List):
        return []
    pairs = list(zip(target.elts, value.elts, strict=False))
    if len(statement.targets) > 1 or not len(target.elts) == len(value.elts) == len(pairs) > 1:
        return []
    own = next((one for one, held in pairs if held is kept), None)
    others = [pair for pair in pairs if pair[1] is not kept]
    line, column, end_line, end = tree.span(statement)
    if own is None or line != end_line or len(others) != len(pairs) - 1:
        return []
    if any(isinstance(p, ast.Starred) or defs(own) & uses(p) for pair in others for p in pair):
        return []
    if any(defs(one) & uses(own) for one, _ in others):
        return []
    spelt = (", ".join(map(tree.segment, side)) for side in zip(*others, strict=True))
    place, rest = tree.span(kept), " = ".join(spelt)
    before = Piece(Span(line, column, line, place.column), f"{tree.segment(own)} = ")
    return [before, Piece(Span(line, place.end_column, line, end), f"; {rest}")]


class Unwritable(Exception):
    """A use of Apex cannot be spelt out without moving lines."""


def of_call(tree: Tree, plain: Plain, calls: Calls) -> list[Piece]:
    """Return what turns a call into the plain one."""
    call = plain.call
    pieces = [Piece(tree.span(node), text) for node, text in plain.unpacked.items()]
    if plain.callee is not None:
        pieces.append(Piece(tree.span(call.func), calls.text(plain.callee)))
        pieces += _added(tree, plain, calls)
    return pieces


def _added(tree: Tree, plain: Plain, calls: Calls) -> list[Piece]:
    """Put the arguments of a partial object before the positional ones, and behind them."""
    call = plain.call
    first = ", ".join(calls.text(node) for node in plain.first)
    named = ", ".join(f"{name}={calls.text(node)}" for name, node in plain.named.items())
    start = _opening(tree, call)
    if call.args:
        end = tree.span(call.args[-1])
        pieces = [Piece(Span(*start, *start), f"{first}, ")] if first else []
        behind = (end.end_line, end.end_column)
        return pieces + ([Piece(Span(*behind, *behind), f", {named}")] if named else [])
    text = ", ".join(part for part in (first, named) if part)
    more = ", " if text and call.keywords else ""
    return [Piece(Span(*start, *start), text + more)] if text else []


def _opening(tree: Tree, call: ast.Call) -> tuple[int, int]:
    """Return the place behind the parenthesis that opens the arguments of a call."""
    place = tree.span(call.func)
    line = tree.lines[place.end_line - 1]
    at = place.end_column
    while at < len(line) and line[at] in " )":
        at += 1
    if line[at : at + 1] != "(":
        raise Unwritable
    return place.end_line, at + 1


def of_inlined(tree: Tree, inlined: Inlined) -> Piece:
    """Return what stands for a call of a function that returns one of Apex."""
    return filling(tree.span(inlined.call), inlined.text)


def of_chosen(tree: Tree, chosen: Chosen) -> list[Piece]:
    """Return the call of `amp.scale_loss` that stands for what a `with` enters."""
    if chosen.under is not None:
        return list(_of_entered(tree, chosen, chosen.under))
    span = tree.span(chosen.use)
    inside = chosen.scaling in ast.walk(chosen.use)
    text = tree.segment(chosen.scaling) if inside else ast.unparse(chosen.scaling)
    if chosen.text is not None:
        text = chosen.text
    elif not inside and "\n" not in tree.segment(chosen.scaling):
        text = tree.segment(chosen.scaling)
    return [Piece(span, text + "\n" * (span.end_line - span.line - text.count("\n")))]


def _of_entered(tree: Tree, chosen: Chosen, under: ast.If | ast.IfExp) -> Iterator[Piece]:
    """Yield what leaves of a statement or an expression the stack that enters `amp.scale_loss`."""
    call = tree.parent(chosen.use)
    assert isinstance(call, ast.Call)
    whole, kept = tree.span(under), tree.span(call)
    target = under.body[0] if isinstance(under, ast.If) else None
    head = f"{tree.segment(target.targets[0])} = " if isinstance(target, ast.Assign) else ""
    yield Piece(Span(*whole[:2], *kept[:2]), f"{head}(" + "\n" * (kept.line - whole.line))
    rest = "\n" * (whole.end_line - kept.end_line)
    yield Piece(Span(kept.end_line, kept.end_column, whole.end_line, whole.end_column), f"{rest})")


def of_unused(tree: Tree, unused: Unused) -> Piece:
    """Return what takes the place of a value that nothing reads."""
    deletes = isinstance(unused.statement, ast.Delete)
    whole = unused.statement if deletes and unused.statement else unused.value
    span = Span(*_start(tree, whole), *tree.span(whole)[2:])
    entry = _entry(tree, unused)
    return Piece(entry, "") if entry is not None else filling(span)


def _entry(tree: Tree, unused: Unused) -> Span | None:
    """Return the range of an entry with its comma, where that lies in one line."""
    if unused.entry is None:
        return None
    start, end = tree.span(unused.entry), tree.span(unused.value)
    line = tree.lines[start.line - 1]
    if end.end_line != start.line:
        return None
    at = end.end_column
    rest = line[at:].lstrip(" ")
    if rest.startswith(","):
        at += len(line[at:]) - len(rest) + 1
        at += len(line[at:]) - len(line[at:].lstrip(" "))
        return Span(start.line, start.column, start.line, at)
    before = line[: start.column].rstrip(" ")
    if not before.endswith(","):
        return Span(*start[:2], start.line, end.end_column) if rest else None
    return Span(start.line, len(before) - 1, start.line, end.end_column)


def written(
    tree: Tree, pieces: Iterable[Piece], calls: Mapping[ast.expr | ast.stmt, frozenset[ast.stmt]]
) -> Tree:
    """Return a file with pieces put in; `calls` are the uses of Apex that they spell out, with the statements that go."""
    ordered = sorted(set(pieces), key=lambda piece: piece.span)
    lines = list(tree.lines)
    for one, other in pairwise(ordered):
        if (one.span.end_line, one.span.end_column) > other.span[:2]:
            raise Unwritable
    for piece in reversed(ordered):
        span = piece.span
        if piece.text.count("\n") != span.end_line - span.line:
            raise Unwritable
        head = lines[span.line - 1][: span.column]
        rest = lines[span.end_line - 1][span.end_column :]
        lines[span.line - 1 : span.end_line] = f"{head}{piece.text}{rest}".split("\n")
    found = Tree(tree.path, "\n".join(lines))
    found.older = tree.older
    statements = found.nodes(ast.Assign, ast.AnnAssign, ast.Expr)
    spans = {span[:2]: span for span in map(found.span, statements)}
    found.respelt = tuple(
        Respelt(
            tree.span(node)[:2],
            _moved(tree, node, ordered),
            tuple(spans[_moved(tree, stmt, ordered)] for stmt in gone),
            isinstance(node, ast.If | ast.Assert | ast.IfExp),
            isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda),
            isinstance(node, ast.Expr),
            isinstance(node, ast.Assign) and not isinstance(node.value, ast.Lambda),
        )
        for node, gone in calls.items()
    )
    return found


def _moved(tree: Tree, node: ast.AST, pieces: Iterable[Piece]) -> tuple[int, int]:
    """Return where a node starts once pieces are put in before it."""
    line, column = _start(tree, node)
    more = 0
    for piece in pieces:
        end = (piece.span.end_line, piece.span.end_column)
        if (
            piece.span.end_line == line
            and end <= (line, column)
            and piece.span[:2] < (line, column)
        ):
            more += len(piece.text.rpartition("\n")[2]) - (
                end[1] - piece.span.column * (piece.span.line == line)
            )
    return line, column + more


def _start(tree: Tree, node: ast.AST) -> tuple[int, int]:
    """Return where a node starts, with its decorators."""
    if not isinstance(node, ast.FunctionDef) or not node.decorator_list:
        return tree.span(node)[:2]
    line, column = tree.span(node.decorator_list[0])[:2]
    return line, tree.lines[line - 1].rindex("@", 0, column)
