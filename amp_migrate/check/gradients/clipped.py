"""Whether what took the gradients of an optimizer from Apex takes those of that optimizer still."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from amp_migrate.check.events.labels import Does
from amp_migrate.check.events.sides import Key, Side, changed, differs
from amp_migrate.check.events.traces import Difference
from amp_migrate.check.gradients.waiting import same_optimizers
from amp_migrate.facts.paths import all_given, argument, outward, path, root, tail, walk
from amp_migrate.project import Function, Module, Project
from amp_migrate.protocol.calls.coming import handed_in
from amp_migrate.training.bindings import values_of
from amp_migrate.training.gradients.chosen import leaves_out
from amp_migrate.training.gradients.handed_out import bases
from amp_migrate.training.named import Optimizer
from amp_migrate.training.origins.meant import in_turns, is_one_of_several, is_one_optimizer
from amp_migrate.values.objects import Instance, Made

_WHOLE = ("module", "_orig_mod", "model")  # how what wraps a network calls it
_OTHERS = "takes other gradients than those of the optimizer that Apex was asked for:"
_APART = "takes the gradients of another object than that whose optimizer Apex was asked for:"
_MORE = (
    "takes gradients that no optimizer has, which `unscale_` leaves scaled, where Apex was asked for those of an "
    "optimizer with a part of the network:"
)
_ALL = "takes the gradients of all optimizers, where Apex was asked for those of one of them:"


def clipped(old: Side, new: Side) -> Iterator[tuple[Key, Difference]]:
    """Yield the clips of the new text that leave out what `amp.master_params` gave the same clip."""
    same = same_optimizers(old, new)
    for name, introduced in changed(old, new).items():
        wanted: dict[str, set[int]] = {}
        asked: dict[str, list[ast.expr]] = {}
        for function in old.functions[name]:
            for call, label in old.of_kind(function, Does.READ):
                part = argument(call, "parameters", 0)
                masters = list(_masters(part)) if part is not None else []
                asked.setdefault(str(label), []).extend(masters)
                numbers = _optimizers(old, function, masters[0]) if masters else frozenset()
                if numbers and numbers <= same.keys():
                    wanted.setdefault(str(label), set()).update(same[n] for n in numbers)
        for function in new.functions[name] if wanted else ():
            for call, label in new.of_kind(function, Does.READ, introduced=introduced):
                expected = wanted.get(str(label))
                given = argument(call, "parameters", 0)
                if expected and given is not None and _leaves_out(new, function, given, expected):
                    yield differs(function, call, f"`{ast.unparse(call)}` {_OTHERS}")
                elif _is_of_another(new, function, call, asked.get(str(label), [])):
                    yield differs(function, call, f"`{ast.unparse(call)}` {_APART}")


def _is_of_another(
    side: Side, function: Function, call: ast.Call, asked: Sequence[ast.expr]
) -> bool:
    """Tell whether a call takes what one variable holds where another one, of the same class, holds all optimizers that were asked for."""
    module = function.module
    names = {n.id: n for n in function.own_nodes if isinstance(n, ast.Name)}
    wanted = {root(node) for node in asked if "." in (path(node) or "")}
    taken = argument(call, "parameters", 0)
    for base in bases(module, taken, set()) if taken is not None else ():
        own = root(base)
        if "." not in (path(base) or "") or own not in names or own in wanted:
            continue
        others = [names[name] for name in wanted if name in names]
        made = set(side.project.instance_classes(module, names[own]))
        alike = (made & {*side.project.instance_classes(module, other)} for other in others)
        if others and all(alike):
            return True
    return False


def _masters(given: ast.expr) -> Iterator[ast.expr]:
    """Yield the optimizers whose parameters Apex is asked for in what a call is given."""
    for node in walk(given):
        if isinstance(node, ast.Call) and tail(node) == "master_params":
            yield from all_given(node)[:1]


def _optimizers(side: Side, function: Function, node: ast.expr) -> frozenset[int]:
    return side.program.training.objects.optimizers_of(function.module, node)


def _leaves_out(side: Side, function: Function, given: ast.expr, expected: set[int]) -> bool:
    """Tell whether parameters are those of other optimizers, or chosen among those of one."""
    if any(isinstance(n, ast.comprehension) and n.ifs for n in walk(given)):
        return True
    objects = side.program.training.objects
    owners = objects.owners(function.module, given)
    if any(o.within & owners for o in objects.optimizers if o.number in expected):
        return False  # the whole of a network, and the optimizer was made of parts of it
    trained = objects.training(owners)
    if trained is not None:
        return trained.isdisjoint(expected)
    of = [o for o in objects.optimizers if o.number in expected]
    taken = list(bases(function.module, given, set()))
    return bool(taken) and all(_is_apart(side, function.module, base, of) for base in taken)


def _is_apart(side: Side, module: Module, network: ast.expr, of: Sequence[Optimizer]) -> bool:
    """Tell whether a network that no optimizer trains is none of those of some optimizers, nor the whole of one.

    It is made by a call in sight that is given none of them, or is a part of one that has others.
    """
    objects, project = side.program.training.objects, side.project
    trained = {name for o in of for name in o.inside}
    if not trained or any(o.number in objects.of_unknown_origin for o in of):
        return False
    held = objects.groups(module, network)
    if any(trained & objects.groups(module, whole) for whole in outward(network)):
        part = network.attr if isinstance(network, ast.Attribute) else "module"
        return part not in _WHOLE and not trained & held
    made = objects.results.of(held)
    given = (g & trained for m, c in made for a in all_given(c) for g in [objects.groups(m, a)])
    known = project.values.facts(module, network)
    return bool(known) and all(isinstance(f, Made | Instance) for f in known) and not any(given)


def taken_from_all(old: Side, new: Side) -> Iterator[tuple[Key, Difference]]:
    """Yield the clips of a whole network that were clips of what `amp.master_params` gave for an optimizer of less.

    That is one of several, or tests choose what it has of the network.
    """
    for name in changed(old, new):
        wanted: dict[str, list[str]] = {_ALL: [], _MORE: []}
        for function in old.functions[name]:
            for call, label in old.of_kind(function, Does.READ):
                asked = [o for given in _values(function, call) for o in _masters(given)]
                if any(_is_of_several(old.project, function, o) for o in asked):
                    wanted[_ALL].append(str(label))
                elif any(_has_chosen(old, function, o) for o in asked):
                    wanted[_MORE].append(str(label))
        for function in new.functions[name] if any(wanted.values()) else ():
            for why, texts in wanted.items():
                for text in dict.fromkeys(texts):
                    calls = [c for c, own in new.of_kind(function, Does.READ) if str(own) == text]
                    whole = [c for c in calls if _is_whole(new, function, c)]
                    if len(calls) - len(whole) < texts.count(text):
                        for call in whole:
                            yield differs(function, call, f"`{ast.unparse(call)}` {why}")


def _has_chosen(side: Side, function: Function, optimizer: ast.expr) -> bool:
    """Tell whether every call in sight that makes an optimizer gives it parameters that tests choose, which leave others out."""
    objects = side.program.training.objects
    numbers = _optimizers(side, function, optimizer)
    of = [o for o in objects.optimizers if o.number in numbers]
    making = [
        (module, given)
        for module, call in objects.results.of({g for o in of for g in o.groups})
        if objects.made(call) & numbers and (given := argument(call, "params", 0)) is not None
    ]
    return bool(making) and all(leaves_out(module, given) for module, given in making)


def _is_of_several(project: Project, function: Function, optimizer: ast.expr) -> bool:
    """Tell whether an optimizer may be one of several; a parameter is not where each call that comes there gives one alone."""
    seen = project.callers(function) and not project.escapes(function)
    given = handed_in(project, function, optimizer) if seen else None
    if given is None or not all(is_one_optimizer(project, module, node) for module, node in given):
        return is_one_of_several(project, function.module, optimizer)
    own = function.module.scopes.bound(optimizer) if isinstance(optimizer, ast.Name) else []
    reads = {n for b in own if isinstance(b, ast.arg) for n in _reads(function, b.arg)}
    return any(is_one_of_several(project, module, node, reads) for module, node in given)


def _reads(function: Function, name: str) -> list[ast.Name]:
    return function.module.scopes.reads(function.scope, name)


def _values(function: Function, call: ast.Call) -> list[ast.expr]:
    """Return what a call is given first, with what was written for it where that is a variable."""
    first = argument(call, "parameters", 0)
    given = [] if first is None else [first]
    held = (values_of(function.module, g) for g in given if isinstance(g, ast.Name))
    return [*given, *(value for values in held for value in values)]


def _is_whole(side: Side, function: Function, call: ast.Call) -> bool:
    """Tell whether a call is given the parameters of a network that no loop takes out of several."""
    parts = [node for value in _values(function, call) for node in walk(value)]
    owners = [
        node.func.value
        for node in parts
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "parameters"
    ]
    apart = any(isinstance(node, ast.Attribute) and node.attr == "param_groups" for node in parts)
    turns = any(in_turns(side.project, function.module, owner) for owner in owners)
    return bool(owners) and not apart and not turns
