"""When the entries of a mapping are written, as seen from where it is used."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from itertools import takewhile

from amp_migrate.facts.constants import number, string
from amp_migrate.facts.paths import same
from amp_migrate.facts.tree import FunctionNode
from amp_migrate.flow import Graph, Order, Point, Root, build
from amp_migrate.project import Module

Entries = dict[str, ast.expr]

VARIES = ast.Name("varies", ast.Load())  # set on every way, to one of several values
SOMETIMES = ast.Name("sometimes", ast.Load())  # set on some ways alone
GIVING = frozenset({"get", "values", "items", "copy"})
_DEFAULTS: dict[str, bool | str] = {"enabled": True, "opt_level": "O1"}


class Unread(Exception):
    """What a mapping holds cannot be told."""


@dataclass(frozen=True, slots=True)
class Write:
    """A statement that sets entries of a mapping, `always` where no way to the use leaves it out."""

    node: ast.AST
    entries: Entries
    always: bool = True


def at_use(mapping: ast.expr, key: str, value: ast.expr) -> ast.expr:
    """Return what gives the value of an entry where its mapping is used."""
    if isinstance(value, ast.Constant):
        return value
    if (known := number(value)) is not None:
        return ast.Constant(known)
    if value is SOMETIMES:
        return at_run_time(mapping, key)
    return ast.Subscript(mapping, ast.Constant(key), ast.Load())


def at_run_time(mapping: ast.expr, key: str) -> ast.Call:
    """Return what asks a mapping for an entry, and gives what Apex takes by default where there is none."""
    default = [ast.Constant(_DEFAULTS[key])] if key in _DEFAULTS else []
    return ast.Call(ast.Attribute(mapping, "get", ast.Load()), [ast.Constant(key), *default], [])


def merged(found: Entries, more: Entries) -> Entries:
    """Return the entries of a mapping that is updated by another one."""
    both = {**found, **more}
    for key in found.keys() & more.keys():
        if more[key] is SOMETIMES and found[key] is not SOMETIMES:
            both[key] = VARIES
    return both


def common(given: list[Entries | None]) -> Entries:
    """Return the entries of what is one of several mappings with the same keys; values that differ vary."""
    known = [entries for entries in given if entries is not None]
    if not known or len(known) < len(given) or any(e.keys() != known[0].keys() for e in known):
        raise Unread
    alike = {key for key in known[0] if all(same(known[0][key], e[key]) for e in known[1:])}
    asked = {key for key in known[0] if any(isinstance(e[key], ast.Call) for e in known)}
    varied = {key: SOMETIMES if key in asked else VARIES for key in known[0]}
    return {
        key: value if key in alike and isinstance(value, ast.Constant) else varied[key]
        for key, value in known[0].items()
    }


def hands_out(module: Module, up: ast.AST | None) -> bool:
    """Tell whether what holds a mapping gives out what is inside it by other ways than a key."""
    if isinstance(up, ast.Attribute):
        return up.attr in GIVING
    if isinstance(up, ast.Subscript):
        return not isinstance(up.slice, ast.Constant)
    made = isinstance(up, ast.Call) and module.scopes.builtin(up.func) == "dict"
    return made or isinstance(up, ast.Dict)


def in_time(
    module: Module, scope: FunctionNode | ast.Module, writes: list[Write], use: ast.AST
) -> list[Write]:
    """Return the writes that come before a use, those on every way there first, in their order.

    `scope` is the body that the mapping belongs to; what stands in a function inside it, with the use, comes behind what
    stands in the body itself. Raises `Unread` where some ways leave one out that a function called at another time may meet.
    """
    here = _body(module, use)
    beside = [write for write in writes if here is not scope and _body(module, write.node) is here]
    if writes[0] in beside and len(beside) < len(writes):
        raise Unread
    around = [write for write in writes if write not in beside]
    return (_around(module, scope, around, use) if around else []) + _beside(here, beside, use)


def _around(
    module: Module, scope: FunctionNode | ast.Module, writes: list[Write], use: ast.AST
) -> list[Write]:
    """Return those that stand in the body of the mapping and come before a use there, or in a function inside it."""
    graph = build(scope)
    order = graph.order()
    later = _definition(module, scope, use)
    moments = graph.within(use)[-1:] if later is None else _runs(module, graph, later)
    if not moments:
        raise Unread
    found: list[tuple[Point, Write]] = []
    sometimes: list[Write] = []
    for write in writes:
        point = _point(graph, write)
        if all(order.dominates(point, moment) for moment in moments):
            found.append((point, write))
        elif later is not None:
            raise Unread
        elif any(order.may_reach(point, moment) for moment in moments):
            sometimes.append(replace(write, always=False))
    return _in_order(order, found) + sometimes


def _beside(here: Root, writes: list[Write], use: ast.AST) -> list[Write]:
    """Return those that stand in the function of the use: it may run again, and then comes behind all of them."""
    if not writes:
        return []
    graph = build(here)
    order = graph.order()
    moments = graph.within(use)[-1:]
    if not moments:
        raise Unread
    placed = [(_point(graph, write), write) for write in writes]
    found = [p for p in placed if all(order.dominates(p[0], moment) for moment in moments)]
    sometimes = [replace(write, always=False) for p, write in placed if (p, write) not in found]
    return _in_order(order, found) + sometimes


def _point(graph: Graph, write: Write) -> Point:
    points = graph.within(write.node)
    if not points:
        raise Unread
    return points[-1]


def _in_order(order: Order, placed: list[tuple[Point, Write]]) -> list[Write]:
    """Return writes in the order in which they run."""
    first = order.as_they_run([point for point, _ in placed])
    return [write for _, write in sorted(placed, key=lambda one: first.index(one[0]))]


def _body(module: Module, node: ast.AST) -> FunctionNode | ast.Lambda | ast.Module:
    """Return the function that a node is evaluated in, or the module."""
    kinds = FunctionNode | ast.Lambda | ast.Module
    return next(up for up in module.tree.ancestors(node) if isinstance(up, kinds))


def _definition(module: Module, scope: FunctionNode | ast.Module, use: ast.AST) -> ast.AST | None:
    """Return the outermost function or class of a scope that a use stands in; None for one of the scope itself."""
    around = takewhile(lambda up: up is not scope, module.tree.ancestors(use))
    kinds = FunctionNode | ast.ClassDef | ast.Lambda
    return next((up for up in reversed(list(around)) if isinstance(up, kinds)), None)


def _runs(module: Module, graph: Graph, later: ast.AST) -> list[Point]:
    """Return when a function of a body may run first: where it is named, if all of that is there, else where it is defined."""
    defined = list(graph.at(later))[-1:]
    if not isinstance(later, ast.FunctionDef) or later.decorator_list:
        return defined
    owner = module.scopes.find(module.scopes.scope_of(later), later.name)
    named = module.scopes.spelt(owner, later.name)
    points = [graph.at(module.tree.call_of(name) or name)[-1:] for name in named]
    if not (points and all(points)) or isinstance(owner, ast.Module):
        return defined
    return [point for found in points for point in found]


def key_of(node: ast.expr) -> str:
    """Return the key that an expression is; raises `Unread` where that is no string."""
    key = string(node)
    if key is None:
        raise Unread
    return key


def item_of(up: ast.AST | None, place: ast.expr, key: str) -> ast.Subscript | None:
    """Return what holds an expression, where that is its item of a key."""
    if not isinstance(up, ast.Subscript) or up.value is not place:
        return None
    return up if isinstance(up.slice, ast.Constant) and up.slice.value == key else None


def is_looked_at(up: ast.AST | None, place: ast.expr) -> bool:
    """Tell whether what holds an expression only looks at it."""
    if isinstance(up, ast.keyword):
        return up.arg is None
    if isinstance(up, ast.If | ast.While | ast.IfExp | ast.Assert):
        return up.test is place
    if isinstance(up, ast.For | ast.comprehension):
        return up.iter is place
    if isinstance(up, ast.BinOp):
        return isinstance(up.op, ast.BitOr)
    return isinstance(up, ast.Compare | ast.FormattedValue | ast.UnaryOp | ast.Expr)


def is_quiet(statement: ast.stmt) -> bool:
    """Tell whether a statement does nothing but store values, or update a dictionary."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr):
        return False
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    updates = [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "update"]
    plain = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "dict"]
    return len(updates) + len(plain) == len(calls)
