"""What a test of an attribute says that holds amp or None: under which tests amp was stored in it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import replace

from amp_migrate.apex.emptied import asked, asked_otherwise, parts_of
from amp_migrate.apex.sites import Site
from amp_migrate.availability.installed import imports_apex
from amp_migrate.facts.paths import bottom, bound_name, path, walk
from amp_migrate.flow.condition import Condition, conjunction, names, negate
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function
from amp_migrate.project.order import levels, position
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
            attribute = empty.target
            stored = [s for s in unit.home.carriers.stored if _is_of(s, attribute)]
            plain, holds = _plain(test)
            whole = node is plain or (_is_use(plain) and function.given is node)
            condition = _condition(unit, site, stored[0]) if len(stored) == 1 else None
            if not whole or condition is None:
                raise asked_otherwise(site.module, test, attribute)
            return condition if positive is holds else negate(condition)
    return None


def _run_by(unit: Unit, test: ast.expr) -> set[Function]:
    """Return the functions that a test runs, by calls and as properties."""
    parts = list(ast.walk(test))
    read = {node.attr for node in parts if isinstance(node, ast.Attribute)}
    properties = [f for f in unit.project.functions() if f.is_property and f.name in read]
    calls = (reached_by(unit.project, node) for node in parts if isinstance(node, ast.Call))
    return set().union(*calls, *(reachable(unit.project, f) for f in properties))


def _plain(test: ast.expr) -> tuple[ast.expr, bool]:
    """Return a test without the ``not`` before it, and whether it asks for the same."""
    holds = True
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, holds = test.operand, not holds
    return test, holds


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


def _tests(stored: Stored) -> list[tuple[ast.expr, bool]] | None:
    """Return the tests under which amp is stored, outer first, and how they came out; None where that is not known.

    Those that return in front of it are among them.
    """
    tree = stored.site.module.tree
    found: list[tuple[ast.expr, bool]] = []
    for level in levels(tree, stored.statement):
        passed = [_passed(s) for s in reversed(tree.block(level)[: position(tree, level)])]
        holder = tree.holder(level)
        if None in passed or isinstance(holder, ast.For | ast.While | ast.ExceptHandler):
            return None
        found += [test for tests in passed for test in tests or ()]
        if isinstance(holder, ast.If):
            found.append((holder.test, level in holder.body))
    return found[::-1]


def _passed(stmt: ast.stmt) -> list[tuple[ast.expr, bool]] | None:
    """Return the test that a statement returns by, and how it came out where it did not; None where that is not told.

    One that returns where Apex is missing tells nothing.
    """
    if not _returns([stmt]):
        return []
    if isinstance(stmt, ast.If):
        for leaving, staying, holds in (
            (stmt.body, stmt.orelse, False),
            (stmt.orelse, stmt.body, True),
        ):
            if leaving and isinstance(leaving[-1], ast.Return) and not _returns(staying):
                return [(stmt.test, holds)]
    if isinstance(stmt, ast.Try) and imports_apex(stmt.body):
        return None if _returns([*stmt.body, *stmt.orelse, *stmt.finalbody]) else []
    return None


def _returns(block: Iterable[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Return) for stmt in block for node in walk(stmt))


def _condition(unit: Unit, site: Site, stored: Stored) -> Condition | None:
    """Return under which condition amp is stored, as it is asked where Apex is initialized; None where it cannot be."""
    function, tests = stored.site.function, _tests(stored)
    if tests is None:
        return None
    reduce = unit.availability[stored.site.module].reduce
    reduced = ((reduce(test), holds) for test, holds in tests)
    found = conjunction([asked if holds else negate(asked) for asked, holds in reduced])
    if function is site.function:
        bound = set(map(bound_name, walk(function.scope))) - {*function.parameters.names}
        read = [node for test, _ in tests for node in ast.walk(test)]
        changed = any(
            isinstance(node, ast.Attribute)
            or (isinstance(node, ast.Name) and (node.id in bound or _is_rebound(function, node.id)))
            for node in read
        )
        return None if changed else found
    if function.receiver is None or function.receiver != site.function.receiver:
        return None
    text = respelt(found.text, _kept(function))
    fixed = {n.attr for n in ast.walk(_parsed(text)) if isinstance(n, ast.Attribute)}
    if not names(text) <= {function.receiver} or fixed & set_later(unit.project):
        return None
    return replace(found, text=text)


def _kept(function: Function) -> dict[str, str]:
    """Return the attributes in which a constructor keeps what it is given, by what they hold as it is written."""
    if function.name != "__init__":
        return {}
    found: dict[str, str] = {}
    assigned = (node for node in function.scope.body if isinstance(node, ast.Assign))
    for target, value in (part for node in assigned for part in parts_of(node)):
        root = bottom(value) if path(value) is not None else None
        given = isinstance(root, ast.Name) and root.id in function.parameters.names
        if isinstance(root, ast.Name) and given and not _is_rebound(function, root.id):
            if isinstance(target, ast.Attribute) and function.is_receiver(target.value):
                found[ast.unparse(value)] = ast.unparse(target)
    return found


def _is_rebound(function: Function, name: str) -> bool:
    """Tell whether a function binds a variable that is no parameter alone."""
    bound = function.module.scopes.bindings(function.scope, name)
    return not all(isinstance(node, ast.arg) for node in bound)


def respelt(text: str, kept: Mapping[str, str]) -> str:
    """Return a condition with other names for what it reads, where there are some; the longest paths go first."""
    places: list[tuple[int, int, str]] = []

    def visit(node: ast.AST) -> None:
        other = kept.get(ast.unparse(node)) if isinstance(node, ast.Name | ast.Attribute) else None
        if other is not None and isinstance(node, ast.expr):
            places.append((node.col_offset, node.end_col_offset or 0, other))
            return
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(_parsed(text))
    written = text.encode()
    for start, end, other in sorted(places, reverse=True):
        written = written[:start] + other.encode() + written[end:]
    return written.decode()


def _parsed(text: str) -> ast.expr:
    return ast.parse(text or "True", mode="eval").body
