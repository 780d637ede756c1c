"""The constants that calls give for parameters, and how tests come out that count by one of them, or ask for its type."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from functools import cached_property

from amp_migrate.facts.below import every, with_parts
from amp_migrate.flow.assumption import Assumption, Known, Truth, Value
from amp_migrate.flow.cfg.points import Point
from amp_migrate.flow.evaluate import evaluate, value_of
from amp_migrate.flow.terms import Term, term_of_name
from amp_migrate.project import Function
from amp_migrate.protocol.calls import keywords
from amp_migrate.protocol.calls.coming import TypeAsked, asked_type, is_filled, kind_of
from amp_migrate.protocol.calls.handed import handed_of
from amp_migrate.protocol.calls.keywords import may_be_unpacked, said, stored
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.run.remembered.shared import deciding
from amp_migrate.training.flags.whole import is_whole

_ONE = Known(1)


class Given:
    """Knows the bools, strings and None that a call gives, and the 1 that a function counts by."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._project = program.project
        self._handed = handed_of(program)
        self._asked: dict[Function, list[TypeAsked]] = {}
        self._kinds: dict[ast.expr, str | None] = {}
        self._spelt: dict[Function, set[str]] = {}
        self._unpacked: dict[tuple[ast.Call, Function, str], bool] = {}

    def constants(self, call: ast.Call, callee: Function) -> Iterator[tuple[str, Value]]:
        """Yield the parameters of a function that a call, or a default, gives a constant for, and those constants."""
        given = {**callee.parameters.defaults, **self._handed.given(call, callee)}
        for name, value in given.items():
            if isinstance(value, ast.Constant) and not self._is_unpacked(call, callee, name):
                known = Known(value.value)
                if isinstance(value.value, bool | str | None) or (
                    known == _ONE and _counts_by(callee, name)
                ):
                    yield name, known

    def spelt(self, function: Function, known: Assumption) -> Assumption:
        """Return what is known of the parameters of a function for which calls spell out constants."""
        if function not in self._spelt:
            sites = self._project.callers(function)
            names = {name for site in sites for name, _ in self.constants(site.call, function)}
            handed = keywords.handed(self._program).intersection(function.parameters.names)
            self._spelt[function] = names | handed
        names = self._spelt[function]
        return known.only(lambda term: term.text in names)

    def _is_unpacked(self, call: ast.Call, callee: Function, name: str) -> bool:
        asked = call, callee, name
        if asked not in self._unpacked:
            self._unpacked[asked] = may_be_unpacked(self._project, *asked)
        return self._unpacked[asked]

    def said(
        self, call: ast.Call, callee: Function, known: Assumption
    ) -> Iterator[tuple[Term, Value]]:
        """Yield what a function knows of what a call gives it: keywords to hand on, and types that it asks for."""
        yield from said(self._program, call, callee, known)
        yield from self._types(call, callee)

    def stored(self, point: Point, before: Assumption, left: Assumption) -> Assumption:
        """Return what is known behind a point with what it puts into a dictionary, or takes out of one."""
        return stored(self._project, point, before, left)

    def _types(self, call: ast.Call, callee: Function) -> Iterator[tuple[Term, Value]]:
        """Yield what tests of a function ask of the type of a parameter, with how it comes out: a list, or one optimizer."""
        asked = self._asking(callee)
        given = self._handed.given(call, callee) if asked else {}
        for name, asking, types in asked:
            kind = self._kind(given[name]) if name in given else None
            if kind is not None:
                yield asking, Truth(kind in types)
                if is_filled(self._project, given[name]):
                    yield term_of_name(name), Truth(True)

    def asked_with(self, names: Collection[str]) -> set[str]:
        """Return what functions name beside parameters of some names where they ask for the type of these."""
        return {
            o.text for name, asking, _ in self._questions if name in names for o in asking.operands
        }

    def is_told(self, term: Term) -> bool:
        """Tell whether a term says of a parameter what each call does: which type it has, or on which way gradients go."""
        return term.text in self._told

    @cached_property
    def _told(self) -> frozenset[str]:
        types = {text for name, asking, _ in self._questions for text in (name, asking.text)}
        return frozenset(types.union(*map(self._chosen, self._program.relevant)))

    def _chosen(self, function: Function) -> set[str]:
        """Return the parameters that calls give constants for, and on which it hangs where gradients are unscaled or stepped on."""
        names = deciding(self._program).intersection(function.parameters.names)
        sites = self._project.callers(function) if names else ()
        given = {name for site in sites for name, _ in self.constants(site.call, function)}
        bindings, scope = function.module.scopes.bindings, function.scope
        return {name for name in names & given if len(bindings(scope, name)) == 1}

    @cached_property
    def _questions(self) -> list[TypeAsked]:
        return [one for function in self._program.relevant for one in self._asking(function)]

    def _asking(self, function: Function) -> list[TypeAsked]:
        """Return the questions for built-in types of collections that a function asks about its parameters."""
        if function not in self._asked:
            found = (asked_type(node) for node in function.all_nodes)
            self._asked[function] = [
                one for one in found if one is not None and one[0] in function.parameters.names
            ]
        return self._asked[function]

    def _kind(self, node: ast.expr) -> str | None:
        if node not in self._kinds:
            self._kinds[node] = kind_of(self._project, node)
        return self._kinds[node]

    def outcome(self, function: Function, test: ast.expr, known: Assumption) -> bool | None:
        """Return how a test comes out that asks for remainders of whole numbers by 1; None for any other."""
        found: dict[ast.AST, ast.expr] = {
            part: ast.Constant(0)
            for part in _remainders(test)
            if value_of(part.right, known) == _ONE and is_whole(self._project, function, part.left)
        }
        return evaluate(with_parts(test, found), known) if found else None


def _counts_by(function: Function, name: str) -> bool:
    return any(
        isinstance(part.right, ast.Name) and part.right.id == name
        for node in function.own_nodes
        if isinstance(node, ast.BinOp)
        for part in _remainders(node)
    )


def _remainders(node: ast.expr) -> Iterator[ast.BinOp]:
    for part in every(node):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod):
            yield part
