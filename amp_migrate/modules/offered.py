"""Files that offer the names of other files under their own: ``from package.part import name`` in a package."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.modules.lookup import Lookup
from amp_migrate.modules.model import Module


def takers(
    modules: Iterable[Module], lookup: Lookup, origin: Module, name: str
) -> Iterator[tuple[Module, ast.ImportFrom, ast.alias]]:
    """Yield the ``from`` statements by which files take a name from a file, or from one that has taken it so."""
    every = list(modules)
    queue = [(origin, name)]
    for source, wanted in queue:
        for module in every:
            for statement in module.tree.nodes(ast.ImportFrom):
                taken = [alias for alias in statement.names if alias.name == wanted]
                if taken and lookup.source(module, statement) is source:
                    for alias in taken:
                        yield module, statement, alias
                        onward = module, alias.asname or alias.name
                        if onward not in queue:
                            queue.append(onward)


def may_take(lookup: Lookup, reader: Module, statement: ast.ImportFrom, origin: Module) -> bool:
    """Tell whether a ``from`` statement takes what a file has, by that file's name where it is not known what it names."""
    source = lookup.source(reader, statement)
    if source is None:
        return (statement.module or "").rpartition(".")[2] == origin.name.rpartition(".")[2]
    stars = lookup.starred_from(source) if isinstance(source, Module) else ()
    return source is origin or origin in stars


def reads(module: Module, name: str) -> bool:
    """Tell whether a file reads a name of its top level anywhere."""
    return any(
        node.id == name and isinstance(node.ctx, ast.Load) for node in module.tree.nodes(ast.Name)
    )
