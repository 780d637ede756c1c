"""Backward passes that are run for the gradient of an input: no step reads what they give, and none is scaled."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from amp_migrate.facts.closure import spread
from amp_migrate.facts.constants import is_false, is_none
from amp_migrate.facts.paths import path, stored, tail
from amp_migrate.facts.tree import Tree
from amp_migrate.placement.finding.gather import training_functions
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.clearing import clearing
from amp_migrate.plan.cannot import Cannot, place_of
from amp_migrate.project import Function, Project
from amp_migrate.project.reach import leading_to, reachable
from amp_migrate.project.rounds import may_end, may_follow, may_start
from amp_migrate.training.bindings import bound_value, is_generator, returned, values_of
from amp_migrate.training.forwards.forwards import Forward
from amp_migrate.training.gradients.handed_out import bases
from amp_migrate.training.steps import Backward, Step, takes_gradients

_KEEP = ("requires_grad", "requires_grad_", "retain_grad")
Zeroings = Callable[[Function], Iterator[ast.AST]]


def reads_input(unit: Unit, backward: Backward) -> bool:
    """Tell whether the gradient of an input is read behind a plain backward, maybe a round later: ``x.grad``.

    A function that calls the one of the backward, directly or not, may read it behind the call.
    """
    return any(
        _reads(unit, replace(backward, module=function.module, function=function, node=node))
        for function, node in leading_to(unit.project, (backward.function, backward.node))
    )


def _reads(unit: Unit, backward: Backward) -> bool:
    function, tree = backward.function, backward.module.tree
    inputs = _inputs(unit, backward)
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "grad"
        and isinstance(node.ctx, ast.Load)
        and path(node.value) in inputs
        and not (_only_freed(tree, node) or _sets_zero(tree, node))
        and may_follow(unit.project, function, backward.node, node)
        for node in function.own_nodes
    )


def _only_freed(tree: Tree, node: ast.Attribute) -> bool:
    """Tell whether a `.grad` is only tested for None."""
    parent = tree.parent(node)
    return isinstance(parent, ast.Compare) and any(is_none(c) for c in parent.comparators)


def _sets_zero(tree: Tree, node: ast.Attribute) -> bool:
    """Tell whether a gradient, or part of one, is set to zero, whatever its scale: ``weight.grad[0] = 0``."""
    up = tree.parent(node)
    if isinstance(up, ast.Attribute) and up.attr == "data":
        up = tree.parent(up)
    if isinstance(up, ast.Attribute):
        return up.attr == "zero_"
    store = tree.parent(up) if isinstance(up, ast.Subscript) else None
    return (
        isinstance(store, ast.Assign)
        and isinstance(store.value, ast.Constant)
        and not store.value.value
    )


def _inputs(unit: Unit, backward: Backward) -> set[str]:
    """Return the tensors that the function of a backward lets require gradients, except those that an optimizer gets."""
    function = backward.function
    found = set(function.parameters.names)
    barred: set[str] = set()
    for node in function.own_nodes:
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            value = bound_value(function.module, node)
            asks = value is not None and _requires_grad(unit.project, function, value)
            found |= {path(node) or ""} if asks else set()
        if isinstance(node, ast.Attribute) and node.attr in _KEEP:
            found |= {name for name in [path(node.value)] if name}
        elif isinstance(node, ast.For | ast.comprehension):
            barred |= set(_of_parameters(unit, backward, node))
        elif isinstance(node, ast.Call) and node in unit.losses.objects.makers.calls:
            barred |= {name for n in ast.walk(node) if (name := path(n))}
    return found - barred - {*function.receivers, ""}


def _of_parameters(
    unit: Unit, backward: Backward, loop: ast.For | ast.comprehension
) -> Iterator[str]:
    """Yield the names that a loop gives to parameters: those of a network, or what its loss is not computed of."""
    names = stored(loop.target)
    if any(bases(backward.module, loop.iter, set())):
        yield from names
        return
    function = backward.function
    computing = {
        node.id
        for node in function.own_nodes
        if isinstance(node, ast.Name) and unit.losses.computes(function, backward.loss, node)
    }
    yield from names - computing


def _requires_grad(project: Project, function: Function, value: ast.expr) -> bool:
    """Tell whether an expression may make a tensor that requires gradients, itself or in a function that it calls.

    What keywords out of sight ask for is not known.
    """

    def made(one: tuple[Function, ast.expr]) -> Iterator[tuple[Function, ast.expr]]:
        where, node = one
        if isinstance(node, ast.Name):
            yield from ((where, held) for held in values_of(where.module, node))
        for call in (part for part in ast.walk(node) if isinstance(part, ast.Call)):
            for callee in project.callees(call):
                yield from ((callee, given) for given in returned(callee))

    every = list(spread([(function, value)], made))
    return any(_keeps_gradient(where, node) for where, node in every)


def _keeps_gradient(function: Function, node: ast.expr) -> bool:
    """Tell whether a call in an expression asks for gradients, or a statement does so of what it names."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            if any(keyword.arg in (None, "requires_grad") for keyword in part.keywords):
                return True
            if isinstance(part.func, ast.Attribute) and part.func.attr == "requires_grad_":
                return True
    name = path(node)
    return name is not None and any(
        isinstance(part, ast.Attribute) and part.attr in _KEEP and path(part.value) == name
        for part in function.own_nodes
    )


