"""The turns of a loop: the variable that counts them, and how many there are."""

from __future__ import annotations

import ast
from typing import NamedTuple

from amp_migrate.facts.variables import put_in
from amp_migrate.flow.terms import compared, is_len, length, spelled
from amp_migrate.project import Module, Project
from amp_migrate.project.once import once
from amp_migrate.project.order import inside
from amp_migrate.training.beliefs import SHOWS_PROGRESS
from amp_migrate.training.bindings import values_of


class Counter(NamedTuple):
    """The variable of a loop that counts its turns, the number of the first, and spellings of how many there are.

    Over ``range``, `many` is that number.
    """

    name: ast.Name
    start: int
    turns: frozenset[str]
    many: ast.expr | None = None


class Turns:
    """Finds the counters of loops over ``range`` and ``enumerate``."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._known: dict[ast.AST, Counter | None] = {}

    def counter(self, module: Module, loop: ast.AST) -> Counter | None:
        """Return the counter of a loop, if nothing else sets it in there."""
        if loop not in self._known:
            self._known[loop] = self._counter(module, loop)
        return self._known[loop]

    def counts(self, module: Module, target: ast.Name) -> bool:
        """Tell whether a loop over ``range`` or ``enumerate`` gives a variable its numbers."""
        loop = module.tree.parent(target)
        first: ast.AST = target
        if isinstance(loop, ast.Tuple) and loop.elts[0] is target:
            first, loop = loop, module.tree.parent(loop)
        if not isinstance(loop, ast.For) or loop.target is not first:
            return False
        over = self._shown(module, loop.iter)[-1]
        kind = module.scopes.builtin(over.func) if isinstance(over, ast.Call) else None
        return kind == ("range" if first is target else "enumerate")

    def asks_for_the_last(self, module: Module, loop: ast.AST, test: ast.expr) -> bool:
        """Tell whether a test holds in the last turn of a loop at least: ``... or i + 1 == len(loader)``."""
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
            return any(self.asks_for_the_last(module, loop, value) for value in test.values)
        counter = self.counter(module, loop)
        if counter is None or counter.start != 0 or not isinstance(test, ast.Compare):
            return False
        if len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq | ast.GtE):
            return False
        asked = put_in(test, _lengths(module, test))
        found, _ = compared(ast.Compare(asked.left, [ast.Eq()], asked.comparators))
        last = {f"(({counter.name.id} Add 1) Eq {number})" for number in counter.turns}
        return found is not None and found.text in last

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
        many = over.args[0] if kind == "range" else None
        return Counter(target, start.value, self._turns(module, kind, over.args[0]), many)

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


def _lengths(module: Module, node: ast.expr) -> dict[str, ast.expr]:
    """Return what the variables of an expression are that only ever hold how many items something has."""
    names = (n for n in ast.walk(node) if isinstance(n, ast.Name))
    values = ((n.id, module.scopes.only_value(n)) for n in names)
    return {name: v for name, v in values if isinstance(v, ast.Call) and is_len(v)}


@once
def turns(project: Project) -> Turns:
    """Return the counters of the loops of a project; found once."""
    return Turns(project)
