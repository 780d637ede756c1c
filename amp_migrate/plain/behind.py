"""Clips that end a function behind its backward, as if they stood behind its calls: ``run(loss); clip(parameters)``.

From there they can go where the optimizer steps, which gradients of several calls wait for.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from amp_migrate.facts.paths import YIELDS, defs, path, same, uses
from amp_migrate.plain.write import Piece, filling
from amp_migrate.project import CallSite, Function, Module, Project
from amp_migrate.source.span import Span
from amp_migrate.training.contexts import scales_loss
from amp_migrate.training.reads.gradients import clips

_AROUND = (ast.Call, ast.keyword, ast.Tuple, ast.Attribute, ast.BinOp, ast.Subscript)
_HOLDING = (ast.Expr, ast.Assign, ast.AugAssign)
_GIVEN = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Load)


@dataclass(frozen=True, slots=True)
class Behind:
    """The statements that clip, one for each branch, and what is put in for them and behind the calls."""

    statements: tuple[ast.Expr, ...]
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class _Clip:
    """A call that clips; where a `test` decides, the parameters are its own or those of the `other` branch."""

    call: ast.Call
    test: ast.expr | None = None
    other: ast.expr | None = None

    @property
    def parts(self) -> list[ast.expr]:
        return [part for part in (self.call, self.test, self.other) if part is not None]

    def text(self, module: Module, names: Mapping[str, str]) -> str:
        """Return it with other names."""

        def said(part: ast.expr) -> str:
            return module.tree.segment(part, _renamed(part, names))

        if self.test is None or self.other is None:
            return said(self.call)
        first = self.call.args[0]
        chosen = f"{said(first)} if {said(self.test)} else {said(self.other)}"
        inside = set(ast.walk(first))
        kept = {n: t for n, t in _renamed(self.call, names).items() if n not in inside}
        return module.tree.segment(self.call, {**kept, first: chosen})


def _renamed(part: ast.expr, names: Mapping[str, str]) -> dict[ast.expr, str]:
    read = (n for n in ast.walk(part) if isinstance(n, ast.Name) and n.id in names)
    return {node: names[node.id] for node in read}


def behind(project: Project, module: Module) -> Iterator[Behind]:
    """Yield the clips that end functions of a file whose calls are all seen in it."""
    for function in module.functions.values():
        if function.node is None or not _scales(project, function):
            continue
        found = _last(project, function)
        pieces = _at_calls(project, function, *found) if found is not None else None
        if found is not None and pieces:
            statements = found[0]
            emptied = [filling(module.tree.span(statement)) for statement in statements]
            yield Behind(statements, (*emptied, *pieces))


def free(found: Behind, pieces: Collection[Piece]) -> bool:
    """Tell whether nothing else is put into the lines of a clip or of its calls."""
    lines = {line for p in found.pieces for line in range(p.span.line, p.span.end_line + 1)}
    return all(lines.isdisjoint(range(p.span.line, p.span.end_line + 1)) for p in pieces)


def _scales(project: Project, function: Function) -> bool:
    calls = (node for node in function.own_nodes if isinstance(node, ast.Call))
    return any(scales_loss(project, function.module, call) for call in calls)


def _last(project: Project, function: Function) -> tuple[tuple[ast.Expr, ...], _Clip] | None:
    """Return the clips that a function always ends with, and what they are as one call."""
    body = list(function.node.body) if isinstance(function.node, ast.FunctionDef) else []
    ends = [n for n in function.own_nodes if isinstance(n, (ast.Return, *YIELDS))]
    if ends and (ends != body[-1:] or not _is_plain(body[-1])):
        return None
    last = next(reversed(body[:-1] if ends else body), None)
    made = [
        node
        for node in function.own_nodes
        if isinstance(node, ast.Call) and clips(project, function.module, node)
    ]
    if isinstance(last, ast.If) and last.orelse:
        one, other = last.body[-1], last.orelse[-1]
        if isinstance(one, ast.Expr) and isinstance(other, ast.Expr):
            whole = _either(last.test, one.value, other.value)
            if whole is not None and set(made) == {one.value, other.value}:
                return (one, other), whole
    if isinstance(last, ast.Expr) and [last.value] == made:
        return (last,), _Clip(made[0])
    return None


def _is_plain(statement: ast.stmt) -> bool:
    """Tell whether a `return` only reads names, or the number of a tensor."""
    value = statement.value if isinstance(statement, ast.Return) else statement
    if isinstance(value, ast.Call) and not value.args and not value.keywords:
        read = isinstance(value.func, ast.Attribute) and value.func.attr in ("item", "detach")
        return read and path(value.func) is not None
    return value is None or all(isinstance(part, (*_GIVEN, ast.Tuple)) for part in ast.walk(value))


def _either(test: ast.expr, one: ast.expr, other: ast.expr) -> _Clip | None:
    """Return two calls that clip as one whose parameters are chosen by a test."""
    if not isinstance(one, ast.Call) or not isinstance(other, ast.Call):
        return None
    ours, theirs = ((c.func, *c.args[1:], *c.keywords) for c in (one, other))
    alike = len(ours) == len(theirs) and all(map(same, ours, theirs))
    return _Clip(one, test, other.args[0]) if alike and one.args and other.args else None


def _at_calls(
    project: Project, function: Function, statements: tuple[ast.Expr, ...], clip: _Clip
) -> list[Piece] | None:
    """Return what stands behind each call; None where one is not seen, or the clip cannot be said there."""
    calls = project.callers(function)
    if not calls or any(project.escapes(function)):
        return None
    pieces = []
    for site in calls:
        piece = _at_call(project, function, site, clip)
        if piece is None or any(s in site.function.own_nodes for s in statements):
            return None
        pieces.append(piece)
    return pieces


def _at_call(project: Project, function: Function, site: CallSite, clip: _Clip) -> Piece | None:
    tree = site.function.module.tree
    if site.partial or site.constructor or site.function.module is not function.module:
        return None
    statement = tree.statement(site.call)
    for up in tree.ancestors(site.call):
        if up is statement:
            break
        if not isinstance(up, _AROUND):
            return None
    names = _names(project, function, site, clip)
    if names is None or not isinstance(statement, _HOLDING):
        return None
    text = clip.text(function.module, names)
    if "\n" in text or defs(statement) & uses(ast.parse(text)):
        return None
    end = tree.span(statement)
    rest = tree.lines[end.end_line - 1][end.end_column :].strip()
    if rest and not rest.startswith("#"):
        return None
    return Piece(Span(end.end_line, end.end_column, end.end_line, end.end_column), f"; {text}")


def _names(
    project: Project, function: Function, site: CallSite, clip: _Clip
) -> dict[str, str] | None:
    """Return what the names in a clip of a function are to its caller; None where one is not known to it."""
    scopes, names = function.module.scopes, {}
    read = {n.id for p in clip.parts for n in ast.walk(p) if isinstance(n, ast.Name)}
    for name in read:
        owner = scopes.find(function.scope, name)
        if owner is function.scope:
            given = _given(project, function, site, name)
            if given is None or not all(isinstance(n, _GIVEN) for n in ast.walk(given)):
                return None
            names[name] = function.module.tree.segment(given)
        elif scopes.find(site.function.scope, name) is not owner:
            return None
    return names


def _given(project: Project, function: Function, site: CallSite, name: str) -> ast.expr | None:
    """Return what a call gives for a parameter that the function does not set, its object included."""
    if len(function.module.scopes.bindings(function.scope, name)) != 1:
        return None
    if name == function.receiver and site.bound and isinstance(site.call.func, ast.Attribute):
        return site.call.func.value
    given = project.arguments(site, function).get(name)
    return given if given is not None and given in set(ast.walk(site.call)) else None
