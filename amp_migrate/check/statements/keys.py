"""Under which keys both texts hold the state of the loss scale, and whether it is loaded from where it was."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from amp_migrate.check.apex.assumed import guards
from amp_migrate.check.events.claims import Claims
from amp_migrate.check.events.labels import Does
from amp_migrate.check.events.sides import Key, Side, changed, differs
from amp_migrate.check.events.traces import Difference
from amp_migrate.facts.constants import string
from amp_migrate.facts.paths import all_given, root
from amp_migrate.project import Function

_SCALES = ("loss_scale", "scale")
_Call = tuple[Function, ast.Call]
_ASKED = "runs where another key is there than that of the state:"
_NOWHERE = "loads from where nothing is saved any more:"
_LOADS = "gives the GradScaler what Apex was not given:"


class Keys:
    """The keys of one text; `other` tells which names only this one has."""

    def __init__(self, side: Side, other: Side) -> None:
        self._side = side
        self._other = other

    def calls(self, name: Key, does: Does) -> Iterator[_Call]:
        """Yield the calls of the functions of a name that save, or load, the state."""
        names = self._other.names(name) if name in self._other.functions else frozenset()
        introduced = self._side.names(name) - names
        for function in self._side.functions[name]:
            for call, _ in self._side.of_kind(function, does, introduced=introduced):
                yield function, call

    @cached_property
    def saved(self) -> frozenset[str]:
        """The keys under which the state is saved."""
        return frozenset(k for f, c in self._every(Does.SAVE) for k in _stored(f, c))

    @cached_property
    def loaded(self) -> frozenset[str]:
        """The keys that stand in what is loaded."""
        calls = self._every(Does.LOAD)
        return frozenset(k for f, c in calls for given in self.given(f, c) for k in texts(given))

    @cached_property
    def known(self) -> frozenset[str]:
        """The keys of the state."""
        return self.saved | self.loaded

    def given(self, function: Function, call: ast.Call) -> list[ast.expr]:
        """Return what a call is given, a variable as what it holds."""
        found = []
        for node in all_given(call):
            held = self._side.labels.values_of(function, node) if isinstance(node, ast.Name) else []
            found += held or [node]
        return found

    def is_own(self, name: Key, node: ast.expr) -> bool:
        """Tell whether what is loaded was saved before by the functions of a name, and is no file's."""
        return any(node is call for _, call in self.calls(name, Does.SAVE))

    def scales(self, name: Key) -> set[str]:
        """Return the loss scales that the functions of a name put into a state before they load it."""
        return {
            ast.unparse(node.value)
            for function, call in self.calls(name, Does.LOAD)
            for state in all_given(call)
            for node in function.own_nodes
            if isinstance(node, ast.Assign) and isinstance(state, ast.Name)
            for target in node.targets
            if isinstance(target, ast.Subscript) and string(target.slice) in _SCALES
            if root(target) == state.id
        }

    def _every(self, does: Does) -> Iterator[_Call]:
        relevant = self._side.relevant | self._other.relevant
        for name in relevant & self._side.functions.keys():
            yield from self.calls(name, does)


def _lost(was: Keys, now: Keys) -> bool:
    """Tell whether the new text loads from where it saves nothing, which the old one did not."""
    saves = was.saved & was.loaded and now.saved and now.loaded
    return bool(saves) and not now.saved & now.loaded


def _asked(function: Function, call: ast.Call) -> frozenset[str]:
    """Return the keys for which the tests around a call ask."""
    asking = (part for test, _ in guards(function, call) for part in ast.walk(test))
    return frozenset(
        text
        for part in asking
        if isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.In | ast.NotIn)
        for text in texts(part.left)
    )


def reloaded(old: Side, new: Side, claims: Claims) -> Iterator[tuple[Key, Difference]]:
    """Yield what the new text loads a GradScaler from where Apex loaded from nothing alike."""
    was, now = Keys(old, new), Keys(new, old)
    for name in changed(old, new):
        had = [given for f, c in was.calls(name, Does.LOAD) for given in was.given(f, c)]
        if not had or any(map(claims.drops, old.functions[name])):
            continue
        masked = {_masked(node, was.known) for node in had}
        kept = {key for node in had for key in texts(node)}
        asked = {k for f, c in was.calls(name, Does.LOAD) for k in _asked(f, c)}
        for function, call in now.calls(name, Does.LOAD):
            if _lost(was, now):
                yield differs(function, call, f"`{ast.unparse(call)}` {_NOWHERE}")
            if asked <= was.loaded and not _asked(function, call) <= now.known:
                yield differs(function, call, f"`{ast.unparse(call)}` {_ASKED}")
            if was.scales(name) != now.scales(name):
                yield differs(function, call, f"`{ast.unparse(call)}` {_LOADS}")
            for given in now.given(function, call):
                if now.is_own(name, given) and any(was.is_own(name, node) for node in had):
                    continue
                anew = texts(given) - now.saved - kept if was.loaded & was.saved else frozenset()
                if anew or _masked(given, now.known) not in masked:
                    yield differs(function, call, f"`{ast.unparse(call)}` {_LOADS}")


def texts(node: ast.AST) -> frozenset[str]:
    """Return the texts that stand in an expression."""
    parts = (string(part) for part in ast.walk(node) if isinstance(part, ast.Constant))
    return frozenset(part for part in parts if part is not None)


def _masked(node: ast.expr, keys: frozenset[str]) -> str:
    """Return an expression as text, whatever its keys of the state are."""
    text = ast.unparse(node)
    for found in sorted(texts(node) & keys):
        text = text.replace(repr(found), "...")
    return text


def _stored(function: Function, call: ast.Call) -> Iterator[str]:
    """Yield the keys under which the result of a call is kept."""
    tree = function.module.tree
    child: ast.AST = call
    for up in tree.ancestors(call):
        if isinstance(up, ast.Dict):
            pairs = zip(up.keys, up.values, strict=True)
            named = (k for k, value in pairs if value is child and k is not None)
            yield from (t for k in named for t in texts(k))
        elif isinstance(up, ast.keyword) and up.arg is not None:
            yield up.arg
        elif isinstance(up, ast.Assign):
            yield from (t for target in up.targets for t in texts(target))
        if isinstance(up, ast.stmt | ast.Dict | ast.keyword):
            return
        child = up
