"""Functions that are looked up by a name: getattr, globals() and the like."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator

from amp_migrate.facts.constants import string, string_start
from amp_migrate.facts.imports import last_name
from amp_migrate.facts.paths import last_names, path
from amp_migrate.modules.model import Class, Function, Module
from amp_migrate.values.nodes import function_of
from amp_migrate.values.objects import Fact, Instance, Made
from amp_migrate.values.values import Values

Escape = tuple[Function, ast.expr, str]
_TABLES = frozenset(["globals", "locals", "vars"])
_GETTERS = frozenset(["methodcaller", "attrgetter"])
_IMPORTERS = frozenset(["import_module", "__import__"])


class NameLookups:
    """Finds the places that may look a function up by its name, quoted or computed."""

    def __init__(self, modules: Iterable[Module], values: Values) -> None:
        self.values = values
        self.lookup = values.nodes.lookup
        self._calls: list[tuple[Module, ast.Call, str]] = []
        self._renamed: set[str] = set()
        wanted = _TABLES | _GETTERS | {"getattr", "eval"}
        for module in modules:
            for node in module.tree.parents:
                if isinstance(node, ast.ClassDef):
                    self._renamed.update(_renamed(node))
                if isinstance(node, ast.Call) and (kind := last_name(node)) in wanted:
                    if not _of_object(node):
                        self._calls.append((module, node, kind))

    def of(self, function: Function, called: bool) -> Iterator[Escape]:
        """Yield the lookups that may give `function`; those of a class for its ``__init__``."""
        cls = function.cls if function.name == "__init__" else None
        name = cls.name if cls is not None else function.name
        for module, call, kind in self._calls:
            if self._finds(module, call, kind, cls or function, name, called):
                what = f"class {name} looked up" if cls is not None else "looked up"
                where = f"in {kind}()" if kind in _TABLES else "by name"
                yield function_of(module, call), call, f"{what} {where}"

    def _finds(
        self,
        module: Module,
        call: ast.Call,
        kind: str,
        thing: Function | Class,
        name: str,
        called: bool,
    ) -> bool:
        if kind == "getattr":
            return len(call.args) > 1 and self._gets(module, call, thing, name, called)
        if kind in _GETTERS:
            return bool(call.args) and _is_method(thing) and string(call.args[0]) == name
        if (
            thing.module is not module
            or not _is_global(thing)
            or not _is_called(module, call, kind)
        ):
            return False
        return _may_be(_key(module, call, kind), name)

    def _gets(
        self, module: Module, call: ast.Call, thing: Function | Class, name: str, called: bool
    ) -> bool:
        base, wanted = call.args[:2]
        if not _may_be(wanted, name):
            return False
        outer = module.tree.parents.get(call)
        run = self.values.calls.reached.get(outer, []) if isinstance(outer, ast.Call) else []
        reached = {target.function for target in run}
        if reached == {thing}:
            return False
        computed = string(wanted) is None
        told = self.values.calls.spoken.names(function_of(module, call), wanted)
        if told is not None and name not in self._renamed:
            if name not in told or (computed and thing in reached):
                return False
        facts: list[Fact] = [
            *self.lookup.expression(module, base),
            *self.values.facts(module, base),
        ]
        if any(isinstance(fact, Module) for fact in facts):
            return any(
                thing in self.lookup.member(fact, name)
                for fact in facts
                if isinstance(fact, Module)
            )
        classes = [fact.cls for fact in facts if isinstance(fact, Instance)]
        classes += [fact for fact in facts if isinstance(fact, Class)]
        if classes:
            kin = {k for cls in classes for k in (*cls.mro(), *cls.subclasses())}
            owner = thing.cls if isinstance(thing, Function) else None
            return owner in kin and (not computed or self._is_used(module, call))
        if not facts and _is_method(thing):
            return not computed
        return _is_computed_module(base, facts) and _is_global(thing) and not (computed and called)

    def _is_used(self, module: Module, call: ast.Call) -> bool:
        """Tell whether what is looked up is called at once, or handed to what nobody knows."""
        if _is_called(module, call, "getattr"):
            return True
        holder = module.tree.parents.get(call)
        if not isinstance(holder, ast.Call) or not isinstance(holder.func, ast.Name):
            return False
        unknown = holder not in self.values.calls.reached and not hasattr(builtins, holder.func.id)
        return unknown and not self.lookup.expression(module, holder.func)


def _renamed(cls: ast.ClassDef) -> Iterator[str]:
    """Yield what a class gives other names in its body: `clip` of ``before_step = clip``."""
    for stmt in cls.body:
        if isinstance(stmt, ast.Assign | ast.AnnAssign) and stmt.value is not None:
            yield from last_names(stmt.value)


def _of_object(call: ast.Call) -> bool:
    """Tell whether a call is ``vars(args)``: the attributes of an object, not the names of a module."""
    return last_name(call) == "vars" and bool(call.args)


def _is_computed_module(base: ast.expr, facts: list[Fact]) -> bool:
    if isinstance(base, ast.Subscript) and path(base.value) == "sys.modules":
        return True
    return any(
        isinstance(fact, Made) and fact.name.rpartition(".")[2] in _IMPORTERS for fact in facts
    )


def _key(module: Module, call: ast.Call, kind: str) -> ast.expr | None:
    if kind == "eval":
        return call.args[0] if call.args else None
    holder = module.tree.parents.get(call)
    if isinstance(holder, ast.Subscript):
        return holder.slice
    outer = module.tree.parents.get(holder) if holder is not None else None
    return outer.args[0] if isinstance(outer, ast.Call) and outer.args else None


def _is_called(module: Module, call: ast.Call, kind: str) -> bool:
    """Tell whether what is looked up may be called: at once, or once it is held by a name."""
    holder = module.tree.parents.get(call)
    if kind in _TABLES:
        if isinstance(holder, ast.Subscript):
            return isinstance(holder.ctx, ast.Load)
        return isinstance(holder, ast.Attribute) and holder.attr in {"get", "items", "values"}
    return isinstance(holder, ast.Call) and holder.func is call


def _may_be(node: ast.expr | None, name: str) -> bool:
    """Tell whether a string expression may give `name`, by what is constant at its start."""
    if isinstance(node, ast.Constant):
        return bool(node.value == name)
    return name.startswith(string_start(node))


def _is_method(thing: Function | Class) -> bool:
    return isinstance(thing, Function) and thing.cls is not None


def _is_global(thing: Function | Class) -> bool:
    if isinstance(thing, Class):
        return "." not in thing.qualname
    return thing.cls is None and thing.parent is None
