"""The GradScaler travels to every function that needs it.

## What it does
Adds a parameter `scaler` (last of the positional ones) to the functions between the place where the scaler
is made and the places where it is used, and passes it in every call of the project, positionally or by
keyword as the call does. In a class it is `self.scaler`.

## Why
Apex kept its state in the process; a GradScaler is an object that somebody must hold.

## Example
    def train(loader, model, optimizer): ...

## Use instead
    def train(loader, model, optimizer, scaler): ...

## Safety
Faithful. Where the calls of a function cannot all be seen, the whole unit is left with AMP901.
"""

from __future__ import annotations

from collections.abc import Iterator

from amp_migrate.plan import Decision, Edit, Finding, Insert, Status
from amp_migrate.project import Function
from amp_migrate.rules.base import Context, Rule, Safety

RULE = Rule("AMP109", "the GradScaler is passed to where it is used", Safety.FAITHFUL, order=90)


def decide(context: Context) -> Iterator[Decision]:
    """Report the edits that the search for the scaler's home recorded."""
    home = context.unit.home
    for thread in home.threads.values():
        yield _decision(thread.function, thread.sentence, thread.edits)
    for function, sentence, edits in home.returning.edits():
        yield _decision(function, sentence, edits)
    for made, text in home.runners.carried:
        span = made.function.module.tree.span(made.statement)
        value = text or context.spelling.scaler(["enabled=False"])
        edit = Insert(span, f"{made.name}.{home.name} = {value}", after=True)
        sentence = f"`{made.name}` carries the GradScaler to the hooks that mmcv calls"
        yield _decision(made.function, sentence, [(made.function.module.path, edit)])
    for function in home.uncalled:
        message = f"no call of {function.qualname}() is in the files given: whoever calls it passes the GradScaler"
        yield _decision(function, message, [], Status.NOTE)
    for receiver, top in home.returning.late():
        tree = receiver.function.module.tree
        text = f"{receiver.name} = {context.spelling.scaler(['enabled=False'])}"
        edit = Insert(tree.span(top), text, after=False)
        sentence = (
            f"{receiver.function.qualname}() has a disabled GradScaler where none is returned"
        )
        yield _decision(receiver.function, sentence, [(receiver.function.module.path, edit)])


def _decision(
    function: Function,
    sentence: str,
    edits: list[tuple[str, Edit]],
    status: Status = Status.ROUTINE,
) -> Decision:
    module = function.module
    span = module.tree.span(function.node or module.tree.module.body[0])
    return Decision(Finding(module.path, span, RULE.code, status, sentence), list(edits))
