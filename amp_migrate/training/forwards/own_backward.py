"""Functions with a backward of their own (``torch.autograd.Function``): Apex cast in that as well, autocast is off there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from amp_migrate.facts.paths import tail
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.project.once import once
from amp_migrate.training.beliefs import RUN_IN_HALF
from amp_migrate.training.bindings import values_of
from amp_migrate.training.contexts import Context, context
from amp_migrate.training.forwards.indifferent import keeps_type, only_looks_up
from amp_migrate.training.region import run_by
from amp_migrate.training.types import wide
from amp_migrate.training.types.factors import factors
from amp_migrate.training.types.operators import PRODUCTS

_PACKAGE, _NAMES = "torch.autograd.", ("Function", "InplaceFunction")
_PLAIN = frozenset({"once_differentiable"})
_PACKAGES = ("torch", "torch.nn.functional")
_FUNCTIONS = frozenset(f"{package}.{n}" for package in _PACKAGES for n in PRODUCTS | RUN_IN_HALF)
_LATER = "setup_context"
_ELEMENTWISE = frozenset({"CELU", "ELU", "Hardsigmoid", "Hardswish", "Hardtanh", "SELU", "SiLU", "Sigmoid", "Tanh"})  # fmt: skip
_OF_CTX = frozenset({"mark_dirty", "mark_non_differentiable", "needs_input_grad", "save_for_backward", "set_materialize_grads"})  # fmt: skip


class OwnBackward(NamedTuple):
    """The two methods of such a class.

    `apart`: its `forward` is given no context or stands in another file, or a decorator stands on one of them, so that those of
    torch may not.
    """

    cls: Class
    forward: Function
    backward: Function
    apart: bool


@once
def cast_backwards(project: Project) -> tuple[OwnBackward, ...]:
    """Return the classes in whose `backward` something runs that casts change, if nothing turns autocast on there."""
    return tuple(_found(project))


def _found(project: Project) -> Iterator[OwnBackward]:
    for cls in dict.fromkeys(f.cls for f in project.functions() if f.name == "backward"):
        if cls is None or not _is_one(cls):
            continue
        forward, backward = cls.method("forward"), cls.methods.get("backward")
        if forward is None or backward is None or None in (forward.node, backward.node):
            continue
        if not _says_itself(project, backward) and _is_cast(project, backward):
            later = cls.method(_LATER) is not None or not _takes_context(forward)
            other = not (_is_plain(project, forward) and _is_plain(project, backward))
            elsewhere = forward.module is not backward.module
            yield OwnBackward(cls, forward, backward, later or other or elsewhere)


def naming(project: Project, cls: Class) -> Iterator[Module]:
    """Yield the files that name a class: its `apply` runs there, or what it is handed to there runs that."""
    for module, node in project.nodes(ast.Name, ast.Attribute):
        assert isinstance(node, ast.Name | ast.Attribute)
        if isinstance(node.ctx, ast.Load) and _last(node) == cls.name:
            if project.resolve(module, node) is cls:
                yield module


def _last(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr


def _is_one(cls: Class) -> bool:
    return any(
        name.startswith(_PACKAGE) and name.rpartition(".")[2] in _NAMES for name in cls.externals()
    )


def _takes_context(forward: Function) -> bool:
    """Tell whether the context is what a `forward` is given first, by a name of its own."""
    names = forward.parameters.names
    return bool(names) and names[0] != "self"


def _decorators(function: Function) -> list[ast.expr]:
    return list(function.node.decorator_list) if function.node is not None else []


def _is_plain(project: Project, method: Function) -> bool:
    """Tell whether nothing but what torch itself asks for decorates a method."""
    for node in _decorators(method):
        name = project.external(method.module, node) or ""
        if method.module.scopes.builtin(node) != "staticmethod" and (
            name.rpartition(".")[2] not in _PLAIN
        ):
            return False
    return method.is_static


def _says_itself(project: Project, backward: Function) -> bool:
    """Tell whether a `backward` says itself whether it is cast: by a decorator, or by a block."""
    for node in _decorators(backward):
        called = node.func if isinstance(node, ast.Call) else node
        name = project.external(backward.module, called) or ""
        parts = [tail(part) for part in ast.walk(node) if isinstance(part, ast.Call)]
        if name.rpartition(".")[2] == "custom_bwd" or "partial" in parts:
            return True
    blocks = (item for n in backward.all_nodes for item in getattr(n, "items", ()) or ())
    given = (item.context_expr for item in blocks)
    return any(context(project, backward.module, each) is Context.CASTS for each in given)


def _is_cast(project: Project, backward: Function) -> bool:
    """Tell whether a `backward`, or what that runs, computes what casts change, or runs what it was handed."""
    module = backward.module
    run = run_by(project, ((module, call) for call in backward.all_calls))
    return any(_changes(project, f, node) for f in (backward, *run) for node in f.all_nodes)


def _changes(project: Project, function: Function, node: ast.AST) -> bool:
    """Tell whether casts change what a node computes."""
    module = function.module
    if factors(project, module, node, _FUNCTIONS, PRODUCTS) is not None:
        return True
    if any(not isinstance(given, ast.Constant) for given in wide.computed(project, module, node)):
        return True
    return isinstance(node, ast.Call) and _runs(project, function, node)


def _runs(project: Project, function: Function, call: ast.Call) -> bool:
    """Tell whether a call runs a network, or something that a function was handed."""
    module, func = function.module, call.func
    made = project.values.made_by(module, func)
    if made and all(name.startswith("torch.nn.") for name in made):
        kept = all(keeps_type(name) or name.rpartition(".")[2] in _ELEMENTWISE for name in made)
        return not (kept or only_looks_up(project, module, func))
    if made or project.callees(call) or project.external(module, func) is not None:
        return False
    held = list(values_of(module, func)) if isinstance(func, ast.Name) else []
    return any(_is_handed(function, value) for value in (func, *held))


def _is_handed(function: Function, value: ast.AST) -> bool:
    """Tell whether a value is a parameter of a function, or what its context keeps."""
    names = function.parameters.names
    if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name):
        context_of = function.name == "backward" and names and value.value.id == names[0]
        return bool(context_of) and value.attr not in _OF_CTX
    if isinstance(value, ast.Name):
        bound = function.module.scopes.bound(value)
        return any(isinstance(b, ast.arg) for b in bound)
    return False
