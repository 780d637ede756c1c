"""What a control-flow graph is made of: points in the order of evaluation, and the edges between them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import NamedTuple

from amp_migrate.facts.mark import Mark


class Kind(Mark):
    """What happens at a point; the comment says which `ast` node the point carries."""

    ENTRY = "entry"  # the root
    EXIT = "exit"  # the root: it returned, or its last statement ended
    RAISED = "raised"  # the root: an exception left it
    LOAD = "load"  # Name, Attribute, Subscript: read
    STORE = "store"  # Name, Attribute, Subscript, alias, definition, handler, pattern: bound
    DELETE = "delete"  # Name, Attribute, Subscript
    UNBIND = "unbind"  # ExceptHandler: its name goes
    UNPACK = "unpack"  # Tuple, List of targets; Starred, or ** of a call or display
    OPERATE = "operate"  # BinOp, UnaryOp, Compare, FormattedValue, AugAssign
    CALL = "call"  # Call
    DECORATE = "decorate"  # the decorator expression, called with what it decorates
    AWAIT = "await"  # Await
    YIELD = "yield"  # Yield, YieldFrom
    DEFINE = "define"  # FunctionDef, Lambda, GeneratorExp, TypeAlias: later; ClassDef: now
    IMPORT = "import"  # alias
    TEST = "test"  # the expression whose truth decides
    TURN = "turn"  # While: a turn begins
    NEXT = "next"  # For, comprehension: the next item, or none is left
    ENTER = "enter"  # withitem
    LEAVE = "leave"  # withitem
    CAUGHT = "caught"  # Try: an exception came out of its body
    MATCH = "match"  # ExceptHandler, pattern: does it fit
    RETURN = "return"  # Return
    RAISE = "raise"  # Raise, Assert
    JUMP = "jump"  # Break, Continue
    STEP = "step"  # a statement with nothing to evaluate, or a join


class Way(Mark):
    """Why a `finally` body or the end of a `with` runs; each reason has a copy of its points."""

    NORMAL = "normal"
    RAISE = "raise"
    RETURN = "return"
    BREAK = "break"
    CONTINUE = "continue"


class EdgeKind(Mark):
    """How control passes along an edge."""

    NEXT = "next"
    TRUE = "true"
    FALSE = "false"
    LOOP = "loop"
    BREAK = "break"
    CONTINUE = "continue"
    RETURN = "return"
    RAISE = "raise"  # a raise statement, a failed assert, or what one of them started
    EXCEPTION = "exception"  # whatever runs at the source may raise


@dataclass(frozen=True, eq=False, slots=True)
class Point:
    """A moment in the evaluation of one node; compared by identity.

    `index` counts points of a graph in the order in which they were built, which is no order of running.
    `value` is the expression that a STORE of a single target stores, where the text names one.
    """

    index: int
    kind: Kind
    node: ast.AST
    value: ast.expr | None
    way: Way

    @property
    def line(self) -> int:
        """The line of the node, from 1; 0 for a whole module."""
        node = self.node
        if isinstance(node, ast.withitem):
            node = node.context_expr
        elif isinstance(node, ast.comprehension):
            node = node.target
        return getattr(node, "lineno", 0)

    def __repr__(self) -> str:
        return f"<{self.index} {self.kind.value} {type(self.node).__name__}:{self.line}>"


class Edge(NamedTuple):
    """One step of control; a TRUE or FALSE edge names its test, where it is an expression."""

    source: Point
    target: Point
    kind: EdgeKind
    test: ast.expr | None = None

    @property
    def truth(self) -> bool | None:
        """What the test came out as on this edge; None on an edge without a test."""
        if self.test is None:
            return None
        return self.kind is EdgeKind.TRUE

    @property
    def fails(self) -> bool:
        """Whether it is taken only where something goes wrong: an iterator that is used up is none of that."""
        return self.kind is EdgeKind.EXCEPTION and not (
            _draws(self.source.node) and _is_told_of_the_end(self.target.node)
        )


def _draws(node: ast.AST) -> bool:
    """Tell whether a node is ``next(iterator)``."""
    if not isinstance(node, ast.Call) or len(node.args) != 1:
        return False
    return isinstance(node.func, ast.Name) and node.func.id in ("next", "anext")


def _is_told_of_the_end(node: ast.AST) -> bool:
    """Tell whether a `try` has a handler for the end of an iterator."""
    return isinstance(node, ast.Try) and any(
        isinstance(part, ast.Name) and part.id in ("StopIteration", "StopAsyncIteration")
        for handler in node.handlers
        if handler.type is not None
        for part in ast.walk(handler.type)
    )
