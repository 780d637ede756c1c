"""Functions out of sight that are given a network with AMP on: Apex cast what they ran of it, or recorded it with its casts."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator

from amp_migrate.autocast.evaluated.inference import runs_before_apex
from amp_migrate.facts.paths import all_given, same
from amp_migrate.facts.tree import Tree
from amp_migrate.modules.layout import INSTALLED
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import Function
from amp_migrate.rules.base import Context
from amp_migrate.scaler.frameworks import MMCV
from amp_migrate.training.beliefs import PACKAGES_WITHOUT_CASTS
from amp_migrate.training.forwards.holders import called
from amp_migrate.training.region import Region, nodes_in

_KNOWN = INSTALLED | PACKAGES_WITHOUT_CASTS | {MMCV.package.split(".")[0]}
_RECORDS = frozenset({"torch.jit.trace", "torch.jit.trace_module", "torch.onnx.export"})
Given = tuple[Function, ast.Call, str]
"""A call, and the name of what it calls."""


def unseen(context: Context, cast: Collection[Region]) -> Iterator[Given]:
    """Yield the first call of each function that is not found in the files given, by its name, and gets a network."""
    inside, told = nodes_in(cast), set[str]()
    for function, call, name in _given(context, _is_unseen):
        if name in told or call in inside or _is_run(context, function, call, inside):
            continue
        if not _renews(function.module.tree, call):
            told.add(name)
            yield function, call, name.rpartition(".")[2]


def _is_run(
    context: Context, function: Function, call: ast.Call, inside: Collection[ast.AST]
) -> bool:
    """Tell whether what a call makes is run where casts are on: it evaluates the network there."""
    project = context.unit.project
    values, made = project.values, project.values.groups(function.module, call)
    for node in inside if made else ():
        if isinstance(node, ast.Call):
            module = project.module_of(node)
            run = called(project, module, node)
            if run is not node.func and values.groups(module, run) & made:
                return True
    return False


def _is_unseen(name: str) -> bool:
    """Tell whether a dotted name is that of a function in a file that is not given, of no library that is known."""
    module, _, last = name.rpartition(".")
    return bool(module) and module.split(".")[0] not in _KNOWN and not last[:1].isupper()


def recorded(context: Context, cast: Collection[Region]) -> Iterator[Given]:
    """Yield the calls by which torch records a network as it runs, for TorchScript or ONNX.

    Raises `Cannot` for one in what is cast: a cast that is cached there would be a constant of the record, which torch
    refuses.
    """
    inside = nodes_in(cast)
    for function, call, name in _given(context, _RECORDS.__contains__):
        if call in inside:
            raise Cannot(
                "AMP904",
                *function.at(call),
                "this records a network among what is put under autocast, whose cached casts torch cannot record",
                "record it in a statement apart from what evaluates or trains, then run again",
            )
        yield function, call, name.rpartition(".")[2]


def _given(context: Context, wanted: Callable[[str], bool]) -> Iterator[Given]:
    """Yield the calls of code out of sight, by wanted dotted names, that get a network of the unit with AMP on."""
    unit = context.unit
    values = unit.project.values
    networks = frozenset[int]().union(*(values.groups(*model) for model in unit.models()))
    for function in unit.project.functions():
        for call in function.calls if context.casts.runs(function) else ():
            name = unit.project.external(function.module, call.func)
            if name is None or not wanted(name) or call in unit.gone:
                continue
            given = (values.groups(function.module, a) for a in all_given(call))
            if any(groups & networks for groups in given):
                if not runs_before_apex(unit, function, call):
                    yield function, call, name


def _renews(tree: Tree, call: ast.Call) -> bool:
    """Tell whether a call only gives its argument a new form: ``model = shard(model)``."""
    up = tree.parent(call)
    if not isinstance(up, ast.Assign) or len(up.targets) != 1:
        return False
    return any(same(up.targets[0], given) for given in all_given(call))
