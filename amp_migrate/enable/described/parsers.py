"""The command lines of a project: where argparse, click, absl or a dataclass gives options, and where one more would go."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.enable.described.parser import NAMES, Parser
from amp_migrate.enable.described.typed import typed
from amp_migrate.facts.constants import string
from amp_migrate.facts.paths import bottom, path
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.order import dominates

_PARSES = frozenset({"parse_args", "parse_known_args"})
_CLICK = frozenset({"click.command", "click.group"})


class Parsers:
    """Finds the parsers of a project, and how functions name what they read."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._read = [*self._argparse(), *typed(project)]

    def reach(self, function: Function, before: ast.stmt) -> tuple[str, list[Parser]] | None:
        """Return how a function calls its options where a statement stands, with their parsers; None without any.

        The text has braces where the name of an option goes: ``args.{}``, ``FLAGS.{}``, ``{}`` for a click command.
        """
        return self._namespace(function, before) or self._command(function) or self._flags(function)

    def _argparse(self) -> Iterator[tuple[Parser, frozenset[int]]]:
        """Yield the calls that parse the command line, with the names of what they give."""
        for module, call in self._project.nodes(ast.Call):
            if not isinstance(call.func, ast.Attribute) or call.func.attr not in _PARSES:
                continue
            made = self._project.values.made_by(module, call.func.value)
            if "argparse.ArgumentParser" not in made:
                continue
            held: ast.expr = call
            if call.func.attr == "parse_known_args":
                first = _first_of_pair(module, call)
                if first is None:
                    continue
                held = first
            found = self._project.values.groups(module, held)
            up = module.tree.parent(call)
            mapped = isinstance(up, ast.Call) and path(up.func) == "vars"
            yield (
                Parser("argparse", module, call, self._options(module, call, found), mapped),
                found,
            )

    def _options(self, module: Module, call: ast.Call, held: frozenset[int]) -> set[str]:
        """Return the options that a parser has, as far as its file says, and what is read of what it gives."""
        assert isinstance(call.func, ast.Attribute)
        values = self._project.values
        parser = values.groups(module, call.func.value)
        found: set[str] = set()
        for other, node in self._project.nodes(ast.Attribute):
            up = other.tree.parent(node)
            adds = node.attr == "add_argument" and isinstance(up, ast.Call)
            if adds and (other is module or values.groups(other, node.value) & parser):
                found |= set(_named(up)) if isinstance(up, ast.Call) else set()
            elif node.attr in NAMES and values.groups(other, node.value) & held:
                found.add(node.attr)
        return found

    def _namespace(self, function: Function, before: ast.stmt) -> tuple[str, list[Parser]] | None:
        inside = [n for n in ast.walk(before) if isinstance(n, ast.Name) and path(n)]
        near = [n for n in inside if _precedes(function, n, before)]
        for node in [*near, *self._named(function, before)]:
            group = self._project.values.group(function.module, node)
            groups = self._project.values.groups(function.module, node)
            own = [parser for parser, held in self._read if held & groups]
            every = {g for _, held in self._read for g in held}
            if group not in every and not groups <= every:
                continue  # what holds the options among others
            if own:
                mapped = any(parser.mapped for parser in own)
                return (f'{path(node)}["{{}}"]' if mapped else f"{path(node)}.{{}}"), own
        return None

    def _named(self, function: Function, before: ast.stmt) -> Iterator[ast.expr]:
        """Yield what a function can read before a statement: its names, those of its file, attributes it is given."""
        tree = function.module.tree
        for name in tree.nodes(ast.Name):
            if _precedes(function, name, before):
                if self._project.function_of(function.module, name) is function:
                    yield name
        for node in tree.nodes(ast.Attribute):
            if isinstance(node.ctx, ast.Load) and _is_given(function, node):
                if self._project.function_of(function.module, node) is function:
                    yield node
        for statement in tree.module.body if function.node is not None else ():
            if isinstance(statement, ast.Assign):
                yield from (t for t in statement.targets if isinstance(t, ast.Name))

    def _command(self, function: Function) -> tuple[str, list[Parser]] | None:
        node = function.node
        if node is None or not node.decorator_list or not (node.args.args or node.args.kwonlyargs):
            return None
        names = [
            self._project.external(function.module, d.func if isinstance(d, ast.Call) else d)
            for d in node.decorator_list
        ]
        if not _CLICK.intersection(name or "" for name in names):
            return None
        if not any(isinstance(n, ast.Import) for n in function.module.tree.module.body):
            return None
        return "{}", [Parser("click", function.module, node, set(function.parameters.names))]

    def _flags(self, function: Function) -> tuple[str, list[Parser]] | None:
        module = function.module
        held = [
            n
            for n in module.tree.nodes(ast.Name, ast.Attribute)
            if self._project.external(module, n) == "absl.flags.FLAGS" and path(n)
        ]
        bound = [
            t.id
            for s in module.tree.module.body
            if isinstance(s, ast.Assign) and s.value in held
            for t in s.targets
            if isinstance(t, ast.Name)
        ]
        declared = [
            s.value
            for s in module.tree.module.body
            if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)
            if (self._project.external(module, s.value.func) or "").startswith("absl.flags.DEFINE_")
            if isinstance(s.value.func, ast.Attribute)
        ]
        if not bound or not declared:
            return None
        names = {name for c in declared if c.args and (name := string(c.args[0])) is not None}
        return f"{bound[0]}.{{}}", [Parser("absl", module, declared[-1], names)]


def _named(call: ast.Call) -> Iterator[str]:
    """Yield what an option is called by ``add_argument``, with ``_`` for ``-``."""
    for node in [*call.args, *(k.value for k in call.keywords if k.arg == "dest")]:
        name = string(node)
        if name is not None:
            yield name.lstrip("-").replace("-", "_")


def _first_of_pair(module: Module, call: ast.Call) -> ast.expr | None:
    statement = module.tree.statement(call)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Tuple):
        return statement.targets[0].elts[0]
    return None


def _precedes(function: Function, name: ast.Name, before: ast.stmt) -> bool:
    """Tell whether a name of a function has its value wherever a statement runs."""
    if name.id in function.parameters.names:
        return True
    tree = function.module.tree
    scope = function.module.scopes.owner(name)
    bindings = function.module.scopes.bound(name)
    if scope is not function.scope:
        return bool(bindings)
    return len(bindings) == 1 and dominates(tree, tree.statement(bindings[0]), before)


def _is_given(function: Function, node: ast.Attribute) -> bool:
    """Tell whether an attribute is one of an object that a function is given."""
    root = bottom(node)
    return isinstance(root, ast.Name) and root.id in function.parameters.names
