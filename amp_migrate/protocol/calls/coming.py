"""Whether a call comes to a node of the function that it calls, by the constants and the types that it gives."""

from __future__ import annotations

import ast
from typing import NamedTuple

from amp_migrate.facts.below import every, names_in
from amp_migrate.facts.paths import tail
from amp_migrate.flow.assumption import NOTHING, Assumption, Truth
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import refine
from amp_migrate.flow.terms import Term, compared, term
from amp_migrate.project import Function, Module, Project
from amp_migrate.training.origins.constants import constant_of
from amp_migrate.training.origins.meant import is_one_optimizer, meant
from amp_migrate.training.origins.reaching import reaching

_DISPLAYS = {
    ast.List: "list",
    ast.ListComp: "list",
    ast.Tuple: "tuple",
    ast.Dict: "dict",
    ast.DictComp: "dict",
}


class TypeAsked(NamedTuple):
    """A question for the type of a variable, as the term of it, and the built-in types of collections that it asks for."""

    name: str
    term: Term
    types: frozenset[str]


def handed_in(
    project: Project, function: Function, node: ast.expr
) -> list[tuple[Module, ast.expr]] | None:
    """Return what a parameter is given by the calls that may come to where it is read; None for what is no parameter alone."""
    bound = function.module.scopes.bound(node) if isinstance(node, ast.Name) else []
    if not isinstance(node, ast.Name) or not all(isinstance(one, ast.arg) for one in bound):
        return None
    return [
        (caller.module, given)
        for site, caller, given in project.received(function, node.id)
        if given is not None and may_come(project, site.call, function, node)
    ]


def may_come(project: Project, call: ast.Call, function: Function, node: ast.AST) -> bool:
    """Tell whether a function may run a node for a call, as far as the tests around it ask for what the call gives."""
    tests = list(function.module.tree.sides(node))
    if not tests:
        return True
    given = {**function.parameters.defaults, **project.given(call, function)}
    bindings, scope = function.module.scopes.bindings, function.scope
    asked = {name for up, _ in tests for name in names_in(up.test) if name in given}
    asked = {name for name in asked if len(bindings(scope, name)) == 1}
    known = NOTHING
    for name in asked:
        known = _with_constant(project, known, name, given[name])
    for one in filter(None, (asked_type(part) for up, _ in tests for part in every(up.test))):
        kind = kind_of(project, given[one.name]) if one.name in asked else None
        known = known if kind is None else known.with_fact(one.term, Truth(kind in one.types))
    return not any(evaluate(up.test, known) is (not side) for up, side in tests)


def asked_type(node: ast.AST) -> TypeAsked | None:
    """Return what an expression asks of the type of a variable: ``isinstance(x, list)`` or ``type(x) == list``."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        call, types, found = node.left, node.comparators[0], compared(node)[0]
        if isinstance(types, ast.Tuple) is not isinstance(node.ops[0], ast.In | ast.NotIn):
            return None
    elif isinstance(node, ast.Call) and tail(node) == "isinstance" and len(node.args) == 2:
        call, types, found = node, node.args[1], term(node)
    else:
        return None
    if found is None or not isinstance(call, ast.Call) or tail(call) not in ("type", "isinstance"):
        return None
    named = call.args[0] if call.args else None
    spelt = types.elts if isinstance(types, ast.Tuple) else [types]
    names = {part.id if isinstance(part, ast.Name) else None for part in spelt}
    if not isinstance(named, ast.Name) or not names <= {*_DISPLAYS.values()}:
        return None
    return TypeAsked(named.id, found, frozenset(filter(None, names)))


def kind_of(project: Project, node: ast.expr) -> str | None:
    """Return the built-in type of the collections that an expression may be, "" where it is one optimizer."""
    module = project.module_of(node)
    kinds = {type(value) for value in meant(project, module, node)}
    found = _DISPLAYS.get(kinds.pop()) if len(kinds) == 1 else None
    return "" if found is None and is_one_optimizer(project, module, node) else found


def is_filled(project: Project, node: ast.expr) -> bool:
    """Tell whether an expression is one optimizer, or a collection that is written out with something in it."""
    values = list(meant(project, project.module_of(node), node))
    return all(
        isinstance(value, ast.Call)
        or (isinstance(value, ast.List | ast.Tuple) and bool(value.elts))
        or (isinstance(value, ast.Dict) and bool(value.keys))
        for value in values
    )


def _with_constant(project: Project, known: Assumption, name: str, given: ast.expr) -> Assumption:
    """Return what is known with the constant that a parameter is given, if it is one."""
    value = constant_of(project, reaching(project), project.holder(given), given)
    if value is None:
        return known
    variable = ast.Name(name, ast.Load())
    is_flag = isinstance(value.value, bool)
    told = variable if is_flag else ast.Compare(variable, [ast.Eq()], [value])
    return refine(known, told, value.value is not False) or known
