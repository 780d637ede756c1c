"""The project as the unit finder asks it: names, calls, callers and values across files."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from types import MappingProxyType

from amp_migrate.facts.imports import preferred
from amp_migrate.facts.search_path import added_folders
from amp_migrate.facts.tree import N, Tree
from amp_migrate.modules.definitions import module_of
from amp_migrate.modules.layout import Folder, Layout
from amp_migrate.modules.lookup import Lookup, Meaning
from amp_migrate.modules.model import CallSite, Class, Function, Module, overriding
from amp_migrate.modules.renamed import imports, renamed
from amp_migrate.project.by_name import Escape
from amp_migrate.project.escapes import Escapes
from amp_migrate.project.forwarded import Received, arguments, callers, received
from amp_migrate.project.once import kept
from amp_migrate.project.programs import connected
from amp_migrate.values.calling.calls import Calls
from amp_migrate.values.nodes import function_of
from amp_migrate.values.objects import Bound, Partial
from amp_migrate.values.values import Values

_DEEPEST = 50


class Project:
    """The modules of a project, read only; everything beyond names is worked out when first asked for."""

    def __init__(self, modules: dict[str, Module], lookup: Lookup) -> None:
        self.modules = modules
        self.lookup = lookup
        self._places: dict[ast.Module, Module] = {m.tree.module: m for m in modules.values()}
        self._last: Module | None = None
        self._holding: dict[ast.AST, Module] = {}
        self._externals: dict[ast.expr, str | None] = {}
        self._meant: dict[ast.expr, tuple[int, list[Meaning]]] = {}
        self._families: dict[Function, list[Function]] = {}
        self.imported: dict[str, frozenset[str]] = {}
        self.answers: dict[object, object] = {}

    @cached_property
    def values(self) -> Values:
        """Which names hold the same object."""
        return Values(self.modules.values(), self.lookup)

    @cached_property
    def by_last_name(self) -> dict[str, list[Module]]:
        """The modules by the last part of their dotted names."""
        found: dict[str, list[Module]] = {}
        for module in self.modules.values():
            found.setdefault(module.name.rpartition(".")[2], []).append(module)
        return found

    @cached_property
    def holds_apex(self) -> bool:
        """Whether a package `apex` is part of the project itself."""
        return any(m.name.partition(".")[0] == "apex" for m in self.modules.values())

    @cached_property
    def programs(self) -> dict[str, int]:
        """The number of the group of connected files that each file belongs to, by its path."""
        return connected(self)

    def part(self, numbers: Collection[int]) -> Project:
        """Return the project of some groups of connected files alone; names mean in it what they do here."""
        files = {path: m for path, m in self.modules.items() if self.programs[path] in numbers}
        part = Project(files, self.lookup) if len(files) < len(self.modules) else self
        part.holds_apex = self.holds_apex
        return part

    def connected_with(self, modules: Iterable[Module]) -> list[Module]:
        """Return all modules that imports or calls connect with some, these included."""
        numbers = {self.programs[module.path] for module in modules}
        return [m for m in self.modules.values() if self.programs[m.path] in numbers]

    @property
    def calls(self) -> Calls:
        """The resolved calls of the project."""
        return self.values.calls

    @cached_property
    def unseen(self) -> Escapes:
        """Where functions are used as values, or may be run by code that is not seen."""
        return Escapes(self.modules.values(), self.values)

    def functions(self) -> list[Function]:
        """Return every function, the top-level code of every module included."""
        return [function for m in self.modules.values() for function in m.functions.values()]

    def nodes(self, *kinds: type[N]) -> Iterator[tuple[Module, N]]:
        """Yield the nodes of some kinds in all files, each with its file."""
        return ((m, node) for m in self.modules.values() for node in m.tree.nodes(*kinds))

    def module_of(self, node: ast.AST) -> Module:
        """Return the module whose tree holds `node`. Raises `KeyError` for a foreign node."""
        if self._last is not None and node in self._last.tree.parents:
            return self._last
        if node in self._holding:
            return self._holding[node]
        for module in self.modules.values():
            if node in module.tree.parents:
                self._last = self._holding[node] = module
                return module
        return self._places[node]  # type: ignore[index]

    def function_of(self, module: Module, node: ast.AST) -> Function:
        """Return the function in which `node` is evaluated; the "<module>" function outside of all.

        A decorator or default value belongs to the code around its function.
        """
        return function_of(module, node)

    def resolve(self, module: Module, node: ast.expr) -> Module | Function | Class | str | None:
        """Return what a Name or Attribute means: a definition, or a dotted name outside the project.

        Imports, re-exports, aliases and values passed along (``args.amp``, a parameter) are followed.
        Where there are several meanings, one from Apex wins, then the first. None for plain variables.
        """
        meanings = [item for item in self.meanings(module, node) if not isinstance(item, Folder)]
        if not meanings:
            return None
        outside = preferred(item for item in meanings if isinstance(item, str))
        if outside is not None and (outside == "apex" or outside.startswith("apex.")):
            return outside
        return meanings[0]

    def external(self, module: Module, node: ast.expr) -> str | None:
        """Return the dotted name outside the project that a Name or Attribute means, or None."""
        if node in self._externals:
            return self._externals[node]
        meaning = self.resolve(module, node)
        found = meaning if isinstance(meaning, str) else None
        if self.lookup.expression(module, node):
            self._externals[node] = found  # what definitions say stays
        return found

    def apex(self, module: Module, node: ast.expr) -> str | None:
        """Return the dotted name in Apex that a Name or Attribute means; the same as `external`, only faster."""
        found = self.lookup.expression(module, node)
        if found:
            mine = any(isinstance(m, str) and m.partition(".")[0] == "apex" for m in found)
            return self.external(module, node) if mine else None
        return self.external(module, node) if self._may_be_apex(module, node) else None

    def _may_be_apex(self, module: Module, node: ast.expr) -> bool:
        if self.values.may_be_apex(module, node):
            return True
        if not isinstance(node, ast.Attribute):
            return not isinstance(node, ast.Name)
        known = self.lookup.expression(module, node.value)
        if not known:
            return self._may_be_apex(module, node.value)
        return any(not isinstance(m, str) or m.partition(".")[0] == "apex" for m in known)

    def meanings(self, module: Module, node: ast.expr) -> list[Meaning]:
        """Return everything that a Name or Attribute may mean; nothing for plain variables."""
        known = self._meant.get(node)
        if known is not None and known[0] == self.values.graph.version:
            return known[1]
        found = self._meanings(module, node, 0)
        self._meant[node] = self.values.graph.version, found
        return found

    def _meanings(self, module: Module, node: ast.expr, depth: int) -> list[Meaning]:
        found = list(self.lookup.expression(module, node))
        if found or depth > _DEEPEST:
            return found
        if isinstance(node, ast.Attribute):
            for base in self._meanings(module, node.value, depth + 1):
                found += self.lookup.member(base, node.attr)
            found += self.methods(module, node.value, node.attr)
        if not found:
            found = [
                fact.function if isinstance(fact, (Bound, Partial)) else fact
                for fact in self.values.facts(module, node)
                if isinstance(fact, (str, Module, Function, Class, Bound, Partial))
            ]
        return list(dict.fromkeys(found))

    def methods(self, module: Module, node: ast.expr, *names: str) -> list[Function]:
        """Return the methods that the objects which an expression may hold have under some names."""
        classes = self.values.instance_classes(module, node)
        return [m for cls in classes for name in names if (m := cls.method(name)) is not None]

    def callees(self, call: ast.Call) -> list[Function]:
        """Return the functions of the project that `call` may reach (a constructor's ``__init__``)."""
        reached = self.calls.reached.get(call)
        if not reached:
            return []
        functions = [target.function for target in reached if target.function is not None]
        return list(dict.fromkeys(functions))

    def constructed(self, call: ast.Call) -> list[Class]:
        """Return the classes of the project that `call` makes an object of."""
        reached = self.calls.reached.get(call, [])
        return list(dict.fromkeys(target.cls for target in reached if target.cls is not None))

    def callers(self, function: Function) -> list[CallSite]:
        """Return every call that may reach `function` or another method of its family.

        A ``functools.partial(f, ...)`` counts as the call, not the later call of the partial object.
        """
        asked = callers, function
        return list(kept(self, asked, lambda: callers(self.calls.sites, self.family(function))))

    def calls_of(self, function: Function) -> list[CallSite]:
        """Return every call that may reach `function` itself, without those of other methods of its family."""
        return list(self.calls.sites.get(function, []))

    def site(self, call: ast.Call, function: Function) -> CallSite | None:
        """Return how a call reaches a function, or another method of its family; None where it reaches none."""
        return next((site for site in self.callers(function) if site.call is call), None)

    def given(self, call: ast.Call, function: Function) -> dict[str, ast.expr]:
        """Return what a call gives each parameter of a function that it reaches, by the parameter's name."""
        site = self.site(call, function)
        return {} if site is None else self.arguments(site, function)

    def received(self, function: Function, name: str, itself: bool = False) -> list[Received]:
        """Return what the calls of a function give a parameter; `itself` leaves out those of its family that reach others.

        What a caller hands on of ``*args`` or ``**kwargs`` stands in other functions, one for each of its own calls.
        """
        found = []
        for site in self.calls_of(function) if itself else self.callers(function):
            asked = site, function, name
            for node in kept(self, (received, *asked), partial(received, self.calls.sites, *asked)):
                at = site.function if node is None else self.holder(node)
                found.append(Received(site, at, node))
        return found

    def holder(self, node: ast.AST) -> Function:
        """Return the function in which a node of any file stands."""
        return function_of(self.module_of(node), node)

    def completions(self, function: Function) -> list[tuple[CallSite, dict[str, ast.expr]]]:
        """Return the calls of ``functools.partial`` objects of `function`, with the arguments that they add."""
        found = []
        for site, taken in self.calls.completions.get(function, []):
            names = function.parameters.positional[taken:]
            given = dict(zip(names, site.call.args, strict=False))
            given |= {k.arg: k.value for k in site.call.keywords if k.arg is not None}
            found.append((site, given))
        return found

    def family(self, function: Function) -> list[Function]:
        """Return a method with those it overrides and those that override it, itself first.

        Their signatures must change together. ``__init__`` is called by the name of its own class, and is
        a family of one, as functions are.
        """
        if function.cls is None or function.name == "__init__":
            return [function]
        if function not in self._families:
            self._families[function] = overriding(function)
        return self._families[function]

    def escapes(self, function: Function) -> list[Escape]:
        """Return the places where `function` may be called by code that is not seen, with the reason."""
        return self.unseen.of(function, bool(self.callers(function)))

    def instance_classes(self, module: Module, expression: ast.expr) -> list[Class]:
        """Return the project classes of the objects that `expression` may hold."""
        return self.values.instance_classes(module, expression)

    def arguments(self, site: CallSite, target: Function) -> dict[str, ast.expr]:
        """Return the argument of each parameter that a call gives, by the parameter's name.

        What its function hands on of ``*args`` or ``**kwargs`` is that of the first call which gives it, maybe of another file.
        """
        asked = arguments, site, target
        return dict(kept(self, asked, lambda: arguments(self.calls.sites, site, target)))


def build(
    files: Mapping[str, Tree],
    roots: Sequence[str] = (),
    meant: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> Project:
    """Return the project of parsed files; keys are their paths, `roots` the folders they were found in.

    `meant` gives the dotted names that stand for names which nothing binds, by the path of the file and the name.
    """
    paths = {path.replace("\\", "/"): tree for path, tree in files.items()}
    layout = Layout(paths, [root.replace("\\", "/") for root in roots])
    for path, tree in paths.items():
        layout.add_search_folders(path, added_folders(tree, path))
    layout.renamed = renamed(layout, imports(paths))
    modules = {
        path: module_of(path, layout.name(path), layout.names(path), tree)
        for path, tree in paths.items()
    }
    lookup = Lookup(modules, layout, meant)
    lookup.link()
    return Project(modules, lookup)
