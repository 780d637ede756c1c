"""Refuse a rewrite that takes a name away which another file imports, or the last value of an attribute that is read."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from amp_migrate.facts.scopes import Scopes
from amp_migrate.facts.tree import FunctionNode, Tree
from amp_migrate.modules.offered import takers
from amp_migrate.project import Module, Project


@dataclass(frozen=True)
class Lost:
    """A name that a new text of `path` has no more, and the import, or with `read` the attribute, that asks for it."""

    path: str
    name: str
    importer: str
    line: int
    read: bool = False

    @property
    def reason(self) -> str:
        """What goes wrong, as a refusal says it."""
        asks = "reads" if self.read else "imports"
        return f"loses '{self.name}', which {self.importer}:{self.line} {asks}"


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


def unset(project: Project, after: Mapping[str, str]) -> Iterator[Lost]:
    """Yield the attributes that methods of the new texts read off their object and that only the old ones set."""
    new = {path: Tree(path, text) for path, text in after.items()}
    old = {path: module.tree for path, module in project.modules.items()}
    gone = {name for tree in old.values() for name in _set(tree)}
    gone -= {name for path, tree in old.items() for name in _offered(new.get(path, tree))}
    for path, tree in new.items():
        for node in tree.nodes(ast.Attribute) if gone else ():
            if node.attr in gone and isinstance(node.ctx, ast.Load) and _is_own(tree, node.value):
                yield Lost(path, node.attr, path, node.lineno, read=True)


def _is_own(tree: Tree, node: ast.expr) -> bool:
    """Tell whether an expression is the object of the method around it."""
    function = tree.function(node)
    if not isinstance(node, ast.Name) or not isinstance(function, FunctionNode):
        return False
    first = [a.arg for a in (*function.args.posonlyargs, *function.args.args)][:1]
    return [node.id] == first and isinstance(tree.parents[function], ast.ClassDef)


def _set(tree: Tree) -> set[str]:
    return {n.attr for n in tree.nodes(ast.Attribute) if isinstance(n.ctx, ast.Store)}


def _offered(tree: Tree) -> set[str]:
    """Return the names by which objects of a file may have an attribute: set, defined, named in a class, or in a string."""
    found = _set(tree) | {n.name for n in tree.nodes(ast.FunctionDef)}
    found |= {n.name for n in tree.nodes(ast.AsyncFunctionDef)}
    found |= {n.name for n in tree.nodes(ast.ClassDef)}
    found |= {n.id for n in tree.nodes(ast.Name) if not isinstance(n.ctx, ast.Load)}
    found |= {n.arg for n in tree.nodes(ast.keyword) if n.arg is not None}
    texts = (n.value for n in tree.nodes(ast.Constant) if isinstance(n.value, str))
    return found | {text.lstrip("-").replace("-", "_") for text in texts if len(text) < 80}


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
