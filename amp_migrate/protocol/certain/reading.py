"""Reads a project for what its native code certainly does against the protocol, with the way that leads there."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

from amp_migrate.project import Function
from amp_migrate.protocol.calls.receivers import Receivers
from amp_migrate.protocol.casts.faults import any_in, asked_in, met
from amp_migrate.protocol.casts.machine import CertainCasts, CertainObjects
from amp_migrate.protocol.certain.gradients import CertainGradients
from amp_migrate.protocol.certain.known import Known
from amp_migrate.protocol.certain.memory import CertainMemory
from amp_migrate.protocol.certain.optimizers import Parts, Served, served
from amp_migrate.protocol.certain.remade import RemadeMachine
from amp_migrate.protocol.certain.unbound import unbound
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.code.programs import Programs
from amp_migrate.protocol.code.span import Span
from amp_migrate.protocol.faults import Breach
from amp_migrate.protocol.machine import Machine
from amp_migrate.protocol.run.blind import Search
from amp_migrate.protocol.run.budget import Budget
from amp_migrate.protocol.run.runs import Breached
from amp_migrate.protocol.run.solve import Run
from amp_migrate.protocol.run.ways import Turn, Ways
from amp_migrate.training.events import Event, Kind

_MOST = 150_000
"""Moments that a reading looks at: some ten seconds."""
_NAMES_OPTIMIZER = (Kind.STEP, Kind.UNSCALE)


@dataclass(frozen=True)
class Shown:
    """A breach at a node of a function; `turns` are where the state turned on the way, first to last.

    `optimizers` are the numbers of those that it is about, `scaler` is that of the GradScaler.
    """

    breach: Breach
    function: Function
    node: ast.AST
    turns: tuple[Turn, ...] = ()
    event: Event | None = None
    optimizers: frozenset[int] = frozenset()
    scaler: int | None = None

    @property
    def key(self) -> tuple[Breach, ast.AST]:
        """What it is, and where."""
        return self.breach, self.node


_Found = dict[tuple[Breach, ast.AST], Shown]


class Reading:
    """What is certain of the native code of a program; of one of very many ways, what is told of those looked at."""

    def __init__(self, program: Program, most: int = _MOST) -> None:
        self.program = program
        self._budget = Budget(most)
        self._objects = program.training.objects
        self._known = Known(program.project, self._objects)
        self._programs = Programs(program)

    @cached_property
    def shown(self) -> tuple[Shown, ...]:
        """The breaches, by file and place, each once."""
        found: dict[tuple[Breach, ast.AST], Shown] = {}
        for item in self._found():
            found.setdefault(item.key, item)
        return tuple(sorted(found.values(), key=_place))

    @cached_property
    def is_cut_short(self) -> bool:
        """Whether more may be shown on ways that were not looked at."""
        return self.shown is not None and self._budget.is_short

    def _found(self) -> Iterator[Shown]:
        memory = CertainMemory(self.program)
        if self._objects.scalers:
            part = self.program.of_steps
            search = Search(part, CertainMemory(part), self._budget)
            yield from self._gradients(search)
            for number, optimizers in self._followed():
                span = self._programs.of_scaler(number)
                machine = RemadeMachine(number, optimizers)
                yield from self._run(machine, search, span, scaler=number)
            for function, node, made in unbound(self.program, memory):
                turn = Turn(function, made, getattr(made, "lineno", 0), None, None)
                yield Shown(Breach.UNBOUND, function, node, (turn,))
        yield from self._casts(Search(self.program, memory, self._budget))

    def _casts(self, search: Search) -> Iterator[Shown]:
        """Yield what autocast blocks meet; objects are told apart only where something may be met without."""
        anyhow = search.anyhow(CertainCasts(any_in(self.program)), self.program.span)
        breached = met(anyhow, search, CertainCasts)
        if homes := {b.key.function for b in breached}:
            told = asked_in(self.program, breached)
            machine = CertainObjects(Receivers(self.program), told)
            yield from self._run(machine, search, anyhow.leading_to(homes))

    def _gradients(self, search: Search) -> Iterator[Shown]:
        """Yield what the optimizers of GradScalers meet; what may concern any of some must concern all of them."""
        groups = served(self.program, self._known)
        parts = Parts(self.program, self._known)
        known = frozenset(optimizer.number for optimizer in self._objects.optimizers)
        scaled = frozenset(number for group in groups for number in group.numbers)
        runs: list[_Group] = []
        for group in groups:
            if not group.apart:
                runs.append(_Group(group.numbers, [], lambda _: {}))
                continue
            sole = parts.alone(group.numbers, known) and not parts.strange(group.numbers)
            alone = parts.alone(group.numbers, scaled)
            machine = CertainGradients(group.numbers, group.scalers, alone, sole)
            anyhow = search.anyhow(machine, self._programs.of_optimizers(group.numbers))
            tell = partial(self._met, machine, search, anyhow, group)
            runs.append(_Group(group.numbers, anyhow.breached(), tell))
        for own in runs:
            own.sought = [at for at in own.anyhow if self._may_be_shown(at, own, runs, parts)]
        for own in runs:
            if any(self._may_be_shown(at, own, runs, parts) for at in own.sought):
                for key, item in own.met.items():
                    if parts.lives_in(own.numbers, item.function):
                        beside = _beside(runs, parts, item.function, item.event)
                        if all(other.meets(key) for other in beside):
                            yield item

    def _met(
        self,
        machine: Machine,
        search: Search,
        anyhow: Run,
        group: Served,
        sought: Collection[Breached],
    ) -> _Found:
        """Return what paths told apart show of some optimizers, among which all is that is sought and so."""
        run = search.told(anyhow, machine, sought)
        shown = self._shown(run, group.numbers, min(group.scalers))
        return {item.key: item for item in shown}

    def _may_be_shown(self, at: Breached, own: _Group, runs: list[_Group], parts: Parts) -> bool:
        """Tell whether all optimizers that a breach may concern may meet it: only then paths have to be told apart."""
        function, key = at.key.function, (at.breach, at.here.point.node)
        if not parts.lives_in(own.numbers, function):
            return False
        return any(
            all(other.may_meet(key) for other in _beside(runs, parts, function, event))
            for event in self.program.events(function, at.here.point.node)
        )

    def _followed(self) -> Iterator[tuple[int, frozenset[int]]]:
        """Yield the GradScalers whose state nobody loads, with their optimizers, all made in sight or not at all."""
        loads = self._objects.method_calls.get("load_state_dict", [])
        loaded = {
            self._objects.scaler(module, call.func.value)
            for module, call in loads
            if isinstance(call.func, ast.Attribute)
        }
        for scaler in self._objects.scalers:
            numbers = frozenset(scaler.optimizers)
            if scaler.number not in loaded and all(map(self._known.is_followed, numbers)):
                yield scaler.number, numbers

    def _run(
        self,
        machine: Machine,
        search: Search,
        span: Span,
        optimizers: frozenset[int] = frozenset(),
        scaler: int | None = None,
    ) -> Iterator[Shown]:
        return self._shown(search.run(machine, span), optimizers, scaler)

    def _shown(self, run: Run, optimizers: frozenset[int], scaler: int | None) -> Iterator[Shown]:
        ways = Ways(self.program, run.summaries)
        for breach, key, here, event, _ in run.breached():
            turns = tuple(ways.turns(key, here))
            node = here.point.node
            yield Shown(breach, key.function, node, turns, event, optimizers, scaler)

    def optimizer(self, item: Shown) -> str:
        """Return how the code around a breach, or else the rest of the program, calls the optimizer."""
        for event in self._around(item.function):
            named = event.named()
            if named is not None and event.kind in _NAMES_OPTIMIZER:
                if event.optimizers is not None and event.optimizers & item.optimizers:
                    return ast.unparse(named)
        chosen = (o for o in self._objects.optimizers if o.number in item.optimizers)
        return next((o.text for o in chosen if o.text), "optimizer")

    def scaler(self, item: Shown) -> str:
        """Return how the code around a breach, or else the rest of the program, calls the GradScaler."""
        for event in self._around(item.function):
            if event.scaler == item.scaler and isinstance(event.node, ast.Call):
                if (
                    isinstance(event.node.func, ast.Attribute)
                    and event.kind is not Kind.MAKE_SCALER
                ):
                    if event.kind is not Kind.HANDED:
                        return ast.unparse(event.node.func.value)
        for call in item.function.module.tree.nodes(ast.Call):
            if isinstance(call.func, ast.Attribute) and call.func.attr in ("scale", "unscale_"):
                if self._objects.scaler(item.function.module, call.func.value) == item.scaler:
                    return ast.unparse(call.func.value)
        chosen = (s for s in self._objects.scalers if s.number == item.scaler)
        return next((s.text for s in chosen if s.text), "scaler")

    def _around(self, function: Function) -> Iterable[Event]:
        held = self.program.training.of(function)
        return (event for events in held.values() for event in events)


class _Group:
    """Optimizers that all events concern together: what they meet `anyhow`, and what where paths are told apart.

    The latter, by `tell`, is worked out when it is first asked for, as far as it is `sought`: it is among the former.
    """

    def __init__(
        self,
        numbers: frozenset[int],
        anyhow: Collection[Breached],
        tell: Callable[[Collection[Breached]], _Found],
    ) -> None:
        self.numbers = numbers
        self.anyhow = anyhow
        self.sought: Collection[Breached] = ()
        self._places = {(breached.breach, breached.here.point.node) for breached in anyhow}
        self._tell = tell
        self._told = False

    @cached_property
    def met(self) -> _Found:
        """What they meet where paths are told apart."""
        self._told = True
        return self._tell(self.sought) if self.sought else {}

    def meets(self, key: tuple[Breach, ast.AST]) -> bool:
        """Tell whether they meet a breach at a node."""
        return key in self._places and key in self.met

    def may_meet(self, key: tuple[Breach, ast.AST]) -> bool:
        """Tell the same, as far as is worked out already."""
        return key in (self.met if self._told else self._places)


def _beside(
    runs: Iterable[_Group], parts: Parts, function: Function, event: Event | None
) -> Iterator[_Group]:
    """Yield the optimizers that an event of a function concerns if it concerns any of them."""
    for group in runs:
        if _concerned(event, group.numbers) and parts.lives_in(group.numbers, function):
            yield group


def _concerned(event: Event | None, numbers: frozenset[int]) -> bool:
    """Tell whether a reading of gradients may be of those of some optimizers; other events are certain of theirs."""
    if event is None or event.kind is not Kind.READ_GRAD:
        return False
    return event.optimizers is None or bool(event.optimizers & numbers)


def _place(item: Shown) -> tuple[str, int, int, str]:
    line = getattr(item.node, "lineno", 0)
    return item.function.module.path, line, getattr(item.node, "col_offset", 0), item.breach.name
