"""Whether `update()` leaves alone the gradients that an optimizer accumulates while another one, fed by the same losses, steps."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass

from amp_migrate.check.events.sides import Key, Side, changed, key, of_both
from amp_migrate.check.gradients.scaled import backwards
from amp_migrate.facts.mark import Mark
from amp_migrate.facts.paths import path
from amp_migrate.protocol.certain.memory import CertainMemory
from amp_migrate.protocol.code.programs import Programs
from amp_migrate.protocol.faults import Breach, Fault
from amp_migrate.protocol.left_scaled import of_block
from amp_migrate.protocol.machine import Moved, Unmoved
from amp_migrate.protocol.run.blind import Search
from amp_migrate.training.events import Event, Kind
from amp_migrate.training.objects import Objects

_Fed = Mapping[ast.AST, frozenset[int]]


class Waits(Mark):
    """What the gradients of an optimizer are, as far as losses reached them of which Apex knew that they do."""

    NONE = "none"
    SCALED = "scaled"
    STALE = "scaled before the last update"


@dataclass(frozen=True)
class WaitingMachine(Unmoved):
    """Follows one optimizer by its number; `fed` are the optimizers whose gradients each backward adds to.

    `cleared` are those that each `zero_grad` names.
    """

    number: int
    scalers: frozenset[int]
    fed: _Fed
    cleared: _Fed

    def starts(self, called: bool) -> tuple[Hashable, ...]:
        """There are no gradients when a program begins."""
        return (Waits.NONE,)

    def move(self, state: Hashable, event: Event, visited: bool) -> Moved:
        """Return what an event makes of a state."""
        if event.kind is Kind.BACKWARD:
            added = self.number in self.fed.get(event.node, ())
            return Moved((Waits.SCALED if added and state is Waits.NONE else state,))
        if event.kind in (Kind.UPDATE, Kind.SET_SCALE):
            updated = event.scaler in self.scalers and state is Waits.SCALED
            return Moved((Waits.STALE if updated else state,))
        if event.kind not in (Kind.UNSCALE, Kind.STEP, Kind.ZERO_GRAD, Kind.MAKE):
            return Moved((state,))
        own = self.cleared.get(event.node) or event.optimizers
        if own is not None and self.number not in own:
            return Moved((state,))
        known = (visited or event.certain) and not event.unsure
        uses = event.kind in (Kind.UNSCALE, Kind.STEP) and event.scaler is not None
        broken = uses and known and state is Waits.STALE
        return Moved((Waits.NONE,), (Breach.RESCALED,) if broken else ())


def rescaled_between(old: Side, new: Side) -> Iterator[Fault]:
    """Yield the steps on gradients of several rounds between which the step of another optimizer may change the scale.

    Which optimizers a loss reaches is read off the blocks of the old text.
    """
    objects = new.program.training.objects
    if len(objects.optimizers) < 2 or not objects.scalers:
        return
    reached = fed(old, new)
    several = {number for numbers in reached.values() if len(numbers) > 1 for number in numbers}
    if not several:
        return
    program = new.program.of_gradients
    search = Search(program, CertainMemory(program))
    programs, cleared = Programs(program), _cleared(objects)
    for number in sorted(several):
        scalers = frozenset(s.number for s in objects.scalers if number in s.optimizers)
        machine = WaitingMachine(number, scalers, reached, cleared)
        yield from search.run(machine, programs.of_optimizers([number])).faults()


def _cleared(objects: Objects) -> dict[ast.AST, frozenset[int]]:
    """Return the optimizers that each call of `zero_grad` names."""
    found: dict[ast.AST, frozenset[int]] = {}
    for module, call in objects.method_calls.get("zero_grad", []):
        assert isinstance(call.func, ast.Attribute)
        found[call] = objects.optimizers_of(module, call.func.value)
    return found


@of_both
def fed(old: Side, new: Side) -> dict[ast.AST, frozenset[int]]:
    """Return the optimizers of the new text to whose gradients each scaled backward of it adds."""
    same = same_optimizers(old, new)
    found: dict[ast.AST, frozenset[int]] = {}
    for name in old.functions.keys() & new.functions.keys():
        given = {
            label: of_block(old.program, function, call)
            for function in old.functions[name]
            for call, label, by_apex in backwards(old, function)
            if by_apex
        }
        introduced = changed(old, new).get(name, frozenset())
        for function in new.functions[name] if given else ():
            for call, label, scaled in backwards(new, function, introduced):
                if scaled and given.get(label):
                    found[call] = frozenset(same[n] for n in given[label] if n in same)
    return found


@of_both
def same_optimizers(old: Side, new: Side) -> dict[int, int]:
    """Return the optimizers of the new text by those of the old one: made by the same calls, or called the same in a file."""
    made = {maker: number for number, maker in _makers(new)}
    named = _named(new)
    found: dict[int, int] = {}
    for at, numbers in _named(old).items():
        after = named.get(at, set())
        found |= dict.fromkeys(numbers, *after) if len(after) == 1 else {}
    return found | {number: made[maker] for number, maker in _makers(old) if maker in made}


def _named(side: Side) -> dict[tuple[str, str], set[int]]:
    """Return the optimizers that no call in sight makes, by the files that name them and how."""
    objects = side.program.training.objects
    unknown = objects.of_unknown_origin
    texts = {o.text for o in objects.optimizers if o.number in unknown}
    found: dict[tuple[str, str], set[int]] = {}
    for module, node in side.project.nodes(ast.Name, ast.Attribute) if texts else ():
        read = isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
        if read and (text := path(node)) is not None and text in texts:
            numbers = objects.optimizers_of(module, node) & unknown
            found.setdefault((module.path, text), set()).update(numbers)
    return found


def _makers(side: Side) -> Iterator[tuple[int, tuple[Key, str]]]:
    """Yield the optimizers that calls make, each with what is the same of its call on both sides."""
    objects = side.program.training.objects
    for call, module in objects.makers.calls.items():
        for number in objects.optimizers_of(module, call):
            yield number, (key(side.project.function_of(module, call)), ast.unparse(call))
