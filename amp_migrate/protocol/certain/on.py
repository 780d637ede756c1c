"""What a path remembers where a GradScaler is made under a condition: AMP is on behind it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import pairwise

from amp_migrate.facts.below import every, with_parts
from amp_migrate.facts.paths import path, same
from amp_migrate.facts.scopes import assigned
from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.flow.cfg.points import Edge, Kind
from amp_migrate.flow.evaluate import evaluate, value_of
from amp_migrate.flow.refine import refine
from amp_migrate.flow.terms import Aspect, Term, term
from amp_migrate.project import Class, Function
from amp_migrate.project.reach import set_later
from amp_migrate.protocol.run.memory import Memory
from amp_migrate.protocol.run.remembered.shared import last, names_read, shared
from amp_migrate.training.contexts import is_off


class OnMemory(Memory):
    """Takes the paths on which gradients are scaled: what a GradScaler is given as `enabled=` holds where it is made.

    So it is where every GradScaler that may be on is given the same; else one may be off while another scales.
    """

    def _along(self, function: Function, edge: Edge, known: Assumption) -> Assumption | None:
        found = super()._along(function, edge, known)
        asked = None
        if edge.source.kind is Kind.CALL:
            asked = self._asked.get(edge.source.node)
        elif edge.source.kind is Kind.ENTRY and function.cls is not None:
            asked = self._of_object(function, function.cls)
        if found is None or asked is None:
            return found
        if evaluate(asked, found) is False:
            return None
        refined = refine(found, asked, True)
        return None if refined is None else refined.only(self._is_shared)

    def _into(self, call: ast.Call, callee: Function, known: Assumption) -> Assumption:
        """Return what a function knows when a call begins it, whatever hands on to it whether AMP is on."""
        found = super()._into(call, callee, known)
        for name, given in self.handed.given(call, callee).items() if known.facts else ():
            value = value_of(given, known) if name in self._handed_on else None
            own = term(ast.Name(name, ast.Load()))
            if value is not None and own is not None:
                found = found.with_fact(own, value)
        return found

    def _back(self, call: ast.Call, callee: Function, learnt: Assumption) -> Assumption:
        """Return what a function learnt; what every method of an object knows by itself stays in it."""
        asked = None if callee.cls is None else self._of_object(callee, callee.cls)
        own = None if asked is None else refine(NOTHING, asked, True)
        if own is not None:
            texts = {fact.term.text for fact in own.facts}
            learnt = learnt.only(lambda term: term.text not in texts)
        return super()._back(call, callee, learnt)

    def is_lasting(self, term: Term) -> bool:
        """Keep in mind whether AMP is on."""
        names = {
            last(operand.text) for operand in term.operands if operand.aspect is not Aspect.CONTENT
        }
        asked = bool(names) and names <= self._names_asked
        return asked or super().is_lasting(term)

    def _of_object(self, function: Function, cls: Class) -> ast.expr | None:
        """Return what the GradScaler of an object was given, where its attributes say that, and constructors alone store them."""
        if function.name == "__init__" or function.receiver is None:
            return None
        for maker, asked in self._kept_by:
            if maker.cls in cls.mro() and maker.receiver == function.receiver:
                return asked
        return None

    @cached_property
    def _kept_by(self) -> list[tuple[Function, ast.expr]]:
        """What GradScalers are given that constructors make, by the attributes that keep it."""
        found = []
        for node, asked in self._asked.items():
            maker = self._project.holder(node)
            kept = _by_attributes(maker, asked) if maker.name == "__init__" else None
            if kept is not None and not _attributes(kept) & set_later(self._project):
                found.append((maker, kept))
        return found

    @cached_property
    def _asked(self) -> Mapping[ast.AST, ast.expr]:
        """What the calls that make a GradScaler are given as `enabled=`."""
        made = [call for _, call in self._program.training.objects.made_scalers if not is_off(call)]
        found: dict[ast.AST, ast.expr] = {
            call: keyword.value
            for call in made
            for keyword in call.keywords
            if keyword.arg == "enabled"
        }
        alike = all(same(asked, other) for asked, other in pairwise(found.values()))
        return found if alike and len(found) == len(made) else {}

    @cached_property
    def _shared(self) -> frozenset[str]:
        """The names of the tests that are worth remembering, and those that say whether AMP is on."""
        several = super()._shared
        if not self._names_asked - several:
            return several
        return several | (self._tested & self._names_asked) | self._handed_on

    @cached_property
    def _tested(self) -> frozenset[str]:
        return shared(self._program, self.course, 1, self._given.constants)

    @cached_property
    def _names_asked(self) -> frozenset[str]:
        """The names of what `enabled=` reads, and of what that is handed on to."""
        return self._names_given | self._handed_on

    @cached_property
    def _names_given(self) -> frozenset[str]:
        asked = [*self._asked.values(), *(kept for _, kept in self._kept_by)]
        return frozenset(name for node in asked for name in names_read(node))

    @cached_property
    def _handed_on(self) -> frozenset[str]:
        """The names of parameters and variables that tests read and that get what `enabled=` reads, and of what they get."""
        found: set[str] = set()
        pairs = list(self._handing()) if self._names_given else []
        while (
            more := {
                text
                for name, value in pairs
                if (read := names_read(value)) <= self._names_given | found
                for text in (name, *read)
            }
            - found
        ):
            found |= more
        return frozenset(found)

    def _handing(self) -> Iterator[tuple[str, ast.expr]]:
        """Yield the names that some test reads with the variables and attributes that are handed on to them."""
        for function in self._program.relevant:
            for name in self._tested.intersection(function.parameters.names):
                for _, _, given in self._project.received(function, name):
                    if given is not None and path(given) is not None:
                        yield name, given
            for node in function.own_nodes:
                if isinstance(node, ast.Assign) and path(node.value) is not None:
                    names = (t.id for t in node.targets if isinstance(t, ast.Name))
                    yield from ((name, node.value) for name in names if name in self._tested)


def _by_attributes(maker: Function, asked: ast.expr) -> ast.expr | None:
    """Return what a constructor gives a GradScaler, by the attributes that keep its parameters; None where one keeps none."""
    kept: dict[str, ast.expr] = {}
    for node in maker.own_nodes:
        if isinstance(node, ast.Attribute) and maker.is_receiver(node.value):
            value = assigned(maker.module.tree, node)
            if isinstance(value, ast.Name):
                kept.setdefault(value.id, ast.Attribute(node.value, node.attr, ast.Load()))
    by_name: dict[ast.AST, ast.expr] = {}
    for part in every(asked):
        if isinstance(part, ast.Name) and not maker.is_receiver(part):
            bound = maker.module.scopes.bound(part)
            if part.id not in kept or not all(isinstance(b, ast.arg) for b in bound):
                return None
            by_name[part] = kept[part.id]
    return with_parts(asked, by_name)


def _attributes(node: ast.expr) -> set[str]:
    return {part.attr for part in every(node) if isinstance(part, ast.Attribute)}
