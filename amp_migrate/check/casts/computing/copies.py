"""Inputs that ask for gradients and are written in place: an autocast block goes on with its copy of what they were."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.check.casts.casting import Casting, Casts
from amp_migrate.check.casts.differing import differs
from amp_migrate.check.events.sides import Key, Side, key
from amp_migrate.check.events.traces import Difference
from amp_migrate.flow.paths import leads
from amp_migrate.project import Function
from amp_migrate.training.contexts import enters_autocast
from amp_migrate.training.reads.leaves import Leaf, leaves

_STALE = "is given an input that was written in place, of which autocast keeps a copy from before:"
_CLEARS = "torch.clear_autocast_cache"


def stale(
    old: Side, new: Side, native: Casting, entries: Iterable[Function]
) -> Iterator[tuple[Key, Difference]]:
    """Yield what casts an input again behind a write of it, in the block that cast it before, where the old text had none."""
    begun = native.spread(entries, inside_networks=True)
    for function in begun:
        found = [*leaves(new.project, function)]
        if not found or any(_casts(old, f) for f in old.functions.get(key(function), ())):
            continue
        around = begun[function] != {Casts.OFF}
        for leaf in found:
            for node in leaf.casts:
                if native.at(function, node, begun[function]) is not Casts.OFF:
                    if _is_stale(new, leaf, node, around):
                        yield differs(_STALE, (key(function), ast.unparse(node)), node)


def _is_stale(side: Side, leaf: Leaf, node: ast.expr, around: bool) -> bool:
    """Tell whether a node may cast a leaf behind a cast and a write of it, with no fresh copy; `around` tells of casts around the function."""
    graph = side.program.graph(leaf.function)
    order = graph.order(exceptions=False)
    renewing = [*leaf.bound, *_clearing(side, leaf.function)]
    if not around:
        renewing += _opening(side, leaf.function, node)
    ends = [point for each in renewing for point in graph.within(each)]
    casts = [point for cast in leaf.casts for point in graph.within(cast)]
    for write in leaf.writes:
        written = graph.within(write)
        if leads(order, casts, written, ends) and leads(order, written, graph.within(node), ends):
            return True
    return False


def _clearing(side: Side, function: Function) -> Iterator[ast.AST]:
    """Yield the calls of a function that drop all copies."""
    for call in function.calls:
        if side.project.external(function.module, call.func) == _CLEARS:
            yield call


def _opening(side: Side, function: Function, node: ast.AST) -> Iterator[ast.AST]:
    """Yield what enters the outermost autocast block of a function around a node: it has no copies when it begins."""
    module = function.module
    above = (up for up in module.tree.ancestors(node) if isinstance(up, ast.With))
    blocks = [up for up in above if enters_autocast(side.project, module, up)]
    yield from (item.context_expr for block in blocks[-1:] for item in block.items)


def _casts(side: Side, function: Function) -> bool:
    """Tell whether a function enters native autocast."""
    module = function.module
    return any(
        isinstance(node, ast.With) and enters_autocast(side.project, module, node)
        for node in function.own_nodes
    )
