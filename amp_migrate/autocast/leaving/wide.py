"""What is fp32 with autocast for certain, by all ways on which networks under autocast come to it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.placement.finding.networks import initialized
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import CallSite, Function
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.contexts import in_evaluation_mode
from amp_migrate.training.forwards.outputs import End, Under
from amp_migrate.training.types.keyed import Place, taken
from amp_migrate.training.types.known import Parameter, types_of_outputs


class Wide:
    """Answers for values behind the blocks of a unit: those that a forward made fp32 there, and that kept their type since."""

    def __init__(self, unit: Unit, ways: Under) -> None:
        self._unit = unit
        self._losses = program_of(unit.project).training.losses
        self._models = initialized(unit)
        self._ways = ways

    def __call__(self, function: Function, node: ast.expr) -> bool:
        """Tell whether all that networks give of a value is no fp16."""
        ends, asked = list(self._ways.ends(function, node)), {node}
        for end in ends:
            copy = _copied(end.node)
            if copy is not None and copy not in asked:
                asked.add(copy)
                ends += self._ways.ends(end.function, copy)
        given = [end for end in ends if any(map(self._runs_network, end.calls))]
        return bool(given) and all(map(self._is_wide, given))

    def _is_wide(self, end: End) -> bool:
        if not isinstance(end.node, ast.expr) or not all(map(self._is_bare, end.bare)):
            return False
        if end.bare and len(end.bare) >= len(end.calls):
            return True
        evaluates = all(map(self._evaluates, end.calls))
        fed = frozenset(f for call in end.calls for f in self._fed(call))
        types = types_of_outputs(self._unit.project, self._losses, fed, evaluating=evaluates)
        return all(types.is_wide(*place) for place in self._given(end))

    def _given(self, end: End) -> Iterator[Place]:
        """Yield what the calls at an end give, of those that a variable takes a part of that part."""
        assert isinstance(end.node, ast.expr)
        if not isinstance(end.node, ast.Name):
            yield end.function, end.node
            return
        project = self._unit.project
        for call in end.calls:
            where = project.holder(call)
            yield from taken(project, where, end.node.id, call) or [(where, call)]

    def _is_bare(self, node: ast.AST) -> bool:
        """Tell whether what runs under no autocast gives fp32: a network, with its weights, or what says so itself."""
        if isinstance(node, ast.Call) and self._runs_network(node):
            return True
        return isinstance(node, ast.expr) and _is_settled(node)

    def _evaluates(self, call: ast.Call) -> bool:
        module = self._unit.project.module_of(call)
        return self._runs_network(call) and in_evaluation_mode(self._unit.project, module, call)

    def _fed(self, call: ast.Call) -> Iterator[Parameter]:
        """Yield the parameters of the forward passes that a call runs, and gives nothing of a network."""
        project = self._unit.project
        site = CallSite(project.holder(call), call, bound=True)
        for forward in project.methods(site.function.module, call.func, "forward"):
            for name, given in project.arguments(site, forward).items():
                if not self._losses.networks(site.function, given, cast=True) & self._models:
                    yield forward, name

    def _runs_network(self, call: ast.Call) -> bool:
        return self._unit.forwards.is_network(self._unit.project.module_of(call), call.func)


def _copied(node: ast.AST) -> ast.expr | None:
    """Return what ``x.cpu()`` copies, which has the type of `x`; None for anything else."""
    func = node.func if isinstance(node, ast.Call) else None
    return func.value if isinstance(func, ast.Attribute) and func.attr == "cpu" else None


def _is_settled(node: ast.expr) -> bool:
    """Tell whether no block decides the type of an expression: a constant, or what is made fp32 by hand."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in ("double", "float")
    return isinstance(node, ast.Constant)
