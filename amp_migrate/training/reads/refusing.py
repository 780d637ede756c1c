"""Operations that raise under autocast, in whatever way they are called."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import is_super
from amp_migrate.project import Function, Project
from amp_migrate.training.beliefs import REFUSES_CASTS, REFUSING_LAYERS
from amp_migrate.training.objects import Objects
from amp_migrate.values.nodes import enclosing_class

RECORDS = frozenset({"torch.jit.trace", "torch.jit.trace_module"})
"""They raise where autocast keeps copies of weights."""
_RUN = ("forward", "__call__")


class Refusing:
    """Asks whether a call may be of binary cross entropy on probabilities."""

    def __init__(self, project: Project, objects: Objects) -> None:
        self._project = project
        self._objects = objects

    def runs(self, function: Function, call: ast.Call, name: str | None) -> bool:
        """Tell whether a call may run an operation that autocast refuses; `name` is its dotted name elsewhere."""
        if name is not None:
            return name in REFUSES_CASTS
        module = function.module
        if isinstance(call.func, ast.Attribute) and call.func.attr in _RUN:
            if is_super(call.func.value):
                cls = enclosing_class(module, call)
                return cls is not None and bool(REFUSING_LAYERS & set(cls.externals()))
        if self._project.callees(call):
            return False
        if any(m in REFUSES_CASTS for m in self._project.meanings(module, call.func)):
            return True
        made = self._project.values.made_by(module, call.func)
        if any(m in REFUSING_LAYERS for m in made):
            return True
        if self._partial(function, call, [m for m in made if m.rpartition(".")[2] == "partial"]):
            return True
        classes = self._project.instance_classes(module, call.func)
        return any(
            cls.method("forward") is None and REFUSING_LAYERS & set(cls.externals())
            for cls in classes
        )

    def _partial(self, function: Function, call: ast.Call, makers: list[str]) -> bool:
        """Tell whether one of some classes of partial objects keeps such an operation in what is called."""
        groups = self._objects.groups(function.module, call.func) if makers else frozenset()
        return any(
            making.args and self._project.external(where, making.args[0]) in REFUSES_CASTS
            for where, making in self._objects.results.from_outside(dict.fromkeys(makers), groups)
        )
