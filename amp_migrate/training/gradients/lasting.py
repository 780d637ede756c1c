"""Names that may have gradients beyond a window of these: what is kept of gradients may outlive the scale."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.facts.imports import last_name
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.imported import importers
from amp_migrate.project.reach import reachable
from amp_migrate.project.rounds import may_follow

_ENDS = frozenset({"backward", "grad", "step", "update", "zero_grad"})
_SHOWS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def outlive(project: Project, held: Iterable[tuple[Module, ast.expr]]) -> bool:
    """Tell whether a name that has gradients may be read when what steps, clears or runs a backward has run since.

    One that is bound anew on every way there has the gradients of its own window.
    """
    known: dict[Function, list[ast.Call]] = {}
    for module, name in held:
        if not isinstance(name, ast.Name):
            continue
        function, owner = project.function_of(module, name), module.scopes.owner(name)
        if isinstance(owner, _SHOWS):
            continue
        if function not in known:
            known[function] = list(_ends(project, function))
        if owner is not function.scope:
            above = {project.function_of(module, b) for b in module.scopes.bound(name)}
            if known[function] or any(any(_ends(project, other)) for other in above):
                return True
            continue
        bound = module.scopes.bound(name)
        anew = [b for b in bound if not isinstance(module.tree.parent(b), ast.AugAssign)]
        if any(may_follow(project, function, end, name, anew) for end in known[function]):
            return True
    return False


def is_own(project: Project, module: Module, scope: ast.AST | None) -> bool:
    """Tell whether the variables of a scope are those of a function, or of a script that nothing imports."""
    if isinstance(scope, ast.Module):
        return not importers(project).get(module.top)
    return isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | _SHOWS)


def _ends(project: Project, function: Function) -> Iterator[ast.Call]:
    """Yield the calls of a function that may step, clear gradients or run a backward, or run what does."""
    for call in function.calls:
        if _may_end(project, function, call) or any(
            _may_end(project, ran, inner)
            for callee in project.callees(call)
            for ran in reachable(project, callee)
            for inner in ran.calls
        ):
            yield call


def _may_end(project: Project, function: Function, call: ast.Call) -> bool:
    return last_name(call) in _ENDS or _is_handed(project, function, call)


def _is_handed(project: Project, function: Function, call: ast.Call) -> bool:
    """Tell whether a call runs what its function was given, and which that is is not known."""
    if not isinstance(call.func, ast.Name) or project.callees(call):
        return False
    bound = function.module.scopes.bound(call.func)
    return any(isinstance(binding, ast.arg) for binding in bound)
