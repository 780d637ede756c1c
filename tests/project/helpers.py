"""Small projects as text, and ways to point at expressions in them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from textwrap import dedent

from amp_migrate.facts.tree import Tree
from amp_migrate.project import Function, Module, Project, build


class Case:
    """A project built from texts by path."""

    def __init__(self, files: Mapping[str, str], roots: Sequence[str] = (".",)) -> None:
        trees = {path: Tree(path, dedent(text)) for path, text in files.items()}
        self.project: Project = build(trees, roots)

    def at(self, path: str, text: str, nth: int = 0) -> tuple[Module, ast.expr]:
        """Return the nth expression of a file whose source is `text`."""
        module = self.project.modules[path]
        found = [
            node
            for node in module.tree.parents
            if isinstance(node, ast.expr) and module.tree.segment(node) == text
        ]
        found.sort(key=lambda node: (node.lineno, node.col_offset))
        return module, found[nth]

    def call(self, path: str, text: str) -> ast.Call:
        """Return the call of a file whose source is `text`."""
        node = self.at(path, text)[1]
        assert isinstance(node, ast.Call)
        return node

    def function(self, path: str, qualname: str) -> Function:
        """Return a function by its qualified name."""
        functions = self.project.modules[path].functions.values()
        return next(item for item in functions if item.qualname == qualname)

    def external(self, path: str, text: str, nth: int = 0) -> str | None:
        """Return the outside name that an expression means."""
        return self.project.external(*self.at(path, text, nth))

    def callees(self, path: str, text: str) -> set[str]:
        """Return the qualified names of the functions that a call reaches."""
        return {item.qualname for item in self.project.callees(self.call(path, text))}

    def callers(self, path: str, qualname: str) -> set[str]:
        """Return the source of every call of a function."""
        sites = self.project.callers(self.function(path, qualname))
        return {site.function.module.tree.segment(site.call) for site in sites}

    def same(self, one: tuple[str, str], other: tuple[str, str]) -> bool:
        """Tell whether two expressions, each a path and a text, may hold the same object."""
        return self.project.values.same(*self.at(*one), *self.at(*other))

    def reasons(self, path: str, qualname: str) -> list[str]:
        """Return why calls of a function may be unseen."""
        return [reason for _, _, reason in self.project.escapes(self.function(path, qualname))]
