"""Uses of a class of Apex that only name it, where a program asks what an object is."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.sites import Site
from amp_migrate.facts.paths import named, tail
from amp_migrate.plan.model import ReplaceExpression
from amp_migrate.project import Module
from amp_migrate.rules.base import FileContext
from amp_migrate.rules.rest.found.uses import Native, Spelled


def only_names_type(context: FileContext, site: Site) -> bool:
    """Tell whether a use only names the class: in `isinstance`, a comparison of types, or an annotation.

    So does a list of types in a variable that nothing else reads.
    """
    return names_type(context, site.module, site.node)


def doubled(
    context: FileContext, site: Site, native: Native, spelled: Spelled
) -> list[ReplaceExpression]:
    """Return what takes a class out of a list of types that has torch's already; nothing where it has not."""
    tree, held = site.module.tree, site.module.tree.parent(site.node)
    if spelled.imported is not None or not isinstance(held, ast.Tuple | ast.List):
        return []
    others = [node for node in held.elts if node is not site.node]
    named = {context.project.external(site.module, node) or "" for node in others}
    if named.isdisjoint({native.dotted, *native.also}) or any(n.startswith("apex") for n in named):
        return []
    whole, own = tree.segment(held), tree.segment(site.node)
    if "#" in whole or whole.count(own) != 1:
        return []
    call = tree.parent(held)
    if len(others) == 1 and isinstance(call, ast.Call) and held in call.args:
        return [ReplaceExpression(tree.span(held), tree.segment(others[0]))]
    before, after = whole.split(own)
    before, after = before.rstrip(), after.lstrip(" ")
    if after.startswith(","):
        text = before + (after[1:].lstrip(" ") if before in ("(", "[") else after[1:])
    else:
        text = before.removesuffix(",") + after
    single = len(others) == 1 and isinstance(held, ast.Tuple) and "," not in text
    return [ReplaceExpression(tree.span(held), f"{text[:-1]},)" if single else text)]


def names_type(context: FileContext, module: Module, node: ast.AST) -> bool:
    """Tell whether an expression that means a class only names it."""
    return _names_type(context, module, node, frozenset())


def _names_type(context: FileContext, module: Module, node: ast.AST, seen: frozenset[str]) -> bool:
    tree = module.tree
    child, up = node, tree.parent(node)
    while (
        isinstance(up, ast.Tuple | ast.Subscript | ast.List | ast.Set)
        or (isinstance(up, ast.BinOp) and isinstance(up.op, ast.BitOr | ast.Add))
        or (isinstance(up, ast.Call) and up.args == [child] and tail(up) in ("tuple", "list"))
    ):
        child, up = up, tree.parent(up)
    if isinstance(up, ast.Assign) and child is not node and len(up.targets) == 1:
        return _holds_types(context, module, up.targets[0], seen)
    if isinstance(up, ast.Call):
        named = isinstance(up.func, ast.Name) and up.func.id in ("isinstance", "issubclass")
        return named and len(up.args) == 2 and up.args[1] is child
    if isinstance(up, ast.Compare):
        sides = [up.left, *up.comparators]
        return any(
            isinstance(s, ast.Call) and isinstance(s.func, ast.Name) and s.func.id == "type"
            for s in sides
        )
    if isinstance(up, ast.arg | ast.AnnAssign):
        return up.annotation is child
    return isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef) and up.returns is child


def _holds_types(
    context: FileContext, module: Module, target: ast.expr, seen: frozenset[str]
) -> bool:
    """Tell whether a variable is only read where types are named; one of a file or a class, in all files."""
    if not isinstance(target, ast.Name) or target.id in seen:
        return False
    scope = module.tree.scope(target)
    if isinstance(scope, ast.Module | ast.ClassDef):
        reads = list(mentions(context, module, target.id))
    else:
        names = named(scope, target.id)
        reads = [(module, n) for n in names if isinstance(n.ctx, ast.Load)]
    return all(
        isinstance(node, ast.expr) and _names_type(context, where, node, seen | {target.id})
        for where, node in reads
    )


def mentions(context: FileContext, module: Module, name: str) -> Iterator[tuple[Module, ast.AST]]:
    """Yield what may read a variable of a file or a class, in all files: by its name, as an attribute, or imported under another name."""
    for other in context.project.modules.values():
        if name not in other.tree.text:
            continue
        for node in other.tree.nodes(ast.Name):
            if node.id == name and isinstance(node.ctx, ast.Load):
                yield other, node
        for attribute in other.tree.attributes(name):
            if isinstance(attribute.ctx, ast.Load):
                yield other, attribute
        if other is module:
            continue
        for alias in other.tree.nodes(ast.alias):
            if alias.name == name and alias.asname not in (None, name):
                yield other, alias
