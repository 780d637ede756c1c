"""Functions that initialize Apex themselves, called where it is on already: what such a call says of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from amp_migrate.check.apex.assumed import Facts
from amp_migrate.check.apex.disabling import States
from amp_migrate.check.apex.initialized import ON, Initialized
from amp_migrate.check.casts.casting import Casting
from amp_migrate.check.events.sides import Side
from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.flow.refine import assume
from amp_migrate.project import CallSite, Function, Project


def called_again(
    old: Side, new: Side, apex: Initialized, begun: Mapping[Function, States], facts: Facts
) -> Iterator[tuple[Function, Casting]]:
    """Yield the functions that may initialize and are called with AMP on, each with the casts of that call.

    What the call settles is known by the constants that it gives.
    """
    project = old.project
    for function, start in begun.items():
        calls = {call for call, states in apex.calls(function, start) if states == ON}
        for call in calls:
            for callee in project.callees(call):
                if callee.node is None or not apex.leads(callee):
                    continue
                for site in project.callers(callee):
                    if site.call is call:
                        known = callee, _settled(project, site, callee)
                        yield callee, Casting(new.program, Facts((known, *facts.stated)))


def _settled(project: Project, site: CallSite, callee: Function) -> Assumption:
    """Return what the constants say that a call gives for parameters, which the function never binds anew."""
    scopes, known = callee.module.scopes, NOTHING
    given = {**callee.parameters.defaults, **project.arguments(site, callee)}
    for name, value in given.items():
        bindings = scopes.bindings(callee.scope, name)
        if isinstance(value, ast.Constant) and all(isinstance(b, ast.arg) for b in bindings):
            known = assume({name: value.value}, known)
    return known
