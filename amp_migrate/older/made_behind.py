"""Networks that are made behind an `amp.init` whose handle only casts: each is initialized where it is made."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import root
from amp_migrate.facts.stand_ins import ALIAS
from amp_migrate.older.found import Found
from amp_migrate.older.sheet import ALONE, Sheet
from amp_migrate.plan.cannot import Unwritable
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.order import dominates
from amp_migrate.project.reach import where_set
from amp_migrate.project.rounds import may_follow
from amp_migrate.training.forwards.classes import is_network_class, makes_module

_SETTLED = (ast.Attribute, ast.BoolOp, ast.Compare, ast.Constant, ast.Name, ast.UnaryOp)
_OPERATORS = (ast.boolop, ast.cmpop, ast.expr_context, ast.unaryop)


def initialize_where_made(
    sheet: Sheet, call: ast.Call, enabled: ast.expr | None, found: Found
) -> None:
    """Write a call of `amp.init` as the initialize of each network that its function makes behind it. Raises `Unwritable`."""
    module, tree, project = sheet.module, sheet.tree, found.project
    statement, function = tree.statement(call), project.function_of(sheet.module, call)
    makings = list(_makings(project, module, function, call))
    if not makings:
        raise _unknown(module, call)
    if not tree.stands_alone(statement):
        raise Unwritable(module, statement, "the statement shares its lines with others", ALONE)
    for making in makings:
        asked = [*_tests(project, module, statement, making)]
        if enabled is not None:
            if not _is_settled(project, module, enabled):
                raise _unknown(module, call)
            asked.append(_operand(sheet, enabled))
        more = f"enabled={' and '.join(asked)}, " if asked else ""
        span = tree.span(making)
        made_as = tree.between(span[:2], span[2:])
        sheet.put(making, f'{ALIAS}.initialize({made_as}, {more}opt_level="O1")')
    sheet.drop(statement)


def _unknown(module: Module, call: ast.Call) -> Unwritable:
    return Unwritable(
        module,
        call,
        "which network runs behind this is not known, as none has a name here yet",
        "call amp.init behind what makes the network, then run again",
    )


def _makings(
    project: Project, module: Module, function: Function, call: ast.Call
) -> Iterator[ast.Call]:
    """Yield what makes the first networks of a function behind a call, as they are assigned to variables."""
    found = [
        node
        for node in function.own_nodes
        if isinstance(node, ast.Assign) and _makes_network(project, module, node)
    ]
    for node in found:
        behind = may_follow(project, function, call, node.value)
        first = not any(dominates(module.tree, other, node) for other in found if other is not node)
        if first and behind and isinstance(node.value, ast.Call):
            if may_follow(project, function, node.value, call):
                raise _unknown(module, call)
            yield node.value


def _makes_network(project: Project, module: Module, node: ast.Assign) -> bool:
    """Tell whether a statement makes a network anew, and of no other one."""
    if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
        return False
    value = node.value
    if not isinstance(value, ast.Call) or not _is_network(project, module, node.targets[0]):
        return False
    held = (n for n in ast.walk(value) if isinstance(n, ast.Name | ast.Attribute))
    return not any(_is_network(project, module, part) for part in held)


def _is_network(project: Project, module: Module, node: ast.expr) -> bool:
    made = any(map(makes_module, project.values.made_by(module, node)))
    return made or any(map(is_network_class, project.instance_classes(module, node)))


def _tests(
    project: Project, module: Module, statement: ast.stmt, making: ast.Call
) -> Iterator[str]:
    """Yield the conditions on which a statement runs where something is made behind it, outer ones first. Raises `Unwritable`."""
    tree = module.tree
    around, sides = {*tree.ancestors(making)}, {*tree.sides(making)}
    for up in reversed([*tree.ancestors(statement)]):
        if up in around or isinstance(up, ast.Module):
            continue
        if not isinstance(up, ast.If) or not _is_settled(project, module, up.test):
            raise Unwritable(
                module,
                statement,
                "whether amp is on is decided here, and that cannot be read where the network is made",
                "call amp.init behind what makes the network, then run again",
            )
    for test, truth in reversed([*tree.sides(statement)]):
        if (test, truth) not in sides and isinstance(test, ast.If):
            text = tree.segment(test.test)
            either = isinstance(test.test, ast.BoolOp) and isinstance(test.test.op, ast.Or)
            yield (f"({text})" if either else text) if truth else f"not ({text})"


def _is_settled(project: Project, module: Module, test: ast.expr) -> bool:
    """Tell whether a test is of variables that are bound once and of attributes that nothing sets."""
    for part in ast.walk(test):
        if isinstance(part, _OPERATORS):
            continue
        if not isinstance(part, _SETTLED):
            return False
        if isinstance(part, ast.Attribute) and (
            root(part) is None or where_set(project, part.attr)
        ):
            return False
        if isinstance(part, ast.Name) and len(module.scopes.bound(part)) > 1:
            return False
    return True


def _operand(sheet: Sheet, node: ast.expr) -> str:
    either = isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or)
    return f"({sheet.text(node)})" if either else sheet.text(node)
