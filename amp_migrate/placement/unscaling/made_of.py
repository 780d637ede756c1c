"""The network of which an optimizer has all parameters, in their order, read from the calls that make it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from amp_migrate.facts.paths import argument, path
from amp_migrate.modules.binding import bind
from amp_migrate.project import Function, Project
from amp_migrate.training.bindings import returned
from amp_migrate.training.gradients.chosen import covers, goes_over_twice
from amp_migrate.training.origins.reaching import Held, Reaching

_COPIES = ("list", "tuple", "iter")
_PURE = ("any", "all", "len")


@dataclass(frozen=True, eq=False)
class Frame:
    """A function as one call runs it: `given` are its arguments, each with the frame that it stands in."""

    function: Function
    given: Mapping[str, tuple[Frame, ast.expr]] = field(default_factory=dict)
    above: tuple[Function, ...] = ()


class MadeOf:
    """Reads lists of parameters: what ``parameters()`` gives, copies of that, and a group of it.

    In any order, also groups that tests on names tell apart, as those with weight decay and those without.
    """

    def __init__(self, project: Project, reaching: Reaching, *, any_order: bool = False) -> None:
        self._project = project
        self._reaching = reaching
        self._any_order = any_order

    def optimizer(self, frame: Frame, node: ast.expr) -> int | None:
        """Return the network of an optimizer, by the call that makes it or what gives that back; None where that is not told."""
        if isinstance(node, ast.Name):
            values = self._reaching.of(frame.function, node)
            calls = [value for value in values if isinstance(value, ast.Call)]
            scopes = frame.function.module.scopes
            if len(scopes.bindings(frame.function.scope, node.id)) == len(calls):
                values = [*calls]  # where it is not bound, it cannot be read
            if len(values) > 1 and not all(isinstance(value, ast.Call) for value in values):
                return None
            held = [self._value(frame, value) for value in values]
            found = {None if each is None else self.optimizer(*each) for each in held}
            return found.pop() if len(found) == 1 else None
        if not isinstance(node, ast.Call):
            return None
        called = self._called(frame, node)
        if called is not None:
            return self.optimizer(*called)
        makes = not any(callee.name != "__init__" for callee in self._project.callees(node))
        given = argument(node, "params", 0)
        return self.parameters(frame, given) if makes and given is not None else None

    def parameters(self, frame: Frame, node: ast.expr) -> int | None:
        """Return the network of which a list is all parameters that get gradients; None where that is not told."""
        if isinstance(node, ast.Name):
            held = self._list(frame, node)
            return None if held is None else self.parameters(*held)
        if isinstance(node, ast.Call):
            return self._given_by(frame, node)
        if isinstance(node, ast.ListComp | ast.GeneratorExp):
            return self._chosen(frame, node)
        if isinstance(node, ast.List | ast.Tuple) and len(node.elts) == 1:
            part = _parameters_of(node.elts[0])
            return None if part is None else self.parameters(frame, part)
        if self._any_order and isinstance(node, ast.List | ast.Tuple):
            return self._groups(frame, node.elts)
        return None

    def _groups(self, frame: Frame, groups: list[ast.expr]) -> int | None:
        """Return the network each of whose parameters goes into one of some groups, by tests that tell them apart."""
        parts = [_parameters_of(group) for group in groups]
        chosen = [part for part in parts if isinstance(part, ast.ListComp | ast.GeneratorExp)]
        if len(chosen) != len(parts) or not covers(chosen) or not all(map(_is_pure, chosen)):
            return None
        if goes_over_twice((frame.function.module, part) for part in chosen):
            return None
        every = [ast.copy_location(_unasked(part), part) for part in chosen]
        networks = {self._chosen(frame, part) for part in every}
        return networks.pop() if len(networks) == 1 else None

    def _given_by(self, frame: Frame, call: ast.Call) -> int | None:
        network = self._asked(frame, call, "parameters")
        if network is not None:
            return network
        if isinstance(call.func, ast.Name) and not call.keywords:
            if call.func.id in _COPIES and len(call.args) == 1:
                return self.parameters(frame, call.args[0])
            if call.func.id == "filter" and len(call.args) == 2 and _filters_by_grad(call.args[0]):
                return self.parameters(frame, call.args[1])
        called = self._called(frame, call)
        return None if called is None else self.parameters(*called)

    def _chosen(self, frame: Frame, node: ast.ListComp | ast.GeneratorExp) -> int | None:
        if len(node.generators) != 1 or not isinstance(node.elt, ast.Name):
            return None
        (loop,) = node.generators
        names = _named(loop.target)
        if names is None or node.elt.id != names[-1]:
            return None
        if not all(_asks_grad(part, names[-1]) for part in loop.ifs):
            return None
        return self._iterated(frame, loop.iter, pairs=len(names) == 2)

    def _iterated(self, frame: Frame, node: ast.expr, *, pairs: bool) -> int | None:
        """Return what a loop goes over: parameters, or `pairs` of names and parameters."""
        if not pairs:
            return self.parameters(frame, node)
        if isinstance(node, ast.Name):
            held = self._list(frame, node)
            return None if held is None else self._iterated(*held, pairs=True)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in _COPIES and len(node.args) == 1:
                return self._iterated(frame, node.args[0], pairs=True)
        return self._asked(frame, node, "named_parameters")

    def _asked(self, frame: Frame, node: ast.expr, method: str) -> int | None:
        """Return the network whose `method` a call asks for all its parameters."""
        if not isinstance(node, ast.Call) or node.args or node.keywords:
            return None
        if not isinstance(node.func, ast.Attribute) or node.func.attr != method:
            return None
        return self._network(frame, node.func.value)

    def _network(self, frame: Frame, node: ast.expr) -> int | None:
        """Return the name of a network as the outermost of the calls has it."""
        if isinstance(node, ast.Name) and node.id in frame.given:
            held = self._reaching.of(frame.function, node)
            if len(held) == 1 and isinstance(held[0], ast.arg):
                return self._network(*frame.given[node.id])
        return self._project.values.group(frame.function.module, node)

    def _list(self, frame: Frame, name: ast.Name) -> tuple[Frame, ast.expr] | None:
        """Return the list that a variable holds; None for one that may change."""
        return self._held(frame, name) if self._stays(frame.function, name) else None

    def _held(self, frame: Frame, name: ast.Name) -> tuple[Frame, ast.expr] | None:
        """Return what a variable holds where it is read; None where that is not told."""
        held = self._reaching.of(frame.function, name)
        return self._value(frame, held[0]) if len(held) == 1 else None

    def _value(self, frame: Frame, value: Held) -> tuple[Frame, ast.expr] | None:
        """Return what a variable is given, with the frame that it stands in."""
        if value is None:
            return None
        if isinstance(value, ast.arg):
            return frame.given.get(value.arg)
        up = frame.function.module.tree.parent(value)
        if not isinstance(up, ast.Assign) or not all(isinstance(t, ast.Name) for t in up.targets):
            return None
        holder = self._reaching.holder(frame.function, value)
        return (frame if holder is frame.function else Frame(holder)), value

    def _called(self, frame: Frame, call: ast.Call) -> tuple[Frame, ast.expr] | None:
        """Return what a call of a function gives back, if that has one end; None where several may run."""
        callees = self._project.callees(call)
        if len(callees) != 1 or callees[0].name == "__init__" or callees[0] in frame.above:
            return None
        ends = returned(callees[0])
        site = self._project.site(call, callees[0])
        if len(ends) != 1 or site is None:
            return None
        given = {name: (frame, value) for name, value in bind(site, callees[0]).given.items()}
        return Frame(callees[0], given, (*frame.above, callees[0])), ends[0]

    def _stays(self, function: Function, name: ast.Name) -> bool:
        """Tell whether nothing in sight can change the list that a variable holds."""
        module = function.module
        for node in module.scopes.spelt(module.scopes.owner(name), name.id):
            up = module.tree.parent(node)
            if node is name:
                continue
            if isinstance(up, ast.Attribute | ast.Subscript | ast.AugAssign):
                return False
            if isinstance(up, ast.Call) and up.func is not node and self._project.callees(up):
                return False
        return True


def _parameters_of(element: ast.expr) -> ast.expr | None:
    """Return the parameters of a parameter group, or of lists that are unpacked; None for anything else."""
    if isinstance(element, ast.Starred):
        return element.value
    if not isinstance(element, ast.Dict):
        return None
    for key, value in zip(element.keys, element.values, strict=True):
        if isinstance(key, ast.Constant) and key.value == "params":
            return value
    return None


def _unasked(chosen: ast.ListComp | ast.GeneratorExp) -> ast.ListComp:
    """Return a comprehension over parameters without its tests."""
    loops = [ast.comprehension(g.target, g.iter, [], g.is_async) for g in chosen.generators]
    return ast.ListComp(chosen.elt, loops)


def _is_pure(chosen: ast.ListComp | ast.GeneratorExp) -> bool:
    """Tell whether the tests of a comprehension call nothing that may answer otherwise the next time."""
    calls = (n for g in chosen.generators for t in g.ifs for n in ast.walk(t))
    return all(path(n.func) in _PURE for n in calls if isinstance(n, ast.Call))


def _filters_by_grad(test: ast.expr) -> bool:
    """Tell whether a function asks of parameters only whether they get gradients."""
    if not isinstance(test, ast.Lambda) or len(test.args.args) != 1:
        return False
    return _asks_grad(test.body, test.args.args[0].arg)


def _asks_grad(test: ast.expr, name: str) -> bool:
    asks = isinstance(test, ast.Attribute) and test.attr == "requires_grad"
    return asks and path(test) == f"{name}.requires_grad"


def _named(target: ast.expr) -> list[str] | None:
    """Return the names of a loop over parameters, or over names and parameters."""
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    return names if len(names) == len(parts) and len(names) <= 2 else None
