"""Which calls run a network: the forward passes that Apex cast and autocast must cover."""

from __future__ import annotations

import ast
import enum
from collections.abc import Hashable

from amp_migrate.facts.paths import bottom, path, walk
from amp_migrate.modules.layout import INSTALLED
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.project.order import SCOPES
from amp_migrate.training.beliefs import (
    BEGINS_HOUSEKEEPING,
    CRITERION_NAME,
    KEEPS_HOUSE,
    NETWORK_LETTER,
    NETWORK_NAME,
    RUNS_FORWARD,
)
from amp_migrate.training.bindings import run_first
from amp_migrate.training.forwards.classes import holds_module, makes_module, run_given
from amp_migrate.training.forwards.indifferent import Indifferent, only_looks_up
from amp_migrate.training.forwards.known_losses import is_loss, is_loss_class, known_losses
from amp_migrate.training.forwards.later import runs_later
from amp_migrate.training.gradients.handed_out import is_kept
from amp_migrate.training.steps import takes_gradients

EVIDENCE = frozenset(
    {"parameters", "named_parameters", "zero_grad", "state_dict", "named_modules", "children"}
)


def is_housekeeping(name: str) -> bool:
    """Tell whether a method of a network is known to run no forward pass."""
    special = name.startswith("__") and name.endswith("__") and name != "__call__"
    return special or name in KEEPS_HOUSE or name.startswith(BEGINS_HOUSEKEEPING)


class Forward(enum.IntEnum):
    """How sure it is that a call runs a network."""

    NONE = 0
    UNKNOWN = 1
    CRITERION = 2
    NETWORK = 3


def made_network(project: Project, module: Module, node: ast.expr) -> bool | None:
    """Tell whether what an expression holds is a module of torch that is no loss; None for anything else."""
    made = project.values.made_by(module, node)
    return not any(n.endswith("Loss") for n in made) if any(map(makes_module, made)) else None


