"""Where a function is used other than by a call that is seen."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.facts.imports import last_name
from amp_migrate.facts.paths import bottom, path
from amp_migrate.facts.scopes import global_name
from amp_migrate.modules.model import Class, Function, Module
from amp_migrate.project.by_name import Escape, NameLookups
from amp_migrate.project.journeys import PUTS, Journeys
from amp_migrate.values.nodes import function_of
from amp_migrate.values.values import Values

# Decorators that leave the signature and the callers of a function as they are.
_PLAIN_DECORATORS = frozenset(
    [
        "abstractmethod", "autocast", "cached_property", "classmethod", "contextmanager", "custom_bwd",
        "custom_fwd", "deleter", "enable_grad", "float_function", "half_function", "inference_mode", "jit",
        "lru_cache", "no_grad", "overload", "override", "profile", "property", "record", "set_grad_enabled",
        "setter", "staticmethod", "total_ordering", "wraps",
    ]
)  # fmt: skip
_PLAIN_CLASS_DECORATORS = frozenset(["dataclass", "total_ordering", "final"])
_INERT_BASES = frozenset(["object", "ABC", "ABCMeta", "Generic", "Protocol", "NamedTuple", "Enum"])


class Escapes:
    """Finds the uses of functions as values, by name strings, by decorators and by outside bases."""

    def __init__(self, modules: Iterable[Module], values: Values) -> None:
        self.modules = list(modules)
        self.values = values
        self._uses: dict[str, list[tuple[Module, ast.expr]]] = {}
        self._known: dict[tuple[Function, bool], tuple[int, list[Escape]]] = {}
        self._lookups = NameLookups(self.modules, values)
        self._journeys = Journeys(self.modules, values)
        self._index()

    def of(self, function: Function, called: bool) -> list[Escape]:
        """Return the escapes of `function`; `called` tells whether any call of it is seen, or every read of a property."""
        asked, version = (function, called), self.values.graph.version
        if self._known.get(asked, (None,))[0] != version:
            self._known[asked] = version, self._of(function, called)
        return list(self._known[asked][1])

    def _of(self, function: Function, called: bool) -> list[Escape]:
        if function.node is None:
            return []
        found = list(self._decorated(function))
        cls = function.cls
        if cls is not None and function.name == "__init__":
            found += self._used(cls.name, cls)
            found += self._registered(function, cls)
        elif cls is not None and not called:
            found += self._called_by_base(function, cls)
        if function.is_property and not called:
            found.append((function, _head(function), "read as a property"))
        if cls is not None and function.name == "__post_init__":
            found.append((function, _head(function), "run by the constructor of its dataclass"))
        if function.name != "__init__":
            found += self._used(function.name, function)
            found += self._unclear(function)
        found += self._lookups.of(function, called)
        return list(dict.fromkeys(found))

    def looked_up(self, function: Function) -> list[Escape]:
        """Return the places that may look `function` up by its name, though nothing is seen to call it."""
        return list(self._lookups.of(function, called=False))

    def replaced(self, function: Function) -> bool:
        """Tell whether a decorator out of sight may give something else for a function, as a dispatcher of several."""
        return function.node is not None and any(self._decorated(function))

    def travelling(self, function: Function) -> bool:
        """Tell whether the project may hold `function` as a value, other than by looking it up by its name."""
        held = function.name != "__init__" and (
            any(not self._is_run_at_once(*use[:2]) for use in self._used(function.name, function))
            or any(self._unclear(function))
        )
        return held or self._is_kept(function)

    def _is_run_at_once(self, user: Function, node: ast.expr) -> bool:
        """Tell whether a function is an argument of a library's function or method that gives nothing back."""
        parents = user.module.tree.parents
        call = user.module.tree.user(node)
        if not isinstance(call, ast.Call) or not isinstance(parents.get(call), ast.Expr):
            return False
        meant = self.values.nodes.lookup.expression(user.module, call.func)
        if meant:
            return all(isinstance(m, str) for m in meant)
        method = call.func.attr if isinstance(call.func, ast.Attribute) else None
        return method is not None and method not in PUTS and method not in self._methods

    def _is_kept(self, function: Function) -> bool:
        """Tell whether a decorator may keep a function where the project finds it again."""
        assert function.node is not None
        return any(
            not self._is_plain(function.module, decorator)
            and not self._is_of_library(function.module, decorator)
            for decorator in function.node.decorator_list
        )

    def _is_of_library(self, module: Module, decorator: ast.expr) -> bool:
        """Tell whether a decorator comes out of an imported module, and not of an object that can be asked later."""
        inner = bottom(decorator.func if isinstance(decorator, ast.Call) else decorator)
        meant = self.values.nodes.lookup.expression(module, inner)
        return bool(meant) and all(isinstance(m, str) and "." not in m for m in meant)

    def _index(self) -> None:
        functions = [f for m in self.modules for f in m.functions.values()]
        self._methods = {f.name for f in functions if f.cls is not None}
        names = {f.name for f in functions}
        names |= {cls.name for m in self.modules for cls in m.classes.values()}
        aliases = {
            alias.asname: alias.name
            for module in self.modules
            for alias in module.tree.parents
            if isinstance(alias, ast.alias) and alias.asname and alias.name in names
        }
        for module in self.modules:
            for node in module.tree.parents:
                if isinstance(node, (ast.Name, ast.Attribute)):
                    name = node.id if isinstance(node, ast.Name) else node.attr
                    if not isinstance(node.ctx, ast.Load):
                        continue
                    for known in {name, aliases.get(name, name)} & names:
                        self._uses.setdefault(known, []).append((module, node))

    def _used(self, name: str, thing: Function | Class) -> Iterator[Escape]:
        for module, node in self._uses.get(name, []):
            reason = _reason(module, node)
            if reason and thing in self._meanings(module, node):
                if isinstance(thing, Function) and self._journeys.closed(module, node, thing):
                    continue
                yield function_of(module, node), node, reason

    def _meanings(self, module: Module, node: ast.expr) -> list[object]:
        found: list[object] = []
        for target in self.values.calls.targets.of(module, node):
            found += [target.function, target.cls]
        if isinstance(node, ast.Name) and isinstance(module.scopes.owner(node), ast.ClassDef):
            found += self.values.nodes.lookup.member(
                module, node.id
            )  # the body may not bind it yet
        return found

    def _decorated(self, function: Function) -> Iterator[Escape]:
        assert function.node is not None
        for decorator in function.node.decorator_list:
            plain = self._is_plain(function.module, decorator)
            if not plain and not self._is_handed_back(function, decorator):
                yield function, decorator, f"decorated by {_called(decorator)}"

    def _is_plain(self, module: Module, decorator: ast.expr) -> bool:
        inner = decorator.func if isinstance(decorator, ast.Call) else decorator
        if last_name(inner) in _PLAIN_DECORATORS:
            return True
        targets = self.values.calls.targets.of(module, inner)
        known = [target.function for target in targets if target.function is not None]
        return bool(known) and all(_forwarding_decorator(item) for item in known)

    def _is_handed_back(self, function: Function, decorator: ast.expr) -> bool:
        """Tell whether a decorator of the project gives back what it gets, and all that it does with it is seen."""
        targets = self.values.calls.targets.of(function.module, decorator)
        return bool(targets) and all(
            target.function is not None
            and target.cls is None
            and self._journeys.handed_back(target.function, target.bound, function)
            for target in targets
        )

    def _registered(self, function: Function, cls: Class) -> Iterator[Escape]:
        for owner in (cls, *cls.subclasses()):
            for decorator in owner.node.decorator_list:
                plain = last_name(decorator) in _PLAIN_CLASS_DECORATORS
                if not plain and not self._is_handed_back(function, decorator):
                    reason = f"in class {owner.name}, decorated by {_called(decorator)}"
                    yield function, decorator, reason

    def _called_by_base(self, function: Function, cls: Class) -> Iterator[Escape]:
        outside = [name for name in cls.externals() if name.rpartition(".")[2] not in _INERT_BASES]
        if outside:
            yield function, _head(function), f"called by {outside[0]}"
        elif function.name.startswith("__") and function.name.endswith("__"):
            yield function, _head(function), "called by the language"

    def _unclear(self, function: Function) -> Iterator[Escape]:
        for module, call in self.values.calls.unclear.get(function, []):
            yield function_of(module, call), call, "called on an object of unknown class"


