"""What the test of an accumulation boundary counts, and whether it starts anew."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial

from amp_migrate.facts.below import every, with_parts
from amp_migrate.facts.constants import number
from amp_migrate.facts.paths import defs, path, uses, walk
from amp_migrate.flow.assumption import NOTHING, Assumption, Known
from amp_migrate.flow.cfg.subject import Fork, evaluated, question, ways
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import refine
from amp_migrate.flow.terms import term_of_name
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function
from amp_migrate.project.order import dominates, inside, loop_of
from amp_migrate.training.flags.counted import remainders
from amp_migrate.training.flags.fixed import is_fixed
from amp_migrate.training.flags.turns import Counter, turns
from amp_migrate.training.origins.constants import constant_of

_SEVERAL = ((ast.Gt, 0), (ast.Gt, 1), (ast.GtE, 1), (ast.GtE, 2), (ast.NotEq, 1))
Asked = Callable[[Unit, Function, Fork], bool]


def waits_to_count(unit: Unit, function: Function, limit: Fork) -> bool:
    """Tell whether a boundary counts micro-batches."""
    return counts(unit, function, question(limit))


def counts(unit: Unit, function: Function, test: ast.expr) -> bool:
    """Tell whether a test counts micro-batches: ``(i + 1) % k == 0``, also in a variable, a function or a property."""
    return any(remainders(unit.project, unit.losses.reached, function, test))


def is_over(unit: Unit, function: Function, limit: Fork) -> bool:
    """Tell whether a test asks for what a loop above it has counted, as where the last window may be short."""
    tree = function.module.tree
    found = remainders(unit.project, unit.losses.reached, function, question(limit))
    counted = {name for where, n in found if where is function for name in _paths(n.left)}
    setting = [
        loop
        for node in function.own_nodes
        if isinstance(node, ast.For | ast.AsyncFor | ast.Assign | ast.AugAssign)
        and defs(node.target if isinstance(node, ast.For | ast.AsyncFor) else node) & counted
        for loop in [node if isinstance(node, ast.For | ast.AsyncFor) else loop_of(tree, node)]
        if loop is not None
    ]
    return bool(setting) and not any(inside(tree, limit, loop) for loop in setting)


def leaves_some(unit: Unit, function: Function, limit: Fork) -> bool:
    """Tell whether a boundary counts micro-batches, and does not hold for what is left in the last round of its loop."""
    loop, test = loop_of(function.module.tree, limit), evaluated(limit)
    last = loop is not None and turns(unit.project).asks_for_the_last(function.module, loop, test)
    return waits_to_count(unit, function, limit) and not last


def counted_by(unit: Unit, function: Function, limit: Fork) -> set[str]:
    """Return the spellings of how many micro-batches a window holds."""
    found = remainders(unit.project, unit.losses.reached, function, question(limit))
    return {ast.unparse(node.right) for _, node in found}


def holds_one_where_scaled(unit: Unit, function: Function, limit: Fork) -> bool:
    """Tell whether windows hold one micro-batch wherever Apex scales a loss, as its test sets them so: none is left over then."""
    found = list(remainders(unit.project, unit.losses.reached, function, question(limit)))
    scaled = [b.node for b in unit.backwards_of(function) if b.scaled]
    return bool(scaled and found) and all(
        where is function
        and is_fixed(unit.project, function, asked.right, 1, _known(function, node))
        for where, asked in found
        for node in scaled
    )


def _known(function: Function, node: ast.AST) -> Assumption:
    """Return what the tests around a node say."""
    known = NOTHING
    for side, holds in function.module.tree.sides(node):
        known = refine(known, side.test, holds) or known
    return known


def asks_for_several(test: ast.expr, sizes: set[str]) -> bool:
    """Tell whether a test holds wherever windows of one of some sizes hold more than one micro-batch: ``steps > 1``."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return any(asks_for_several(part, sizes) for part in test.values)
    if not isinstance(test, ast.Compare) or ast.unparse(test.left) not in sizes:
        return False
    asked = type(test.ops[0]), getattr(test.comparators[0], "value", None)
    return len(test.ops) == 1 and asked in _SEVERAL


def restarts(unit: Unit, function: Function, limit: Fork) -> bool:
    """Tell whether a window of micro-batches may be cut short: its count begins anew with every epoch.

    A count that only grows, over all epochs, cuts none.
    """
    counted = {
        name
        for where, node in remainders(unit.project, unit.losses.reached, function, question(limit))
        if where is function
        for name in _paths(node.left)
    }
    return not counted or any(_starts_anew(function, limit, name) for name in counted)


