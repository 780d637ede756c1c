"""What stays of the statement of an `amp.initialize`: the names that it bound, the value that it gave; and when it stays whole."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from functools import partial

from amp_migrate.apex.apart import elements
from amp_migrate.apex.choices import without_choice
from amp_migrate.apex.options import Options
from amp_migrate.apex.sites import Site
from amp_migrate.facts.constants import is_none
from amp_migrate.facts.paths import defs, named, path, same, uses
from amp_migrate.facts.tree import Tree
from amp_migrate.flow.condition import TRUE, Condition, conjunction
from amp_migrate.placement.finding.several import only_infers, trained_by_none, training_before
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.making.creation import Creation
from amp_migrate.plan.cannot import Cannot
from amp_migrate.plan.model import Place
from amp_migrate.project import Project
from amp_migrate.project.order import dominates, inside
from amp_migrate.project.rounds import graphs, may_follow, runs_before
from amp_migrate.rules.base import Context
from amp_migrate.training.origins.meant import may_be_none, never_none, only_looks, taken_apart

_FIRST = "assign the optimizer to a variable above, hand that in, then run again"
_TIGHT = (ast.Name, ast.Attribute, ast.Call, ast.List)
_DISPLAYS = (ast.Tuple, ast.List)


def refuse_pure_fp16(unit: Unit, site: Site, options: Options) -> None:
    """Refuse O3 where it may train, or may set the loss scale of a training to 1."""
    if only_infers(unit, site):
        return
    model = site.module.tree.segment(options.arguments["models"])
    half = f"drop AMP here, with {model}.half() and fp16 inputs"
    if not trained_by_none(unit, site):
        message = "opt_level O3 trains purely in fp16, and GradScaler refuses fp16 gradients"
        raise Cannot("AMP903", *site.at, message, f'write opt_level="O1" and run again; or {half}')
    if (other := training_before(unit, site)) is not None:
        behind = place(other)
        message = (
            "opt_level O3 has a loss scale of 1, and the last amp.initialize to run sets that of all trainings: this one "
            f"may come behind {behind}"
        )
        advice = f"call it before that one and run again; or {half}"
        raise Cannot("AMP903", *site.at, message, advice, (behind,))


def place(site: Site) -> Place:
    """Return where an initialize stands."""
    return Place(site.module.path, site.span)


def target_of(context: Context, site: Site) -> str:
    """Return the name under which the function of an initialize has the scaler."""
    home = context.unit.home
    return home.attribute(site.function) if home.is_attribute(site.function) else home.name


def enclosed(text: str) -> str:
    """Return an expression in parentheses where it may need them."""
    node = ast.parse(f"({text})", mode="eval").body
    return text if isinstance(node, _TIGHT) and "\n" not in text else f"({text})"


def rest(context: Context, site: Site, options: Options) -> str:
    """Return what is left of the statement: an assignment where names change, a return, or nothing."""
    tree = site.module.tree
    parent = tree.parent(whole(context, site, options))
    if isinstance(parent, ast.Return):
        if parent in context.unit.home.returning.extended:
            return f"return {_pair(site, options)}, {target_of(context, site)}"
        return f"return {result(context, site, options)}"
    if isinstance(parent, ast.AnnAssign):
        target, _, value = _alias(context, site, options, parent.target).partition(" = ")
        typed = f"{target}: {tree.segment(parent.annotation)}"
        return f"{typed} = {value}" if target else ""
    if not isinstance(parent, ast.Assign):
        return ""
    return "\n".join(
        text for target in parent.targets if (text := _alias(context, site, options, target))
    )


def whole(context: Context, site: Site, options: Options) -> ast.AST:
    """Return the expression that goes with an initialize: a choice whose other arm gives the same goes with it."""
    return without_choice(site, result(context, site, options))


def _alias(context: Context, site: Site, options: Options, target: ast.expr) -> str:
    tree = site.module.tree
    segment = tree.segment
    values = _values(options)
    if len(values) == 2 and isinstance(target, ast.Tuple | ast.List) and len(target.elts) == 2:
        pairs = [
            pair
            for part, value in zip(target.elts, values, strict=True)
            for pair in _different(tree, part, value)
        ]
    elif len(values) == 1:
        pairs = _different(tree, target, values[0])
    else:
        return f"{segment(target)} = {result(context, site, options)}"
    put_back = restored(context.unit.project, site, options)
    pairs = [(a, b) for a, b in pairs if not (isinstance(a, ast.Name) and a.id in put_back)]
    held = list(_held(context.unit.project, site)) if pairs else []
    pairs = [p for p in pairs if not any(same(p[0], a) and same(p[1], b) for a, b in held)]
    if not pairs:
        return ""
    left = ", ".join(segment(a) for a, _ in pairs)
    right = ", ".join(segment(b) for _, b in pairs)
    return f"{left} = {right}"


def _held(project: Project, site: Site) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what statements above have given a name or attribute of what a name holds, where nothing may have since."""
    function, tree = site.function, site.module.tree
    before = partial(runs_before, project, function)
    copies = [
        (stmt, stmt.targets[0], stmt.value)
        for stmt in function.own_nodes
        if isinstance(stmt, ast.Assign) and stmt is not site.statement and len(stmt.targets) == 1
        if isinstance(stmt.targets[0], ast.Name | ast.Attribute)
        if isinstance(stmt.value, ast.Name)
        if dominates(tree, stmt, site.node) and stmt in tree.block(stmt)
    ]
    if not copies:
        return
    calls = [n for n in function.own_nodes if isinstance(n, ast.Call) and before(n, site.statement)]
    changing = [
        (other, defs(other))
        for other in function.own_nodes
        if isinstance(other, ast.stmt) and not inside(tree, site.statement, other)
        if may_follow(project, function, other, site.statement)
    ]
    for stmt, target, value in copies:
        written = {name for other, names in changing if other is not stmt for name in names}
        if written.isdisjoint(defs(stmt) | uses(value)):
            if not any(project.callees(call) for call in calls if before(stmt, call)):
                yield target, value


