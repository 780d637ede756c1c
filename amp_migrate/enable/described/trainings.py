"""The FP32 trainings of a project: the optimizers that one run ties together, and the backward passes that feed them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from amp_migrate.facts.paths import argument
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.reach import run_around
from amp_migrate.project.relatives import family
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.beliefs import AUTOCASTS, SCALER_CLASSES
from amp_migrate.training.events import Event, Kind
from amp_migrate.training.optimizers import Optimizer, Optimizers
from amp_migrate.training.steps import runs_backward


@dataclass(eq=False)
class Backward:
    """A backward pass: `loss` is what it runs on, `optimizers` those that its gradients may feed.

    `names` are those optimizers as they can be read where it runs.
    """

    module: Module
    function: Function
    call: ast.Call
    loss: ast.expr
    optimizers: tuple[Optimizer, ...]
    names: tuple[str, ...]


@dataclass(eq=False)
class Training:
    """Optimizers that share backward passes, with those passes; `native` tells that it has AMP already."""

    optimizers: list[Optimizer] = field(default_factory=list)
    backwards: list[Backward] = field(default_factory=list)
    native: bool = False

    @property
    def modules(self) -> list[Module]:
        """The files in which an optimizer is made or a backward runs."""
        made = [optimizer.module for optimizer in self.optimizers]
        return list(dict.fromkeys([*made, *(backward.module for backward in self.backwards)]))


class Trainings:
    """Finds the trainings of a project. `lost` are the backward passes of which no optimizer is known."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.program = program_of(project)
        self.optimizers = Optimizers(project, self.program.training.objects)
        self.lost: list[tuple[Module, ast.Call]] = []
        self._native = {module for module in project.modules.values() if self._is_native(module)}
        self.every = self._found()

    @property
    def steps(self) -> bool:
        """Whether anything is told to step."""
        return bool(self.program.training.objects.method_calls.get("step"))

    def _found(self) -> tuple[Training, ...]:
        of: dict[Optimizer, Training] = {}
        scaled: set[Optimizer] = set()
        for function, event in self._backwards():
            backward = self._read(function, event)
            if backward is None:
                continue
            if not backward.optimizers:
                self.lost.append((backward.module, backward.call))
                continue
            joined = _joined(of, backward.optimizers)
            joined.backwards.append(backward)
            if event.scaled is not False:
                scaled.update(backward.optimizers)
        found = tuple(dict.fromkeys(of[o] for o in self.optimizers.every if o in of))
        for training in found:
            training.native = bool(
                scaled.intersection(training.optimizers)
                or self._native.intersection(training.modules)
                or self._native.intersection(self._run_with(training))
            )
        return found

    def _run_with(self, training: Training) -> set[Module]:
        """Return the files of the functions that the programs run in which a training runs a backward."""
        run = run_around(self.project, *(b.function for b in training.backwards))
        return {f.module for f in run}

    def _backwards(self) -> Iterator[tuple[Function, Event]]:
        for function, held in self.program.training.by_function.items():
            for events in held.values():
                for event in events:
                    if event.kind is Kind.BACKWARD and isinstance(event.node, ast.Call):
                        yield function, event

    def _read(self, function: Function, event: Event) -> Backward | None:
        call = event.node
        assert isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
        module = function.module
        loss: ast.expr = call.func.value
        if runs_backward(self.project, module, call):
            loss = argument(call, "tensors", 0) or loss
        stepped = list(self._stepped(function))
        fed = self._fed(function, loss, {o for o, _ in stepped})
        names = [text for o, text in stepped if o in fed]
        names += [o.name for o in fed if o.name and self._readable(o, function)]
        return Backward(module, function, call, loss, tuple(fed), tuple(dict.fromkeys(names)))

    def _fed(self, function: Function, loss: ast.expr, stepped: set[Optimizer]) -> list[Optimizer]:
        """Return the optimizers that a backward feeds: of the networks behind its loss, else those that step beside it.

        `stepped` are those that the function of the backward steps itself.
        """
        networks = self.program.training.losses.networks(function, loss)
        every = self.optimizers.every
        reached = [o for o in every if o.trains & networks]
        beside = [o for o in every if o in stepped]
        both = [o for o in reached if o in beside]
        alone = list(every) if len(every) == 1 else []
        return both or reached or beside or alone or self._around(function)

    def _around(self, function: Function) -> list[Optimizer]:
        """Return the optimizers that the programs step in which a function runs."""
        run = run_around(self.project, function)
        found = {o for f in run for o, _ in self._stepped(f)}
        return [o for o in self.optimizers.every if o in found]

    def _stepped(self, function: Function) -> Iterator[tuple[Optimizer, str]]:
        """Yield the optimizers that a function steps, as it calls them."""
        for module, call in self.program.training.objects.method_calls.get("step", ()):
            if module is function.module and isinstance(call.func, ast.Attribute):
                if self.project.function_of(module, call) is function:
                    held = call.func.value
                    text = module.tree.segment(held)
                    yield from ((o, text) for o in self.optimizers.stepped(module, held))

    def _readable(self, optimizer: Optimizer, function: Function) -> bool:
        """Tell whether a function can read the name that an optimizer is given."""
        held = optimizer.function
        if held is function or (held.node is None and held.module is function.module):
            return True
        base, _, inner = (optimizer.name or "").partition(".")
        attribute = bool(inner) and base in {*held.receivers} & {*function.receivers}
        own, cls = function.class_around, held.class_around
        return attribute and own is not None and cls is not None and own in family(cls)

    def _is_native(self, module: Module) -> bool:
        """Tell whether a file uses native AMP."""
        return any(
            self.project.external(module, call.func) in AUTOCASTS | SCALER_CLASSES
            for call in module.tree.nodes(ast.Call)
        )


def _joined(of: dict[Optimizer, Training], optimizers: Iterable[Optimizer]) -> Training:
    """Put optimizers into one training, with all that shares one of theirs."""
    joined = Training()
    for optimizer in optimizers:
        old = of.get(optimizer) or Training([optimizer])
        for other in old.optimizers:
            of[other] = joined
        joined.optimizers += [o for o in old.optimizers if o not in joined.optimizers]
        joined.backwards += [b for b in old.backwards if b not in joined.backwards]
    return joined
