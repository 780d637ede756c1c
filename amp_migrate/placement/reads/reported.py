"""Gradients that a helper reads on every micro-batch only to report them, where they are still scaled."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

from amp_migrate.facts.paths import MUTATORS, all_given, called_alone, root, tail, walk
from amp_migrate.facts.scopes import targets_of
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.gradients import Use, reads
from amp_migrate.placement.windows.skipped import accumulates
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.order import inside
from amp_migrate.project.reach import calls_to, reachable, reached_by
from amp_migrate.project.rounds import last_before, runs_before
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.beliefs import READS_GRADIENTS
from amp_migrate.training.bindings import values_of
from amp_migrate.training.events import Kind
from amp_migrate.training.gradients.magnitude import derived
from amp_migrate.training.gradients.used import Gradients
from amp_migrate.training.steps import Step, boundary

_REPORTERS = frozenset(
    {
        "add_histogram", "add_scalar", "add_scalars", "debug", "info", "log", "log_metric", "log_metrics",
        "print", "set_postfix", "warning", "write",
    }
)  # fmt: skip


def scaled_reads(
    unit: Unit, function: Function, use: Use, steps: Iterable[Step]
) -> dict[ast.expr, Function]:
    """Return the gradients that a helper reads before the accumulation boundary, if it does nothing but report them.

    Natively they are the scaled ones there on every micro-batch: divided by the loss scale they are Apex's.
    """
    callees = _readers(unit, use)
    if not callees or not _every_micro_batch(unit, function, use, steps):
        return {}
    helpers: set[Function] = set()
    for callee in callees:
        below = reachable(unit.project, callee, unit.functions)
        helpers |= {helper for helper in below if reads(unit, helper)}
    found: dict[ast.expr, Function] = {}
    for helper in helpers:
        if not all(
            site.call is use.node or site.function in helpers
            for site in unit.project.callers(helper)
        ):
            return {}
        for node in _gradients(unit.project, helper):
            if not _is_reported(helper, node, set()):
                return {}
            found[node] = helper
        if any(tail(n) in READS_GRADIENTS for n in helper.calls):
            return {}
    return found


def does_more(unit: Unit, stmt: ast.stmt) -> bool:
    """Tell whether a statement that reads gradients changes other things too, so that it must not run less often."""
    return any(_adds(node) or _helper_changes(unit, node) for node in walk(stmt)) or _runs_unseen(
        unit, stmt
    )


def _runs_unseen(unit: Unit, stmt: ast.stmt) -> bool:
    """Tell whether a statement hands gradients to code out of sight, itself or in a helper: that does what it likes."""
    own = unit.project.holder(stmt)
    nodes = set(walk(stmt))
    return any(
        isinstance(node, ast.Call) and _is_unseen(unit, function, node)
        for function in (own, *_helpers(unit, nodes))
        for node in (nodes if function is own else function.own_nodes)
    )


def _is_unseen(unit: Unit, function: Function, call: ast.Call) -> bool:
    """Tell whether a call runs something held in a variable whose code is not in sight, as a callback of a library."""
    if not isinstance(call.func, ast.Name):
        return False
    module = function.module
    held = module.scopes.owner(call.func)
    name = unit.project.external(module, call.func) or ""
    return (
        held is not None
        and held is not module.tree.module
        and all(
            isinstance(b, ast.arg | ast.Name) for b in module.scopes.bindings(held, call.func.id)
        )
        and name.partition(".")[0] != "torch"
        and not unit.project.callees(call)
    )


def unseen_reader(unit: Unit, function: Function, use: Use) -> tuple[Function, ast.AST] | None:
    """Return the call of code out of sight that a read comes down to, where nothing that is seen reads gradients there."""
    events = program_of(unit.project).training.of
    held: list[tuple[Function, ast.AST]] = [(function, use.node)]
    for helper in reached_by(unit.project, use.node):
        held += [(helper, node) for node in events(helper)]
    happening = ((f, node, event) for f, node in held for event in events(f).get(node, ()))
    reading = [(f, node, e) for f, node, e in happening if e.kind is Kind.READ_GRAD]
    if not reading or not all(event.assumed for _, _, event in reading):
        return None
    return reading[0][:2]


def tells(unit: Unit, stmt: ast.stmt) -> bool:
    """Tell whether a statement that reads gradients reports or collects what it finds, itself or in a helper."""
    nodes = list(walk(stmt))
    for helper in _helpers(unit, nodes):
        nodes += helper.own_nodes
    return any(isinstance(n, ast.Call) and tail(n) in _REPORTERS | MUTATORS for n in nodes)


def tells_more(
    module: Module, stmt: ast.stmt, read: Collection[ast.AST], norms: Collection[str]
) -> bool:
    """Tell whether a statement reports or collects what other calls gave, as a loss, beside what it `read` of gradients.

    `norms` are variables that hold what was read.
    """
    call = called_alone(stmt)
    teller = call.func if call is not None else None
    passed = {node for part in (*read, teller) if part is not None for node in walk(part)}
    names = (
        node
        for node in walk(stmt)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in passed
    )
    given = (v for name in names if name.id not in norms for v in values_of(module, name))
    return any(isinstance(part, ast.Call) for value in given for part in walk(value))


def helpers_tell_more(unit: Unit, stmt: ast.stmt) -> bool:
    """Tell whether a helper that a statement runs reports or collects what it is given, as a loss, beside what it reads of gradients."""
    return any(
        _passes_on(unit, helper, node)
        for helper in _helpers(unit, walk(stmt))
        for node in helper.own_nodes
        if isinstance(node, ast.Call) and tail(node) in _REPORTERS | MUTATORS
    )


def _passes_on(unit: Unit, helper: Function, teller: ast.Call) -> bool:
    """Tell whether a call in a helper passes on a computed value that is not what the helper read of gradients."""
    module, project = helper.module, unit.project
    events = program_of(project).training.of(helper).items()
    reading = [node for node, held in events if any(e.kind is Kind.READ_GRAD for e in held)]
    known = derived(helper, reading)
    if root(teller.func) in known:
        return False
    names = (n for given in all_given(teller) for n in walk(given) if isinstance(n, ast.Name))
    for name in names:
        bound = module.scopes.bound(name)
        if name.id in known:
            continue
        values = list(values_of(module, name))
        if any(isinstance(b, ast.arg) for b in bound) and name.id in helper.parameters.names:
            for got in project.received(helper, name.id):
                if got.node is not None:
                    own = got.function.module
                    held = values_of(own, got.node) if isinstance(got.node, ast.Name) else ()
                    values += [got.node, *held]
        if any(isinstance(part, ast.Call) for value in values for part in walk(value)):
            return True
    return False


def _helpers(unit: Unit, nodes: Iterable[ast.AST]) -> set[Function]:
    """Return the functions that the calls among some nodes run, directly or not."""
    return {f for node in nodes for f in reached_by(unit.project, node)}


def _readers(unit: Unit, use: Use) -> list[Function]:
    if use.clips or use.optimizer is not None or not isinstance(use.node, ast.Call):
        return []
    return [callee for callee in unit.project.callees(use.node) if reads(unit, callee)]


def _every_micro_batch(unit: Unit, function: Function, use: Use, steps: Iterable[Step]) -> bool:
    """Tell whether a read stands behind a backward and before the `if` that steps after several of them."""
    tree = function.module.tree
    step = next((s for s in steps if runs_before(unit.project, function, use.node, s.call)), None)
    running = {b.function for b in unit.live_backwards()} - {function}
    backwards: list[ast.AST] = [b.node for b in unit.live_backwards(function)]
    backwards += calls_to(unit.project, function, running)
    before = last_before(unit.project, function, backwards, use.node)
    if step is None or not before:
        return False
    limit = boundary(step, before[-1])
    return (
        limit is not None
        and not inside(tree, use.node, limit)
        and accumulates(unit, function, step.anchor, limit)
    )


def _gradients(project: Project, function: Function) -> Iterator[ast.Attribute]:
    """Yield the gradients whose values matter in a function."""
    known = Gradients(project)
    for node in function.own_nodes:
        if isinstance(node, ast.Attribute) and node.attr == "grad" and known.use(function, node):
            yield node


def _is_reported(function: Function, node: ast.expr, seen: set[str]) -> bool:
    """Tell whether a gradient goes into calls that log it, if by variables of its function, and nowhere else."""
    tree, scopes = function.module.tree, function.module.scopes
    stmt = tree.statement(node)
    if isinstance(stmt, ast.Assign | ast.AnnAssign) and stmt.value is not None:
        targets = targets_of(stmt)
        names = [t.id for t in targets if isinstance(t, ast.Name) and scopes.is_local(t)]
        if len(names) < len(targets) or function.node is None or _in_place([stmt.value]):
            return False
        new = [name for name in names if name not in seen]
        seen.update(new)
        reads = [read for name in new for read in scopes.reads(function.scope, name)]
        return all(_is_reported(function, read, seen) for read in reads)
    call = called_alone(stmt)
    if call is None:
        return False
    given = all_given(call)
    if tail(call) not in _REPORTERS or not any(inside(tree, node, item) for item in given):
        return False
    return not _in_place(given)


def _in_place(nodes: Iterable[ast.expr]) -> bool:
    """Tell whether expressions change a tensor where it is: ``p.grad.mul_(2)``."""
    calls = (n for node in nodes for n in ast.walk(node) if isinstance(n, ast.Call))
    return any(tail(call).endswith("_") for call in calls)


def _adds(node: ast.AST) -> bool:
    """Tell whether a node counts or collects in an object: ``self.seen += 1``."""
    return (
        isinstance(node, ast.AugAssign)
        and isinstance(node.target, ast.Attribute | ast.Subscript)
        and not _of_gradient(node.target)
    )


def _helper_changes(unit: Unit, node: ast.AST) -> bool:
    return any(map(_changes, reached_by(unit.project, node)))


def _changes(function: Function) -> bool:
    parts = list(walk(function.node)) if function.node is not None else []
    made = {n.id for n in parts if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return any(_stores(part, made) for part in parts)


def _stores(node: ast.AST, made: set[str]) -> bool:
    """Tell whether a node changes a name of the module, or an object but a gradient or one that is `made` here."""
    if isinstance(node, ast.Global | ast.Nonlocal):
        return True
    target: ast.AST | None = None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        target = node.func.value if node.func.attr in MUTATORS else None
    elif isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
        target = node
    if target is None or _of_gradient(target):
        return False
    base = target
    while isinstance(base, ast.Attribute | ast.Subscript):
        base = base.value
    return not (isinstance(base, ast.Name) and base.id in made)


def _of_gradient(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in ast.walk(node))
