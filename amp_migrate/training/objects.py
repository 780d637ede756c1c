"""The GradScalers, optimizers and networks of a project, told apart by the values that flow between names."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import cached_property

from amp_migrate.facts.paths import all_given, outward
from amp_migrate.project import Module, Project
from amp_migrate.project.relatives import in_class_of
from amp_migrate.training.beliefs import HAND_OUT_PARAMETERS, SCALER_CLASSES
from amp_migrate.training.contexts import is_off, scaling_calls
from amp_migrate.training.gradients.handed_out import bases
from amp_migrate.training.named import Call, Groups, Makers, Optimizer, Results, Scaler, merged
from amp_migrate.values.values import Near

_NONE: Groups = frozenset()
COPY = -1  # the name of a copy of a network that a function makes for itself


class Objects:
    """Finds who is who; asks only in files that speak of native AMP or are called with what they hold."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._values = project.values
        self.results = Results(project)
        self.makers = Makers(project)

    def groups(self, module: Module, node: ast.expr) -> Groups:
        """Return the names that may hold the object of an expression."""
        return self._values.groups(module, node)

    def origins(self, groups: Iterable[int]) -> Groups:
        """Return names with those of what makes their objects anew for each call, as a function that returns one."""
        return self._values.origins(groups)

    def name(self, module: Module, node: ast.expr) -> int | None:
        """Return the name of the one object that an expression holds, whichever that is."""
        return self._values.group(module, node)

    @cached_property
    def method_calls(self) -> dict[str, list[tuple[Module, ast.Call]]]:
        """The calls ``x.method(...)`` of the project by the name of the method."""
        found: dict[str, list[tuple[Module, ast.Call]]] = {}
        for module, call in self._project.nodes(ast.Call):
            if isinstance(call.func, ast.Attribute):
                found.setdefault(call.func.attr, []).append((module, call))
        return found

    @cached_property
    def stored(self) -> dict[str, list[tuple[Module, ast.Attribute, ast.expr]]]:
        """The assignments to attributes by the name of the attribute: module, target and value."""
        found: dict[str, list[tuple[Module, ast.Attribute, ast.expr]]] = {}
        for module, node in self._project.nodes(ast.Attribute):
            if isinstance(node.ctx, ast.Store):
                statement = module.tree.statement(node)
                value = getattr(statement, "value", None)
                if isinstance(value, ast.expr):
                    found.setdefault(node.attr, []).append((module, node, value))
        return found

    @cached_property
    def scalers(self) -> tuple[Scaler, ...]:
        """The GradScalers: what is made as one, and what scales a loss or unscales gradients as one does."""
        held: list[tuple[str, Groups]] = []
        for module, call in self.made_scalers:
            if not is_off(call):
                held.append(("", self.groups(module, call)))
        for module, call in self.method_calls.get("unscale_", []):
            held.append(self._receiver(module, call))
        for module, call in self.method_calls.get("scale", []):
            up = module.tree.parent(call)
            if isinstance(up, ast.Attribute) and up.attr == "backward" and len(call.args) == 1:
                held.append(self._receiver(module, call))
        return tuple(Scaler(n, g, text) for n, (text, g) in enumerate(merged(held)))

    def may_be_off(self, module: Module, node: ast.expr) -> bool:
        """Tell whether an expression may hold a GradScaler that is made to be off."""
        return bool(self._off & self.groups(module, node))

    @cached_property
    def _off(self) -> frozenset[int]:
        made = (self._values.group(m, call) for m, call in self.made_scalers if is_off(call))
        return frozenset(group for group in made if group is not None)

    @cached_property
    def made_scalers(self) -> tuple[tuple[Module, ast.Call], ...]:
        """The calls that make a GradScaler of torch, with their modules."""
        return tuple(
            (module, call)
            for module, call in self._project.nodes(ast.Call)
            if self.makes_scaler(module, call)
        )

    def makes_scaler(self, module: Module, call: ast.Call) -> bool:
        """Tell whether a call makes a GradScaler of torch."""
        return self._project.external(module, call.func) in SCALER_CLASSES

    @cached_property
    def optimizers(self) -> tuple[Optimizer, ...]:
        """The optimizers of torch, and what else GradScalers step or unscale, or Apex scales for: one for each call that makes one."""
        held: list[tuple[str, Groups]] = [("", frozenset({group})) for group in self._makers]
        of_torch = [self.makers.groups[c] for c in self.makers.calls if self.makers.is_of_torch(c)]
        certain = _NONE.union(*of_torch)
        steps: list[tuple[int, Groups]] = []
        for method in ("step", "unscale_"):
            for module, call in self.method_calls.get(method, []):
                assert isinstance(call.func, ast.Attribute)
                scaler = self.scaler(module, call.func.value)
                if scaler is not None and call.args:
                    groups = self._with_class(module, call.args[0])
                    held.append((ast.unparse(call.args[0]), groups))
                    steps.append((scaler, groups))
        held += [*self._scaled_for(), *self._given()]
        found = self._told_apart(held, certain)
        self.results.of({group for optimizer in found for group in optimizer.groups})
        for optimizer in found:
            made = self._makers_alone(self.results.of(optimizer.groups), optimizer.groups)
            self._note_trained(optimizer, made)
            for scaler, groups in steps:
                if optimizer.groups & groups:
                    self.scalers[scaler].optimizers.add(optimizer.number)
        return found

    def _scaled_for(self) -> list[tuple[str, Groups]]:
        """Return what the blocks of Apex name as the optimizer of a loss."""
        named = (
            (module, call.args[1])
            for call, module in scaling_calls(self._project).items()
            if len(call.args) > 1 and self._project.apex(module, call.func)
        )
        held = [(ast.unparse(node), self._with_class(module, node)) for module, node in named]
        return [(text, groups) for text, groups in held if groups]

    def _given(self) -> Iterator[tuple[str, Groups]]:
        """Yield what comes from out of sight and both steps and clears gradients, as only an optimizer does."""
        clears = self.method_calls.get("zero_grad", [])
        cleared = _NONE.union(*(self._called_on(*call) for call in clears))
        for module, call in self.method_calls.get("step", []) if cleared else ():
            groups = self._called_on(module, call)
            if groups & cleared and not call.args and not self._project.callees(call):
                yield self._receiver(module, call)

    def _told_apart(self, held: list[tuple[str, Groups]], certain: Groups) -> tuple[Optimizer, ...]:
        """Return one for each call that makes one; what nothing else speaks of has to be `certain` to be one."""
        found: list[tuple[str, set[int]]] = []
        for text, groups in merged(held):
            made = self._makers & groups
            if len(made) > 1:
                found += [(self._spelt(origin, held) or text, {origin}) for origin in sorted(made)]
            else:
                found.append((text, groups))
        known = [(text, groups) for text, groups in found if text or groups & certain]
        return tuple(Optimizer(n, groups, text) for n, (text, groups) in enumerate(known))

    def _spelt(self, origin: int, held: list[tuple[str, Groups]]) -> str:
        return next((text for text, groups in held if origin in groups), "")

    @cached_property
    def _makers(self) -> set[int]:
        """The names of the optimizers that calls make."""
        return {group for call in self.makers.calls for group in self.makers.groups[call]}

    def scaler(self, module: Module, node: ast.expr) -> int | None:
        """Return the number of the GradScaler that an expression holds."""
        groups = self.groups(module, node)
        return next((s.number for s in self.scalers if s.groups & groups), None)

    def optimizers_of(self, module: Module, node: ast.expr) -> frozenset[int]:
        """Return the numbers of the optimizers that an expression may hold."""
        groups = self.groups(module, node)
        return frozenset(o.number for o in self.optimizers if o.groups & groups)

    def are_made(self, numbers: frozenset[int]) -> bool:
        """Tell whether one of some optimizers is made by a call in sight."""
        return bool(numbers - self.of_unknown_origin)

    @cached_property
    def of_unknown_origin(self) -> frozenset[int]:
        """The numbers of the optimizers that no call in sight makes: any of the others may be one of them."""
        return frozenset(o.number for o in self.optimizers if not o.groups & self._makers)

    def training(self, networks: Iterable[int]) -> frozenset[int] | None:
        """Return the optimizers that may train one of some networks, or are one of them; None where none is known to."""
        wanted = set(networks)
        own = {o.number for o in self.optimizers if o.groups & wanted}
        known = {o.number for o in self.optimizers if (o.networks or set()) & wanted}
        copied = COPY in wanted
        if not known and not own and not copied:
            known = {o.number for o in self.optimizers if o.selves & wanted}
        others = wanted.difference({COPY}, *(o.networks or () for o in self.optimizers))
        if others if copied and known else known or copied:
            known |= {o.number for o in self.optimizers if o.networks is None}
        return frozenset(known | own) if known or own or copied else None

    def owners(self, module: Module, node: ast.AST) -> set[int]:
        """Return the names of what an expression takes parameters from: ``net`` of ``net.parameters()``."""
        return {group for base in bases(module, node, set()) for group in self.groups(module, base)}

    def trained_at(self, module: Module, node: ast.expr) -> Groups:
        """Return the names that may hold the object of an expression; none where no optimizer can train that."""
        return self.groups(module, node) if self.may_be_trained(module, node) else frozenset()

    @cached_property
    def trained(self) -> Groups:
        """The names of the networks that optimizers are known to train."""
        return frozenset(name for o in self.optimizers for name in o.networks or ())

    @cached_property
    def may_be_trained(self) -> Near:
        """Tells, quickly and never wrongly no, whether an optimizer may train what an expression holds."""
        return self._values.near(self.trained)

    def is_network(self, module: Module, node: ast.expr) -> bool:
        """Tell whether parameters are taken of what an expression holds, or an optimizer trains it."""
        return bool(self._parents & self.groups(module, node))

    @cached_property
    def _parents(self) -> set[int]:
        """The names of what ``parameters()`` and the like are called on."""
        found: set[int] = set()
        for method in HAND_OUT_PARAMETERS:
            for module, call in self.method_calls.get(method, []):
                assert isinstance(call.func, ast.Attribute)
                found |= self.groups(module, call.func.value)
        return found

    def reads_each(self, module: Module, node: ast.AST) -> bool:
        """Tell whether an expression takes parameters of several networks, each known by itself."""
        from_each = bases(module, node, set())
        owners = [self.training(self.groups(module, base)) for base in from_each]
        return bool(owners) and all(o is not None and len(o) == 1 for o in owners)

    def _receiver(self, module: Module, call: ast.Call) -> tuple[str, Groups]:
        assert isinstance(call.func, ast.Attribute)
        return ast.unparse(call.func.value), self._called_on(module, call)

    def _called_on(self, module: Module, call: ast.Call) -> Groups:
        assert isinstance(call.func, ast.Attribute)
        return self._with_class(module, call.func.value)

    def _with_class(self, module: Module, node: ast.expr) -> Groups:
        """Return the names of an object, and those that the attribute has in the class of what holds it, whatever made that."""
        stored = self.stored.get(node.attr, ()) if isinstance(node, ast.Attribute) else ()
        own = in_class_of(self._project, module, node, [(m, target) for m, target, _ in stored])
        return self.groups(module, node).union(*(self.groups(m, target) for m, target in own))

    def _makers_alone(self, calls: list[Call], groups: AbstractSet[int]) -> list[Call]:
        """Return those of the calls that give an optimizer which are not given it; all of them where there are none."""
        return [call for call in calls if not self._is_given(*call, groups)] or calls

    def _is_given(self, module: Module, call: ast.Call, groups: AbstractSet[int]) -> bool:
        """Tell whether a call gets an optimizer, by itself or in a list that stands there."""
        return any(
            groups & self.groups(module, part)
            for argument in all_given(call)
            for part in (
                argument.elts if isinstance(argument, ast.List | ast.Tuple) else [argument]
            )
        )

    def _note_trained(self, optimizer: Optimizer, made: list[Call]) -> None:
        """Note the networks whose parameters the calls get that made an optimizer, and what those are parts of."""
        found: set[int] = set()
        around: set[int] = set()
        for module, call in made:
            given = [base for node in all_given(call) for base in bases(module, node, set())]
            own = (self._values.with_receivers(module, base) for base in given)
            for networks, selves in (*self.makers.networks(module, call), *own):
                found |= networks
                optimizer.selves |= selves
            for base in given:
                for part in outward(base):
                    around |= self.groups(module, part)
                    name = self.name(module, part)
                    optimizer.inside |= set() if name is None else {name}
        optimizer.networks, optimizer.within = found or None, around - found

    def around(self, numbers: frozenset[int]) -> frozenset[int]:
        """Return the optimizers of the networks that some optimizers train, or of which those are parts."""
        named = [o for o in self.optimizers if o.number in numbers]
        shared = {g for o in named for g in (*o.within, *(o.networks or ()))}
        return frozenset(o.number for o in self.optimizers if (o.networks or set()) & shared)

    def made_in(self, number: int) -> set[Module]:
        """Return the files that make an optimizer, none if no call in sight does."""
        own = self.optimizers[number].groups
        return {m for call, m in self.makers.calls.items() if self.makers.groups[call] & own}

    def made(self, call: ast.Call) -> frozenset[int]:
        """Return the numbers of the optimizers of torch, or of a class of the project, that a call makes."""
        groups = self.makers.made(call)
        return frozenset(o.number for o in self.optimizers if o.groups & groups)
