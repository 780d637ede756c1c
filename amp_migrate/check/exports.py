"""Refuse a rewrite that takes a name away which another file imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from amp_migrate.facts.scopes import Scopes
from amp_migrate.facts.tree import Tree
from amp_migrate.modules.offered import takers
from amp_migrate.project import Module, Project


@dataclass(frozen=True)
class Lost:
    """A name that a new text of `path` has no more, and the import that asks for it."""

    path: str
    name: str
    importer: str
    line: int

    @property
    def reason(self) -> str:
        """What goes wrong, as a refusal says it."""
        return f"loses '{self.name}', which {self.importer}:{self.line} imports"


def lost(project: Project, after: Mapping[str, str]) -> Iterator[Lost]:
    """Yield the names of the old texts' files that the new ones lack while files go on importing them.

    An import that is taken to fail, in a `try`, is left out.
    """
    new = {path: Scopes(Tree(path, text)) for path, text in after.items()}
    for path, scopes in new.items():
        module = project.modules[path]
        offered = [*module.scopes.names(module.tree.module)]
        gone = [n for n in offered if n not in scopes.names(scopes.tree.module)]
        for name in gone if not scopes.stars else ():
            modules = project.modules.values()
            for importer, statement, alias in takers(modules, project.lookup, module, name):
                if _stands(importer, statement, alias, new) and not _may_fail(importer, statement):
                    yield Lost(path, name, importer.path, statement.lineno)


def _stands(
    importer: Module, statement: ast.ImportFrom, alias: ast.alias, new: Mapping[str, Scopes]
) -> bool:
    """Tell whether an import is there in the new text, too."""
    if importer.path not in new:
        return True
    tree = new[importer.path].tree
    return any(
        (node.module, node.level) == (statement.module, statement.level)
        and any(other.name == alias.name for other in node.names)
        for node in tree.nodes(ast.ImportFrom)
    )


def _may_fail(module: Module, statement: ast.ImportFrom) -> bool:
    return any(type(up).__name__ in ("Try", "TryStar") for up in module.tree.ancestors(statement))
