"""The counters of loops: what a turn says of ``i + 1`` holds of ``i`` in the next, and the first begins at a known number."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from amp_migrate.facts.paths import path
from amp_migrate.flow.assumption import Assumption, Known, Value
from amp_migrate.flow.cfg.points import Kind, Point
from amp_migrate.flow.terms import Aspect, Operand, Term, length, spelled
from amp_migrate.project import Function, Module
from amp_migrate.project.order import inside
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.run.remembered.shared import deciding
from amp_migrate.training.beliefs import SHOWS_PROGRESS
from amp_migrate.training.bindings import values_of


class Counter(NamedTuple):
    """The variable of a loop that counts its turns, the number of the first, and spellings of how many there are."""

    name: ast.Name
    start: int
    turns: frozenset[str]


class Counters:
    """Says what is known of counters where they are set."""

    def __init__(self, program: Program) -> None:
        self._project = program.project
        self.deciding = deciding(program)
        self._known: dict[ast.AST, Counter | None] = {}
        self._first: dict[str, bool] = {}

    def taken(
        self, function: Function, loop: ast.AST, known: Assumption, again: bool
    ) -> Assumption | None:
        """Return what is known where a loop takes an item, its first or one `again`; None where none is left."""
        if loop not in self._known:
            self._known[loop] = self._counter(function.module, loop)
        counter = self._known[loop]
        if counter is None or not self._begins(counter.name.id):
            return known
        name = counter.name.id
        last = (f"(({name} Add 1) Eq {turns})" for turns in counter.turns) if again else ()
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
            yield _number(text), turn
        elif isinstance(turn, Known) or self._adds_one(node):
            yield from (found for found in _onward(before, text) if found[0].text in self.deciding)

    def decides(self, term: Term) -> bool:
        """Tell whether what a term says decides what becomes of gradients, or is the number of a turn that does."""
        if term.text in self.deciding:
            return True
        about = [operand.text for operand in term.operands]
        return any(term in (_number(name), _turn(name)) and self._begins(name) for name in about)

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

    def _counter(self, module: Module, loop: ast.AST) -> Counter | None:
        """Return the counter of a loop over ``range`` or ``enumerate``, if nothing else sets it in there."""
        over = self._shown(module, loop.iter)[-1] if isinstance(loop, ast.For) else None
        if not isinstance(loop, ast.For) or not isinstance(over, ast.Call):
            return None
        kind, target = module.scopes.builtin(over.func), loop.target
        if kind == "enumerate" and isinstance(target, ast.Tuple):
            target = target.elts[0]
        elif kind != "range" or len(over.args) != 1:
            return None
        if not isinstance(target, ast.Name) or not self._is_counted(module, loop, target):
            return None
        begins = [*over.args[1:], *(k.value for k in over.keywords if k.arg == "start")]
        start = begins[0] if begins else ast.Constant(0)
        if not isinstance(start, ast.Constant) or type(start.value) is not int or not over.args:
            return None
        return Counter(target, start.value, self._turns(module, kind, over.args[0]))

    def _turns(self, module: Module, kind: str, given: ast.expr) -> frozenset[str]:
        """Return the spellings of how many items there are."""
        shown = self._shown(module, given) if kind == "enumerate" else []
        found = [length(over) for over in shown] or [spelled(given)]
        return frozenset(text for text in found if text is not None)

    def _shown(self, module: Module, over: ast.expr) -> list[ast.expr]:
        """Return what a loop goes over, and what that shows the progress of, the innermost last."""
        found = [over]
        while (inner := self._inner(module, found[-1])) is not None:
            found.append(inner)
        return found

    def _inner(self, module: Module, over: ast.expr) -> ast.expr | None:
        if isinstance(over, ast.Call) and self._shows(module, over):
            return over.args[0]
        if not isinstance(over, ast.Name):
            return None
        values = list(values_of(module, over))
        if len(values) != 1 or len(module.scopes.bound(over)) != 1:
            return None
        return values[0] if self._shows(module, values[0]) else None

    def _shows(self, module: Module, node: ast.expr) -> bool:
        """Tell whether a call gives the items of its first argument, one by one, and shows how far it came."""
        if not isinstance(node, ast.Call) or not node.args:
            return False
        return self._project.external(module, node.func) in SHOWS_PROGRESS

    def _is_counted(self, module: Module, loop: ast.For, target: ast.Name) -> bool:
        """Tell whether a loop alone sets its variable, and takes whatever it goes over from the first item on."""
        scopes, tree = module.scopes, module.tree
        here = scopes.scope_of(target)
        sets = [
            b
            for b in scopes.bound(target)
            if inside(tree, b, loop) or scopes.scope_of(b) is not here
        ]
        if sets != [target]:
            return False
        if not isinstance(loop.iter, ast.Name):
            return True
        reads = scopes.reads(scopes.owner(loop.iter), loop.iter.id)
        return [n for n in reads if not isinstance(tree.parent(n), ast.Attribute)] == [loop.iter]


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


def _number(name: str) -> Term:
    return Term(name, frozenset({Operand(name, Aspect.BINDING)}))


def _turn(name: str) -> Term:
    return Term(f"turn({name})", frozenset({Operand(name, Aspect.BINDING)}))


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == 1
