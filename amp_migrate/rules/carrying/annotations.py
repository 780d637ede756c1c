"""What functions say that they return, once they return the GradScaler too."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import path
from amp_migrate.facts.tree import Tree
from amp_migrate.plan.model import Edit, ReplaceExpression
from amp_migrate.project import Function
from amp_migrate.training.bindings import returned

_TUPLES = frozenset({"tuple", "Tuple", "typing.Tuple", "t.Tuple"})


def longer(function: Function, cls: str) -> list[tuple[str, Edit]]:
    """Return the edit that adds a class of torch to the values that an annotation names, where the file has torch by name."""
    node = function.node.returns if function.node is not None else None
    if node is None or not _has_torch(function):
        return []
    parts = _listed(node)
    tree = function.module.tree
    if parts:
        text = tree.segment(node, {parts[-1]: _followed(function, parts, cls)})
    elif _is_one(function, node):
        one = str(node.value) if isinstance(node, ast.Constant) else tree.segment(node)
        text = _both(function, one, cls, isinstance(node, ast.Constant))
    else:
        return []
    return [(function.module.path, ReplaceExpression(tree.span(node), text))]


def _is_one(function: Function, node: ast.expr) -> bool:
    """Tell whether an annotation is the type of one value, and the function lists no values where it returns."""
    if isinstance(node, ast.Constant):
        if not isinstance(node.value, str) or node.value.partition("[")[0] in _TUPLES:
            return False
    elif path(node.value if isinstance(node, ast.Subscript) else node) in _TUPLES:
        return False
    return not any(isinstance(value, ast.Tuple) for value in returned(function))


def _both(function: Function, one: str, cls: str, quoted: bool) -> str:
    """Return the type of a value and one more, `quoted` as that was or as the Python that runs the file may not know it."""
    module = function.module
    top = module.tree.module
    known = module.scopes.bindings(top, "Tuple"), module.scopes.bindings(top, "typing")
    kind = "Tuple" if known[0] else "typing.Tuple" if known[1] else "tuple"
    pair = f"{kind}[{one}, {cls}]"
    if not quoted and (any(known) or module.scopes.bindings(top, "annotations")):
        return pair
    quote = "'" if '"' in pair else '"'
    return f"{quote}{pair}{quote}"


def _followed(function: Function, parts: list[ast.expr], cls: str) -> str:
    """Return the last of some parts with one more behind it, on a line of its own where each has one."""
    tree, last = function.module.tree, parts[-1]
    alone = len(parts) > 1 and all(part.lineno < last.lineno for part in parts[:-1])
    between = (
        f",\n{_indent(tree, last).removeprefix(_indent(tree, function.node))}" if alone else ", "
    )
    return f"{tree.segment(last)}{between}{cls}"


def _indent(tree: Tree, node: ast.AST | None) -> str:
    """Return what stands before a node on its line."""
    span = tree.span(node or tree.module)
    return tree.lines[span.line - 1][: span.column]


def _listed(node: ast.expr) -> list[ast.expr]:
    """Return the values that an annotation lists one by one: ``(Module, Optimizer)``, ``Tuple[Module, Optimizer]``."""
    if isinstance(node, ast.Subscript) and path(node.value) in _TUPLES:
        node = node.slice
    parts = node.elts if isinstance(node, ast.Tuple) else []
    endless = any(isinstance(part, ast.Constant) and part.value is ... for part in parts)
    return [] if endless else parts


def _has_torch(function: Function) -> bool:
    module = function.module
    bound = module.scopes.bindings(module.tree.module, "torch")
    return bool(bound) and all(isinstance(b, ast.alias) and b.asname is None for b in bound)
