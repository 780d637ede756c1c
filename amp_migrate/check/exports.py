"""Refuse a rewrite that takes a name away which another file imports, or the last value of an attribute that is read."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from amp_migrate.facts.paths import path
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


def lost(project: Project, after: Mapping[str, Tree]) -> Iterator[Lost]:
    """Yield the names of the old texts' files that the new ones lack while files go on importing them.

    An import that is taken to fail, in a `try`, is left out.
    """
    new = {where: Scopes(tree) for where, tree in after.items()}
    for where, scopes in new.items():
        module = project.modules[where]
        offered = [*module.scopes.names(module.tree.module)]
        gone = [n for n in offered if n not in scopes.names(scopes.tree.module)]
        for name in gone if not scopes.stars else ():
            modules = project.modules.values()
            for importer, statement, alias in takers(modules, project.lookup, module, name):
                stands = _stands(importer, statement, alias, new)
                if stands and not importer.tree.in_try(statement):
                    yield Lost(where, name, importer.path, statement.lineno)
            for reader in project.modules.values():
                if line := _asking(project, reader, new, module, name):
                    yield Lost(where, name, reader.path, line, read=True)


def _asking(
    project: Project, reader: Module, new: Mapping[str, Scopes], module: Module, name: str
) -> int:
    """Return the line at which the new text of a file reads a name of another one, by a star import or off it; 0 for none."""
    after = new.get(reader.path, reader.scopes)
    stars = project.lookup.starred_from(reader) if reader.scopes.stars else []
    if module in stars and _free(reader.scopes, name) and (line := _free(after, name)):
        texts = (new.get(other.path, other.scopes) for other in stars)
        if not any(name in scopes.names(scopes.tree.module) for scopes in texts):
            return line
    read = {
        path(node)
        for node in reader.tree.attributes(name)
        if module in project.lookup.expression(reader, node.value)
    }
    return min((n.lineno for n in after.tree.attributes(name) if path(n) in read), default=0)


def _free(scopes: Scopes, name: str) -> int:
    """Return the line at which a text first reads a name that nothing in it binds; 0 where it does not."""
    return min((node.lineno for node in scopes.spelt(None, name)), default=0)


def unset(project: Project, after: Mapping[str, Tree]) -> Iterator[Lost]:
    """Yield the attributes that methods of the new texts read off their object and that only the old ones set."""
    old = {where: module.tree for where, module in project.modules.items()}
    gone = {name for tree in old.values() for name in _set(tree)}
    gone -= {name for where, tree in old.items() for name in _offered(after.get(where, tree))}
    for where, tree in after.items():
        for node in tree.nodes(ast.Attribute) if gone else ():
            if node.attr in gone and isinstance(node.ctx, ast.Load) and _is_own(tree, node.value):
                yield Lost(where, node.attr, where, node.lineno, read=True)


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
