"""Which networks and parts of networks an expression hands on: itself, in a collection, or in a module made of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from amp_migrate.facts.below import every
from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import all_given, bottom, outward, path
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.training.beliefs import METHODS_WITHOUT_CASTS
from amp_migrate.training.bindings import returned, values_of
from amp_migrate.training.forwards.classes import makes_module
from amp_migrate.training.forwards.holders import is_partial, makes_copy
from amp_migrate.training.objects import Objects
from amp_migrate.values.objects import Instance, Made
from amp_migrate.values.wrappers import SELF_METHODS

_HOLDERS = frozenset(
    {"DataParallel", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"}
)
_COLLECTS = frozenset({"dict", "enumerate", "list", "reversed", "tuple", "zip"})
_HANDS_OUT = SELF_METHODS | {
    "children", "get", "get_parameter", "get_submodule", "items", "modules", "named_children", "named_modules", "values",
}  # fmt: skip
_NO_WEIGHTS = frozenset({"data", "device", "dtype", "grad", "shape"})


def is_module_class(cls: Class) -> bool:
    """Tell whether the objects of a class are modules of torch, or of a library whose classes are out of sight."""
    return any(base not in ("object", "abc.ABC") for base in cls.externals())


def has_no_weights(node: ast.expr) -> bool:
    """Tell whether an expression reads what no module or weight is that anything shares."""
    return isinstance(node, ast.Attribute) and node.attr in _NO_WEIGHTS


class Given:
    """Finds the paths by which an expression hands on networks or parts that may have weights."""

    def __init__(self, project: Project, objects: Objects) -> None:
        self._project = project
        self._objects = objects
        self._back: dict[Function, frozenset[str]] = {}

    def paths(self, module: Module, node: ast.expr) -> Iterator[ast.expr]:
        """Yield the paths to what an expression hands on and does not copy, each once."""
        for found in closure([node], lambda part: self._parts(module, part)):
            if isinstance(found, ast.Name | ast.Attribute) and self.may_have_weights(module, found):
                yield found

    def _parts(self, module: Module, node: ast.expr) -> list[ast.expr]:
        """Return what an expression is made of: what its variable holds, where it is a path."""
        if not isinstance(node, ast.Name | ast.Attribute):
            return self._inner(module, node)
        start = bottom(node)
        if not isinstance(start, ast.Name) or not self.may_have_weights(module, node):
            return []
        held = values_of(module, start)
        return [value for value in held if not isinstance(value, ast.Name | ast.Attribute)]

    def _inner(self, module: Module, node: ast.expr) -> list[ast.expr]:
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return node.elts
        if isinstance(node, ast.Dict):
            return node.values
        if isinstance(node, ast.Starred | ast.Subscript | ast.NamedExpr):
            return [node.value]
        if isinstance(node, ast.IfExp):
            return [node.body, node.orelse]
        if isinstance(node, ast.BoolOp):
            return node.values
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            return [node.elt, *(g.iter for g in node.generators)]
        if isinstance(node, ast.DictComp):
            return [node.value, *(g.iter for g in node.generators)]
        return self.of_call(module, node) if isinstance(node, ast.Call) else []

    def of_call(self, module: Module, call: ast.Call) -> list[ast.expr]:
        """Return what the result of a call is made of: a module of its layers, a collection, or children of a module."""
        if self.keeps(module, call):
            return all_given(call)
        func = call.func
        if callees := self._project.callees(call):
            return [node for callee in callees for node in self._given_back(call, callee)]
        if isinstance(func, ast.Attribute):
            return [func.value] if func.attr in _HANDS_OUT else []
        builtin = module.scopes.builtin(func)
        if builtin == "getattr":
            return call.args[:1]
        return call.args if builtin in _COLLECTS else []

    def _given_back(self, call: ast.Call, callee: Function) -> Iterator[ast.expr]:
        """Yield the arguments that a function of the project gives back: itself, a part, or a module made of it."""
        names = self._parameters_back(callee)
        given = self._project.given(call, callee) if names else {}
        yield from (given[name] for name in names if name in given)
        if callee.receiver in names and isinstance(call.func, ast.Attribute):
            yield call.func.value

    def _parameters_back(self, function: Function) -> frozenset[str]:
        """Return the parameters that a function gives back, the receiver included."""
        if function not in self._back:
            self._back[function] = (
                frozenset()
            )  # one that calls itself gives back what it does otherwise
            paths = (p for v in returned(function) for p in self.paths(function.module, v))
            ends = (end for p in paths if isinstance(end := list(outward(p))[-1], ast.Name))
            own = {*function.parameters.names, *function.receivers}
            self._back[function] = frozenset(end.id for end in ends if end.id in own)
        return self._back[function]

    def keeps(self, module: Module, call: ast.Call) -> bool:
        """Tell whether what a call makes, out of sight or as a module, may keep the networks that it is given."""
        if self._project.callees(call) or makes_copy(self._project, module, call):
            return False
        made = self._project.constructed(call)
        if made:
            return any(map(is_module_class, made))
        name = self._project.external(module, call.func)
        if name is None:
            return self._is_of_object(module, call)
        if is_partial(self._project, module, call):
            return False
        if makes_module(name):
            return name.rpartition(".")[2] in _HOLDERS
        return not name.startswith(("torch.", "apex.", "numpy."))

    def _is_of_object(self, module: Module, call: ast.Call) -> bool:
        """Tell whether a call is of a method, out of sight, of what is no module: ``accelerator.unwrap_model(net)``."""
        func = call.func
        if not isinstance(func, ast.Attribute) or not isinstance(
            func.value, ast.Name | ast.Attribute
        ):
            return False
        if not all(isinstance(a, ast.Name | ast.Attribute | ast.Constant) for a in all_given(call)):
            return False
        facts = self._project.values.facts(module, func.value)
        named = [fact.name for fact in facts if isinstance(fact, Made)]
        if any(map(makes_module, named)) or any(isinstance(fact, Instance) for fact in facts):
            return False
        return func.attr not in METHODS_WITHOUT_CASTS

    def is_module(self, module: Module, node: ast.expr) -> bool:
        """Tell whether an expression is known to hold a module."""
        facts = self._project.values.facts(module, node)
        return any(isinstance(fact, Instance | Made) and _is_module(fact) for fact in facts)

    def may_be_module(self, module: Module, node: ast.expr) -> bool:
        """Tell whether an expression may hold a module or a weight; what holds only something else does not."""
        facts = self._project.values.facts(module, node)
        known = [fact for fact in facts if isinstance(fact, Instance | Made)]
        if not known and isinstance(node, ast.Name):
            function = self._project.function_of(module, node)
            return not function.is_receiver(node) or (
                function.cls is not None and is_module_class(function.cls)
            )
        return not known or any(map(_is_module, known))

    def may_have_weights(self, module: Module, node: ast.expr) -> bool:
        """Tell whether the object of a path may be a module or a weight: what is known of it does not say otherwise."""
        if not isinstance(node, ast.Attribute):
            return True
        if has_no_weights(node) or path(node) is None:
            return False
        facts = self._project.values.facts(module, node)
        modules = [fact for fact in facts if isinstance(fact, Instance | Made)]
        if modules:
            return any(map(_is_module, modules))
        if not self._project.instance_classes(module, node.value):
            return True
        stored = [value for _, _, value in self._objects.stored.get(node.attr, ())]
        plain = all(isinstance(v, ast.Constant | ast.Name | ast.Attribute) for v in stored)
        return not stored or (not plain and not facts) or node.attr in self._run

    @cached_property
    def _run(self) -> frozenset[str]:
        """The attributes of which anything calls what they hold, or a method or part of it, or goes through it."""
        calls = (call.func for _, call in self._project.nodes(ast.Call))
        gone = (loop.iter for _, loop in self._project.nodes(ast.For))
        parts = (part for node in (*calls, *gone) for part in every(node))
        return frozenset(part.attr for part in parts if isinstance(part, ast.Attribute))


def _is_module(fact: Instance | Made) -> bool:
    if isinstance(fact, Instance):
        return is_module_class(fact.cls)
    if fact.name.startswith("torch."):
        return makes_module(fact.name) or fact.name.endswith("Parameter")
    return not fact.name.startswith(("builtins.", "numpy."))
