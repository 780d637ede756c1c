"""What is taken to hold in a run of either text."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from amp_migrate.facts.paths import walk
from amp_migrate.flow.assumption import NOTHING, Assumption, Fact, excludes
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
        for where, fact, reach in self._reaching:
            same = _name(function) == _name(where)
            if (same or reach.takes_in(where, function)) and found.get(fact.term) is None:
                found = found.with_fact(fact.term, fact.value)
        return found

    @cached_property
    def _reaching(self) -> list[tuple[Function, Fact, _Reach]]:
        """What is stated, with where, and which other functions it holds in."""
        return [
            (where, fact, _reach(fact.term, where))
            for where, known in self.stated
            for fact in known.facts
        ]

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


class _Reach(NamedTuple):
    """Where else what is stated in a function holds: nowhere, or where what has to be the same is."""

    anywhere: bool
    same_class: bool
    same_file: bool

    def takes_in(self, stated: Function, function: Function) -> bool:
        """Tell whether another function is among that."""
        return (
            self.anywhere
            and (not self.same_class or _class(function) == _class(stated))
            and (not self.same_file or function.module.path == stated.module.path)
        )


def _reach(term: Term, stated: Function) -> _Reach:
    """Return where a term of a function is spelt for the same value.

    An attribute is, where its object is not the receiver of another class, and a name of the module itself.
    """
    paths = [o.text for o in term.operands if o.aspect is Aspect.PATH]
    names = {re.split(r"[.\[]", o.text, maxsplit=1)[0] for o in term.operands}
    own = names & {*stated.receivers}
    alone = {n for n in names - own if not any(p.startswith((f"{n}.", f"{n}[")) for p in paths)}
    known = stated.module.scopes.names(stated.module.tree.module) if alone else ()
    return _Reach(alone <= {*known}, bool(own), bool(alone))


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
