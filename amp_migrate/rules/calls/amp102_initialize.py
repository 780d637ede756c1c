"""`amp.initialize` goes; a GradScaler is made where it stood.

## What it does
Deletes the call (models and optimizers are changed in place by Apex, so nothing is lost) and creates one
`GradScaler`. `enabled=` is the condition under which Apex was on: the tests around the call and the
`opt_level`. A call that renamed what it was given leaves an assignment. The interface of 2018 goes in the same way: `amp.init`
goes, and a GradScaler is made where its handle wraps an optimizer.

## Why
Native AMP has no `initialize`: autocast casts per operation, and the GradScaler scales the loss.

## Example
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")

## Use instead
    scaler = torch.cuda.amp.GradScaler()

## Safety
Faithful for O1. O2 keeps fp32 weights now, and so does O3 where nothing is trained; O3 that trains is left. A finding says so.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from amp_migrate.apex.options import Options
from amp_migrate.apex.sites import Kind, Site
from amp_migrate.facts.below import behind_docstring
from amp_migrate.facts.paths import calls_method
from amp_migrate.facts.stand_ins import stands_for_setting
from amp_migrate.facts.tree import FunctionNode, Tree
from amp_migrate.placement.finding.forgotten import is_described
from amp_migrate.placement.finding.several import rescaled_by
from amp_migrate.placement.making.climbing import reaches
from amp_migrate.placement.making.creation import Creation, is_exhaustive
from amp_migrate.placement.making.lacking import lacking
from amp_migrate.placement.making.together import are_together
from amp_migrate.placement.steps.untrained import never_updates
from amp_migrate.plan.cannot import Cannot
from amp_migrate.plan.model import Decision, Drop, Edit, Insert, Replace, ReplaceExpression, Status
from amp_migrate.project import Function
from amp_migrate.project.order import Loop, levels
from amp_migrate.project.reach import reachable
from amp_migrate.project.relatives import family
from amp_migrate.rules.autocast.library_forward import forwards_cast
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.rules.calls.initialized import (
    enclosed,
    place,
    refuse_pure_fp16,
    rest,
    restored,
    result,
    target_of,
    whole,
)
from amp_migrate.rules.calls.scaler_made import (
    class_attribute,
    first_call,
    has_slots,
    keeps_bounds,
    made_after,
    scaler_made,
)
from amp_migrate.rules.casts.compared import compared
from amp_migrate.rules.guards.declared import undeclared
from amp_migrate.training.steps import children_of

RULE = Rule("AMP102", "amp.initialize becomes a GradScaler", Safety.FAITHFUL, order=10)

_APART = "every object has a GradScaler of its own now; Apex had one loss scale for the process, which an overflow of any of them halved"
_ONE = "give all objects one GradScaler, and call update() once behind their steps, to keep one loss scale"
_O3 = (
    "opt_level O3 becomes autocast where nothing is trained: weights stay fp32 (Apex had them in fp16), so memory and the "
    "last bits of the outputs change"
)
_FP16 = "to keep fp16 weights, drop AMP here: .half() on the model and on its inputs"
_RESCALED = "may initialize later, and Apex went on with the loss scale of that for all; the GradScaler keeps the one of this"
_BOUNDED = "min_loss_scale and max_loss_scale bound a loss_scale that is a number as well, which Apex left as it was"
_STILL = "no optimizer steps in this program, so nothing moves its loss scale; Apex halved it on an overflow"
_MOVED = (
    "pass a smaller init_scale=, or call unscale_(), update() and zero_grad() after each backward"
)
_OF_MODULE = (
    "the GradScaler is a variable of this file, as Apex had one for the process: code that needs it is called "
    "from places that cannot pass it on"
)
_OF_SCALER = ("growth_interval", "loss_scale=", "the static loss scale")


def decide(context: Context) -> Iterator[Decision]:
    """Replace every initialize of the unit."""
    unit = context.unit
    for site in unit.of(Kind.INITIALIZE):
        if context.is_gone(site.node):
            yield decision(RULE, Status.MIGRATED, site.module, site.node, "amp.initialize removed")
            continue
        options = unit.options[site]
        if options.level == "O3":
            refuse_pure_fp16(unit, site, options)
            yield decision(RULE, Status.NOTE, site.module, site.node, _O3, advice=_FP16)
        creation = context.creations.get(site)
        _refuse_switching_off(context, site, creation)
        yield _replaced(context, site, options, creation)
        for remark in (r for r in options.remarks if creation or not r.startswith(_OF_SCALER)):
            yield decision(RULE, Status.NOTE, site.module, site.node, remark)
        if creation is not None:
            yield from _notes(context, site, options, creation)
    yield from compared(context, RULE)


def _notes(
    context: Context, site: Site, options: Options, creation: Creation
) -> Iterator[Decision]:
    """Say in what the GradScaler that is made differs from what Apex had."""
    unit = context.unit
    note = partial(decision, RULE, Status.NOTE, site.module, site.node)
    if unit.home.module_level and context.settings.scaler != "module":
        yield note(_OF_MODULE)
    if (later := rescaled_by(unit, site)) is not None:
        yield note(f"{place(later)} {_RESCALED}", named=(place(later),))
    if options.chosen_scale is not None and keeps_bounds(context, options):
        yield note(_BOUNDED)
    if options.pinned is None and are_together(unit, creation):
        yield note(_APART, advice=_ONE)
    if never_updates(unit, site):
        yield note(_STILL, advice=_MOVED)


def _refuse_switching_off(context: Context, site: Site, creation: Creation | None) -> None:
    """Refuse a GradScaler that would take the place of the constructor's, and be off where its own guard does not hold."""
    cls = site.function.cls
    if creation is None or cls is None or creation.in_constructor or not creation.climbed:
        return
    kept = [c for c in context.creations.values() if c.in_constructor]
    for other in (c for c in kept if c.site.function.cls in family(cls)):
        if (other.scales.value, other.scales.text) != (creation.scales.value, creation.scales.text):
            raise Cannot(
                "AMP909",
                *site.at,
                "this initializes once more, under another condition than the constructor: Apex stayed on where it does not hold",
                "delete this amp.initialize, as the constructor has initialized by then, then run again",
            )


