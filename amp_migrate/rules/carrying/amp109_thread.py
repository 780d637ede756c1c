"""The GradScaler travels to every function that needs it.

## What it does
Adds a parameter `scaler` (last of the positional ones) to the functions between the place where the scaler
is made and the places where it is used, and passes it in every call of the project, positionally or by
keyword as the call does. In a class it is `self.scaler`; objects of related classes that make none, and stand
in the same places, have a disabled one as an attribute of their class. Where a flag asks for AMP that no program in
sight turns on, the parameter may stay away without the flag, and raises where it is missing with it. Where a file takes
the network and its optimizer from the variables of another one, it takes the scaler from there too: by name, or as
`setup.scaler` where the module is imported whole or a function makes the scaler later.

## Why
Apex kept its state in the process; a GradScaler is an object that somebody must hold.

## Example
    # engine.py
    def train(loader, model, optimizer):
        for images, labels in loader:
            loss = criterion(model(images), labels)
            optimizer.zero_grad()
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            optimizer.step()

    # main.py
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    train(loader, model, optimizer)

## Use instead
    # engine.py
    def train(loader, model, optimizer, scaler):
        for images, labels in loader:
            with torch.cuda.amp.autocast():
                loss = criterion(model(images), labels)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

    # main.py
    scaler = torch.cuda.amp.GradScaler()
    train(loader, model, optimizer, scaler)

## Safety
Faithful. Where some calls of a function are not in the files given, all of the program's Apex code is left, with AMP901.
"""

from __future__ import annotations

from collections.abc import Iterator

from amp_migrate.availability.asked import Entry
from amp_migrate.availability.handed import Maker
from amp_migrate.facts.below import behind_docstring
from amp_migrate.flow.condition import as_bool
from amp_migrate.placement.making.lacking import lacking
from amp_migrate.plan.model import (
    AddArgument,
    Decision,
    Edit,
    Finding,
    Insert,
    ReplaceExpression,
    Status,
)
from amp_migrate.project import Class, Function
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.rules.calls.scaler_made import class_attribute
from amp_migrate.rules.carrying.annotations import longer
from amp_migrate.scaler.reach.threads import Thread
from amp_migrate.scaler.routes.places import last_assignment
from amp_migrate.scaler.routes.slots import slot

RULE = Rule("AMP109", "the GradScaler is passed to where it is used", Safety.FAITHFUL, order=90)


def decide(context: Context) -> Iterator[Decision]:
    """Report the edits that the search for the scaler's home recorded."""
    home = context.unit.home
    asked = {entry.function: entry for entry in home.asked.values()}
    for thread in home.threads.values():
        yield from _passed(context, thread, asked.get(thread.function))
    for maker in home.makers.values():
        if maker.function in home.users:
            yield _chosen(context, maker)
    for function, sentence, edits in home.returning.edits():
        listed = longer(function, context.spelling.plain_class)
        yield _decision(function, sentence, [*edits, *listed])
    for function, sentence, imports in home.elsewhere.edits(home.resolved):
        yield _decision(function, sentence, [(function.module.path, edit) for edit in imports])
    yield from _carried(context)
    yield from _lent(context)
    for cls in lacking(home):
        yield _disabled(context, cls)
    yield from _slots(context)
    for function in home.callers.uncalled:
        message = f"{function.qualname}() takes the GradScaler now, and nothing in the files given calls it"
        advice = f"pass the GradScaler as `{home.name}` wherever {function.qualname}() is called"
        yield _decision(function, message, [], Status.NOTE, advice)
    for receiver, top in home.returning.late():
        tree = receiver.function.module.tree
        text = f"{receiver.name} = {context.spelling.scaler(['enabled=False'])}"
        edit = Insert(tree.span(top), text, after=False)
        sentence = (
            f"{receiver.function.qualname}() has a disabled GradScaler where none is returned"
        )
        yield _decision(receiver.function, sentence, [(receiver.function.module.path, edit)])


def _passed(context: Context, thread: Thread, entry: Entry | None) -> Iterator[Decision]:
    """Yield what passes the scaler on to a function; `entry` is how that asks for AMP, where nothing turns it on."""
    edits = [(thread.function.module.path, _made(context, entry))] if entry else []
    stepped = {(s.module.path, s.tree.span(s.call)) for s in context.unit.steps}
    # A step that a wrapper hands on is the scaler's own, whatever the optimizer may be.
    passed = [
        e
        for e in thread.edits
        if not (isinstance(e[1], AddArgument) and (e[0], e[1].call) in stepped)
    ]
    yield _decision(thread.function, thread.sentence, [*passed, *edits])
    if entry:
        message = (
            f"{entry.function.qualname}() takes a GradScaler now, which it needs with `{entry.flag}` on; nothing in the "
            "files given turns that on"
        )
        name = context.unit.home.name
        advice = (
            f"where `{entry.flag}` is turned on, pass {name}= and drop the amp.initialize before it"
        )
        yield _decision(thread.function, message, [], Status.NOTE, advice)


