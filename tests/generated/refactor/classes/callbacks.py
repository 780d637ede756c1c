"""Runs statements by callbacks: lists of functions, hooks with methods, handlers of events, dispatch by key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from generated.refactor.classes.callables import respelled
from generated.refactor.code.blocks import Block, parsed
from generated.refactor.code.names import code, fresh
from generated.refactor.code.scopes import Place, places, shared
from generated.refactor.code.source import indented
from generated.refactor.code.writing import above
from generated.refactor.functions.extract import is_trivial, replaced
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_EVENTS = ("on_batch_end", "after_step", "on_iteration", "batch_end")


@dataclass(frozen=True)
class Part:
    """A run of statements as a function: its parameters, what it is given for them, its results and its body."""

    place: Place
    parameters: tuple[str, ...]
    given: tuple[str, ...]
    outputs: tuple[str, ...]
    rows: str
    unit: str

    def function(self, name: str, own: str = "") -> str:
        """Return the definition of the function, or of a method."""
        parameters = ", ".join([*filter(None, [own]), *self.parameters])
        back = f"return {', '.join(self.outputs)}\n" if self.outputs else ""
        return f"def {name}({parameters}):\n{indented(self.rows + back, self.unit)}"

    @property
    def arguments(self) -> str:
        """What is handed over."""
        return ", ".join(self.given)

    def statement(self, call: str) -> str:
        """Return the statement that binds the results of a call."""
        return f"{', '.join(self.outputs)} = {call}\n" if self.outputs else f"{call}\n"


Change = Callable[[Project, Random, Part], tuple[str, str]]


def _apply(change: Change, outputs: bool) -> Callable[[Project, Random], Project | None]:
    """Draw a run, in a loop rather than elsewhere; `change` writes what stands above and in its place."""

    def apply(project: Project, rng: Random) -> Project | None:
        looped = rng.random() < 0.8

        def fits(block: Block) -> bool:
            bare = not any(type(node).__name__ == "ClassDef" for node in block.inside)
            return (bare or block.function is not None) and bool(block.loops) >= looped

        for place in places(project, rng, fits):
            part = _part(project, rng, place)
            if part is None or (part.outputs and not outputs):
                continue
            head, call = change(project, rng, part)
            changed = above(replaced(place, call), place.outermost, parsed(head, place.module))
            return project.changed(place.path, changed)
        return None

    return apply


def _part(project: Project, rng: Random, place: Place) -> Part | None:
    passed = shared(project, place)
    if passed is None or is_trivial(place):
        return None
    if "cls" in passed.inputs or "self" in passed.outputs:
        return None
    rows: str | None = code(place.run).strip("\n") + "\n"
    parameters = passed.inputs
    if "self" in parameters:
        other = rng.choice(["trainer", "owner", "runner"])
        if other in (*parameters, *passed.outputs):
            return None
        rows = respelled(rows or "", {"self": other})
        parameters = tuple(other if p == "self" else p for p in parameters)
    if rows is None:
        return None
    unit = place.module.default_indent
    return Part(place, parameters, passed.inputs, passed.outputs, rows, unit)


def _list(project: Project, rng: Random, part: Part) -> tuple[str, str]:
    """A list of functions, run one after the other."""
    name = fresh(project, rng, ("report", "finish_batch", "update_weights", "callback"))
    held = fresh(project, rng, ("CALLBACKS", "HOOKS", "STAGES"))
    each = fresh(project, rng, ("each", "run_hook", "call"))
    head = f"{part.function(name)}\n\n{held} = [{name}]\n"
    return head, f"for {each} in {held}:\n{part.unit}{each}({part.arguments})\n"


def _hooks(project: Project, rng: Random, part: Part) -> tuple[str, str]:
    """A list of objects with a method for the event."""
    base = fresh(project, rng, ("Callback", "Hook", "Extension"))
    kind = fresh(project, rng, ("UpdateCallback", "StepHook", "BatchHook"))
    held = fresh(project, rng, ("callbacks", "HOOKS", "extensions"))
    each, event, unit = fresh(project, rng, ("each", "run_hook")), rng.choice(_EVENTS), part.unit
    method = indented(part.function(event, "self"), unit)
    if rng.random() < 0.5:
        head = f"class {kind}:\n{method}\n\n{held} = [{kind}()]\n"
    else:
        stub = f"{unit}def {event}(self, *args):\n{unit * 2}pass\n"
        head = f"class {base}:\n{stub}\n\nclass {kind}({base}):\n{method}\n\n{held} = [{kind}()]\n"
    return head, f"for {each} in {held}:\n{unit}{each}.{event}({part.arguments})\n"


def _events(project: Project, rng: Random, part: Part) -> tuple[str, str]:
    """Handlers of events by name, that a dispatcher runs."""
    kind = fresh(project, rng, ("Events", "Signals", "Bus"))
    held = fresh(project, rng, ("events", "signals", "bus"))
    name = fresh(project, rng, ("handle_batch", "handle_step", "handler"))
    event, u = rng.choice(_EVENTS), part.unit
    head = (
        f"class {kind}:\n{u}def __init__(self):\n{u * 2}self.handlers = {{}}\n\n"
        f"{u}def on(self, event, handler):\n"
        f"{u * 2}self.handlers.setdefault(event, []).append(handler)\n{u * 2}return handler\n\n"
        f"{u}def fire(self, event, *args):\n"
        f"{u * 2}for handler in self.handlers.get(event, []):\n{u * 3}handler(*args)\n\n\n"
        f'{part.function(name)}\n\n{held} = {kind}()\n{held}.on("{event}", {name})\n'
    )
    given = ", ".join([f'"{event}"', *part.given])
    return head, f"{held}.fire({given})\n"


def _dispatch(project: Project, rng: Random, part: Part) -> tuple[str, str]:
    """A function looked up by key: in a dict, or among the methods of an object by getattr."""
    key = rng.choice(["train", "update", "forward", "batch"])
    if rng.random() < 0.5:
        name = fresh(project, rng, (f"run_{key}", "handle"))
        held = fresh(project, rng, ("HANDLERS", "MODES", "DISPATCH"))
        head = f'{part.function(name)}\n\n{held} = {{"{key}": {name}}}\n'
        return head, part.statement(f'{held}["{key}"]({part.arguments})')
    kind, held = fresh(project, rng, ("Modes", "Stages")), fresh(project, rng, ("modes", "stages"))
    u = part.unit
    method = indented(part.function(f"run_{key}", "self"), u)
    run = f'{u}def run(self, mode, *args):\n{u * 2}return getattr(self, "run_" + mode)(*args)\n'
    head = f"class {kind}:\n{run}\n{method}\n\n{held} = {kind}()\n"
    given = ", ".join([f'"{key}"', *part.given])
    return head, part.statement(f"{held}.run({given})")


REFACTORINGS = (
    Refactoring("a run becomes a callback in a list", "classes", _apply(_list, outputs=False)),
    Refactoring("a run becomes a hook with a method", "classes", _apply(_hooks, outputs=False)),
    Refactoring("a run becomes a handler of an event", "classes", _apply(_events, outputs=False)),
    Refactoring("a run is dispatched by its key", "classes", _apply(_dispatch, outputs=True)),
)