def _replaced(
    context: Context, site: Site, options: Options, creation: Creation | None
) -> Decision:
    edits: list[Edit] = []
    stays = rest(context, site, options)
    lines = [stays] if stays else []
    made = ""
    if creation is not None and _is_used(context, site):
        made = scaler_made(context, site, creation, target_of(context, site))
        if context.unit.home.module_level and site.function.node is not None:
            edits += _module_level(context, site)
        if creation.climbed:
            span = site.module.tree.span(creation.top)
            edits.append(Insert(span, made, after=made_after(context, site, creation)))
        else:
            lines.append(made)
        edits += _default(context, site, creation)
    edits += undeclared(context, site, lambda s: rest(context, s, context.unit.options[s]))
    lines += forwards_cast(context, site)
    put_back = restored(context.unit.project, site, options)
    edits += [Drop(site.module.tree.span(stmt)) for stmt in put_back.values()]
    stmt = site.statement
    if stays and isinstance(stmt, ast.Return):
        lines = [*lines[1:], stays]
    if isinstance(site.module.tree.parent(whole(context, site, options)), ast.stmt):
        edits += _in_place(site, lines)
    else:
        edits.append(ReplaceExpression(site.span, enclosed(result(context, site, options))))
        if made and creation is not None and not creation.climbed:
            edits.append(Insert(site.module.tree.span(stmt), made, after=False))
    message = f"amp.initialize becomes `{first_call(made)}`" if made else "amp.initialize removed"
    return decision(RULE, Status.MIGRATED, site.module, site.node, message, edits)


def _in_place(site: Site, lines: list[str]) -> list[Edit]:
    """Put lines in place of an initialize; on lines of their own where it was described beside what follows it."""
    tree, stmt = site.module.tree, site.statement
    span, block = tree.span(stmt), tree.block(stmt)
    behind = [
        other
        for other in block[block.index(stmt) + 1 :]
        if other.lineno == span.end_line and not stands_for_setting(other)
    ]
    if not lines:
        return [Drop(span)]
    if is_described(site) and behind:
        return [Drop(span), Insert(tree.span(behind[0]), "\n".join(lines), after=False)]
    return [Replace(span, "\n".join(lines))]


