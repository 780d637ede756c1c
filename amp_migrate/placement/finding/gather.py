"""Finds the optimizer steps and backward passes that a unit must rewrite, whether or not they say `amp`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.facts.paths import all_given, path, root, tail, walk
from amp_migrate.placement.backwards.scaled import ScaleLoss
from amp_migrate.placement.backwards.unscaled import is_scaled_natively
from amp_migrate.placement.finding.alternatives import is_alternative, is_uncalled, refuse_beside
from amp_migrate.placement.finding.optimizers import Optimizers
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.making.later import Later, comes_first, is_over
from amp_migrate.placement.making.off import trains_apart
from amp_migrate.placement.reads.held import held
from amp_migrate.plan.cannot import Cannot, spoken
from amp_migrate.project import CallSite, Function, Module
from amp_migrate.project.order import exclusive, inside, key
from amp_migrate.project.reach import reachable, reached_by
from amp_migrate.project.rounds import runs_before
from amp_migrate.training.beliefs import ENGINE_NAME, LOSS_NAME, NEVER_A_LOSS
from amp_migrate.training.contexts import scaling_calls
from amp_migrate.training.steppers import has_groups, is_optimizer, is_optimizer_class, is_schedule
from amp_migrate.training.steps import Backward, Step, anchor_of, backward_of


def gather(unit: Unit, scaled: dict[Site, ScaleLoss]) -> None:
    """Fill in the steps and backward passes of a unit."""
    optimizers = Optimizers(unit)
    # What only a wrapper steps is stepped there, whether or not the wrapper looks like an optimizer.
    found = list(_steps(unit, optimizers))
    if all(trains_apart(unit, step.function) for step in found):
        found += _steps(unit, optimizers, wrapped=True)
    other = {s.function for s in found if is_alternative(unit, s.function)}
    if other:
        makers = {site.function.cls for site in unit.of(Kind.INITIALIZE)} - {None}
        refuse_beside(unit.project, makers, {f.cls for f in other} - {None})
    without = unit.home.beside.without  # where the gradients are those of a GradScaler that is off
    begun = [Later(unit.project, (s.function, s.node)) for s in unit.of(Kind.INITIALIZE)]
    if any(comes_first(begun, s.function, s.node) for s in unit.of(Kind.SCALE_LOSS)):
        begun = []  # such a training is not in FP32
    found = [s for s in found if not trains_apart(unit, s.function) and s.function not in without]
    steps = _innermost(unit, [s for s in found if not is_over(begun, s)])
    unit.steps = sorted(steps, key=lambda s: (s.module.path, key(s.call)))
    unit.backwards = [b for block in scaled.values() for b in _scaled_backwards(unit, block)]
    aliases = {call for block in scaled.values() for call in (*block.backwards, *block.reached)}
    for feeds, others in ((True, unit.backwards), (False, unit.beside)):
        plain = [b for b in _plain(unit, optimizers, feeds) if b.node not in aliases]
        plain = [b for b in plain if not is_scaled_natively(unit, b)]
        others += [b for b in plain if not comes_first(begun, b.function, b.node)]
    elsewhere = _elsewhere(unit, optimizers)
    unit.beside += [b for b in elsewhere if not is_uncalled(unit, b.function)]
    unit.backwards.sort(key=lambda b: (b.module.path, key(b.node)))


def _scaled_backwards(unit: Unit, block: ScaleLoss) -> Iterator[Backward]:
    """Yield the backward of a block, or those of the blocks that its function, a context manager, opens."""
    site, optimizers = block.site, block.optimizer_list()
    if not block.yielded:
        yield Backward(site.module, site.function, block.node, block.loss, optimizers, True)
        return
    for call in unit.project.callers(site.function):
        module = call.function.module
        item = module.tree.parent(call.call)
        opened = module.tree.parent(item) if item is not None else None
        loss = _handed(unit, call, site, block.measure)
        if not isinstance(opened, ast.With) or loss is None:
            raise Cannot(
                "AMP902",
                module,
                call.call,
                f"{spoken(site.function)} hands out a scaled loss here, outside of a `with` that gives it the loss",
                "write `with amp.scale_loss(loss, optimizer) as scaled_loss:` there, then run again",
            )
        mapped = tuple(_handed(unit, call, site, node) or node for node in optimizers)
        yield Backward(module, call.function, opened, loss, mapped, True)


def _handed(unit: Unit, call: CallSite, site: Site, node: ast.expr) -> ast.expr | None:
    """Return what a call gives a function that is an expression in it, by a parameter or in a collection."""
    given = unit.project.arguments(call, site.function).get(path(node) or "")
    if given is not None:
        return given
    module, values = call.function.module, unit.project.values
    parts = [part for argument in all_given(call.call) for part in _parts(module, argument)]
    alike = [part for part in parts if values.same(module, part, site.module, node)]
    return alike[0] if len(alike) == 1 else None


def _parts(module: Module, given: ast.expr) -> list[ast.expr]:
    """Return an argument, or what is written out in the collection that is the only value of its name."""
    argument = given.value if isinstance(given, ast.Starred) else given
    held = module.scopes.only_value(argument)
    return held.elts if isinstance(held, ast.Tuple | ast.List) else [argument]


def _steps(unit: Unit, optimizers: Optimizers, wrapped: bool = False) -> Iterator[Step]:
    for module, node in unit.calls():
        stepped = held(unit, module, node)
        if isinstance(node.func, ast.Attribute) and _is_step(unit, module, node):
            stepped = node.func.value
        function = unit.project.function_of(module, node)
        if stepped is not None and optimizers.has(module, function, stepped):
            if _delegates(function) is wrapped:
                anchor = anchor_of(unit.project, module, node)
                yield Step(module, function, node, stepped, anchor)


def _innermost(unit: Unit, steps: list[Step]) -> list[Step]:
    """Drop the calls of a wrapper's own `step`, which steps the optimizer that it holds."""
    stepping = {step.function for step in steps}
    reached = {step: stepping & reached_by(unit.project, step.call) for step in steps}
    wrappers = {function for found in reached.values() for function in found}
    return [step for step in steps if not reached[step] or step.function in wrappers]


