"""Imports and variables that only served what a plan removes go with it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator

from amp_migrate.facts.constants import string
from amp_migrate.facts.imports import last_name
from amp_migrate.facts.paths import imported_name, named, sets
from amp_migrate.facts.scopes import Scopes
from amp_migrate.facts.tree import FunctionNode, Tree
from amp_migrate.plan.model import Drop, DropImportedName, Edit, Replace
from amp_migrate.rules.guards.cleanup import within
from amp_migrate.source.span import Span

_Functions = dict[str, list[FunctionNode]]
_Named = FunctionNode | ast.ClassDef


Made = Callable[[ast.expr], bool]


def leftovers(
    tree: Tree, after: str, unused: list[tuple[str, str]], edits: list[Edit], made: Made
) -> list[Edit]:
    """Return the edits that drop imports and variables which only served what the other edits removed.

    `made` tells whether an expression makes an optimizer, which only an initialize asked for.
    """
    found: list[Edit] = []
    idle = {name for kind, name in unused if kind != "import"}
    functions = _functions(Tree("", after)) if idle else {}
    for kind, name in unused:
        if kind == "import":
            found += _import(tree, after, name, edits)
        elif kind == "declaration":
            found += _declaration(tree, functions, name.rpartition(" ")[2], edits)
        else:
            found += _variable(tree, functions, name, made, edits)
    found += _pairs(tree, functions, idle, edits) if idle else []
    return [edit for edit in found if edit not in edits]


def _functions(after: Tree) -> _Functions:
    """Return the functions of a text by their qualified names, which a rewrite keeps."""
    found: _Functions = defaultdict(list)
    for function in after.nodes(ast.FunctionDef, ast.AsyncFunctionDef):
        found[_qualname(after, function)].append(function)
    return found


def _qualname(tree: Tree, scope: _Named) -> str:
    return ".".join([scope.name, *_names_around(tree, scope)])


def _names_around(tree: Tree, node: ast.AST) -> Iterator[str]:
    """Yield the names of the functions and classes around a node, from the inside."""
    return (up.name for up in tree.ancestors(node) if isinstance(up, _Named))


def _pairs(tree: Tree, functions: _Functions, idle: set[str], edits: list[Edit]) -> Iterator[Edit]:
    """Yield the edits that leave names out of ``a, b = one, two`` that nothing reads any more."""
    for node in tree.nodes(ast.Assign):
        target, scope = node.targets[0], tree.function(node)
        if scope is None or not isinstance(target, ast.Tuple) or len(node.targets) > 1:
            continue
        if not isinstance(node.value, ast.Tuple) or len(node.value.elts) != len(target.elts):
            continue
        here = functions.get(_qualname(tree, scope), [])
        read = {name for name in idle if any(_loads(function, name) for function in here)}
        kept = [
            (to, value)
            for to, value in zip(target.elts, node.value.elts, strict=True)
            if not (isinstance(to, ast.Name) and to.id in idle - read and _is_pure(value))
        ]
        span = tree.span(node)
        if kept and len(kept) < len(target.elts) and not any(within(e, span) for e in edits):
            sides = (", ".join(tree.segment(pair[side]) for pair in kept) for side in (0, 1))
            yield Replace(span, " = ".join(sides))


def _import(tree: Tree, after: str, name: str, edits: list[Edit]) -> list[Edit]:
    """`name` is as pyflakes gives it: ``os.path``, ``a.b as c``, ``a.b as b`` as ``a.b``, ``from x import y`` as ``x.y``.

    Where several scopes have that import, those whose name is still read keep it.
    """
    original, _, alias = name.partition(" as ")
    found: list[tuple[ast.Import | ast.ImportFrom, list[ast.alias]]] = []
    for node in tree.nodes(ast.Import, ast.ImportFrom):
        base = "." * node.level + (node.module or "") if isinstance(node, ast.ImportFrom) else ""
        joint = base if base.endswith(".") or not base else f"{base}."
        aliases = [
            a
            for a in node.names
            if f"{joint}{a.name}" == original
            and (a.asname or "") in (alias or original.rpartition(".")[2], "")
        ]
        if aliases:
            found.append((node, aliases))
    standing = {node: ".".join(_names_around(tree, node)) for node, _ in found}
    read = set[str]()
    if len(set(standing.values())) > 1:
        read = _reading(after, {imported_name(a) for _, aliases in found for a in aliases})
    dropped = {edit.span for edit in edits if isinstance(edit, Drop)}
    return [
        _without(tree, node, aliases, dropped)
        for node, aliases in found
        if standing[node] not in read
    ]


def _without(
    tree: Tree, node: ast.Import | ast.ImportFrom, gone: list[ast.alias], dropped: set[Span]
) -> Edit:
    """Return the edit that takes names out of an import; all of it goes with a ``try`` that does nothing else."""
    guard = tree.parent(node)
    alone = isinstance(guard, ast.Try) and all(
        stmt is node or tree.span(stmt) in dropped for stmt in guard.body
    )
    if gone == node.names and isinstance(guard, ast.Try) and alone:
        others = [*guard.orelse, *guard.finalbody, *(s for h in guard.handlers for s in h.body)]
        if all(isinstance(stmt, ast.Pass) for stmt in others):
            return Drop(tree.span(guard))
    return DropImportedName(tree.span(node), tuple(a.name for a in gone))


def _reading(text: str, names: set[str]) -> set[str]:
    """Return the scopes of a text whose variables of these names are read."""
    tree = Tree("", text)
    scopes = Scopes(tree)
    reads = [
        node for node in tree.nodes(ast.Name) if node.id in names and isinstance(node.ctx, ast.Load)
    ]
    owners = [scopes.owner(node) for node in reads]
    return {_qualname(tree, owner) if isinstance(owner, _Named) else "" for owner in owners}


def _declaration(tree: Tree, functions: _Functions, name: str, edits: list[Edit]) -> Iterator[Edit]:
    """Yield the edits that take a name out of declarations in functions that do not assign it any more."""
    for node in tree.nodes(ast.Global, ast.Nonlocal):
        scope, span = tree.function(node), tree.span(node)
        here = functions.get(_qualname(tree, scope), []) if scope is not None else []
        if name in node.names and here and not any(sets(f, name) for f in here):
            if not any(within(e, span) for e in edits):
                names = [other for other in node.names if other != name]
                word = "global" if isinstance(node, ast.Global) else "nonlocal"
                yield Replace(span, f"{word} {', '.join(names)}") if names else Drop(span)


_PURE = (
    ast.Name, ast.Attribute, ast.Constant, ast.BoolOp, ast.UnaryOp, ast.Compare, ast.BinOp, ast.IfExp,
    ast.Lambda, ast.Subscript,
)  # fmt: skip


def _variable(
    tree: Tree, functions: _Functions, name: str, made: Made, edits: list[Edit]
) -> list[Edit]:
    """Drop the assignments of a local that nothing reads any more; of a call that may do more, the call stays.

    What deletes it goes with the last of them, and keeps them where one stays.
    """
    idle = {
        qualname
        for qualname, found in functions.items()
        if any(sets(f, name) for f in found) and not any(_loads(f, name) for f in found)
    }
    local = [
        node
        for node in tree.nodes(ast.Name)
        if node.id == name
        and (scope := tree.function(node)) is not None
        and _qualname(tree, scope) in idle
    ]
    bound = [n for n in local if isinstance(n.ctx, ast.Store)]
    deleted = [tree.parent(n) for n in local if isinstance(n.ctx, ast.Del)]
    stores = [up for n in bound if isinstance(up := _alone(tree, n), ast.Assign)]
    goes = [up for up in stores if _is_pure(up.value) or made(up.value)]
    if deleted and len(goes) < len(bound):
        return []
    if not all(isinstance(up, ast.Delete) and len(up.targets) == 1 for up in deleted):
        return []
    dropped = [Drop(tree.span(up)) for up in (*goes, *deleted) if isinstance(up, ast.stmt)]
    called = [up for up in stores if up not in goes and _is_only_called(tree, up, edits)]
    return [*dropped, *(Replace(tree.span(up), tree.segment(up.value)) for up in called)]


def _is_only_called(tree: Tree, assignment: ast.Assign, edits: list[Edit]) -> bool:
    """Tell whether an assignment keeps the result of a call, in which nothing else is edited."""
    span = tree.span(assignment)
    return isinstance(assignment.value, ast.Call) and not any(within(e, span) for e in edits)


def _alone(tree: Tree, target: ast.Name) -> ast.Assign | None:
    """Return the assignment that binds a name and nothing else."""
    up = tree.parent(target)
    return up if isinstance(up, ast.Assign) and up.targets == [target] else None


_COLLECTIONS = frozenset({"dict", "list", "set", "tuple", "Namespace", "SimpleNamespace"})
_ASKS = frozenset({"getattr", "hasattr", "is_autocast_enabled", "is_available", "isinstance"})
_HARMLESS = _COLLECTIONS | _ASKS | {"enumerate", "range", "zip", "len", "keys", "values", "items"}


def _is_pure(node: ast.expr) -> bool:
    """Tell whether making a value does nothing else: a name, a test, a table of loss ids, how many there are."""
    if isinstance(node, ast.DictComp | ast.ListComp | ast.Dict | ast.List | ast.Tuple | ast.Call):
        calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
        return all(_called(call) in _HARMLESS for call in calls)
    return isinstance(node, _PURE)


def _called(call: ast.Call) -> str:
    """Return the last name of what a call runs, if only by ``getattr(torch, "is_autocast_enabled")()``."""
    func = call.func
    if isinstance(func, ast.Call) and last_name(func) == "getattr" and len(func.args) > 1:
        return string(func.args[1]) or ""
    return last_name(call)


def _loads(function: ast.AST, name: str) -> bool:
    return any(isinstance(n.ctx, ast.Load) for n in named(function, name))
