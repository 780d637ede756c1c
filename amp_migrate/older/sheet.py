"""The text of a file in which an older interface of Apex is written as today's amp, on the lines that it had."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from amp_migrate.facts.stand_ins import ALIAS, NOTHING
from amp_migrate.facts.tree import Older, Said, Tree
from amp_migrate.project import Module

STATE = f"{ALIAS}._amp_state.loss_scalers[0]"
ALONE = "give it a statement on lines of its own, then run again"


@dataclass
class Sheet:
    """Texts in place of nodes of one file; a text in a larger one is part of that."""

    module: Module
    texts: dict[ast.expr | ast.stmt, str] = field(default_factory=dict)
    said: list[Said] = field(default_factory=list)

    @property
    def tree(self) -> Tree:
        """The file as it is."""
        return self.module.tree

    def put(self, node: ast.expr | ast.stmt, text: str) -> None:
        """Put a text in place of a node: of one line, or around that of the node as it stands."""
        self.texts[node] = text

    def drop(self, statement: ast.stmt) -> None:
        """Put nothing in place of a statement."""
        self.put(statement, NOTHING)

    def say(
        self, node: ast.expr | ast.stmt, message: str, migrated: bool = True, code: str = "AMP306"
    ) -> None:
        """Keep what is told about a place: what becomes of it, or a remark."""
        self.said.append(Said(self.tree.span(node), message, migrated, code))

    def line(self, statement: ast.stmt) -> str:
        """Return a statement in one line, with the texts inside it put in."""
        return ast.unparse(ast.parse(self._segment(statement)))

    def text(self, node: ast.expr) -> str:
        """Return an expression in one line, with the texts inside it put in."""
        found = self._segment(node)
        if "\n" not in found and "#" not in found:
            return found
        return ast.unparse(ast.parse(f"({found}\n)", mode="eval").body)

    def _segment(self, node: ast.expr | ast.stmt) -> str:
        if node in self.texts:
            return self.texts[node]
        inner = {
            n: t for n, t in self.texts.items() if isinstance(n, ast.expr) and n in _parts(node)
        }
        outer = {
            n: t for n, t in inner.items() if not any(n is not m and n in _parts(m) for m in inner)
        }
        return self.tree.segment(node, outer)

    def written(self) -> Tree:
        """Return the file with the texts put in."""
        whole = {n: t for n, t in self.texts.items() if not self._is_inside(n)}
        lines = list(self.tree.lines)
        for node in sorted(whole, key=self.tree.span, reverse=True):
            span = self.tree.span(node)
            head, rest = (
                lines[span.line - 1][: span.column],
                lines[span.end_line - 1][span.end_column :],
            )
            own = whole[node].count("\n")  # of what it is part of, as that stands
            text = _over(whole[node], span.end_line - span.line - own)
            lines[span.line - 1 : span.end_line] = f"{head}{text}{rest}".split("\n")
        found = Tree(self.tree.path, "\n".join(lines))
        found.older = Older(tuple(self.said), written=True)
        return found

    def _is_inside(self, node: ast.AST) -> bool:
        return any(up in self.texts for up in self.tree.ancestors(node))


class Sheets(dict[Module, Sheet]):
    """The sheets of a training, by file; one that is asked for is there."""

    def __missing__(self, module: Module) -> Sheet:
        return self.setdefault(module, Sheet(module))


def lines_of(calls: Iterable[tuple[Module, ast.Call]]) -> list[tuple[str, int]]:
    """Return the lines on which calls begin, with the paths of their files."""
    return [(module.path, module.tree.span(call).line) for module, call in calls]


def _parts(node: ast.AST) -> set[ast.AST]:
    return set(ast.walk(node))


def _over(text: str, lines: int) -> str:
    """Return a text that takes more lines, which lie inside its last parentheses."""
    if not lines:
        return text
    if text.endswith(")"):
        return f"{text[:-1]}{chr(10) * lines})"
    last = ast.parse(text).body[-1]
    value = getattr(last, "value", None)
    start = len(text.encode()[: value.col_offset].decode()) if value is not None else 0
    return f"{text[:start]}({text[start:]}{chr(10) * lines})"
