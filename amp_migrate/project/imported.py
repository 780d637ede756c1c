"""What runs because a file is imported: the ways to what its top-level code comes to."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Set
from dataclasses import dataclass, field

from amp_migrate.facts.paths import called_alone, mentions
from amp_migrate.modules.imports import run_by
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.once import kept, once
from amp_migrate.project.programs import run_by as may_run

Node = tuple[Function, ast.AST]


@dataclass
class Coming:
    """The functions that come to some nodes, with what leads there in each, and the imports among that."""

    nodes: dict[Function, list[ast.AST]] = field(default_factory=dict)
    imports: dict[Function, list[ast.stmt]] = field(default_factory=lambda: defaultdict(list))

    @property
    def functions(self) -> Set[Function]:
        """The functions that come to the nodes."""
        return self.nodes.keys()


def coming(project: Project, nodes: Iterable[Node]) -> Coming:
    """Return the functions that hold some nodes, those that call them, and those that import a file which comes there."""
    key = tuple(nodes)
    return kept(project, (coming, key), lambda: _followed(project, key))


def _followed(project: Project, nodes: tuple[Node, ...]) -> Coming:
    found = Coming()
    queue = list(nodes)
    imported: set[Function] = set()
    for function, node in queue:
        if function not in imported and runs_on_import(function.module, node):
            imported.add(function)
            for importer, statement in importers(project).get(function, ()):
                found.imports[importer].append(statement)
                queue.append((importer, statement))
        known = found.nodes.setdefault(function, [])
        if not known:
            queue += [(site.function, site.call) for site in project.callers(function)]
        known.append(node)
    return found


def is_main(node: ast.If) -> bool:
    """Tell whether a test asks whether its file is the program."""
    return mentions(node.test, "__name__")


def acts(module: Module) -> bool:
    """Tell whether a file does something else when it is run than to define."""
    return any(
        isinstance(stmt, ast.With | ast.For | ast.While)
        or called_alone(stmt) is not None
        or (isinstance(stmt, ast.If) and is_main(stmt))
        for stmt in module.tree.module.body
    )


@once
def apart(project: Project) -> list[frozenset[str]]:
    """Return the files of each program: what it may run, and what nothing starts or imports in sight."""
    files = project.modules.values()
    run = {path: may_run(project, path) for path in project.modules}
    imported = {other for path, found in run.items() for other in found if other != path}
    first = [module for module in files if module.path not in imported]
    unseen = {path for m in first if not acts(m) for path in run[m.path]}
    return [frozenset(unseen.union(run[m.path])) for m in first if acts(m)]


def runs_on_import(module: Module, node: ast.AST) -> bool:
    """Tell whether a node stands at the top of its file, where no test keeps it from running for an import."""
    around = module.tree.ancestors(node)
    return module.tree.function(node) is None and not any(
        isinstance(up, ast.If) and is_main(up) for up in around
    )


@once
def importers(project: Project) -> dict[Function, list[tuple[Function, ast.stmt]]]:
    """Return the functions that import a file, with the imports, by its top-level code."""
    found: dict[Function, list[tuple[Function, ast.stmt]]] = defaultdict(list)
    for module, alias in project.nodes(ast.alias):
        importer = project.function_of(module, alias)
        statement = module.tree.statement(alias)
        for other in run_by(project.lookup, module, alias):
            found[other.top].append((importer, statement))
    return found
