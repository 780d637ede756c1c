"""Parts of networks that every object of their class makes for itself: two objects share none of their weights."""

from __future__ import annotations

import ast
from functools import cached_property

from amp_migrate.facts.paths import all_given, tail
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.training.bindings import bound_value, returned
from amp_migrate.training.objects import Objects
from amp_migrate.values.objects import Instance, Made, Written
from amp_migrate.values.wrappers import SELF_METHODS

_HOLDERS = frozenset(
    [
        "Sequential", "ModuleList", "ModuleDict", "Parameter", "ParameterList", "ParameterDict", "DataParallel",
    ]
)  # fmt: skip
_KEEPS = frozenset({"append", "extend", "insert", "add_module", "register_module"})
_SETS = frozenset({"setattr", "__setattr__", "add_module", "register_module"})
_INSIDES = frozenset({"__dict__", "_modules"})
_PLAIN = frozenset({"staticmethod", "classmethod"})


class Own:
    """Asks whether ``self.part`` is made anew for each object; whatever is not known to be may be shared."""

    def __init__(self, project: Project, objects: Objects) -> None:
        self._project = project
        self._objects = objects
        self._known: dict[tuple[Class, str], bool] = {}

    def is_own(self, function: Function, part: ast.expr) -> bool:
        """Tell whether an expression in a method is a part that its object has made for itself."""
        if not isinstance(part, ast.Attribute) or not self.is_receiver(function, part.value):
            return False
        assert function.cls is not None
        asked = (function.cls, part.attr)
        if asked not in self._known:
            self._known[asked] = True  # what it is asked for on the way says whether it is
            self._known[asked] = self._is_made_inside(*asked)
        return self._known[asked]

    @staticmethod
    def is_receiver(function: Function, node: ast.expr) -> bool:
        """Tell whether an expression is the object of the method it stands in, which nothing else gets the name of."""
        if function.is_class or not isinstance(node, ast.Name) or not function.is_receiver(node):
            return False
        return len(function.module.scopes.bindings(function.scope, node.id)) == 1

    def _is_made_inside(self, cls: Class, name: str) -> bool:
        """Tell whether all that an attribute of a class may hold is made by methods of it for their object."""
        family = {one for base in cls.mro() for one in (base, *base.subclasses())}
        if any(c.module.scopes.bindings(c.node, name) or c.method(name) for c in family):
            return False
        if self._is_set_by_name(name) or self._is_opened(family):
            return False
        own = False
        for module, target, value in self._objects.stored.get(name, ()):
            function = self._project.function_of(module, target)
            inside = self.is_receiver(function, target.value)
            if inside and function.cls not in family:
                continue
            if not inside or not self._is_new(function, value, set()):
                return False
            own = True
        return own

    def _is_opened(self, family: set[Class]) -> bool:
        """Tell whether some code takes the dictionary of attributes of an object of some classes."""
        return any(
            family & {*self._project.instance_classes(module, node.value)}
            for module, node in self._opening
        )

    @cached_property
    def _opening(self) -> list[tuple[Module, ast.Attribute]]:
        """Where code takes the dictionary of attributes of an object."""
        nodes = self._project.nodes(ast.Attribute)
        return [(module, node) for module, node in nodes if node.attr in _INSIDES]

    def _is_set_by_name(self, name: str) -> bool:
        """Tell whether a call may put a network into an attribute of a name."""
        for module, call in self._setting:
            named = call.args[-2]
            if isinstance(named, ast.Constant) and named.value != name:
                continue
            function = self._project.function_of(module, call)
            if not self._is_new(function, call.args[-1], set(), plain=True):
                return True
        return False

    @cached_property
    def _setting(self) -> list[tuple[Module, ast.Call]]:
        """The calls that put something into an attribute which they name."""
        calls = self._project.nodes(ast.Call)
        return [(m, call) for m, call in calls if tail(call) in _SETS and len(call.args) > 1]

    def _is_new(
        self, function: Function, node: ast.AST, seen: set[ast.AST], plain: bool = False
    ) -> bool:
        """Tell whether an expression holds no network but those it makes; `plain`: a name may hold something else."""
        if node in seen or isinstance(node, ast.Constant | ast.JoinedStr):
            return True
        seen.add(node)
        if isinstance(node, ast.Call):
            return self._makes(function, node, seen)
        if isinstance(node, ast.Name | ast.Attribute):
            return self._holds_new(function, node, seen, plain)
        if isinstance(node, ast.Lambda | ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom):
            return False
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            return self._is_new(function, node.elt, seen, plain)
        if isinstance(node, ast.IfExp):
            options = (node.body, node.orelse)
            return all(self._is_new(function, option, seen, plain) for option in options)
        if isinstance(node, ast.Subscript):
            return self._is_new(function, node.value, seen, plain)
        parts = [p for p in ast.iter_child_nodes(node) if isinstance(p, ast.expr)]
        return all(self._is_new(function, part, seen, plain) for part in parts)

    def _holds_new(
        self, function: Function, node: ast.Name | ast.Attribute, seen: set[ast.AST], plain: bool
    ) -> bool:
        if self.is_own(function, node) or (plain and self._is_no_network(function.module, node)):
            return True
        if not isinstance(node, ast.Name) or function.node is None:
            return False
        scopes = function.module.scopes
        if scopes.owner(node) is not function.scope:
            return False
        values = [bound_value(function.module, b) for b in scopes.bindings(function.scope, node.id)]
        kept = [
            given
            for call in function.all_calls
            if _keeps(call, node.id)
            for given in call.args
            if not isinstance(call.func, ast.Attribute) or not _is_place(call, given)
        ]
        return all(v is not None and self._is_new(function, v, seen) for v in (*values, *kept))

    def _is_no_network(self, module: Module, node: ast.expr) -> bool:
        """Tell whether nothing that is made as an object is known to be in an expression."""
        if self._objects.is_network(module, node):
            return False
        facts = self._project.values.facts(module, node)
        return not any(isinstance(fact, Instance | Made | Written) for fact in facts)

    def _makes(self, function: Function, call: ast.Call, seen: set[ast.AST]) -> bool:
        given = all_given(call)
        name = self._project.external(function.module, call.func)
        if name is not None:
            kind = name.rpartition(".")[2]
            if name == "copy.deepcopy":
                return True
            if any((k.arg or "").startswith("_") for k in call.keywords):
                return False
            if name == f"torch.nn.{kind}" and kind not in _HOLDERS:
                return True
            plain = not name.startswith(("torch.", "collections."))
            return all(self._is_new(function, part, seen, plain=plain) for part in given)
        made = self._project.constructed(call)
        if made:
            if any(c.method("__new__") or c.method("__call__") for c in made):
                return False
            return all(self._is_new(function, part, seen, plain=True) for part in given)
        callees = self._project.callees(call)
        if callees:
            return all(self._returns_new(callee, seen) for callee in callees)
        method = call.func if isinstance(call.func, ast.Attribute) else None
        if method is None or method.attr not in SELF_METHODS:
            return False
        return self._is_new(function, method.value, seen)

    def _returns_new(self, function: Function, seen: set[ast.AST]) -> bool:
        """Tell whether a function makes what it returns, each time that it is called."""
        if not isinstance(function.node, ast.FunctionDef):
            return False
        if is_decorated(function.node):
            return False
        values = returned(function)
        return bool(values) and all(self._is_new(function, value, seen) for value in values)


def is_decorated(node: ast.FunctionDef | ast.ClassDef) -> bool:
    """Tell whether a decorator may keep what a function or class makes."""
    plain = (isinstance(d, ast.Name) and d.id in _PLAIN for d in node.decorator_list)
    return not all(plain)


def _keeps(call: ast.Call, name: str) -> bool:
    """Tell whether a call puts something into what a name holds."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr not in _KEEPS:
        return False
    return isinstance(func.value, ast.Name) and func.value.id == name


def _is_place(call: ast.Call, given: ast.expr) -> bool:
    """Tell whether an argument says where something is put, not what."""
    return len(call.args) > 1 and given is call.args[0]
