"""What multiplies matrices by functions of torch, in a statement itself or in what it calls: O1 and autocast run it in fp16."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import walk
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.reach import reached_by
from amp_migrate.training.beliefs import SHAPES
from amp_migrate.training.bindings import operands
from amp_migrate.training.contexts import runs_without_gradients
from amp_migrate.training.region import Region

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
        self._named = _PRODUCTS | (_SUMS if sums else frozenset())
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
            if not self._is_product(module, part):
                continue
            if isinstance(part, ast.BinOp):
                yield from (*_shaped(part.left), *_shaped(part.right))
            elif isinstance(part, ast.AugAssign):
                for given in operands(module, part):
                    yield from _shaped(given)
            elif isinstance(part, ast.Call):
                receiver = [part.func.value] if isinstance(part.func, ast.Attribute) else []
                for given in (*receiver, *part.args):
                    yield from _shaped(given)

    def multiplied(self, module: Module, node: ast.AST) -> list[ast.expr]:
        """Return what a product multiplies, as that stands there; nothing for any other node."""
        if not self._is_product(module, node):
            return []
        if isinstance(node, ast.BinOp | ast.AugAssign):
            return operands(module, node)
        assert isinstance(node, ast.Call)
        receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        bound = receiver and self._project.external(module, node.func) is None
        given = [*(receiver if bound else []), *node.args]
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
        return any(self._is_product(module, part) for part in walk(node))

    def _is_product(self, module: Module, node: ast.AST) -> bool:
        if isinstance(node, ast.BinOp | ast.AugAssign):
            return isinstance(node.op, ast.MatMult)
        if not isinstance(node, ast.Call):
            return False
        package, _, name = (self._project.external(module, node.func) or "").rpartition(".")
        if package:
            return package in _PACKAGES and name in self._named
        func = node.func
        return (
            isinstance(func, ast.Attribute)
            and func.attr in _METHODS
            and not self._project.callees(node)
        )


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