class Forwards:
    """Answers what the calls of a project compute. `models` are expressions known to be networks."""

    def __init__(self, project: Project, models: list[tuple[Module, ast.expr]]) -> None:
        self._project = project
        self._networks: set[Hashable] = set()
        self._losses = known_losses(project)
        self._memo: dict[Function, Forward] = {}
        self._measuring: dict[ast.AST, bool] = {}
        self._asking: set[ast.expr] = set()
        self.indifferent = Indifferent(project)
        for module, node in models:
            self._mark(module, node)
        for module, node in project.nodes(ast.Attribute):
            if node.attr in EVIDENCE and path(node.value) is not None:
                self._mark_evidence(module, node)

    def _mark(self, module: Module, node: ast.expr) -> None:
        group = self._project.values.group(module, node)
        if group is not None:
            self._networks.add(group)

    def _mark_evidence(self, module: Module, node: ast.Attribute) -> None:
        if node.attr not in ("zero_grad", "state_dict") and not is_kept(module, node):
            self._mark(module, node.value)

    def is_network(self, module: Module, node: ast.expr) -> bool:
        """Tell whether an expression is a network, by use, by class or by name."""
        while isinstance(node, ast.Attribute) and node.attr == "module":
            node = node.value
        if _holds_item(node) and self._project.values.groups(module, node) & self._networks:
            return True
        while isinstance(node, ast.Subscript):
            node = node.value
        dotted = path(node)
        if dotted is None:
            return False
        external, group = (
            self._project.external(module, node),
            self._project.values.group(module, node),
        )
        known = group is not None and group in self._networks
        if external is not None:
            return known and external.partition(".")[0] not in INSTALLED
        if known:
            return True
        tail = dotted.rpartition(".")[2]
        made = made_network(self._project, module, node)
        if made is not None:
            return made
        classes = self._project.instance_classes(module, node)
        if any(map(self._is_module_class, classes)):
            return not CRITERION_NAME.search(tail)
        if classes and all(set(cls.externals()) <= _PLAIN for cls in classes):
            return False
        if group in self._losses:
            return False
        return bool(NETWORK_NAME.search(tail) or NETWORK_LETTER.match(tail))

    def _is_module_class(self, cls: Class) -> bool:
        tails = {base.rpartition(".")[2] for base in cls.externals()}
        return any(
            tail in ("Sequential", "DataParallel") or tail.endswith(("Module", "Model"))
            for tail in tails
        )

    def strength(self, module: Module, node: ast.AST) -> Forward:
        """Return the surest forward among the calls of a statement or expression."""
        best = Forward.NONE
        for part in walk(node):
            if isinstance(part, ast.Call):
                best = max(best, self.call(module, part))
                if best is Forward.NETWORK:
                    break
        return best

    def measures(self, module: Module, node: ast.AST) -> bool:
        """Tell whether a statement or expression computes a loss by a criterion, not by a helper of the project."""
        if node not in self._measuring:
            calls = (part for part in walk(node) if isinstance(part, ast.Call))
            own = (call for call in calls if not self._project.callees(call))
            self._measuring[node] = any(self.call(module, c) >= Forward.CRITERION for c in own)
        return self._measuring[node]

    def may_run(self, module: Module, node: ast.AST) -> bool:
        """Tell whether a statement or expression may run a network: unknown means yes."""
        wanted = (Forward.UNKNOWN, Forward.NETWORK)
        calls = (part for part in walk(node) if isinstance(part, ast.Call))
        return any(self.call(module, part) in wanted for part in calls)

    def takes_gradients(self, module: Module, call: ast.Call) -> bool:
        """Tell whether a call takes gradients by ``torch.autograd.grad``."""
        return takes_gradients(self._project, module, call)

    def call(self, module: Module, call: ast.Call) -> Forward:
        """Tell what one call computes."""
        func = call.func
        first = run_first(self._project, module, call)
        if first is not None:
            return self._run_first(module, first)
        external = self._project.external(module, func)
        if external in _RUN_FIRST and call.args:
            return self._run_first(module, call.args[0])
        held = func.value if isinstance(func, ast.Attribute) else func
        if external is not None and not self.is_network(module, held):
            return _external(external)
        if isinstance(func, ast.Attribute) and self.is_network(module, func.value):
            if self._only_losses(module, func):
                return Forward.CRITERION
            return Forward.NONE if self.keeps_house(call) else Forward.NETWORK
        callees = self._project.callees(call)
        given = run_given(self._project, module, call)
        if any(path(node) and self.is_network(module, node) for node in given):
            return Forward.NETWORK
        if callees:
            later = runs_later(self._project, module, call)
            callees = [callee for callee in callees if callee not in later]
            return max((self._function(f) for f in callees), default=Forward.NONE)
        found = self._called(module, func)
        return self._by_name(module, func) if found is None else found

    def runs_layers(self, module: Module, call: ast.Call) -> bool:
        """Tell whether a call is of a method of a network that runs layers: by what it does, else by its name."""
        func = call.func
        if not isinstance(func, ast.Attribute) or not self.is_network(module, func.value):
            return False
        if self._project.callees(call):
            return self.call(module, call) is Forward.NETWORK
        return func.attr in RUNS_FORWARD

    def _called(self, module: Module, func: ast.expr) -> Forward | None:
        """Tell what calling a value computes: a network, a loss, or a lambda or a partial that holds one."""
        values = self._project.values
        if self.is_network(module, func):
            return Forward.NETWORK
        if any(is_loss_class(name) for name in values.made_by(module, func)):
            return Forward.CRITERION
        if func in self._asking:
            return None  # it holds itself, as in ``parser.add_argument = partial(parser.add_argument)``
        self._asking.add(func)
        found = [self.strength(where, node.body) for where, node in values.written(module, func)]
        for where, made in values.kept_by(module, func):
            external = self._project.external(where, made.args[0])
            kept = _external(external) if external else self._called(where, made.args[0])
            found.append(self._by_name(where, made.args[0]) if kept is None else kept)
        self._asking.remove(func)
        return max(found, default=None)

    def _only_losses(self, module: Module, node: ast.expr) -> bool:
        """Tell whether what an attribute of a network holds is a loss of torch, whatever made it."""
        made = self._project.values.made_by(module, node)
        return bool(made) and all(map(is_loss_class, made))

    def _run_first(self, module: Module, node: ast.expr) -> Forward:
        """Tell what a function computes that ``map`` or its like runs."""
        if isinstance(node, ast.Lambda):
            return self.strength(module, node.body)
        external = self._project.external(module, node)
        if external is not None:
            return _external(external)
        meaning = self._project.resolve(module, node)
        if isinstance(meaning, Function):
            return self._function(meaning)
        found = self._called(module, node)
        return self._by_name(module, node) if found is None else found

    def keeps_house(self, call: ast.Call) -> bool:
        """Tell whether a method of a network runs no forward pass: by what it does, else by its name."""
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        callees = self._project.callees(call)
        module = self._project.module_of(call)
        if only_looks_up(self._project, module, call.func):
            return True
        if holds_module(self._project, module, call.func):
            return False
        if name in KEEPS_HOUSE:
            return not any(self._function(f) is Forward.NETWORK for f in callees)
        if callees and all(map(self.indifferent, callees)):
            return True
        return is_housekeeping(name) and not any(self._computes(f) for f in callees)

    def _computes(self, function: Function) -> bool:
        """Tell whether a method runs a network, or returns something and calls what may be one."""
        if self._function(function) is Forward.NETWORK:
            return True
        node = function.node
        if node is None or not any(isinstance(n, ast.Return) and n.value for n in walk(node)):
            return False
        return any(
            self.call(function.module, part) is Forward.UNKNOWN
            for part in walk(node)
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)
        )

    def _by_name(self, module: Module, func: ast.expr) -> Forward:
        node = func.value if isinstance(func, ast.Subscript) else func
        dotted = path(node)
        if dotted is None:
            return Forward.NONE
        tail = dotted.rpartition(".")[2]
        if CRITERION_NAME.search(tail):
            return Forward.CRITERION
        if isinstance(node, ast.Attribute):
            receivers = self._project.function_of(module, node).receivers
            own = isinstance(node.value, ast.Name) and node.value.id in receivers
            return Forward.UNKNOWN if own and tail not in KEEPS_HOUSE else Forward.NONE
        if tail in _BUILTINS or isinstance(self._project.resolve(module, node), Class):
            return Forward.NONE
        return Forward.UNKNOWN

    def _function(self, function: Function) -> Forward:
        if function in self._memo:
            return self._memo[function]
        self._memo[function] = Forward.NONE
        if function.name == "__init__" or function.node is None:
            return Forward.NONE
        best = Forward.NONE
        for stmt in (s for s in function.node.body if not isinstance(s, SCOPES)):
            best = max(best, self.strength(function.module, stmt))
            if best is Forward.NETWORK:
                break
        best = Forward.NONE if best is Forward.UNKNOWN else best
        self._memo[function] = best
        return best


def _holds_item(node: ast.expr) -> bool:
    """Tell whether an expression leads through an item of a container, as ``held["nets"].model``."""
    return isinstance(bottom(node), ast.Subscript)


def _external(name: str) -> Forward:
    tail = name.rpartition(".")[2]
    if name.startswith("torch.nn.functional."):
        return Forward.CRITERION if is_loss(tail) else Forward.UNKNOWN
    if name.startswith("torch.") and tail in ("matmul", "mm", "bmm", "einsum", "conv2d"):
        return Forward.UNKNOWN
    return Forward.NONE


_BUILTINS = frozenset(dir(__import__("builtins")))
_PLAIN = frozenset({"abc.ABC", "object", "typing.Generic", "typing.Protocol"})
_RUN_FIRST = frozenset(
    {"torch.func.functional_call", "torch.nn.parallel.data_parallel", "torch.nn.utils.stateless.functional_call"}
    | {"torch.utils.checkpoint.checkpoint"}
)  # fmt: skip
