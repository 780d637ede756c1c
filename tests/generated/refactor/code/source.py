"""The text of a file with its syntax tree: where nodes stand, and edits that leave the rest as it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from random import Random
from typing import TypeVar

from generated.refactor.project import Project

T = TypeVar("T")

Function = ast.FunctionDef | ast.AsyncFunctionDef

_MATTERS = re.compile(
    r"\b(amp\w*|initialize|scale_loss|scaled\w*|backward|step|zero_grad|clip_\w+|master_params|state_dict"
    r"|load_state_dict|eval|criterion|cross_entropy|compute_loss|train)\b"
)


@dataclass(frozen=True)
class Edit:
    """The text from `start` to `stop` is replaced."""

    start: int
    stop: int
    text: str


class Source:
    """A file: its text, its tree, and what stands where."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)

    @cached_property
    def _lines(self) -> list[tuple[int, str]]:
        found, at = [], 0
        for line in self.text.splitlines(keepends=True):
            found.append((at, line))
            at += len(line)
        return [*found, (at, "")]

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The node around each node."""
        return {c: p for p in ast.walk(self.tree) for c in ast.iter_child_nodes(p)}

    @cached_property
    def unit(self) -> str:
        """One level of indentation, as the file has it."""
        found = re.search(r"^([ \t]+)\S", self.text, re.M)
        return found[1] if found and (found[1][0] == "\t" or len(found[1]) in (2, 4)) else "    "

    def offset(self, line: int, column: int) -> int:
        """Return the place of a line and a column in bytes, as nodes have them."""
        at, text = self._lines[line - 1]
        return at + (column if text.isascii() else len(text.encode()[:column].decode()))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return where a node stands."""
        n: ast.expr = node  # type: ignore[assignment]
        assert n.end_lineno is not None and n.end_col_offset is not None
        return self.offset(n.lineno, n.col_offset), self.offset(n.end_lineno, n.end_col_offset)

    def code(self, node: ast.AST) -> str:
        """Return the text of a node."""
        start, stop = self.span(node)
        return self.text[start:stop]

    def first_line(self, node: ast.stmt) -> int:
        """Return the first line of a statement, its decorators and the comments right above it included."""
        top = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        body, k = self.siblings(node)
        above = body[k - 1].end_lineno or 0 if k else 0
        indent = self.indent(node)
        while top - 1 > above and self._lines[top - 2][1].startswith(indent + "#"):
            top -= 1
        return top

    def lines(self, statements: Sequence[ast.stmt]) -> tuple[int, int]:
        """Return where the whole lines of a run of statements start and stop."""
        last = statements[-1].end_lineno or 0
        return self._lines[self.first_line(statements[0]) - 1][0], self._lines[last][0]

    def above(self, node: ast.stmt) -> int:
        """Return the start of the first line of a statement."""
        return self._lines[self.first_line(node) - 1][0]

    def below(self, node: ast.stmt) -> int:
        """Return the start of the line after a statement."""
        return self._lines[node.end_lineno or 0][0]

    def indent(self, node: ast.stmt) -> str:
        """Return the white space in front of a statement."""
        text = self._lines[node.lineno - 1][1]
        return text[: len(text) - len(text.lstrip())]

    def alone(self, statements: Iterable[ast.stmt]) -> bool:
        """Tell whether no other code stands on the lines of these statements."""
        for s in statements:
            start, stop = self.span(s)
            line, end = self._lines[s.lineno - 1][0], self._lines[s.end_lineno or 0][0]
            after = self.text[stop:end].strip()
            top = getattr(s, "decorator_list", None)
            if (self.text[line:start].strip() and not top) or (after and after[0] != "#"):
                return False
        return True

    def siblings(self, node: ast.stmt) -> tuple[list[ast.stmt], int]:
        """Return the block that holds a statement, and its index there."""
        for _, value in ast.iter_fields(self.parents[node]):
            if isinstance(value, list) and any(v is node for v in value):
                return value, next(k for k, v in enumerate(value) if v is node)
            for inner in value if isinstance(value, list) else ():
                held = getattr(inner, "body", None)  # a case or a handler
                if isinstance(held, list) and any(v is node for v in held):
                    return held, next(k for k, v in enumerate(held) if v is node)
        raise AssertionError("a statement stands in a block")

    def inside(self, node: ast.AST, *kinds: type[ast.AST]) -> ast.AST | None:
        """Return the innermost node of these kinds around a node."""
        found = self.parents.get(node)
        while found is not None and not isinstance(found, kinds):
            found = self.parents.get(found)
        return found

    def statement(self, node: ast.AST) -> ast.stmt:
        """Return the statement that holds an expression."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def edited(self, edits: Iterable[Edit]) -> str | None:
        """Return the text after edits, or None where two of them meet."""
        text, end, parts = self.text, 0, []
        for edit in sorted(set(edits), key=lambda e: (e.start, e.stop)):
            if edit.start < end:
                return None
            parts += [text[end : edit.start], edit.text]
            end = edit.stop
        return "".join([*parts, text[end:]])

    def moved(self, start: int, stop: int, edits: Iterable[Edit]) -> str | None:
        """Return a part of the text after the edits that fall into it."""
        mine = [e for e in edits if start <= e.start and e.stop <= stop]
        shifted = [Edit(e.start - start, e.stop - start, e.text) for e in mine]
        part = object.__new__(Source)
        part.text = self.text[start:stop]
        return part.edited(shifted)

    def weight(self, nodes: Iterable[ast.AST]) -> int:
        """Return how often code deals with what a training consists of."""
        rows = {n.lineno for n in nodes if isinstance(n, ast.expr | ast.stmt)}
        return sum(len(set(_MATTERS.findall(self._lines[row - 1][1]))) for row in rows)

    def top(self) -> int:
        """Return the place below the imports at the head of the file."""
        last: ast.stmt | None = None
        for node in self.tree.body:
            guard = isinstance(node, ast.Try) and any(
                isinstance(n, ast.Import | ast.ImportFrom) for n in node.body
            )
            text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if not (guard or text or isinstance(node, ast.Import | ast.ImportFrom)):
                break
            last = node
        return self.below(last) if last else 0


def lead(src: Source, at: int) -> str:
    """Return the empty lines that a definition needs above itself at a place."""
    text = src.text[:at]
    return "" if not text.strip() else "\n" * (2 - (len(text) - len(text.rstrip("\n")) - 1))


@lru_cache(maxsize=256)
def source(text: str) -> Source:
    """Return the tree and places of a text."""
    return Source(text)


def sources(project: Project) -> dict[str, Source]:
    """Return the files of a project that parse."""
    return {path: source(text) for path, text in project.files.items()}


def drawn(rng: Random, weighted: Iterable[tuple[float, T]]) -> Iterator[T]:
    """Yield things in a random order, heavy ones rather first."""
    keyed = [(rng.random() ** (1 / max(weight, 0.2)), thing) for weight, thing in weighted]
    yield from (thing for _, thing in sorted(keyed, key=lambda pair: -pair[0]))


def first(
    found: Iterable[T], change: Callable[[T], Project | None], most: int = 25
) -> Project | None:
    """Return the first change that can be made to one of these places."""
    for k, place in enumerate(found):
        if k == most:
            break
        project = change(place)
        if project is not None:
            return project
    return None


def indented(text: str, indent: str) -> str:
    """Indent the lines of a text that are not empty."""
    return "".join(indent + x if x.strip() else x for x in text.splitlines(keepends=True))


def imported(src: Source, statement: str) -> list[Edit]:
    """Return the edits that add an import below those at the head of the file, if it is not there yet."""
    if re.search(rf"^{re.escape(statement)}$", src.text, re.M):
        return []
    last = None
    for node in src.tree.body:
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if isinstance(node, ast.Import | ast.ImportFrom) and not future:
            at = src.above(node)
            return [Edit(at, at, statement + "\n")]
        if not (text or future):
            break
        last = node
    at = src.below(last) if last else 0
    return [Edit(at, at, statement + "\n\n")]
