"""One parsed file: its tree, with the way up, statement lists and source text of every node."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import takewhile
from pathlib import PurePath
from types import MappingProxyType
from typing import NamedTuple, TypeVar, overload

from amp_migrate.facts.below import BLOCKS, children, every
from amp_migrate.source.span import Span

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
N = TypeVar("N", bound=ast.AST)
M = TypeVar("M", bound=ast.AST)
K = TypeVar("K", bound=ast.AST)

_HOLDERS = (ast.stmt, ast.mod, ast.ExceptHandler, ast.match_case)


class Respelt(NamedTuple):
    """A use of Apex that was spelt out: where it starts, by line and column, before and in this text.

    `unused` are the statements that do nothing since then. `asks`: it is no use of Apex, but asked for a mark of it.
    `named`: it is a lambda, and a function since then. `clips`: it is a clip, and stands behind calls since then.
    `imports`: it is an assignment of Apex, and an import since then.
    """

    before: tuple[int, int]
    place: tuple[int, int]
    unused: tuple[Span, ...]
    asks: bool = False
    named: bool = False
    clips: bool = False
    imports: bool = False


class Said(NamedTuple):
    """What is told about a place of an older interface of Apex: what becomes of it, or a remark."""

    span: Span
    message: str
    migrated: bool = True
    code: str = "AMP306"


class Kept(NamedTuple):
    """Why what an older interface of Apex does at a place stays: the reason, what to do, and where that is."""

    message: str
    advice: str
    path: str
    line: int

    def seen_from(self, path: str, line: int) -> str:
        """Return the reason, with its place where that is another one."""
        if (path, line) == (self.path, self.line):
            return self.message
        return f"{self.message} ({PurePath(self.path).name}:{self.line})"


class Older(NamedTuple):
    """What a text has of older interfaces of Apex: `said` of those that are written as today's amp, `kept` of others by line.

    `written` tells that parts of one are written as today's amp here, whether or not there is something to say of them.
    """

    said: tuple[Said, ...] = ()
    kept: Mapping[int, Kept] = MappingProxyType({})
    written: bool = False


class Tree:
    """A module's `ast` with parents and statement lists.

    `path` names the file in messages; `text` is its decoded source with ``\\n`` newlines.
    Raises `SyntaxError` where `text` is not Python 3.
    """

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.respelt: tuple[Respelt, ...] = ()
        self.older = Older()
        self.module = ast.parse(text)
        self.parents: dict[ast.AST, ast.AST] = {}
        self._blocks: dict[ast.stmt, list[ast.stmt]] = {}
        self._index(self.module)

    @cached_property
    def lines(self) -> list[str]:
        """The source lines, without their newlines; ``lines[0]`` is line 1."""
        return self.text.split("\n")

    def _index(self, root: ast.AST) -> None:
        stack = [root]
        while stack:
            node = stack.pop()
            below = children(node)
            self.parents.update(dict.fromkeys(below, node))
            stack += below
            for name in BLOCKS if isinstance(node, _HOLDERS) else ():
                block = getattr(node, name, None)
                if isinstance(block, list):
                    self._blocks.update(dict.fromkeys(block, block))

    @cached_property
    def _by_type(self) -> dict[type[ast.AST], list[ast.AST]]:
        table: dict[type[ast.AST], list[ast.AST]] = {ast.Module: [self.module]}
        for node in every(self.module):
            table.setdefault(type(node), []).append(node)
        return table

    @overload
    def nodes(self, kind: type[N], /) -> Iterator[N]: ...

    @overload
    def nodes(self, kind: type[N], other: type[M], /) -> Iterator[N | M]: ...

    @overload
    def nodes(self, kind: type[N], other: type[M], third: type[K], /) -> Iterator[N | M | K]: ...

    @overload
    def nodes(self, *kinds: type[N]) -> Iterator[N]: ...

    def nodes(self, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
        """Yield the nodes of some kinds all over the module, kind by kind, outer ones first."""
        for kind in kinds:
            yield from self._by_type.get(kind, ())

    @cached_property
    def _by_attribute(self) -> dict[str, list[ast.Attribute]]:
        table: dict[str, list[ast.Attribute]] = {}
        for node in self.nodes(ast.Attribute):
            table.setdefault(node.attr, []).append(node)
        return table

    def attributes(self, *names: str) -> Iterator[ast.Attribute]:
        """Yield what reads or sets attributes of some names, of whatever objects."""
        for name in names:
            yield from self._by_attribute.get(name, ())

    def says(self, name: str) -> bool:
        """Tell whether a string of the module is a name, by which something may be found."""
        return name in self.text and any(n.value == name for n in self.nodes(ast.Constant))

    @cached_property
    def given(self) -> dict[FunctionNode | None, list[ast.expr]]:
        """What each function returns or yields."""
        found: dict[FunctionNode | None, list[ast.expr]] = {}
        for node in self.nodes(ast.Return, ast.Yield):
            if node.value is not None:
                found.setdefault(self.function(node), []).append(node.value)
        return found

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Return the node that holds `node`; None for the module."""
        return self.parents.get(node)

    def call_of(self, node: ast.AST) -> ast.Call | None:
        """Return the call of what a node is, which stands around it; None where it is used otherwise."""
        up = self.parents.get(node)
        return up if isinstance(up, ast.Call) and up.func is node else None

    def user(self, node: ast.AST) -> ast.AST | None:
        """Return the node that holds `node`: the call, where it is an argument that is given by name."""
        up = self.parents.get(node)
        return self.parents[up] if isinstance(up, ast.keyword) else up

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the parent of `node`, its parent, and so on up to the module."""
        up = self.parents.get(node)
        while up is not None:
            yield up
            up = self.parents.get(up)

    def enclosing(self, node: ast.AST, kind: type[N]) -> N | None:
        """Return the nearest ancestor of `node` (not itself) of a kind."""
        return next((up for up in self.ancestors(node) if isinstance(up, kind)), None)

    def statement(self, node: ast.AST) -> ast.stmt:
        """Return the innermost statement that is or holds `node`."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def block(self, stmt: ast.stmt) -> list[ast.stmt]:
        """Return the statement list in which `stmt` stands (the list of the tree itself)."""
        return self._blocks[stmt]

    def holder(self, stmt: ast.stmt) -> ast.AST:
        """Return the node that owns the statement list of `stmt`."""
        return self.parents[stmt]

    def function(self, node: ast.AST) -> FunctionNode | None:
        """Return the innermost function around `node` (lambdas do not count); None at module level."""
        return next((up for up in self.ancestors(node) if isinstance(up, FunctionNode)), None)

    def body(self, node: ast.AST) -> FunctionNode | ast.Lambda | None:
        """Return the innermost function or lambda around `node`; None at module level."""
        kinds = FunctionNode | ast.Lambda
        return next((up for up in self.ancestors(node) if isinstance(up, kinds)), None)

    def expressions(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield what is around `node` in its statement, inner ones first."""
        return takewhile(lambda up: not isinstance(up, ast.stmt), self.ancestors(node))

    def in_try(self, node: ast.AST) -> bool:
        """Tell whether a `try` stands around `node` in its function or lambda."""
        names = ("Try", "TryStar")  # Python 3.10 has no `except*`
        body = self.body(node)
        inside = takewhile(lambda up: up is not body, self.ancestors(node))
        return any(type(up).__name__ in names for up in inside)

    def sides(
        self, node: ast.AST, *, lambdas: bool = False
    ) -> Iterator[tuple[ast.If | ast.IfExp, bool]]:
        """Yield the tests of its function behind which `node` stands, inner ones first, and how each came out.

        With `lambdas`, those around a lambda that holds it, too, which were asked when that was made.
        """
        child = node
        for up in self.ancestors(node):
            if isinstance(up, FunctionNode) or (isinstance(up, ast.Lambda) and not lambdas):
                return
            if isinstance(up, ast.If) and child is not up.test:
                yield up, child in up.body
            elif isinstance(up, ast.IfExp) and child is not up.test:
                yield up, child is up.body
            child = up

    def scope(self, node: ast.AST) -> FunctionNode | ast.Module:
        """Return the function around `node`, or the module."""
        return self.function(node) or self.module

    def stands_alone(self, statement: ast.stmt) -> bool:
        """Tell whether the lines of a statement hold nothing of another, a comment apart."""
        span = self.span(statement)
        before = self.lines[span.line - 1][: span.column].strip()
        after = self.lines[span.end_line - 1][span.end_column :].strip()
        return not before and (not after or after.startswith("#"))

    def is_elif(self, node: ast.If) -> bool:
        """Tell whether a test is written as ``elif``."""
        return self.lines[node.lineno - 1].startswith("elif", self.span(node).column)

    def margin(self, node: ast.stmt | ast.expr) -> str:
        """Return the white space before the line on which a node begins."""
        line = self.lines[node.lineno - 1]
        return line[: len(line) - len(line.lstrip())]

    def span(self, node: ast.AST) -> Span:
        """Return the place of `node` with columns in characters.

        A decorated function or class starts at its ``def`` or ``class``, as in `ast`.
        """
        return Span(
            node.lineno,  # type: ignore[attr-defined]
            self._column(node.lineno, node.col_offset),  # type: ignore[attr-defined]
            node.end_lineno,  # type: ignore[attr-defined]
            self._column(node.end_lineno, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def _column(self, line: int, offset: int) -> int:
        text = self.lines[line - 1]
        if text.isascii():
            return offset
        return len(text.encode()[:offset].decode())

    def segment(self, node: ast.AST, texts: Mapping[ast.expr, str] | None = None) -> str:
        """Return the source text of `node`; later lines lose the indentation of its statement.

        `texts` stand in place of some expressions in it.
        """
        place = self.span(node)
        if place.line == place.end_line and not texts:
            return self.lines[place.line - 1][place.column : place.end_column]
        parts: list[str] = []
        at = place[:2]
        for part in sorted(texts or {}, key=self.span):
            span = self.span(part)
            parts += [self.between(at, span[:2]), (texts or {})[part]]
            at = span[2:]
        first, *rest = "".join([*parts, self.between(at, place[2:])]).split("\n")
        margin = self.margin(self.statement(node))
        return "\n".join([first, *(line.removeprefix(margin) for line in rest)])

    def between(self, start: tuple[int, int], end: tuple[int, int]) -> str:
        """Return the text between two places (line from 1, column from 0)."""
        lines = self.lines[start[0] - 1 : end[0]]
        lines[-1] = lines[-1][: end[1]]
        lines[0] = lines[0][start[1] :]
        return "\n".join(lines)
