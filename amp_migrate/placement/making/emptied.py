"""What a test of an attribute says that holds amp or None: under which tests amp was stored in it."""

from __future__ import annotations

import ast

from amp_migrate.apex.emptied import asked, asked_otherwise
from amp_migrate.apex.sites import Site
from amp_migrate.facts.paths import bound_name, walk
from amp_migrate.flow.condition import Condition, conjunction, negate
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function
from amp_migrate.project.reach import reachable, reached_by, set_later
from amp_migrate.scaler.routes.carriers import Stored


def asked_of_attribute(unit: Unit, site: Site, test: ast.expr) -> Condition | None:
    """Return what a guard of an initialize says of the option for AMP; None where it asks no attribute that goes.

    Raises `Cannot` where that cannot be said at the initialize.
    """
    parts = set(ast.walk(test))
    run = _run_by(unit, test) if unit.home.carriers.empty else set()
    for empty in unit.home.carriers.empty:
        for function, node, positive in asked(unit.project, empty):
            if node not in parts and function not in run:
                continue
            attribute = empty.statement.targets[0]
            stored = [s for s in unit.home.carriers.stored if _is_of(s, attribute)]
            whole = node is test or (_is_use(test) and function.given is node)
            if not whole or len(stored) != 1 or not _holds(unit, site, stored[0]):
                raise asked_otherwise(site.module, test, attribute)
            condition = _condition(unit, stored[0])
            return condition if positive else negate(condition)
    return None


def _run_by(unit: Unit, test: ast.expr) -> set[Function]:
    """Return the functions that a test runs, by calls and as properties."""
    parts = list(ast.walk(test))
    read = {node.attr for node in parts if isinstance(node, ast.Attribute)}
    properties = [f for f in unit.project.functions() if f.is_property and f.name in read]
    calls = (reached_by(unit.project, node) for node in parts if isinstance(node, ast.Call))
    return set().union(*calls, *(reachable(unit.project, f) for f in properties))


def _is_use(test: ast.expr) -> bool:
    """Tell whether a test is a property, or a method without arguments."""
    call = isinstance(test, ast.Call) and not (test.args or test.keywords)
    return isinstance(test.func if call and isinstance(test, ast.Call) else test, ast.Attribute)


def _is_of(stored: Stored, attribute: ast.expr) -> bool:
    target = stored.statement.targets[0]
    return (
        isinstance(target, ast.Attribute)
        and isinstance(attribute, ast.Attribute)
        and target.attr == attribute.attr
    )


def _tests(stored: Stored) -> list[tuple[ast.expr, bool]]:
    """Return the tests around what is stored, outer first, and how they came out."""
    sides = stored.site.module.tree.sides(stored.statement)
    return [(up.test, holds) for up, holds in sides][::-1]


def _condition(unit: Unit, stored: Stored) -> Condition:
    reduce = unit.availability[stored.site.module].reduce
    found = ((reduce(test), holds) for test, holds in _tests(stored))
    return conjunction([asked if holds else negate(asked) for asked, holds in found])


def _holds(unit: Unit, site: Site, stored: Stored) -> bool:
    """Tell whether the tests around what is stored say the same where Apex is initialized."""
    function = stored.site.function
    read = [
        node
        for test, _ in _tests(stored)
        for node in ast.walk(test)
        if isinstance(node, ast.Name | ast.Attribute)
    ]
    if function is site.function:
        bound = set(map(bound_name, walk(function.scope)))
        return not any(isinstance(node, ast.Attribute) for node in read) and not any(
            isinstance(node, ast.Name) and node.id in bound for node in read
        )
    receivers = {function.parameters.names[0], site.function.parameters.names[0]}
    names = {node.id for node in read if isinstance(node, ast.Name)}
    fixed = {node.attr for node in read if isinstance(node, ast.Attribute)}
    return len(receivers) == 1 and names <= receivers and not fixed & set_later(unit.project)
