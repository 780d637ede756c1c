"""Forward passes in threads that a program starts: a thread knows nothing of the autocast of what started it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import argument
from amp_migrate.project import Function, Module, Project
from amp_migrate.training.forwards.forwards import Forward, Forwards
from amp_migrate.training.region import Region

_POOLS = frozenset({"concurrent.futures.ThreadPoolExecutor", "multiprocessing.pool.ThreadPool"})
_RUNS = frozenset(
    {"submit", "map", "starmap", "imap", "imap_unordered", "apply_async", "map_async"}
)


def started(project: Project, module: Module) -> Iterator[tuple[ast.Call, Function]]:
    """Yield the calls of a file that have a thread run a function of the project, with that function."""
    for call in module.tree.nodes(ast.Call):
        node = _target(project, module, call)
        for meaning in project.meanings(module, node) if node is not None else ():
            if isinstance(meaning, Function):
                yield call, meaning


def _target(project: Project, module: Module, call: ast.Call) -> ast.expr | None:
    if project.external(module, call.func) == "threading.Thread":
        return argument(call, "target", 1)
    if isinstance(call.func, ast.Attribute) and call.func.attr in _RUNS and call.args:
        if _POOLS.intersection(project.values.made_by(module, call.func.value)):
            return call.args[0]
    return None


def forwards_in(forwards: Forwards, function: Function) -> Region | None:
    """Return the statements of a function that run networks, None without any."""
    body = function.node.body if function.node is not None else []
    running = [s for s in body if forwards.strength(function.module, s) is Forward.NETWORK]
    return Region(function.module, function, running[0], running[-1]) if running else None
