"""What the rules about native code share: notes, and how code and places are named in them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from amp_migrate.plan.model import Decision, Finding, Place, Status
from amp_migrate.project import Function, Module
from amp_migrate.protocol.certain.reading import Reading, Shown
from amp_migrate.protocol.faults import Breach
from amp_migrate.protocol.gradients import Grad, Stage, State
from amp_migrate.protocol.run.ways import Turn
from amp_migrate.rules.base import Rule
from amp_migrate.training.contexts import Context
from amp_migrate.training.events import Kind

_LONGEST = 60  # characters of code that a sentence still bears
SCALED = (Grad.SCALED, Grad.STALE, Grad.MIXED)


@dataclass(frozen=True, slots=True)
class Code:
    """A piece of the program that a note speaks of."""

    function: Function
    node: ast.AST

    @property
    def place(self) -> Place:
        """Where it stands."""
        module = self.function.module
        return Place(module.path, module.tree.span(self.node))

    @property
    def text(self) -> str:
        """The code itself; of a long call what it calls."""
        text = ast.unparse(self.node)
        if len(text) > _LONGEST and isinstance(self.node, ast.Call):
            text = f"{ast.unparse(self.node.func)}(...)"
        return text if len(text) <= _LONGEST and "\n" not in text else "this code"

    def __str__(self) -> str:
        """Write the code and where it stands."""
        return f"{self.text} at {self.place}"


def note(rule: Rule, at: Code, message: str, advice: str, named: Iterable[Code] = ()) -> Decision:
    """Make a note about a piece of code; `named` are those whose places stand in it."""
    path, span = at.place
    places = tuple(dict.fromkeys(code.place for code in named))
    return Decision(Finding(path, span, rule.code, Status.NOTE, message, advice, named=places))


def code(item: Shown) -> Code:
    """Return the code that is the breach."""
    return Code(item.function, item.node)


def of_turn(turn: Turn) -> Code:
    """Return the code at which a state turned."""
    return Code(turn.function, turn.node)


def last(item: Shown, wanted: Callable[[Turn], bool]) -> Turn | None:
    """Return the last turn of some kind on the way to a breach."""
    return next((turn for turn in reversed(item.turns) if wanted(turn)), None)


def causes(
    reading: Reading, wanted: Callable[[Turn], bool], *breaches: Breach
) -> Iterator[tuple[Shown, Turn]]:
    """Yield the first breach of some kinds behind each code with a turn of some kind, and that turn."""
    found: dict[ast.AST, tuple[Shown, Turn]] = {}
    for item in of(reading, *breaches):
        turn = last(item, wanted)
        if turn is not None:
            found.setdefault(turn.node, (item, turn))
    yield from found.values()


def scales(turn: Turn) -> bool:
    """Tell whether gradients became scaled ones."""
    before, after = turn.before, turn.after
    if not isinstance(before, State) or not isinstance(after, State):
        return False
    return after.grad in SCALED and before.grad not in SCALED


def reaches(stage: Stage) -> Callable[[Turn], bool]:
    """Return whether a turn is one to a stage of the GradScaler."""
    return lambda turn: (
        isinstance(turn.before, State)
        and isinstance(turn.after, State)
        and turn.after.stage is stage
        and turn.before.stage is not stage
    )


def since(item: Shown, turn: Turn) -> tuple[Turn, ...]:
    """Return the turns after one, up to the breach."""
    return item.turns[item.turns.index(turn) + 1 :]


def is_plain_backward(reading: Reading, turn: Turn) -> bool:
    """Tell whether a turn is a backward pass of a loss that nothing scaled."""
    events = reading.program.events(turn.function, turn.node)
    return any(event.kind is Kind.BACKWARD and event.scaled is False for event in events)


def of(reading: Reading, *breaches: Breach) -> Iterator[Shown]:
    """Yield the breaches of some kinds, by file and place."""
    return (item for item in reading.shown if item.breach in breaches)


def first(reading: Reading) -> Code | None:
    """Return the first code of a project that makes a GradScaler, or else enters a context of autocast."""
    program = reading.program
    made: list[tuple[Module, ast.expr]] = [*program.training.objects.made_scalers]
    casts = [(m, item.context_expr) for m, item in program.project.nodes(ast.withitem)]
    found = made or [
        (m, node)
        for m, node in casts
        if program.context(program.calls.body(m, node), node) is Context.CASTS
    ]
    module, node = min(found, key=lambda at: (at[0].path, at[1].lineno), default=(None, None))
    return None if module is None or node is None else Code(program.calls.body(module, node), node)
