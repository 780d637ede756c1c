"""What calls of libraries make of the types of what they are given: functions, layers and methods of torch."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from amp_migrate.project import Module, Project
from amp_migrate.training.origins.meant import held
from amp_migrate.training.types.floats import HALF, NUMBER, WHOLE, WIDE, Helds, always, union
from amp_migrate.training.types.operators import (
    MAKES,
    MIXES,
    UNLISTED,
    Join,
    of_function,
    of_layer,
    of_method,
)
from amp_migrate.values.wrappers import itself

_NUMBERS = frozenset({"bool", "float", "int", "isinstance", "len", "range", "str", "type"})
_HANDS_ON = frozenset(
    {"dict", "enumerate", "iter", "list", "max", "min", "next", "reversed", "sorted", "sum", "tuple", "zip"}
)  # fmt: skip
_SHAPES = frozenset({"einops.rearrange", "einops.reduce", "einops.repeat", "torch.nn.Parameter", "torch.nn.parameter.Parameter"})  # fmt: skip
_TYPES = {
    **dict.fromkeys(("float", "float32", "FloatTensor"), WIDE),
    **dict.fromkeys(("bfloat16", "float16", "half", "HalfTensor"), HALF),
    **dict.fromkeys(("bool", "int", "int32", "int64", "long", "uint8", "LongTensor"), WHOLE),
}


class Made(NamedTuple):
    """The expressions that the result of a call is made of, and how its types come of theirs."""

    parts: tuple[ast.expr, ...]
    join: Join = union


class Called:
    """Answers for the calls of a project that run nothing of it."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def of(self, module: Module, call: ast.Call) -> Made | None:
        """Return what the result of a call is made of; None where that is not known."""
        built_in = module.scopes.builtin(call.func)
        if built_in is not None:
            if built_in in _NUMBERS:
                return Made((), always(NUMBER))
            return Made(tuple(call.args)) if built_in in _HANDS_ON and call.args else None
        name = self._project.external(module, call.func)
        if name is not None:
            return self._function(module, call, name)
        made = self._project.values.made_by(module, call.func)
        if made and all(_is_class(each) for each in made):
            return self._layer(module, call, made)
        return self._method(module, call) if isinstance(call.func, ast.Attribute) else None

    def _function(self, module: Module, call: ast.Call, name: str) -> Made | None:
        last = name.rpartition(".")[2]
        if name in _SHAPES:
            return Made(tuple(call.args[:1])) if call.args else None
        if last in _TYPES and name.startswith("torch."):
            return Made((), always(_TYPES[last]))
        typed = next((k.value for k in call.keywords if k.arg == "dtype"), None)
        if typed is not None:
            return self._typed(module, typed)
        join = of_function(name, call)
        if join is None or not (call.args or last in MAKES):
            return None
        return Made(tuple(operands(call, name)), join)

    def _typed(self, module: Module, node: ast.expr) -> Made | None:
        """Return what has a type that a call names: ``torch.float32``, ``x.dtype``."""
        if isinstance(node, ast.Attribute) and node.attr == "dtype":
            return Made((node.value,))
        name = self._project.external(module, node) or ""
        found = _TYPES.get(name.removeprefix("torch.")) if name.startswith("torch.") else None
        return None if found is None else Made((), always(found))

    def _layer(self, module: Module, call: ast.Call, made: list[str]) -> Made | None:
        """Return what layers of torch give, those of a `Sequential` one after another."""
        given = tuple(call.args)
        if all(name.endswith(".Sequential") for name in made):
            layers = self._sequence(module, call.func)
            return None if layers is None else Made(given, _through(layers))
        joins = [of_layer(name) for name in made]
        return Made(given, lambda found: union([join(found[:1]) for join in joins]))

    def _sequence(self, module: Module, func: ast.expr) -> list[Join] | None:
        """Return what the layers do of the `Sequential` that a variable or an attribute holds; None where that is not seen."""
        values = [*held(self._project, module, func)]
        call = itself(values[0]) if len(values) == 1 and values[0] is not None else None
        if not isinstance(call, ast.Call) or not call.args:
            return None
        where, joins = self._project.module_of(call), list[Join]()
        if not (self._project.external(where, call.func) or "").endswith(".Sequential"):
            return None
        for layer in call.args:
            if not isinstance(layer, ast.Call):
                return None
            joins.append(of_layer(self._project.external(where, layer.func) or ""))
        return joins

    def _method(self, module: Module, call: ast.Call) -> Made | None:
        func = call.func
        assert isinstance(func, ast.Attribute)
        given = [*call.args, *(k.value for k in call.keywords if k.arg in ("dtype", "other"))]
        if func.attr in ("type_as", "new_tensor") or (func.attr in ("to", "type") and given):
            return self._to(module, func, given)
        typed = next((k.value for k in call.keywords if k.arg == "dtype"), None)
        if typed is not None:
            return self._typed(module, typed)
        join = of_method(func.attr, call)
        if join is None:
            return None
        others = call.args if func.attr in MIXES else []
        return Made((func.value, *others), join)

    def _to(self, module: Module, func: ast.Attribute, given: list[ast.expr]) -> Made | None:
        """Return what has the type of another tensor, the one that is named, or its own on another device."""
        if func.attr == "new_tensor":
            return Made((func.value,))
        if func.attr == "type_as":
            return Made((given[0],)) if given else None
        for node in given:
            if (made := self._typed(module, node)) is not None:
                return made
        if all(self._is_device(module, node) for node in given):
            return Made((func.value,))
        return None

    def _is_device(self, module: Module, node: ast.expr) -> bool:
        if isinstance(node, ast.Attribute) and node.attr == "device":
            return True
        if isinstance(node, ast.Constant):
            return isinstance(node.value, int) or "cuda" in str(node.value) or node.value == "cpu"
        values = self._project.values
        return "torch.device" in values.made_by(module, node)


def operands(call: ast.Call, name: str) -> list[ast.expr]:
    """Return what the result of a function of a library has its type of, those in a list or tuple one by one."""
    last = name.rpartition(".")[2]
    if last not in MIXES:
        return call.args[:1]
    given = [*call.args, *(k.value for k in call.keywords if name in UNLISTED)]
    parts = [p for g in given for p in (g.elts if isinstance(g, ast.List | ast.Tuple) else [g])]
    return [part for part in parts if not isinstance(part, ast.Constant)]


def _through(layers: list[Join]) -> Join:
    def joined(found: Sequence[Helds]) -> Helds:
        for layer in layers:
            found = [layer(found[:1])]
        return union(found)

    return joined


def _is_class(name: str) -> bool:
    return name.rpartition(".")[2][:1].isupper() or name.startswith(("torchvision.", "timm."))
