"""Native AMP of the source goes on beside what was Apex.

## What it does
Adds what turned Apex on to the `enabled=` of an autocast block that the source has itself around a forward or a loss:
`enabled=args.native` becomes `enabled=args.native or args.apex`. A note names a block that is always off, and one that cannot
see what turned Apex on. Where the source scales losses natively as well, in other runs, both ways stay, and a note says so.

## Why
Apex cast whatever ran, in blocks of native AMP too, on or off. Nothing but the block casts there now.

## Example
    with torch.no_grad(), torch.cuda.amp.autocast(enabled=fast):
        output = model(images)

## Use instead
    with torch.no_grad(), torch.cuda.amp.autocast():
        output = model(images)

## Safety
Faithful, but for what a note names: that runs in fp32 now.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

from amp_migrate.apex.sites import Kind
from amp_migrate.autocast.adopted import adopted
from amp_migrate.autocast.disabled import Disabled
from amp_migrate.autocast.evaluated.inference import may_run_before_apex
from amp_migrate.autocast.own import OwnBlock, own_blocks
from amp_migrate.facts.paths import argument
from amp_migrate.flow.condition import Condition, either
from amp_migrate.plan.cannot import Cannot
from amp_migrate.plan.model import Decision, Edit, ReplaceExpression, Status
from amp_migrate.project import Module
from amp_migrate.rules.autocast.programs import is_come_to
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.training.region import Region

RULE = Rule(
    "AMP124", "native AMP of the source goes on beside what was Apex", Safety.FAITHFUL, order=20
)

_LONGEST = 10  # names that are given one another


def decide(context: Context) -> Iterator[Decision]:
    """Let each autocast of the source that runs with Apex be on where that was."""
    if context.casts.never:
        return
    _refuse_hidden(context)
    yield from _two_ways(context)
    disabled = Disabled(context.unit)
    for own in own_blocks(context.unit):
        region = Region(own.function.module, own.function, own.block, own.block)
        if may_run_before_apex(context.unit, own.function, own.block):
            continue  # which calls of it had casts, it may ask
        if context.casts.runs(own.function) and not disabled.holds(region):
            yield from _turned_on(context, own)


def _two_ways(context: Context) -> Iterator[Decision]:
    """Say of the first initialize that the files have a native training beside it."""
    unit, objects = context.unit, context.unit.losses.objects
    scaled, own = objects.method_calls.get("scale", []), {s.module for s in unit.sites}
    native = [
        call
        for module, call in scaled
        if _is_by_scaler(context, module, call)
        and (module in own or context.casts.runs(unit.project.function_of(module, call)))
    ]
    for site in [s for s in unit.of(Kind.INITIALIZE) if not context.is_gone(s.node)][:1]:
        if native:
            message = "the files given train natively too, where they choose to: what chose Apex is a second native way now"
            advice = "keep one of the two, and let both choices lead to it"
            yield decision(RULE, Status.NOTE, site.module, site.node, message, advice=advice)


def _is_by_scaler(context: Context, module: Module, call: ast.Call) -> bool:
    """Tell whether a call scales a loss by a GradScaler of the source."""
    func, objects = call.func, context.unit.losses.objects
    return isinstance(func, ast.Attribute) and objects.scaler(module, func.value) is not None


def _turned_on(context: Context, own: OwnBlock) -> Iterator[Decision]:
    module, given = own.function.module, argument(own.call, "enabled")
    if given is None or (isinstance(given, ast.Constant) and given.value):
        return
    if isinstance(given, ast.Constant):
        message = "Apex cast what this block keeps from native casts: it runs in fp32 now"
        advice = "leave out this block where that took more memory or time than it may"
        yield decision(RULE, Status.NOTE, module, own.block, message, advice=advice)
        return
    wanted = context.casts.enabled(own.function, own.block, training=own.training)
    if wanted is None:
        if is_come_to(context.unit, own.function):
            yield _untold(module, own, given)
    elif not _is_same(context, module, given, wanted):
        yield _edited(module, own, given, wanted)


def _edited(module: Module, own: OwnBlock, given: ast.expr, wanted: str) -> Decision:
    text = module.tree.segment(given)
    both = either([Condition(None, text), Condition(None, wanted)]).text if wanted else ""
    edits: list[Edit] = [
        ReplaceExpression(module.tree.span(given), both)
        if both
        else ReplaceExpression(module.tree.span(own.call), _without(module, own.call, given))
    ]
    message = f"Apex cast here too: this is on {f'where `{both}` is true' if both else 'always'}"
    return decision(RULE, Status.ROUTINE, module, own.block, message, edits)


def _without(module: Module, call: ast.Call, given: ast.expr) -> str:
    """Return the text of a call without an argument."""
    tree = module.tree
    parts = [tree.segment(a) for a in call.args if a is not given]
    parts += [f"{k.arg}={tree.segment(k.value)}" for k in call.keywords if k.value is not given]
    return f"{tree.segment(call.func)}({', '.join(parts)})"


def _untold(module: Module, own: OwnBlock, given: ast.expr) -> Decision:
    text = module.tree.segment(given)
    message = f"with AMP on, Apex cast what runs here whatever `{text}` is; it runs in fp32 now where that is off"
    advice = "add what turns AMP on to `enabled=` where fp16 is meant"
    return decision(RULE, Status.NOTE, module, own.block, message, advice=advice)


def _is_same(context: Context, module: Module, given: ast.expr, wanted: str) -> bool:
    """Tell whether a block is on exactly where Apex was, by the names that its function has for that."""
    known = context.casts.condition.text
    meant = [_spelt(module, ast.parse(text, mode="eval").body) for text in (wanted, known) if text]
    return _spelt(module, given) in [*meant, *filter(None, (wanted, known))]


def _refuse_hidden(context: Context) -> None:
    """Raise `Cannot` for an autocast around a loss that no call makes there, and that is not on exactly where Apex is."""
    for backward in context.unit.backwards:
        block = adopted(context.unit.project, backward.function, backward.loss, backward.node)
        if block is None or context.is_gone(backward.node):
            continue
        if any(isinstance(item.context_expr, ast.Call) for item in block.items):
            continue
        if context.casts.enabled(backward.function, block, training=True):
            raise Cannot(
                "AMP912",
                backward.module,
                block,
                "this autocast is made elsewhere, and is not seen to be on where Apex is",
                "write the autocast here, then run again",
            )


def _spelt(module: Module, test: ast.expr) -> str:
    """Return a test as `ast.unparse` writes it, with the first names of what has a second one in its function."""
    found = copy.deepcopy(test)
    given = {n.id: n for n in ast.walk(test) if isinstance(n, ast.Name)}
    for name in ast.walk(found):
        if isinstance(name, ast.Name):
            name.id = _first_name(module, given[name.id])
    return ast.unparse(found)


def _first_name(module: Module, name: ast.Name, depth: int = 0) -> str:
    """Return the variable that a name is another one for, where neither is ever bound anew."""
    scopes = module.scopes
    if name not in module.tree.parents or depth > _LONGEST:
        return name.id
    held = scopes.only_value(name)
    if not isinstance(held, ast.Name) or scopes.owner(held) is not scopes.owner(name):
        return name.id
    return _first_name(module, held, depth + 1) if len(scopes.bound(held)) == 1 else name.id
