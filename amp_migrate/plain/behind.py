"""Clips that end a function behind its backward, as if they stood behind its calls: ``run(loss); clip(parameters)``.

From there they can go where the optimizer steps, which gradients of several calls wait for.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from amp_migrate.facts.below import behind_docstring
from amp_migrate.facts.paths import YIELDS, defs, path, same, uses, variables
from amp_migrate.plain.write import Piece, filling
from amp_migrate.project import CallSite, Function, Module, Project
from amp_migrate.source.span import Span
from amp_migrate.training.bindings import bound_value
from amp_migrate.training.contexts import Context, context, scales_loss
from amp_migrate.training.gradients.used import clips

_AROUND = (ast.Call, ast.keyword, ast.Tuple, ast.Attribute, ast.BinOp, ast.Subscript)
_HOLDING = (ast.Expr, ast.Assign, ast.AugAssign)
_OF_GRADIENTS = (Context.GRAD, Context.NO_GRAD)
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
        if function.node is None or not _does_more(project, function):
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


def _does_more(project: Project, function: Function) -> bool:
    """Tell whether a function scales a loss, or does something else that must not move with its clip."""
    if isinstance(function.node, ast.FunctionDef) and len(behind_docstring(function.node)) > 1:
        return True
    calls = (node for node in function.own_nodes if isinstance(node, ast.Call))
    return any(scales_loss(project, function.module, call) for call in calls)


def _end(project: Project, function: Function) -> ast.stmt | None:
    """Return the statement that a function always ends with, but for a `return` that only reads."""
    body = list(function.node.body) if isinstance(function.node, ast.FunctionDef) else []
    ends = [n for n in function.own_nodes if isinstance(n, (ast.Return, *YIELDS))]
    if ends and ends != body[-1:]:
        return None
    last = next(reversed(body[:-1] if ends and _is_plain(body[-1]) else body), None)
    return _within(project, function.module, last) if last is not None else None


def _within(project: Project, module: Module, last: ast.stmt) -> ast.stmt:
    """Return what a block ends with that only says whether there are gradients."""
    while isinstance(last, ast.With) and all(
        context(project, module, item.context_expr) in _OF_GRADIENTS for item in last.items
    ):
        last = last.body[-1]
    return last


def _last(project: Project, function: Function) -> tuple[tuple[ast.Expr, ...], _Clip] | None:
    """Return the clips that a function always ends with, and what they are as one call."""
    last = _end(project, function)
    if not isinstance(last, ast.Expr | ast.If) or not _clips(project, function, last):
        return None
    made = [
        node
        for node in function.own_nodes
        if isinstance(node, ast.Call) and clips(project, function.module, node)
    ]
    if isinstance(last, ast.If) and last.orelse:
        one, other = (_within(project, function.module, s[-1]) for s in (last.body, last.orelse))
        if isinstance(one, ast.Expr) and isinstance(other, ast.Expr):
            whole = _either(last.test, one.value, other.value)
            if whole is not None and set(made) == {one.value, other.value}:
                return (one, other), whole
    if isinstance(last, ast.Expr) and [last.value] == made:
        return (last,), _Clip(made[0])
    return None


def _clips(project: Project, function: Function, last: ast.stmt) -> bool:
    calls = (node for node in ast.walk(last) if isinstance(node, ast.Call))
    return any(clips(project, function.module, call) for call in calls)


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
    read = {n.id for part in clip.parts for n in ast.walk(part) if isinstance(n, ast.Name)}
    names = {name: _spelt(function, name) for name in read}
    found = list(_behind(project, function, names, (function,)))
    pieces = [_at_call(place, clip) for place in found if place is not None]
    inside = {
        node for place in found if place is not None for node in place.site.function.own_nodes
    }
    if not inside.isdisjoint(statements) or len(pieces) < len(found):
        return None
    return None if None in pieces else [piece for piece in pieces if piece is not None]


def _spelt(function: Function, name: str) -> str:
    """Return what an attribute that has a name of its own in a function is called, which sets neither again."""
    bound = function.module.scopes.bindings(function.scope, name)
    value = bound_value(function.module, bound[0]) if len(bound) == 1 else None
    if not isinstance(value, ast.Attribute) or path(value) is None:
        return name
    written = any(
        isinstance(node.ctx, ast.Store)
        and (node.attr == value.attr if isinstance(node, ast.Attribute) else node.id in uses(value))
        for node in function.own_nodes
        if isinstance(node, ast.Attribute | ast.Name)
    )
    return name if written else function.module.tree.segment(value)


class _Place(NamedTuple):
    """A call behind which a clip may stand, and what the names in it are to the caller."""

    site: CallSite
    names: dict[str, str]


def _behind(
    project: Project, function: Function, names: dict[str, str], above: tuple[Function, ...]
) -> Iterator[_Place | None]:
    """Yield the calls that a function ends, the outermost that end no function themselves; None where one is not known."""
    calls = project.callers(function)
    if not calls or any(project.escapes(function)):
        yield None
        return
    for site in calls:
        said = _said(project, function, site, names)
        caller, statement = site.function, site.function.module.tree.statement(site.call)
        if said is None or caller.module is not above[0].module or site.partial or site.constructor:
            yield None
            return
        ends = caller not in above and caller.node and _end(project, caller) is statement
        further = list(_behind(project, caller, said, (*above, caller))) if ends else [None]
        yield from [_Place(site, said)] if None in further else further


def _at_call(place: _Place, clip: _Clip) -> Piece | None:
    site = place.site
    tree = site.function.module.tree
    statement = tree.statement(site.call)
    for up in tree.ancestors(site.call):
        if up is statement:
            break
        if not isinstance(up, _AROUND):
            return None
    if not isinstance(statement, _HOLDING):
        return None
    text = clip.text(site.function.module, place.names)
    if "\n" in text or defs(statement) & uses(ast.parse(text)):
        return None
    end = tree.span(statement)
    rest = tree.lines[end.end_line - 1][end.end_column :].strip()
    if rest and not rest.startswith("#"):
        return None
    return Piece(Span(end.end_line, end.end_column, end.end_line, end.end_column), f"; {text}")


def _said(
    project: Project, function: Function, site: CallSite, names: Mapping[str, str]
) -> dict[str, str] | None:
    """Return what names are to a caller of a function, by what they are in it; None where one is not known to it."""
    scopes, known = function.module.scopes, dict[str, str]()
    read = (name for text in names.values() for name in variables(ast.parse(text)))
    for name in dict.fromkeys(read):
        owner = scopes.find(function.scope, name)
        if owner is function.scope:
            given = _given(project, function, site, name)
            if given is None or not all(isinstance(n, _GIVEN) for n in ast.walk(given)):
                return None
            known[name] = site.function.module.tree.segment(given)
            if "\n" in known[name]:
                return None
        elif scopes.find(site.function.scope, name) is not owner:
            return None
    return {name: _with(text, known) for name, text in names.items()}


def _with(text: str, names: Mapping[str, str]) -> str:
    """Return an expression with other names."""
    read = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name) and n.id in names]
    line = text.encode()
    for node in sorted(read, key=lambda n: n.col_offset, reverse=True):
        line = line[: node.col_offset] + names[node.id].encode() + line[node.end_col_offset :]
    return line.decode()


def _given(project: Project, function: Function, site: CallSite, name: str) -> ast.expr | None:
    """Return what a call gives for a parameter that the function does not set, its object included."""
    if len(function.module.scopes.bindings(function.scope, name)) != 1:
        return None
    if name == function.receiver and site.bound and isinstance(site.call.func, ast.Attribute):
        return site.call.func.value
    given = project.arguments(site, function).get(name)
    return given if given is not None and given in set(ast.walk(site.call)) else None
