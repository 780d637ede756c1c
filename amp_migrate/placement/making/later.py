"""What may run once a node has run, in whatever function: what follows it in its own, and what that comes to."""

from __future__ import annotations

import ast
from functools import cached_property

from amp_migrate.project import Function, Project
from amp_migrate.project.imported import Node, coming
from amp_migrate.project.order import inside
from amp_migrate.project.reach import reachable
from amp_migrate.project.rounds import may_end, may_follow
from amp_migrate.training.steps import Step, backward_of


class Later:
    """Answers for one node, whichever way a run came to it."""

    def __init__(self, project: Project, node: Node) -> None:
        self._project = project
        self._coming = coming(project, [node])

    def lasts(self, function: Function, node: ast.AST) -> bool:
        """Tell whether what a node does may be there once the first one has run: it runs later, and may do so last."""
        leading = self._coming.nodes.get(function, [])
        if not self.reaches(function, node):
            return False
        return not leading or may_end(self._project, function, node, leading)

    def reaches(self, function: Function, node: ast.AST) -> bool:
        """Tell whether a node may run once the first one has run."""
        return function in self._run or self.follows(function, node)

    def follows(self, function: Function, node: ast.AST) -> bool:
        """Tell whether a node may run behind the first one in the same run of its function."""
        leading, tree = self._coming.nodes.get(function, []), function.module.tree
        return any(
            (first is not node and isinstance(node, ast.expr) and inside(tree, first, node))
            or may_follow(self._project, function, first, node, exceptions=True)
            for first in leading
        )

    def begins(self, function: Function) -> bool:
        """Tell whether a function comes to the first node, by itself or by what it calls."""
        return function in self._coming.nodes

    def precedes(self, function: Function, node: ast.AST) -> bool:
        """Tell whether a function is seen to run a node before the first one alone."""
        queue: list[Node] = [(function, node)]
        seen = {function}
        for here, at in queue:
            if here in self._run or self.follows(here, at):
                return False
            if here in self._coming.nodes:
                continue
            sites = self._project.callers(here)
            if not sites or self._project.escapes(here):
                return False
            queue += [(site.function, site.call) for site in sites if site.function not in seen]
            seen |= {site.function for site in sites}
        return True

    @cached_property
    def _run(self) -> frozenset[Function]:
        """The functions that may run from their start once the node has run."""
        return frozenset(
            below
            for function in self._coming.nodes
            for call in function.calls
            for callee in self._project.callees(call)
            if self.follows(function, call)
            for below in reachable(self._project, callee)
        )


def comes_first(begun: list[Later], function: Function, node: ast.AST) -> bool:
    """Tell whether a step or a plain backward belongs to a training in FP32 that is over when AMP begins."""
    return bool(begun) and all(later.precedes(function, node) for later in begun)


def is_over(begun: list[Later], step: Step) -> bool:
    """Tell whether a step belongs to such a training: in a function that begins AMP itself, one that a backward feeds."""
    function = step.function
    fed = any(backward_of(c) and comes_first(begun, function, c) for c in function.calls)
    begins = any(later.begins(function) for later in begun)
    return comes_first(begun, function, step.call) and (fed or not begins)