def _reason(module: Module, node: ast.expr) -> str:
    parents = module.tree.parents
    child: ast.AST = node
    parent = parents.get(node)
    while isinstance(parent, (ast.IfExp, ast.Starred)):
        child, parent = parent, parents.get(parent)
    if isinstance(parent, ast.keyword):
        child, parent = parent, parents.get(parent)
    if isinstance(parent, ast.Call):
        return _as_argument(parent, child)
    if isinstance(parent, (ast.Attribute, ast.Compare, ast.Expr, ast.ClassDef, ast.arguments)):
        return ""
    if isinstance(parent, ast.Assign):
        plain = all(_is_variable(target) for target in parent.targets)
        return "" if plain else f"stored in {path(parent.targets[0]) or 'a collection'}"
    if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return ""
    if isinstance(parent, (ast.arg, ast.AnnAssign, ast.BoolOp, ast.If, ast.Assert)):
        return ""
    if isinstance(parent, ast.Return):
        return "returned as a value"
    if isinstance(parent, (ast.Dict, ast.List, ast.Tuple, ast.Set)):
        return _in_collection(module, parent)
    return "used as a value"


def _as_argument(call: ast.Call, argument: ast.AST) -> str:
    plain = {"isinstance", "issubclass", "super", "partial", "callable"}
    return "" if argument is call.func or last_name(call) in plain else f"passed to {_called(call)}"


def _is_variable(target: ast.expr) -> bool:
    if isinstance(target, ast.Subscript):
        return global_name(target) is not None
    return isinstance(target, ast.Name)


def _called(node: ast.expr) -> str:
    func = node.func if isinstance(node, ast.Call) else node
    return path(func) or last_name(func) or "a call"


def _head(function: Function) -> ast.expr:
    assert function.node is not None
    return ast.copy_location(ast.Name(function.name, ast.Load()), function.node)


def _in_collection(module: Module, node: ast.AST) -> str:
    up: ast.AST | None = node
    while isinstance(up, (ast.Dict, ast.List, ast.Tuple, ast.Set)):
        up = module.tree.parents.get(up)
    if isinstance(up, (ast.Compare, ast.ExceptHandler)):
        return ""
    if isinstance(up, ast.Call) and last_name(up) in {"isinstance", "issubclass"}:
        return ""
    return "stored in a collection"


def _forwarding_decorator(function: Function) -> bool:
    """Tell whether a decorator of the project gives a wrapper that passes on whatever it gets."""
    inner = [f for f in function.module.functions.values() if function in f.outward[1:]]
    return any(f.parameters.vararg and f.parameters.kwarg for f in inner)