def _is_used(context: Context, site: Site) -> bool:
    """Tell whether anything reaches the scaler that this initialize would make."""
    home = context.unit.home
    if home.module_level:
        return True
    if any(stored.site.function is site.function for stored in home.carriers.stored):
        return True
    return (
        site.function in home.users
        or home.is_attribute(site.function)
        or site.function.node is None
    )


def _default(context: Context, site: Site, creation: Creation) -> list[Edit]:
    """Where several initializes of a function are alternatives, a disabled scaler stands before them."""
    if creation.sometimes and context.unit.home.is_attribute(site.function):
        return _in_constructor(context, site)
    own = not context.unit.home.module_level or site.function.node is None
    if not (creation.shared and own):
        return []
    sites, tree = context.unit.home.inits[site.function], site.module.tree
    if site is not sites[0]:
        return []
    first = children_of(tree, [site.statement for site in sites])[0]
    uses = context.unit.home.users.get(site.function, [])
    while not all(reaches(tree, first, use) for use in uses):
        holder = tree.holder(first)
        if not isinstance(holder, ast.If):
            break
        first = holder
    if isinstance(first, ast.If) and is_exhaustive(first, sites):
        return []
    # A later round may leave them all out: AMP stays as it is.
    *_, first = (first, *(up for up in levels(tree, first) if isinstance(up, Loop)))
    text = f"{target_of(context, site)} = {context.spelling.scaler(['enabled=False'])}"
    return [Insert(tree.span(first), text, after=False)]


def _in_constructor(context: Context, site: Site) -> list[Edit]:
    """A method that need not run makes the scaler: the constructor, or without one the class, has a disabled one first."""
    cls = site.function.cls
    init = cls.method("__init__") if cls is not None else None
    apart = init is None or init.module is not site.module
    if init is not None and apart and _is_prepared(context, init):
        return []
    if cls is not None and not set(lacking(context.unit.home)).isdisjoint(cls.mro()):
        return []  # which has one by its class, or a base
    if cls is not None and apart and not has_slots(cls):
        return [class_attribute(context, cls)]
    if init is None or init.node is None or init.module is not site.module:
        raise Cannot(
            "AMP901",
            *site.at,
            f"{site.function.qualname}() may never run, and its class has no __init__ in this file that could make a "
            "disabled GradScaler for that case",
            "give the class an __init__ in this file, then run again",
        )
    first = init.parameters.names[0]
    anchor = next((s for s in init.node.body if calls_method(s, "__init__")), None)
    text = f"{first}.{context.unit.home.name} = {context.spelling.scaler(['enabled=False'])}"
    place = anchor or _first_statement(init.node)
    return [Insert(site.module.tree.span(place), text, after=anchor is not None)]


def _is_prepared(context: Context, init: Function) -> bool:
    """Tell whether a constructor gets a disabled scaler, or one that it calls, as a method of its own file may make one."""
    run = reachable(context.unit.project, init)
    return any(
        own in run and site.module is own.module and creation.sometimes
        for found in context.unit.home.inits.values()
        for site in found
        if (cls := site.function.cls) and (creation := context.creations.get(site))
        if (own := cls.method("__init__"))
    )


def _first_statement(node: FunctionNode) -> ast.stmt:
    return (behind_docstring(node) or node.body)[0]


def _module_level(context: Context, site: Site) -> list[Edit]:
    """The scaler is a variable of the module: disabled from the start, made by the initialize."""
    tree = site.module.tree
    name = context.unit.home.name
    made = Insert(
        tree.span(_first_definition(tree)),
        f"{name} = {context.spelling.scaler(['enabled=False'])}",
        after=False,
    )
    function = site.function.node
    if function is None:
        return [made]
    return [made, Insert(tree.span(_first_statement(function)), f"global {name}", after=False)]


def _first_definition(tree: Tree) -> ast.stmt:
    """Return the first top-level statement behind the imports."""
    for stmt in tree.module.body:
        docstring = isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant)
        if not docstring and not isinstance(stmt, ast.Import | ast.ImportFrom | ast.Try):
            return stmt
    return tree.module.body[-1]
