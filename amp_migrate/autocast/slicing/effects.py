"""What calls read and write beyond their arguments, and what the places of a function are to those that call it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.autocast.slicing.places import Needed, Place, Places, item, touches
from amp_migrate.facts.paths import is_super, looked_up, walk
from amp_migrate.flow.dominance import components
from amp_migrate.modules.binding import bind
from amp_migrate.project import CallSite, Function, Project
from amp_migrate.project.once import once

Effect = tuple[frozenset[Place], frozenset[Place]]
_NOTHING: Effect = (frozenset(), frozenset())


class Effects:
    """Summaries of functions, bottom-up over the calls: the places that they read and write, as their callers see them."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self.places = Places(project)
        self._known: dict[Function, Effect] = {}
        self._open = False
        self._at: dict[ast.AST, Effect] = {}
        self._calls: dict[Function, dict[ast.Call, list[CallSite]]] = {}

    def reads(self, function: Function, node: ast.AST) -> Needed:
        """Return the places that a node reads, itself and in what it calls."""
        return set(self._effect(function, node)[0])

    def writes(self, function: Function, node: ast.AST) -> Needed:
        """Return the places that a node writes, itself and in what it calls."""
        return set(self._effect(function, node)[1])

    def _effect(self, function: Function, node: ast.AST) -> Effect:
        known = self._at.get(node)
        if known is None:
            read = set(self.places.reads(function.module, node))
            written = set(self.places.writes(function.module, node))
            for inner, changed in self._called(node):
                read |= inner
                written |= changed
            known = frozenset(read), frozenset(written)
            if not self._open:
                self._at[node] = known
        return known

    def _called(self, node: ast.AST) -> Iterator[Effect]:
        for part in walk(node):
            if not isinstance(part, ast.Call):
                continue
            for callee in self._project.callees(part):
                for site in self._sites(callee, part):
                    yield self._seen_by(site, callee, self._of(callee))

    def leaving(self, call: ast.Call, needed: Needed) -> Iterator[tuple[Function, Needed]]:
        """Yield the functions that a call may run and that write what is needed, with what that is there."""
        for callee in self._project.callees(call):
            for site in self._sites(callee, call):
                written = self._of(callee)[1]
                left = {p for p in written if touches(self._exactly(site, callee, p), needed)}
                if left:
                    yield callee, left

    def _sites(self, callee: Function, call: ast.Call) -> list[CallSite]:
        if callee not in self._calls:
            known = self._calls[callee] = {}
            for site in self._project.calls_of(callee):
                known.setdefault(site.call, []).append(site)
        return self._calls[callee].get(call, [])

    def _seen_by(self, site: CallSite, callee: Function, effect: Effect) -> Effect:
        read, written = effect
        return (
            frozenset(q for p in read for q in self.outward(site, callee, p)),
            frozenset(q for p in written for q in self._exactly(site, callee, p)),
        )

    def _exactly(self, site: CallSite, callee: Function, place: Place) -> Needed:
        """Return the places that a place of a function is for its caller, without those that a value is made of."""
        if place.owner is not callee.scope:
            return {place}
        given = self.given(site, callee, place)
        known = ((self.places.of(site.function.module, node), steps) for node, steps in given)
        return {own.further(*steps) for own, steps in known if own is not None}

    def _of(self, function: Function) -> Effect:
        """Return the summary of a function; those that call one another are gone through until nothing is added."""
        if function not in self._known:
            outer, self._open = self._open, True
            members, called = self._unknown(function)
            for group in components(called, range(len(members))):
                again = len(group) > 1 or group[0] in called[group[0]]
                self._settle([members[number] for number in group], again)
            self._open = outer
        return self._known[function]

    def _settle(self, group: list[Function], again: bool) -> None:
        """Find the summaries of functions that may call one another, all those that they call else being known."""
        self._known |= dict.fromkeys(group, _NOTHING)
        changed = True
        while changed:
            changed = False
            for member in group:
                effect = self._summary(member)
                changed = changed or (again and effect != self._known[member])
                self._known[member] = effect

    def _unknown(self, function: Function) -> tuple[list[Function], list[list[int]]]:
        """Return the functions without a summary that one may come to, and the numbers of those that each one calls."""
        found = {function: 0}
        queue = [function]
        called: list[list[int]] = []
        for member in queue:
            own: dict[int, None] = {}
            for call in member.calls:
                for callee in self._project.callees(call):
                    if callee not in self._known:
                        if callee not in found:
                            found[callee] = len(queue)
                            queue.append(callee)
                        own[found[callee]] = None
            called.append(list(own))
        return queue, called

    def _summary(self, function: Function) -> Effect:
        read: Needed = set()
        written: Needed = set()
        bound: Needed = set()
        for stmt in getattr(function.node, "body", ()):
            inner, changed = self._effect(function, stmt)
            read |= inner
            written |= changed
            bound |= self.places.bound(function.module, stmt)
        return (
            frozenset(p for p in read if _lasts(p, function)),
            frozenset(
                p
                for p in written
                if _lasts(p, function) or (p not in bound and _is_given(p, function))
            ),
        )

    def outward(self, site: CallSite, callee: Function, place: Place) -> Needed:
        """Return what a place of a function is where it is called: a variable around it stays what it is."""
        if place.owner is not callee.scope:
            return {place}
        found: Needed = set()
        for node, steps in self.given(site, callee, place):
            own = self.places.of(site.function.module, node)
            if own is not None:
                found.add(own.further(*steps))
            else:
                found |= self.reads(site.function, node)
        return found

    def given(
        self, site: CallSite, callee: Function, place: Place
    ) -> Iterator[tuple[ast.expr, tuple[str, ...]]]:
        """Yield the expressions of a call that a parameter stands for, with the steps that lead on from them."""
        parameters, passed = callee.parameters, bind(site, callee)
        name, steps = place.name, place.steps
        taken = int(site.bound)
        position = parameters.positional.index(name) if name in parameters.positional else None
        if name == parameters.vararg:
            position, steps = _index(steps, len(parameters.positional))
        if position is not None and position < taken:
            receiver = _receiver(site)
            if receiver is not None:
                yield receiver, steps
        elif name in passed.given:
            yield passed.given[name], steps
        elif name == parameters.vararg or name in parameters.positional:
            index = None if position is None else position - taken
            rest = site.arguments()[len(parameters.positional) - taken :]
            yield from _positional(site, index, rest, steps)
        if name == parameters.kwarg:
            for keyword, value in passed.keywords.items():
                if not steps or steps[0] == item(keyword):
                    yield value, steps[1:]
            yield from ((value, steps) for value in passed.double_stars)
        elif name in parameters.names and name not in passed.given:
            yield from ((value, (item(name), *steps)) for value in passed.double_stars)