def inner_gradients(unit: Unit, function: Function, within: set[ast.AST]) -> Iterator[Backward]:
    """Yield the calls of ``torch.autograd.grad`` of a function whose result is not differentiated again."""
    module = function.module
    for call in function.calls:
        if call in within or not call.args:
            continue
        if not takes_gradients(unit.project, module, call):
            continue
        graph = [k.value for k in call.keywords if k.arg in ("create_graph", None)]
        constant = all(is_false(g) for g in graph)
        loss = call.args[0]
        alone = unit.forwards.strength(module, loss) < Forward.CRITERION
        if constant and alone and unit.project.function_of(module, call) is function:
            yield Backward(module, function, call, loss, (), False)


def set_apart(unit: Unit) -> None:
    """Move the backward passes for the gradient of an input from `backwards` to `probes`.

    Those in folded branches stand for scaled ones. Raises `Cannot` where unscaled gradients could meet scaled
    ones in a step.
    """
    within = {n for b in unit.backwards if b.scaled for n in ast.walk(b.node)}
    for backward in list(unit.backwards):
        node = backward.node
        if (
            backward.scaled
            or node in unit.gone
            or node in unit.folded
            or not reads_input(unit, backward)
        ):
            continue
        mixed = [s for s in unit.live_steps() if not cleared(unit, s, backward)]
        if mixed and not _runs_copies(unit, backward.function):
            raise _cannot(backward, mixed[0])
        if mixed:
            unit.copying.add(backward.function)
        unit.backwards.remove(backward)
        unit.probes.append(backward)
    for function in training_functions(unit):
        unit.probes += inner_gradients(unit, function, within | unit.gone)


def _runs_copies(unit: Unit, function: Function) -> bool:
    """Tell whether every network that a function runs is a copy made in it, whose gradients no step reads."""
    bound: dict[str, list[bool]] = {}
    called: set[str] = set()
    for node in function.own_nodes:
        if isinstance(node, ast.Assign):
            copied = isinstance(node.value, ast.Call) and tail(node.value) == "deepcopy"
            for name in (path(target) for target in node.targets):
                if name is not None:
                    bound.setdefault(name, []).append(copied)
        elif isinstance(node, ast.Call):
            name = path(node.func)
            if name is not None and unit.forwards.call(function.module, node) is Forward.NETWORK:
                called.add(name.partition(".")[0])
    return bool(called) and all(bound.get(name) and all(bound[name]) for name in called)


def _cannot(backward: Backward, step: Step) -> Cannot:
    there = place_of(step.module, step.call)
    return Cannot(
        "AMP907",
        *backward.at,
        "this backward is run for the gradient of an input, which must not be scaled, but the gradients that it "
        f"gives to parameters may reach the step of {step.text} ({there})",
        f"use torch.autograd.grad here, or call {step.text}.zero_grad() behind it, then run again",
        (there,),
    )


def cleared(unit: Unit, step: Step, backward: Backward, zeroings: Zeroings | None = None) -> bool:
    """Tell whether a zero_grad runs between a backward and a step, on every way there.

    `zeroings` yields those of a function that count; without it all do.
    """
    zeroings = zeroings or clearing(unit.project).of_parameters
    seen: set[Function] = set()
    places: list[tuple[Function, ast.AST]] = [(step.function, step.call)]
    for function, at in places:
        clear = list(zeroings(function))
        runs = partial(may_follow, unit.project, function, then=at, between=clear)
        if any(runs(node) for node in _leaving(unit, function, backward, zeroings, ())):
            return False
        calls = unit.project.callers(function)
        if function.node is None or not may_start(unit.project, function, at, clear):
            continue
        if not calls:
            return False
        if function not in seen:
            seen.add(function)
            places += [(site.function, site.call) for site in calls]
    return True


def _leaving(
    unit: Unit,
    function: Function,
    probe: Backward,
    zeroings: Zeroings,
    around: tuple[Function, ...],
) -> Iterator[ast.AST]:
    """Yield the nodes of a function that run a probe, and may leave its gradients behind."""
    for node in function.own_nodes:
        if node is probe.node:
            yield node
        elif isinstance(node, ast.Call):
            callees = unit.project.callees(node)
            if any(_leaves(unit, callee, probe, zeroings, around) for callee in callees):
                yield node


def _leaves(
    unit: Unit,
    function: Function,
    probe: Backward,
    zeroings: Zeroings,
    around: tuple[Function, ...],
) -> bool:
    """Tell whether a function may run a probe and return with its gradients, not cleared behind it."""
    if probe.function not in reachable(unit.project, function):
        return False
    if function in around or function.node is None or is_generator(function):
        return True
    clear = list(zeroings(function))
    return any(
        may_end(unit.project, function, node, clear)
        for node in _leaving(unit, function, probe, zeroings, (*around, function))
    )
