"""The scaler handed back by a function that initializes: ``return model, optimizer`` grows by one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amp_migrate.plan import Edit, ReplaceExpression
from amp_migrate.project import CallSite, Class, Function
from amp_migrate.unit.order import dominates, levels

if TYPE_CHECKING:
    from amp_migrate.unit.home import Home


@dataclass(frozen=True, eq=False, slots=True)
class Receiver:
    """A call whose result grows by the scaler: `name` is what it is unpacked into."""

    function: Function
    call: ast.Call
    name: str


State = tuple[dict[ast.Call, Receiver], dict[Function, list[ast.Return]]]


class Returning:
    """Threads the scaler upwards, from the function that makes it to the one that called it."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._receivers: dict[ast.Call, Receiver] = {}
        self._givers: dict[Function, list[ast.Return]] = {}
        self.extended: set[ast.Return] = set()

    def provide(self, function: Function, target: str | None = None) -> bool:
        """Make a function that calls the initializing one receive the scaler; tell whether that works."""
        source = self._source(function, set())
        if source is None:
            return False
        call, callee = source
        if not _unpacks(function, call) or not self._give(callee):
            return False
        self._receivers[call] = Receiver(function, call, target or self._home.name)
        return True

    def state(self) -> State:
        """Return what was noted so far, for `restore`."""
        return dict(self._receivers), dict(self._givers)

    def restore(self, state: State) -> None:
        """Forget what was noted since `state`."""
        self._receivers, self._givers = state

    def late(self) -> Iterator[tuple[Receiver, ast.stmt]]:
        """Yield the receivers whose call does not precede every use, with the statement around it that does."""
        for receiver in self._receivers.values():
            tree = receiver.function.module.tree
            uses = self._home.users.get(receiver.function, [])
            top = tree.statement(receiver.call)
            if (
                receiver.name == "_"
                or "." in receiver.name
                or all(dominates(tree, top, use) for use in uses)
            ):
                continue
            for level in levels(tree, top):
                top = level
                if all(dominates(tree, level, use) for use in uses):
                    break
            yield receiver, top

    def conditional(self, giver: Function) -> bool:
        """Tell whether a function that makes the scaler is called on some paths of a receiver only."""
        return any(giver in self._home.project.callees(r.call) for r, _ in self.late())

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
            for receiver in self._receivers.values():
                if giver in self._home.project.callees(receiver.call):
                    edits += _receive(receiver)
            yield giver, f"{giver.qualname}() returns the GradScaler too", edits

    def _source(self, function: Function, seen: set[Function]) -> tuple[ast.Call, Function] | None:
        """Find a call in `function` of one that initializes, and so can give the scaler back."""
        seen.add(function)
        home = self._home
        for node in ast.walk(function.scope):
            if not isinstance(node, ast.Call):
                continue
            if home.project.function_of(function.module, node) is not function:
                continue
            for callee in home.project.callees(node):
                if callee in seen or callee.name == "__init__" or home.is_attribute(callee):
                    continue
                if callee in home.inits or self._source(callee, seen) is not None:
                    return node, callee
        return None

    def _give(self, callee: Function) -> bool:
        """Make every return of `callee` longer; all of its callers must take the longer result."""
        if callee in self._givers:
            return True
        home = self._home
        callers = home.project.callers(callee)
        if callee.node is None or home.project.escapes(callee):
            return False
        if not all(_unpacks(site.function, site.call) for site in callers):
            return False
        returns = [
            n
            for n in ast.walk(callee.node)
            if isinstance(n, ast.Return) and home.project.function_of(callee.module, n) is callee
        ]
        if not returns or any(r.value is None for r in returns):
            return False
        self._givers[callee] = returns
        home.access(callee, returns[-1])
        self._spare(callers)
        return True

    def _spare(self, callers: list[CallSite]) -> None:
        """Callers that have no use for the scaler take it as ``_``."""
        for site in callers:
            self._receivers.setdefault(site.call, Receiver(site.function, site.call, "_"))

    def _extend(self, callee: Function, statement: ast.Return) -> list[tuple[str, Edit]]:
        value = statement.value
        tree = callee.module.tree
        if value is None:
            return []
        if any(site.node is value for sites in self._home.inits.values() for site in sites):
            self.extended.add(statement)
            return []
        text = self._home.access(callee, statement)
        edit = ReplaceExpression(tree.span(value), f"{_bare(tree.segment(value))}, {text}")
        return [(callee.module.path, edit)]

    def prepare(self) -> None:
        """Note the returns of an initialize itself, before the initialize is rewritten."""
        for giver, returns in self._givers.items():
            for statement in returns:
                self._extend(giver, statement)


def _unpacks(function: Function, call: ast.Call) -> bool:
    stmt = function.module.tree.parent(call)
    if not isinstance(stmt, ast.Assign) or len(stmt.targets) != 1:
        return False
    return isinstance(stmt.targets[0], ast.Tuple | ast.Name | ast.Attribute)


def _receive(receiver: Receiver) -> list[tuple[str, Edit]]:
    tree = receiver.function.module.tree
    stmt = tree.parent(receiver.call)
    if not isinstance(stmt, ast.Assign):
        return []
    target = stmt.targets[0]
    text = f"{_bare(tree.segment(target))}, {receiver.name}"
    return [(receiver.function.module.path, ReplaceExpression(tree.span(target), text))]


def _bare(text: str) -> str:
    """Take the parentheses off a tuple that stands in them."""
    if (
        text.startswith("(")
        and text.endswith(")")
        and isinstance(ast.parse(text, mode="eval").body, ast.Tuple)
    ):
        return text[1:-1].rstrip(", ")
    return text