@once
def effects_of(project: Project) -> Effects:
    """Return the effects of the calls of a project, each worked out when it is first asked for."""
    return Effects(project)


def _positional(
    site: CallSite, index: int | None, rest: list[ast.expr], steps: tuple[str, ...]
) -> Iterator[tuple[ast.expr, tuple[str, ...]]]:
    """Yield what a call gives at a position, directly or in ``*args``; all of the rest where it is not known."""
    arguments = site.arguments()
    if index is None:
        yield from ((a.value if isinstance(a, ast.Starred) else a, ()) for a in rest)
        return
    stars = [i for i, a in enumerate(arguments) if isinstance(a, ast.Starred)]
    if stars and index >= stars[0]:
        star = arguments[stars[0]]
        assert isinstance(star, ast.Starred)
        yield star.value, (item(index - stars[0]), *steps)
    elif index < len(arguments):
        yield arguments[index], steps


def _lasts(place: Place, function: Function) -> bool:
    """Tell whether those that call a function can see a place: no variable of its own, but what is inside a parameter."""
    if place.owner is function.scope:
        parameters = function.parameters
        known = (*parameters.names, parameters.vararg, parameters.kwarg)
        return bool(place.steps) and place.name in known
    return function.scope not in function.module.tree.ancestors(place.owner)


def _is_given(place: Place, function: Function) -> bool:
    """Tell whether a place is a parameter itself: what is changed in it, and not bound to it, those that call see."""
    own = place.owner is function.scope and not place.steps
    return own and place.name in function.parameters.names


def _index(steps: tuple[str, ...], first: int) -> tuple[int | None, tuple[str, ...]]:
    """Return the position that an item of ``*args`` has among the arguments, and the steps that lead on from it."""
    number = steps[0][1:-1] if steps else ""
    if not number.isdigit():
        return None, ()
    return first + int(number), steps[1:]


def _receiver(site: CallSite) -> ast.expr | None:
    """Return the object whose method a call runs; ``super()`` stands for that of the calling method."""
    func = site.call.func
    found = looked_up(func)
    if found is not None:
        return found[0]
    if site.constructor or not isinstance(func, ast.Attribute):
        return None
    if not is_super(func.value):
        return func.value
    holder = next((f for f in site.function.outward if f.takes_receiver), None)
    return _first(holder) if holder is not None else None


def _first(function: Function) -> ast.expr | None:
    """Return an expression that reads the first parameter of a function."""
    for node in function.all_nodes:
        if (
            function.is_receiver(node)
            and isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Load)
        ):
            return node
    return None
