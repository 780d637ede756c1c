"""Whether a GradScaler has something to update from, or to step with: it raises where nothing was unscaled or scaled, or is no optimizer."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from typing import NamedTuple

from amp_migrate.facts.below import every
from amp_migrate.facts.paths import all_given, same, tail
from amp_migrate.facts.scopes import assigned
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.protocol.calls.coming import handed_in
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.faults import Breach, Fault, Place
from amp_migrate.protocol.machine import Moved, Unmoved
from amp_migrate.protocol.run.runs import Key, Summary
from amp_migrate.protocol.run.solve import Run
from amp_migrate.protocol.switched import Switch
from amp_migrate.training.bindings import returned
from amp_migrate.training.events import Event, Kind
from amp_migrate.training.origins.meant import held
from amp_migrate.training.steppers import has_groups

_LISTS = (ast.List, ast.Tuple, ast.ListComp)
_DISPLAYS = (ast.List, ast.Tuple)
_USES = (Kind.STEP, Kind.UNSCALE)
_UPDATES = (Kind.UPDATE, Kind.SET_SCALE, Kind.HANDED)


class Scaling(NamedTuple):
    """Whether an optimizer was checked since the last update, and whether anything was ever scaled.

    `used` tells whether a loss was scaled or an optimizer stepped since the last update.
    """

    checked: bool
    scaled: bool
    used: bool


class ScalerMachine(Unmoved):
    """Follows one GradScaler by its number."""

    def __init__(self, number: int) -> None:
        self._number = number

    def starts(self, called: bool) -> tuple[Hashable, ...]:
        """Nothing is done when a program begins; a function that is called from elsewhere may find all of it."""
        return (Scaling(called, called, called),)

    def failed(self, state: Hashable, event: Event) -> Hashable:
        """A step that raised has looked for overflows before."""
        assert isinstance(state, Scaling)
        steps = event.kind is Kind.STEP and event.scaler == self._number
        return state._replace(checked=True, used=True) if steps else state

    def concerns(self, event: Event) -> bool:
        """Tell whether an event is a backward, or of the GradScaler."""
        return event.kind is Kind.BACKWARD or event.scaler == self._number

    def move(self, state: Hashable, event: Event, visited: bool) -> Moved:
        """Return what an event makes of a state."""
        assert isinstance(state, Scaling)
        if event.kind is Kind.BACKWARD and event.scaled is not False:
            return Moved((state._replace(scaled=True, used=True),))
        if event.scaler != self._number:
            return Moved((state,))
        if event.kind is Kind.UPDATE:
            return Moved((state._replace(checked=False, used=False),), _updated(state, event))
        if event.kind is Kind.SET_SCALE:
            return Moved((state._replace(checked=False, used=False),))
        if event.kind not in _USES:
            return Moved((state,))
        used = state.used or event.kind is Kind.STEP
        return Moved((state._replace(checked=True, used=used),))


def _updated(state: Scaling, event: Event) -> tuple[Breach, ...]:
    """Return what an `update()` breaks: it needs an overflow check, and counts a step for the growth of the scale."""
    if event.unsure:
        return ()
    if not state.checked:
        return (Breach.UPDATE_ALONE,)
    return () if state.used else (Breach.UNSCALED_ALONE,)


def never_scaled(program: Program, run: Run, number: int) -> Iterator[Fault]:
    """Yield the steps, calls of `unscale_` and of `update(scale)` of a GradScaler to which every way leads before anything is scaled.

    `run` is one of its `ScalerMachine` that is over. Where a function is called again later, on other ways, the ways through
    one call of it count by themselves.
    """
    used = {key: _used(program, key.function, held, number) for key, held in run.summaries.items()}
    scales = {event for here in used.values() for event, scaled in here.items() if scaled}
    events = dict.fromkeys(event for here in used.values() for event in here)
    for event in events if scales else ():
        place = _place(program, event.node)
        if event not in scales:
            yield Fault(Breach.NEVER_SCALED, place, (place,))
            continue
        first = [key for key, here in used.items() if here.get(event) is False]
        way = [_place(program, call) for call in _calls(program, run, first)]
        if way:
            yield Fault(Breach.NEVER_SCALED, place, (*way, place))


def _calls(program: Program, run: Run, keys: list[Key]) -> list[ast.Call]:
    """Return calls from a program on that lead to some runs of functions, each in the states of those on every way to it.

    Those states tell that nothing is scaled yet.
    """
    found: dict[Key, list[ast.Call]] = {key: [] for key in keys}
    queue = list(found)
    for key in queue:
        callers = run.summaries[key].waiting
        if not callers and found[key]:
            return found[key]
        begun = {k.state.machine for k in found if k.function is key.function}
        for up, here in callers:
            call = here.point.node
            there = {h.state.machine for h in run.summaries[up].came if h.point is here.point}
            if up not in found and isinstance(call, ast.Call) and there <= begun:
                if program.calls.of(call) == [key.function]:
                    found[up] = [call, *found[key]]
                    queue.append(up)
    return []


def _has_scaled(state: Hashable) -> bool:
    """Tell whether anything was scaled in a state, or the GradScaler is off."""
    inner, on = (state.state, state.on) if isinstance(state, Switch) else (state, True)
    assert isinstance(inner, Scaling)
    return inner.scaled or not on


def _place(program: Program, node: ast.AST) -> Place:
    return Place(program.project.module_of(node).path, getattr(node, "lineno", 0))


def never_updated(program: Program, number: int) -> Iterator[Fault]:
    """Yield the first step of a GradScaler that nothing updates, here or out of sight: a second one raises."""
    happened = [
        e for held in program.training.by_function.values() for some in held.values() for e in some
    ]
    own = [e for e in happened if e.scaler == number]
    steps = [e for e in own if e.kind is Kind.STEP]
    if not steps or any(e.kind in _UPDATES for e in own):
        return
    names = {_receiver(e.node) for e in steps}
    calls = program.training.objects.method_calls.get("update", [])
    if not names & {_receiver(call) for _, call in calls}:
        place = _place(program, steps[0].node)
        yield Fault(Breach.NEVER_UPDATED, place, (place,))


def _sets(event: Event) -> bool:
    """Tell whether an event is ``update(scale)``, which raises until a loss is scaled."""
    call = event.node
    return event.kind is Kind.SET_SCALE and isinstance(call, ast.Call) and tail(call) == "update"


def _receiver(node: ast.AST) -> str:
    held = (
        node.func.value
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        else None
    )
    return "" if held is None else ast.unparse(held)


def _used(program: Program, function: Function, summary: Summary, number: int) -> dict[Event, bool]:
    """Return the uses of a GradScaler in a function, and whether anything is scaled in a state that comes there."""
    found: dict[Event, bool] = {}
    for here in summary.came:
        for event in program.happens(function, here.point.node):
            if (event.kind in _USES or _sets(event)) and event.scaler == number:
                state = here.state.machine
                doubted = event.unsure and not isinstance(state, Switch)
                found[event] = found.get(event, False) or _has_scaled(state) or doubted
    return found


def ungrouped(program: Program) -> Iterator[Fault]:
    """Yield the calls of GradScalers that raise, as what they are given is no optimizer: it only steps one."""
    for function, found in program.training.by_function.items():
        for node, events in found.items():
            asking = (e.named() for e in events if e.kind in _USES)
            if any(given is not None and _lacks(program, function, given) for given in asking):
                place = Place(function.module.path, getattr(node, "lineno", 1))
                yield Fault(Breach.UNGROUPED, place, (place,))


def listed(program: Program) -> Iterator[Fault]:
    """Yield the calls of GradScalers that raise, as they are given a list of optimizers, and no test asks for one."""
    for function, found in program.training.by_function.items():
        for node, events in found.items():
            asking = [e.named() for e in events if e.kind in _USES]
            if any(given is not None and _is_list(program, function, given) for given in asking):
                place = Place(function.module.path, getattr(node, "lineno", 1))
                yield Fault(Breach.LISTED, place, (place,))


def _is_list(program: Program, function: Function, given: ast.expr) -> bool:
    """Tell whether a variable holds a list on some way, or an attribute on all, where no test around tells of it."""
    module = function.module
    if _is_item(program.project, module, given):
        return False
    given_in = handed_in(program.project, function, given)
    places = [(module, given)] if given_in is None else given_in
    values = [v for where, node in places for v in held(program.project, where, node)]
    lists = [isinstance(value, _LISTS) for value in values if value is not None]
    found = any(lists) if isinstance(given, ast.Name) else bool(lists) and all(lists)
    if given_in is not None:
        return found
    tests = [part for up, _ in module.tree.sides(given) for part in every(up.test)]
    asking = (node for node in tests if isinstance(node, ast.Call))
    return found and not any(same(node, given) for call in asking for node in call.args)


def _is_item(project: Project, module: Module, given: ast.expr) -> bool:
    """Tell whether a variable is only bound to items of one list, which a function returns whole: ``a, b = f()``."""
    bindings = list(module.scopes.bound(given)) if isinstance(given, ast.Name) else []
    return bool(bindings) and all(_takes_apart(project, module, binding) for binding in bindings)


def _takes_apart(project: Project, module: Module, binding: ast.AST) -> bool:
    display = module.tree.parent(binding)
    statement = module.tree.parent(display) if isinstance(display, ast.Tuple) else None
    value = statement.value if isinstance(statement, ast.Assign) else None
    if not isinstance(value, ast.Call) or project.apex(module, value.func):
        return False
    backs = [(callee, back) for callee in project.callees(value) for back in returned(callee)]
    return bool(backs) and all(
        isinstance(back, ast.Name) and not _holds_lists(callee, back) for callee, back in backs
    )


def _holds_lists(function: Function, name: ast.Name) -> bool:
    """Tell whether what a variable of a function holds, or is given by its methods, may be lists again."""
    scopes, tree = function.module.scopes, function.module.tree
    made = [assigned(tree, binding) for binding in scopes.bound(name)]
    items = [item for m in made if isinstance(m, _DISPLAYS) for item in m.elts]
    for call in function.calls:
        if isinstance(call.func, ast.Attribute) and same(call.func.value, name):
            items += all_given(call)
    return not all(isinstance(m, _DISPLAYS) for m in made) or any(
        not isinstance(item, ast.Call) for item in items
    )


def _lacks(program: Program, function: Function, given: ast.expr) -> bool:
    """Tell whether an expression holds an object of a class without groups, on some way or on all that are known."""
    project = program.project
    if isinstance(given, ast.Name):
        held = program.training.losses.reaching(function, given)
        made = [project.constructed(value) for value in held if isinstance(value, ast.Call)]
        return any(classes and all(map(_is_bare, classes)) for classes in made)
    classes = project.instance_classes(function.module, given)
    known = project.values.made_by(function.module, given)
    return bool(classes) and not known and all(map(_is_bare, classes))


def _is_bare(cls: Class) -> bool:
    """Tell whether objects of a class have no groups of parameters, as far as all of its bases are seen."""
    outside = {name.rpartition(".")[2] for name in cls.externals()} - {"object", "ABC"}
    return not outside and not any(map(has_groups, cls.mro()))
