"""The branches and functions that only run under Apex: where the innermost one around a use of Apex begins."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from amp_migrate.availability.availability import Availability
from amp_migrate.facts.paths import walk
from amp_migrate.facts.tree import Tree
from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.order import in_branch

_LEAVES = (ast.Return, ast.Break, ast.Continue)
_MAYBE = (
    ast.ExceptHandler, ast.For, ast.AsyncFor, ast.While, ast.Lambda, ast.BoolOp, ast.ClassDef,
    ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.match_case,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Arm:
    """One side of an `if` or of a conditional expression: "body" or "orelse"."""

    module: Module
    node: ast.If | ast.IfExp
    side: str

    def parts(self) -> list[ast.AST]:
        """Return the statements, or the expression, of that side."""
        found = self.node.body if self.side == "body" else self.node.orelse
        return [*found] if isinstance(found, list) else [found]

    def leaving(self) -> list[ast.AST]:
        """Return what leaves the text with that side: its parts, and the test."""
        return [*self.parts(), self.node.test]

    def kept(self) -> ast.expr | None:
        """Return the other side of a conditional expression."""
        if isinstance(self.node, ast.If):
            return None
        return self.node.orelse if self.side == "body" else self.node.body

    def nodes(self) -> Iterator[ast.AST]:
        """Yield every node of that side, of the test where it goes with it, and the `if` itself."""
        yield self.node
        for part in self.parts():
            yield from ast.walk(part)
        if self.side == "body":
            yield from ast.walk(self.node.test)


def arm_of(
    project: Project,
    availability: Availability,
    module: Module,
    node: ast.AST,
    assumption: Assumption = NOTHING,
) -> Arm | Function | None:
    """Return the innermost branch that always uses Apex at `node` when it runs, or the function.

    A test of Apex being installed goes with the test around it, where that is assumed to fail.
    None where the use may be jumped over.
    """
    tree = module.tree
    found: Arm | None = None
    child: ast.AST = node
    for up in tree.ancestors(node):
        if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef):
            leaves = _left_before(up.body, child)
            return None if leaves else found or project.function_of(module, child)
        if isinstance(up, ast.If | ast.IfExp) and child is not up.test:
            arm = Arm(module, up, _side(tree, up, child))
            if _left_before(arm.parts(), child):
                return found
            if found is not None:
                return arm if is_shut(availability, arm, assumption) else found
            if arm.side == "orelse" or availability.known(up.test) is not True:
                return arm
            found = arm
        elif _jumps(tree, up, child):
            return found
        child = up
    return found


def _jumps(tree: Tree, up: ast.AST, child: ast.AST) -> bool:
    """Tell whether what is around a node may run without it, or go on after it raised."""
    if isinstance(up, ast.Try) and up.handlers and in_branch(tree, child, up.body):
        return True
    if isinstance(up, _MAYBE):
        return True
    return isinstance(child, ast.stmt) and _left_before(tree.block(child), child)


def _side(tree: Tree, node: ast.If | ast.IfExp, child: ast.AST) -> str:
    if isinstance(node, ast.IfExp):
        return "body" if child is node.body else "orelse"
    return "body" if in_branch(tree, child, node.body) else "orelse"


def _left_before(block: Iterable[ast.AST], child: ast.AST) -> bool:
    """Tell whether a statement before `child` in its block may leave the block."""
    for stmt in block:
        if stmt is child:
            return False
        if any(isinstance(node, _LEAVES) for node in walk(stmt)):
            return True
    return False


def shut(availability: Availability, arm: Arm, base: Assumption = NOTHING) -> Assumption:
    """Return what is assumed of a run that does not take a side of a test, beside what is assumed already."""
    return availability.assume(arm.node.test, arm.side == "orelse", base)


def is_shut(availability: Availability, arm: Arm, assumption: Assumption) -> bool:
    """Tell whether no run takes a side of a test under an assumption."""
    return availability.truth(arm.node.test, assumption) is (arm.side == "orelse")


def around(module: Module, node: ast.AST) -> Iterator[Arm]:
    """Yield the sides of tests of its function that a node stands in, innermost first."""
    for up, holds in module.tree.sides(node, lambdas=True):
        yield Arm(module, up, "body" if holds else "orelse")


def runs(availability: Availability, node: ast.AST, assumption: Assumption) -> bool:
    """Tell whether a node of a function may run under an assumption, as far as the tests around it say."""
    module = availability.module
    arms = around(module, node)
    return not any(is_shut(availability, arm, assumption) for arm in arms)


def unbound(modules: Iterable[Module], gone: set[ast.AST]) -> Iterator[tuple[Module, ast.Name]]:
    """Yield the uses, outside of what goes, of variables of a function that only what goes sets."""
    for module in modules:
        for node in module.tree.nodes(ast.Name):
            if not isinstance(node.ctx, ast.Load) or node in gone:
                continue
            owner = module.scopes.owner(node)
            if not isinstance(owner, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            bindings = module.scopes.bindings(owner, node.id)
            if bindings and all(binding in gone for binding in bindings):
                yield module, node
