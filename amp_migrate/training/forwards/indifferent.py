"""Functions in which casts change nothing: they run no layer, multiply no matrices, and compute no loss."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterator
from functools import cached_property

from amp_migrate.facts.paths import all_given
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.training.beliefs import (
    CASTS_LEAVE_ALONE,
    HAND_OUT_STATE,
    METHODS_WITHOUT_CASTS,
    PACKAGES_WITHOUT_CASTS,
    PREPARES_INPUT,
    RUNS_FORWARD,
)
from amp_migrate.training.types import wide

_RUNS_ITS_ARGUMENT = frozenset({"__import__", "compile", "eval", "exec", "filter", "map", "pow"})
_BUILTINS = frozenset(dir(builtins)) - _RUNS_ITS_ARGUMENT
_RECORDS = frozenset({"collections.namedtuple", "typing.NamedTuple"})
_LAYERS = (
    "Pad1d", "Pad2d", "Pad3d", "Pool1d", "Pool2d", "Pool3d", "Dropout", "Flatten", "Identity", "ReLU", "Unfold",
)  # fmt: skip
"""Ends of names of modules of torch.nn that have no weights, and give back the type that they are given."""
_EMBEDDINGS = frozenset({"torch.nn.Embedding", "torch.nn.modules.sparse.Embedding"})
_WEIGHTS = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter"})
_TO_FP32 = frozenset({"float", "double", "long", "int", "eq", "ne", "gt", "lt", "ge", "le"})
_METHODS = METHODS_WITHOUT_CASTS | {name.rpartition(".")[2] for name in CASTS_LEAVE_ALONE}
_REDUCES = frozenset({"sum", "cumsum"})


def keeps_type(name: str) -> bool:
    """Tell whether a module of torch, by its dotted name, computes in the type of its input, whether cast or not."""
    return name.startswith("torch.nn.") and name.endswith(_LAYERS) and not name.endswith("PReLU")


def only_looks_up(project: Project, module: Module, node: ast.expr) -> bool:
    """Tell whether an expression is an embedding of torch: casts leave alone what that takes out of its weights."""
    made = project.values.made_by(module, node)
    return bool(made) and all(name in _EMBEDDINGS for name in made)


class Indifferent:
    """Answers for the functions of a project; whatever is unknown may be cast."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._known: dict[Function, bool] = {}

    def __call__(self, function: Function) -> bool:
        """Tell whether casts change nothing in a function and all that it runs."""
        if function not in self._known:
            self._known.update(self._answers(function))
        return self._known[function]

    def _answers(self, start: Function) -> dict[Function, bool]:
        """Return the answers for a function and those it calls: all of them are indifferent, or the first is not."""
        seen: dict[Function, None] = {}
        queue = [start]
        while queue:
            function = queue.pop()
            if function in seen or self._known.get(function):
                continue
            below = None if self._known.get(function) is False else self._below(function)
            if below is None:
                return {start: False, function: False}
            seen[function] = None
            queue += below
        return dict.fromkeys(seen, True)

    def part(
        self, function: Function, node: ast.AST, but: Collection[ast.AST] = frozenset()
    ) -> bool:
        """Tell whether casts change nothing in a statement or expression of a function, `but` for some calls in it."""
        below = self._within(function, node, but)
        return below is not None and all(map(self, below))

    def _below(self, function: Function) -> list[Function] | None:
        """Return the functions of the project that a function runs; None if casts change something in itself."""
        return self._within(function, function.scope) if function.node is not None else None

    def _within(
        self, function: Function, part: ast.AST, but: Collection[ast.AST] = frozenset()
    ) -> list[Function] | None:
        """Return the functions of the project that a part of a function runs; None if casts change something in it."""
        found: list[Function] = []
        for node in ast.walk(
            part
        ):  # what stands in a nested function may be run by who is given that
            if isinstance(node, ast.BinOp | ast.AugAssign) and _is_cast(node):
                return None
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found += self._read(node)
            if isinstance(node, ast.Call) and node not in but:
                run = self._run(function, node)
                if run is None:
                    return None
                found += run
        return found

    @cached_property
    def _methods(self) -> dict[str, list[Function]]:
        """The methods of the project, by name."""
        found: dict[str, list[Function]] = {}
        for function in self._project.functions():
            if function.cls is not None:
                found.setdefault(function.name, []).append(function)
        return found

    def _read(self, node: ast.Attribute) -> Iterator[Function]:
        """Yield the properties that reading an attribute may run."""
        return (m for m in self._methods.get(node.attr, ()) if m.is_property)

    def _run(self, function: Function, call: ast.Call) -> list[Function] | None:
        """Return the functions that a call runs; None if casts may change what it computes."""
        project, module, func = self._project, function.module, call.func
        callees = project.callees(call)
        if callees or project.constructed(call):
            return callees
        if (given := wide.computed(project, module, call)) and all(
            self._is_weight(module, part) for part in given
        ):
            return []
        if not isinstance(func, ast.Name | ast.Attribute) or self._gives_function(module, call):
            return None
        meaning = project.resolve(module, func)
        if isinstance(meaning, str):
            return [] if _is_left_alone(meaning) or _is_layer(meaning) else None
        if isinstance(meaning, Class):
            return []
        made = project.values.made_by(module, func)
        if made or project.instance_classes(module, func):
            return [] if made and all(name in _RECORDS for name in made) else None
        if isinstance(func, ast.Name):
            return [] if meaning is None and self._is_builtin(module, func) else None
        return [] if self._is_plain_method(function, func) else self._of_its_name(func)

    def _is_weight(self, module: Module, node: ast.expr) -> bool:
        """Tell whether a tensor is a weight, or one turned round: what computes in fp32 does so of that in any case."""
        while isinstance(node, ast.UnaryOp):
            node = node.operand
        made = self._project.values.made_by(module, node)
        return bool(made) and all(name in _WEIGHTS for name in made)

    def _gives_function(self, module: Module, call: ast.Call) -> bool:
        """Tell whether a call gives a function away, which may be run."""
        given = all_given(call)
        return any(
            isinstance(node, ast.Lambda)
            or (
                isinstance(node, ast.Name | ast.Attribute)
                and isinstance(self._project.resolve(module, node), Function)
            )
            for node in given
        )

    def _of_its_name(self, func: ast.Attribute) -> list[Function] | None:
        """Return the methods that a call may mean of an object that nothing is known of."""
        methods = self._methods.get(func.attr, [])
        gives = any(method.is_property for method in methods)  # what it gives is called
        return None if gives or func.attr in RUNS_FORWARD else methods or None

    def _is_builtin(self, module: Module, func: ast.Name) -> bool:
        bound = module.scopes.bound(func)
        return func.id in _BUILTINS and not bound

    def _is_plain_method(self, function: Function, func: ast.Attribute) -> bool:
        """Tell whether a method is one of tensors, containers, strings or networks that casts leave alone."""
        if func.attr in HAND_OUT_STATE:
            return True
        if func.attr in _METHODS:
            return not function.is_receiver(func.value)
        if func.attr in _REDUCES:
            return _is_wide(func.value)
        made = self._project.values.made_by(function.module, func.value)
        if made:
            return all(_prepares(name) or _is_left_alone(name) for name in made)
        return self._is_of_library(function.module, func.value)

    def _is_of_library(self, module: Module, node: ast.expr) -> bool:
        """Tell whether an object is a part of what packages without tensors gave: ``axes[0]`` of ``plt.subplots()``."""
        while isinstance(node, ast.Subscript | ast.Attribute):
            node = node.value
        if not isinstance(node, ast.Name):
            return False
        scope = module.scopes.owner(node)
        if scope is None:
            return False
        stmts = [module.tree.statement(b) for b in module.scopes.bindings(scope, node.id)]
        return bool(stmts) and all(
            isinstance(s, ast.Assign)
            and isinstance(s.value, ast.Call)
            and _is_left_alone(self._project.external(module, s.value.func) or "")
            for s in stmts
        )