def _delegates(function: Function) -> bool:
    """Tell whether a function is the `step` of an optimizer class, which its users step."""
    cls = function.cls
    if function.name != "step" or cls is None:
        return False
    return is_optimizer_class(cls) or any(map(has_groups, cls.mro()))


def _is_step(unit: Unit, module: Module, call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
        return False
    return not is_schedule(unit.project, module, call.func.value)


def _plain(unit: Unit, optimizers: Optimizers, feeds: bool = True) -> Iterator[Backward]:
    """Yield the plain backward passes that feed the steps of a unit, or those beside them that do not."""
    for function in training_functions(unit):
        if _is_closure(unit, optimizers, function) or trains_apart(unit, function):
            continue
        module = function.module
        calls = [
            node
            for stmt in function.scope.body
            for node in walk(stmt)
            if isinstance(node, ast.Call) and unit.project.function_of(module, node) is function
        ]
        for call in calls:
            loss = _plain_loss(unit, optimizers, function, call)
            if loss is not None and _feeds_unit(unit, function, call, calls) is feeds:
                yield Backward(module, function, call, loss, (), False)


def _is_closure(unit: Unit, optimizers: Optimizers, function: Function) -> bool:
    """Tell whether a function is made for the step of a foreign optimizer, which calls it."""
    around = function.parent
    if around is None:
        return False
    given = [
        call
        for call in around.calls
        if _is_step(unit, around.module, call) and function.name in [path(a) for a in call.args]
    ]
    own = {step.function for step in unit.steps}
    return bool(given) and not any(
        optimizers.has(around.module, around, call.func.value)
        or own & set(unit.project.callees(call))
        for call in given
        if isinstance(call.func, ast.Attribute)
    )


def _elsewhere(unit: Unit, optimizers: Optimizers) -> Iterator[Backward]:
    """Yield the plain backward passes for the optimizers of functions in which none of the unit may stand."""
    trains = set(training_functions(unit)) if any(unit.of(Kind.SCALE_LOSS)) else set()
    for module in unit.near if trains else ():
        calls = [call for call in module.tree.nodes(ast.Call) if tail(call) in ("backward", "step")]
        for call in calls:
            function = unit.project.function_of(module, call)
            if tail(call) == "step" or function in trains or _is_scaled(unit, module, call):
                continue
            loss = _plain_loss(unit, optimizers, function, call)
            stepped = any(
                _is_step(unit, module, later)
                and _is_foreign(unit, module, later)
                and unit.project.function_of(module, later) is function
                and runs_before(unit.project, function, call, later)
                for later in calls
            )
            if loss is not None and stepped:
                yield Backward(module, function, call, loss, (), False)


def _is_scaled(unit: Unit, module: Module, call: ast.Call) -> bool:
    """Tell whether a backward, or the other branch of its test, scales with Apex: another unit decides on it."""
    tree = module.tree
    blocks = [block for block, held in scaling_calls(unit.project).items() if held is module]
    return any(
        exclusive(tree, block, call) or inside(tree, call, tree.statement(block))
        for block in blocks
    )


def training_functions(unit: Unit) -> list[Function]:
    """Return the functions in which a backward of a unit may stand: those that train, and what they call."""
    stepping = {s.function for s in unit.steps}
    scaling = {s.function for s in unit.of(Kind.SCALE_LOSS)}
    found = unit.initializing | scaling | stepping
    found |= _joining(unit, scaling, stepping)
    for function in scaling | stepping:
        found |= reachable(unit.project, function)
    if not any(unit.of(Kind.SCALE_LOSS)):
        found |= _called_beside(unit)
    return sorted(found, key=lambda f: (f.module.path, f.qualname))


def _joining(unit: Unit, scaling: set[Function], stepping: set[Function]) -> set[Function]:
    """Return the functions that call one that scales as well as one that steps: what they run backward is stepped too."""
    callers = {c.function for f in scaling | stepping for c in unit.project.callers(f)}
    found = set()
    for caller in callers:
        called = {caller, *reachable(unit.project, caller)}
        if called & scaling and called & stepping:
            found.add(caller)
    return found


def _called_beside(unit: Unit) -> set[Function]:
    """Return what the callers of a step call too: without scale_loss, a plain backward may stand there."""
    callers = {call.function for step in unit.steps for call in unit.project.callers(step.function)}
    return {reached for caller in callers for reached in reachable(unit.project, caller)}


def _plain_loss(
    unit: Unit, optimizers: Optimizers, function: Function, call: ast.Call
) -> ast.expr | None:
    receiver = backward_of(call)
    if receiver is None or path(receiver) in (*NEVER_A_LOSS, *function.receivers):
        return None
    if root(receiver) is None and not isinstance(receiver, ast.BinOp):
        return None
    if optimizers.has(function.module, function, receiver):
        return None
    if unit.project.callees(call) or unit.project.external(function.module, call.func):
        return None
    if unit.forwards.is_network(function.module, receiver) and len(call.args) == 1:
        return None
    return None if _takes_loss(call) else receiver


_OF_TENSOR = frozenset({"gradient", "retain_graph", "create_graph", "inputs", None})


def _takes_loss(call: ast.Call) -> bool:
    """Tell whether a backward is that of somebody's engine: ``accelerator.backward(loss)``."""
    receiver = ast.unparse(call.func).rpartition(".")[0]
    if any(k.arg not in _OF_TENSOR for k in call.keywords) or ENGINE_NAME.search(receiver):
        return True
    if not call.args or LOSS_NAME.search(receiver):
        return False
    given = path(call.args[0]) or ""
    return bool(LOSS_NAME.search(given)) and "grad" not in given


def _feeds_unit(unit: Unit, function: Function, call: ast.Call, calls: list[ast.Call]) -> bool:
    """A backward whose next step is that of a foreign optimizer stays as it is."""
    stepping = {s.function for s in unit.steps}
    own = {s.call for s in unit.steps_of(function)}
    foreign, steps = (
        [c for c in calls if tells(unit, function.module, c)] for tells in (_is_foreign, _is_step)
    )
    own |= {c for c in steps if stepping & set(unit.project.callees(c))}
    if _stepped_apart(unit, function, call, calls, own):
        return False
    runs = partial(runs_before, unit.project, function)
    if own:
        following = [
            s for s in steps if runs(call, s, [other for other in steps if other is not s])
        ]
        return not following or any(s in own or s not in foreign for s in following)
    return not any(s in foreign and runs(call, s) for s in steps)


def _stepped_apart(
    unit: Unit, function: Function, call: ast.Call, calls: list[ast.Call], own: set[ast.Call]
) -> bool:
    """Tell whether another branch than that of the unit's steps steps by a function: ``xm.optimizer_step(optimizer)``."""
    tree = function.module.tree
    if not own or not all(exclusive(tree, call, step) for step in own):
        return False
    return any(
        isinstance(c.func, ast.Attribute)
        and c.func.attr == "optimizer_step"
        and c.args
        and runs_before(unit.project, function, call, c)
        for c in calls
    )


def _is_foreign(unit: Unit, module: Module, call: ast.Call) -> bool:
    func = call.func
    return isinstance(func, ast.Attribute) and is_optimizer(unit.project, module, func.value)
