"""A new text of a file, put together from edits at places of the old one."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from amp_migrate.facts.tree import Tree


@dataclass
class Draft:
    """The text of a file with parts of it replaced; every part by its offsets in the old text."""

    tree: Tree
    parts: list[tuple[int, int, str]] = field(default_factory=list)

    @property
    def step(self) -> str:
        """One level of indentation, as the file has it."""
        kinds = ast.FunctionDef, ast.ClassDef, ast.If, ast.For, ast.With
        for node in ast.walk(self.tree.module):
            if not isinstance(node, kinds):
                continue
            outer, inner = self.tree.margin(node), self.tree.margin(node.body[0])
            if inner.startswith(outer) and inner != outer:
                return inner[len(outer) :]
        return "    "

    def put(self, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        """Put a text in place of what stands between two places (line from 1, column)."""
        self.parts.append((self._offset(*start), self._offset(*end), text))

    def next_to(self, statement: ast.stmt, text: str, *, behind: bool) -> None:
        """Put a statement behind or before another: on a line of its own, or on the line that the other shares."""
        span = self.tree.span(statement)
        if self.tree.stands_alone(statement):
            if behind:
                self.below(statement, text)
            else:
                self.above(statement, text)
        elif behind:
            self.put(span[2:], span[2:], f"; {text}")
        else:
            self.put(span[:2], span[:2], f"{text}; ")

    def below(self, statement: ast.stmt, *texts: str) -> None:
        """Put lines of their own below a statement, in its block."""
        margin = self.tree.margin(statement)
        end = statement.end_lineno or statement.lineno
        whole = self.tree.lines[end - 1]
        if end == len(self.tree.lines):
            more = "".join(f"\n{margin}{text}" for text in texts)
            self.put((end, len(whole)), (end, len(whole)), more)
        else:
            more = "".join(f"{margin}{text}\n" for text in texts)
            self.put((end + 1, 0), (end + 1, 0), more)

    def above(self, statement: ast.stmt, text: str) -> None:
        """Put a line of its own above a statement."""
        margin = self.tree.margin(statement)
        self.put((statement.lineno, 0), (statement.lineno, 0), f"{margin}{text}\n")

    def under(self, node: ast.expr, text: str) -> None:
        """Put a line of its own below the lines of an expression, with the indentation of its first."""
        margin = self.tree.margin(node)
        below = (node.end_lineno or node.lineno) + 1
        self.put((below, 0), (below, 0), f"{margin}{text}\n")

    def drop(self, statement: ast.stmt) -> None:
        """Take out the lines of a statement; in a block of its own it becomes `pass`."""
        start, end = statement.lineno, (statement.end_lineno or statement.lineno)
        if len(self.tree.block(statement)) == 1:
            span = self.tree.span(statement)
            self.put(span[:2], span[2:], "pass")
        else:
            self.put((start, 0), (end + 1, 0), "")

    def drop_item(self, first: ast.AST, last: ast.AST) -> None:
        """Take an argument or parameter, from its first part to its last, out of a list with commas."""
        start = self._offset(*self.tree.span(first)[:2])
        end = self._offset(*self.tree.span(last)[2:])
        comma = self.tree.text.rfind(",", 0, start)
        if comma >= 0 and not self.tree.text[comma + 1 : start].strip():
            self.parts.append((comma, end, ""))
        else:
            behind = self.tree.text[end:]
            more = behind[: len(behind) - len(behind.lstrip(", \n"))]
            self.parts.append((start, end + (len(more) if "," in more else 0), ""))

    def text(self) -> str:
        """Return the new text."""
        found, at = [], 0
        for start, end, text in sorted(self.parts, key=lambda part: part[:2]):
            found += [self.tree.text[at:start], text]
            at = end
        return "".join([*found, self.tree.text[at:]])

    def _offset(self, line: int, column: int) -> int:
        return sum(len(above) + 1 for above in self.tree.lines[: line - 1]) + column
