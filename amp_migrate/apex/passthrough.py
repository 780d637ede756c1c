"""Functions of a project that only hand their arguments on to Apex: ``def scale_loss(*args): return amp.scale_loss(*args)``."""

from __future__ import annotations

import ast

from amp_migrate.facts.below import behind_docstring
from amp_migrate.facts.paths import acts, path
from amp_migrate.facts.variables import collects, variable
from amp_migrate.flow import evaluate
from amp_migrate.project import Function, Module, Project

_LONGEST = 10
_HANDED_ON = frozenset(
    {"initialize", "scale_loss", "master_params", "state_dict", "load_state_dict"}
)
_IDLE_CONTEXTS = frozenset({"contextlib.nullcontext", "contextlib.ExitStack"})


def target(project: Project, call: ast.Call) -> str | None:
    """Return the Apex function that a call comes down to; None where it calls anything else."""
    callees = project.callees(call)
    names = {_hands_on(project, callee) for callee in callees}
    if len(names) != 1 or not callees:
        return None
    name = names.pop()
    own = {n for f in callees for n in f.parameters.names}
    if name is None or any(keyword.arg in own - _KEPT for keyword in call.keywords):
        return None
    return name


# Parameters that go by the same name in Apex.
_KEPT = frozenset({"models", "optimizers", "loss", "optimizer", "state_dict", "destination"})


def is_passthrough(project: Project, function: Function) -> bool:
    """Tell whether a function only hands its arguments on to Apex, where Apex is installed."""
    return _hands_on(project, function) is not None


def _hands_on(project: Project, function: Function) -> str | None:
    if function.node is None or function.cls is not None or function.node.decorator_list:
        return None
    body = [s for s in behind_docstring(function.node) if not _is_idle(function, s)]
    call = _returned(project, function.module, _within_idle(project, function.module, body))
    if call is None or not _same_arguments(function, call):
        return None
    name = project.external(function.module, call.func) or ""
    tail = name.removeprefix("apex.amp.")
    return name if tail != name and tail in _HANDED_ON else None


def given(project: Project, function: Function) -> ast.expr | None:
    """Return what a function returns, where it does nothing else, in whatever context that does nothing."""
    if function.node is None:
        return function.given
    body = _within_idle(project, function.module, behind_docstring(function.node))
    only = body[0] if len(body) == 1 else None
    return only.value if isinstance(only, ast.Return) else None


def _within_idle(project: Project, module: Module, body: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a body, without the contexts that do nothing around all of them."""
    while len(body) == 1 and isinstance(body[0], ast.With):
        if not all(_does_nothing(project, module, item) for item in body[0].items):
            break
        body = body[0].body
    return body


def _does_nothing(project: Project, module: Module, item: ast.withitem) -> bool:
    made = item.context_expr
    bare = isinstance(made, ast.Call) and not made.args and not made.keywords
    return (
        bare
        and item.optional_vars is None
        and isinstance(made, ast.Call)
        and project.external(module, made.func) in _IDLE_CONTEXTS
    )


def _is_idle(function: Function, statement: ast.stmt) -> bool:
    """Tell whether a statement never runs, or keeps parameters for the call that is returned."""
    if isinstance(statement, ast.If):
        return not statement.orelse and evaluate(statement.test) is False
    if not isinstance(statement, ast.Assign):
        return False
    scopes, value = function.module.scopes, statement.value
    kept = variable(scopes, statement.targets[0]) if len(statement.targets) == 1 else None
    if kept is None or kept.value() is not value:
        return False
    own = all(scopes.scope_of(node) is function.node for node in kept.places)
    calls = (node for node in ast.walk(value) if isinstance(node, ast.Call))
    return own and not acts(value) and all(collects(scopes, call) for call in calls)


def _returned(project: Project, module: Module, body: list[ast.stmt]) -> ast.Call | None:
    """Return the call that a body returns at once, or under a test that Apex is there."""
    if not body:
        return None
    first = body[0]
    if isinstance(first, ast.Return) and len(body) == 1:
        chosen = first.value
        if isinstance(chosen, ast.IfExp) and _is_amp(project, module, chosen.test):
            chosen = chosen.body
        return chosen if isinstance(chosen, ast.Call) else None
    if not isinstance(first, ast.If) or len(body) > 2 or not _is_amp(project, module, first.test):
        return None
    other = first.orelse or body[1:]
    if len(other) != 1 or not isinstance(other[0], ast.Return):
        return None
    return _returned(project, module, first.body)


def _is_amp(project: Project, module: Module, test: ast.expr) -> bool:
    if (
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], ast.IsNot)
        and isinstance(test.comparators[0], ast.Constant)
        and test.comparators[0].value is None
    ):
        test = test.left
    return isinstance(test, ast.Name) and project.external(module, test) in ("apex", "apex.amp")


def _same_arguments(function: Function, call: ast.Call) -> bool:
    """Tell whether a call gets the parameters of a function, all of them and in their order."""
    parameters = function.parameters
    given = [
        _meant(function, node.value if isinstance(node, ast.Starred) else node)
        for node in call.args
    ]
    wanted: list[str | None] = list(parameters.positional)
    if parameters.vararg:
        wanted.append(parameters.vararg)
    named = {k.arg: _meant(function, k.value) for k in call.keywords}
    return (
        given == wanted
        and not parameters.defaults
        and not parameters.keyword_only
        and named == ({None: parameters.kwarg} if parameters.kwarg else {})
    )


def _meant(function: Function, node: ast.expr) -> str | None:
    """Return the path that an argument reads, or that was put into what it reads before."""
    scopes = function.module.scopes
    for _ in range(_LONGEST):
        found = variable(scopes, node)
        value = found.value() if found is not None else None
        if value is None or scopes.scope_of(value) is not function.node:
            break
        node = value
    return path(node)
