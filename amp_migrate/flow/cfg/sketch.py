"""A graph being built: points are added at the open ends, jumps wait in frames until their targets are known."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from amp_migrate.flow.cfg.points import EdgeKind, Kind, Point, Way

End = tuple[int, EdgeKind, ast.expr | None]
"""An edge without a target yet: the index of its source, its kind, its test."""

_NEVER_RAISE = {
    Kind.ENTRY, Kind.EXIT, Kind.RAISED, Kind.UNBIND, Kind.TURN, Kind.CAUGHT, Kind.RETURN, Kind.RAISE, Kind.JUMP,
    Kind.STEP,
}  # fmt: skip
_OF_WAY = {
    Way.RAISE: EdgeKind.RAISE,
    Way.RETURN: EdgeKind.RETURN,
    Way.BREAK: EdgeKind.BREAK,
    Way.CONTINUE: EdgeKind.CONTINUE,
}


@dataclass
class Frame:
    """What encloses the code being read, and the ends that left it.

    `cleanup` writes what runs on the way out and returns the ends that go on normally although an exception
    came (a `with` that swallows it). `loop` takes `break` and `continue`; `catches` takes exceptions.
    """

    catches: bool = False
    loop: bool = False
    cleanup: Callable[[Way], list[End]] | None = None
    left: dict[Way, list[End]] = field(default_factory=dict)

    def take(self, way: Way) -> list[End]:
        """Return the ends that left by `way`."""
        return self.left.pop(way, [])


class Sketch:
    """Points and edges so far. `ends` are the open ends that the next point continues."""

    def __init__(self, root: ast.AST, sure: frozenset[str]) -> None:
        self.points: list[Point] = []
        self.edges: list[list[tuple[int, EdgeKind, ast.expr | None]]] = []
        self.ends: list[End] = []
        self.frames: list[Frame] = [Frame(catches=True)]
        self.way = Way.NORMAL
        self._sure = sure
        self.add(Kind.ENTRY, root)

    def add(self, kind: Kind, node: ast.AST, value: ast.expr | None = None) -> int:
        """Add a point after the open ends; it becomes the only open end."""
        index = len(self.points)
        self.points.append(Point(index, kind, node, value, self.way))
        self.edges.append([])
        for source, how, test in self.ends:
            self.edges[source].append((index, how, test))
        self.ends = [(index, EdgeKind.NEXT, None)]
        if self._may_raise(kind, node):
            self._leave(Way.RAISE, [(index, EdgeKind.EXCEPTION, None)])
        return index

    def _may_raise(self, kind: Kind, node: ast.AST) -> bool:
        if kind in _NEVER_RAISE:
            return False
        if isinstance(node, ast.Name):
            if kind is Kind.STORE:
                return False
            return kind is not Kind.LOAD or node.id not in self._sure
        if kind is Kind.STORE:
            return isinstance(node, ast.Attribute | ast.Subscript)
        if kind is Kind.DEFINE:
            return isinstance(node, ast.ClassDef)
        if kind is Kind.TEST:
            return not isinstance(node, ast.Constant)
        return True

    def join(self, ends: list[End], target: int, kind: EdgeKind) -> None:
        """Lead `ends` to a point that is there already; plain ones become edges of `kind`."""
        for source, how, test in ends:
            how = kind if how is EdgeKind.NEXT else how
            self.edges[source].append((target, how, test))

    def _leave(self, way: Way, ends: list[End]) -> None:
        for frame in reversed(self.frames):
            if (
                frame.cleanup is not None
                or (frame.catches and way is Way.RAISE)
                or (frame.loop and way in (Way.BREAK, Way.CONTINUE))
            ):
                frame.left.setdefault(way, []).extend(ends)
                return
        self.frames[0].left.setdefault(way, []).extend(ends)

    def jump(self, way: Way) -> None:
        """Send the open ends away: they leave by `way`, through every cleanup on it."""
        kind = _OF_WAY[way]
        ends = [(s, kind if how is EdgeKind.NEXT else how, test) for s, how, test in self.ends]
        self._leave(way, ends)
        self.ends = []

    @contextmanager
    def within(self, frame: Frame) -> Iterator[Frame]:
        """Hold `frame` around what is read; what then waits in it is the caller's."""
        self.frames.append(frame)
        yield frame
        self.frames.pop()

    @contextmanager
    def cleaned(self, cleanup: Callable[[Way], list[End]]) -> Iterator[None]:
        """Run `cleanup` after what is read, on each way on which it is left."""
        with self.within(Frame(cleanup=cleanup)) as frame:
            yield
        outer = self.way
        left = frame.left
        ends: list[End] = []
        if self.ends or not left:
            cleanup(Way.NORMAL)
            ends = self.ends
        for way in (Way.RAISE, Way.RETURN, Way.BREAK, Way.CONTINUE):
            self.ends = frame.take(way)
            if self.ends:
                self.way = way
                ends = ends + cleanup(way)
                self.jump(way)
                self.way = outer
        self.ends = ends

    def close(self, root: ast.AST) -> tuple[int, int]:
        """Add the two exits; return their indexes."""
        bottom = self.frames[0]
        self.ends = self.ends + bottom.take(Way.RETURN)
        # `break` outside of a loop is no Python; it ends the body like a return
        self.ends += bottom.take(Way.BREAK) + bottom.take(Way.CONTINUE)
        leaving = self.add(Kind.EXIT, root)
        self.ends = bottom.take(Way.RAISE)
        raised = self.add(Kind.RAISED, root)
        return leaving, raised
