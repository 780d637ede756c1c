"""The calls that hand a function its arguments, where all of them are seen."""

from __future__ import annotations

import ast
from functools import cached_property

from amp_migrate.facts.paths import tail
from amp_migrate.project import Anonymous, CallSite, Class, Function, Module, Project
from amp_migrate.training.beliefs import METHODS_WITHOUT_CASTS

_WRAPPERS = frozenset({"DataParallel", "DistributedDataParallel", "initialize"})


class Handed:
    """Answers for the functions of a project, the `forward` of its networks and criteria among them."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def sites(self, function: Function) -> list[CallSite] | None:
        """Return the calls of a function; None where others may call it as well, or none is seen."""
        if isinstance(function, Anonymous) or function.node is None:
            return None
        found = self._project.callers(function)
        if function.cls is not None and function.name == "forward":
            found = [*found, *self._runs.get(function, ())] if self._is_held(function.cls) else []
        elif self._project.escapes(function):
            return None
        return found or None

    def given(self, function: Function, name: str) -> list[ast.expr | None]:
        """Return what the calls of a function hand in for a parameter, those of partial objects of it among them; None for nothing."""
        completed = [given.get(name) for _, given in self._project.completions(function)]
        found: list[ast.expr | None] = []
        for site in self.sites(function) or ():
            given = self._project.arguments(site, function).get(name)
            partly = completed if site.partial else []
            found += [given if each is None else each for each in partly] or [given]
        return found

    @cached_property
    def _runs(self) -> dict[Function, list[CallSite]]:
        """The calls of networks and criteria, by the `forward` that they run."""
        found: dict[Function, list[CallSite]] = {}
        for module, call in self._project.nodes(ast.Call):
            func = call.func
            if isinstance(func, ast.Attribute) and func.attr in METHODS_WITHOUT_CASTS:
                continue
            if self._project.callees(call) or self._project.external(module, func) is not None:
                continue
            for method in self._project.methods(module, func, "forward"):
                site = CallSite(self._project.function_of(module, call), call, bound=True)
                found.setdefault(method, []).append(site)
        return found

    def _is_held(self, cls: Class) -> bool:
        """Tell whether variables and attributes hold all objects of a class, through which its calls are seen."""
        return bool(self._made.get(cls)) and all(
            _is_bound(module, call) for module, call in self._made[cls]
        )

    @cached_property
    def _made(self) -> dict[Class, list[tuple[Module, ast.Call]]]:
        """The calls that make objects of the classes of a project, or of those that are derived from them."""
        found: dict[Class, list[tuple[Module, ast.Call]]] = {}
        for module, call in self._project.nodes(ast.Call):
            for made in self._project.constructed(call):
                for cls in made.mro():
                    found.setdefault(cls, []).append((module, call))
        return found


def _is_bound(module: Module, node: ast.AST) -> bool:
    """Tell whether an object is bound to a variable or an attribute, or returned, right where it is made."""
    up = module.tree.parent(node)
    if isinstance(up, ast.Attribute):
        called = module.tree.parent(up)
        return isinstance(called, ast.Call) and called.func is up and _is_bound(module, called)
    if isinstance(up, ast.Call):
        return tail(up) in _WRAPPERS and _is_bound(module, up)
    return isinstance(up, ast.Assign | ast.AnnAssign | ast.Return)
