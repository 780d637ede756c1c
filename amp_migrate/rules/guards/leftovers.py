"""Imports and variables that only served what a plan removes go with it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.imports import last_name
from amp_migrate.facts.tree import Tree
from amp_migrate.plan.model import Drop, DropImportedName, Edit, Replace
from amp_migrate.rules.guards.cleanup import within


def leftovers(
    tree: Tree, after: str, unused: list[tuple[str, str]], edits: list[Edit]
) -> list[Edit]:
    """Return the edits that drop imports and variables which only served what the other edits removed."""
    found: list[Edit] = []
    idle = {name for kind, name in unused if kind != "import"}
    for kind, name in unused:
        found += _import(tree, name) if kind == "import" else _variable(tree, after, name)
    found += _pairs(tree, after, idle, edits) if idle else []
    return [edit for edit in found if edit not in edits]


def _pairs(tree: Tree, after: str, idle: set[str], edits: list[Edit]) -> Iterator[Edit]:
    """Yield the edits that leave names out of ``a, b = one, two`` that nothing reads any more."""
    functions = Tree("", after).nodes(ast.FunctionDef)
    for node in tree.nodes(ast.Assign):
        target, scope = node.targets[0], tree.function(node)
        if scope is None or not isinstance(target, ast.Tuple) or len(node.targets) > 1:
            continue
        if not isinstance(node.value, ast.Tuple) or len(node.value.elts) != len(target.elts):
            continue
        read = {
            name
            for name in idle
            if any(f.name == scope.name and _loads(f, name) for f in functions)
        }
        kept = [
            (to, value)
            for to, value in zip(target.elts, node.value.elts, strict=True)
            if not (isinstance(to, ast.Name) and to.id in idle - read and _is_pure(value))
        ]
        span = tree.span(node)
        if kept and len(kept) < len(target.elts) and not any(within(e, span) for e in edits):
            sides = (", ".join(tree.segment(pair[side]) for pair in kept) for side in (0, 1))
            yield Replace(span, " = ".join(sides))


def _import(tree: Tree, name: str) -> list[Edit]:
    """`name` is as pyflakes gives it: ``os.path``, ``a.b as c``, ``a.b as b`` as ``a.b``, ``from x import y`` as ``x.y``."""
    original, _, alias = name.partition(" as ")
    found: list[Edit] = []
    imports: list[ast.Import | ast.ImportFrom] = [
        *tree.nodes(ast.Import),
        *tree.nodes(ast.ImportFrom),
    ]
    for node in imports:
        base = "." * node.level + (node.module or "") if isinstance(node, ast.ImportFrom) else ""
        joint = base if base.endswith(".") or not base else f"{base}."
        names = tuple(
            a.name
            for a in node.names
            if f"{joint}{a.name}" == original
            and (a.asname or "") in (alias or original.rpartition(".")[2], "")
        )
        if names:
            found.append(DropImportedName(tree.span(node), names))
    return found


_PURE = (
    ast.Name,
    ast.Attribute,
    ast.Constant,
    ast.BoolOp,
    ast.UnaryOp,
    ast.Compare,
    ast.BinOp,
    ast.IfExp,
    ast.Subscript,
)


def _variable(tree: Tree, after: str, name: str) -> list[Edit]:
    """Drop the assignments of a local that nothing reads any more, where making its value does nothing else."""
    idle = {
        function.name
        for function in Tree("", after).nodes(ast.FunctionDef)
        if _stores(function, name) and not _loads(function, name)
    }
    found: list[Edit] = []
    for node in tree.nodes(ast.Assign):
        target, scope = node.targets[0], tree.function(node)
        local = scope is not None and scope.name in idle
        if local and len(node.targets) == 1 and isinstance(target, ast.Name) and target.id == name:
            if _is_pure(node.value) or _makes_optimizer(node.value):
                found.append(Drop(tree.span(node)))
    return found


_COLLECTIONS = frozenset({"dict", "list", "set", "tuple", "Namespace", "SimpleNamespace"})
_HARMLESS = _COLLECTIONS | {"enumerate", "range", "zip", "len", "keys", "values", "items"}


def _is_pure(node: ast.expr) -> bool:
    """Tell whether making a value does nothing else: a name, a test, a table of loss ids."""
    collects = isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
    if isinstance(node, ast.DictComp | ast.ListComp | ast.Dict | ast.List | ast.Tuple) or (
        collects and last_name(node) in _COLLECTIONS
    ):
        calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
        return all(last_name(call) in _HARMLESS for call in calls)
    return isinstance(node, _PURE)


def _makes_optimizer(node: ast.expr) -> bool:
    """Tell whether an expression makes an optimizer, which only an initialize asked for."""
    return isinstance(node, ast.Call) and "optim" in ast.unparse(node.func).lower()


def _stores(function: ast.AST, name: str) -> bool:
    return any(
        isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load)
        for n in ast.walk(function)
    )


def _loads(function: ast.AST, name: str) -> bool:
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
        for n in ast.walk(function)
    )
