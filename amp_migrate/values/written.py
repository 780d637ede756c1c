"""Dictionaries of constants that are written out elsewhere, and that nothing changes: in another file, a class, a method."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from amp_migrate.facts.constants import string
from amp_migrate.facts.paths import LOOKS, called_alone, imported_name, same
from amp_migrate.facts.scopes import assigned
from amp_migrate.facts.tree import FunctionNode
from amp_migrate.modules.lookup import Lookup
from amp_migrate.modules.model import Class, Module

_GIVING = frozenset({"copy", "get", "items", "keys", "values"})
_Entries = dict[str, ast.expr]


def written(
    lookup: Lookup, modules: Collection[Module], module: Module, node: ast.expr
) -> _Entries | None:
    """Return the entries of what an imported name or an attribute reads; None where it may be another one or changed."""
    keys: list[str] = []
    while isinstance(node, ast.Subscript):
        key = string(node.slice)
        if key is None:
            return None
        keys.insert(0, key)
        node = node.value
    found = _owner(lookup, module, node)
    if found is None:
        return None
    where, owner, name = found
    definitions = list(_definitions(modules, name))
    if len(definitions) != 1 or definitions[0][0] is not owner:
        return None
    value = assigned(where.tree, definitions[0][1])
    for key in keys:
        value = _entry(value, key)
    entries = constants(where, value) if value is not None else None
    more = [] if keys or entries is None else list(_at_once(where, definitions[0][1]))
    for _, added in more:
        entries = {**entries, **added} if entries is not None else None
    kept = isinstance(owner, ast.ClassDef) or not is_handed_on(lookup, modules, where)
    if entries is None or not kept or _is_set_by_name(where):
        return None
    adding = {place for place, _ in more}
    places = ((at, place) for at, place in _places(modules, name) if place not in adding)
    looks = all(_only_looks(at, place, keys) for at, place in places)
    return entries if looks else None


def _at_once(module: Module, target: ast.AST) -> Iterator[tuple[ast.expr, _Entries]]:
    """Yield what the statements right behind an assignment add to the dictionary that it makes, with what names that there."""
    tree = module.tree
    if not isinstance(target, ast.expr):
        return
    block, made = tree.block(tree.statement(target)), tree.statement(target)
    for statement in block[block.index(made) + 1 :]:
        found = _addition(module, statement)
        if found is None or not same(found[0], target):
            return
        yield found


def _addition(module: Module, statement: ast.stmt) -> tuple[ast.expr, _Entries] | None:
    """Return the dictionary to which a statement adds constants, and these; None for one that does anything else."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        item = statement.targets[0]
        key = string(item.slice) if isinstance(item, ast.Subscript) else None
        if not isinstance(item, ast.Subscript) or key is None:
            return None
        value = statement.value
        return (item.value, {key: value}) if isinstance(value, ast.Constant) else None
    call = called_alone(statement)
    if call is None or not isinstance(call.func, ast.Attribute) or call.func.attr != "update":
        return None
    named = {item.arg: item.value for item in call.keywords if item.arg is not None}
    given = [constants(module, argument) for argument in call.args]
    entries: _Entries = {}
    for more in (*given, named if len(named) == len(call.keywords) else None):
        if more is None or not all(isinstance(value, ast.Constant) for value in more.values()):
            return None
        entries |= more
    return call.func.value, entries


def constants(module: Module, node: ast.expr) -> _Entries | None:
    """Return the entries of a dictionary that is written out; None where they are not constants under names."""
    pairs: list[tuple[str | None, ast.expr]] = []
    if isinstance(node, ast.Dict):
        keys = [k.value if isinstance(k, ast.Constant) else None for k in node.keys]
        pairs = list(
            zip((k if isinstance(k, str) else None for k in keys), node.values, strict=True)
        )
    elif isinstance(node, ast.Call) and not node.args:
        if module.scopes.builtin(node.func) != "dict":
            return None
        pairs = [(item.arg, item.value) for item in node.keywords]
    else:
        return None
    found = {key: value for key, value in pairs if key is not None}
    whole = len(found) == len(pairs) and all(isinstance(v, ast.Constant) for v in found.values())
    return found if whole else None


def _entry(node: ast.expr | None, key: str) -> ast.expr | None:
    """Return what a dictionary has under a key, where all of its keys are written out."""
    if not isinstance(node, ast.Dict):
        return None
    found = {string(k): v for k, v in zip(node.keys, node.values, strict=True) if k is not None}
    return found.get(key) if len(found) == len(node.keys) and None not in found else None


