"""What Apex left in fp32 is no product in fp16 now.

## What it does
Puts a statement under `autocast(enabled=False)` that multiplies fp32 values by a function which O1 had on no list, as
`torch.einsum` of what `F.normalize` or `.float()` gave, and says so. Where more stands in the statement, or the values are fp32 in
some runs or calls alone, a note says so in its place; so where the level may be O2 or O3 and the statement is part of a network
that `amp.initialize` was given: they ran it in fp16.

Where the program chooses O2 or O3, puts a statement under `autocast(enabled=False)` that multiplies what the networks hand
out, or what the source makes fp32 (`x.float()`), or that hands such fp32 to a function that multiplies. Where more stands in
the statement, or a network runs that Apex was not given, a note says so. Where the level is chosen at run time, one note
names all of these, and another one each evaluation of a network that Apex was not given, where nothing there tells the level. A note also names each copy of a network that is run: Apex left it in fp32, or ran the network itself in its place; and
what an object runs beside the network of it that Apex was given, as a teacher beside its student.

A note names what is computed of an fp16 tensor and an fp32 one that has no dimensions (`logits * self.scale`): O1 made it fp32, and autocast
leaves it in fp16.

## Why
O1 patches the functions on its lists, and `torch.einsum`, `torch.linalg.multi_dot` and `F.scaled_dot_product_attention` are on none.
O2 casts the networks that `amp.initialize` is given, and hands out fp32. Autocast casts every product in its blocks,
whatever is multiplied, and makes it fp16 again.

## Example
    distance = transport(output.float(), labels.float())

## Use instead
    with torch.cuda.amp.autocast(enabled=False):
        distance = transport(output.float(), labels.float())

## Safety
Faithful, but for what a note names: that is multiplied in fp16 now.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator, Sequence

from amp_migrate.apex.sites import Site
from amp_migrate.autocast.disabled import Disabled
from amp_migrate.autocast.spared.copies import Copied, copied
from amp_migrate.autocast.spared.outside import Outside
from amp_migrate.autocast.spared.statements import Spared, multiplies_wide, nodes_of, spared
from amp_migrate.autocast.spared.unlisted import left_by_o1
from amp_migrate.autocast.spared.widened import has_bare, widened_by_o1
from amp_migrate.placement.finding.networks import casts_these_alone
from amp_migrate.plan.cannot import place_of
from amp_migrate.plan.model import Decision, Edit, ReplaceExpression, Status, Wrap
from amp_migrate.project.order import position
from amp_migrate.rules.autocast.evaluation_places import cast_parts
from amp_migrate.rules.autocast.ungiven import asked_for_o1, levels
from amp_migrate.rules.autocast.ungiven import high as sites_of_high_levels
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.training.region import Part
from amp_migrate.training.types.unlisted import has_unlisted
from amp_migrate.words import plural

RULE = Rule("AMP123", "what Apex left in fp32 stays so", Safety.FAITHFUL, order=19)

_MOST = 4  # places that a note names
_ATOMS = ast.Name | ast.Attribute | ast.Call | ast.Subscript


def decide(context: Context) -> Iterator[Decision]:
    """Keep products of what was fp32 out of the casts, and name what cannot be kept."""
    high = sites_of_high_levels(context)
    unlisted = not casts_these_alone(context.unit) and has_unlisted(context.unit.project)
    bare = not casts_these_alone(context.unit) and has_bare(context.unit.project)
    if context.casts.never or not (high or unlisted or bare):
        return
    disabled = Disabled(context.unit)
    parts = cast_parts(context, disabled)
    apart: set[ast.stmt] = set()
    if unlisted:
        left = left_by_o1(context.unit, parts, disabled)
        at_one_alone = bool(context.unit.options) and not high
        always = None if at_one_alone else _at_every_level(context, parts, high)
        kept = [s for s in left.sure if s.apart and (always is None or always(s))]
        apart = {each.statement for each in kept}
        for together in _neighbours(kept):
            yield _kept(context, together, Status.NOTE)
        for each in left.sure:
            if each.statement not in apart:
                yield _told(context, each, "O1", halved=high if each.apart else [])
        if left.unsure:
            yield _unsure(context, left.unsure)
    if bare and (wide := widened_by_o1(context.unit, parts, disabled)):
        yield _widened(context, wide)
    if high:
        given = cast_parts(context, disabled, given=True)
        yield from _of_networks(context, high, given, apart)


def _at_every_level(
    context: Context, parts: list[Part], high: list[Site]
) -> Callable[[Spared], bool]:
    """Return what tells whether O2 and O3 left in fp32 what O1 did: by hand, or outside of the networks that they made fp16.

    Who calls a unit that initializes nothing itself may have chosen any.
    """
    unit = context.unit
    if not high:
        return lambda each: multiplies_wide(unit, each)
    outside = Outside(unit, parts, nodes_of(unit.project, parts))
    return lambda each: outside.holds(each.function) or multiplies_wide(unit, each)


def _of_networks(
    context: Context, high: list[Site], parts: list[Part], done: set[ast.stmt]
) -> Iterator[Decision]:
    """Keep what O2 and O3 left in fp32 out of the casts, but for what is done for O1, and name what cannot be kept."""
    yield from (_copy(context, high, each) for each in copied(context.unit, parts))
    found = [each for each in spared(context.unit, parts) if each.statement not in done]
    if not casts_these_alone(context.unit):
        yield from _told_of_levels(context, high, found)
        return
    for together in _neighbours([each for each in found if each.apart]):
        yield _kept(context, together)
    stated = {o.level for o in context.unit.options.values() if o.level}
    told = (each for each in found if not each.apart)
    yield from (_told(context, each, " and ".join(sorted(stated))) for each in told)


def _unsure(context: Context, found: list[Spared]) -> Decision:
    """Say once of products on no list of O1 that their operands decided."""
    each = found[0]
    message = f"where this{_others(found)} gets fp32, O1 left it so, having it on no list; under autocast it multiplies in fp16"
    off = context.spelling.autocast("False")
    advice = f"where fp16 is too small or too coarse for it, compute it under `with {off}:`"
    return decision(RULE, Status.NOTE, each.function.module, each.node, message, advice=advice)


def _widened(context: Context, found: list[Spared]) -> Decision:
    """Say once of what O1 computed in fp32, as one side has that and no dimensions."""
    each = found[0]
    message = f"Apex computed this{_others(found)} in fp32, as one side is an fp32 tensor without dimensions; autocast gives fp16"
    advice = "where fp16 is too small or too coarse for it, as for logits, write `.float()` behind the other side"
    return decision(RULE, Status.NOTE, each.function.module, each.node, message, advice=advice)


def _others(found: list[Spared]) -> str:
    """Return the other places that a note on the first one names."""
    places = list(dict.fromkeys(_spoken_place(found[0], other) for other in found[1:]))
    if len(places) > _MOST:
        places = [*places[:_MOST], plural(len(places) - _MOST, "other place")]
    return f" (and {', '.join(places)})" if places else ""


def _told_of_levels(context: Context, high: list[Site], found: list[Spared]) -> Iterator[Decision]:
    """Say once what differs at some levels of those that a run may choose."""
    if not found:
        return
    where, name = levels(context, high)
    each = found[0]
    message = (
        f"{where}, Apex left this{_others(found)} in fp32; under autocast it multiplies in fp16"
    )
    on_one = any("O1" in context.unit.options[site].levels for site in high)
    text = "False" if not on_one else asked_for_o1(context, high, name) if name else "..."
    on = context.spelling.autocast(text)
    advice = f"where fp16 is too small or too coarse for it, compute it of `.float()` inputs under `with {on}:`"
    made = decision(RULE, Status.NOTE, each.function.module, each.node, message, advice=advice)
    made.beside = tuple(place_of(other.function.module, other.node) for other in found[1:])
    yield made


def _copy(context: Context, high: list[Site], each: Copied) -> Decision:
    module, call = each.function.module, each.call
    where, name = levels(context, high)
    model = module.tree.segment(call.args[0])
    if each.before is False:
        message = f"{where}, this copy of `{model}` ran `{model}` itself under Apex, with its weights; it runs with its own now"
        advice = f"where the weights of `{model}` are meant, call `{model}` there"
    else:
        made = (
            "made before amp.initialize"
            if each.before
            else "where it is made before amp.initialize"
        )
        message = f"{where}, Apex left this copy of `{model}` in fp32, {made}, and ran it without casts; it runs under autocast now"
        told = asked_for_o1(context, high, name) if name else "..."
        text = told if where.startswith("where") else "False"
        block = context.spelling.autocast(text)
        advice = f"to run it as before, call it under `with {block}:`"
    return decision(RULE, Status.NOTE, module, call, message, advice=advice)


def _spoken_place(beside: Spared, each: Spared) -> str:
    place = place_of(each.function.module, each.node)
    same = each.function.module is beside.function.module
    return f"line {each.node.lineno}" if same and isinstance(each.node, ast.expr) else str(place)


def _neighbours(found: list[Spared]) -> Iterator[list[Spared]]:
    """Yield the statements that can run apart, those together that follow one another."""
    apart = {each.statement: each for each in found}
    for each in found:
        tree = each.function.module.tree
        block, place = tree.block(each.statement), position(tree, each.statement)
        if not place or block[place - 1] not in apart:
            yield [apart[s] for s in itertools.takewhile(lambda s: s in apart, block[place:])]


def _kept(context: Context, together: list[Spared], status: Status = Status.ROUTINE) -> Decision:
    module, call = together[0].function.module, context.spelling.autocast("False")
    tree = module.tree
    first, last = (tree.span(each.statement) for each in (together[0], together[-1]))
    edits: list[Edit] = [Wrap(first, last, f"with {call}:")]
    for given in (node for each in together for node in each.narrow):
        text = tree.segment(given)
        text = f"{text}.float()" if isinstance(given, _ATOMS) else f"({text}).float()"
        edits.append(ReplaceExpression(tree.span(given), text))
    message = f"what Apex had in fp32 is multiplied under `{call}`"
    return decision(RULE, status, module, together[0].node, message, edits)


def _told(context: Context, each: Spared, level: str, halved: Sequence[Site] = ()) -> Decision:
    """Say of what Apex left in fp32 at a level that it does not stay so, as at those of some initializes it was fp16."""
    message = f"Apex left this in fp32 at {level}; under autocast it multiplies in fp16"
    if halved:
        where, _ = levels(context, [*halved])
        message = f"Apex left this in fp32 at {level}, and made it fp16 {where}; under autocast it multiplies in fp16"
    off = context.spelling.autocast("False")
    advice = f"where fp16 is too small or too coarse for it, compute it of `.float()` inputs under `with {off}:`"
    return decision(RULE, Status.NOTE, each.function.module, each.node, message, advice=advice)
