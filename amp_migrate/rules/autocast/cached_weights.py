"""What one autocast block casts and then would have to cast anew: the copies are dropped in between.

Weights that run without gradients and then with them, and inputs that ask for gradients and are written in place.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from functools import partial

from amp_migrate.autocast.spared.statements import nodes_of
from amp_migrate.facts.paths import all_given, is_super, path, stored, variables, walk
from amp_migrate.flow.condition import Condition, negate, speller
from amp_migrate.plan.model import Decision, Insert, Status
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.rounds import may_follow, may_start, runs_before
from amp_migrate.protocol.calls.handed import handed_of
from amp_migrate.protocol.casts.bodies import BodiesOf
from amp_migrate.protocol.code.program import program_of
from amp_migrate.rules.base import Context, Rule, decision
from amp_migrate.training.contexts import runs_without_gradients, undecided
from amp_migrate.training.events import Kind
from amp_migrate.training.forwards.classes import is_of_network
from amp_migrate.training.forwards.forwards import Forward
from amp_migrate.training.reads.leaves import leaves
from amp_migrate.training.region import Part, run_by

_CLEARED = "torch.clear_autocast_cache()"
_PART = "part"
_WHY = "  # of weights cast without gradients"
_WRITTEN = "  # of an input written in place"


def cleared(context: Context, rule: Rule) -> Iterator[Decision]:
    """Drop autocast's copies behind the blocks without gradients whose networks run with them afterwards.

    Copies that were made under `no_grad` have no gradients, on torch before 2.13; Apex made them anew then.
    """
    unit = context.unit
    if not unit.scales:
        return
    inside = unit.trained_below()
    functions = [*sorted(inside, key=lambda f: (f.module.path, f.qualname)), *_methods(context)]
    whole = dict.fromkeys(f for f in functions if not unit.backwards_of(f))
    bodies: list[tuple[Function, list[ast.AST]]] = [(f, list(f.own_nodes)) for f in whole]
    for region in unit.regions:
        if region.function not in whole:
            nodes = [node for stmt in region.statements() for node in walk(stmt)]
            bodies.append((region.function, nodes))
    for function, nodes in bodies:
        for block in nodes:
            if isinstance(block, ast.With):
                yield from _cleared(context, rule, function, block, nodes)
            elif isinstance(block, ast.Call):
                yield from _cleared_behind(context, rule, function, block, nodes)


def rewritten(
    context: Context, rule: Rule, parts: Callable[[], Collection[Part]]
) -> Iterator[Decision]:
    """Drop autocast's copies behind what writes an input in place, where that is cast again in the same block.

    `parts` gives all that is put under autocast. Apex kept copies of parameters alone.
    """
    project = context.unit.project
    if not any(leaves(project, function) for function in project.functions()):
        return
    nodes: dict[Function, set[ast.AST]] = {}
    for function, node in nodes_of(project, parts()):
        nodes.setdefault(function, set()).add(node)
    for function, within in nodes.items():
        tree, done = function.module.tree, set[ast.stmt]()
        for leaf in leaves(project, function):
            casts = [node for node in leaf.casts if node in within]
            follows = partial(_follows, project, function, within)
            for write in leaf.writes:
                statement = tree.statement(write)
                if write not in within or statement in done:
                    continue
                anew = [*leaf.bound, *(other for other in leaf.writes if other is not write)]
                before = any(follows(node, write, leaf.bound) for node in casts)
                if before and any(follows(write, node, anew) for node in casts):
                    done.add(statement)
                    edit = Insert(tree.span(statement), _CLEARED + _WRITTEN, after=True)
                    message = f"`{_CLEARED}` follows what writes an input in place, of which autocast keeps a copy"
                    yield decision(
                        rule, Status.ROUTINE, function.module, statement, message, [edit]
                    )


def _follows(
    project: Project,
    function: Function,
    within: set[ast.AST],
    first: ast.AST,
    then: ast.AST,
    between: Iterable[ast.AST],
) -> bool:
    """Tell whether a node may run behind another one with all on the way `within` one autocast, but for what is `between`."""
    loops = [n for n in within if isinstance(n, ast.For | ast.AsyncFor | ast.While)]
    again = any({first, then} <= set(ast.walk(loop)) for loop in loops)
    return (may_follow if again else runs_before)(project, function, first, then, between)


def _methods(context: Context) -> Iterator[Function]:
    """Yield the methods of the networks in the files of the unit, which run under the autocast of their callers."""
    for module in context.unit.near:
        for function in module.functions.values():
            if is_of_network(function):
                yield function


def _cleared(
    context: Context, rule: Rule, function: Function, block: ast.With, nodes: list[ast.AST]
) -> Iterator[Decision]:
    """Yield the decision for a block without gradients of which something runs again behind it, in some round.

    One that is where its argument says so may have gradients itself in a later round.
    """
    module = function.module
    without = runs_without_gradients(context.unit.project, module, block)
    asked = _asked(context, module, block, nodes) if without is None else None
    if not without and asked is None:
        return
    inner = set(ast.walk(block))
    first = {name for n in inner for name in _run(context, module, n, True)}
    first |= set(_run_below(context, module, inner))
    then = {
        name
        for n in nodes
        if n not in inner or asked is not None
        for name in _run(context, module, n, False)
        if name in first and _comes_first(context, function, block, n, nodes)
        if not _has_no_gradients(context, module, n)
    }
    if then:
        text = _CLEARED + _WHY
        if asked is not None:
            test = negate(Condition(None, speller(module.tree)(asked))).text
            text = f"if {test}:\n    {text}"
        edit = Insert(module.tree.span(block), text, after=True)
        message = f"`{_CLEARED}` follows a forward without gradients of what is trained in the same autocast block"
        yield decision(rule, Status.ROUTINE, module, block, message, [edit])


def _cleared_behind(
    context: Context, rule: Rule, function: Function, call: ast.Call, nodes: list[ast.AST]
) -> Iterator[Decision]:
    """Yield the decision for a method that runs parts of its network without gradients, which something trains behind it."""
    module, bodies = function.module, BodiesOf(program_of(context.unit.project))
    statement, parts = module.tree.statement(call), bodies.left(call)
    if not parts or not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr):
        return
    inner = set(ast.walk(statement))
    if _has_no_gradients(context, module, call):
        return
    first = set(_run(context, module, call, True))
    then = (
        bodies.trains(node, parts) and _comes_first(context, function, call, node, nodes)
        for node in nodes
        if node not in inner and not first.isdisjoint(_run(context, module, node, False))
        if not _has_no_gradients(context, module, node)
    )
    if any(then):
        edit = Insert(module.tree.span(statement), _CLEARED + _WHY, after=True)
        message = f"`{_CLEARED}` follows a method that runs without gradients what is trained in the same autocast block"
        yield decision(rule, Status.ROUTINE, module, statement, message, [edit])


def _asked(
    context: Context, module: Module, block: ast.With, nodes: list[ast.AST]
) -> ast.expr | None:
    """Return what decides whether a block has gradients, where rounds of a loop around it answer it anew, and the block does not."""
    project = context.unit.project
    found = (undecided(project, module, item.context_expr) for item in block.items)
    asked = next((test for test in found if test is not None), None)
    if asked is None or any(isinstance(n, ast.Call | ast.NamedExpr) for n in ast.walk(asked)):
        return None
    read, own = variables(asked), set().union(*map(stored, block.body))
    loops = (n for n in nodes if isinstance(n, ast.For | ast.AsyncFor | ast.While))
    around = (loop for loop in loops if block in set(ast.walk(loop)))
    return asked if not read & own and any(read & stored(loop) for loop in around) else None


def _has_no_gradients(context: Context, module: Module, node: ast.AST) -> bool:
    """Tell whether the innermost block around a node that decides that leaves it without gradients."""
    blocks = (up for up in module.tree.ancestors(node) if isinstance(up, ast.With))
    known = (runs_without_gradients(context.unit.project, module, block) for block in blocks)
    return next((without for without in known if without is not None), False)


def _run_below(context: Context, module: Module, nodes: Iterable[ast.AST]) -> Iterator[Hashable]:
    """Yield by what the functions that some nodes call run networks; a path means nothing outside of its function.

    What a function runs of its parameters is what its calls give it.
    """
    handed = handed_of(program_of(context.unit.project)).run
    calls = [(module, node) for node in nodes if isinstance(node, ast.Call)]
    for function in run_by(context.unit.project, calls):
        for call in function.all_calls:
            if handed.runs_given(function, call):
                continue
            for name in _run(context, function.module, call, True):
                if not isinstance(name, str):
                    yield name


def _runs_another(context: Context, module: Module, call: ast.Call) -> bool:
    """Tell whether what a call runs runs another network than those that its functions are given, and parts of these."""
    unit, program = context.unit, program_of(context.unit.project)
    handed, own = handed_of(program).run, program.training.own
    return any(
        not handed.runs_given(function, below)
        and not (is_of_network(function) and own.is_own(function, below.func))
        and unit.forwards.call(function.module, below) is Forward.NETWORK
        and not unit.project.callees(below)
        for function in run_by(unit.project, [(module, call)])
        for below in function.all_calls
    )


def _comes_first(
    context: Context, function: Function, block: ast.AST, node: ast.AST, nodes: list[ast.AST]
) -> bool:
    """Tell whether a node may run behind a block, where it did not run before the block.

    A round of a loop around all `nodes`, which run under one autocast, begins without copies.
    """
    project = context.unit.project
    loops = (n for n in nodes if isinstance(n, ast.For | ast.AsyncFor | ast.While))
    if any({block, node} <= set(ast.walk(loop)) for loop in loops):
        follows = may_follow(project, function, block, node)
    else:
        follows = runs_before(project, function, block, node) and node not in set(ast.walk(block))
    return follows and may_start(project, function, block, [node])


def _has_no_weights(context: Context, call: ast.Call) -> bool:
    """Tell whether a call is of static methods that run no network, on nothing but variables."""
    forwards = context.unit.forwards
    callees = context.unit.project.callees(call)
    body = [(f.module, stmt) for f in callees if f.node is not None for stmt in f.node.body]
    runs = any(forwards.strength(module, stmt) is Forward.NETWORK for module, stmt in body)
    static = bool(callees) and all(callee.is_static for callee in callees)
    return (
        static and not runs and all(isinstance(a, ast.Name | ast.Constant) for a in all_given(call))
    )


def _run(context: Context, module: Module, node: ast.AST, first: bool) -> Iterator[Hashable]:
    """Yield by what a call runs a network: the path that is called, or given; `super()` for a method of a base class.

    An item of a collection may be another one that is spelt otherwise, so what it may hold is yielded as well, and
    the networks with which it shares weights. A part of a network meets the whole of it, whichever is `first`.
    """
    if not isinstance(node, ast.Call):
        return
    func, project = node.func, context.unit.project
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Call):
        if is_super(func.value):
            yield "super()"
    elif context.unit.forwards.call(module, node) is Forward.NETWORK:
        if _has_no_weights(context, node):
            return
        handed = handed_of(program_of(project)).run
        given = list(handed.given(node))
        for network in given:
            yield path(network) or ""
            yield from _shared(*handed.network(network), first)
        if not given or _runs_another(context, module, node):
            yield path(func) or ""
            yield from _shared(project.values.groups(module, func), frozenset(), first)
    happens = program_of(project).training.of(project.function_of(module, node))
    for event in happens.get(node, ()):
        if event.kind is Kind.SHARED:
            yield from _shared(event.networks, event.within, first)


def _shared(networks: frozenset[int], within: frozenset[int], first: bool) -> Iterator[Hashable]:
    yield from networks
    if first:
        yield from ((_PART, name) for name in within)
    else:
        yield from within
        yield from ((_PART, name) for name in networks)
