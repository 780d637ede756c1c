"""Objects that one run makes beside the one that initializes Apex, whose casts reach them all."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterable

from amp_migrate.facts.tree import Tree
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.unit.cannot import Cannot
from amp_migrate.unit.order import exclusive, inside, levels

_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def refuse_beside(
    project: Project, keepers: Collection[Class | None], lacking: Iterable[Class | None]
) -> None:
    """Raise `Cannot` where a function makes an object without a scaler beside one that makes it."""
    made = _made(project)
    ours = [
        place
        for cls, places in made.items()
        if not set(keepers).isdisjoint(cls.mro())
        for place in places
    ]
    for cls in filter(None, lacking):
        for (function, call), (other, initializes) in itertools.product(made.get(cls, []), ours):
            tree = function.module.tree
            if function is other and not _alternate(tree, call, initializes):
                raise Cannot(
                    "AMP901",
                    function.module,
                    call,
                    f"this {cls.qualname} trains without amp beside an object that calls amp.initialize, whose casts hold for both",
                    f"make the {cls.qualname} in a function of its own, or let it scale its loss as well, then run again",
                )


def _made(project: Project) -> dict[Class, list[tuple[Function, ast.Call]]]:
    """Return the calls that make objects of each class."""
    found: dict[Class, list[tuple[Function, ast.Call]]] = {}
    places: dict[ast.AST, Module] = {
        call: module for module in project.modules.values() for call in module.tree.nodes(ast.Call)
    }
    for call, targets in project.calls.reached.items():
        for cls in {target.cls for target in targets if target.cls is not None}:
            module = places.get(call)
            if module is not None:
                found.setdefault(cls, []).append((project.function_of(module, call), call))
    return found


def _alternate(tree: Tree, a: ast.Call, b: ast.Call) -> bool:
    """Tell whether a run makes one of two objects at most."""
    if exclusive(tree, a, b):
        return True
    return any(_apart(tree, one, other) for one, other in ((a, b), (b, a)))


def _apart(tree: Tree, one: ast.Call, other: ast.Call) -> bool:
    """Tell whether one call stands in an arm, or in a branch that is left at its end, where the other does not."""
    for up in tree.ancestors(one):
        if isinstance(up, ast.IfExp) and inside(tree, other, up):
            return not any(
                inside(tree, one, a) and inside(tree, other, a) for a in (up.body, up.orelse)
            )
    for level in levels(tree, one):
        block = tree.block(level)
        branch = isinstance(tree.holder(level), ast.If)
        if branch and isinstance(block[-1], _LEAVES):
            return not any(inside(tree, other, stmt) for stmt in block)
    return False