def _lent(context: Context) -> Iterator[Decision]:
    """Make a scaler that is off before the loops of programs without AMP that hand it in."""
    home = context.unit.home
    edits = [edit for thread in home.threads.values() for edit in thread.edits]
    given = [(path, e) for path, e in edits if isinstance(e, AddArgument) and e.text == home.name]
    for loop, function in home.beside.before.items():
        module, span = function.module, function.module.tree.span(loop)
        if any(path == module.path and span.contains(e.call) for path, e in given):
            edit = Insert(span, f"{home.name} = {home.beside.off}", after=False)
            sentence = f"{function.qualname}() makes a disabled GradScaler once for its loop"
            yield _decision(function, sentence, [(module.path, edit)])


def _carried(context: Context) -> Iterator[Decision]:
    """Let the runners of a library carry the scaler, or one that is off."""
    home = context.unit.home
    for made, text in home.runners.carried:
        span = made.function.module.tree.span(made.statement)
        value = text or context.spelling.scaler(["enabled=False"])
        edit = Insert(span, f"{made.name}.{home.name} = {value}", after=True)
        sentence = f"`{made.name}` carries the GradScaler to the hooks that {home.runners.library.name} calls"
        yield _decision(made.function, sentence, [(made.function.module.path, edit)])


def _chosen(context: Context, maker: Maker) -> Decision:
    """Make the scaler behind the test that chose amp or None."""
    module = maker.function.module
    test = context.unit.availability[module].reduce(maker.switch.test)
    enabled = as_bool(test, context.unit.not_bools).text
    text = f"{context.unit.home.name} = {context.spelling.scaler([f'enabled={enabled}'])}"
    edit = Insert(module.tree.span(maker.switch), text, after=True)
    sentence = f"`{text}` where amp was chosen, and whatever initialized by it uses it"
    return _decision(maker.function, sentence, [(module.path, edit)])


def _made(context: Context, entry: Entry) -> Edit:
    """Return the statements that make a disabled scaler without AMP, and raise where AMP lacks one."""
    name, init = context.unit.home.name, entry.function
    if init.node is None:
        raise ValueError("module")
    needed = f"{entry.flag} needs a GradScaler: pass {name}={context.spelling.scaler([])}"
    quote = "'" if '"' in needed else '"'
    text = (
        f"if not {entry.flag}:\n"
        f"    {name} = {context.spelling.scaler(['enabled=False'])}\n"
        f"elif {name} is None:\n"
        f"    raise ValueError({quote}{needed}{quote})"
    )
    tree = init.module.tree
    if entry.keeps:
        text += f"\n{init.parameters.names[0]}.{name} = {name}"
        return Insert(tree.span(last_assignment(init)), text, after=True)
    first = (behind_docstring(init.node) or init.node.body)[0]
    return Insert(tree.span(first), text, after=False)


def _disabled(context: Context, cls: Class) -> Decision:
    """Give the objects of a class that make no scaler of their own a disabled one."""
    edit = class_attribute(context, cls)
    message = f"the objects of {cls.qualname} that make no GradScaler have a disabled one"
    return decision(RULE, Status.ROUTINE, cls.module, cls.node, message, [edit])


def _slots(context: Context) -> Iterator[Decision]:
    """Let classes with slots have one for the scaler."""
    name = context.unit.home.name
    for cls in sorted(context.unit.home.keepers, key=lambda cls: (cls.module.path, cls.qualname)):
        longer = slot(cls, name)
        if longer is not None:
            edit = ReplaceExpression(cls.module.tree.span(longer[0]), longer[1])
            message = f"`{name}` is among the slots of {cls.qualname}"
            yield decision(RULE, Status.ROUTINE, cls.module, cls.node, message, [edit])


def _decision(
    function: Function,
    sentence: str,
    edits: list[tuple[str, Edit]],
    status: Status = Status.ROUTINE,
    advice: str = "",
) -> Decision:
    module = function.module
    span = module.tree.span(function.node or module.tree.module.body[0])
    return Decision(Finding(module.path, span, RULE.code, status, sentence, advice), list(edits))
