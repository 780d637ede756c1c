"""Runs a skeleton with a random tape, and keeps what happened."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

Event = tuple[str, int]
"""What happened, and the number of the place: call, next, enter, leave."""


class Error(Exception):
    """What events raise."""


class Other(Exception):
    """What events raise too."""


class Cut(BaseException):
    """The run was long enough."""


@dataclass(frozen=True)
class Happened:
    """An event, and how it ended: with a truth, or with an exception (None)."""

    event: Event
    truth: bool | None


@dataclass(frozen=True)
class Trace:
    """One run. `end` is exit, raised, or cut."""

    happened: tuple[Happened, ...]
    end: str
    thrown: bool = False
    given: tuple[tuple[str, object], ...] = ()

    @property
    def events(self) -> list[Event]:
        """The events in order."""
        return [h.event for h in self.happened]

    @property
    def plain(self) -> bool:
        """Whether nothing but `raise` and `assert` raised."""
        return not self.thrown and all(h.truth is not None for h in self.happened)


class D(dict):  # type: ignore[type-arg]
    """A dict that has every item, and forgets what it does not have."""

    def __getitem__(self, key: object) -> int:
        """Return a number for any key."""
        return 1

    def __delitem__(self, key: object) -> None:
        """Forget nothing."""


class Tape:
    """Decides what every event does."""

    def __init__(self, seed: int, length: int = 120, raising: float = 0.06) -> None:
        self.random = random.Random(seed)
        self.length = length
        self.raising = raising
        self.happened: list[Happened] = []
        self.cut = False
        self.thrown = False
        self.o = SimpleNamespace(x=self.random.random() < 0.5)

    def event(self, event: Event, usual: float = 0.5) -> bool:
        """Let an event happen."""
        if self.cut or len(self.happened) >= self.length:
            self.cut = True
            raise Cut
        if self.random.random() < self.raising:
            self.happened.append(Happened(event, None))
            raise self.random.choice((Error, Other))
        truth = self.random.random() < usual
        self.happened.append(Happened(event, truth))
        return truth

    def names(self) -> dict[str, Any]:
        """Return the globals of a skeleton."""
        tape = self

        def rewriting(number: int) -> bool:
            truth = tape.event(("call", number))
            if tape.random.random() < 0.5:
                tape.o.x = not tape.o.x
            return truth

        def iterated(number: int) -> Iterator[int]:
            tape.event(("call", number))
            return _Iterator(tape, number)

        def context(number: int) -> _Context:
            tape.event(("call", number))
            return _Context(tape, number)

        return {
            "e": lambda number: tape.event(("call", number)),
            "b": lambda number: tape.event(("call", number), 0.4),
            "w": rewriting,
            "it": iterated,
            "c": context,
            "h": _anything,
            "D": D,
            "Error": Error,
            "Other": Other,
        }

    def run(self, function: Any) -> Trace:
        """Run a function to its end."""
        pick = self.random.choice
        arguments = (
            pick((True, False, None)),
            pick((True, False, None)),
            pick((0, 1, 2)),
            pick("abc"),
            self.o,
        )
        given = (*zip(("p", "q", "n", "mode"), arguments, strict=False), ("o.x", self.o.x))
        end = "exit"
        try:
            made = function(*arguments)
            if hasattr(made, "throw"):
                self.drive(made)
        except (Error, Other, AssertionError):
            end = "raised"
        except Cut:
            end = "cut"
        return Trace(tuple(self.happened), "cut" if self.cut else end, self.thrown, given)

    def drive(self, made: Any) -> None:
        """Run a generator; now and then throw into it."""
        try:
            next(made)
            while True:
                if self.random.random() < self.raising:
                    self.thrown = True
                    made.throw(Error())
                else:
                    made.send(None)
        except StopIteration:
            pass


class _Iterator:
    def __init__(self, tape: Tape, number: int) -> None:
        self.tape = tape
        self.number = number
        self.left = tape.random.randint(0, 3)

    def __iter__(self) -> _Iterator:
        return self

    def __next__(self) -> int:
        self.left -= 1
        self.tape.event(("next", self.number), 1.0 if self.left >= 0 else 0.0)
        if self.left < 0:
            raise StopIteration
        return self.left


class _Context:
    def __init__(self, tape: Tape, number: int) -> None:
        self.tape = tape
        self.number = number

    def __enter__(self) -> bool:
        return self.tape.event(("enter", self.number))

    def __exit__(self, kind: Any, *_: object) -> bool:
        truth = self.tape.event(("leave", self.number))
        return truth and kind is not None and issubclass(kind, Exception)


def _anything(value: object = None, *rest: object, **_: object) -> Any:
    """Stand for a helper: a class where one is given, else something with attributes that decorates."""
    if rest and isinstance(rest[0], type):
        return rest[0]
    return _Helper()


class _Helper:
    a: D

    def __init__(self) -> None:
        self.a = D()

    def __call__(self, given: object) -> object:
        return given


def compiled(text: str) -> tuple[ast.FunctionDef, Any]:
    """Return the tree of a skeleton's function and its code, which `bound` makes a function of a tape."""
    module = ast.parse(text)
    function = module.body[0]
    assert isinstance(function, ast.FunctionDef)
    return function, compile(module, "<skeleton>", "exec")


def bound(code: Any, tape: Tape) -> Any:
    """Return the function of a compiled skeleton with a tape's events."""
    names = tape.names()
    exec(code, names)
    return names["f"]
