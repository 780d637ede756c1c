"""The text of a module and where its nodes stand, each in one pass over it."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType

import libcst as cst
from libcst._nodes.internal import CodegenState

from amp_migrate.source.span import Span

_NOWHERE = nullcontext()
_NEWLINE = re.compile(r"\r\n?|\n")


def ranges(module: cst.Module) -> dict[cst.CSTNode, Span]:
    """Return the place of every node as LibCST's `PositionProvider` says, in its order: without whitespace around it."""
    state = _Places(module.default_indent, module.default_newline)
    module._codegen(state)
    return state.found


def written(module: cst.Module) -> str:
    """Return the text of a module, as its `code` does in twice the time."""
    state = _Text(module.default_indent, module.default_newline)
    module._codegen(state)
    return "".join(state.tokens)


class _Text(CodegenState):
    """Puts the text of a module together, and notes no places."""

    def record_syntactic_position(  # type: ignore[override]
        self,
        node: cst.CSTNode,
        *,
        start_node: cst.CSTNode | None = None,
        end_node: cst.CSTNode | None = None,
    ) -> AbstractContextManager[None]:
        return _NOWHERE


class _Places(CodegenState):
    """Notes where each node starts and ends while the text of a module is put together."""

    def __init__(self, default_indent: str, default_newline: str) -> None:
        super().__init__(default_indent, default_newline)
        self.found: dict[cst.CSTNode, Span] = {}
        self.line = 1
        self.column = 0
        self._starts: list[tuple[int, int]] = []

    def add_indent_tokens(self) -> None:
        for token in self.indent_tokens:
            self.add_token(token)

    def add_token(self, value: str) -> None:
        self.tokens.append(value)
        if "\n" in value or "\r" in value:
            parts = _NEWLINE.split(value)
            self.line += len(parts) - 1
            self.column = len(parts[-1])
        else:
            self.column += len(value)

    def before_codegen(self, node: cst.CSTNode) -> None:
        self._starts.append((self.line, self.column))

    def after_codegen(self, node: cst.CSTNode) -> None:
        line, column = self._starts.pop()
        if node not in self.found:
            self.found[node] = Span(line, column, self.line, self.column)

    def record_syntactic_position(  # type: ignore[override]
        self,
        node: cst.CSTNode,
        *,
        start_node: cst.CSTNode | None = None,
        end_node: cst.CSTNode | None = None,
    ) -> _Place:
        return _Place(self, node, start_node, end_node)


class _Place:
    """Notes the place of a node, which may begin and end with nodes of its own."""

    def __init__(
        self, state: _Places, node: cst.CSTNode, first: cst.CSTNode | None, last: cst.CSTNode | None
    ) -> None:
        self._state = state
        self._node = node
        self._first = first
        self._last = last

    def __enter__(self) -> None:
        self._start = self._state.line, self._state.column

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        found = self._state.found
        start = self._start if self._first is None else found[self._first][:2]
        last = (
            (self._state.line, self._state.column) if self._last is None else found[self._last][2:]
        )
        found[self._node] = Span(*start, *last)
