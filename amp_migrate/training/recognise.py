"""Finds the events of a project's trainings: one recogniser for each kind of event."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from amp_migrate.facts.paths import all_given, argument, is_super
from amp_migrate.flow.cfg.build import Graphs
from amp_migrate.project import Function, Module, Project
from amp_migrate.training.beliefs import RUNS_NO_FORWARD
from amp_migrate.training.bindings import base_made
from amp_migrate.training.events import Event, Kind, joined, sharing
from amp_migrate.training.forwards.classes import holds_module
from amp_migrate.training.forwards.sharing import Sharing
from amp_migrate.training.gradients.changed import is_put, named
from amp_migrate.training.gradients.handed_out import bases, one_name
from amp_migrate.training.gradients.kept import KEEPING
from amp_migrate.training.gradients.magnitude import scaled_by
from amp_migrate.training.gradients.used import Gradients, absent, clips, takes_gradient
from amp_migrate.training.gradients.whole import Whole, reads_of
from amp_migrate.training.happening import Happening
from amp_migrate.training.named import sets_scale
from amp_migrate.training.objects import Objects
from amp_migrate.training.origins.losses import Losses
from amp_migrate.training.origins.reaching import Body, optimizers_read
from amp_migrate.training.reads.fresh import Fresh
from amp_migrate.training.reads.named_methods import NamedMethods
from amp_migrate.training.reads.own import Own
from amp_migrate.training.reads.parts import Parts
from amp_migrate.training.reads.refusing import RECORDS, Refusing
from amp_migrate.training.reads.runs import Runs
from amp_migrate.training.reads.unseen import Unseen, is_known
from amp_migrate.training.reads.writes import Writes, Writing
from amp_migrate.training.steps import runs_backward
from amp_migrate.values.objects import Method

Recogniser = Callable[[Function, ast.Call], Iterator[Event]]


class Training(Happening):
    """The events of a project, by function and node; found when first asked for."""

    def __init__(self, project: Project, graphs: Graphs, body: Body | None = None) -> None:
        """Read a project; `body` tells in which function or lambda a node is evaluated."""
        super().__init__(project, body or project.function_of)
        self.objects = Objects(project)
        self.losses = Losses(project, graphs, self.objects, self._body)
        self._gradients = Gradients(project)
        self._unseen = Unseen(project, self.objects, self.losses, Fresh(project, graphs))
        self._refusing = Refusing(project, self.objects)
        self._writes = Writes(project, self.objects)
        self._runs = Runs(project, self.objects, self._writes)
        self._parts = Parts(project, self.objects)
        self.named_methods = NamedMethods(project, self.losses.reached)
        self.sharing = Sharing(project, self.objects)
        self._whole = Whole(self.objects)
        self.own = Own(project, self.objects)
        self._methods: dict[str, Recogniser] = {
            "backward": self._backward,
            "step": self._step,
            "unscale_": self._unscale,
            "update": self._update,
            "load_state_dict": self._loaded,
            "zero_grad": self._cleared,
        }

    def _events(self, function: Function, node: Writing) -> Iterator[Event]:
        for gradient, name in named(function.module, node):
            yield from self._changed(function, node, gradient, name)
        if not isinstance(node, ast.Call):
            if isinstance(node, ast.Attribute) and node.attr == "grad":
                yield from self._grad(function, node)
            elif (written := self._writes.of(function.module, node)) is not None:
                yield Event(Kind.WEIGHT_WRITE, node, **written._asdict())
            return
        if methods := self.named_methods.run(function, node):
            yield from joined(e for method in methods for e in self._by_method(node, method))
        elif isinstance(node.func, ast.Attribute) and node.func.attr in self._methods:
            yield from self._methods[node.func.attr](function, node)
        else:
            yield from self._called(function, node)

    def absent(self, function: Function, test: ast.expr, truth: bool) -> Event | None:
        """Return that a gradient is not there, where the outcome of a test says so."""
        asked = absent(test)
        if asked is None or asked[1] is not truth:
            return None
        owners = self.objects.owners(function.module, asked[0].value)
        return Event(Kind.ABSENT, asked[0], self.objects.training(owners))

    def _backward(self, function: Function, call: ast.Call) -> Iterator[Event]:
        assert isinstance(call.func, ast.Attribute)
        loss: ast.expr = call.func.value
        if runs_backward(self.project, function.module, call):
            tensors = argument(call, "tensors", 0)
            if tensors is None:
                return
            loss = tensors
        elif self.project.callees(call) or is_super(loss):
            return
        elif call.args and self.losses.networks(function, call.args[0]):
            return  # an engine that is given the loss: what it does with the scale is its own
        scaled = self.losses.scaled(function, loss)
        reached = self.objects.training(self.losses.networks(function, loss))
        given = argument(loss, "outputs", 0) if scaled and isinstance(loss, ast.Call) else None
        named = loss if given is None else given
        name = named.id if isinstance(named, ast.Name) else None
        yield Event(Kind.BACKWARD, call, reached, None, scaled, loss=name)

    def _by_method(self, call: ast.Call, method: Method) -> Iterator[Event]:
        """Yield what a call does by a method that another expression spells."""
        function = self._body(method.module, method.node)
        by = self._step if method.node.attr == "step" else self._cleared
        yield from by(function, call, method.node)

    def _step(
        self, function: Function, call: ast.Call, method: ast.expr | None = None
    ) -> Iterator[Event]:
        by = method or call.func
        assert isinstance(by, ast.Attribute)
        module = function.module
        scaler = self.objects.scaler(module, by.value)
        stepped = argument(call, "optimizer", 0)
        if scaler is not None and stepped is not None:
            where = self._body(self.project.module_of(call), call)
            optimizers = self._optimizers(where, stepped)
            unsure = self._is_unsure(module, call, by)
            yield Event(Kind.STEP, call, optimizers, scaler, unsure=unsure)
        elif scaler is None and not self.project.callees(call):
            optimizers = self._held(function, by.value) or None
            yield Event(Kind.STEP if optimizers else Kind.OTHER_STEP, call, optimizers)

    def _unscale(self, function: Function, call: ast.Call) -> Iterator[Event]:
        assert isinstance(call.func, ast.Attribute)
        scaler = self.objects.scaler(function.module, call.func.value)
        unscaled = argument(call, "optimizer", 0)
        if scaler is not None and unscaled is not None:
            optimizers = self._optimizers(function, unscaled)
            unsure = self._is_unsure(function.module, call, call.func)
            yield Event(Kind.UNSCALE, call, optimizers, scaler, unsure=unsure)

    def _is_unsure(self, module: Module, call: ast.Call, by: ast.Attribute) -> bool:
        """Tell whether a method of a GradScaler may be one that is off, or of a class that stands in for torch's."""
        return bool(self.project.callees(call)) or self.objects.may_be_off(module, by.value)

    def _optimizers(self, function: Function, node: ast.expr) -> frozenset[int] | None:
        return self._held(function, node) or None

    def _read(self, function: Function, subject: ast.expr) -> frozenset[int] | None:
        """Return the optimizers of the parameters that an expression gives."""
        owners = list(bases(function.module, subject, set()))
        known = self.objects.training(self.objects.owners(function.module, subject))
        held = [self._held(function, base) for base in owners]
        told = frozenset().union(*held) if owners and all(held) else known
        return (known & told or known) if known and told else known

    def _held(self, function: Function, node: ast.expr) -> frozenset[int]:
        return optimizers_read(self.objects, self.losses.reached, function, node)

    def _update(self, function: Function, call: ast.Call) -> Iterator[Event]:
        assert isinstance(call.func, ast.Attribute)
        scaler = self.objects.scaler(function.module, call.func.value)
        if scaler is not None:
            kind = Kind.SET_SCALE if sets_scale(call) is not None else Kind.UPDATE
            unsure = self._is_unsure(function.module, call, call.func)
            yield Event(kind, call, None, scaler, unsure=unsure)
        elif holds_module(self.project, function.module, call.func):
            yield from self._called(function, call)

    def _loaded(self, function: Function, call: ast.Call) -> Iterator[Event]:
        """A state with another loss scale sets that."""
        yield from (self._called if sets_scale(call) is None else self._update)(function, call)

    def _cleared(
        self, function: Function, call: ast.Call, method: ast.expr | None = None
    ) -> Iterator[Event]:
        """Yield that a call clears gradients, by a method that a function spells."""
        by = method or call.func
        assert isinstance(by, ast.Attribute)
        named = self._held(function, by.value)
        own = bool(self.project.callees(call))
        if is_super(by.value) or (own and not self.objects.are_made(named)):
            return
        groups = self.objects.groups(function.module, by.value)
        cleared = named or self.objects.training(groups)
        if named:
            cleared = named | self.objects.around(named) | self.objects.of_unknown_origin
        yield Event(Kind.ZERO_GRAD, call, cleared or None, beside=own)

    def _called(self, function: Function, call: ast.Call) -> Iterator[Event]:
        module = function.module
        name = self.project.external(module, call.func)
        if made := self.objects.made(call):
            yield from (Event(Kind.MAKE, call, frozenset({number})) for number in sorted(made))
        elif self.objects.makes_scaler(module, call):
            yield Event(Kind.MAKE_SCALER, call, None, self.objects.scaler(module, call))
        elif clips(self.project, module, call) and not self.project.callees(call):
            subject = call.args[0] if call.args else call
            by = scaled_by(self.project, module, call)
            read = Event(
                Kind.READ_GRAD,
                call,
                self._read(function, subject),
                assumed=name is None,
                each=self.objects.reads_each(module, subject),
                network=one_name(module, subject),
                scaled=by is not None and self.objects.scaler(module, by) is not None,
            )
            yield from reads_of(read, self._whole.optimizers(module, subject))
        elif takes_gradient(call):
            yield from self._named_gradient(function, call)
        elif name == "torch.clear_autocast_cache":
            yield Event(Kind.CLEAR_CASTS, call)
        elif self._refusing.runs(function, call, name):
            yield Event(Kind.REFUSES_CASTS, call)
        else:
            if name in RECORDS:
                yield Event(Kind.RECORDS, call)
            yield from self._forward(function, call)
            name = name or base_made(function, call)
            yield from self._handed(function, call, name)
            given = self._unseen.given(function, call, name)
            held = self._unseen.optimizers(function, call, name) if not given else set()
            read_of = self.objects.training(given) if given else frozenset(held)
            if (given or held) and call not in self.losses.computing:
                yield Event(Kind.READ_GRAD, call, read_of, assumed=True)
            elif (written := self._writes.of(module, call)) is not None:
                yield Event(Kind.WEIGHT_WRITE, call, **written._asdict())
            if any(ran := self._runs.of(function, call, name)):
                yield Event(Kind.RUNS_WRITTEN, call, **ran._asdict())

    def _named_gradient(self, function: Function, call: ast.Call) -> Iterator[Event]:
        """Yield that ``getattr(p, "grad")`` reads a gradient."""
        if self._gradients.taken(function, call):
            owners = self.objects.owners(function.module, call.args[0])
            yield Event(Kind.READ_GRAD, call, self.objects.training(owners))

    def _handed(self, function: Function, call: ast.Call, name: str | None) -> Iterator[Event]:
        """Yield that code out of sight is given a GradScaler or an optimizer, with which it may do anything."""
        if self.project.callees(call) or is_known(call, name):
            return
        module = function.module
        arguments = all_given(call)
        scalers = [self.objects.scaler(module, given) for given in arguments]
        elsewhere = name is not None or any(scaler is not None for scaler in scalers)
        for given, scaler in zip(arguments, scalers, strict=True):
            optimizers = self.objects.optimizers_of(module, given)
            if (scaler is not None or optimizers) and not self._unseen.steps_nothing(
                function, call
            ):
                yield Event(Kind.HANDED, call, optimizers or None, scaler, assumed=elsewhere)

    def _forward(self, function: Function, call: ast.Call) -> Iterator[Event]:
        module, network = function.module, call.func
        named, part = network, False
        if isinstance(network, ast.Attribute):
            if network.attr in RUNS_NO_FORWARD and not self.project.callees(call):
                return
            part = self.objects.name(module, network) is None
            named = network.value if part else network
        groups = self.objects.trained_at(module, named)
        known = [o for o in self.objects.optimizers if not groups.isdisjoint(o.networks or ())]
        shared = self.sharing.networks(module, network)
        own = bool(known or any(shared)) and self.own.is_own(function, network)
        if known:
            numbers = frozenset(o.number for o in known)
            yield Event(Kind.FORWARD, call, numbers, networks=groups, assumed=part, own=own)
        if any(shared):
            yield sharing(call, *shared, own)
        if not known and any(held := self.sharing.run(function, call)):
            alone = held == self.sharing.given(function, network)
            yield sharing(call, *held, alone and self.own.is_own(function, network))
        if run := self._parts.run(function, call):
            yield Event(Kind.PART, call, networks=run)

    def _grad(self, function: Function, node: ast.Attribute) -> Iterator[Event]:
        owners = self.objects.owners(function.module, node.value)
        up = function.module.tree.parent(node) if isinstance(node.ctx, ast.Store) else None
        if isinstance(up, ast.Assign) and self.losses.scaled(function, up.value):
            yield Event(Kind.BACKWARD, node, self.objects.training(owners), None, True)
            return
        use = self._gradients.use(function, node)
        if use == "read":
            name = one_name(function.module, node.value)
            read = Event(Kind.READ_GRAD, node, self.objects.training(owners), network=name)
            yield from reads_of(read, self._whole.in_turn(function.module, node, node.value))
        elif use in KEEPING or (use is not None and not self._whole.is_part(function.module, node)):
            yield Event(KEEPING.get(use, Kind.ZERO_GRAD), node, self.objects.training(owners))
        yield from self._changed(function, node, node, node)

    def _changed(
        self, function: Function, node: Writing, gradient: ast.Attribute, name: ast.expr
    ) -> Iterator[Event]:
        """Yield that a gradient, or a name that holds it, is changed at a node."""
        if self._gradients.is_changed(function, gradient, name):
            kind = Kind.PUT_GRAD if is_put(function.module, name) else Kind.CHANGE_GRAD
            owners = self.objects.owners(function.module, gradient.value)
            yield Event(kind, node, self.objects.training(owners))
