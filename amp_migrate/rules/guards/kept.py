"""Which imports of Apex stay: of what is gone, of what still exists, and what other files take from here."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.apex.sites import Kind, Site, is_apex
from amp_migrate.facts.paths import imported_name
from amp_migrate.modules.offered import takers
from amp_migrate.rules.base import FileContext

_REMOVED = (
    "apex.amp", "apex.parallel", "apex.fp16_utils", "apex.RNN", "apex.reparameterization", "apex.pyprof",
    "apex.optimizers.FP16_Optimizer", "apex.optimizers.fp16_optimizer",
)  # fmt: skip

FP16_UTILS = frozenset(
    (
        "BN_convert_float", "network_to_half", "prep_param_lists", "model_grads_to_master_grads",
        "master_params_to_model_params", "tofp16", "to_python_float", "clip_grad_norm",
        "convert_module", "convert_network", "FP16Model", "FP16_Optimizer", "LossScaler",
        "DynamicLossScaler",
    )
)  # fmt: skip


def is_removed(node: ast.AST, alias: ast.alias) -> bool:
    """Tell whether an import raises with an Apex of today."""
    return _source(node, alias).startswith(_REMOVED)


def only_asks(sites: Iterable[Site]) -> bool:
    """Tell whether all that a file does with Apex is to import it as a whole, as to see whether it is there."""
    return all(
        isinstance(site.node, ast.Import | ast.ImportFrom)
        and not any(is_removed(site.node, alias) for alias in site.node.names)
        for site in sites
    )


def star_needed(context: FileContext, node: ast.AST, alias: ast.alias) -> bool:
    """Tell whether something that stays may come by ``from apex.x import *``."""
    base = _source(node, alias).removesuffix("*")
    found = any(s.name.startswith(base) for s in context.sites if s.kind is not Kind.IMPORT)
    return found or (base == "apex.fp16_utils." and any(starred_fp16(context)))


def starred_fp16(context: FileContext) -> Iterator[ast.Name]:
    """Yield the names that can only come by ``from apex.fp16_utils import *`` and stay, in source order."""
    module = context.module
    stars = [s for s in module.scopes.stars if s.module == "apex.fp16_utils" and not s.level]
    for node in module.tree.nodes(ast.Name) if stars else ():
        if (
            node in context.taken
            or node.id not in FP16_UTILS
            or module.scopes.owner(node) is not None
        ):
            continue
        meanings = context.project.lookup.expression(module, node)
        if all(isinstance(m, str) for m in meanings):
            yield node


def stays(context: FileContext, node: ast.AST, alias: ast.alias) -> bool:
    """Tell whether an import of what still exists in Apex stays though nothing here is seen to use it.

    Another file may take the name from here, a guard that binds it otherwise is no guard for AMP, and where more is
    tried behind the import, it decides whether that is done.
    """
    source = _source(node, alias)
    if is_removed(node, alias) or source == "apex" or not is_apex(source):
        return False
    name = imported_name(alias)
    return (
        _has_fallback(context, node, name) or _decides(context, node) or _handed_on(context, name)
    )


def _has_fallback(context: FileContext, node: ast.AST, name: str) -> bool:
    guard = context.module.tree.enclosing(node, ast.Try)
    return guard is not None and any(
        (isinstance(inner, ast.alias) and (inner.asname or inner.name) == name)
        or (isinstance(inner, ast.ClassDef | ast.FunctionDef) and inner.name == name)
        for handler in guard.handlers
        for inner in ast.walk(handler)
    )


def _decides(context: FileContext, node: ast.AST) -> bool:
    """Tell whether an import stands before what is only done with Apex: ``try: import ...; use() except ImportError``."""
    guard = context.module.tree.parent(node)
    if not isinstance(guard, ast.Try) or node not in guard.body:
        return False
    return any(
        not isinstance(stmt, ast.Import | ast.ImportFrom | ast.Pass)
        and not (
            isinstance(stmt, ast.Assign)
            and all(
                isinstance(t, ast.Name) and t.id in context.availability.flags for t in stmt.targets
            )
        )
        for stmt in guard.body
    )


def _handed_on(context: FileContext, name: str) -> bool:
    lookup, others = context.project.lookup, context.others()
    return any(next(takers(others, lookup, context.module, taken), None) for taken in (name, "*"))


def _source(node: ast.AST, alias: ast.alias) -> str:
    return f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
