"""Calls that come down to Apex, as they read when Apex and its arguments are written out."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import NamedTuple

from amp_migrate.apex.sites import AMP_CALLS
from amp_migrate.apex.unpacked.entries import entries
from amp_migrate.facts.constants import is_none
from amp_migrate.facts.scopes import assigned
from amp_migrate.flow import Kind
from amp_migrate.plain.held import Held, Holding
from amp_migrate.plain.stays import Moment
from amp_migrate.project import Function, Project
from amp_migrate.training.bindings import is_generator

_LONGEST = 10
_PATHS = (ast.Name, ast.Attribute)


@dataclass(frozen=True, slots=True)
class Plain:
    """A call that means a call of Apex.

    `callee` is what it calls at the end, where that differs; `first` and `named` are the arguments that partial
    objects bring; `unpacked` says what stands in place of arguments with stars. `through` are the reads that go.
    """

    call: ast.Call
    callee: ast.expr | None
    first: tuple[ast.expr, ...]
    named: dict[str, ast.expr]
    unpacked: dict[ast.Starred | ast.keyword, str]
    through: tuple[ast.expr, ...]


class _Bound(NamedTuple):
    """The arguments of a partial object, what it calls among the first, and the reads that they come from."""

    first: list[ast.expr]
    named: dict[str, ast.expr]
    through: list[ast.expr]


class Calls:
    """Finds what calls of one file come down to, and what other names of amp are."""

    def __init__(self, holding: Holding) -> None:
        self._holding = holding
        self._project, self._module = holding.project, holding.module

    def plain(self, call: ast.Call) -> Plain | None:
        """Return what a call means in terms of Apex; None where it is plain already, or something else."""
        at = self._holding.moment(call, Kind.CALL)
        if at is None:
            return None
        callee, moment = call.func, at
        first: list[ast.expr] = []
        named: dict[str, ast.expr] = {}
        through: list[ast.expr] = []
        for _ in range(_LONGEST):
            if self._is_function(callee):
                break
            if isinstance(callee, ast.Call):
                opened = (
                    self._opened(callee, moment, at) if self._holding.is_partial(callee) else None
                )
                if opened is None or not self._holding.arguments_stay(callee, moment, at):
                    return None
                callee, *bound = opened.first
                first = [*bound, *first]
                named = {**opened.named, **named}
                through += opened.through
                continue
            found = self._holding.held(callee, moment)
            if found is None and callee is call.func and self._is_of_amp(callee):
                break
            if found is None:
                return None
            callee, moment = found.node, found.moment
            through += found.through
        else:
            return None
        if not self._holding.stays(callee, moment, at):
            return None
        unpacked, more = self._unpacked(call, at)
        if callee is call.func and not unpacked:
            return None
        return Plain(
            call,
            None if callee is call.func else callee,
            tuple(first),
            {name: value for name, value in named.items() if name not in _names(call)},
            unpacked,
            (*through, *more),
        )

    def alias(self, node: ast.expr) -> Held | None:
        """Return the plain spelling of amp, or of a loss scaler of Apex, for another name of it; None where the name is plain, or not known."""
        at = self._holding.moment(node, Kind.LOAD)
        found = Held(node, at, ()) if at is not None else None
        while found is not None and not self._is_plain(found.node):
            step = self._holding.held(found.node, found.moment)
            found = step and Held(step.node, step.moment, (*found.through, *step.through))
        if found is None or at is None or found.node is node:
            return None
        return found if self._holding.stays(found.node, found.moment, at) else None

    def imported(self, statement: ast.Assign) -> str | None:
        """Return the import that does what an assignment of amp, or a function of it, does: ``mixed = apex.amp``."""
        tree, target, value = self._module.tree, statement.targets[0], statement.value
        name = self._project.apex(self._module, value)
        if len(statement.targets) > 1 or not isinstance(target, ast.Name) or name is None:
            return None
        span = tree.span(statement)
        if span.line < span.end_line or isinstance(tree.parent(statement), ast.ClassDef):
            return None
        package, _, last = name.rpartition(".")
        if name != "apex.amp" and (package != "apex.amp" or last not in AMP_CALLS):
            return None
        others = [b for b in self._module.scopes.bound(target) if b is not target]
        if not all(is_none(assigned(tree, other)) for other in others):
            return None
        if not isinstance(value, _PATHS) or not self._holding.is_imported(value):
            return None
        renamed = f" as {target.id}" if last != target.id else ""
        return f"from {package} import {last}{renamed}"

    def _is_plain(self, node: ast.expr) -> bool:
        if self._holding.is_loss_scaler(node):
            return True
        if not self._is_amp(node):
            return False
        if isinstance(node, ast.Attribute):
            return self._project.apex(self._module, node.value) == "apex"
        if not isinstance(node, ast.Name):
            return False
        bindings = self._module.scopes.bound(node)
        return all(isinstance(b, ast.alias | ast.arg) for b in bindings)

    def _is_function(self, node: ast.expr) -> bool:
        """Tell whether an expression names a function of amp where it stands."""
        if isinstance(node, ast.Name):
            bindings = self._module.scopes.bound(node)
            if not bindings or not all(isinstance(b, ast.alias) for b in bindings):
                return False
        elif not isinstance(node, ast.Attribute) or not self._is_amp(node.value):
            return False
        return self._is_of_amp(node)

    def _is_of_amp(self, node: ast.expr) -> bool:
        name = self._project.apex(self._module, node) or ""
        return name.removeprefix("apex.amp.") in AMP_CALLS

    def _is_amp(self, node: ast.expr) -> bool:
        return self._project.apex(self._module, node) == "apex.amp"

    def _opened(self, partial: ast.Call, made: Moment, at: Moment) -> _Bound | None:
        """Return what a partial object holds, its unpacked arguments one by one; None where they are not the same at a moment."""
        first: list[ast.expr] = []
        named: dict[str, ast.expr] = {}
        through: list[ast.expr] = []
        for node in (*partial.args, *partial.keywords):
            if isinstance(node, ast.keyword) and node.arg is not None:
                named[node.arg] = node.value
            elif isinstance(node, ast.Starred | ast.keyword):
                found = self._holding.unchanged(node.value, made, at)
                if found is None:
                    return None
                items, reads = found
                through += reads
                first += [value for key, value in items.items() if not isinstance(key, str)]
                named |= {key: value for key, value in items.items() if isinstance(key, str)}
            else:
                first.append(node)  # type: ignore[arg-type]
        return _Bound(first, named, through) if first else None

    def _unpacked(
        self, call: ast.Call, at: Moment
    ) -> tuple[dict[ast.Starred | ast.keyword, str], list[ast.expr]]:
        """Return the arguments that stand for those with stars, as far as they can be written out."""
        found: dict[ast.Starred | ast.keyword, str] = {}
        through: list[ast.expr] = []
        starred = [a for a in call.args if isinstance(a, ast.Starred)]
        doubled = [k for k in call.keywords if k.arg is None]
        given: list[ast.Starred | ast.keyword] = [*starred, *doubled]
        for argument in given:
            opened = at.graph.at(argument, Kind.UNPACK)
            moment = Moment(at.graph, opened[0]) if len(opened) == 1 else at
            written = self._written(argument.value, isinstance(argument, ast.keyword), moment)
            if written is not None:
                found[argument], reads = written
                through += reads
        return found, through

    def _written(
        self, node: ast.expr, double: bool, at: Moment
    ) -> tuple[str, tuple[ast.expr, ...]] | None:
        shown = self._holding.display(node, at)
        items = self._holding.items(shown.node) if shown is not None else None
        if shown is not None and not self._holding.is_whole(node, shown, at):
            return self._filled(node, at) if double else None
        if shown is None or not items or double == isinstance(shown.node, ast.Tuple | ast.List):
            found = self._elsewhere(node, double, at)
            return self._filled(node, at) if found is None and double else found
        moved = all(self._holding.stays(item, shown.moment, at) for item in items.values())
        texts: dict[object, str] = {}
        for key, item in items.items():
            if moved or shown.node is node:
                texts[key] = self.text(item)
            elif isinstance(node, ast.Name) and isinstance(key, int):
                texts[key] = f"{node.id}[{key}]"
            else:
                return None
        reads = shown.through if moved else ()
        form = "{}={}" if double else "{1}"
        return ", ".join(form.format(key, text) for key, text in texts.items()), reads

    def _filled(self, node: ast.expr, at: Moment) -> tuple[str, tuple[ast.expr, ...]] | None:
        """Return the entries of a dictionary that is filled step by step, those that stay as they were stored."""
        found = self._holding.filled(node, at)
        if found is None:
            return None
        moved = all(stays for _, stays in found.values())
        reads = self._holding.filling(node) if moved else ()
        texts = (f"{key}={self.text(value)}" for key, (value, _) in found.items())
        return ", ".join(texts), reads

    def _elsewhere(
        self, node: ast.expr, double: bool, at: Moment
    ) -> tuple[str, tuple[ast.expr, ...]] | None:
        """Return the variable itself where it is unpacked out of a collection."""
        found: Held | None = self._holding.held(node, at)
        if found is not None and isinstance(found.node, ast.Call) and isinstance(node, ast.Name):
            count = 0 if double else returned_items(self._project, found.node)
            items = (f"{node.id}[{index}]" for index in range(count))
            return (", ".join(items), ()) if count else None
        if found is None or not isinstance(found.node, ast.Name):
            return None
        if not self._holding.stays(found.node, found.moment, at):
            return None
        bare = double and isinstance(at.point.node, ast.Call) and not at.point.node.args
        if bare and (filled := self._filled(node, at)) is not None:
            return filled
        deeper = self._written(found.node, double, at)
        if deeper is not None and (not double or not self._is_read(found.node, at)):
            return deeper[0], (*found.through, *deeper[1])
        return f"{'**' if double else '*'}{found.node.id}", found.through

    def _is_read(self, mapping: ast.Name, at: Moment) -> bool:
        """Tell whether the options of a call of `initialize` can be read where they are."""
        call = at.point.node
        starts = isinstance(call, ast.Call) and self._project.apex(self._module, call.func)
        return starts == "apex.amp.initialize" and bool(
            entries(self._project, self._module, mapping, call)
        )

    def text(self, node: ast.expr) -> str:
        """Return an expression in one line."""
        tree = self._module.tree
        if node not in tree.parents:
            return ast.unparse(node)
        segment = tree.segment(node)
        return segment if "\n" not in segment and "#" not in segment else ast.unparse(node)


def _names(call: ast.Call) -> set[str]:
    return {k.arg for k in call.keywords if k.arg is not None}


def returned_items(project: Project, call: ast.Call) -> int:
    """Return the number of items of the tuple that a call gives; 0 where that is not known."""
    called = list(project.callees(call))
    if len(called) != 1:
        return 0
    function = called[0]
    node = function.node
    if not isinstance(node, ast.FunctionDef) or node.decorator_list:
        return 0
    if is_generator(function):
        return 0
    returns = [part for part in function.own_nodes if isinstance(part, ast.Return)]
    counts = {_items(function, part.value) for part in returns}
    return counts.pop() if len(counts) == 1 else 0


def _items(function: Function, value: ast.expr | None) -> int:
    if isinstance(value, ast.Name):
        value = function.module.scopes.only_value(value)
    if not isinstance(value, ast.Tuple) or any(isinstance(e, ast.Starred) for e in value.elts):
        return 0
    return len(value.elts)
