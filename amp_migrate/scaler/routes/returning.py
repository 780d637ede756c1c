"""The scaler handed back by a function that initializes: ``return model, optimizer`` grows by one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from amp_migrate.plan.cannot import Cannot
from amp_migrate.plan.model import Edit, ReplaceExpression
from amp_migrate.project import CallSite, Class, Function
from amp_migrate.project.order import exclusive, key
from amp_migrate.project.rounds import may_follow, rebound
from amp_migrate.scaler.routes.received import (
    SPARE,
    Receiver,
    Settings,
    above,
    alike,
    apart_by_test,
    bare,
    gives,
    has_given,
    is_object,
    on_every_way,
    outlasting,
    receives,
    settings,
    superseded,
)

if TYPE_CHECKING:
    from amp_migrate.scaler.home import Home


_Source = tuple[Function, ast.Call]
State = tuple[dict[ast.Call, Receiver], dict[Function, list[ast.Return]]]


class Returning:
    """Threads the scaler upwards, from the function that makes it to the one that called it."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._receivers: dict[ast.Call, Receiver] = {}
        self._givers: dict[Function, list[ast.Return]] = {}
        self.extended: set[ast.Return] = set()
        self._called: dict[Function, list[tuple[ast.Call, list[Function]]]] = {}
        self._receiving: list[Function] = []

    def provide(self, function: Function, target: str | None = None) -> bool:
        """Make a function that calls the initializing one receive the scaler; tell whether that works."""
        sources = list(self._sources(function))
        if not sources or any(not self._hands_back(function, *source) for source in sources):
            return False
        self._refuse_unlike(function, sources)
        self._receiving.append(function)
        try:
            for _, callee in sources:
                self._give(callee)
        finally:
            self._receiving.pop()
        name = target or self._home.name
        self._receivers |= {call: Receiver(function, call, name) for call, _ in sources}
        return True

    def awaits(self, function: Function) -> bool:
        """Tell whether a function is about to get the scaler from what it calls, and so cannot hand it there."""
        return function in self._receiving

    def calls_for(self, function: Function) -> list[ast.Call]:
        """Return the calls by which a function gets the scaler into a variable of its own."""
        own = (r for r in self._receivers.values() if r.function is function)
        return [r.call for r in own if r.name == self._home.name]

    def state(self) -> State:
        """Return what was noted so far, for `restore`."""
        return dict(self._receivers), dict(self._givers)

    def restore(self, state: State) -> None:
        """Forget what was noted since `state`."""
        self._receivers, self._givers = state

    def received(self) -> list[Receiver]:
        """Return the calls that get the scaler back, each with the name that it has use for."""
        found = list(self._receivers.values())
        named = [receiver for receiver in found if receiver.name != SPARE]
        return [
            replace(receiver, name=SPARE)
            if superseded(self._home.project, receiver, named, self._uses(receiver))
            else receiver
            for receiver in found
        ]

    def _uses(self, receiver: Receiver) -> list[ast.AST]:
        return self._home.users.get(receiver.function, [])

    def late(self) -> Iterator[tuple[Receiver, ast.stmt]]:
        """Yield the receivers where some use is preceded by no call, with the statement around one that precedes all."""
        named = [r for r in self.received() if r.name != SPARE and "." not in r.name]
        tops: set[ast.stmt] = set()
        before: set[ast.stmt] = set()
        for receiver in named:
            uses = self._uses(receiver)
            top = above(receiver, uses)
            beside = [r for r in named if r.function is receiver.function]
            if top in tops or on_every_way(top, beside):
                continue
            tops.add(top)
            given = [receiver, *(r for r in beside if r.name == receiver.name and not r.other_arm)]
            if not all(any(has_given(self._home.project, r, use) for r in given) for use in uses):
                top = outlasting(receiver, top, beside)
                if top not in before:
                    before.add(top)
                    yield receiver, top

    def conditional(self, giver: Function) -> bool:
        """Tell whether a function that makes the scaler is called on some paths of a receiver only."""
        return any(giver in self._home.project.callees(r.call) for r, _ in self.late())

    def at_times(self, giver: Function) -> bool:
        """Tell whether a function returns at times before it initializes, and no scaler then."""
        returns = self._givers.get(giver)
        return returns is not None and any(r not in returns for r in self._own_returns(giver))

    def kept_at_once(self, cls: Class) -> bool:
        """Tell whether every constructor of a class keeps the scaler that it always gets back."""
        keeping = {
            receiver.function
            for receiver in self._receivers.values()
            if "." in receiver.name
            and receiver.function.node is not None
            and receiver.function.module.tree.statement(receiver.call)
            in receiver.function.node.body
        }
        return all(c.method("__init__") in keeping for c in (cls, *cls.subclasses()))

    def edits(self) -> Iterator[tuple[Function, str, list[tuple[str, Edit]]]]:
        """Yield, for each function that returns the scaler, a sentence and the edits of it and its callers."""
        for giver, returns in self._givers.items():
            edits: list[tuple[str, Edit]] = []
            for statement in returns:
                edits += self._extend(giver, statement)
            for receiver in self.received():
                if giver in self._home.project.callees(receiver.call):
                    edits += receiver.edits()
            yield giver, f"{giver.qualname}() returns the GradScaler too", edits

    def _sources(self, function: Function) -> Iterator[tuple[ast.Call, Function]]:
        """Yield the calls in `function` of what initializes, and so can give the scaler back."""
        for call, callees in self._calls(function):
            for callee in callees:
                if self._leads_on(callee) and self._initializes(callee, {function}):
                    yield call, callee
                    break

    def _initializes(self, function: Function, seen: set[Function]) -> bool:
        """Tell whether a function initializes, or calls what does; `seen` grows by those that it asks."""
        if function in seen:
            return False
        seen.add(function)
        return function in self._home.inits or any(
            self._leads_on(callee) and self._initializes(callee, seen)
            for _, callees in self._calls(function)
            for callee in callees
        )

    def _leads_on(self, callee: Function) -> bool:
        return callee.name != "__init__" and not self._home.is_attribute(callee)

    def _calls(self, function: Function) -> list[tuple[ast.Call, list[Function]]]:
        """Return the calls in a function itself, with what they call."""
        found = self._called.get(function)
        if found is None:
            project, calls = self._home.project, function.all_calls
            own = (n for n in calls if project.function_of(function.module, n) is function)
            found = self._called[function] = [(call, project.callees(call)) for call in own]
        return found

    def _give(self, callee: Function) -> None:
        """Make every return of `callee` longer."""
        returns = self._returns(callee)
        if callee not in self._givers and returns is not None:
            self._givers[callee] = returns
            plain = [r for r in returns if r.value is not None and not self._is_initialize(r.value)]
            for statement in plain or returns:
                self._home.access(callee, statement)
            calls = self._home.project.callers(callee)
            self._spare([s for s in calls if self._hands_back(s.function, s.call, callee)])

    def _hands_back(self, function: Function, call: ast.Call, callee: Function) -> bool:
        """Tell whether what a call takes is what a function returns behind its initialize."""
        returns = self._returns(callee)
        return returns is not None and receives(function, call) == self._gives(returns[0])

    def _gives(self, statement: ast.Return) -> int | None:
        value = statement.value
        return None if value is None else gives(value, self._is_initialize(value))

    def _returns(self, callee: Function) -> list[ast.Return] | None:
        """Return what is to become longer in `callee`; None where a caller could not take the longer result."""
        project = self._home.project
        if callee.node is None or project.escapes(callee):
            return None
        returns = self._own_returns(callee)
        shapes = {self._gives(statement) for statement in returns}
        taken = {receives(site.function, site.call) for site in project.callers(callee)}
        if None in taken or not taken <= shapes:
            return None
        if len(shapes) == 1:
            return returns
        begins = self.begins(callee)
        follows = partial(may_follow, project, callee)
        behind = [r for r in returns if any(follows(begin, r) for begin in begins)]
        given = {self._gives(statement) for statement in behind}
        rest = [r for r in returns if r not in behind]
        whole = (s for s in project.callers(callee) if receives(s.function, s.call) == 0)
        alone = all(is_object(site.function, site.call) for site in whole)
        one = len(given) == 1 and None not in given and not given & set(map(self._gives, rest))
        tree = callee.module.tree
        told = all(apart_by_test(tree, [*begins, *behind], statement) for statement in rest)
        return behind if one and alone and told else None

    def begins(self, function: Function) -> list[ast.AST]:
        """Return what initializes in a function, by itself or in what it calls."""
        calls = [call for call, _ in self._sources(function)]
        return [*(site.node for site in self._home.inits.get(function, [])), *calls]

    def _own_returns(self, function: Function) -> list[ast.Return]:
        return [
            node
            for node in function.all_nodes
            if isinstance(node, ast.Return)
            and self._home.project.function_of(function.module, node) is function
        ]

    def _is_initialize(self, node: ast.expr) -> bool:
        return any(site.node is node for sites in self._home.inits.values() for site in sites)

    def _refuse_unlike(self, function: Function, sources: list[tuple[ast.Call, Function]]) -> None:
        """One GradScaler serves all calls, as the state of Apex did: they must ask for the same."""
        for i, (call, callee) in enumerate(sources):
            for other, another in sources[:i]:
                alike = self._asks_alike(function, (callee, call), (another, other))
                if not alike and not exclusive(function.module.tree, call, other):
                    raise Cannot(
                        "AMP901",
                        *function.at(max(call, other, key=key)),
                        f"{callee.qualname}() calls amp.initialize again with other settings, of which Apex keeps one loss scale",
                        f"call {callee.qualname}() with the same settings for both, then run again",
                    )

    def _asks_alike(self, function: Function, one: _Source, other: _Source) -> bool:
        """Tell whether two calls are given the same settings, as written and by what was assigned in between."""
        asked, others = self._settings(*one), self._settings(*other)
        return alike(asked, others) and not any(
            rebound(self._home.project, function, node, *calls)
            for node in asked[1].values()
            for calls in ((one[1], other[1]), (other[1], one[1]))
        )

    def _settings(self, callee: Function, call: ast.Call) -> Settings:
        home = self._home
        given = home.project.given(call, callee)
        return settings(home.project, callee, home.inits.get(callee, []), given)

    def _spare(self, callers: list[CallSite]) -> None:
        """Callers that have no use for the scaler take it as ``_``."""
        for site in callers:
            self._receivers.setdefault(site.call, Receiver(site.function, site.call, SPARE))

    def _extend(self, callee: Function, statement: ast.Return) -> list[tuple[str, Edit]]:
        value, tree = statement.value, callee.module.tree
        if value is None:
            return []
        if self._is_initialize(value):
            self.extended.add(statement)
            return []
        text = self._home.access(callee, statement)
        edit = ReplaceExpression(tree.span(value), f"{bare(tree.segment(value))}, {text}")
        return [(callee.module.path, edit)]

    def prepare(self) -> None:
        """Note the returns of an initialize itself, before the initialize is rewritten.

        Raises `Cannot` where an expression returns the scaler on one of its arms only.
        """
        for receiver in self.received():
            if receiver.name != SPARE and receiver.other_arm is not None:
                raise Cannot(
                    "AMP901",
                    *receiver.function.at(receiver.call),
                    "the GradScaler is needed behind this, and only one arm of the expression calls amp.initialize",
                    "write it as an `if` statement that calls amp.initialize(..., enabled=False) otherwise, then run again",
                )
        for giver, returns in self._givers.items():
            for statement in returns:
                self._extend(giver, statement)
