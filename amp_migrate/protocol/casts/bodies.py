"""What methods of networks run of these without gradients, wherever they are called, and what with them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from amp_migrate.facts.paths import is_super, outward
from amp_migrate.flow import Kind, leads
from amp_migrate.project import Function
from amp_migrate.project.once import kept
from amp_migrate.protocol.casts.already import cast_already, has_gradients, starts_anew
from amp_migrate.protocol.casts.networks import Bodies
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.beliefs import RUNS_NO_FORWARD
from amp_migrate.training.contexts import Context, around
from amp_migrate.training.forwards.classes import is_of_network
from amp_migrate.training.named import Groups

_MODES = (Context.NO_GRAD, Context.GRAD)
_STOPS = ("no_grad", "inference_mode", "set_grad_enabled")
_NONE: Groups = frozenset()


class _Parts(NamedTuple):
    """The names of the parts that a method runs with gradients, and of those that it runs without."""

    trained: Groups = _NONE
    left: Groups = _NONE


class BodiesOf(Bodies):
    """Looks into the methods of the networks of a program."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def already(self, node: ast.AST) -> bool:
        """Tell of a node that what runs there has cast its weights with gradients before."""
        return cast_already(self._program, node)

    def left(self, node: ast.AST) -> Groups:
        """Return the parts of its network that a call runs without gradients alone, by a method that takes them itself."""
        asked = BodiesOf.left, self._program, node
        return kept(self._program.project, asked, lambda: self._left(node))

    def trains(self, node: ast.AST, parts: Groups) -> bool:
        """Tell whether a call may run some parts of its network with gradients: one out of sight may."""
        run = list(self._methods(node))
        return not run or any(not parts.isdisjoint(self._of(method).trained) for method in run)

    def _left(self, node: ast.AST) -> Groups:
        methods = [m for m in self._methods(node) if self._stops(m)]
        found = [self._of(method) for method in methods]
        left = _NONE.union(*(parts.left for parts in found))
        left -= _NONE.union(*(parts.trained for parts in found))
        if not left or not isinstance(node, ast.Call):
            return _NONE
        return _NONE if self._ran_before(node, left) else left

    def _methods(self, node: ast.AST) -> Iterator[Function]:
        """Yield the methods of networks that a call runs."""
        if isinstance(node, ast.Call):
            project = self._program.project
            run = [*self._program.calls.run(node)]
            run = run or [*project.methods(project.module_of(node), node.func, "forward")]
            yield from filter(is_of_network, run)

    def _stops(self, method: Function) -> bool:
        """Tell whether the file of a method takes gradients anywhere."""
        return any(word in method.module.tree.text for word in _STOPS)

    def _of(self, method: Function) -> _Parts:
        asked = BodiesOf._of, self._program, method
        return kept(self._program.project, asked, lambda: self._run(method))

    def _run(self, method: Function) -> _Parts:
        trained: set[int] = set()
        left: set[int] = set()
        queue = [(method, False)]
        for function, without in queue:
            own = [c for c in self._program.decorated(function) if c in _MODES]
            begins = own[-1] is Context.NO_GRAD if own else without
            for call in function.calls:
                modes = (self._program.context(function, c) for c in around(function.module, call))
                mode = next((m for m in modes if m in _MODES), None)
                inside = begins if mode is None else mode is Context.NO_GRAD
                further = [(f, inside) for f in self._own(function, call)]
                queue += [one for one in further if one not in queue]
                if not further:
                    (left if inside else trained).update(self._part(function, call))
        return _Parts(frozenset(trained), frozenset(left))

    def _own(self, function: Function, call: ast.Call) -> Iterator[Function]:
        """Yield the methods of its own object that a call in a method runs."""
        func = call.func
        if isinstance(func, ast.Attribute):
            if function.is_receiver(func.value) or is_super(func.value):
                run = self._program.calls.run(call)
                yield from (f for f in run if f.name == func.attr and f.cls is not None)

    def _part(self, function: Function, call: ast.Call) -> Iterable[int]:
        """Return the names of the part of its object that a call in a method runs."""
        func, module = call.func, function.module
        if isinstance(func, ast.Attribute) and func.attr in RUNS_NO_FORWARD:
            return ()
        *parts, base = outward(func)
        if not function.is_receiver(base):
            return self._program.training.objects.groups(module, func) if not parts else ()
        groups = self._program.training.objects.groups
        return {name for part in parts for name in groups(module, part)}

    def _ran_before(self, call: ast.Call, parts: Groups) -> bool:
        """Tell whether its object has always run some parts with gradients before a call, in the block around both."""
        function = self._program.project.holder(call)
        first = [
            other
            for other in function.calls
            if other is not call and any(self._methods(other)) and self.trains(other, parts)
            if _is_of_one(other, call) and has_gradients(self._program, function, other)
        ]
        starts = starts_anew(self._program, function, call) if first else None
        if starts is None:
            return False
        graph = self._program.graph(function)
        ran = [point for other in first for point in graph.at(other, Kind.CALL)]
        order = graph.order(exceptions=False)
        return not leads(order, starts, graph.at(call, Kind.CALL), ran)


def _is_of_one(one: ast.Call, other: ast.Call) -> bool:
    """Tell whether two calls are of one object as they are spelt: ``model(x)`` and ``model.keys(x)``."""
    ends = [{ast.unparse(part) for part in [*outward(call.func)][:2]} for call in (one, other)]
    return not ends[0].isdisjoint(ends[1])
