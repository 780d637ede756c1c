"""Whether what stays of the old text reads as it did, but for what Apex and native AMP have to do with."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property

from amp_migrate.check.events.claims import Claims
from amp_migrate.check.events.sides import Key, Side, changed, differs
from amp_migrate.check.events.traces import Difference
from amp_migrate.check.statements.alike import Alike
from amp_migrate.check.statements.parts import (
    BRANCHES,
    STATEMENTS,
    Held,
    Part,
    anchor,
    asked,
    decorators,
    parts,
    tells,
    without,
)
from amp_migrate.facts.constants import is_none
from amp_migrate.project import Function
from amp_migrate.protocol.faults import Place
from amp_migrate.training.beliefs import WITHOUT_GRADIENTS

_READS = "stands for what read otherwise, in more than AMP:"
_GONE = "is gone, and has nothing to do with AMP:"


def misread(old: Side, new: Side, claims: Claims) -> Iterator[tuple[Key, Difference]]:
    """Yield what differs of the new text, or is gone from the old one, in more than AMP."""
    alike = Alike(old, new)
    for name in changed(old, new):
        before, after = old.functions[name], new.functions[name]
        pair = _Pair(old, alike, before, after, claims)
        yield from pair.misread()
        if not any(map(claims.drops, before)):
            yield from pair.gone()


class _Pair:
    """The functions of one name before and after."""

    def __init__(
        self,
        old: Side,
        alike: Alike,
        before: Sequence[Function],
        after: Sequence[Function],
        claims: Claims,
    ) -> None:
        self._old = old
        self._alike = alike
        self._had: Held = [(f, part) for f in before for part in parts(f)]
        self._has: Held = [(f, part) for f in after for part in parts(f)]
        self._lost, self._fresh = without(self._had, self._has), without(self._has, self._had)
        self._before = before
        self._after = after
        self._claims = claims

    def misread(self) -> Iterator[tuple[Key, Difference]]:
        """Yield what does not read as anything of the old text in its place."""
        for function, part in self._fresh:
            if is_none(getattr(part, "value", None)):
                continue  # what another way binds
            places = [(f, s) for f, s in self._lost if anchor(s) == anchor(part)]
            if isinstance(part, ast.expr):
                places = [(f, s) for f, s in places if not self._is_of_apex(f, s)]
                if self._is_of_native(function, part):
                    continue
            if places and not any(
                self._is_rewritten(f, s) or self._alike.reads(f, s, function, part)
                for f, s in places
            ):
                yield differs(function, part, f"`{ast.unparse(part)}` {_READS}")
        for one, other in zip(self._before, self._after, strict=False):
            defaults = other.parameters.defaults
            for name, value in one.parameters.defaults.items():
                now = defaults.get(name)
                if now is not None and not self._alike.reads(one, value, other, now):
                    yield differs(other, now, f"`{name}={ast.unparse(now)}` {_READS}")

    def gone(self) -> Iterator[tuple[Key, Difference]]:
        """Yield what did something by itself, and is not there any more."""
        left = {anchor(part) for _, part in self._has}
        lost: dict[str, Held] = {}
        for function, part in self._had:
            lost.setdefault(ast.unparse(part), []).append((function, part))
        texts = Counter(ast.unparse(part) for _, part in self._has)
        for text, held in lost.items():
            needed = [(f, p) for f, p in held if self._is_needed(f, p, left)]
            if _together(needed) > texts[text] and not any(map(self._stands_for, needed)):
                yield differs(*needed[-1], f"`{text}` {_GONE}", gone=True)
        for one, other in zip(self._before, self._after, strict=False):
            kept = {ast.unparse(d) for d in decorators(other)}
            for part in decorators(one):
                if ast.unparse(part) not in kept and not self._alike.mentions_apex(one, part):
                    yield differs(one, part, f"`{ast.unparse(part)}` {_GONE}", gone=True)

    def _stands_for(self, lost: tuple[Function, Part]) -> bool:
        """Tell whether something of the new text reads as a part of the old one."""
        function, part = lost
        others = [(f, other) for f, other in self._fresh if anchor(other) == anchor(part)]
        return any(
            self._is_rewritten(function, part) or self._alike.reads(function, part, where, other)
            for where, other in others
        ) or any(self._takes_more(function, part, where, other) for where, other in self._fresh)

    def _takes_more(self, function: Function, part: Part, where: Function, other: Part) -> bool:
        """Tell whether a statement of the new text only takes a GradScaler more from what one of the old text took apart."""
        if not isinstance(part, ast.Assign) or not isinstance(other, ast.Assign):
            return False
        had, has = _taken(part), _taken(other)
        more = [target for text, target in has.items() if text not in had]
        return (
            had.keys() < has.keys()
            and all(self._alike.is_native(where, target) for target in more)
            and self._alike.reads(function, part.value, where, other.value)
        )

    def _is_rewritten(self, function: Function, part: Part) -> bool:
        last = part.end_lineno or part.lineno
        return self._claims.rewrite(Place(function.module.path, part.lineno), last)

    def _is_of_apex(self, function: Function, part: Part) -> bool:
        """Tell whether what a test decides is of Apex: its branch goes, and the test with it."""
        if self._alike.mentions_apex(function, part):
            return True
        statement = _decided(function, part)
        return isinstance(statement, BRANCHES) and all(
            isinstance(s, ast.Raise | ast.Import | ast.ImportFrom | ast.Pass)
            or self._alike.mentions_apex(function, s)
            for s in statement.body
        )

    def _is_of_native(self, function: Function, part: ast.expr) -> bool:
        """Tell whether what a test decides is of native AMP: its branches come, and the test with them."""
        if self._alike.mentions_native(function, part):
            return True
        statement = _decided(function, part)
        return isinstance(statement, BRANCHES) and all(
            isinstance(s, ast.Raise) or self._alike.is_native(function, s)
            for s in _branches(statement)
        )

    def _is_needed(self, function: Function, part: Part, left: set[tuple[str, str]]) -> bool:
        """Tell whether a part of the old text does something by itself, where the new text comes as well.

        `left` tells what the new text still does.
        """
        mentions = self._alike.mentions_apex(function, part)
        if self._alike.is_apex(function, part):
            return False
        if (not mentions or tells(function, part)) and self._is_rewritten(function, part):
            return False
        if isinstance(part, ast.Call):
            if mentions:
                return False
            name = self._old.project.external(function.module, part.func)
            return name in WITHOUT_GRADIENTS
        if not isinstance(part, STATEMENTS) or not self._does(part, left):
            return False
        calls = (n for n in ast.walk(part) if isinstance(n, ast.Call))
        if any(self._old.labels.of_call(function, call) is not None for call in calls):
            return False
        return all(self._stays(up) for up in _within(function, part))

    def _does(self, part: ast.stmt, left: set[tuple[str, str]]) -> bool:
        """Tell whether a statement does more than to set what nothing else sets any more."""
        if isinstance(part, ast.Expr):
            return isinstance(part.value, ast.Call)
        if isinstance(part, ast.Return):
            return part.value is not None
        return isinstance(part, ast.AugAssign) or anchor(part) in left

    def _stays(self, up: ast.AST) -> bool:
        """Tell whether the new text comes into what stands around a statement."""
        if isinstance(up, ast.ExceptHandler | ast.Match):
            return False
        if isinstance(up, ast.Try):
            return _caught(up) in self._caught
        return not isinstance(up, BRANCHES) or self._asks >= {
            ast.unparse(p) for p in asked(up.test, True)
        }

    @cached_property
    def _asks(self) -> set[str]:
        return {ast.unparse(p) for _, p in self._has if isinstance(p, ast.expr)}

    @cached_property
    def _caught(self) -> set[str]:
        """What the new text catches, block by block."""
        nodes = (n for f in self._after for n in f.own_nodes)
        return {_caught(n) for n in nodes if isinstance(n, ast.Try)}


def _taken(statement: ast.Assign) -> dict[str, ast.expr]:
    """Return what an assignment binds, one by one, where it takes its value apart."""
    match statement.targets:
        case [ast.Tuple(elts=several) | ast.List(elts=several)]:
            return {ast.unparse(target): target for target in several}
    return {}


def _within(function: Function, part: Part) -> Iterator[ast.AST]:
    """Yield what stands around a part of a function, in it."""
    for up in function.module.tree.ancestors(part):
        if up is function.scope:
            return
        yield up


def _caught(block: ast.Try) -> str:
    return ", ".join(ast.unparse(h.type) if h.type else "" for h in block.handlers)


def _together(held: Held) -> int:
    """Return how many of some parts one run may come to, at the least."""
    found: list[frozenset[tuple[ast.AST, bool]]] = []
    for function, part in held:
        sides = frozenset(_sides(function, part))
        if not any((up, not truth) in other for other in found for up, truth in sides):
            found.append(sides)
    return len(found)


def _sides(function: Function, part: Part) -> Iterator[tuple[ast.AST, bool]]:
    """Yield the branches in which a part of a function stands."""
    child: ast.AST = part
    for up in _within(function, part):
        if isinstance(up, ast.If) and child is not up.test:
            yield up, child in up.body
        child = up


def _decided(function: Function, part: Part) -> ast.stmt:
    """Return the statement that a part of a test decides."""
    told = part.operand if isinstance(part, ast.UnaryOp) else part
    return function.module.tree.statement(told)


def _branches(statement: ast.If | ast.While) -> Iterator[ast.stmt]:
    """Yield what stands in either branch of a test, and of those in its place behind ``elif``."""
    yield from statement.body
    match statement.orelse:
        case [ast.If() as other]:
            yield from _branches(other)
        case rest:
            yield from rest
