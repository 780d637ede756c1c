"""Which forwards run without gradients, by the contexts around them and around the calls that lead to them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial

from amp_migrate.apex.sites import Kind
from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import all_given
from amp_migrate.placement.finding.alternatives import is_uncalled
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.once import kept
from amp_migrate.project.reach import calls_to, reachable
from amp_migrate.project.relatives import same
from amp_migrate.project.rounds import may_follow
from amp_migrate.training.beliefs import EVALUATES_GIVEN
from amp_migrate.training.bindings import run_first
from amp_migrate.training.contexts import (
    Context,
    decorated,
    enters_autocast,
    in_autocast,
    keeps_no_graph,
    runs_without_gradients,
)
from amp_migrate.training.forwards.classes import is_network_class, run_given
from amp_migrate.training.forwards.forwards import Forward
from amp_migrate.training.forwards.unseen import evaluates_given
from amp_migrate.training.region import Region


def without_gradients(unit: Unit, module: Module, node: ast.AST) -> bool:
    """Tell whether a node runs without gradients, where no autocast of the source stands around it."""
    return _runs_without(unit, module, node, set())


def gives_no_graph(unit: Unit, node: ast.AST) -> bool:
    """Tell whether a call runs methods of networks that compute and return under their own ``with torch.no_grad():`` alone."""
    callees = unit.project.callees(node) if isinstance(node, ast.Call) else []
    return bool(callees) and all(_keeps_no_graph(unit, callee) for callee in callees)


def _keeps_no_graph(unit: Unit, function: Function) -> bool:
    module, project, cls = function.module, unit.project, function.class_around
    if cls is None or not is_network_class(cls):
        return False
    given: list[ast.AST] = [n for n in function.own_nodes if isinstance(n, ast.Return | ast.Yield)]
    run = [call for call in function.calls if unit.forwards.call(module, call) is Forward.NETWORK]
    return bool(given) and all(
        keeps_no_graph(project, module, node) and not in_autocast(project, module, node)
        for node in (*given, *run)
    )


def evaluated(project: Project, module: Module, call: ast.Call) -> list[ast.expr]:
    """Return what a call may give to a function of Python or of a library, or to a module, that runs it as a network; looked for once."""
    return kept(project, (evaluated, call), lambda: _evaluated(project, module, call))


def _evaluated(project: Project, module: Module, call: ast.Call) -> list[ast.expr]:
    first = run_first(project, module, call)
    given = [first] if first is not None else []
    named = project.external(module, call.func) in EVALUATES_GIVEN
    if named or evaluates_given(project, module, call):
        given = all_given(call)
    elif not project.callees(call):
        given += run_given(project, module, call)
    return [node for node in given if isinstance(node, ast.Name | ast.Attribute | ast.Subscript)]


def run_by(project: Project, module: Module, call: ast.Call) -> list[tuple[Module, ast.Call]]:
    """Return the calls at which one runs: itself, or where the lambda that it stands in is called, however deep."""
    found, seen = [(module, call)], {call}
    for where, node in found:
        up = where.tree.body(node)
        calls = project.values.calls_of_lambdas.get(up, []) if isinstance(up, ast.Lambda) else []
        found += [site for site in calls if site[1] not in seen]
        seen |= {site[1] for site in calls}
    return [place for place in found if not _is_in_called(project, *place)]


def _is_in_called(project: Project, module: Module, node: ast.AST) -> bool:
    """Tell whether a node stands in a lambda that is seen to be called."""
    up = module.tree.body(node)
    return isinstance(up, ast.Lambda) and bool(project.values.calls_of_lambdas.get(up))


def _runs_without(unit: Unit, module: Module, node: ast.AST, seen: set[Function]) -> bool:
    project = unit.project
    for up in module.tree.ancestors(node):
        if isinstance(up, ast.With):
            if enters_autocast(project, module, up):
                return False
            if runs_without_gradients(project, module, up) is not False:
                return not in_autocast(project, module, up)
        elif isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef):
            break
    function = project.function_of(module, node)
    if function.node is None:
        return False
    if function in seen:
        return True
    if _is_aside(unit, function):
        return True
    seen.add(function)
    calls = project.callers(function)
    return bool(calls) and all(
        _runs_without(unit, site.function.module, site.call, seen) for site in calls
    )


def _is_aside(unit: Unit, function: Function) -> bool:
    """Tell whether a function has no gradients, or puts the model in evaluation mode and trains nothing."""
    if Context.NO_GRAD in decorated(unit.project, function):
        return True
    names = {n.func.attr for n in function.calls if isinstance(n.func, ast.Attribute)}
    body = function.node.body if function.node is not None else []
    return (
        "eval" in names
        and not names & {"backward", "step"}
        and not any(unit.trains(function.module, stmt) for stmt in body)
    )


def before_apex(unit: Unit, region: Region) -> bool:
    """Tell whether a forward runs before its program initializes, if that ever does: in fp32, under Apex too.

    So may one for objects that train without Apex, which nothing in sight runs.
    """
    uncalled = is_uncalled(unit, region.function)
    return uncalled or runs_before_apex(unit, region.function, region.first)


def runs_before_apex(unit: Unit, function: Function, node: ast.AST) -> bool:
    """Tell whether programs that initialize run a node, and always before they do."""
    return _ways(unit, function, node) - {_Way.NEVER} == {_Way.BEFORE}


def may_run_before_apex(unit: Unit, function: Function, node: ast.AST) -> bool:
    """Tell whether some way of a program that initializes comes to a node before it does."""
    return _Way.BEFORE in _ways(unit, function, node)


class _Way(Enum):
    """Where a way to a node comes from: a program that initializes before it, that does so later, that never does."""

    AFTER = auto()
    BEFORE = auto()
    NEVER = auto()


def _ways(unit: Unit, function: Function, node: ast.AST) -> set[_Way]:
    """Return where the ways to a node come from; one that comes round to a function it was in goes no further.

    What is handed on where nothing is initialized yet may run before that, and later.
    """
    found: set[_Way] = set()
    gone: dict[Function, list[Function]] = {}
    rounds: list[tuple[Function, Function | None, set[_Way]]] = []
    queue = [_Stop(function, node, None)]
    seen = set(queue)
    for stop in queue:
        where = stop.function
        made = begins(unit, where)
        before = (begin for begin in made if _precedes(unit, where, begin, stop.node))
        if any(not _is_of_another(unit, stop, begin) for begin in before):
            found.add(_Way.AFTER)
            continue
        later = stop.later or bool(made)
        end = {_Way.BEFORE if later else _Way.NEVER}
        if stop.handed and any(stop.node not in set(ast.walk(begin)) for begin in made):
            end.add(_Way.AFTER)
        if where in gone:
            rounds.append((where, stop.called, end))
            continue
        more = _upwards(unit.project, stop, later)
        if not more or _initializes(unit, where):
            found |= end
            continue
        gone[where] = [one.function for one in more]
        queue += [one for one in dict.fromkeys(more) if one not in seen]
        seen.update(more)
    for where, called, end in rounds:
        if called in closure([where], lambda one: gone.get(one, ())):
            found |= end
    return found


@dataclass(frozen=True, slots=True)
class _Stop:
    """A node on a way back to where a program begins: what is called or, if `handed`, handed on there.

    `later`: something on the way so far initializes after it.
    """

    function: Function
    node: ast.AST
    called: Function | None
    handed: bool = False
    later: bool = False


def _upwards(project: Project, stop: _Stop, later: bool) -> list[_Stop]:
    """Return where the function of a stop is called; where none is seen to do so, where it is handed on."""
    where = stop.function
    calls = [
        _Stop(site.function, site.call, where, stop.handed, later)
        for site in project.callers(where)
    ]
    return calls or [
        _Stop(by, node, where, True, later)
        for by, node, _ in project.escapes(where)
        if by is not where
    ]


def _is_of_another(unit: Unit, stop: _Stop, begin: ast.AST) -> bool:
    """Tell whether a call initializes for objects of other classes alone than that whose method is called on the way."""
    call = stop.node
    if stop.called is None or not isinstance(call, ast.Call) or not isinstance(begin, ast.Call):
        return False
    made = unit.initializing
    kinds = same(unit.project, stop.function, call)
    mine = [k for k in kinds if stop.called in k.run(call, unit.project.callees(call))]
    return bool(mine) and not any(
        made & reachable(unit.project, callee)
        for kind in mine
        for callee in kind.run(begin, unit.project.callees(begin))
    )


def _precedes(unit: Unit, function: Function, begin: ast.AST, node: ast.AST) -> bool:
    """Tell whether a node may run after another one: behind it, or as a call of what that gives, or with it."""
    given = isinstance(node, ast.Call) and begin in set(ast.walk(node)) - {node}
    return given or may_follow(unit.project, function, begin, node, exceptions=True)


def _initializes(unit: Unit, function: Function) -> bool:
    return function in unit.initializing


def begins(unit: Unit, function: Function) -> Sequence[ast.AST]:
    """Return what initializes in a function: by itself, else the calls that lead there."""
    made = [site for site in unit.of(Kind.INITIALIZE) if site.function is function]
    return [site.node for site in made] or list(_beginning(unit, function))


def _beginning(unit: Unit, function: Function) -> Iterator[ast.AST]:
    """Yield the calls and imports of a function that lead to an initialize."""
    made = frozenset(site.function for site in unit.of(Kind.INITIALIZE))
    yield from unit.beginning.imports.get(function, ())
    asked = unit.project, function, made
    yield from kept(unit.project, (calls_to, function, made), partial(calls_to, *asked))