def ends_whole(unit: Unit, function: Function, limit: Fork) -> bool:
    """Tell whether a boundary surely holds in the last turn of its loop, whose number is known: ``range(24)``, each second."""
    module, test = function.module, question(limit)
    loop = loop_of(module.tree, limit)
    counter = turns(unit.project).counter(module, loop) if loop is not None else None
    counter = counter or _up_to(function, limit)
    if loop is None or counter is None or counter.many is None:
        return False
    leaving = (n for n in walk(loop) if isinstance(n, ast.Break | ast.Continue | ast.Return))
    if not all(isinstance(n, ast.Continue) and inside(module.tree, n, limit) for n in leaving):
        return False
    stepped = not isinstance(ways(limit)[0][-1], ast.Continue)
    if evaluate(_after_whole_windows(loop, counter, test), NOTHING) is stepped:
        return True
    constant = partial(constant_of, unit.project, unit.losses.reached, function)
    many = number(constant(counter.many))
    if many is None or many < 1:
        return False
    known = NOTHING.with_fact(term_of_name(counter.name.id), Known(counter.start + int(many) - 1))
    for name in (n for n in every(test) if isinstance(n, ast.Name) and n.id != counter.name.id):
        value = constant(name)
        if value is not None:
            known = known.with_fact(term_of_name(name.id), Known(value.value))
    return evaluate(test, known) is stepped


def _up_to(function: Function, limit: Fork) -> Counter | None:
    """Return what ``while n < many:``, or the same the other way round, counts by hand, from 0 on and in every turn, as it stands at a boundary."""
    module, loop = function.module, loop_of(function.module.tree, limit)
    test = loop.test if isinstance(loop, ast.While) else None
    if not isinstance(loop, ast.While) or not isinstance(test, ast.Compare) or test.ops[1:]:
        return None
    sides = {ast.Lt: (test.left, test.comparators[0]), ast.Gt: (test.comparators[0], test.left)}
    name, many = sides.get(type(test.ops[0]), (None, None))
    if not isinstance(name, ast.Name) or many is None:
        return None
    sets = [module.tree.statement(bound) for bound in module.scopes.bound(name)]
    added = [stmt for stmt in sets if stmt in loop.body]
    begun = [stmt for stmt in sets if stmt not in added]
    if len(added) != 1 or len(begun) != 1 or module.scopes.owner(name) is not function.scope:
        return None
    more, first = added[0], begun[0]
    by_one = isinstance(more, ast.AugAssign) and isinstance(more.op, ast.Add)
    if not by_one or number(getattr(more, "value", None)) != 1:
        return None
    if not isinstance(first, ast.Assign) or number(first.value) != 0:
        return None
    before = dominates(module.tree, more, limit)
    skips = any(isinstance(node, ast.Continue) for node in walk(loop))
    if not dominates(module.tree, first, loop) or (skips and not before):
        return None
    return Counter(name, 1 if before else 0, frozenset(), many)


def _after_whole_windows(loop: ast.AST, counter: Counter, test: ast.expr) -> ast.expr:
    """Return a test in the last turn over ``range(n * k)``: no remainder of the turns by `k` is left there."""
    many = counter.many
    if not isinstance(many, ast.BinOp) or not isinstance(many.op, ast.Mult):
        return test
    changed = {name for node in walk(loop) for name in defs(node)}
    factors = [ast.unparse(f) for f in (many.left, many.right) if not uses(f) & changed]
    turn = counter.name.id if counter.start else f"{counter.name.id} + 1"
    known: dict[ast.AST, ast.expr] = {
        node: ast.Constant(0)
        for node in every(test)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)
        if ast.unparse(node.right) in factors and ast.unparse(node.left) == turn
    }
    return with_parts(test, known) if known and counter.start in (0, 1) else test


def _paths(node: ast.expr) -> set[str]:
    """Return the longest paths that an expression reads."""
    found = uses(node)
    return {name for name in found if not any(other.startswith(f"{name}.") for other in found)}


def _starts_anew(function: Function, limit: Fork, name: str) -> bool:
    tree = function.module.tree
    loops = [up for up in tree.ancestors(limit) if isinstance(up, ast.For | ast.AsyncFor)]
    if name in function.parameters.names or any(name in defs(loop.target) for loop in loops):
        return True
    loop = loop_of(tree, limit)
    outer = loop_of(tree, loop) if loop is not None else None
    for node in function.own_nodes:
        if _sets(node, name) and not (loop is not None and inside(tree, node, loop)):
            if outer is None and function.node is not None:
                return True
            if outer is not None and inside(tree, node, outer):
                return True
    return function.cls is not None and any(
        _sets(node, name)
        for method in function.cls.methods.values()
        if method is not function and method.name != "__init__"
        for node in method.own_nodes
    )


def _sets(node: ast.AST, name: str) -> bool:
    """Tell whether a statement gives a count a value that does not come from the count itself."""
    if not isinstance(node, ast.Assign) or name in uses(node.value):
        return False
    return any(path(target) == name for target in node.targets)
