"""What written code reads in a program that does not have it: a flag of another program, a GradScaler it is not given."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.check.events.labels import text_of
from amp_migrate.check.events.sides import Key, Side, changed, differs, key
from amp_migrate.check.events.traces import Difference
from amp_migrate.facts.below import every
from amp_migrate.facts.paths import spreads, tail, walk
from amp_migrate.project import Function

_FLAG = "reads a flag that a program of this helper does not have:"
_ASKS = ast.If | ast.IfExp | ast.BoolOp | ast.While | ast.Compare | ast.UnaryOp
_GIVEN = "is used, although a call does not pass it:"


class Lacking:
    """Holds what the new text reads against what the programs that come there have."""

    def __init__(self, old: Side, new: Side) -> None:
        self._old = old
        self._new = new

    def flags(self, programs: Iterable[Function]) -> Iterator[tuple[Key, Difference]]:
        """Yield the attributes of options that programs come to now, without an option of that name."""
        for program in programs:
            begins = self._new.functions.get(key(program), [])
            flags: frozenset[str] | None = None
            for function in self._new.reached(begins):
                introduced = list(self._introduced(function))
                if not introduced:
                    continue
                if flags is None:
                    flags = self._flags(program)
                for node in introduced if flags else ():
                    if node.attr not in flags:
                        yield differs(function, node, f"`{text_of(node)}` {_FLAG}")

    def _introduced(self, function: Function) -> Iterator[ast.Attribute]:
        """Yield the options that decide casts in a function of the new text and did not stand in the old one."""
        had = (
            self._old.names(key(function)) if key(function) in self._old.functions else frozenset()
        )
        own = function.receivers
        nodes = function.own_nodes if function.node is None else function.all_nodes
        for node in nodes:
            for keyword in node.keywords if isinstance(node, ast.Call) else ():
                if keyword.arg == "enabled":
                    for part in every(keyword.value):
                        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
                            asked = part.value.id not in own and not _is_called(function, part)
                            if asked and text_of(part) not in had:
                                yield part

    def _flags(self, program: Function) -> frozenset[str]:
        """Return the words that a program may know options by; nothing where it parses none."""
        found: set[str] = set()
        parses = False
        functions = self._old.reached([program])
        scopes: set[ast.AST] = {f.scope for f in functions}
        for module in {f.module for f in functions}:
            scopes |= {module.tree.module, *module.tree.nodes(ast.ClassDef)}
        for scope in scopes:
            for node in walk(scope):
                if isinstance(node, ast.Call) and tail(node) == "add_argument":
                    parses = True
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.add(node.value.lstrip("-").replace("-", "_"))
                elif isinstance(node, ast.Attribute):
                    found.add(node.attr)
                elif isinstance(node, ast.Name):
                    found.add(node.id)
                elif isinstance(node, ast.keyword) and node.arg is not None:
                    found.add(node.arg)
        return frozenset(found) if parses else frozenset()

    def parameters(self) -> Iterator[tuple[Key, Difference]]:
        """Yield the uses of new parameters that are None where a call does not pass them."""
        for name, _ in changed(self._old, self._new):
            for function in self._new.functions[name]:
                for parameter in self._optional(function, name):
                    use = _unguarded(function, parameter)
                    if use is not None and self._is_left_out(function, parameter):
                        yield differs(function, use, f"`{text_of(use)}` {_GIVEN}")

    def _optional(self, function: Function, name: Key) -> Iterator[str]:
        known = {p for f in self._old.functions[name] for p in f.parameters.names}
        for parameter, default in function.parameters.defaults.items():
            if parameter not in known and isinstance(default, ast.Constant):
                if default.value is None:
                    yield parameter

    def _is_left_out(self, function: Function, parameter: str) -> bool:
        project = self._new.project
        return any(
            parameter not in project.arguments(site, function) and not spreads(site.call)
            for site in project.calls_of(function)
        )


def _unguarded(function: Function, parameter: str) -> ast.Attribute | None:
    """Return a use of a parameter in a function that takes it as it comes: it neither asks for it nor sets it."""
    tree = function.module.tree
    use: ast.Attribute | None = None
    for node in function.all_nodes:
        if not isinstance(node, ast.Name) or node.id != parameter:
            continue
        up = tree.parent(node)
        if isinstance(node.ctx, ast.Store) or isinstance(up, _ASKS):
            return None
        if isinstance(up, ast.Attribute) and use is None:
            use = up
    return use


def _is_called(function: Function, node: ast.Attribute) -> bool:
    up = function.module.tree.parent(node)
    return isinstance(up, ast.Call) and up.func is node
