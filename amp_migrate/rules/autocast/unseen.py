"""Functions out of sight that are given a network with AMP on: Apex cast what they ran of it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from amp_migrate.autocast.evaluated.inference import runs_before_apex
from amp_migrate.facts.paths import all_given, same
from amp_migrate.facts.tree import Tree
from amp_migrate.modules.layout import INSTALLED
from amp_migrate.project import Function
from amp_migrate.rules.base import Context
from amp_migrate.scaler.frameworks import MMCV
from amp_migrate.training.region import Region

_KNOWN = INSTALLED | {MMCV.package.split(".")[0]}


def unseen(context: Context, cast: Collection[Region]) -> Iterator[tuple[Function, ast.Call, str]]:
    """Yield the first call of each function that is not found in the files given, by its name, and gets a network."""
    unit = context.unit
    inside = {n for region in cast for s in region.statements() for n in ast.walk(s)}
    values = unit.project.values
    networks = frozenset[int]().union(*(values.groups(*model) for model in unit.models()))
    told: set[str] = set()
    for function in unit.project.functions():
        if not context.casts.runs(function):
            continue
        for call in function.calls:
            name = unit.project.external(function.module, call.func) or ""
            module, _, last = name.rpartition(".")
            if not module or module.split(".")[0] in _KNOWN or last[:1].isupper():
                continue
            if name in told or call in inside or call in context.unit.gone:
                continue
            if _renews(function.module.tree, call):
                continue
            given = (values.groups(function.module, a) for a in all_given(call))
            if not any(groups & networks for groups in given):
                continue
            if not runs_before_apex(unit, function, call):
                told.add(name)
                yield function, call, last


def _renews(tree: Tree, call: ast.Call) -> bool:
    """Tell whether a call only gives its argument a new form: ``model = shard(model)``."""
    up = tree.parent(call)
    if not isinstance(up, ast.Assign) or len(up.targets) != 1:
        return False
    return any(same(up.targets[0], given) for given in all_given(call))
