"""Which calls of the old text run a network that Apex touched, or compute a loss: what casts must agree on."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from amp_migrate.check.apex.assumed import Initialize
from amp_migrate.check.apex.multiplying import Multiplying
from amp_migrate.check.casts.callables import Callables, spelled
from amp_migrate.check.casts.computing.measures import LOSSES, is_loss, is_measure, is_widened
from amp_migrate.check.casts.computing.widened import Widened
from amp_migrate.check.casts.results import handed_back
from amp_migrate.check.events.labels import Does, Labels
from amp_migrate.facts.below import children
from amp_migrate.facts.closure import spread
from amp_migrate.facts.paths import all_given, argument, tail
from amp_migrate.project import Function, Module
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.beliefs import (
    HAND_OUT_PARAMETERS,
    METHODS_WITHOUT_CASTS,
    RUN_IN_HALF,
    RUNS_FORWARD,
    RUNS_NO_FORWARD,
)
from amp_migrate.training.forwards.classes import run_given
from amp_migrate.training.forwards.forwards import is_housekeeping
from amp_migrate.training.forwards.holders import copied_by, holders
from amp_migrate.training.forwards.indifferent import only_looks_up
from amp_migrate.training.gradients.handed_out import bases
from amp_migrate.training.initialized.on_cpu import runs_on_cpu
from amp_migrate.training.types.compiled import is_compiled
from amp_migrate.training.types.factors import factors
from amp_migrate.training.types.settled import RETYPES

_OF_TENSORS = frozenset(
    {
        "clone", "contiguous", "cpu", "cuda", "detach", "double", "expand", "flatten", "float", "item", "items", "long",
        "numel", "numpy", "permute", "repeat", "reshape", "size", "squeeze", "to", "tolist", "transpose", "unsqueeze",
        "values", "view",
    }
)  # fmt: skip
_RUNS_NOTHING = HAND_OUT_PARAMETERS | RUNS_NO_FORWARD | METHODS_WITHOUT_CASTS
METHODS = frozenset({"addmm", "addmv", "addr", "baddbmm", "bmm", "matmul", "mm", "mv"})
PRODUCTS = frozenset(
    {
        "torch.addbmm",
        *(f"torch.{name}" for name in METHODS),
        *(f"torch.nn.functional.{name}" for name in RUN_IN_HALF if name.startswith("conv")),
        "torch.nn.functional.linear",
    }
)


class Networks:
    """Tells forwards and losses of the old text."""

    def __init__(self, program: Program, labels: Labels, every: Sequence[Initialize]) -> None:
        self._program = program
        self._project = program.project
        self._objects = program.training.objects
        self._labels = labels
        self._every = every
        self._found: dict[Function, set[str]] = {}
        self._forward: dict[Function, set[str]] = {}
        self._multiplying = Multiplying(program, every)
        self._widened = Widened(program.project, program.training.losses)

    @cached_property
    def groups(self) -> frozenset[int]:
        """The names of networks that are initialized or trained, and of their copies."""
        found: set[int] = set()
        for optimizer in self._objects.optimizers:
            found |= optimizer.networks or set()
        for item in self._every:
            given = argument(item.call, "models", 0)
            parts = given.elts if isinstance(given, ast.List | ast.Tuple) else [given]
            for part in parts:
                if part is not None:
                    found |= self._objects.groups(item.function.module, part)
        returning = [item.function for item in self._every]
        found |= handed_back(self._project, self._objects, frozenset(found), returning)
        return frozenset(found | set(self._copies(found)))

    @property
    def only_given(self) -> bool:
        """Tell whether Apex cast the networks that it was given, and no product elsewhere."""
        return self._multiplying.only_given

    @cached_property
    def running(self) -> frozenset[int]:
        """The names of those, and of what was made of them out of sight."""
        modules = self._project.modules.values()
        return self.groups | holders(self._project, modules, self._objects, {*self.groups})

    @cached_property
    def _bare(self) -> frozenset[int]:
        """The names of those networks, and of what code out of sight hands back of one alone."""
        modules, known = self._project.modules.values(), {*self.groups}
        return self.groups | holders(self._project, modules, self._objects, known, alone=True)

    @cached_property
    def _callables(self) -> Callables:
        holding = self.running - self.groups
        return Callables(self._project, self._objects, self.running, holding)

    def _held(self, module: Module, node: ast.expr) -> frozenset[int]:
        return self._objects.origins(self._objects.groups(module, node))

    def _are_running(self, networks: Iterable[int]) -> bool:
        return bool(self._objects.origins(networks) & self.running)

    def _copies(self, networks: set[int]) -> Iterator[int]:
        for module, call in self._project.nodes(ast.Call):
            for origin, node in copied_by(self._project, module, call):
                if self._objects.groups(origin, node) & networks:
                    yield from self._objects.groups(module, call)

    def methods(self, function: Function) -> set[str]:
        """Return how a function calls methods of initialized networks that may run parts of them."""
        module = function.module
        return {
            spelled(c)
            for c in self._program.graph(function).calls
            if isinstance(c.func, ast.Attribute)
            if c.func.attr not in _RUNS_NOTHING and not self._project.callees(c)
            if self._held(module, c.func.value) & self.groups
            if not only_looks_up(self._project, module, c.func)
        }

    def texts(self, function: Function) -> set[str]:
        """Return how a function runs networks and computes losses."""
        if function not in self._found:
            self._found[function] = {spelled(c) for c in self._runs(function)}
        return self._found[function]

    def forwards(self, function: Function) -> set[str]:
        """Return how a function runs networks."""
        if function not in self._forward:
            self._forward[function] = {
                spelled(c)
                for c in self._program.graph(function).calls
                if self._is_forward(function.module, c)
            }
        return self._forward[function]

    def _runs(self, function: Function) -> Iterator[ast.Call]:
        module = function.module
        if is_compiled(self._project, function):
            return
        for call in self._program.graph(function).calls:
            casts = self._is_forward(module, call) or self._measures(function, call)
            if casts or self._halves(function, call):
                yield call
            elif self._is_backward(function, call):
                yield from self._losses(function, call)

    def _is_backward(self, function: Function, call: ast.Call) -> bool:
        label = self._labels.of_call(function, call)
        return label is not None and label.kind == Does.BACKWARD.value

    def _is_forward(self, module: Module, call: ast.Call) -> bool:
        on_cpu = runs_on_cpu(self._project, self._program.training.losses, module, call)
        if on_cpu or only_looks_up(self._project, module, call.func):
            return False
        if self._callables.run(module, call) or self._multiplying.is_layer(module, call):
            return True
        if self._multiplying.is_network(module, call):
            return True
        if self._project.callees(call):
            return False  # what it runs is asked there
        if any(self._held(module, g) & self.groups for g in run_given(self._project, module, call)):
            return True
        if not isinstance(call.func, ast.Attribute):
            return False
        held = self._held(module, call.func.value)
        if call.func.attr in RUNS_FORWARD and held & self.groups:
            return True
        return bool(held & self._bare) and _may_run_part(module, call, call.func.attr)

    def _losses(self, function: Function, backward: ast.AST) -> Iterator[ast.Call]:
        """Yield the calls of torch that compute the loss of a backward, in the function itself."""

        def onward(part: ast.AST) -> Iterator[ast.AST]:
            yield from children(part)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                yield from self._labels.values_of(function, part)

        for part in spread([backward], onward):
            if isinstance(part, ast.Call) and is_loss(self._project, function.module, part.func):
                if not self.prepares(function, part):
                    yield part

    def prepares(self, function: Function, call: ast.Call) -> bool:
        """Tell whether a function that O1 ran in fp32, or as it came, gets no output of a network as that gave it: casts change nothing."""
        name = self._project.external(function.module, call.func)
        if name is None or not call.args or name.rpartition(".")[2] in RUN_IN_HALF:
            return False
        if self._halves(function, call) or self._is_forward(function.module, call):
            return False
        calls, given = self._program.training.losses.calls, all_given(call)
        return all(self._is_plain(made) for a in given for made in calls(function, a, cast=True))

    def prepares_in(self, functions: Iterable[Function], call: ast.Call) -> bool:
        """Tell whether a loss in one of some functions is computed of no network's output, though its like is elsewhere."""
        body = self._program.calls.body
        held = (f for f in functions if call in f.module.tree.parents)
        return any(self.prepares(body(f.module, call), call) for f in held)

    def _is_plain(self, call: ast.Call) -> bool:
        """Tell whether a call runs no network by itself: one of torch, a builtin, or a function that is looked into."""
        if self._project.callees(call):
            return True
        name = self._project.external(self._project.module_of(call), call.func)
        if name is not None:
            return name.startswith("torch.") and not name.startswith(LOSSES)
        if isinstance(call.func, ast.Attribute):
            return call.func.attr in _OF_TENSORS
        return isinstance(call.func, ast.Name) and hasattr(builtins, call.func.id)

    def _measures(self, function: Function, call: ast.Call) -> bool:
        """Tell whether a call computes a loss of what an initialized network gave: halves, where casts were on."""
        if self._is_measured_by(function, call):
            return self._are_of_network(
                self._program.calls.body(function.module, call), all_given(call)
            )
        kept = self._project.values.kept_by(function.module, call.func)
        if not is_measure(self._project, function.module, call.func) and not any(
            is_measure(self._project, where, made.args[0]) for where, made in kept
        ):
            return False
        return any(
            self._are_of_network(self._program.calls.body(where, one), arguments)
            for where, one, arguments in (
                (function.module, call, all_given(call)),
                *((where, made, all_given(made)[1:]) for where, made in kept),
            )
        )

    def _is_measured_by(self, function: Function, call: ast.Call) -> bool:
        """Tell whether a module of the project is called whose forward computes losses of torch, and not in fp32 by hand."""
        return any(
            is_measure(self._project, method.module, part.func)
            and not all(is_widened(self._labels, method, given) for given in all_given(part))
            for method in self._project.methods(function.module, call.func, "forward")
            for part in self._program.graph(method).calls
        )

    def _halves(self, function: Function, call: ast.Call) -> bool:
        """Tell whether a call multiplies what an initialized network gave, which was made fp32."""
        if self.only_given:
            return False
        given = factors(self._project, function.module, call, PRODUCTS, METHODS)
        return given is not None and self.halves(function, call, given)

    def halves(self, function: Function, product: ast.AST, factors: list[ast.expr]) -> bool:
        """Tell whether a product is one of weights in a loss, or of what an initialized network gave, which was made fp32.

        O1 made its factors fp16, whatever they are.
        """
        networks = self._program.training.losses.networks
        of_weights = any(any(bases(function.module, given, set())) for given in factors)
        return (of_weights and product in self._program.training.losses.computing) or any(
            self._are_running(networks(function, given, factor=True))
            and not self._are_running(networks(function, given, cast=True))
            for given in factors
        )

    def stays_wide(self, function: Function, factor: ast.expr) -> bool:
        """Tell whether a factor is what an initialized network gave, made fp32 on its way, and no other type since."""
        losses = self._program.training.losses
        if not self._are_running(losses.networks(function, factor, factor=True)):
            return False
        if self._are_running(losses.networks(function, factor, cast=True)):
            return False
        calls = losses.calls(function, factor, cast=False)
        return not any(tail(call) in RETYPES for call in calls)

    def _are_of_network(self, function: Function, arguments: list[ast.expr]) -> bool:
        """Tell whether an argument is what an initialized network gave, not made fp32 since."""
        losses = self._program.training.losses
        given = (
            a
            for a in arguments
            if not is_widened(self._labels, function, a) and not self._widened(function, a)
        )
        return any(self._are_running(losses.networks(function, a, cast=True)) for a in given)


def _may_run_part(module: Module, call: ast.Call, name: str) -> bool:
    """Tell whether a method of a network, out of sight, may run layers on what it is given: its name says nothing else."""
    if isinstance(module.tree.parent(call), ast.Expr) or not all_given(call):
        return False
    return not is_housekeeping(name) and name not in _RUNS_NOTHING
