"""What may run at a node: calls, network objects, lambdas, properties, contexts, and functions handed away."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from amp_migrate.facts.imports import last_name
from amp_migrate.facts.paths import LOOKS, all_given, argument, looked_up
from amp_migrate.modules.binding import fits
from amp_migrate.project import Anonymous, CallSite, Class, Function, Module, Project
from amp_migrate.protocol.code.strays import Strays
from amp_migrate.training.bindings import run_first

Sites = dict[Function, list[tuple[Function, ast.AST]]]
_KEEPS = frozenset({"add", "append", "appendleft", "insert", "setdefault"})
"""The methods of collections that keep what they are given: it runs where it is taken out and called."""
GIVES_ITEMS = "__next__"
_ENTERED = ("__enter__", "__exit__", "__aenter__", "__aexit__")


class Calls:
    """Adds to the calls that the project resolves those that only run something in the end."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._lambdas: dict[ast.Lambda, Anonymous] = {}
        self._runs: dict[ast.AST, list[Function]] = {}
        self._strays = Strays(project)

    def of(self, call: ast.Call) -> list[Function]:
        """Return the functions that a call may run: its callees, or what the object that is called is made of."""
        return self._project.callees(call) or self._runs.get(call, [])

    def run(self, call: ast.Call) -> list[Function]:
        """Return the functions and lambdas that a call runs by themselves, methods of the objects that it calls apart."""
        known = [*self._project.callees(call), *self._lambdas_run.get(call, [])]
        known += self._closures.get(call, [])
        return known or self._first(call) or self._looked_up(call)

    def _looked_up(self, call: ast.Call) -> list[Function]:
        """Return the methods that a call of ``getattr(hook, moment)`` may run: those that no other call does, or so named."""
        found = looked_up(call.func)
        module = self._module_of.get(call)
        if found is None or module is None:
            return []
        site = CallSite(self.body(module, call), call, bound=True)
        names = self._project.values.calls.spoken.names(site.function, found[1])
        return [
            method
            for cls in self._project.instance_classes(module, found[0])
            for method in cls.methods.values()
            if method.takes_receiver and not method.name.startswith("__")
            if fits(site, method)
            if (not self._project.callers(method) if names is None else method.name in names)
        ]

    def _first(self, call: ast.Call) -> list[Function]:
        """Return the functions that ``map`` or its like runs for a call."""
        module = self._module_of.get(call)
        first = run_first(self._project, module, call) if module is not None else None
        if module is None or first is None:
            return []
        made = self._project.meanings(module, first) if isinstance(first, ast.Call) else []
        return [f for f in made if isinstance(f, Function)] or self._meant(module, first)

    @cached_property
    def _lambdas_run(self) -> dict[ast.AST, list[Function]]:
        found: dict[ast.AST, list[Function]] = {}
        for function, sites in self._called_lambdas.items():
            for _, call in sites:
                found.setdefault(call, []).append(function)
        return found

    @cached_property
    def anonymous(self) -> tuple[Function, ...]:
        """The lambdas of the project."""
        modules = self._project.modules.values()
        return tuple(self._anonymous(m, n) for m in modules for n in m.tree.nodes(ast.Lambda))

    def at(self, node: ast.AST) -> list[Function]:
        """Return the functions that run where an attribute is read, or a context begins or ends."""
        return self._runs.get(node, [])

    def body(self, module: Module, node: ast.AST) -> Function:
        """Return the function or lambda in which a node is evaluated."""
        scope: ast.AST = module.scopes.scope_of(node)
        while scope not in module.functions:
            if isinstance(scope, ast.Lambda):
                return self._anonymous(module, scope)
            scope = module.scopes.scope_of(scope)
        return module.functions[scope]

    def _anonymous(self, module: Module, node: ast.Lambda) -> Anonymous:
        if node not in self._lambdas:
            parent = self._project.function_of(module, node)
            name = f"{parent.qualname}.<lambda>"
            self._lambdas[node] = Anonymous(module, None, name, parent=parent, body=node)
        return self._lambdas[node]

    def holders(self, function: Function) -> Iterator[Function]:
        """Yield the functions in which another one may run, near by."""
        for site in self._project.callers(function):
            yield self.body(site.function.module, site.call)
        yield from self._handing.get(function, [])
        for holder, node in self.sites(function):
            if function not in self._runs.setdefault(node, []):
                self._runs[node].append(function)
            yield holder

    def mapped(self, function: Function) -> list[tuple[Function, ast.Call]]:
        """Return the calls of ``map`` and its like that run a function, each with where it stands."""
        return self._mapped.get(function, [])

    @cached_property
    def _mapped(self) -> dict[Function, list[tuple[Function, ast.Call]]]:
        found: dict[Function, list[tuple[Function, ast.Call]]] = {}
        for call, module in self._module_of.items():
            for function in self._first(call):
                found.setdefault(function, []).append((self.body(module, call), call))
        return found

    def handed(self, call: ast.Call) -> tuple[Function, ...]:
        """Return the functions that may run at a call out of sight, or later: it is given them, or may have kept them."""
        return self._handed.get(call, ())

    @cached_property
    def _handing(self) -> dict[Function, list[Function]]:
        found: dict[Function, list[Function]] = {}
        for call, given in self._handed.items():
            holder = self.body(self._module_of[call], call)
            for function in given:
                found.setdefault(function, []).append(holder)
        return found

    @cached_property
    def _module_of(self) -> dict[ast.Call, Module]:
        return {call: module for module, call in self._project.nodes(ast.Call)}

    @cached_property
    def _handed(self) -> dict[ast.Call, tuple[Function, ...]]:
        found: dict[ast.Call, tuple[Function, ...]] = {}
        for call, module in self._module_of.items():
            if self._project.callees(call) or module.scopes.builtin(call.func) in LOOKS:
                continue
            functions = [
                function
                for argument in all_given(call)
                for function in self._meant(module, argument)
            ]
            if last_name(call) in _KEEPS:
                functions = [f for f in functions if not self._is_called(f)]
            functions += [f for f in self._strays.of(module, call) if f not in functions]
            if functions:
                found[call] = tuple(functions)
        return found

    def _is_called(self, function: Function) -> bool:
        """Tell whether a call of the project is seen to run a function."""
        if isinstance(function, Anonymous):
            return function in self._called_lambdas
        return any(not site.partial for site in self._project.callers(function))

    def _meant(self, module: Module, node: ast.expr) -> list[Function]:
        if isinstance(node, ast.Lambda):
            return [self._anonymous(module, node)]
        if not isinstance(node, ast.Name | ast.Attribute):
            return []
        meanings = self._project.meanings(module, node)
        return [meaning for meaning in meanings if isinstance(meaning, Function)]

    def sites(self, function: Function) -> list[tuple[Function, ast.AST]]:
        """Return where a function runs that no call names: each kind is looked for once one of it matters."""
        return [*self._kept(function), *self._stepping.get(function, [])]

    def _kept(self, function: Function) -> list[tuple[Function, ast.AST]]:
        if isinstance(function, Anonymous):
            return self._called_lambdas.get(function, [])
        if function.cls is None:
            return []
        if function.name == "forward":
            return self._called_networks.get(function, [])
        if function.is_property:
            return self._read_properties.get(function, [])
        if function.name == GIVES_ITEMS:
            return self._gone_through.get(function, [])
        return self._entered.get(function, []) if function.name in _ENTERED else []

    def _unresolved(self) -> Iterator[tuple[Module, ast.Call]]:
        for call, module in self._module_of.items():
            if not self._project.callees(call):
                yield module, call

    @cached_property
    def _called_networks(self) -> Sites:
        found: Sites = {}
        for module, call in self._unresolved():
            site = CallSite(self._project.function_of(module, call), call, bound=True)
            for cls in self._project.instance_classes(module, call.func):
                method = cls.method("forward")
                if method is not None and fits(site, method):
                    self._add(found, module, call, cls, "forward")
        return found

    @cached_property
    def _called_lambdas(self) -> Sites:
        return {
            self._anonymous(self._project.module_of(node), node): [
                (self.body(m, c), c) for m, c in calls
            ]
            for node, calls in self._project.values.calls_of_lambdas.items()
        }

    @cached_property
    def _closures(self) -> dict[ast.AST, list[Function]]:
        """What the steps of an optimizer of torch run before they step: the closure that each is given."""
        found: dict[ast.AST, list[Function]] = {}
        for module, call in self._unresolved():
            func, closure = call.func, argument(call, "closure", 0)
            if isinstance(func, ast.Attribute) and func.attr == "step" and closure is not None:
                if self._project.values.is_optimizer(module, func.value):
                    found[call] = self._meant(module, closure)
        return found

    @cached_property
    def _stepping(self) -> Sites:
        found: Sites = {}
        for call, functions in self._closures.items():
            for function in functions:
                body = self.body(self._project.module_of(call), call)
                found.setdefault(function, []).append((body, call))
        return found

    def reads(self, function: Function) -> list[tuple[Function, ast.AST]] | None:
        """Return where a property is read, each with its function; None where it may be read of what is not known."""
        if function.name in self._read_of_unknown:
            return None
        return self._read_properties.get(function, [])

    @cached_property
    def _read_properties(self) -> Sites:
        found: Sites = {}
        for module, node in self._read_by_name:
            for cls in self._project.instance_classes(module, node.value):
                self._add(found, module, node, cls, node.attr)
        return found

    @cached_property
    def _read_of_unknown(self) -> set[str]:
        """The names of properties that are read of objects of which nothing is known."""
        classes, facts = self._project.instance_classes, self._project.values.facts
        return {
            node.attr
            for module, node in self._read_by_name
            if not classes(module, node.value) and not facts(module, node.value)
        }

    @cached_property
    def _read_by_name(self) -> list[tuple[Module, ast.Attribute]]:
        names = {f.name for f in self._project.functions() if f.is_property}
        nodes = self._project.nodes(ast.Attribute)
        return [(m, n) for m, n in nodes if n.attr in names and isinstance(n.ctx, ast.Load)]

    @cached_property
    def _entered(self) -> Sites:
        found: Sites = {}
        for module, item in self._project.nodes(ast.withitem):
            for cls in self._project.instance_classes(module, item.context_expr):
                for name in _ENTERED:
                    self._add(found, module, item, cls, name)
        return found

    @cached_property
    def _gone_through(self) -> Sites:
        found: Sites = {}
        for module, loop in self._project.nodes(ast.For, ast.comprehension):
            assert isinstance(loop, ast.For | ast.comprehension)
            for cls in self._project.instance_classes(module, loop.iter):
                self._add(found, module, loop, cls, GIVES_ITEMS)
        return found

    def _add(self, found: Sites, module: Module, node: ast.AST, cls: Class, name: str) -> None:
        for each in (cls, *cls.subclasses()):
            method = each.method(name)
            if method is not None:
                where = (self.body(module, node), node)
                if where not in found.setdefault(method, []):
                    found[method].append(where)