def _owner(
    lookup: Lookup, module: Module, node: ast.expr
) -> tuple[Module, ast.Module | ast.ClassDef, str] | None:
    """Return the file and the body that keeps what is read, and its name there."""
    if isinstance(node, ast.Name):
        bindings = module.scopes.bound(node)
        up = module.tree.parent(bindings[0]) if len(bindings) == 1 else None
        if module.scopes.owner(node) is module.tree.module and isinstance(up, ast.Assign):
            return module, module.tree.module, node.id
        if not isinstance(up, ast.ImportFrom) or not isinstance(bindings[0], ast.alias):
            return None
        source = lookup.source(module, up)
        if not isinstance(source, Module) or bindings[0].name != node.id:
            return None
        return source, source.tree.module, node.id
    if not isinstance(node, ast.Attribute):
        return None
    bases = lookup.expression(module, node.value)
    if len(bases) == 1 and isinstance(bases[0], Module):
        return bases[0], bases[0].tree.module, node.attr
    if len(bases) == 1 and isinstance(bases[0], Class):
        return bases[0].module, bases[0].node, node.attr
    cls = _class_of_receiver(module, node.value)
    return (module, cls, node.attr) if cls is not None else None


def _class_of_receiver(module: Module, node: ast.expr) -> ast.ClassDef | None:
    """Return the class of the object whose method reads it."""
    method = module.tree.function(node)
    up = module.tree.parent(method) if isinstance(method, ast.FunctionDef) else None
    if not isinstance(method, ast.FunctionDef) or not isinstance(up, ast.ClassDef):
        return None
    first = method.args.args[0].arg if method.args.args else None
    return up if isinstance(node, ast.Name) and node.id == first else None


def _definitions(
    modules: Collection[Module], name: str
) -> Iterator[tuple[ast.AST | None, ast.AST]]:
    """Yield what binds a name in files and classes, or stores an attribute of it, and the file or class that it stands in."""
    for module in modules:
        scopes: list[ast.Module | ast.ClassDef] = [module.tree.module]
        for scope in scopes + list(module.tree.nodes(ast.ClassDef)):
            for binding in module.scopes.bindings(scope, name):
                if not isinstance(binding, ast.alias):
                    yield scope, binding
        for node in module.tree.attributes(name):
            if not isinstance(node.ctx, ast.Load):
                yield _class_of_receiver(module, node.value), node


def _places(modules: Collection[Module], name: str) -> Iterator[tuple[Module, ast.expr]]:
    """Yield what may read a variable of a file, or an attribute, by its name."""
    for module in modules:
        for node in module.tree.nodes(ast.Attribute):
            if node.attr == name and isinstance(node.ctx, ast.Load):
                yield module, node
        for read in module.tree.nodes(ast.Name):
            if read.id != name or not isinstance(read.ctx, ast.Load):
                continue
            local = isinstance(module.scopes.owner(read), FunctionNode)
            if not local or any(isinstance(b, ast.alias) for b in module.scopes.bound(read)):
                yield module, read
        for alias in module.tree.nodes(ast.alias):
            if alias.name == name and alias.asname not in (None, name):
                yield module, ast.Name(alias.asname or name, ast.Load())


def _only_looks(module: Module, node: ast.expr, keys: Sequence[str]) -> bool:
    """Tell whether a place that reads a dictionary leaves it, and the one under some keys of it, as they are."""
    up = module.tree.parents.get(node)
    if isinstance(up, ast.Subscript) and up.value is node:
        other = isinstance(up.slice, ast.Constant) and string(up.slice) not in keys[:1]
        inner = not keys or other or _only_looks(module, up, keys[1:])
        return isinstance(up.ctx, ast.Load) and inner
    if isinstance(up, ast.Compare | ast.FormattedValue | ast.If):
        return True
    if isinstance(up, ast.Call):
        return isinstance(up.func, ast.Name) and up.func.id in LOOKS
    if keys:
        return False  # what else gives its values gives the inner one too
    if isinstance(up, ast.keyword):
        return up.arg is None
    if isinstance(up, ast.Dict):
        return any(k is None and v is node for k, v in zip(up.keys, up.values, strict=True))
    call = module.tree.parents.get(up) if isinstance(up, ast.Attribute) else None
    giving = isinstance(up, ast.Attribute) and up.attr in _GIVING
    return giving and isinstance(call, ast.Call) and call.func is up


def is_handed_on(lookup: Lookup, modules: Collection[Module], owner: Module) -> bool:
    """Tell whether a file is handed on as an object: whoever has it may set its variables."""
    for module in modules:
        names = {imported_name(a) for a in module.tree.nodes(ast.alias)}
        for node in module.tree.nodes(ast.Name):
            if node.id not in names or not isinstance(node.ctx, ast.Load):
                continue
            if owner in lookup.expression(module, node):
                up = module.tree.parent(node)
                if not isinstance(up, ast.Attribute) or up.attr == "__dict__":
                    return True
    return False


def _is_set_by_name(module: Module) -> bool:
    """Tell whether a file sets variables or attributes by names that it computes."""
    names = {node.id for node in module.tree.nodes(ast.Name)}
    return bool(names & {"globals", "setattr", "vars"}) or any(module.tree.attributes("__dict__"))
