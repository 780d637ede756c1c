"""Holds a project against the protocol of native AMP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from amp_migrate.project import Function, Project
from amp_migrate.project.once import once
from amp_migrate.protocol.binding import unbound
from amp_migrate.protocol.casts.faults import wrong_inside
from amp_migrate.protocol.certain.emptied import emptied
from amp_migrate.protocol.certain.kept_apart import kept_apart
from amp_migrate.protocol.certain.known import Known
from amp_migrate.protocol.certain.memory import CertainMemory
from amp_migrate.protocol.certain.on import OnMemory
from amp_migrate.protocol.certain.remade import RemadeMachine
from amp_migrate.protocol.code.lifetimes import Lifetimes
from amp_migrate.protocol.code.program import Program, program_of
from amp_migrate.protocol.code.programs import Programs
from amp_migrate.protocol.code.span import Span
from amp_migrate.protocol.faults import Breach, Fault, Place
from amp_migrate.protocol.gradients import GradientMachine, waits_unscaled
from amp_migrate.protocol.machine import Machine
from amp_migrate.protocol.placeholder import replaced, stale
from amp_migrate.protocol.run.alike import Alike
from amp_migrate.protocol.run.blind import Search, leading_to, may_tell
from amp_migrate.protocol.run.memory import Memory
from amp_migrate.protocol.run.runs import Breached
from amp_migrate.protocol.run.solve import Run
from amp_migrate.protocol.scaler import (
    ScalerMachine,
    listed,
    never_scaled,
    never_updated,
    ungrouped,
)
from amp_migrate.protocol.switched import switched
from amp_migrate.training.reads.uses import Uses

_Placed = tuple[Breach, str, int]


@once
def faults(project: Project) -> list[Fault]:
    """Return what a project does against the protocol of native AMP while AMP is on, by place."""
    return faults_of(program_of(project))


def faults_of(program: Program) -> list[Fault]:
    """Return the same of a program whose events are read already."""
    if not program.training.objects.scalers:
        return list(scaled_losses(program))
    memory = Memory(program)
    part = program.of_gradients
    found: dict[_Placed, Fault] = {}
    programs = Programs(part)
    off = replaced(program) | programs.parted
    search = Search(part, OnMemory(part))
    for fault in _gradients(part, programs, search, off):
        found.setdefault(_key(fault), fault)
    for fault in _scalers(part, programs, search, off):
        found.setdefault(_key(fault), fault)
    for fault in _unfinished(part, programs, search, off):
        found.setdefault(_key(fault), fault)
    for fault in _remade(part, programs):
        found.setdefault(_key(fault), fault)
    for fault in wrong_inside(program, Search(program, memory)):
        found.setdefault(_key(fault), fault)
    for fault in scaled_losses(program):
        found.setdefault(_key(fault), fault)
    for fault in ungrouped(program):
        found.setdefault(_key(fault), fault)
    for fault in listed(program):
        found.setdefault(_key(fault), fault)
    for fault in unbound(program, memory):
        found.setdefault(_key(fault), fault)
    for fault in emptied(program, memory):
        found.setdefault(_key(fault), fault)
    for fault in stale(program):
        found.setdefault(_key(fault), fault)
    return sorted(found.values(), key=lambda f: (f.place.path, f.place.line, f.breach.name))


def _scalers(
    program: Program, programs: Programs, search: Search, off: frozenset[int]
) -> Iterator[Fault]:
    """Yield the faults of every GradScaler; `off` are those that are off until others are made."""
    for scaler in program.training.objects.scalers:
        machine = switched(ScalerMachine(scaler.number), off)
        anyhow = search.anyhow(machine, programs.of_scaler(scaler.number))
        breached = anyhow.breached()
        yield from never_scaled(program, anyhow, scaler.number)
        yield from never_updated(program, scaler.number)
        if breached:
            yield from search.told(anyhow, machine, breached).faults()


def _unfinished(
    program: Program, programs: Programs, search: Search, off: frozenset[int]
) -> Iterator[Fault]:
    """Yield the `unscale_` of functions that code out of sight runs round by round, where one may end without step and update."""
    objects = program.training.objects
    for optimizer in objects.optimizers:
        number = optimizer.number
        scalers = frozenset(s.number for s in objects.scalers if number in s.optimizers)
        entries = programs.whole(number) if scalers else ()
        unscaling = {f: programs.unscaling(number, f) for f, _ in entries}
        alone = len(objects.optimizers) == 1
        machine = switched(GradientMachine(number, scalers, alone), scalers & off)
        waiting = Span(tuple(entry for entry in entries if unscaling[entry[0]]))
        for runs in (search.anyhow, search.apart):
            ended = _ended_unscaled(runs(machine, waiting), machine) if waiting.entries else set()
            waiting = Span(tuple(entry for entry in waiting.entries if entry[0] in ended))
        for function, _ in waiting.entries:
            for node in unscaling[function]:
                place = Place(program.project.module_of(node).path, node.lineno)
                yield Fault(Breach.UNSCALED_TWICE, place, (place,))


def _ended_unscaled(run: Run, machine: Machine) -> set[Function]:
    """Return the functions that a run begins, and that may end with unscaled gradients which no update follows."""
    run.breached()
    starts = machine.starts(True)
    begun = [item for item in run.summaries.items() if item[0].state.machine in starts]
    return {k.function for k, s in begun if any(waits_unscaled(e.machine) for e in s.exits)}


def _remade(program: Program, programs: Programs) -> Iterator[Fault]:
    """Yield the GradScalers that are certainly made anew while an optimizer of theirs goes on."""
    objects = program.training.objects
    known = Known(program.project, objects)
    search = Search(program, CertainMemory(program))
    lifetimes = Lifetimes(program)
    for scaler in objects.scalers:
        if all(map(known.is_followed, scaler.optimizers)) and not kept_apart(
            program, scaler.number
        ):
            homes = [lifetimes.homes(number) for number in scaler.optimizers] or [frozenset()]
            ends = frozenset.intersection(*homes)
            machine = RemadeMachine(scaler.number, frozenset(scaler.optimizers), ends)
            yield from search.run(machine, programs.of_scaler(scaler.number)).faults()


def _key(fault: Fault) -> _Placed:
    return fault.breach, fault.place.path, fault.place.line


def _gradients(
    program: Program, programs: Programs, search: Search, off: frozenset[int]
) -> Iterator[Fault]:
    """Yield the faults of every optimizer; one that may concern any of a program must concern all of them.

    `off` are the GradScalers that are off until others are made. Paths are told apart for those optimizers alone of which
    a run along all ways at once shows something that counts.
    """
    objects = program.training.objects
    every = {o.number: programs.on(programs.of_optimizers([o.number])) for o in objects.optimizers}
    spans = {number: own for number, own in every.items() if own.entries}
    begin = {number: frozenset(own.entries) for number, own in spans.items()}
    beside = {
        number: [n for n, other in begin.items() if n != number and own & other]
        for number, own in begin.items()
    }
    lost = objects.of_unknown_origin
    lost = lost if len(lost) < len(spans) else frozenset()
    machines, lifetimes = {}, Lifetimes(program)
    for number, span in spans.items():
        scalers = frozenset(s.number for s in objects.scalers if number in s.optimizers)
        begins = bool(beside[number]) and lifetimes.begins(number, span)
        homes = lifetimes.homes(number) if begins else frozenset[Function]()
        machine = GradientMachine(
            number, scalers, not beside[number], number in lost, begins, homes
        )
        machines[number] = switched(machine, scalers & off)
    blind = {number: search.anyhow(machines[number], own) for number, own in spans.items()}
    met = {number: _met(run, program, search.memory) for number, run in blind.items()}
    counting = {
        key
        for number, places in met.items()
        for key, place in places.items()
        if place.sure or all(key in met[n] for n in beside[number])
    }

    told: dict[int, dict[_Placed, Fault]] = {}
    alike = Alike(machines.values())

    def run(number: int) -> dict[_Placed, Fault]:
        """Return what paths told apart show of one optimizer at the places that count."""
        if number not in told:
            places = (met[number][key].breached for key in counting & met[number].keys())
            breached = [b for each in places for b in each]
            asked = span, sought = leading_to(blind[number], breached)
            apart = alike.of(
                machines[number], asked, lambda m: search.apart(m, span, sought).faults()
            )
            told[number] = {_key(fault): fault for fault in apart}
        return told[number]

    def may_show(number: int) -> bool:
        """Tell whether an optimizer may be met at a place that counts, and by those beside it, as far as they were asked."""
        known = [told[n] for n in beside[number] if n in told]
        places = (item for item in met[number].items() if item[0] in counting)
        return any(place.sure or all(key in found for found in known) for key, place in places)

    for number in met:
        if may_show(number):
            for key, fault in run(number).items():
                others = beside[number]
                if fault.certain or (
                    all(key in met[n] for n in others) and all(key in run(n) for n in others)
                ):
                    yield fault


class _Met(NamedTuple):
    """A breach that a run along all ways at once met at some nodes of a line, and whether an event there may be certain."""

    breached: tuple[Breached, ...]
    sure: bool


def _met(run: Run, program: Program, memory: Memory) -> dict[_Placed, _Met]:
    """Return the breaches that a run along all ways at once met, by place."""
    found: dict[_Placed, _Met] = {}
    for item in run.breached():
        breach, at, here, *_ = item
        key = breach, at.function.module.path, here.point.line
        sure = any(
            event.certain or may_tell(event) or memory.visits.of_visited(at.function, event)
            for event in program.events(at.function, here.point.node)
        )
        known = found.get(key, _Met((), sure=False))
        found[key] = _Met((*known.breached, item), known.sure or sure)
    return found


def scaled_losses(program: Program) -> Iterator[Fault]:
    """Yield a fault for every use of a scaled loss as a number, under Apex as with a GradScaler."""
    training = program.training
    uses = Uses(program.project, training.objects, training.losses, program.calls.body)
    for module, node in uses.wrong():
        place = Place(module.path, node.lineno)
        yield Fault(Breach.SCALED_LOSS, place, (place,))
