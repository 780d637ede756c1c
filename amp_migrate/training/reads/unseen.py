"""Reads of gradients by code that is out of sight: it is given a network or its parameters, or kept them."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from functools import cached_property

from amp_migrate.facts.paths import all_given, looked_up, tail
from amp_migrate.project import Function, Module, Project
from amp_migrate.training.beliefs import (
    KEEPS_PARAMETERS,
    LEAVE_GRADIENTS_ALONE,
    LEAVE_HOLDERS_ALONE,
    LOADS_PARAMETERS,
    LOGS_RATES,
    MAKES_EVALUATOR,
    METHODS_WITHOUT_CASTS,
    ONLY_HOLD,
    RUNS_NO_FORWARD,
    gives_tensor,
    reduces,
)
from amp_migrate.training.gradients.handed_out import bases
from amp_migrate.training.objects import Objects
from amp_migrate.training.origins.constants import is_collection
from amp_migrate.training.origins.losses import Losses
from amp_migrate.training.reads.fresh import Fresh
from amp_migrate.training.reads.keepers import Keepers
from amp_migrate.training.reads.variables import hands_over
from amp_migrate.training.steppers import makes_schedule
from amp_migrate.values.objects import Made, Written
from amp_migrate.values.values import Near

_LEAVES_GRADIENTS = KEEPS_PARAMETERS | LOADS_PARAMETERS | METHODS_WITHOUT_CASTS
_REPORTS = LEAVE_GRADIENTS_ALONE - {"torch"}
_PLAIN_BASES = frozenset({"Generic", "NamedTuple", "Protocol", "object"})


class Unseen:
    """Asks which networks a call gives to code of which nothing is known."""

    def __init__(self, project: Project, objects: Objects, losses: Losses, fresh: Fresh) -> None:
        self._project = project
        self._fresh = fresh
        self._objects = objects
        self._losses = losses
        self._keepers = Keepers(project, objects, self._is_left_alone)
        self._read: dict[ast.Call, bool] = {}
        self._of: dict[ast.expr, frozenset[int]] = {}

    def given(self, function: Function, call: ast.Call, name: str | None) -> set[int]:
        """Return the names of networks whose gradients a call may read, `name` being its dotted name elsewhere."""
        module, found = function.module, set[int]()
        if self._is_read(function, call, name):
            return found
        for argument in _arguments(call):
            if hands_over(module, argument):
                of_new = [self._fresh.is_new(function, b) for b in bases(module, argument, set())]
                found |= self._objects.owners(module, argument) if not all(of_new) else set()
            elif isinstance(argument, ast.Name | ast.Attribute):
                networks = self._networks(module, argument)
                found |= networks if not self._fresh.is_new(function, argument) else set()
        return found | (self._kept(module, call) if name is None else set())

    def optimizers(self, function: Function, call: ast.Call, name: str | None) -> set[int]:
        """Return the numbers of the optimizers that a call of code out of sight is given in an object that holds them.

        A library may be given them themselves, too. An object that holds the network alone counts as its optimizers.
        """
        module, found = function.module, set[int]()
        if self._is_read(function, call, name):
            return found
        if name is None and (_is_inherited(function, call) or self._is_looked_up(module, call)):
            return found
        if name is not None and (_leaves_alone(name) or makes_schedule(name)):
            return found
        for given in _arguments(call):
            held = self._held(module, given, itself=name is not None)
            found |= held if held and not self._fresh.is_new(function, given) else set()
        for where, handing in self._keepers.given(module, call) if name is None else ():
            for given in _arguments(handing):
                found |= self._held(where, given, itself=True) & self._keepers.stepped
        return found

    def _held(self, module: Module, given: ast.expr, *, itself: bool) -> set[int]:
        """Return the numbers of the optimizers that an argument holds, or is if `itself` counts, or of whose networks that holds."""
        if not isinstance(given, ast.Name | ast.Attribute | ast.Subscript):
            return set()
        if not self._may_hold(module, given) or self._is_tensor(module, given):
            return set()
        held = self._objects.groups(module, given)
        if held & self._trained:
            return set()  # networks are asked for by themselves
        inside = self._project.values.inside(module, given)
        held = held | inside if itself else inside - held
        return {
            o.number
            for o in self._objects.optimizers
            if not held.isdisjoint({*o.groups, *(o.networks or ())})
        }

    def _is_read(self, function: Function, call: ast.Call, name: str | None) -> bool:
        """Tell whether it is known what a call does with gradients: it is followed, or leaves them as they are."""
        if call not in self._read:
            self._read[call] = self._is_told(function, call, name)
        return self._read[call]

    def _is_left_alone(self, module: Module, call: ast.Call) -> bool:
        return is_known(call, None) or reduces(tail(call)) or self._is_harmless(module, call)

    def _is_told(self, function: Function, call: ast.Call, name: str | None) -> bool:
        module = function.module
        followed = bool(self._project.callees(call)) and not self._is_decided(module, call)
        followed = followed or self._is_harmless(module, call)
        known = followed or is_known(call, name) or reduces(tail(call))
        return known or self.is_uncallable(function, call) or self._only_keeps(call)

    def _is_decided(self, module: Module, call: ast.Call) -> bool:
        """Tell whether the object of a method call decides itself what every name gives: that need not be the method."""
        if not isinstance(call.func, ast.Attribute) or not self._some_decide:
            return False
        classes = self._project.instance_classes(module, call.func.value)
        return any("__getattribute__" in base.methods for cls in classes for base in cls.mro())

    @cached_property
    def _some_decide(self) -> bool:
        return any(function.name == "__getattribute__" for function in self._project.functions())

    def _is_tensor(self, module: Module, node: ast.expr) -> bool:
        facts = self._project.values.facts(module, node)
        return bool(facts) and all(isinstance(f, Made) and gives_tensor(f.name) for f in facts)

    def steps_nothing(self, function: Function, call: ast.Call) -> bool:
        """Tell whether a call does nothing with an optimizer that it is given: it reports, only keeps it, or never runs."""
        if self.is_uncallable(function, call) or self._only_keeps(call):
            return True
        return self._is_harmless(function.module, call)

    def is_uncallable(self, function: Function, call: ast.Call) -> bool:
        """Tell whether a call is of a variable that only ever holds lists or the like, so that it never comes to run."""
        named = isinstance(call.func, ast.Name)
        return named and is_collection(self._project, self._losses.reached, function, call.func)

    def _is_harmless(self, module: Module, call: ast.Call) -> bool:
        """Tell whether a call runs a lambda, or a method of a text, a logger or the like, which use no gradients."""
        facts = self._project.values.facts(module, call.func)
        if facts and all(isinstance(fact, Written) for fact in facts):
            return True  # a lambda: what it does is seen
        if not isinstance(call.func, ast.Attribute):
            return False
        receiver = call.func.value
        if isinstance(receiver, ast.JoinedStr):
            return True
        if isinstance(receiver, ast.Constant):
            return isinstance(receiver.value, str)
        made = self._project.values.made_by(module, receiver)
        return bool(made) and {name.partition(".")[0] for name in made} <= _REPORTS

    def _only_keeps(self, call: ast.Call) -> bool:
        """Tell whether a call makes an object of a class in sight that runs nothing, as a dataclass or a named tuple."""
        made = self._project.constructed(call)
        return bool(made) and all(
            cls.method("__init__") is None
            and all(name.rpartition(".")[2] in _PLAIN_BASES for name in cls.externals())
            for cls in made
        )

    def _is_looked_up(self, module: Module, call: ast.Call) -> bool:
        """Tell whether a call runs a method by its name, of objects whose classes are in sight."""
        found = looked_up(call.func)
        return found is not None and bool(self._project.instance_classes(module, found[0]))

    def _networks(self, module: Module, node: ast.expr) -> frozenset[int]:
        """Return the names of a network that some optimizer trains."""
        if not self._may_be_trained(module, node):
            return frozenset()
        groups = self._objects.groups(module, node)
        return groups if groups & self._trained else frozenset()

    @cached_property
    def _may_be_trained(self) -> Near:
        return self._project.values.near(self._trained)

    @cached_property
    def _may_hold(self) -> Near:
        """Tells, quickly and never wrongly no, whether an expression may be an optimizer, a network of one, or hold one."""
        optimizers = self._objects.optimizers
        asked = {g for o in optimizers for g in (*o.groups, *(o.networks or ()))}
        return self._project.values.near(asked, held=True)

    @cached_property
    def _trained(self) -> frozenset[int]:
        """The names of the networks that optimizers train, or that compute losses where it is not known which."""
        optimizers = self._objects.optimizers
        found = {g for o in optimizers for g in o.networks or ()}
        if any(o.networks is None for o in optimizers):
            found |= self._losses.called
        return frozenset(found)

    def _kept(self, module: Module, call: ast.Call) -> set[int]:
        """Return the networks that the object of a method call was given when code out of sight made it."""
        if not isinstance(call.func, ast.Attribute) or call.func.attr in RUNS_NO_FORWARD:
            return set()
        receiver: ast.expr = call.func.value
        made = self._project.values.made_by(module, receiver)
        if made and set(made) <= ONLY_HOLD:
            receiver = call.func  # what is called is what the object holds
            made = self._project.values.made_by(module, receiver)
        if not made or any(n.partition(".")[0] in LEAVE_GRADIENTS_ALONE for n in made):
            return set()
        groups = self._objects.groups(module, receiver)
        if any(
            groups & (o.networks or set()) or groups & o.groups for o in self._objects.optimizers
        ):
            return set()
        return {
            network
            for where, making in self._objects.results.from_outside(dict.fromkeys(made), groups)
            for argument in _arguments(making)
            for network in self._of_argument(where, argument)
        }

    def _of_argument(self, module: Module, argument: ast.expr) -> frozenset[int]:
        if argument not in self._of:
            self._of[argument] = self._named(module, argument)
        return self._of[argument]

    def _named(self, module: Module, argument: ast.expr) -> frozenset[int]:
        if hands_over(module, argument):
            return frozenset(self._objects.owners(module, argument))
        if isinstance(argument, ast.Name | ast.Attribute):
            return self._networks(module, argument)
        return frozenset()


def _is_inherited(function: Function, call: ast.Call) -> bool:
    """Tell whether a call is one of a method that the object itself has from a class out of sight."""
    return isinstance(call.func, ast.Attribute) and function.is_receiver(call.func.value)


def _leaves_alone(name: str) -> bool:
    return name.partition(".")[0] in LEAVE_HOLDERS_ALONE or name.rpartition(".")[2] in LOGS_RATES


def is_known(call: ast.Call, name: str | None) -> bool:
    """Tell whether a callee comes from where gradients are left alone, or makes or feeds an object that is known."""
    if name is not None:
        known = name in ONLY_HOLD or name.partition(".")[0] in LEAVE_GRADIENTS_ALONE
        return known or MAKES_EVALUATOR.search(name) is not None
    if isinstance(call.func, ast.Name):
        return hasattr(builtins, call.func.id)
    return isinstance(call.func, ast.Attribute) and call.func.attr in _LEAVES_GRADIENTS


def _arguments(call: ast.Call) -> Iterator[ast.expr]:
    """Yield what a call is given, and what stands in the collections that are written out there."""
    queue: list[ast.expr] = all_given(call)
    for given in queue:
        yield given
        if isinstance(given, ast.List | ast.Tuple | ast.Set):
            queue += given.elts
        elif isinstance(given, ast.Dict):
            queue += given.values
        elif isinstance(given, ast.Starred):
            queue.append(given.value)
