"""Gradients that Apex left multiplied by the loss scale: those of optimizers that a `scale_loss` block does not name."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from amp_migrate.facts.paths import argument, outward
from amp_migrate.flow.assumption import Assumption, Known
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.once import once
from amp_migrate.protocol.calls.handed import optimizer_of, reach_of
from amp_migrate.protocol.certain.memory import CertainMemory
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.code.programs import Programs
from amp_migrate.protocol.faults import Breach, Fault
from amp_migrate.protocol.machine import Moved, Unmoved
from amp_migrate.protocol.run.blind import Search
from amp_migrate.training.bindings import bound_value, unpacked
from amp_migrate.training.contexts import around, scaling_calls
from amp_migrate.training.events import Event, Kind
from amp_migrate.training.gradients.handed_out import bases

Named = Mapping[ast.AST, frozenset[int]]
CLEARING = (Kind.ZERO_GRAD, Kind.MAKE, Kind.ABSENT)
"""What leaves an optimizer without gradients."""


@dataclass(frozen=True)
class LeftScaledMachine(Unmoved):
    """Follows what one backward, which `leaves` them scaled, adds to the gradients of an optimizer by its number.

    `named` are the optimizers that the block of Apex around each backward names.
    """

    number: int
    leaves: ast.AST
    named: Named

    def starts(self, called: bool) -> tuple[Hashable, ...]:
        """There are no gradients when a program begins."""
        return (False,)

    def move(self, state: Hashable, event: Event, visited: bool) -> Moved:
        """Return what an event makes of whether scaled gradients are left."""
        if event.kind is Kind.BACKWARD:
            named = self.named.get(event.node, frozenset()) if event.block is None else event.block
            if event.node is self.leaves and event.block is None and self.number in named:
                return Moved((True, state))  # it may name others alone
            reached = event.optimizers is None or self.number in event.optimizers
            if event.node is self.leaves and self.number not in named and reached:
                return Moved((True,))
            met = bool(state) and self.number in named
            return Moved((state,), (Breach.MIXED,) if met else ())
        own = event.may_concern(self.number)
        if event.kind in CLEARING and own:
            return Moved((False,))
        if event.kind is Kind.STEP and own and state and (visited or event.certain):
            return Moved((state,), (Breach.SCALED_STEP,))
        return Moved((state,))


class _Block(NamedTuple):
    """A block of Apex in a function whose parameter of a name is its optimizer, or with `keys` one of these for that.

    `loss` is the parameter that it scales.
    """

    function: Function
    name: str
    loss: str
    keys: Mapping[object, int]


class _Blocks(CertainMemory):
    """Knows of backward passes in helpers which optimizer the blocks around them name, where a parameter is it or its key."""

    def __init__(self, program: Program, blocks: Mapping[ast.AST, _Block], named: Named) -> None:
        super().__init__(program)
        self._blocks = blocks
        self._named = named
        self._held = {block.function: block for block in blocks.values()}

    def into(self, call: ast.Call, callee: Function, known: Assumption) -> Assumption:
        """Return what a function knows when a call begins it: of a key, which optimizer it chooses."""
        found, block = super().into(call, callee, known), self._held.get(callee)
        given = self.handed.given(call, callee) if block is not None else {}
        if block is None or block.loss not in given:
            return found
        reached, key = self.handed.reaching(given[block.loss]), given.get(block.name)
        if reached is not None:
            found = found.with_fact(reach_of(block.loss), Known(tuple(sorted(reached))))
        if not isinstance(key, ast.Constant) or key.value not in block.keys:
            return found
        return found.with_fact(optimizer_of(block.name), Known(block.keys[key.value]))

    def exact(self, event: Event, known: Assumption) -> Iterator[Event]:
        """Yield an event with what the path knows of its optimizers; a backward with those of its block."""
        own = self._blocks.get(event.node) if event.kind is Kind.BACKWARD else None
        held = self.handed.held(own.name, known) if own is not None else None
        reached = self.handed.reached(own.loss, known) if own is not None else None
        for exact in super().exact(event, known):
            if held is None or reached is None:
                yield replace(exact, block=self._named.get(event.node))
            else:
                yield replace(exact, optimizers=reached, block=frozenset({held}))


class Left(NamedTuple):
    """A backward whose block leaves gradients scaled, the number of their optimizer, and where they are used first."""

    function: Function
    backward: ast.Call
    optimizer: int
    used: Fault


@once
def left_scaled(program: Program) -> tuple[Left, ...]:
    """Return where Apex steps on gradients that a block left scaled, or adds those of another loss to them."""
    objects = program.training.objects
    if len(objects.optimizers) < 2:
        return ()
    made = (o for o in objects.optimizers if o.number not in objects.of_unknown_origin)
    known = {o.number for o in made if o.networks}
    named: dict[ast.AST, frozenset[int]] = {}
    blocks: dict[ast.AST, _Block] = {}
    left: list[tuple[Function, ast.Call, int]] = []
    for function, event in backwards(program):
        assert isinstance(event.node, ast.Call)
        given = named[event.node] = of_block(program, function, event.node)
        block = _block(program, function, event.node, given) if len(given) > 1 else None
        if block is not None:
            blocks[event.node] = block
        if given and given.isdisjoint(objects.of_unknown_origin):
            lacking = known.intersection(event.optimizers or ())
            lacking = lacking if block is not None else lacking - given
            left += [(function, event.node, number) for number in sorted(lacking)]
    frozen = _frozen(program) if left else frozenset()
    part = program.of_gradients
    search, programs = Search(part, _Blocks(part, blocks, named)), Programs(part)
    found: list[Left] = []
    for function, backward, number in left:
        if number not in frozen:
            machine = LeftScaledMachine(number, backward, named)
            faults = search.run(machine, programs.of_optimizers([number])).faults()
            found += [Left(function, backward, number, fault) for fault in faults[:1]]
    return tuple(found)


def of_block(program: Program, function: Function, backward: ast.Call) -> frozenset[int]:
    """Return the optimizers that the block of Apex around a backward names."""
    objects, found = program.training.objects, set[int]()
    for call in around(function.module, backward):
        if isinstance(call, ast.Call) and call in scaling_calls(program.project):
            named = argument(call, "optimizers", 1)
            parts = () if named is None else _parts(program.project, function.module, named)
            for node in parts:
                found |= objects.optimizers_of(function.module, node)
    return frozenset(found)


def _block(
    program: Program, function: Function, backward: ast.Call, given: frozenset[int]
) -> _Block | None:
    """Return the block of Apex around a backward that names one of `given` optimizers by a parameter of its function."""
    names = function.parameters.names
    for call in around(function.module, backward):
        if isinstance(call, ast.Call) and call in scaling_calls(program.project):
            named, loss = argument(call, "optimizers", 1), argument(call, "loss", 0)
            if not isinstance(loss, ast.Name) or loss.id not in names:
                return None
            if isinstance(named, ast.Name) and named.id in names:
                return _Block(function, named.id, loss.id, {})
            key = named.slice if isinstance(named, ast.Subscript) else None
            if isinstance(named, ast.Subscript) and isinstance(key, ast.Name) and key.id in names:
                return _Block(
                    function, key.id, loss.id, _keys(program, function.module, named, given)
                )
    return None


def _keys(
    program: Program, module: Module, item: ast.Subscript, given: frozenset[int]
) -> dict[object, int]:
    """Return which of some optimizers the constant keys of a collection stand for, as far as it is read by them."""
    found: dict[object, int] = {}
    for where, node in program.project.nodes(ast.Subscript):
        assert isinstance(node, ast.Subscript)
        if isinstance(node.slice, ast.Constant):
            numbers = program.training.objects.optimizers_of(where, node)
            same = program.project.values.same(where, node.value, module, item.value)
            if same and len(numbers) == 1 and numbers <= given:
                found[node.slice.value] = next(iter(numbers))
    return found


def _parts(project: Project, module: Module, given: ast.expr) -> Iterator[ast.expr]:
    """Yield the items of a list or tuple, by whatever name it goes."""
    held = [given]
    if isinstance(given, ast.Name):
        bound = module.scopes.bound(given)
        held += [
            v for b in bound for v in (bound_value(module, b), *unpacked(project, module, b)) if v
        ]
    for value in held:
        yield from value.elts if isinstance(value, ast.List | ast.Tuple) else [value]


def backwards(program: Program) -> Iterator[tuple[Function, Event]]:
    """Yield the backward passes of the files in which a program scales losses by Apex, with their functions."""
    scaling = dict.fromkeys(scaling_calls(program.project).values())
    for function, held in (pair for m in scaling for pair in program.training.inside(m)):
        for event in (event for events in held.values() for event in events):
            if event.kind is Kind.BACKWARD and isinstance(event.node, ast.Call):
                yield function, event


def _frozen(program: Program) -> frozenset[int]:
    """Return the optimizers of networks whose parameters the program freezes, so that losses pass them by."""
    objects, found = program.training.objects, set[int]()
    for module, node in program.project.nodes(ast.Attribute):
        assert isinstance(node, ast.Attribute)
        if node.attr == "requires_grad_" or (
            node.attr == "requires_grad" and isinstance(node.ctx, ast.Store)
        ):
            for base in (node.value, *bases(module, node.value, set())):
                for part in outward(base):
                    found |= objects.training(objects.groups(module, part)) or set()
    return frozenset(found)
