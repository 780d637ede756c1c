"""Dictionaries that a comprehension makes over keys that are written out: each key has an object of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import LOOKS
from amp_migrate.modules.lookup import Lookup
from amp_migrate.modules.model import Class, Module
from amp_migrate.values.links.graph import VALUES, Graph
from amp_migrate.values.links.upstream import APPENDED

_GIVING = frozenset({"copy", "get", "items", "keys", "values"})
_READING = LOOKS | {"dict", "enumerate", "list", "set", "sorted", "tuple", "zip"}
_Keys = tuple[object, ...]


def comprehended(
    graph: Graph, lookup: Lookup, module: Module, node: ast.DictComp, inner: int | None
) -> int:
    """Return the node of a dictionary whose values are made by an expression, whose node is `inner`."""
    result = graph.new()
    keys = _of_comprehension(module, node) if _makes(lookup, module, node.value) else None
    if inner is None:
        return result
    if keys is None:
        graph.flow(inner, graph.field(result, APPENDED))
        return result
    values = graph.new()
    for place, key in enumerate(keys):
        own = graph.field(result, f"[{key!r}]")
        graph.make(inner, own)
        graph.merge(own, graph.field(values, f"[{place}]"))
    graph.flow(values, graph.field(result, VALUES))
    return result


def _makes(lookup: Lookup, module: Module, node: ast.expr) -> bool:
    """Tell whether an expression is a call of a class, or of what is not in the project: an object each time."""
    meanings = lookup.expression(module, node.func) if isinstance(node, ast.Call) else ()
    return bool(meanings) and all(isinstance(m, str | Class) for m in meanings)


def _of_comprehension(module: Module, node: ast.DictComp) -> _Keys | None:
    """Return the keys of a comprehension that takes them as they come."""
    if len(node.generators) != 1 or node.generators[0].ifs or not isinstance(node.key, ast.Name):
        return None
    target, over = node.generators[0].target, node.generators[0].iter
    called = over.func if isinstance(over, ast.Call) and not over.args else None
    pairs = isinstance(called, ast.Attribute) and called.attr == "items"
    if pairs and isinstance(called, ast.Attribute) and isinstance(target, ast.Tuple):
        target, over = target.elts[0], called.value
    elif pairs or isinstance(target, ast.Tuple):
        return None
    own = isinstance(target, ast.Name) and target.id == node.key.id
    return _keys(module, over, frozenset()) if own else None


def _keys(module: Module, node: ast.expr, above: frozenset[ast.expr]) -> _Keys | None:
    """Return the constants that a list or the keys of a dictionary are, where nothing adds to it; None where that is not known."""
    if node in above or isinstance(node, ast.Starred):
        return None
    above |= {node}
    if isinstance(node, ast.List | ast.Tuple | ast.Dict):
        return _constants(node.keys if isinstance(node, ast.Dict) else node.elts)
    if isinstance(node, ast.DictComp):
        return _of_comprehension(module, node)
    if isinstance(node, ast.Call):
        return _of_call(module, node, above)
    if not isinstance(node, ast.Name | ast.Attribute):
        return None
    found: set[_Keys | None] = set()
    for place in _spelt(module, node):
        up = module.tree.parent(place)
        if isinstance(place.ctx, ast.Load):
            if not _only_looks(module, place, up):
                return None
            continue
        assigns = isinstance(up, ast.Assign) and up.targets == [place]
        keys = _keys(module, up.value, above) if assigns and isinstance(up, ast.Assign) else None
        found.add(tuple(sorted(keys, key=repr)) if keys is not None else None)
    return found.pop() if len(found) == 1 else None


def _constants(nodes: list[ast.expr] | list[ast.expr | None]) -> _Keys | None:
    keys = [node.value if isinstance(node, ast.Constant) else None for node in nodes]
    return None if None in keys or len(set(keys)) < len(keys) else tuple(keys)


def _of_call(module: Module, call: ast.Call, above: frozenset[ast.expr]) -> _Keys | None:
    """Return the keys of ``dict(zip(keys, values))``, ``dict(a=...)``, ``objects.keys()``, ``list(keys)``."""
    given, func = call.args[0] if call.args else None, call.func
    if isinstance(func, ast.Attribute) and func.attr in ("copy", "keys") and given is None:
        return _keys(module, func.value, above)
    name = module.scopes.builtin(func)
    if name == "dict" and given is None:
        keys = [keyword.arg for keyword in call.keywords]
        return None if None in keys else tuple(keys)
    if name in ("dict", "list", "tuple", "sorted") and given is not None and not call.keywords:
        pairs = isinstance(given, ast.Call) and module.scopes.builtin(given.func) == "zip"
        if pairs and isinstance(given, ast.Call) and name == "dict" and given.args:
            return _keys(module, given.args[0], above)
        return None if pairs else _keys(module, given, above)
    return None


def _spelt(module: Module, node: ast.Name | ast.Attribute) -> Iterator[ast.Name | ast.Attribute]:
    """Yield where a file reads or stores a variable, or an attribute of that name."""
    if isinstance(node, ast.Name):
        yield from module.scopes.spelt(module.scopes.owner(node), node.id)
    else:
        yield from (n for n in module.tree.nodes(ast.Attribute) if n.attr == node.attr)


def _only_looks(module: Module, place: ast.expr, up: ast.AST | None) -> bool:
    """Tell whether a read of a collection cannot change what keys it has."""
    if isinstance(up, ast.Subscript):
        return isinstance(up.ctx, ast.Load) or up.value is not place
    if isinstance(up, ast.Attribute):
        return up.attr in _GIVING and module.tree.call_of(up) is not None
    if isinstance(up, ast.Call):
        return module.scopes.builtin(up.func) in _READING
    return isinstance(up, ast.For | ast.comprehension | ast.Compare)
