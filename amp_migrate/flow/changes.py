"""Which facts outlive a point: what it stores, and what the code that it runs may write."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator

from amp_migrate.facts.below import children
from amp_migrate.facts.paths import all_parameters, bound_name, tail
from amp_migrate.flow.assumption import Assumption, Known
from amp_migrate.flow.cfg.graph import Graph, Root
from amp_migrate.flow.cfg.points import Kind, Point
from amp_migrate.flow.evaluate import value_of
from amp_migrate.flow.terms import Aspect, Operand, term

Changes = Callable[[Point, Operand], bool]
"""Whether what an operand holds may be another one after a point.

Asked of points that run code from elsewhere, and of stores into attributes and items. A store to a name, or to the
very attribute or item, changes it in any case and is not asked about.
"""

_RUNS_CODE = {
    Kind.CALL, Kind.DECORATE, Kind.AWAIT, Kind.YIELD, Kind.NEXT, Kind.ENTER, Kind.LEAVE, Kind.IMPORT,
    Kind.UNPACK,
}  # fmt: skip
_STORES = {Kind.STORE, Kind.DELETE, Kind.UNBIND}
_LOOKING = frozenset(
    {"abs", "bool", "callable", "enumerate", "float", "hasattr", "id", "int", "isinstance"}
    | {"issubclass", "len", "print", "range", "repr", "str", "type", "zip"}
)
"""Builtins that change nothing of what they are given."""
_SCALAR = {"bool", "int", "float", "str"}
_SCALAR_RESULTS = _SCALAR | {"len", "isinstance", "issubclass", "callable", "hasattr", "repr", "id"}


def stored_name(node: ast.AST) -> str | None:
    """Return the name that a STORE, DELETE or UNBIND of a node binds; None for attributes and items."""
    return node.id if isinstance(node, ast.Name) else bound_name(node)


def runs_code(point: Point) -> bool:
    """Return whether a point runs code from elsewhere that may write what this body reads."""
    if point.kind is Kind.DEFINE:
        return isinstance(point.node, ast.ClassDef)
    if point.kind is Kind.OPERATE:
        return isinstance(point.node, ast.AugAssign)
    return point.kind in _RUNS_CODE


def may_change(point: Point) -> bool:
    """Return whether a point stores or runs something, so that not all that held before it need hold behind it."""
    return point.kind in _STORES or runs_code(point)


def after(point: Point, before: Assumption, changes: Changes) -> tuple[Assumption, Assumption]:
    """Return what holds when a point is done, and what holds when it raised."""
    if point.kind in _STORES:
        left = _after_store(point, before, changes)
        return _with_stored(point, before, left), left
    if before.facts and runs_code(point):
        left = before.without(lambda operand: changes(point, operand))
        return left, left
    return before, before


def _after_store(point: Point, before: Assumption, changes: Changes) -> Assumption:
    if not before.facts:
        return before
    name = stored_name(point.node)
    if name == "*":
        return Assumption()
    if name is not None:
        return before.without(lambda operand: operand.text == name)
    target = term(point.node) if isinstance(point.node, ast.expr) else None
    text = None if target is None else target.text
    return before.without(
        lambda operand: (
            operand.text == text or (_may_alias(point, operand) and changes(point, operand))
        )
    )


def _may_alias(point: Point, operand: Operand) -> bool:
    """Whether a store into an attribute or item may, under another name, be one into the operand."""
    if isinstance(point.node, ast.Subscript) and _is_other_item(point.node.slice, operand.text):
        return False
    if operand.aspect is Aspect.PATH:
        stored = point.node.attr if isinstance(point.node, ast.Attribute) else None
        return operand.attribute == stored
    return operand.aspect is Aspect.CONTENT


def _is_other_item(key: ast.expr, text: str) -> bool:
    """Whether a path ends with an item that has another constant for a key; places from the end are none."""
    if not isinstance(key, ast.Constant) or not isinstance(key.value, str | int):
        return False
    base, _, last = text.rpartition("[")
    constant = last[:1].isdigit() or last[:1] in ("'", '"')
    return bool(base) and text.endswith("]") and constant and last != f"{key.value!r}]"


def _with_stored(point: Point, before: Assumption, left: Assumption) -> Assumption:
    if point.value is None or not isinstance(point.node, ast.expr):
        return left
    for part, item in parts(point.node, point.value):
        left = _with_value(part, item, before, left)
    return _with_value(point.node, point.value, before, left)


def parts(node: ast.expr, made: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the items and attributes of what is bound to a target, each with the value that it is made with.

    Lists, tuples, dictionaries and namespaces have such.
    """
    if isinstance(made, ast.List | ast.Tuple):
        for place, item in enumerate(made.elts):
            if isinstance(item, ast.Starred):
                return
            yield ast.Subscript(node, ast.Constant(place), ast.Load()), item
    elif isinstance(made, ast.Dict):
        for key, item in zip(made.keys, made.values, strict=True):
            if isinstance(key, ast.Constant):
                yield ast.Subscript(node, key, ast.Load()), item
    elif isinstance(made, ast.Call) and tail(made) == "SimpleNamespace":
        for keyword in made.keywords:
            if keyword.arg is not None:
                yield ast.Attribute(node, keyword.arg, ast.Load()), keyword.value


