"""Reads expressions into points, in the order in which Python evaluates them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import ClassVar

from amp_migrate.facts.paths import variables
from amp_migrate.flow.cfg.points import EdgeKind, Kind
from amp_migrate.flow.cfg.sketch import End, Sketch
from amp_migrate.flow.evaluate import always


class Expressions:
    """Evaluates expressions: values, tests with their two ways out, and targets; but for comprehensions."""

    READERS: ClassVar[dict[type[ast.AST], str]] = {
        ast.Constant: "_nothing",
        ast.Name: "_load",
        ast.Attribute: "_load",
        ast.Subscript: "_load",
        ast.Call: "_call",
        ast.BoolOp: "_joined",
        ast.IfExp: "_joined",
        ast.Compare: "_joined",
        ast.UnaryOp: "_unary",
        ast.BinOp: "_operate",
        ast.FormattedValue: "_operate",
        ast.Dict: "_dict",
        ast.Starred: "_starred",
        ast.NamedExpr: "_named",
        ast.Lambda: "_lambda",
        ast.Await: "_await",
        ast.Yield: "_yield",
        ast.YieldFrom: "_yield",
    }

    def __init__(self, sketch: Sketch, at_once: bool = False) -> None:
        self.sketch = sketch
        self.at_once = at_once  # generator expressions loop where they stand
        # the names of the comprehensions around what is read: tests about them say nothing of the body's own names
        self.inner: list[frozenset[str]] = []
        self._bound = 0

    def value(self, node: ast.AST) -> None:
        """Evaluate an expression for its value."""
        getattr(self, self.READERS.get(type(node), "_parts"))(node)

    def values(self, nodes: Sequence[ast.AST | None]) -> None:
        """Evaluate expressions one after the other."""
        for node in nodes:
            if node is not None:
                self.value(node)

    def test(self, node: ast.expr) -> tuple[list[End], list[End]]:
        """Evaluate an expression for its truth; return the ends where it is true, and where it is false."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            true, false = self.test(node.operand)
            return false, true
        if isinstance(node, ast.BoolOp):
            return self._bool_test(node)
        if isinstance(node, ast.IfExp):
            true, false = self.test(node.test)
            self.sketch.ends = true
            body_true, body_false = self.test(node.body)
            self.sketch.ends = false
            else_true, else_false = self.test(node.orelse)
            return body_true + else_true, body_false + else_false
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            return self._chain_test(node)
        if isinstance(node, ast.NamedExpr):
            self._named(node)
            return self.decide(node, node.target)
        return self.decide(node, self.evaluated(node))

    def evaluated(self, node: ast.expr) -> ast.expr | None:
        """Evaluate an expression; return it where it says its value afterwards too, and None where it binds names."""
        before = self._bound
        self.value(node)
        return node if self._bound == before else None

    def decide(self, node: ast.AST, test: ast.expr | None) -> tuple[list[End], list[End]]:
        """Add the point that asks for the truth of what `node` left; `test` says it as an expression."""
        index = self.sketch.add(Kind.TEST, node)
        return self.ways(index, test)

    def ways(self, index: int, test: ast.expr | None) -> tuple[list[End], list[End]]:
        """Return the two ends of a deciding point, without those that constants rule out."""
        self.sketch.ends = []
        known = None if test is None else always(test)
        if test is not None and self.inner and self._speaks_of_inner(test):
            test = None
        true: list[End] = [(index, EdgeKind.TRUE, test)]
        false: list[End] = [(index, EdgeKind.FALSE, test)]
        return ([] if known is False else true), ([] if known is True else false)

    def _speaks_of_inner(self, test: ast.expr) -> bool:
        names = variables(test)
        return any(names & inner for inner in self.inner)

    def _bool_test(self, node: ast.BoolOp) -> tuple[list[End], list[End]]:
        conjunction = isinstance(node.op, ast.And)
        decided: list[End] = []
        for value in node.values[:-1]:
            true, false = self.test(value)
            self.sketch.ends = true if conjunction else false
            decided = decided + (false if conjunction else true)
        true, false = self.test(node.values[-1])
        return (true, decided + false) if conjunction else (decided + true, false)

    def _chain_test(self, node: ast.Compare) -> tuple[list[End], list[End]]:
        before = self._bound
        self.value(node.left)
        left = node.left
        failed: list[End] = []
        true: list[End] = []
        for op, right in zip(node.ops, node.comparators, strict=True):
            self.value(right)
            self.sketch.add(Kind.OPERATE, node)
            pair = ast.copy_location(ast.Compare(left, [op], [right]), node)
            true, false = self.decide(node, pair if self._bound == before else None)
            failed = failed + false
            self.sketch.ends = true
            left = right
        return true, failed

    def _joined(self, node: ast.BoolOp | ast.IfExp | ast.Compare) -> None:
        if isinstance(node, ast.Compare):
            if len(node.ops) == 1:
                self._operate(node)
            else:
                true, false = self._chain_test(node)
                self.sketch.ends = true + false
        elif isinstance(node, ast.BoolOp):
            decided: list[End] = []
            for value in node.values[:-1]:
                true, false = self.test(value)
                self.sketch.ends = true if isinstance(node.op, ast.And) else false
                decided = decided + (false if isinstance(node.op, ast.And) else true)
            self.value(node.values[-1])
            self.sketch.ends = self.sketch.ends + decided
        else:
            true, false = self.test(node.test)
            self.sketch.ends = true
            self.value(node.body)
            true = self.sketch.ends
            self.sketch.ends = false
            self.value(node.orelse)
            self.sketch.ends = true + self.sketch.ends

    def _nothing(self, node: ast.expr) -> None:
        pass

    def _parts(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)

    def _load(self, node: ast.Name | ast.Attribute | ast.Subscript) -> None:
        self._base(node)
        self.sketch.add(Kind.LOAD, node)

    def _base(self, node: ast.expr) -> None:
        """Evaluate what an attribute or item is one of."""
        if isinstance(node, ast.Attribute | ast.Subscript):
            self.value(node.value)
        if isinstance(node, ast.Subscript):
            self.value(node.slice)

    def _operate(self, node: ast.expr) -> None:
        self._parts(node)
        self.sketch.add(Kind.OPERATE, node)

    def _unary(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            true, false = self.test(node)
            self.sketch.ends = true + false
        elif isinstance(node.operand, ast.Constant):
            self._nothing(node)
        else:
            self._operate(node)

    def _starred(self, node: ast.Starred) -> None:
        self.value(node.value)
        self.sketch.add(Kind.UNPACK, node)

    def _dict(self, node: ast.Dict) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None:
                self.value(key)
            self.value(value)
            if key is None:
                self.sketch.add(Kind.UNPACK, value)

    def _call(self, node: ast.Call) -> None:
        self.value(node.func)
        self.values(node.args)
        for keyword in node.keywords:
            self.value(keyword.value)
        self.sketch.add(Kind.CALL, node)

    def _named(self, node: ast.NamedExpr) -> None:
        value = self.evaluated(node.value)
        self.sketch.add(Kind.STORE, node.target, value)
        self._bound += 1

    def _lambda(self, node: ast.Lambda) -> None:
        self.defaults(node.args)
        self.sketch.add(Kind.DEFINE, node)

    def defaults(self, arguments: ast.arguments) -> None:
        """Evaluate the defaults of parameters."""
        self.values(arguments.defaults)
        self.values(arguments.kw_defaults)

    def _await(self, node: ast.Await) -> None:
        self.value(node.value)
        self.sketch.add(Kind.AWAIT, node)

    def _yield(self, node: ast.Yield | ast.YieldFrom) -> None:
        self._parts(node)
        self.sketch.add(Kind.YIELD, node)

    def bind(self, target: ast.expr, value: ast.expr | None = None) -> None:
        """Store into a target; `value` is what it gets, where the text has it."""
        if isinstance(target, ast.Tuple | ast.List):
            given = _one_by_one(target, value)
            if given is None:
                self.sketch.add(Kind.UNPACK, target)
                given = [None] * len(target.elts)
            for element, part in zip(target.elts, given, strict=True):
                self.bind(element, part)
        elif isinstance(target, ast.Starred):
            self.bind(target.value)
        else:
            before = self._bound
            self._base(target)
            same = self._bound == before or isinstance(value, ast.Constant)
            self.sketch.add(Kind.STORE, target, value if same else None)


def _one_by_one(
    target: ast.Tuple | ast.List, value: ast.expr | None
) -> list[ast.expr | None] | None:
    """What each element of a display gets from another display; only constants keep their value."""
    if not isinstance(value, ast.Tuple | ast.List) or len(value.elts) != len(target.elts):
        return None
    if any(isinstance(part, ast.Starred) for part in (*value.elts, *target.elts)):
        return None
    return [part if isinstance(part, ast.Constant) else None for part in value.elts]
