"""What a program reads out of the state of Apex, or sets in it: ``amp.state_dict()["loss_scaler0"]["loss_scale"]``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from amp_migrate.apex.sites import Site
from amp_migrate.facts.constants import string
from amp_migrate.facts.scopes import assigned
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Module

_SCALER = re.compile(r"loss_scaler\d+")
_SCALE = "loss_scale"
_FIRST = "loss_scaler0"  # that of a GradScaler, which scales all losses
_LOOKS = frozenset({"items", "values", "keys", "get", "pop"})


@dataclass(frozen=True, eq=False, slots=True)
class StateRead:
    """A read of what Apex keeps of its loss scalers, out of what `site` returned.

    `site` is None where the state comes from elsewhere, as from a file. `direct` tells that the call itself is read,
    `scale` that the loss scale is, and `sets` that it is set there.
    """

    module: Module
    node: ast.expr
    site: Site | None
    direct: bool
    scale: bool
    owner: ast.expr
    sets: bool = False


def state_reads(unit: Unit, sites: Iterable[Site]) -> Iterator[StateRead]:
    """Yield the reads of the state of Apex in the files of a unit; `sites` are those that make it."""
    sites = list(sites)
    for module in unit.modules:
        for node in module.tree.nodes(ast.Subscript, ast.Attribute):
            if not isinstance(node, ast.Subscript | ast.Attribute):
                continue
            key = _key(module, node)
            if key is None:
                continue
            site, direct = _origin(sites, module, node.value)
            if site is None and not _SCALER.fullmatch(key):
                continue
            whole = _lookup(module, node)
            inner = module.tree.parent(whole)
            if _SCALER.fullmatch(key) and _is_scale(inner, whole):
                assert isinstance(inner, ast.Subscript)
                yield StateRead(module, inner, site, direct, True, node.value)
            elif key == _FIRST and site is not None and _sets_scale(module, inner, whole):
                assert isinstance(inner, ast.Subscript)
                yield StateRead(module, inner, site, direct, not direct, node.value, sets=True)
            else:
                yield StateRead(module, whole, site, direct, False, node.value)


def _key(module: Module, node: ast.Subscript | ast.Attribute) -> str | None:
    """Return what is looked up in a mapping: a key, or "" for any; None where nothing is."""
    if not isinstance(node.ctx, ast.Load):
        return None
    if isinstance(node, ast.Subscript):
        return string(node.slice) or ""
    call = module.tree.call_of(node)
    if node.attr not in _LOOKS or call is None:
        return None
    return string(call.args[0]) or "" if call.args else ""


def _lookup(module: Module, node: ast.Subscript | ast.Attribute) -> ast.expr:
    """Return the whole look-up: the subscript, or the call of a method."""
    call = module.tree.parent(node)
    return call if isinstance(node, ast.Attribute) and isinstance(call, ast.Call) else node


def _is_scale(node: ast.AST | None, scaler: ast.expr) -> bool:
    return (
        isinstance(node, ast.Subscript)
        and node.value is scaler
        and isinstance(node.ctx, ast.Load)
        and string(node.slice) == _SCALE
    )


def _sets_scale(module: Module, node: ast.AST | None, scaler: ast.expr) -> bool:
    return (
        isinstance(node, ast.Subscript)
        and node.value is scaler
        and isinstance(node.ctx, ast.Store)
        and string(node.slice) == _SCALE
        and isinstance(module.tree.parent(node), ast.Assign)
    )


def _origin(sites: Iterable[Site], module: Module, state: ast.expr) -> tuple[Site | None, bool]:
    """Return the call that made a state, and whether the state is that call itself."""
    made = {site.node: site for site in sites}
    if state in made:
        return made[state], True
    owner = module.scopes.owner(state) if isinstance(state, ast.Name) else None
    if owner is None or not isinstance(state, ast.Name):
        return None, False
    bindings = module.scopes.bindings(owner, state.id)
    values = [assigned(module.tree, binding) for binding in bindings]
    found = [made.get(value) if value is not None else None for value in values]
    return (found[0] if found and all(found) else None), False
