"""Blocks of statements in a module: where they stand, and how a run of statements is replaced."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import libcst as cst

from generated.refactor.code.names import code, tree

Statement = cst.BaseStatement | cst.BaseSmallStatement
Home = cst.Module | cst.IndentedBlock


@dataclass(frozen=True)
class Block:
    """The statements of a module or an indented block, and what encloses them, innermost last."""

    home: Home
    inside: tuple[cst.CSTNode, ...]

    @property
    def body(self) -> Sequence[cst.BaseStatement]:
        """The statements."""
        return self.home.body  # type: ignore[return-value]

    @property
    def function(self) -> cst.FunctionDef | None:
        """The innermost function around the block, None at the level of the module or of a class."""
        for node in reversed(self.inside):
            if isinstance(node, cst.FunctionDef):
                return node
            if isinstance(node, cst.ClassDef):
                return None
        return None

    @property
    def klass(self) -> cst.ClassDef | None:
        """The class whose method holds the block directly."""
        for outer, inner in zip(self.inside, self.inside[1:], strict=False):
            if isinstance(outer, cst.ClassDef) and inner is self.function:
                return outer
        return None

    @property
    def loops(self) -> tuple[cst.For | cst.While, ...]:
        """The loops around the block within its function, innermost last."""
        found: list[cst.For | cst.While] = []
        for node in reversed(self.inside):
            if isinstance(node, cst.FunctionDef | cst.ClassDef):
                break
            if isinstance(node, cst.For | cst.While):
                found.insert(0, node)
        return tuple(found)


def blocks(module: cst.Module) -> list[Block]:
    """Return every block of a module, outer ones first."""
    return list(_blocks(module))


@lru_cache(maxsize=64)
def _blocks(module: cst.Module) -> tuple[Block, ...]:
    found = _Blocks()
    module.visit(found)
    return tuple(found.blocks)


class _Blocks(cst.CSTVisitor):
    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._inside: list[cst.CSTNode] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Module | cst.IndentedBlock):
            self.blocks.append(Block(node, tuple(self._inside)))
        if isinstance(node, cst.BaseCompoundStatement):
            self._inside.append(node)
        return isinstance(node, cst.Module | cst.IndentedBlock) or not isinstance(
            node, cst.BaseExpression | cst.SimpleStatementLine
        )

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if isinstance(original_node, cst.BaseCompoundStatement):
            self._inside.pop()


def put(
    module: cst.Module, block: Block, start: int, stop: int, new: Sequence[cst.BaseStatement]
) -> cst.Module:
    """Return the module with the statements from `start` to `stop` of a block replaced."""
    body = [*block.body[:start], *new, *block.body[stop:]]
    if not body:
        body = list(cst.parse_module("pass\n").body)
    if block.home is module:
        return module.with_changes(body=body)
    top = block.inside[0]
    changed = top.with_deep_changes(block.home, body=body)
    return module.with_changes(body=[changed if node is top else node for node in module.body])


def parsed(text: str, like: cst.Module) -> list[cst.BaseStatement]:
    """Parse statements, to be put into a module, with the comments and blank lines above the first."""
    module = cst.parse_module(text, config=like.config_for_parsing)
    found: list[cst.BaseStatement] = []
    above = list(module.header)
    for statement in module.body:
        lines = [*above, *statement.leading_lines]  # type: ignore[union-attr]
        bare = [x if x.comment else x.with_changes(indent=False) for x in lines]
        found.append(statement.with_changes(leading_lines=bare))  # type: ignore[arg-type]
        above = []
    return found


def escapes(statements: Sequence[cst.CSTNode]) -> set[str]:
    """Return how a run of statements may leave itself: "return", "break", "continue", "yield", "await"."""
    return set(_escapes(tree(statements).body, in_loop=False))


def _escapes(body: Sequence[ast.AST], in_loop: bool) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Return):
            yield "return"
        elif isinstance(node, ast.Break | ast.Continue) and not in_loop:
            yield type(node).__name__.lower()
        elif isinstance(node, ast.Yield | ast.YieldFrom):
            yield "yield"
        elif isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith):
            yield "await"
        loop = isinstance(node, ast.For | ast.While)
        yield from _escapes(list(ast.iter_child_nodes(node)), in_loop or loop)


def runs(block: Block, longest: int = 6) -> Iterator[tuple[int, int]]:
    """Yield start and stop of every run of statements in a block; ask `whole` of the one that is drawn."""
    count = len(block.body)
    for start in range(count):
        for stop in range(start + 1, min(count, start + longest) + 1):
            yield start, stop


def whole(statements: Sequence[cst.CSTNode]) -> bool:
    """Tell whether a run of statements can be taken out: it leaves itself by its end, and defines no code."""
    if any(isinstance(s, cst.FunctionDef | cst.ClassDef) for s in statements):
        return False
    return not escapes(statements) and not _imports(statements)


def _imports(statements: Sequence[cst.CSTNode]) -> bool:
    return any(
        isinstance(node, ast.Import | ast.ImportFrom | ast.Global | ast.Nonlocal)
        for node in ast.walk(tree(statements))
    )


def mentions(nodes: cst.CSTNode | Sequence[cst.CSTNode], *words: str) -> bool:
    """Tell whether the source of nodes holds one of these words."""
    text = code(nodes)
    return any(word in text for word in words)