def _is_cast(node: ast.BinOp | ast.AugAssign) -> bool:
    """Tell whether an operator multiplies matrices, or takes a power of what may be a tensor."""
    if isinstance(node.op, ast.MatMult):
        return True
    base = node.left if isinstance(node, ast.BinOp) else node.target
    return isinstance(node.op, ast.Pow) and not isinstance(base, ast.Constant)


def _is_wide(node: ast.expr) -> bool:
    """Tell whether a tensor is fp32, whole numbers or truth values, as ``correct.view(-1).float()`` is."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _TO_FP32
    )


def _is_left_alone(name: str) -> bool:
    root, _, _ = name.partition(".")
    if _NAMES_OF_CLASSES.intersection(name.split(".")):
        return True
    if root == "torch":
        return name in CASTS_LEAVE_ALONE or name.startswith(_OF_PROCESSES)
    return root in PACKAGES_WITHOUT_CASTS


def _is_layer(name: str) -> bool:
    """Tell whether what has a dotted name is a class of torch.nn, of which a call makes a module, and runs none."""
    return name.startswith("torch.nn.") and name.rpartition(".")[2][:1].isupper()


_NAMES_OF_CLASSES = frozenset({"__doc__", "__module__", "__name__", "__qualname__"})
"""Attributes of classes and functions of a library that are strings."""

_OF_PROCESSES = ("torch.distributed.", "torch.cuda.", "torch.utils.data.")


def _prepares(name: str) -> bool:
    """Tell whether an object of a library makes input of text or images."""
    return any(part.removesuffix("Fast").endswith(PREPARES_INPUT) for part in name.split("."))
