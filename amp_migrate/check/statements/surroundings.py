"""Whether statements that stay stand under the same tests and in the same loops, and events under none that is new."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

from amp_migrate.check.events.claims import MOVED, Claims
from amp_migrate.check.events.labels import Does
from amp_migrate.check.events.sides import Key, Side, changed, key
from amp_migrate.check.events.traces import Difference, Label, Step
from amp_migrate.check.statements.alike import Alike
from amp_migrate.check.statements.asked import Atom, parts_of, without_implied
from amp_migrate.check.statements.parts import anchor
from amp_migrate.check.statements.telling import passes_on
from amp_migrate.facts.below import every
from amp_migrate.facts.paths import defs, uses
from amp_migrate.project import Function
from amp_migrate.project.order import exclusive
from amp_migrate.protocol.faults import Place

_Around = frozenset[Atom]
"""The tests that must come out true or false for a statement to run, and the loops around it."""

_SIMPLE = ast.Expr | ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete | ast.Return
_NAMES = ast.Name | ast.Attribute
_BRANCHES = ast.If | ast.While | ast.IfExp
_LOOP = "for "
_MOVES = "runs under other tests than before:"
_TELLS = "tells of more than gradients, and runs under other tests than before:"
_ASKS = "runs under a test that was not around it:"
_ORDER = "stands in front of what it stood behind:"
_CROSSES = "stands on the other side of what it reads:"
_EVENTS = (Does.STEP, Does.CLEAR, Does.READ, Does.LOAD, Does.SAVE)


def moved(old: Side, new: Side, claims: Claims) -> Iterator[tuple[Key, Difference]]:
    """Yield what runs more or less often in the new text than in the old one, by the tests around it."""
    alike = Alike(old, new)
    for name, introduced in changed(old, new).items():
        before, after = old.functions[name], new.functions[name]
        if len(before) == len(after) == 1 and not claims.drops(before[0]):
            pair = _Pair(old, new, before[0], after[0], introduced, claims, alike)
            yield from ((name, found) for found in pair.differences())


class _Pair:
    """A function before and after."""

    def __init__(
        self,
        old: Side,
        new: Side,
        before: Function,
        after: Function,
        introduced: frozenset[str],
        claims: Claims,
        alike: Alike,
    ) -> None:
        self._old = old
        self._new = new
        self._before = before
        self._after = after
        self._introduced = introduced
        self._claims = claims
        self._alike = alike
        self._gone = old.names(key(before)) - new.names(key(after))

    def differences(self) -> Iterator[Difference]:
        """Yield the statements and events that run under other tests."""
        was, now = _single(self._before), _single(self._after)
        for text in was.keys() & now.keys():
            if self._claimed(was[text]) or self._happens(was[text]):
                if self._takes_along(was[text], now[text]):
                    yield self._differs(f"`{text}` {_TELLS}", was[text], now[text])
                continue
            one, other = _around(self._before, was[text]), _around(self._after, now[text])
            names = self._introduced | self._stored
            own = {atom for atom in other if not self._is_new(atom, names)}
            kept, told = self._told(one, other)
            if not own <= one or other < one or told < kept:
                yield self._differs(f"`{text}` {_MOVES}", was[text], now[text])
        for before, after in self._rewritten():
            one, other = self._told(_around(self._before, before), _around(self._after, after))
            if other != one:
                yield self._differs(f"`{ast.unparse(before)}` {_MOVES}", before, after)
        yield from self._asking()
        yield from self._reordered(was, now)
        yield from self._crossed(was, now)

    def _takes_along(self, before: ast.stmt, after: ast.stmt) -> bool:
        """Tell whether a clip that a rule moves under another test takes along what a function does beside it."""
        place = Place(self._before.module.path, before.lineno)
        if not any(c.code in MOVED and c.is_of(place) for c in self._claims.every):
            return False
        under = _around(self._before, before) != _around(self._after, after)
        return under and passes_on(self._old, before)

    def _told(self, one: _Around, other: _Around) -> tuple[_Around, _Around]:
        """Return the tests and loops around a statement before and after, without those that are written anew for AMP."""
        if one == other:
            return one, other
        gone = {a for a in one if a[0] in self._of_apex or self._loops(a, self._gone)}
        come = {a for a in other if self._is_new(a, self._introduced)}
        loops = [sum(a[0].startswith(_LOOP) for a in some) for some in (gone, come)]
        kept, told = one - gone, other - come
        missing = len(kept - told)
        anew = 0 < missing <= len(come) - loops[1]  # as tests come in their place
        return (kept, told) if loops[0] == loops[1] and not anew else (one, one)

    def _loops(self, atom: Atom, names: frozenset[str]) -> bool:
        return atom[0].startswith(_LOOP) and self._is_new(atom, names)

    @cached_property
    def _of_apex(self) -> frozenset[str]:
        """What the old text asks of Apex."""
        tests = (n.test for n in self._before.own_nodes if isinstance(n, _BRANCHES))
        parts = (part for test in tests for part in every(test) if isinstance(part, ast.expr))
        return frozenset(
            ast.unparse(part) for part in parts if self._alike.mentions_apex(self._before, part)
        )

    def _rewritten(self) -> Iterator[tuple[ast.stmt, ast.stmt]]:
        """Yield the statements that read otherwise for AMP, each with what stands for it, where there is one alone."""
        had, has = (
            {s: ast.unparse(s) for s in _statements(f) if isinstance(s, _SIMPLE)}
            for f in (self._before, self._after)
        )
        texts, others = set(had.values()), set(has.values())
        lost = [s for s, text in had.items() if text not in others]
        fresh = [s for s, text in has.items() if text not in texts]
        for stmt in lost:
            places = [s for s in fresh if anchor(s) == anchor(stmt)]
            alone = sum(anchor(s) == anchor(stmt) for s in lost) == 1 == len(places)
            if alone and not self._claimed(stmt) and not self._happens(stmt):
                if not self._alike.is_apex(self._before, stmt):
                    if self._alike.reads(self._before, stmt, self._after, places[0]):
                        yield stmt, places[0]

    def _reordered(
        self, was: dict[str, ast.stmt], now: dict[str, ast.stmt]
    ) -> Iterator[Difference]:
        """Yield the statements that stand in front of one behind which they stood."""
        stays = [text for text in was if text in now and not self._claimed(was[text])]
        for text, behind in pairwise(sorted(stays, key=lambda t: _place(now[t]))):
            if _place(was[behind]) < _place(was[text]):
                yield self._differs(f"`{text}` {_ORDER} `{behind}`:", was[text], now[text])

    def _crossed(self, was: dict[str, ast.stmt], now: dict[str, ast.stmt]) -> Iterator[Difference]:
        """Yield what a rule moves past a statement that stores what it reads, and that no way leaves out for it."""
        both = [text for text in was if text in now]
        stored = {text: defs(was[text]) for text in both}
        for text in both:
            moves = self._claimed(was[text]) and self._happens(was[text])
            read = uses(was[text]) if moves else set()
            for other in both if read else ():
                apart = exclusive(self._before.module.tree, was[other], was[text])
                if other != text and stored[other] & read and not apart:
                    behind = _place(was[other]) < _place(was[text])
                    if behind is not (_place(now[other]) < _place(now[text])):
                        what = f"`{text}` {_CROSSES} `{other}`:"
                        yield self._differs(what, was[text], now[text])

    def _asking(self) -> Iterator[Difference]:
        """Yield the events that stand under a test of the new text which none of their like had around it."""
        had, has = (
            _events(self._old, self._before, frozenset()),
            _events(self._new, self._after, self._introduced),
        )
        for label in had.keys() & has.keys():
            if any(map(self._claimed, had[label])):
                continue
            like = [
                *had[label],
                *(self._cleared_behind(had) if label.kind == Does.CLEAR.value else ()),
            ]
            ones = [_around(self._before, node) for node in like]
            for node in has[label]:
                other = _around(self._after, node)
                brought = {atom for atom in other if self._is_new(atom, self._introduced)}
                common = frozenset[Atom].intersection(*ones) - other
                known = frozenset[Atom]().union(*ones)
                lasting = {atom for atom in other if not self._is_new(atom, self._stored)}
                respelt = any(_respelt(one, other, brought) for one in ones)
                if not lasting - brought <= known or (brought and not (common or respelt)):
                    yield self._differs(f"`{label}` {_ASKS}", had[label][0], node)

    def _cleared_behind(self, had: dict[Label, list[ast.AST]]) -> list[ast.AST]:
        """Return the steps behind which a rule of the run says that gradients are cleared from now on."""
        path = self._before.module.path
        steps = (n for label, nodes in had.items() if label.kind == Does.STEP.value for n in nodes)
        return [n for n in steps if self._claims.move(Place(path, getattr(n, "lineno", 0)))]

    def _is_new(self, atom: Atom, names: frozenset[str]) -> bool:
        """Tell whether a test asks for one of some names."""
        tree = ast.parse(atom[0].removeprefix(_LOOP), mode="eval")
        parts = (n for n in ast.walk(tree) if isinstance(n, _NAMES))
        asked = {ast.unparse(part) for part in parts}
        return not asked.isdisjoint(names)

    @cached_property
    def _stored(self) -> frozenset[str]:
        """What statements store that a rule of the run may move, whose users it makes ask for that."""
        claimed = filter(self._claimed, _statements(self._before))
        return frozenset(
            ast.unparse(node)
            for stmt in claimed
            if isinstance(stmt, ast.Assign)
            for node in stmt.targets
        )

    def _claimed(self, node: ast.AST) -> bool:
        """Tell whether a rule of the run speaks of a line of the old text."""
        place = Place(self._before.module.path, getattr(node, "lineno", 0))
        return self._claims.speak_of(place, getattr(node, "end_lineno", 0) or 0)

    def _happens(self, stmt: ast.stmt) -> bool:
        calls = (n for n in ast.walk(stmt) if isinstance(n, ast.Call))
        return any(self._old.labels.of_call(self._before, call) is not None for call in calls)

    def _differs(self, what: str, before: ast.AST, after: ast.AST) -> Difference:
        places = (
            Place(function.module.path, getattr(node, "lineno", 1))
            for function, node in ((self._before, before), (self._after, after))
        )
        return Difference((Step(Label(what), *places),))


def _statements(function: Function) -> Iterator[ast.stmt]:
    return (n for n in function.own_nodes if isinstance(n, ast.stmt))


def _single(function: Function) -> dict[str, ast.stmt]:
    """Return the simple statements of a function that stand in it once, by their text."""
    found = [(ast.unparse(n), n) for n in _statements(function) if isinstance(n, _SIMPLE)]
    count = Counter(text for text, _ in found)
    return {text: stmt for text, stmt in found if count[text] == 1}


def _place(stmt: ast.stmt) -> tuple[int, int]:
    return stmt.lineno, stmt.col_offset


def _events(
    side: Side, function: Function, introduced: frozenset[str]
) -> dict[Label, list[ast.AST]]:
    found: dict[Label, list[ast.AST]] = {}
    for call, label in side.of_kind(function, *_EVENTS, introduced=introduced):
        found.setdefault(label, []).append(call)
    return found


def _around(function: Function, node: ast.AST) -> _Around:
    """Return the tests and loops around a node of a function, each part of a test by itself."""
    found: set[Atom] = set()
    child = node
    for up in function.module.tree.ancestors(node):
        if up is function.scope:
            break
        if isinstance(up, _BRANCHES) and child is not up.test:
            body = up.body if isinstance(up.body, list) else [up.body]
            found |= set(parts_of(up.test, child in body))
        elif isinstance(up, ast.For | ast.AsyncFor) and child in up.body:
            found.add((f"{_LOOP}{ast.unparse(up.target)} in {ast.unparse(up.iter)}", True))
        child = up
    return without_implied(found)


def _respelt(one: _Around, other: _Around, brought: set[Atom]) -> bool:
    """Tell whether the same tests and loops are around two nodes, but for as many loops that read otherwise."""
    gone = one - other
    loops = all(atom[0].startswith(_LOOP) for atom in (*gone, *brought))
    return loops and len(gone) == len(brought) and other - brought == one - gone
