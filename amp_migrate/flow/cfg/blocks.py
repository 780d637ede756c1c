"""Reads the statements that guard others into points: try, with and match."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from amp_migrate.flow.cfg.points import Kind, Way
from amp_migrate.flow.cfg.sketch import End, Frame, Sketch
from amp_migrate.flow.cfg.statements import Statements
from amp_migrate.flow.cfg.subject import tests_of_cases

Swallows = Callable[[ast.expr], bool]
"""Whether leaving the context that an expression makes may stop an exception."""


class Blocks(Statements):
    """Adds `try`, `with` and `match`; `swallows` says whether leaving a context may stop an exception."""

    RUNNERS: ClassVar[dict[str, str]] = {
        **Statements.RUNNERS,
        "Try": "_try",
        "TryStar": "_try_star",
        "With": "_with",
        "AsyncWith": "_with",
        "Match": "_match",
    }

    def __init__(self, sketch: Sketch, swallows: Swallows, at_once: bool = False) -> None:
        super().__init__(sketch, at_once)
        self._swallows = swallows

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        self._items(node.items, node.body)

    def _items(self, items: Sequence[ast.withitem], body: Sequence[ast.stmt]) -> None:
        if not items:
            self.block(body)
            return
        item, *rest = items
        self.value(item.context_expr)
        self.sketch.add(Kind.ENTER, item)

        def leave(way: Way) -> list[End]:
            self.sketch.add(Kind.LEAVE, item)
            if way is Way.RAISE and self._swallows(item.context_expr):
                return self.sketch.ends
            return []

        with self.sketch.cleaned(leave):
            if item.optional_vars is not None:
                self.bind(item.optional_vars)
            self._items(rest, body)

    def _try(self, node: ast.Try) -> None:
        if not node.finalbody:
            self._handled(node)
            return

        def last(way: Way) -> list[End]:
            self.block(node.finalbody)
            return []

        with self.sketch.cleaned(last):
            self._handled(node)

    def _handled(self, node: ast.Try) -> None:
        sketch = self.sketch
        if not node.handlers:
            self.block(node.body)
            return
        after = self._body(node)
        for handler in node.handlers:
            fits, other = self._fits(handler)
            sketch.ends = fits
            self._handler(handler)
            after = after + sketch.ends
            sketch.ends = other
        sketch.jump(Way.RAISE)
        sketch.ends = after

    def _body(self, node: Any) -> list[End]:
        """Run the body and `else` of a try; what came out of the body is then open, and its normal ends are returned."""
        sketch = self.sketch
        with sketch.within(Frame(catches=True)) as frame:
            self.block(node.body)
        self.block(node.orelse)
        after = sketch.ends
        sketch.ends = frame.take(Way.RAISE)
        if sketch.ends:
            sketch.add(Kind.CAUGHT, node)
        return after

    def _fits(self, handler: ast.ExceptHandler) -> tuple[list[End], list[End]]:
        if handler.type is None:
            return self.sketch.ends, []
        self.value(handler.type)
        return self.ways(self.sketch.add(Kind.MATCH, handler), None)

    def _handler(self, handler: ast.ExceptHandler) -> None:
        if handler.name is None:
            self.block(handler.body)
            return
        self.sketch.add(Kind.STORE, handler)

        def forget(way: Way) -> list[End]:
            self.sketch.add(Kind.UNBIND, handler)
            return []

        with self.sketch.cleaned(forget):
            self.block(handler.body)

    def _try_star(self, node: Any) -> None:
        def last(way: Way) -> list[End]:
            self.block(node.finalbody)
            return []

        if node.finalbody:
            with self.sketch.cleaned(last):
                self._handled_in_turn(node)
        else:
            self._handled_in_turn(node)

    def _handled_in_turn(self, node: Any) -> None:
        """Run `except*`: every handler that fits runs, also after one of them raised."""
        sketch = self.sketch
        after = self._body(node)
        for handler in node.handlers:
            fits, other = self._fits(handler)
            sketch.ends = fits
            with sketch.within(Frame(catches=True)) as inner:
                self._handler(handler)
            sketch.ends = sketch.ends + inner.take(Way.RAISE) + other
        if sketch.ends:
            sketch.add(Kind.STEP, node)
        after = after + sketch.ends
        sketch.jump(Way.RAISE)
        sketch.ends = after

    def _match(self, node: ast.Match) -> None:
        sketch = self.sketch
        self.value(node.subject)
        after: list[End] = []
        for case, test in zip(node.cases, tests_of_cases(node), strict=True):
            index = sketch.add(Kind.MATCH, case.pattern)
            fits, other = self.ways(index, test)
            if _always_fits(case.pattern):
                other = []
            sketch.ends = fits
            for name in _captures(case.pattern):
                sketch.add(Kind.STORE, name)
            if case.guard is not None:
                true, false = self.test(case.guard)
                sketch.ends = true
                other = other + false
            self.block(case.body)
            after = after + sketch.ends
            sketch.ends = other
        sketch.ends = after + sketch.ends


def _always_fits(pattern: ast.pattern) -> bool:
    """Whether a pattern takes whatever comes: a name, `_`, or one of several that does."""
    if isinstance(pattern, ast.MatchAs):
        return pattern.pattern is None or _always_fits(pattern.pattern)
    return isinstance(pattern, ast.MatchOr) and _always_fits(pattern.patterns[-1])


def _captures(pattern: ast.pattern) -> list[ast.pattern]:
    """The parts of a pattern that bind a name when it fits; once for each name."""
    found: dict[str, ast.pattern] = {}
    for part in ast.walk(pattern):
        name = part.rest if isinstance(part, ast.MatchMapping) else getattr(part, "name", None)
        if isinstance(name, str) and isinstance(part, ast.pattern):
            found.setdefault(name, part)
    return list(found.values())
