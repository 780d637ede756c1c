"""Reads simple statements, branches, loops and definitions into points."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, ClassVar

from amp_migrate.flow.cfg.comprehensions import Comprehensions
from amp_migrate.flow.cfg.points import EdgeKind, Kind, Way
from amp_migrate.flow.cfg.sketch import End, Frame


class Statements(Comprehensions):
    """Runs statements: what is simple, what branches, what loops, what defines.

    The runners are by the name of the node, since not every Python has all of them.
    """

    RUNNERS: ClassVar[dict[str, str]] = {
        "Expr": "_expression",
        "Assign": "_assign",
        "AnnAssign": "_annotated",
        "AugAssign": "_augmented",
        "Delete": "_delete",
        "Return": "_return",
        "Raise": "_raise",
        "Assert": "_assert",
        "Break": "_break",
        "Continue": "_continue",
        "Import": "_import",
        "ImportFrom": "_import",
        "If": "_if",
        "While": "_while",
        "For": "_for",
        "AsyncFor": "_for",
        "FunctionDef": "_function",
        "AsyncFunctionDef": "_function",
        "ClassDef": "_class",
        "TypeAlias": "_type_alias",
    }

    def block(self, statements: Sequence[ast.stmt]) -> None:
        """Run statements in order; what follows a jump is read as well and nothing leads to it."""
        for statement in statements:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        """Run one statement; each has at least one point."""
        before = len(self.sketch.points)
        run = self.RUNNERS.get(type(node).__name__)
        if run is not None:
            getattr(self, run)(node)
        if len(self.sketch.points) == before:
            self.sketch.add(Kind.STEP, node)

    def _expression(self, node: ast.Expr) -> None:
        self.value(node.value)

    def _assign(self, node: ast.Assign) -> None:
        value = self.evaluated(node.value)
        if len(node.targets) > 1 and not isinstance(value, ast.Constant):
            # the first target may be an operand of what the second one gets
            value = None
        for target in node.targets:
            self.bind(target, value)

    def _annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.bind(node.target, self.evaluated(node.value))
        else:
            self._base(node.target)

    def _augmented(self, node: ast.AugAssign) -> None:
        self._load(node.target)
        self.value(node.value)
        self.sketch.add(Kind.OPERATE, node)
        self.sketch.add(Kind.STORE, node.target)

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self._delete_one(target)

    def _delete_one(self, target: ast.expr) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            for element in target.elts:
                self._delete_one(element)
        else:
            self._base(target)
            self.sketch.add(Kind.DELETE, target)

    def _return(self, node: ast.Return) -> None:
        self.values((node.value,))
        self.sketch.add(Kind.RETURN, node)
        self.sketch.jump(Way.RETURN)

    def _raise(self, node: ast.Raise) -> None:
        self.values((node.exc, node.cause))
        self.sketch.add(Kind.RAISE, node)
        self.sketch.jump(Way.RAISE)

    def _assert(self, node: ast.Assert) -> None:
        true, false = self.test(node.test)
        self.sketch.ends = false
        self.values((node.msg,))
        self.sketch.add(Kind.RAISE, node)
        self.sketch.jump(Way.RAISE)
        self.sketch.ends = true

    def _break(self, node: ast.Break) -> None:
        self.sketch.add(Kind.JUMP, node)
        self.sketch.jump(Way.BREAK)

    def _continue(self, node: ast.Continue) -> None:
        self.sketch.add(Kind.JUMP, node)
        self.sketch.jump(Way.CONTINUE)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            self.sketch.add(Kind.IMPORT, alias)
            self.sketch.add(Kind.STORE, alias)

    def _type_alias(self, node: Any) -> None:
        self.sketch.add(Kind.DEFINE, node)
        self.sketch.add(Kind.STORE, node.name)

    def _if(self, node: ast.If) -> None:
        true, false = self.test(node.test)
        self.sketch.ends = true
        self.block(node.body)
        true = self.sketch.ends
        self.sketch.ends = false
        self.block(node.orelse)
        self.sketch.ends = true + self.sketch.ends

    def _while(self, node: ast.While) -> None:
        head = self.sketch.add(Kind.TURN, node)
        true, false = self.test(node.test)
        self._loop(node, head, true, false)

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        self.value(node.iter)
        head = self.sketch.add(Kind.NEXT, node)
        item, done = self.ways(head, None)
        self._loop(node, head, item, done)

    def _loop(
        self,
        node: ast.While | ast.For | ast.AsyncFor,
        head: int,
        turn: list[End],
        done: list[End],
    ) -> None:
        sketch = self.sketch
        sketch.ends = turn
        with sketch.within(Frame(loop=True)) as frame:
            if not isinstance(node, ast.While):
                self.bind(node.target)
            self.block(node.body)
        sketch.join(sketch.ends, head, EdgeKind.LOOP)
        sketch.join(frame.take(Way.CONTINUE), head, EdgeKind.CONTINUE)
        sketch.ends = done
        self.block(node.orelse)
        sketch.ends = sketch.ends + frame.take(Way.BREAK)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.values(node.decorator_list)
        self.defaults(node.args)
        self._defined(node)

    def _class(self, node: ast.ClassDef) -> None:
        self.values(node.decorator_list)
        self.values(node.bases)
        for keyword in node.keywords:
            self.value(keyword.value)
        self._defined(node)

    def _defined(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.sketch.add(Kind.DEFINE, node)
        for decorator in reversed(node.decorator_list):
            self.sketch.add(Kind.DECORATE, decorator)
        self.sketch.add(Kind.STORE, node)
