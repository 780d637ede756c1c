"""What is taken to hold in a run of either text."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from amp_migrate.facts.paths import walk
from amp_migrate.flow.assumption import NOTHING, Assumption, excludes
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import refine
from amp_migrate.flow.terms import Aspect, Term
from amp_migrate.project import Function, Project
from amp_migrate.project.reach import set_later
from amp_migrate.training.origins.constants import settled

_ASKS = (ast.Attribute, ast.BoolOp, ast.Compare, ast.UnaryOp)


@dataclass(frozen=True)
class Facts:
    """What is taken to hold in a run: all of it in the function that states it, elsewhere what is spelt the same for the same object.

    `failed` are tests of functions that come out in one way, though nothing is known of what they ask.
    """

    stated: tuple[tuple[Function, Assumption], ...] = ()
    failed: tuple[tuple[Function, str, bool], ...] = ()

    def told(self, function: Function, test: ast.expr) -> bool | None:
        """Return how a test of a function of either side comes out that is one of the failed; None for any other."""
        for where, asked, truth in self.failed:
            if _name(where) == _name(function) and ast.dump(test) == asked:
                return truth
        return None

    def at(self, function: Function) -> Assumption:
        """Return what holds in a function of either side; of what is stated twice, the first."""
        found = NOTHING
        for where, known in self.stated:
            same = _name(function) == _name(where)
            for fact in known.facts:
                if (same or _means_same(fact.term, where, function)) and found.get(
                    fact.term
                ) is None:
                    found = found.with_fact(fact.term, fact.value)
        return found

    def exclude(self, project: Project, call: ast.Call, callee: Function) -> bool:
        """Tell whether a call gives a constant with which the function does not do what holds in it."""
        held = self.at(callee)
        site = project.site(call, callee) if held.facts else None
        given = settled(project, site, callee).facts if site is not None else ()
        asked = ((held.get(fact.term), fact.value) for fact in given)
        return any(known is not None and excludes(known, value) for known, value in asked)


def _name(function: Function) -> tuple[str, str]:
    return function.module.path, function.qualname


def _class(function: Function) -> tuple[str, str] | None:
    return (function.module.path, function.cls.qualname) if function.cls is not None else None


def _means_same(term: Term, stated: Function, function: Function) -> bool:
    """Tell whether a term of one function is spelt for the same value in another one.

    An attribute is, where its object is not the receiver of another class, and a name of the module itself.
    """
    paths = [o.text for o in term.operands if o.aspect is Aspect.PATH]
    for operand in term.operands:
        name = re.split(r"[.\[]", operand.text, maxsplit=1)[0]
        if name in stated.receivers:
            if _class(function) != _class(stated):
                return False
        elif not any(text.startswith((f"{name}.", f"{name}[")) for text in paths):
            module = stated.module
            if function.module.path != module.path:
                return False
            if name not in module.scopes.names(module.tree.module):
                return False
    return True


def with_given(project: Project, function: Function, known: Assumption) -> Assumption:
    """Return what is known in a function, and what that says of the tests which its variables hold that are bound once.

    A test of attributes that are set outside of constructors may come out otherwise later.
    """
    names = {operand.text for fact in known.facts for operand in fact.term.operands}
    for name in sorted(names & set(function.module.scopes.names(function.scope))):
        value = _given(project, function, name)
        truth = None if value is None else evaluate(ast.Name(name, ast.Load()), known)
        if value is not None and truth is not None:
            known = refine(known, value, truth) or known
    return known


def _given(project: Project, function: Function, name: str) -> ast.expr | None:
    bound = function.module.scopes.bindings(function.scope, name)
    if function.node is None or len(bound) != 1 or not isinstance(bound[0], ast.Name):
        return None
    value = function.module.scopes.only_value(bound[0])
    if not isinstance(value, _ASKS):
        return None
    read = {node.attr for node in walk(value) if isinstance(node, ast.Attribute)}
    return None if read & set_later(project) else value
