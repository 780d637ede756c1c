"""What multiplies matrices by functions of torch, in a statement itself or in what it calls: O1 and autocast run it in fp16."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import walk
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.reach import reached_by
from amp_migrate.training.beliefs import SHAPES
from amp_migrate.training.contexts import runs_without_gradients
from amp_migrate.training.region import Region
from amp_migrate.training.types.factors import factors

_PRODUCTS = frozenset(
    {
        "addbmm", "addmm", "addmv", "addr", "baddbmm", "bilinear", "bmm", "conv1d", "conv2d", "conv3d",
        "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "linear", "matmul", "mm", "mv",
    }
)  # fmt: skip
_SUMS = frozenset({"chain_matmul", "einsum"})
_METHODS = frozenset({"addmm", "addmv", "addr", "baddbmm", "bmm", "matmul", "mm", "mv"})
_SHAPES = SHAPES | {"float", "t"}
_PACKAGES = frozenset({"torch", "torch.nn.functional"})


class Products:
    """Answers for the statements and functions of a project; only what is certain counts."""

    def __init__(self, project: Project, *, sums: bool = False) -> None:
        """`sums`: what O1 left in the type of its inputs, ``torch.einsum(...)``, counts as well."""
        self._project = project
        names = _PRODUCTS | (_SUMS if sums else frozenset())
        self._functions = {f"{package}.{name}" for package in _PACKAGES for name in names}
        self._known: dict[Function, bool] = {}

    def among(self, function: Function, needed: list[ast.stmt]) -> list[Region]:
        """Return the statements that multiply, of those that a loss needs: penalties of weights."""
        module = function.module
        return [
            Region(module, function, stmt, stmt)
            for stmt in needed
            if runs_without_gradients(self._project, module, stmt) is not True
            and self._multiplies(module, stmt)
        ]

    def factors(self, module: Module, node: ast.AST) -> Iterator[ast.expr]:
        """Yield what the products in a statement or expression itself multiply, whatever its type: ``x.float() @ y``."""
        for part in walk(node):
            for given in self._factors(module, part) or ():
                yield from _shaped(given)

    def multiplied(self, module: Module, node: ast.AST) -> list[ast.expr]:
        """Return what a product multiplies, as that stands there; nothing for any other node."""
        given = self._factors(module, node) or []
        if not isinstance(node, ast.Call):
            return given
        parts = [p for g in given for p in (g.elts if isinstance(g, ast.List | ast.Tuple) else [g])]
        return [part for part in parts if not isinstance(part, ast.Constant)]

    def run(self, call: ast.Call) -> bool:
        """Tell whether the functions of the project that a call runs multiply."""
        return any(map(self.within, reached_by(self._project, call)))

    def _multiplies(self, module: Module, stmt: ast.stmt) -> bool:
        calls = (node for node in walk(stmt) if isinstance(node, ast.Call))
        return self._in(module, stmt) or any(map(self.run, calls))

    def within(self, function: Function) -> bool:
        """Tell whether a function multiplies itself."""
        if function not in self._known:
            self._known[function] = function.node is not None and self._in(
                function.module, function.node
            )
        return self._known[function]

    def _in(self, module: Module, node: ast.AST) -> bool:
        return any(self._factors(module, part) is not None for part in walk(node))

    def _factors(self, module: Module, node: ast.AST) -> list[ast.expr] | None:
        return factors(self._project, module, node, self._functions, _METHODS)


def _shaped(node: ast.expr) -> Iterator[ast.expr]:
    """Yield what an expression shapes, weighs and makes fp32, which a product turns to fp16 again."""
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
        yield from (*_shaped(node.left), *_shaped(node.right))
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _SHAPES
    ):
        yield from _shaped(node.func.value)
    else:
        yield node
