"""Where `amp.disable_casts()` takes the casts of Apex away."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.check.apex.facts import Facts
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.once import once
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.contexts import around

_NAMES = frozenset({"apex.amp.disable_casts", "apex.amp.handle.disable_casts"})
States = frozenset[bool | None]
"""Whether Apex may be on; None where it is not known to be either."""


class Disabling:
    """Answers for the calls of a program, under an assumption."""

    def __init__(self, program: Program, known: Facts) -> None:
        self._program = program
        self._project = program.project
        self._known = known
        self._asked: set[Function] = set()

    def at(self, function: Function, node: ast.AST, states: States) -> States:
        """Return whether Apex casts at a node, where it may be on as `states` says but for such blocks."""
        if not self._made:
            return states
        module = function.module
        outer = module.tree.function(node)
        contexts = [*around(module, node), *(outer.decorator_list if outer is not None else ())]
        found = [self._gives(module, given) for given in contexts]
        if True in found:
            return frozenset({False})
        return states | {False} if None in found else states

    @property
    def _made(self) -> list[tuple[Module, ast.Call]]:
        return _made(self._project)

    def _gives(self, module: Module, node: ast.expr) -> bool | None:
        """Tell whether a context takes casts away; None where it may."""
        if any(node is call for _, call in self._made):
            return True
        values = self._project.values
        held = values.groups(module, node)
        sources = [pair for pair in self._made if held & values.groups(*pair)]
        if sources:
            others = {name for pair in sources for name in self._instead(*pair)}
            return True if {*values.made_by(module, node)} - others <= _NAMES else None
        return self._managed(node) if isinstance(node, ast.Call) else False

    def _instead(self, module: Module, call: ast.Call) -> Iterator[str]:
        """Yield what makes the context that a conditional expression has in the place of a call, in other runs."""
        up = module.tree.parent(call)
        if isinstance(up, ast.IfExp) and up.test is not call:
            truth = evaluate(up.test, self._known.at(self._project.function_of(module, call)))
            if truth is (up.body is call):
                other = up.orelse if up.body is call else up.body
                yield from self._project.values.made_by(module, other)

    def _managed(self, call: ast.Call) -> bool | None:
        """Tell the same of a generator that a call makes the context of."""
        found: set[bool | None] = set()
        for function in self._project.callees(call):
            if function in self._asked or function.node is None:
                continue
            self._asked.add(function)
            for point in self._program.graph(function).points:
                if isinstance(point.node, ast.Yield):
                    states = self.at(function, point.node, frozenset({True}))
                    found.add(None if len(states) > 1 else not next(iter(states)))
            self._asked.discard(function)
        return found.pop() if len(found) == 1 else None if found else False


@once
def _made(project: Project) -> list[tuple[Module, ast.Call]]:
    """Return the calls that make such contexts."""
    return [
        (module, call)
        for module, call in project.nodes(ast.Call)
        if project.apex(module, call.func) in _NAMES
    ]


def may_disable(project: Project, module: Module, node: ast.AST) -> bool:
    """Tell whether a block around a node may be one that takes casts away."""
    groups = project.values.groups
    return any(
        given is call or groups(module, given) & groups(where, call)
        for where, call in _made(project)
        for given in around(module, node)
    )
