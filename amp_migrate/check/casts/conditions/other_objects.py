"""Objects that leave AMP off, in a run in which another one of their class turned it on: Apex cast for all of them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from amp_migrate.check.apex.assumed import Initialize
from amp_migrate.check.apex.disabling import States
from amp_migrate.check.apex.facts import Facts
from amp_migrate.check.apex.initialized import Initialized
from amp_migrate.check.casts.casting import Casting, Casts
from amp_migrate.check.casts.differing import Where, same
from amp_migrate.check.events.sides import Side, key
from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.project import Function
from amp_migrate.project.reach import reachable

Ran = tuple[Where, ast.Call, Function]
"""A call that runs a network or a loss, with its place and its function."""


def left_out(
    sides: tuple[Side, Side],
    item: Initialize,
    apex: Initialized,
    starts: Mapping[Function, States],
    ran: Iterable[Ran],
    facts: Facts,
) -> Iterator[tuple[Where, ast.Call]]:
    """Yield what is run on objects that did not initialize while Apex was on, and that the new text casts for others alone."""
    old, new = sides
    told: set[ast.Call] = set()
    for known in item.off:
        names = _asked(item, known)
        objects = _Objects(old, item, facts, names) if names else None
        others = {key(f) for f in objects.run(apex, starts)} if objects is not None else ()
        if not others:
            continue
        native = Casting(new.program, item.without(known))
        begun = native.spread(same(new, starts))
        for at, call, function in ran:
            around = begun.get(function)
            if at[0] not in others or around is None or call in told:
                continue
            if native.at(function, call, around) is Casts.OFF:
                told.add(call)
                yield at, call


def _asked(item: Initialize, known: Assumption) -> set[str]:
    """Return the parameters and attributes of its own object that a method asks in a way of AMP being off; none if it asks more."""
    on, method = item.on or NOTHING, item.function.method
    other = [fact for fact in known.facts if on.get(fact.term) != fact.value]
    texts = {operand.text for fact in other for operand in fact.term.operands}
    own = f"{method.receiver}."
    names = {text for text in texts if text in item.function.parameters.names}
    names |= {text for text in texts if text.startswith(own) and text.count(".") == 1}
    return names if names == texts else set()


class _Objects:
    """Finds the objects of the class whose method initializes that certainly do not."""

    def __init__(self, side: Side, item: Initialize, facts: Facts, names: set[str]) -> None:
        self._project = side.project
        self._function = item.function
        self._facts = facts
        stored = [n for n in item.function.own_nodes if isinstance(n, ast.Attribute)]
        set_here = {ast.unparse(n) for n in stored if isinstance(n.ctx, ast.Store)}
        self._of_each = all("." not in name or name in set_here for name in names)

    def run(self, apex: Initialized, starts: Mapping[Function, States]) -> Iterator[Function]:
        """Yield the functions that may run on them while Apex is on."""
        method = self._function.method
        if method.cls is None or method.receiver is None or method.is_class:
            return
        states = {c: held for f, start in starts.items() for c, held in apex.calls(f, start)}
        for function in starts:
            for made in function.calls:
                if any(method.cls in cls.mro() for cls in self._project.constructed(made)):
                    yield from self._of(function, made, apex, states)

    def _of(
        self,
        function: Function,
        made: ast.Call,
        apex: Initialized,
        states: Mapping[ast.Call, States],
    ) -> Iterator[Function]:
        calls = list(_calls_on(function, made))
        if not self._is_off(made, calls, apex):
            return
        for call in calls:
            if True in states.get(call, ()):
                for callee in self._project.callees(call):
                    yield from reachable(self._project, callee)

    def _is_off(self, made: ast.Call, calls: list[ast.Call], apex: Initialized) -> bool:
        """Tell whether an object does not initialize: its constructor does not, nor any method that is called on it.

        One on which no such method is called is off where that method alone sets what is asked.
        """
        excluded = [call for call in (made, *calls) if self._excludes(call)]
        leading = [call for call in (made, *calls) if apex.initializes(call)]
        return all(call in excluded for call in leading) and bool(leading or self._of_each)

    def _excludes(self, call: ast.Call) -> bool:
        callees = self._project.callees(call)
        return self._function in callees and self._facts.exclude(
            self._project, call, self._function
        )


def _calls_on(function: Function, made: ast.Call) -> Iterator[ast.Call]:
    """Yield the calls of methods of an object that one variable holds; none where it may go elsewhere."""
    module, tree = function.module, function.module.tree
    up = tree.parent(made)
    target = up.targets[0] if isinstance(up, ast.Assign) and len(up.targets) == 1 else None
    if not isinstance(target, ast.Name) or module.scopes.only_value(target) is not made:
        return
    found: list[ast.Call] = []
    for read in module.scopes.reads(module.scopes.owner(target), target.id):
        attribute = tree.parent(read)
        call = tree.call_of(attribute) if isinstance(attribute, ast.Attribute) else None
        if call is not None:
            found.append(call)
        elif not isinstance(attribute, ast.Attribute):
            return
    yield from found