def _different(tree: Tree, target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Return the (name, value) pairs that the initialize really renamed."""
    if same(target, value):
        return []
    if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        parts, values = elements(target), elements(value)
        if len(parts) == len(values):
            return [p for a, b in zip(parts, values, strict=True) for p in _different(tree, a, b)]
    return [] if _never_read(tree, target) else [(target, value)]


def _never_read(tree: Tree, target: ast.expr) -> bool:
    """Tell whether the name that an initialize bound is a local that nothing reads."""
    scope = tree.scope(target)
    if not isinstance(target, ast.Name) or isinstance(scope, ast.Module):
        return False
    kept = any(
        isinstance(n, ast.Global | ast.Nonlocal) and target.id in n.names for n in ast.walk(scope)
    )
    return not kept and not any(isinstance(n.ctx, ast.Load) for n in named(scope, target.id))


def _values(options: Options) -> list[ast.expr]:
    values = [options.arguments["models"]]
    optimizers = options.arguments.get("optimizers")
    if optimizers is not None and not (is_none(optimizers)):
        values.append(optimizers)
    return values


def result(context: Context, site: Site, options: Options) -> str:
    """Return what the initialize gives as one value: the network alone where there may be no optimizer."""
    pair, values = _pair(site, options), _values(options)
    if len(values) < 2 or not _may_lack(context.unit.project, site, values[1]):
        return pair
    network, optimizer = (site.module.tree.segment(value) for value in values)
    if any(isinstance(part, ast.Call) and not only_looks(part) for part in ast.walk(values[1])):
        message = f"this gives the network alone where `{optimizer}` gives no optimizer, and that would be called twice"
        raise Cannot("AMP909", *site.at, message, _FIRST)
    return f"({pair}) if {optimizer} is not None else {network}"


def _may_lack(project: Project, site: Site, optimizer: ast.expr) -> bool:
    """Tell whether an initialize may be given no optimizer, where that makes a difference to what takes its result."""
    if may_be_none(project, site.module, optimizer):
        return True
    apart = taken_apart(project, site.function, site.node)
    return not apart and not never_none(project, site.module, optimizer)


def _pair(site: Site, options: Options) -> str:
    return ", ".join(site.module.tree.segment(value) for value in _values(options))


def restored(project: Project, site: Site, options: Options) -> dict[str, ast.Assign]:
    """Return the locals that nothing reads but `self.net = net` right behind ``net, _ = amp.initialize(self.net, _)``.

    With each goes the statement that puts it back, which says nothing once the call is gone.
    """
    named = dict(_named(site, options))
    block = site.module.tree.block(site.statement)
    found: dict[str, ast.Assign] = {}
    for stmt in block[block.index(site.statement) + 1 :]:
        name = _put_back(stmt, named)
        if name is None:
            break
        found[name] = stmt  # type: ignore[assignment]
    alone = {n: s for n, s in found.items() if _read_once(site, n) or _reads(project, site, s)}
    return {n: s for n, s in alone.items() if _is_stored(project, s.targets[0])}


def _named(site: Site, options: Options) -> list[tuple[str, ast.expr]]:
    """Return the names that an initialize binds, each with what it gave the call for that."""
    stmt = site.statement
    if not isinstance(stmt, ast.Assign) or len(stmt.targets) != 1 or stmt.value is not site.node:
        return []
    optimizers = options.arguments.get("optimizers")
    given = [options.arguments["models"], *([] if optimizers is None else [optimizers])]
    target = stmt.targets[0]
    targets = elements(target) if isinstance(target, ast.Tuple | ast.List) else [target]
    if len(targets) != len(given):
        return []
    pairs = zip(targets, given, strict=True)
    return [(target.id, value) for target, value in pairs if isinstance(target, ast.Name)]


def _put_back(stmt: ast.stmt, named: dict[str, ast.expr]) -> str | None:
    """Return the name that a statement puts back where its value came from; None for another statement."""
    if not isinstance(stmt, ast.Assign) or len(stmt.targets) != 1:
        return None
    value = stmt.value
    if not isinstance(value, ast.Name) or value.id not in named:
        return None
    target, given = stmt.targets[0], named[value.id]
    if isinstance(target, _DISPLAYS) and isinstance(given, _DISPLAYS):
        pairs = itertools.zip_longest(target.elts, given.elts)
        return value.id if all(a and b and same(a, b) for a, b in pairs) else None
    return value.id if same(target, given) else None


def _read_once(site: Site, name: str) -> bool:
    """Tell whether a name is a local of its function that is bound once and read once."""
    scope = site.function.node
    if scope is None:
        return False
    uses = named(scope, name)
    outer = [n for n in ast.walk(scope) if isinstance(n, ast.Global | ast.Nonlocal)]
    return len(uses) == 2 and not any(name in n.names for n in outer)


def _reads(project: Project, site: Site, stmt: ast.Assign) -> bool:
    """Tell whether nothing but a statement reads what an initialize bound to a local of its function, whatever its name holds elsewhere."""
    scope, read, module = site.function.node, stmt.value, site.module
    if scope is None or not isinstance(read, ast.Name) or module.scopes.owner(read) is not scope:
        return False
    others = named(scope, read.id)
    loads = [n for n in others if n is not read and isinstance(n.ctx, ast.Load | ast.Del)]
    if any(project.function_of(module, n) is not site.function for n in others):
        return False
    graph = graphs(project).of(site.function.scope)
    bound = set(graph.bound_before(read))
    return len(bound) == 1 and not any(bound & set(graph.bound_before(n)) for n in loads)


def _is_stored(project: Project, target: ast.expr) -> bool:
    """Tell whether an assignment to a dotted name or to an item does no more than to store."""
    names = {function.name for function in project.functions() if function.cls is not None}
    if isinstance(target, _DISPLAYS):
        return all(isinstance(e, ast.Name) or _is_stored(project, e) for e in target.elts)
    if isinstance(target, ast.Subscript):
        plain = isinstance(target.slice, ast.Name | ast.Constant) and path(target.value) is not None
        return plain and "__setitem__" not in names
    if path(target) is None or not isinstance(target, ast.Attribute):
        return False
    return not names & {target.attr, "__setattr__"}


def passed(creation: Creation) -> Condition:
    """Return what the guards ask that a scaler is made outside of."""
    tree = creation.site.module.tree
    asked = conjunction([c for h, c in reversed(creation.within) if inside(tree, h, creation.top)])
    return asked if asked.text else TRUE
