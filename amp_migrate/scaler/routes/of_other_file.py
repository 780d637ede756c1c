"""The scaler as a variable of another file, reached as the objects are that it serves: by an import."""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from amp_migrate.apex.sites import Site
from amp_migrate.facts.scopes import ScopeNode
from amp_migrate.plan.model import AddImportedName, Edit, Insert
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.imported import runs_on_import
from amp_migrate.project.order import dominates
from amp_migrate.project.programs import files_of
from amp_migrate.scaler.reach.in_reach import is_global

_IMPORTS = (ast.Import, ast.ImportFrom)


@dataclass(frozen=True, slots=True)
class Import:
    """How a file has a variable of another one: as `text`, once `edits` are made."""

    home: Module
    text: str
    edits: tuple[Edit, ...] = ()


@dataclass
class OtherFiles:
    """The files that have the scaler of another one; `rebound` where a function makes it, after it was imported.

    `provide` lets the calls of a function give it the scaler, and tells whether they can.
    """

    project: Project
    inits: Mapping[Function, list[Site]]
    name: str
    rebound: bool
    provide: Callable[[Function], bool]
    found: dict[Function, Import] = field(default_factory=dict)

    def reached(self, function: Function, node: ast.AST) -> str | None:
        """Return how a function has the scaler that a file makes which its own imports; None where it has not."""
        home = self._home(function.module)
        if home is None or not (self._is_only(home) or is_global(function, node)):
            return None
        tops = [s for s in function.module.tree.module.body if isinstance(s, _IMPORTS)]
        for statements, scope in (
            (tops, function.module.tree.module),
            (_above(function, node), function.scope),
        ):
            for way in self._ways(function.module, home, statements, scope):
                if _is_seen(function, scope, way):
                    self.found[function] = way
                    return way.text
        return None

    def serves(self, module: Module, resolved: Container[Function]) -> bool:
        """Tell whether functions of other files have the scaler of a file."""
        return any(way.home is module for f, way in self.found.items() if f in resolved)

    def edits(self, resolved: Container[Function]) -> Iterator[tuple[Function, str, list[Edit]]]:
        """Yield the imports to be made, with a function of each file that needs one, and a sentence."""
        made = [(f, way) for f, way in self.found.items() if f in resolved and way.edits]
        kept = {(f.module, way.edits): (f, way) for f, way in made}
        for function, way in kept.values():
            source = way.home.path
            yield function, f"the GradScaler of {source} is imported", list(way.edits)

    def _home(self, module: Module) -> Module | None:
        """Return the one file that makes the scaler and has run whenever code of another runs, if there is one.

        One that imports the other may be half run by then, or run a second time by its name.
        """
        near = files_of(self.project, module)
        given = self._given(near)
        homes = {*given} or {f.module for f in self.inits if f.module.path in near}
        if len(homes) != 1:
            return None
        home = homes.pop()
        if home is module or module.path in files_of(self.project, home):
            return None
        made = [s.node for f, sites in self.inits.items() if f.module is home for s in sites]
        if self.rebound or all(runs_on_import(home, node) for node in given.get(home, made)):
            return home if home not in given or self.provide(home.top) else None
        return None

    def _given(self, near: Container[str]) -> dict[Module, list[ast.AST]]:
        """Return the files whose top-level code calls what makes the scaler, with the calls."""
        found: dict[Module, list[ast.AST]] = {}
        for function in self.inits if not self.rebound else ():
            for site in self.project.callers(function):
                if site.function.node is None and site.function.module.path in near:
                    found.setdefault(site.function.module, []).append(site.call)
        return found

    def _is_only(self, home: Module) -> bool:
        """Tell whether no other file makes a scaler, which a function could be meant to serve with its parameters."""
        return all(function.module is home for function in self.inits)

    def _ways(
        self,
        module: Module,
        home: Module,
        statements: Sequence[ast.Import | ast.ImportFrom],
        scope: ScopeNode,
    ) -> Iterator[Import]:
        """Yield how some imports of a scope have the scaler of another file, or can: through the module, or by its name."""
        lookup = self.project.lookup
        for statement in statements:
            if isinstance(statement, ast.Import):
                for alias in statement.names:
                    if lookup.layout.absolute(module.path, alias.name) == home.path:
                        yield Import(home, f"{alias.asname or alias.name}.{self.name}")
            if isinstance(statement, ast.ImportFrom):
                for alias in statement.names:
                    if alias.name != "*" and lookup.imported(module, alias) == (home,):
                        yield Import(home, f"{alias.asname or alias.name}.{self.name}")
        for statement in statements:
            if isinstance(statement, ast.ImportFrom) and lookup.source(module, statement) is home:
                if self.rebound:
                    yield from self._as_module(module, home, statement)
                elif self.name not in module.scopes.names(scope):
                    yield from self._by_name(module, home, statement)

    def _by_name(self, module: Module, home: Module, statement: ast.ImportFrom) -> Iterator[Import]:
        span = module.tree.span(statement)
        if statement.names[0].name != "*":
            yield Import(home, self.name, (AddImportedName(span, self.name),))
        else:
            source = f"{'.' * statement.level}{statement.module or ''}"
            added = Insert(span, f"from {source} import {self.name}", after=True)
            yield Import(home, self.name, (added,))

    def _as_module(
        self, module: Module, home: Module, statement: ast.ImportFrom
    ) -> Iterator[Import]:
        package, _, last = (statement.module or "").rpartition(".")
        taken = {n.id for n in module.tree.nodes(ast.Name)} | {
            n.arg for n in module.tree.nodes(ast.arg)
        }
        if not last or last in taken or last in module.scopes.names(module.tree.module):
            return
        source = f"{'.' * statement.level}{package}"
        text = f"from {source} import {last}" if source else f"import {last}"
        added = Insert(module.tree.span(statement), text, after=False)
        yield Import(home, f"{last}.{self.name}", (added,))


def _is_seen(function: Function, scope: ScopeNode, way: Import) -> bool:
    """Tell whether a function sees the variable of a scope by which it would reach the scaler."""
    scopes = function.module.scopes
    name = way.text.partition(".")[0]
    bound = scopes.bindings(scope, name)
    return scopes.find(function.scope, name) in (scope, None) and len(bound) == (not way.edits)


def _above(function: Function, node: ast.AST) -> list[ast.Import | ast.ImportFrom]:
    """Return the imports within a function that have always run at a node of it."""
    if function.node is None:
        return []
    found = (s for s in function.own_nodes if isinstance(s, _IMPORTS))
    return [s for s in found if dominates(function.module.tree, s, node)]
