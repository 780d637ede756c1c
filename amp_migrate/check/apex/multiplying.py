"""Networks that multiply matrices, by their classes: what O1 ran in fp16, whether `amp.initialize` was given them or not."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cached_property

from amp_migrate.check.apex.assumed import Initialize
from amp_migrate.check.apex.courses import handed
from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import all_given
from amp_migrate.project import Class, Module
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.beliefs import MULTIPLYING_LAYERS, RUNS_FORWARD
from amp_migrate.training.forwards.classes import is_network_class
from amp_migrate.training.forwards.holders import used_as_networks

_LAYERS = MULTIPLYING_LAYERS | {"Sequential"}
_OF_GIVEN = frozenset({"O2", "O3"})


class Multiplying:
    """Answers for the calls of a project."""

    def __init__(self, program: Program, every: Sequence[Initialize]) -> None:
        self._program = program
        self._project = program.project
        self._every = every
        self._known: dict[Class, bool] = {}

    def is_layer(self, module: Module, call: ast.Call) -> bool:
        """Tell whether a call is of a layer of torch that multiplies, or of several layers."""
        return any(map(_is_layer, self._project.values.made_by(module, call.func)))

    def is_network(self, module: Module, call: ast.Call) -> bool:
        """Tell whether a call is of a network, of the project or used as one; those that O2 and O3 were not given ran in fp32."""
        if self.only_given:
            return False
        values = self._project.values
        classes = values.instance_classes(module, call.func)
        if classes:
            return all(map(self._multiplies, classes))
        if any(name.startswith("torch.") for name in values.made_by(module, call.func)):
            return False
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr in RUNS_FORWARD:
            func = func if self._project.callees(call) else func.value
        return bool(values.groups(module, func) & self._used)

    @cached_property
    def _used(self) -> frozenset[int]:
        return used_as_networks(self._project, self._project.values) | {*self._run_by_libraries()}

    def _run_by_libraries(self) -> Iterator[int]:
        """Yield the names by which a function calls a parameter that a library fills: it is handed the function beside a network."""
        objects = self._program.training.objects
        for module, call in self._project.nodes(ast.Call):
            functions = self._program.calls.handed(call) and handed(self._program, call)
            if functions and any(objects.is_network(module, node) for node in all_given(call)):
                for function in functions:
                    names = function.parameters.names
                    for func in (made.func for made in function.calls):
                        if isinstance(func, ast.Name) and func.id in names:
                            yield from objects.groups(function.module, func)

    @cached_property
    def only_given(self) -> bool:
        """Tell whether Apex cast the networks that it was given, and no product elsewhere."""
        levels = (item.level for item in self._every)
        return any(isinstance(at, ast.Constant) and at.value in _OF_GIVEN for at in levels)

    def _multiplies(self, cls: Class) -> bool:
        if cls not in self._known:
            known = [c for part in closure([cls], self._parts) for c in part.mro()]
            self._known[cls] = is_network_class(cls) and any(
                _is_layer(self._project.external(module, call.func) or "")
                for part in dict.fromkeys(known)
                for module, call in _made(part)
            )
        return self._known[cls]

    def _parts(self, cls: Class) -> Iterator[Class]:
        """Yield the classes of what the methods of a class make."""
        for base in cls.mro():
            for _, call in _made(base):
                yield from self._project.constructed(call)


def _made(cls: Class) -> Iterator[tuple[Module, ast.Call]]:
    for method in cls.methods.values():
        yield from ((cls.module, call) for call in method.calls)


def _is_layer(name: str) -> bool:
    return name.startswith("torch.nn.") and name.rpartition(".")[2] in _LAYERS
