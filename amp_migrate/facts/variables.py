"""Variables, and the parts of a collection that serve as such: ``shared.options``, where nothing reaches ``shared`` but for its parts."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from amp_migrate.facts.below import E, every, with_parts
from amp_migrate.facts.constants import is_none
from amp_migrate.facts.paths import path
from amp_migrate.facts.scopes import ScopeNode, Scopes, assigned

_NAMESPACES = frozenset({"types.SimpleNamespace", "argparse.Namespace"})
_Key = tuple[type[ast.expr], object]


@dataclass(frozen=True, slots=True)
class Variable:
    """A name, or a part of what a name is bound to: `name` belongs to `scope`, `places` are where it is spelt.

    `made` is what a part was when the collection was made, None for nothing.
    """

    scopes: Scopes
    scope: ScopeNode
    name: str
    part: bool
    places: tuple[ast.expr, ...]
    made: ast.expr | None = None

    @property
    def reads(self) -> Iterator[ast.expr]:
        """Where it is read."""
        return (node for node in self.places if isinstance(getattr(node, "ctx", None), ast.Load))

    def value(self) -> ast.expr | None:
        """Return what the only assignment gives it; None where there are others."""
        tree = self.scopes.tree
        stored: list[ast.AST]
        if self.part:
            stored = [n for n in self.places if not isinstance(getattr(n, "ctx", None), ast.Load)]
        else:
            stored = self.scopes.bindings(self.scope, self.name)
        if self.made is not None:
            return None if stored else self.made
        up = tree.parent(stored[0]) if len(stored) == 1 else None
        if isinstance(up, ast.Assign) and up.targets == stored:
            return up.value
        return up.value if isinstance(up, ast.AnnAssign) else None

    def body(self) -> ScopeNode:
        """Return the body that assigns to it."""
        value = self.value() if self.part else None
        return self.scopes.scope_of(value) if value is not None else self.scope


def variable(scopes: Scopes, node: ast.expr) -> Variable | None:
    """Return the variable that an expression reads or stores; None where other code may reach the same object."""
    if isinstance(node, ast.Name):
        owner = scopes.owner(node)
        places = tuple(scopes.spelt(owner, node.id))
        return Variable(scopes, owner, node.id, False, places) if owner is not None else None
    key = _key(node)
    if key is None or not isinstance(node, ast.Attribute | ast.Subscript):
        return None
    whole = variable(scopes, node.value)
    parts = _parts(whole, key[0]) if whole is not None else None
    if whole is None or parts is None:
        return None
    found: list[ast.expr] = []
    for place in whole.places:
        up = scopes.tree.parent(place)
        if isinstance(getattr(place, "ctx", None), ast.Store):
            continue
        other = _key(up) if isinstance(up, ast.expr) else None
        if other is None or other[0] is not key[0] or getattr(up, "value", None) is not place:
            return None
        if other == key and isinstance(up, ast.expr):
            found.append(up)
    made = parts.get(key[1])
    made = None if is_none(made) else made
    return Variable(scopes, whole.scope, whole.name, True, tuple(found), made)


def _key(node: ast.expr) -> _Key | None:
    """Return what tells a part of a collection from others."""
    if isinstance(node, ast.Attribute):
        return None if node.attr.startswith("__") else (ast.Attribute, node.attr)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return ast.Subscript, node.slice.value
    return None


def _parts(whole: Variable, kind: type[ast.expr]) -> dict[object, ast.expr] | None:
    """Return what a new collection has, by key; None where parts of a `kind` may be anything else."""
    scopes = whole.scopes
    bound = [] if whole.part else scopes.bindings(whole.scope, whole.name)
    if len(bound) == 1 and isinstance(bound[0], ast.ClassDef):
        return _attributes(bound[0]) if kind is ast.Attribute else None
    value = assigned(scopes.tree, bound[0]) if len(bound) == 1 else whole.value()
    if isinstance(value, ast.Call):
        return _called(scopes, value, kind)
    if kind is ast.Attribute:
        return None
    if isinstance(value, ast.Dict):
        keys = [key.value if isinstance(key, ast.Constant) else None for key in value.keys]
        return None if None in keys else dict(zip(keys, value.values, strict=True))
    if isinstance(value, ast.BinOp) and isinstance(value.left, ast.List):
        return {} if all(map(is_none, value.left.elts)) else None
    if isinstance(value, ast.List | ast.Tuple):
        starred = any(isinstance(item, ast.Starred) for item in value.elts)
        return None if starred else dict(enumerate(value.elts))
    return None


def collects(scopes: Scopes, call: ast.Call) -> bool:
    """Tell whether a call makes a collection of what it is given, and does nothing else."""
    return any(_called(scopes, call, k) is not None for k in (ast.Subscript, ast.Attribute))


def _called(scopes: Scopes, call: ast.Call, kind: type[ast.expr]) -> dict[object, ast.expr] | None:
    """Return what a call puts into the collection that it makes."""
    given: dict[object, ast.expr] = {k.arg: k.value for k in call.keywords}
    if None in given or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    if kind is ast.Subscript:
        return given if scopes.builtin(call.func) == "dict" and not call.args else None
    bound = scopes.bound(call.func) if isinstance(call.func, ast.Name) else []
    if len(bound) == 1 and isinstance(bound[0], ast.ClassDef):
        return _constructed(bound[0], call, given)
    return given if _imported(scopes, call.func) in _NAMESPACES and not call.args else None


def _constructed(
    cls: ast.ClassDef, call: ast.Call, given: dict[object, ast.expr]
) -> dict[object, ast.expr] | None:
    """Return the attributes of a new object, where its constructor only stores what it gets."""
    made, init = _attributes(cls), _constructor(cls)
    if made is None or init is None:
        return made if not given and not call.args else None
    others = [*init.args.posonlyargs, *init.args.args]
    own = others.pop(0).arg if others else None
    defaults = init.args.defaults
    got: dict[object, ast.expr] = {
        arg.arg: value for arg, value in zip(others[::-1], defaults[::-1], strict=False)
    }
    got |= {arg.arg: value for arg, value in zip(others, call.args, strict=False)} | given
    for stmt in init.body:
        target = stmt.targets[0] if isinstance(stmt, ast.Assign) else None
        if not isinstance(stmt, ast.Assign) or not isinstance(target, ast.Attribute):
            return None
        value = got.get(stmt.value.id) if isinstance(stmt.value, ast.Name) else stmt.value
        if value is None or own is None or path(target.value) != own:
            return None
        if len(stmt.targets) > 1 or (value is stmt.value and not isinstance(value, ast.Constant)):
            return None
        made[target.attr] = value
    return made


def _constructor(cls: ast.ClassDef) -> ast.FunctionDef | None:
    found = (stmt for stmt in cls.body if isinstance(stmt, ast.FunctionDef))
    return next((stmt for stmt in found if stmt.name == "__init__"), None)


def _imported(scopes: Scopes, node: ast.expr) -> str | None:
    """Return the name under which a library has what an expression calls."""
    base = node.value if isinstance(node, ast.Attribute) else node
    bound = scopes.bound(base) if isinstance(base, ast.Name) else []
    up = scopes.tree.parent(bound[0]) if len(bound) == 1 else None
    if isinstance(node, ast.Attribute) and isinstance(up, ast.Import):
        return f"{path(base)}.{node.attr}"
    if isinstance(up, ast.ImportFrom) and isinstance(bound[0], ast.alias):
        return f"{up.module}.{bound[0].name}"
    return None


def _attributes(cls: ast.ClassDef) -> dict[object, ast.expr] | None:
    """Return the attributes of a class that has nothing else."""
    found: dict[object, ast.expr] = {}
    for stmt in cls.body:
        if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1:
            found[path(stmt.targets[0])] = stmt.value
        elif isinstance(stmt, ast.AnnAssign) and stmt.value is not None:
            found[path(stmt.target)] = stmt.value
        elif stmt is not _constructor(cls) and not isinstance(stmt, ast.Pass | ast.AnnAssign):
            if not isinstance(stmt, ast.Expr) or not isinstance(stmt.value, ast.Constant):
                return None
    return None if cls.bases or cls.keywords or cls.decorator_list else found


def put_in(node: E, given: Mapping[str, ast.expr]) -> E:
    """Return a copy of an expression with what is given in place of names."""
    names = (n for n in every(node) if isinstance(n, ast.Name) and n.id in given)
    return with_parts(node, {name: given[name.id] for name in names})
