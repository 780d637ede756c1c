"""Why the GradScaler cannot be had where it is needed."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import walk
from amp_migrate.project import CallSite, Function, Project
from amp_migrate.unit.cannot import Cannot
from amp_migrate.unit.handed import Maker
from amp_migrate.unit.order import dominates, key
from amp_migrate.unit.relatives import family
from amp_migrate.unit.sites import Site


def unreachable(
    inits: dict[Function, list[Site]], name: str, function: Function, node: ast.AST, reason: str
) -> Cannot:
    """Return the refusal of a function that the scaler cannot be handed to; `name` is what it would be called."""
    places = ", ".join(f"{s.module.path}:{s.span.line}" for sites in inits.values() for s in sites)
    made = f"the GradScaler made at {places}" if places else "a GradScaler"
    return Cannot(
        "AMP901",
        function.module,
        node,
        f"{function.qualname}() needs the GradScaler, but {reason}",
        f"pass {made} to {function.qualname}() and use it there as `{name}`",
    )


def refuse_before(sites: list[Site], function: Function, node: ast.AST) -> None:
    """The creation climbs out of its guards until it comes before every use; that must be possible."""
    tree = function.module.tree
    if function.node is None and tree.function(node) is not None:
        return
    if not any(
        key(site.node) < key(node) or dominates(tree, site.statement, node) for site in sites
    ):
        raise Cannot(
            "AMP901",
            function.module,
            node,
            "the GradScaler is needed before amp.initialize creates it",
            "move amp.initialize above this line and run again",
        )


def refuse_unswitched(maker: Maker, node: ast.AST) -> None:
    """Raise `Cannot` where the scaler is needed before it is known whether it is to be enabled."""
    module = maker.function.module
    if not dominates(module.tree, maker.switch, node):
        raise Cannot(
            "AMP901",
            module,
            node,
            f"the GradScaler is needed before line {maker.switch.lineno} says whether AMP is on",
            "move that test above this line and run again",
        )


def made_before(project: Project, inits: dict[Function, list[Site]], call: CallSite) -> bool:
    """Tell whether a call in a constructor finds the scaler that a method of its object makes, if one does."""
    function = call.function
    if function.cls is None or function.name != "__init__":
        return True
    relatives = family(function.cls)
    makers = {f for f in inits if f.cls in relatives and f is not function}
    return not makers or any(_leads_to(project, node, makers) for node in _before(call))


def entered_unmade(
    project: Project, inits: dict[Function, list[Site]], users: set[Function]
) -> bool:
    """Tell whether a call that is seen comes to a user of the scaler from where nothing made one before."""
    passed: dict[Function, bool] = {}
    return any(
        not _passes(project, set(inits), call, passed)
        for user in users - set(inits)
        for call in project.callers(user)
    )


def _passes(
    project: Project, makers: set[Function], call: CallSite, passed: dict[Function, bool]
) -> bool:
    function = call.function
    if function in makers or any(_leads_to(project, n, makers) for n in _before(call)):
        return True
    if function not in passed:
        passed[function] = True
        calls = project.callers(function)
        passed[function] = bool(calls) and all(
            _passes(project, makers, outer, passed) for outer in calls
        )
    return passed[function]


def _before(call: CallSite) -> list[ast.Call]:
    return [
        n for n in walk(call.function.scope) if isinstance(n, ast.Call) and key(n) < key(call.call)
    ]


def _leads_to(project: Project, call: ast.Call, makers: set[Function]) -> bool:
    seen: set[Function] = set()
    stack = project.callees(call)
    while stack:
        function = stack.pop()
        if function in makers:
            return True
        if function not in seen:
            seen.add(function)
            calls = (n for n in walk(function.scope) if isinstance(n, ast.Call))
            stack += [f for inner in calls for f in project.callees(inner)]
    return False
