"""Finds the spans of statements and expressions by their text, as rules find them by `ast`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from textwrap import dedent

import pytest
from _pytest.mark import ParameterSet

from amp_migrate.facts.tree import Tree
from amp_migrate.plan.model import Edit
from amp_migrate.rewrite import rewrite
from amp_migrate.source.span import Span


class Places:
    """The spans of one program."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = Tree("program.py", text)
        nodes = [n for n in ast.walk(self.tree.module) if isinstance(n, (ast.stmt, ast.expr))]
        self._nodes = sorted(nodes, key=self.tree.span)

    def statement(self, start: str, nth: int = 0) -> Span:
        """Return the span of a statement by the start of its source, the first unless told."""
        found = [n for n in self._nodes if isinstance(n, ast.stmt) and self._starts(n, start)]
        return self.tree.span(found[nth])

    def expression(self, text: str, nth: int = 0) -> Span:
        """Return the span of an expression by its source, the first unless told."""
        found = [n for n in self._nodes if isinstance(n, ast.expr) and self._is(n, text)]
        return self.tree.span(found[nth])

    def call(self, start: str, nth: int = 0) -> Span:
        """Return the span of a call by the start of its source, the first unless told."""
        found = [n for n in self._nodes if isinstance(n, ast.Call) and self._starts(n, start)]
        return self.tree.span(found[nth])

    def elif_(self, test: str) -> Span:
        """Return the span of the ``elif`` with a test."""
        found = [n for n in self._nodes if isinstance(n, ast.If) and self._is(n.test, test)]
        return self.tree.span(found[0])

    def _starts(self, node: ast.AST, start: str) -> bool:
        return self.tree.segment(node).startswith(start)

    def _is(self, node: ast.AST, text: str) -> bool:
        return self.tree.segment(node) == text


Plan = Callable[[Places], Sequence[Edit]]


def applied(before: str, plan: Plan) -> str:
    """Return a program with the edits that `plan` makes for it, which must parse."""
    result = rewrite(before, plan(Places(before)))
    ast.parse(result)
    return result


def case(name: str, before: str, plan: Plan, after: str) -> ParameterSet:
    """Return a case of a table: a program, its edits and what comes out."""
    return pytest.param(dedent(before).lstrip("\n"), plan, dedent(after).lstrip("\n"), id=name)
