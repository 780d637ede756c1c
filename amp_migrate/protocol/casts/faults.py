"""What goes wrong inside autocast blocks, on some path."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache

from amp_migrate.project import Class, Function
from amp_migrate.project.programs import number_of
from amp_migrate.protocol.calls.handed import handed_of
from amp_migrate.protocol.calls.receivers import Receivers
from amp_migrate.protocol.casts.bodies import BodiesOf
from amp_migrate.protocol.casts.machine import (
    OF_NETWORKS,
    CastMachine,
    Inside,
    ObjectMachine,
    PartMachine,
)
from amp_migrate.protocol.casts.networks import AnyNetwork, Asked, Networks
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.code.span import Span
from amp_migrate.protocol.faults import Fault
from amp_migrate.protocol.run.blind import Search
from amp_migrate.protocol.run.budget import Budget
from amp_migrate.protocol.run.runs import Breached, Key
from amp_migrate.protocol.run.solve import Run
from amp_migrate.training.contexts import enters_autocast
from amp_migrate.training.events import Kind

_MOST = 400_000
"""Moments that are looked at to tell networks apart: some twenty seconds."""


def met(
    anyhow: Run, search: Search, machine: Callable[[Networks], CastMachine]
) -> Collection[Breached]:
    """Return the breaches that a machine meets along all paths at once where networks are told apart.

    They are among those of a run that takes each network for every other one, and told apart as far as these hang on it.
    """
    breached = anyhow.breached()
    if all(b.breach not in OF_NETWORKS for b in breached):
        return breached
    span = anyhow.leading_to(b.key.function for b in breached)
    asked = machine(asked_in(search.program, breached))
    return search.anyhow(asked, span, {b.sought for b in breached}).breached()


def asked_in(program: Program, breached: Iterable[Breached]) -> Networks:
    """Return what tells networks apart as far as some breaches hang on that."""
    events = (e for b in breached for e in program.events(b.key.function, b.here.point.node))
    possible = (one for e in events for one in handed_of(program).run.possible(e))
    return Asked(possible, BodiesOf(program))


def any_in(program: Program) -> Networks:
    """Return what tells no networks apart."""
    return AnyNetwork(BodiesOf(program))


def wrong_inside(program: Program, search: Search) -> Iterator[Fault]:
    """Yield what goes wrong in autocast blocks.

    The parts of networks that a method runs without gradients and with them, in a block of its caller, are among it. In a
    program of very many ways it is what may go wrong where networks are not told apart.
    """
    parts = _parts(program)
    anyhow = search.anyhow(CastMachine(any_in(program)), program.span)
    budget = Budget(_MOST)
    closely = Search(program, search.memory, budget)
    breached = met(anyhow, closely, CastMachine)
    homes = {b.key.function for b in breached}
    within = cache(lambda method: _in_parts(search, method, parts))
    for method in _unseen(program, parts):
        yield from within(method)
    run = {key.function: None for key in anyhow.summaries if _runs_parts(key, parts)}
    homes.update(filter(within, run))
    if homes and not budget.is_short:
        machine = ObjectMachine(Receivers(program), asked_in(program, breached))
        casts = closely.apart(machine, anyhow.leading_to(homes))
        yield from casts.faults()
        run = {key.function: None for key in casts.summaries if _runs_parts(key, parts)}
    if budget.is_short:
        yield from anyhow.faults()
    for method in run if homes else ():
        yield from within(method)


def _in_parts(
    search: Search, method: Function, parts: Mapping[Class | None, set[ast.AST]]
) -> list[Fault]:
    """Return what goes wrong with the parts of its network that a method runs inside an autocast block."""
    machine = PartMachine(frozenset(parts[method.cls]))
    return search.run(machine, Span(((method, False),))).faults()


def _parts(program: Program) -> dict[Class | None, set[ast.AST]]:
    """Return the nodes that run parts of networks, by the classes of those."""
    parts: dict[Class | None, set[ast.AST]] = {}
    for function, held in program.training.by_function.items():
        found = {node for node, events in held.items() for e in events if e.kind is Kind.PART}
        if found and function.cls is not None:
            parts.setdefault(function.cls, set()).update(found)
    return parts


def _unseen(program: Program, parts: Collection[Class | None]) -> Iterator[Function]:
    """Yield the forwards of networks that no call is seen to run, in programs that enter autocast blocks.

    A network that is made out of sight, as by a name, runs them there.
    """
    hidden = [f for f, _ in program.entries if f.name == "forward" and f.cls in parts]
    project = program.project
    casting = {
        number_of(project, module.path)
        for module, node in (project.nodes(ast.With) if hidden else ())
        if enters_autocast(project, module, node)
    }
    yield from (f for f in hidden if number_of(project, f.module.path) in casting)


def _runs_parts(key: Key, parts: Collection[Class | None]) -> bool:
    state = key.state.machine
    return key.function.cls in parts and isinstance(state, Inside) and state.casts
