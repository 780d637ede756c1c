"""Objects that train without Apex: of a class where a relative of theirs trains with it, or made beside one that does."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterable

from amp_migrate.apex.sites import Kind
from amp_migrate.facts.tree import Tree
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.project.once import once
from amp_migrate.project.order import exclusive, inside, levels
from amp_migrate.project.relatives import runs
from amp_migrate.training.steps import backward_of
from amp_migrate.values.abstract import is_abstract

_LOOPS = (
    ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def is_alternative(unit: Unit, function: Function) -> bool:
    """Tell whether a method serves objects that scale no loss, while those of a relative have one of their own."""
    cls = function.cls
    if cls is None or function.name == "__init__":
        return False
    if any(site.function.cls in cls.mro() for site in unit.sites) or not _runs_backward(cls):
        return False
    sites = unit.of(Kind.INITIALIZE, Kind.SCALE_LOSS)
    mixes = _mixing(unit.project, function)
    return any(
        _instead(function, a, mixes) for a in {site.function.cls for site in sites} if a is not None
    )


def is_uncalled(unit: Unit, function: Function) -> bool:
    """Tell whether a method is such a one, and nothing in sight calls it: whoever does need not have the relative."""
    return is_alternative(unit, function) and not unit.project.callers(function)


def _mixing(project: Project, function: Function) -> list[Class]:
    """Return the classes whose objects run a method of a mixin, of which none are made by itself; its own for another class."""
    cls = function.cls
    assert cls is not None
    below = [c for c in cls.subclasses() if runs(c, function)]
    return below if below and cls not in makers(project) else [cls]


def _runs_backward(cls: Class) -> bool:
    return any(
        backward_of(node) is not None
        for owner in cls.mro()
        for method in owner.methods.values()
        for node in method.own_nodes
    )


def _instead(function: Function, other: Class, classes: Collection[Class]) -> bool:
    """Tell whether the objects of another class of the same base as some run a method of their own in place of one."""
    own = other.method(function.name)
    shared = all(set(cls.mro()) & set(other.mro()) for cls in classes)
    below = (other, *other.subclasses())
    return shared and own not in (None, function) and not any(runs(c, function) for c in below)


def has_alternatives(unit: Unit, cls: Class) -> bool:
    """Tell whether calls that train through objects of a class may have others, which train without Apex."""
    below = (cls, *cls.subclasses())
    scaling = {site.function for site in unit.sites}
    for function in (f for f in unit.training if any(runs(c, f) for c in below)):
        for site in unit.project.calls_of(function):
            for other in unit.project.callees(site.call):
                if other in scaling or is_abstract(other) or _does_nothing(other):
                    continue
                if not any(runs(c, other) for c in below):
                    return True
    return False


def _does_nothing(function: Function) -> bool:
    """Tell whether a method leaves all to those that subclasses may have."""
    return all(
        isinstance(s, ast.Raise | ast.Pass | ast.Expr) for s in function.scope.body
    ) and not any(isinstance(node, ast.Attribute) for node in function.own_nodes)


def refuse_beside(
    project: Project, keepers: Collection[Class | None], lacking: Iterable[Class | None]
) -> None:
    """Raise `Cannot` where a function makes an object without a scaler beside one that makes it."""
    made = makers(project)
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
                    *function.at(call),
                    f"this {cls.qualname} trains without amp beside an object that calls amp.initialize, whose casts hold for both",
                    f"make the {cls.qualname} in a function of its own, or let it scale its loss as well, then run again",
                )


@once
def makers(project: Project) -> dict[Class, list[tuple[Function, ast.Call]]]:
    """Return the calls that make objects of each class."""
    found: dict[Class, list[tuple[Function, ast.Call]]] = {}
    places: dict[ast.AST, Module] = {call: module for module, call in project.nodes(ast.Call)}
    for call, targets in project.calls.reached.items():
        for cls in dict.fromkeys(t.cls for t in targets if t.cls is not None):
            module = places.get(call)
            if module is not None:
                found.setdefault(cls, []).append((project.function_of(module, call), call))
    return found


def _alternate(tree: Tree, a: ast.Call, b: ast.Call) -> bool:
    """Tell whether a run makes one of two objects at most, as one call of ``KINDS[name]`` does outside of a loop."""
    if a is b:
        return not any(isinstance(up, _LOOPS) for up in tree.ancestors(a))
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
