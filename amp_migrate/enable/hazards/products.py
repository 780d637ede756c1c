"""Products of matrices that 16 bits break, of sparse ones and of features with themselves: they run in FP32."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.enable.described.draft import Draft
from amp_migrate.enable.hazards.hazard import Hazard
from amp_migrate.enable.hazards.islands import in_fp32
from amp_migrate.enable.hazards.kinds import (
    is_gram,
    is_of_sparse,
    is_other_of_sparse,
    is_product,
    makes_sparse,
)
from amp_migrate.project import Function, Module, Project

_OFF = "`torch.autocast(..., enabled=False)`"


class Products:
    """Puts products into FP32 in drafts of their files, and names those where that cannot be done."""

    def __init__(self, project: Project, dtype: str, drafts: dict[Module, Draft]) -> None:
        self._project = project
        self._dtype = dtype
        self._drafts = drafts

    def of_features(self, functions: Iterable[Function]) -> Iterator[Hazard]:
        """Yield the products of features with themselves in some functions."""
        if self._dtype != "float16":
            return
        said = "the product of features with themselves adds up squares, which soon leave the range of float16"
        for function in functions:
            module = function.module
            for call in calls_of(self._project, function):
                name, method = self._named(module, call)
                if not is_gram(function, call, name, method):
                    continue
                if self._runs_apart(module, call, method=not name):
                    yield Hazard("AMP510", module, call, f"{said}: it runs in FP32")
                else:
                    how = f"compute it of `x.float()` under {_OFF}, or use --dtype bfloat16"
                    yield Hazard("AMP511", module, call, said, how)

    def of_sparse(self, functions: Iterable[Function]) -> Iterator[Hazard]:
        """Yield the products with sparse matrices in some functions, and where such matrices are made.

        On a GPU, neither 16-bit type has such products, and autocast casts what they are given.
        """
        for function in functions:
            module = function.module
            for call in calls_of(self._project, function):
                name, method = self._named(module, call)
                product = is_of_sparse(name) or self._is_of_made(module, call, name)
                if product and self._runs_apart(module, call):
                    said = f"products with sparse matrices raise in {self._dtype} on a GPU: this one runs in FP32"
                    yield Hazard("AMP510", module, call, said)
                elif product or makes_sparse(name, method) or is_other_of_sparse(name):
                    said = f"products with sparse matrices raise in {self._dtype} on a GPU, and autocast casts them"
                    how = f"multiply by `x.float()` under {_OFF}, where this was not done for you"
                    yield Hazard("AMP511", module, call, said, how)

    def _named(self, module: Module, call: ast.Call) -> tuple[str, str]:
        """Return the dotted name of what is called, of a library, and the last part of it where it is an attribute."""
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        return self._project.external(module, call.func) or "", method

    def _is_of_made(self, module: Module, call: ast.Call, name: str) -> bool:
        """Tell whether a function for any matrices is given one that a function of torch has made sparse."""
        return is_product(name) and any(
            makes_sparse(made, "")
            for factor in call.args
            for made in self._project.values.made_by(module, factor)
        )

    def _runs_apart(self, module: Module, call: ast.Call, *, method: bool = False) -> bool:
        draft = self._drafts.get(module) or Draft(module.tree)
        if not in_fp32(module.tree, call, draft, method=method):
            return False
        self._drafts[module] = draft
        return True


def calls_of(project: Project, function: Function) -> list[ast.Call]:
    """Return the calls that stand in a function itself, lambdas included."""
    return [
        node for node in function.calls if project.function_of(function.module, node) is function
    ]
