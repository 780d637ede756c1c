"""What a path remembers of the tests it passed: one test has one truth until something reassigns what it reads."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property, partial

from amp_migrate.facts.paths import path
from amp_migrate.flow.assumption import NOTHING, Assumption, Known
from amp_migrate.flow.cfg.points import Edge, Kind, Point
from amp_migrate.flow.changes import after
from amp_migrate.flow.refine import refine
from amp_migrate.flow.terms import Aspect, Operand, Term, term_of_name
from amp_migrate.project import Class, Function
from amp_migrate.project.once import once
from amp_migrate.protocol.calls.handed import handed_of
from amp_migrate.protocol.calls.renaming import renamed, root_of, same_names
from amp_migrate.protocol.code.course import Course
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.code.turns import Turns
from amp_migrate.protocol.code.visits import Visits
from amp_migrate.protocol.run.remembered.aliases import aliases_of
from amp_migrate.protocol.run.remembered.classes import is_of_another, of_class, of_receiver, stored
from amp_migrate.protocol.run.remembered.counters import Counters
from amp_migrate.protocol.run.remembered.exact import exact, of_loss
from amp_migrate.protocol.run.remembered.given import Given
from amp_migrate.protocol.run.remembered.inside import Inside
from amp_migrate.protocol.run.remembered.meanings import Meanings
from amp_migrate.protocol.run.remembered.shared import (
    about_objects,
    chooses,
    is_about,
    is_of_one,
    may_be_named,
    naming,
    shared,
    unscaled,
)
from amp_migrate.protocol.run.remembered.stores import Stores
from amp_migrate.training.events import Event

_course, _visits, _turns = once(Course), once(Visits), once(Turns)
_counters, _stores = once(Counters), once(Stores)
_given, _meanings, _inside = once(Given), once(Meanings), once(Inside)


class Memory:
    """Refines and forgets what is known along the edges of graphs, and takes it through calls.

    Only what several tests of a program read is remembered, where events hang on them. An attribute keeps its value over a call
    unless some function of the project, other than a constructor, stores an attribute of that name.
    """

    most = 4  # sets of facts that a place tells apart
    forgets = True  # beyond that it forgets them, which loses no path
    fewest = 2  # tests that read a name that is worth remembering

    def __init__(self, program: Program) -> None:
        self._program = program
        self.course = _course(program)
        self.visits = _visits(program)
        self.turns = _turns(program)
        self.handed = handed_of(program)
        self.counters = _counters(program)
        self._given, self._inside = _given(program), _inside(program)
        self._meanings, self._stores = _meanings(program), _stores(program.project)
        self._aliases = aliases_of(program.project)
        self._project = program.project
        self._edges: dict[tuple[Edge, Assumption], Assumption | None] = {}
        self._forgotten: dict[tuple[Assumption, bool, Assumption], Assumption] = {}
        self._calls: dict[tuple[ast.Call, Function, Assumption], Assumption] = {}
        self._learnt: dict[tuple[ast.Call, Function, Assumption], Assumption] = {}
        self._left: dict[tuple[ast.Call, Assumption], Assumption] = {}
        self._returns: dict[tuple[object, ...], Assumption | None] = {}
        self._renames: dict[tuple[ast.Call, Function], tuple[dict[str, str], frozenset[str]]] = {}

    def along(self, function: Function, edge: Edge, known: Assumption) -> Assumption | None:
        """Return what is known at the end of an edge; None where the edge cannot be taken.

        A test of whether there is a GradScaler comes out as it does with AMP on.
        """
        asked = (edge, known)
        if asked not in self._edges:
            found = self._along(function, edge, known)
            dead = self.course.liveness.dead(function, edge.target)
            if found is not None and dead:
                found = found.without(lambda operand: root_of(operand.text) in dead)
            self._edges[asked] = found
        return self._edges[asked]

    def _along(self, function: Function, edge: Edge, known: Assumption) -> Assumption | None:
        left = self._with_loss(function, edge.source, self._kept(edge.source, known))
        there = self._with_optimizer(function, edge.source, left)
        found = None if there is None else self._program.exceptions.along(function, edge, there)
        if edge.test is None or found is None:
            return found
        truth = bool(edge.truth)
        if self.course.outcome(function, edge.test) is (not truth):
            return None
        return self.told(function, edge.test, found, truth)

    def told(
        self, function: Function, test: ast.expr, known: Assumption, truth: bool
    ) -> Assumption | None:
        """Return what is known where a test has come out as `truth`; None where it cannot."""
        there = self.course.there(function, test, known, truth)
        if there is None or self._given.outcome(function, test, known) is (not truth):
            return None
        spelt = self.course.answers.spelt(test)
        refined = self._meanings.told(self._aliases.refined(function, spelt, there, truth))
        return None if refined is None else refined.only(self._is_shared)

    def exact(self, event: Event, known: Assumption) -> Iterable[Event]:
        """Return an event with what the path knows of its optimizer, or of its loss; all that it may be then."""
        return (exact(self.handed, event, known),)

    def _with_loss(self, function: Function, point: Point, known: Assumption) -> Assumption:
        node = point.node
        if point.kind is not Kind.STORE or not isinstance(node, ast.Name):
            return known
        scaled = self.course.scales(function, node, point.value)
        return known if scaled is None else known.with_fact(of_loss(node.id), Known(scaled))

    def _with_optimizer(
        self, function: Function, point: Point, known: Assumption
    ) -> Assumption | None:
        """Return what is known where gradients of an optimizer were unscaled, or a GradScaler is used: that raises where there is none."""
        there = self.course.called(function, point.node, known)
        given = unscaled(self._program, function, point.node)
        if given is None or there is None:
            return there
        found = refine(there, given, True)
        return None if found is None else found.only(self._is_shared)

    def into(self, call: ast.Call, callee: Function, known: Assumption) -> Assumption:
        """Return what a function knows when a call begins it: of its arguments, by the names of its parameters."""
        asked = (call, callee, known)
        if asked not in self._calls:
            inside = self._inside.begun(*asked, self._into, self._kept)
            self._calls[asked] = self._into(*asked) if inside is None else inside
        return self._calls[asked]

    def _into(self, call: ast.Call, callee: Function, known: Assumption) -> Assumption:
        found = renamed(known, *self._renamed(call, callee))
        for name, given in self._given.constants(call, callee):
            if name in self._shared:
                found = found.with_fact(term_of_name(name), given)
        for term, value in (
            *self._given.said(call, callee, known),
            *self.handed.on(call, callee, known),
        ):
            found = found.with_fact(term, value)
        for term, truth in self._meanings.into(call, callee, known):
            found = found.with_fact(term, truth)
        return found.only(self._is_shared)

    def back(
        self, call: ast.Call, callee: Function, learnt: Assumption, before: Assumption
    ) -> Assumption | None:
        """Return what is known behind a call: what was, and what the function learnt of its arguments.

        None where it came to an end to which these arguments do not lead.
        """
        asked = (call, callee, learnt, before)
        if asked not in self._returns:
            self._returns[asked] = self._returned(*asked)
        return self._returns[asked]

    def _returned(
        self, call: ast.Call, callee: Function, learnt: Assumption, before: Assumption
    ) -> Assumption | None:
        if (known := self._meanings.back(call, callee, learnt, before)) is None:
            return None
        if (call, known) not in self._left:
            self._left[call, known] = known.without(lambda operand: self._writes(call, operand))
        if (call, callee, learnt) not in self._learnt:
            self._learnt[call, callee, learnt] = self._back(call, callee, learnt)
        more, left = self._learnt[call, callee, learnt], self._left[call, known]
        if is_of_another(call, callee, more, left):
            return None
        return self._meanings.told(left.with_all(more))

    def _back(self, call: ast.Call, callee: Function, learnt: Assumption) -> Assumption:
        """Return what a function learnt, by the names of its caller."""
        own, same = self._renamed(call, callee)
        return renamed(learnt, {inner: outer for outer, inner in own.items()}, same)

    def _renamed(self, call: ast.Call, callee: Function) -> tuple[dict[str, str], frozenset[str]]:
        """Return the names that a call gives to a function, and those that mean the same on both sides."""
        asked = (call, callee)
        if asked not in self._renames:
            self._renames[asked] = (
                self._names(call, callee),
                same_names(self._project, call, callee),
            )
        return self._renames[asked]

    def behind(self, function: Function, known: Assumption) -> Assumption:
        """Return what is still known when a function has run that no call names."""
        stored = self._stores.of(function)
        return known.without(lambda o: o.aspect is Aspect.PATH and o.attribute in stored)

    def of_class(self, receiver: ast.expr, cls: Class, known: Assumption) -> Assumption | None:
        """Return what is known where the object of a method call is of a class; None where it is of another."""
        return of_class(receiver, cls, known)

    def of_name(
        self, call: ast.Call, functions: Sequence[Function], known: Assumption
    ) -> list[Function | None]:
        """Return which of some functions a call runs where the name of its method is known; None for one out of sight."""
        name = naming(call)
        stated = known.get(term_of_name(name)) if name is not None else None
        if not isinstance(stated, Known) or not isinstance(stated.value, str):
            return [*functions]
        found: list[Function | None] = [f for f in functions if may_be_named(f, stated.value)]
        return found if len(found) == len(functions) else [*found, None]

    def begun(self, function: Function, known: Assumption, apart: int) -> Assumption:
        """Return what a function that begins keeps of what is known: in any case of what class its object is, and what calls spell out."""
        own = of_receiver(function, known).with_all(self._given.spelt(function, known))
        return self.forgotten(known, apart, own)

    def forgotten(self, known: Assumption, apart: int, begun: Assumption = NOTHING) -> Assumption:
        """Return what is kept of what is known where so many sets of facts are told apart, in a function that was `begun` with some."""
        if apart < self.most:
            return known
        asked = known, apart >= 4 * self.most, begun
        if asked not in self._forgotten:
            kept = known.only(self.is_lasting if asked[1] else self._decides)
            self._forgotten[asked] = kept.with_all(begun.common(known).only(is_of_one))
        return self._forgotten[asked]

    def _decides(self, term: Term) -> bool:
        """Tell whether what becomes of gradients hangs on what is known of a term, or which objects there are."""
        return about_objects(term) or self.counters.decides(term) or self.is_lasting(term)

    def is_lasting(self, term: Term) -> bool:
        """Tell whether what is known of a term is kept where all else is forgotten."""
        return not term.operands or chooses(self._program, term) or self._given.is_told(term)

    @cached_property
    def _is_shared(self) -> Callable[[Term], bool]:
        """Tells whether what is known of a term is worth remembering."""
        return cache(partial(is_about, self._shared))

    @cached_property
    def _shared(self) -> frozenset[str]:
        """The last parts of names that are worth remembering: several tests read them, or calls state them."""
        found = shared(self._program, self.course, self.fewest, self._given.constants)
        found |= self._given.asked_with(found)
        return found | self._aliases.along_with(found, self._program.relevant)

    def _names(self, call: ast.Call, callee: Function) -> dict[str, str]:
        """Return the parameters of a function by the paths that a call gives for them."""
        found: dict[str, str] = {}
        for name, given in self.handed.given(call, callee).items():
            text = path(given)
            if text is not None:
                found.setdefault(text, name)
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        text = path(receiver) if receiver is not None else None
        if text is not None and callee.receiver is not None and not callee.is_class:
            found[text] = callee.receiver
        return found

    def _kept(self, point: Point, known: Assumption) -> Assumption:
        left, _ = after(point, known, self.may_change)
        for term, value in self.counters.stored(point, known):
            left = left.with_fact(term, value)
        given = self._given.stored(point, known, left)
        left = self._meanings.stored(point, stored(point, known, given))
        return left if left is known else left.only(self._is_shared)

    def taken(
        self, function: Function, loop: ast.AST, known: Assumption, again: bool
    ) -> Assumption | None:
        """Return what is known where a loop takes its first item or another one; None where there is none any more."""
        left = self.counters.taken(function, loop, known, again)
        return None if left is None else left.only(self._is_shared)

    def may_change(self, point: Point, operand: Operand) -> bool:
        """Tell whether what runs at a point may write an operand: attributes that a called function may store.

        A store into an attribute or item may be, under another name, one into any of that name; it changes what is
        inside the object that it stores into, and no other.
        """
        if point.kind in (Kind.STORE, Kind.DELETE):
            return operand.aspect is not Aspect.CONTENT or self._stores.may_hold(
                point.node, operand.text
            )
        return isinstance(point.node, ast.Call) and self._writes(point.node, operand)

    def _writes(self, call: ast.Call, operand: Operand) -> bool:
        if operand.aspect is not Aspect.PATH:
            return False
        callees = self._program.calls.of(call)
        return any(operand.attribute in self._stores.of(f) for f in callees)
