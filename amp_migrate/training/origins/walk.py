"""The way back from values to all that they are computed of, step by step."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from amp_migrate.facts.closure import Gathered, closure
from amp_migrate.project import Function, Project
from amp_migrate.project.forwarded import spread


class Origin(NamedTuple):
    """A node that a value comes from: `down` into what a call runs, `up` to what a call hands in, or elsewhere."""

    function: Function
    node: ast.AST
    down: ast.Call | None = None
    up: ast.Call | None = None
    elsewhere: bool = False


def handed_in(project: Project, function: Function, name: str) -> list[Origin]:
    """Return what the calls of a function give a parameter, or unpack for it, and those of the partial objects that are made of it."""
    given = [(s.call, at, node) for s, at, node in project.received(function, name)]
    for site, completing in project.completions(function):
        given.append((site.call, site.function, completing.get(name)))
    for site in project.callers(function):
        given += ((site.call, site.function, whole) for whole in spread(site, function, name))
    return [Origin(at, node, up=call) for call, at, node in given if node is not None]


Place = tuple[Function, ast.AST]


_NONE: frozenset[int] = frozenset()


class Step:
    """The names of what a node runs, the nodes that its value comes from, and what containers were given, by number."""

    __slots__ = ("held", "onward", "run")

    def __init__(
        self, run: Iterable[int] = (), onward: Sequence[Origin] = (), held: frozenset[int] = _NONE
    ) -> None:
        self.run = frozenset(run)
        self.onward = onward
        self.held = held


class _Spot:
    """A node in a function, with the spots that its value comes from, as long as these are known.

    `near` stay within what a call ran that led here, `away` do not, `ups` are what calls hand in, `downs` lead into calls.
    """

    __slots__ = ("away", "downs", "function", "held", "known", "near", "node", "run", "ups")

    def __init__(self, function: Function, node: ast.AST) -> None:
        self.function = function
        self.node = node
        self.known = False
        self.run = self.held = _NONE
        self.near: list[_Spot] = []
        self.away: list[_Spot] = []
        self.ups: list[tuple[ast.Call, _Spot]] = []
        self.downs: list[tuple[ast.Call, _Spot]] = []


class _Way(NamedTuple):
    """A spot on a way back: `bound` to what a call ran that led here, or where any call may come to first.

    With a `call`, it is the value that the function gives to that call.
    """

    spot: _Spot
    bound: bool = False
    call: ast.Call | None = None


class Walk:
    """Goes back from values. Each step is worked out once, for all the values.

    `step` gives what comes straight before a node, `given` where a thing is that is put into a container.
    """

    def __init__(
        self, step: Callable[[Function, ast.AST], Step], given: Callable[[int], Place]
    ) -> None:
        self._step = step
        self._given = given
        self._spots: dict[Place, _Spot] = {}
        self._handing: dict[_Spot, list[_Spot]] = {}
        self._names: dict[int, int] = {}
        self._found: dict[int, set[int]] = {}
        self._gathered = Gathered(self._onward, self._run)

    def back(self, starts: Iterable[Place]) -> tuple[set[int], set[ast.AST]]:
        """Return the names of what is run to compute some values, and the nodes that they are computed of.

        What a function returns to one call comes of what that call hands in, not of what others do.
        """
        met = self._followed([self._spot(*start) for start in starts])
        return set[int]().union(*(spot.run for spot in met)), {spot.node for spot in met}

    def run(self, start: Place) -> set[int]:
        """Return the names of what is run to compute a value, which is kept for all values on the way back."""
        bits = self._gathered.of(_Way(self._spot(*start)))
        found = self._found.get(bits)
        if found is None:
            found = self._found[bits] = {n for n, at in self._names.items() if bits >> at & 1}
        return found

    def _run(self, way: _Way) -> int:
        """Return the bits of what a spot runs."""
        names = self._names
        return sum(1 << names.setdefault(name, len(names)) for name in self._known(way.spot).run)

    def _onward(self, way: _Way) -> Iterator[_Way]:
        """Yield what comes straight before a spot on a way back."""
        spot = self._known(way.spot)
        if way.call is not None:
            yield _Way(spot, bound=True)
            for one in self._parameters(spot):
                yield from map(_Way, _handed_in(one.ups, way.call))
            return
        yield from (_Way(one, bound=way.bound) for one in spot.near)
        yield from map(_Way, spot.away)
        yield from (_Way(self._spot(*self._given(number))) for number in spot.held)
        yield from (_Way(inner, bound=True, call=call) for call, inner in spot.downs)
        if not way.bound:
            yield from (_Way(up) for _, up in spot.ups)

    def _parameters(self, spot: _Spot) -> list[_Spot]:
        """Return the spots within a function that a value of it comes from and calls hand in."""
        if spot not in self._handing:
            within = closure([spot], lambda one: self._known(one).near)
            self._handing[spot] = [one for one in within if one.ups]
        return self._handing[spot]

    def _known(self, spot: _Spot) -> _Spot:
        if not spot.known:
            self._learn(spot)
        return spot

    def _followed(self, starts: list[_Spot]) -> set[_Spot]:
        """Return the spots on the ways back."""
        free = [*starts]
        bound: list[_Spot] = []
        freed, met = set(free), set[_Spot]()
        entered: dict[Function, dict[ast.Call, None]] = {}
        taken: dict[Function, list[list[tuple[ast.Call, _Spot]]]] = {}
        opened: set[int] = set()
        while free or bound:
            spot = (free or bound).pop()
            self._known(spot)
            reached: list[_Spot] = []
            for call, inner in spot.downs:
                if inner not in met and inner not in freed:
                    met.add(inner)
                    bound.append(inner)
                calls = entered.setdefault(inner.function, {})
                if call not in calls:
                    calls[call] = None
                    for ups in taken.get(inner.function, ()):
                        reached += _handed_in(ups, call)
            if spot.held and not spot.held <= opened:
                reached += [self._spot(*self._given(n)) for n in spot.held - opened]
                opened |= spot.held
            if spot in freed:
                reached += chain(spot.near, spot.away, (up for _, up in spot.ups))
            else:
                fresh = [one for one in spot.near if one not in met and one not in freed]
                met.update(fresh)
                bound += fresh
                reached += spot.away
                if spot.ups:
                    taken.setdefault(spot.function, []).append(spot.ups)
                    for call in entered.get(spot.function, ()):
                        reached += _handed_in(spot.ups, call)
            fresh = [one for one in dict.fromkeys(reached) if one not in freed]
            freed.update(fresh)
            free += fresh
        return met | freed

    def _spot(self, function: Function, node: ast.AST) -> _Spot:
        found = self._spots.get((function, node))
        if found is None:
            found = self._spots[function, node] = _Spot(function, node)
        return found

    def _learn(self, spot: _Spot) -> None:
        spot.known = True
        step = self._step(spot.function, spot.node)
        spot.run, spot.held = step.run, step.held
        for one in step.onward:
            before = self._spot(one.function, one.node)
            if one.up is not None:
                spot.ups.append((one.up, before))
            elif one.down is not None:
                spot.downs.append((one.down, before))
            else:
                (spot.away if one.elsewhere else spot.near).append(before)


def _handed_in(ups: list[tuple[ast.Call, _Spot]], call: ast.Call) -> list[_Spot]:
    """Return what a call hands in for a parameter; what all calls do where it is not among them."""
    return [up for made, up in ups if made is call] or [up for _, up in ups]


def all_behind(project: Project, walk: Walk, values: Iterable[Place]) -> set[ast.AST]:
    """Return the nodes that some values are computed of, and those of what calls of partial objects give parameters among them."""
    met = walk.back(values)[1]
    completing = [
        (site.function, value)
        for function in project.calls.completions
        for site, given in project.completions(function)
        for name, value in given.items()
        if any(isinstance(n, ast.Name) and n.id == name and n in met for n in function.own_nodes)
    ]
    return met | walk.back(completing)[1]
