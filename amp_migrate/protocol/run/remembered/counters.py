"""The counters of loops: what a turn says of ``i + 1`` holds of ``i`` in the next, and the first begins at a known number."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial

from amp_migrate.facts.paths import path
from amp_migrate.flow.assumption import Assumption, Known, Value
from amp_migrate.flow.cfg.points import Kind, Point
from amp_migrate.flow.terms import Term, term_of_name
from amp_migrate.project import Function
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.run.remembered.shared import deciding
from amp_migrate.training.flags.turns import turns


class Counters:
    """Says what is known of counters where they are set."""

    def __init__(self, program: Program) -> None:
        self._project = program.project
        self.deciding = deciding(program)
        self._turns = turns(self._project)
        self._first: dict[str, bool] = {}

    def taken(
        self, function: Function, loop: ast.AST, known: Assumption, again: bool
    ) -> Assumption | None:
        """Return what is known where a loop takes an item, its first or one `again`; None where none is left."""
        counter = self._turns.counter(function.module, loop)
        if counter is None or not self._begins(counter.name.id):
            return known
        name = counter.name.id
        last = (f"(({name} Add 1) Eq {number})" for number in counter.turns) if again else ()
        if counter.start == 0 and any(known.says(text) for text in last):
            return None
        return known.with_fact(_turn(name), Known(None if again else counter.start))

    def stored(self, point: Point, before: Assumption) -> Iterator[tuple[Term, Value]]:
        """Yield what is known of a counter behind a store that was not known of it before."""
        node = point.node
        text = path(node) if isinstance(node, ast.Name | ast.Attribute) else None
        if point.kind is not Kind.STORE or text is None or not before.facts:
            return
        if not self._begins(text):
            return
        turn = before.get(_turn(text))
        if isinstance(turn, Known) and turn.value is not None:
            yield term_of_name(text), turn
        elif isinstance(turn, Known) or self._adds_one(node):
            yield from (found for found in _onward(before, text) if found[0].text in self.deciding)

    def decides(self, term: Term) -> bool:
        """Tell whether what a term says decides what becomes of gradients, or is the number of a turn that does."""
        if term.text in self.deciding:
            return True
        about = [operand.text for operand in term.operands]
        return any(
            term in (term_of_name(name), _turn(name)) and self._begins(name) for name in about
        )

    def _begins(self, name: str) -> bool:
        """Tell whether some test that decides asks a counter itself, not one more, as at the head of a window."""
        if name not in self._first:
            self._first[name] = any(
                text != name and re.search(_whole(name), text.replace(f"({name} Add 1)", ""))
                for text in self.deciding
            )
        return self._first[name]

    def _adds_one(self, node: ast.AST) -> bool:
        up = self._project.module_of(node).tree.parent(node)
        return isinstance(up, ast.AugAssign) and isinstance(up.op, ast.Add) and _is_one(up.value)


def _onward(before: Assumption, name: str) -> Iterator[tuple[Term, Value]]:
    """Yield the facts about one more than a counter, as facts about the counter."""
    for fact in before.facts:
        parts = fact.term.text.split(f"({name} Add 1)")
        if len(parts) > 1 and not any(re.search(_whole(name), part) for part in parts):
            spell = partial(_one_less, name)
            yield fact.term.respelt(fact.term.operands, spell), fact.value


def _one_less(name: str, text: str) -> str:
    return text.replace(f"({name} Add 1)", name)


def _whole(name: str) -> str:
    return rf"(?<![\w.]){re.escape(name)}(?![\w.\[])"


def _turn(name: str) -> Term:
    return term_of_name(name, "turn({})")


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == 1