def _with_value(
    node: ast.expr, stored: ast.expr, before: Assumption, left: Assumption
) -> Assumption:
    value = value_of(stored, before)
    target = None if value is None else term(node)
    if value is None or target is None:
        return left
    # a constant has no inside that could change
    return left.with_fact(target.of_object() if isinstance(value, Known) else target, value)


def keeping(changes: Changes, kept: Collection[str]) -> Changes:
    """Return the same rule, but for expressions known to stay: ``{"args.fp16", "use_amp"}``.

    That an attribute stays says also that reading it again finds it on the same object.
    """
    stays = {prefix for text in kept for prefix in _prefixes(text)}
    return lambda point, operand: operand.text not in stays and changes(point, operand)


def _prefixes(text: str) -> Iterator[str]:
    """A path and the paths to the objects that it goes through."""
    yield text
    for at, letter in enumerate(text):
        if letter in ".[":
            yield text[:at]


def steady(point: Point, operand: Operand) -> bool:
    """Take what is asked twice for the same where nothing in sight assigns it in between."""
    return False


def cautious(graph: Graph) -> Changes:
    """Return the rule that knows nothing but the body itself.

    A name keeps its object when it is local to the body and no function inside declares it `nonlocal` (in a module:
    no function declares it `global`). What is inside its object stays when all that is ever bound to it are numbers,
    strings and truths, or its parameter is annotated so. Everything else may change with every call, and with
    every store into an attribute of the same name, or into an item.
    """
    own = _own_names(graph.root)
    scalars = _scalars(graph, own)

    def changes(point: Point, operand: Operand) -> bool:
        node = point.node
        if (
            point.kind is Kind.CALL
            and isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
        ):
            if node.func.id in _LOOKING and node.func.id not in own:
                return False
        if operand.aspect is Aspect.BINDING:
            return operand.text not in own and operand.text not in _LOOKING
        return operand.aspect is Aspect.PATH or operand.text not in scalars

    return changes


def _parameters(root: Root) -> list[ast.arg]:
    if not isinstance(root, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return []
    return all_parameters(root.args)


def _own_names(root: Root) -> frozenset[str]:
    """The names that only this body binds."""
    own = {parameter.arg for parameter in _parameters(root)}
    shared: set[str] = set()
    for node, direct in _scoped(root):
        if isinstance(node, ast.Global | ast.Nonlocal):
            if direct or isinstance(node, ast.Nonlocal) or isinstance(root, ast.Module):
                shared.update(node.names)
        elif direct and not (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)):
            name = stored_name(node)
            if name is not None:
                own.add(name)
    return frozenset(own - shared)


def _scoped(root: Root) -> Iterator[tuple[ast.AST, bool]]:
    """Every node under a body, and whether what it binds is bound in the body itself."""
    stack = [(child, True) for child in children(root)]
    while stack:
        node, direct = stack.pop()
        yield node, direct
        scope = isinstance(
            node,
            ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef | ast.comprehension,
        )
        stack += [(child, direct and not scope) for child in children(node)]


def _scalars(graph: Graph, own: frozenset[str]) -> frozenset[str]:
    """The names of a body that only ever hold numbers, strings or truths."""
    found = {p.arg for p in _parameters(graph.root) if not _annotated_scalar(p)}
    candidates = set(own) - found
    counted = {
        point.node.target
        for point in graph.points
        if isinstance(point.node, ast.For | ast.AsyncFor) and _calls(point.node.iter, {"range"})
    }
    stores = [p for p in graph.points if p.kind is Kind.STORE and p.node not in counted]
    changed = True
    while changed:
        changed = False
        for point in stores:
            name = stored_name(point.node)
            if name in candidates and not _scalar(point.value, candidates):
                candidates.discard(name)
                changed = True
    return frozenset(candidates)


def _annotated_scalar(parameter: ast.arg) -> bool:
    return isinstance(parameter.annotation, ast.Name) and parameter.annotation.id in _SCALAR


def _calls(node: ast.expr, names: Collection[str]) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def _scalar(node: ast.expr | None, names: Collection[str]) -> bool:
    """Whether an expression gives a number, a string, a truth or None, if `names` do."""
    if isinstance(node, ast.Constant | ast.JoinedStr):
        return True
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not) or _scalar(node.operand, names)
    if isinstance(node, ast.BinOp):
        return _scalar(node.left, names) and _scalar(node.right, names)
    if isinstance(node, ast.BoolOp):
        return all(_scalar(part, names) for part in node.values)
    if isinstance(node, ast.IfExp):
        return _scalar(node.body, names) and _scalar(node.orelse, names)
    if isinstance(node, ast.Compare):
        parts = (node.left, *node.comparators)
        identity = all(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops)
        return identity or all(_scalar(part, names) for part in parts)
    return node is not None and _calls(node, _SCALAR_RESULTS)
