"""Gradients are unscaled before anything reads them.

## What it does
Inserts `scaler.unscale_(optimizer)` once per step, before the first use of gradients (clipping, norms,
edits), and replaces `amp.master_params(optimizer)` by the parameters themselves: `model.parameters()` where the optimizer was
made with all of them in that order, else those of its groups. Where a helper only logs gradients, on
every micro-batch, it divides them by `scaler.get_scale()`: they are scaled there until the step. A clip on every
micro-batch that cannot move to the step, as its norm is used there, holds the scaled gradients to `max_norm * scaler.get_scale()`, and divides the norm. Where gradients are
read and then cleared without a step, as for the Fisher information, `scaler.update()` follows the last read.

## Why
Apex unscaled gradients when the `scale_loss` block ended. Natively they stay scaled until `unscale_` or
`step`, so a clip without `unscale_` compares a norm 65536 times too large.

## Example
    torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)

## Use instead
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)

## Safety
Faithful: the gradients that are clipped are the same bits. So is a clip of scaled gradients, but for the 1e-6 that torch adds to
their norm, which a norm below 32 shows in its last bits; a note says so.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.facts.paths import all_given, path, tail, walk
from amp_migrate.flow.assumption import NOTHING
from amp_migrate.flow.condition import negate
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import refine
from amp_migrate.placement.reads.early import before_step
from amp_migrate.placement.reads.zeroing import lost_windows, windows
from amp_migrate.placement.steps.passing import behind_helper, unscaling
from amp_migrate.placement.unscaling.parameters import replaced_parameters
from amp_migrate.placement.unscaling.unscale import Asked, Inside, Unscale
from amp_migrate.placement.windows.counting import holds_one_where_scaled
from amp_migrate.placement.windows.skipped import jumps
from amp_migrate.placement.windows.unused import left_out, unused
from amp_migrate.plan.model import Decision, Edit, Insert, Replace, ReplaceExpression, Status
from amp_migrate.project import Function, Module
from amp_migrate.project.order import inside
from amp_migrate.project.rounds import runs_before
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.training.gradients.magnitude import limit
from amp_migrate.training.steps import asked, visited_around

RULE = Rule("AMP106", "gradients are unscaled before they are read", Safety.FAITHFUL, order=25)

_LOST = (
    "these gradients are cleared without a step: under Apex an overflow in them skipped the next step as well, now it "
    "does not"
)
_LEFT_OUT = "this step may be left out: under Apex an overflow in these gradients skipped the next step as well, now it does not"

_PASSED = (
    "the step on these gradients may be left out: under Apex an overflow in them skipped the next step as well, now it "
    "does not"
)


_TIGHT = (ast.Constant, ast.Name, ast.Attribute, ast.Call, ast.Subscript)
_JUMPS = (ast.Break, ast.Continue, ast.Raise, ast.Return)
_LOOSE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Call, ast.keyword, ast.Compare)


def decide(context: Context) -> Iterator[Decision]:
    """Place `unscale_` in every function that reads gradients, and replace `master_params`."""
    replaced: dict[ast.Call, dict[ast.expr, str]] = {}
    for site in context.unit.of(Kind.MASTER_PARAMS):
        if context.is_gone(site.node):
            yield decision(RULE, Status.MIGRATED, site.module, site.node, "goes with its branch")
            continue
        text, whole = _plain(context, site) or replaced_parameters(context.unit, site)
        edits = [ReplaceExpression(site.module.tree.span(whole), text)]
        for clip in context.unit.scaled_clips:
            if inside(site.module.tree, whole, clip):
                replaced[clip] = {**replaced.get(clip, {}), whole: text}
                edits = []
        yield decision(RULE, Status.MIGRATED, site.module, site.node, f"becomes `{text}`", edits)
    written: set[Inside] = set()
    rehearsed = any(unscale.cleared is not None for unscale in context.unscales)
    never = unused(context.unit) if rehearsed else ()
    lost = {context.unit.project.function_of(*place) for place in never}
    for unscale in context.unscales:
        if unscale.inside is None:
            yield _unscale(context, unscale)
        elif unscale.inside not in written:
            written.add(unscale.inside)
            yield _unscale(context, Unscale(*unscale.inside))
        leaves = unscale.outside is not None and (unscale.moved or not unscale.accumulates)
        if leaves and unscale.outside is not None and not _steps_either_way(context, unscale):
            yield decision(RULE, Status.NOTE, unscale.function.module, unscale.outside, _LEFT_OUT)
        if unscale.decided is not None:
            step = unscale.decided
            yield decision(RULE, Status.NOTE, step.module, step.call, _LEFT_OUT)
        if unscale.cleared is not None and unscale.function not in lost:
            yield decision(RULE, Status.NOTE, unscale.function.module, unscale.before, _LOST)
    for node, function in context.unit.scaled_reads.items():
        yield _divided(context, function, node)
    for call, function in context.unit.scaled_clips.items():
        if not context.is_gone(call):
            yield _limited(context, function, call, replaced.get(call, {}))
    yield from _lost(context)


def _plain(context: Context, site: Site) -> tuple[str, ast.expr] | None:
    """Return the parameters that the branch without Apex clips, where both begin with the same clip."""
    segment, clip = site.module.tree.segment, site.module.tree.parent(site.call)
    if not isinstance(clip, ast.Call) or site.call not in clip.args:
        return None
    number = clip.args.index(site.call)
    for prefix in context.branches.prefixes.values():
        if any(node is clip for stmt in prefix.moved for node in walk(stmt)):
            nodes = (n for stmt in prefix.node.orelse for n in walk(stmt))
            calls = [n for n in nodes if isinstance(n, ast.Call) and tail(n) == tail(clip)]
            if len(calls) == 1 and len(calls[0].args) > number:
                plain = calls[0].args[number]
                func = plain.func if isinstance(plain, ast.Call) and not all_given(plain) else None
                if isinstance(func, ast.Attribute) and func.attr == "parameters":
                    return segment(plain), site.call
    return None


def _lost(context: Context) -> Iterator[Decision]:
    """Report micro-batches whose gradients are cleared before the step, where no correction keeps them."""
    unit = context.unit
    lost = lost_windows(unit, context.settings.enabled("AMP201"))
    cut = {window.backward: window.limit for window in windows(unit)}
    moved = [zeroing.statement for zeroing in before_step(unit)]
    never = dict.fromkeys(unused(unit, moved))
    for backward in unit.backwards if not unit.plain else ():
        place = backward.module, backward.node
        limit = lost.get(backward.node)
        other = visited_around(unit.project, backward) is not None  # that is cleared next
        said = limit is None and (other or _is_said(context, backward.function))
        if backward.node in lost and not said and (limit is not None or place not in never):
            test = asked(backward.module.tree, limit) if limit is not None else ""
            where = f", under `{test}`," if test else ""
            advice = f"clear gradients behind the step{where} if those of all micro-batches were meant to add up"
            if limit is None and backward in cut:
                if holds_one_where_scaled(unit, backward.function, cut[backward]):
                    continue
                advice = "step those of the last micro-batches as well, behind their loop, if they were meant to count"
            yield decision(RULE, Status.NOTE, *place, _LOST, advice=advice)
            never.pop(place, None)
    for module, node in never:
        yield decision(RULE, Status.NOTE, module, node, _LOST)
    told = {u.function for u in context.unscales if u.outside is not None or u.decided is not None}
    for backward, function in left_out(unit, moved):
        place = backward.module, backward.node
        said = function in told or _is_said(context, function)
        said = said and not any(behind_helper(unit, s, context.unscales) for s in unit.steps)
        if place not in never and backward.node not in lost and not said:
            yield decision(RULE, Status.NOTE, *place, _PASSED)


def _steps_either_way(context: Context, unscale: Unscale) -> bool:
    """Tell whether a test steps the optimizer whichever way it goes, as where that is one or a list of them."""
    test, tree = unscale.outside, unscale.function.module.tree
    own = [
        step
        for step in context.unit.steps_of(unscale.function)
        if step.text == unscale.optimizer
        or (isinstance(step.anchor, ast.For) and path(step.anchor.iter) == unscale.optimizer)
    ]
    anchors = [step.anchor for step in own]
    return isinstance(test, ast.If) and all(
        any(tree.block(anchor) is branch for anchor in anchors) and not _leaves(branch)
        for branch in (test.body, test.orelse)
    )


def _leaves(branch: list[ast.stmt]) -> bool:
    """Tell whether some statements may go elsewhere before they are done."""
    return any(isinstance(n, _JUMPS) for stmt in branch for n in ast.walk(stmt))


def _is_said(context: Context, function: Function) -> bool:
    """Tell whether the rule of the steps says so, where a jump behind `unscale_` gets an `update()`."""
    project, steps = context.unit.project, context.unit.steps_of(function)
    own = [u for u in context.unscales if u.function is function]
    behind = [(u.before, s) for u in own for s in [*steps, *filter(None, [u.through])]]
    for call in unscaling(context.unit, function, context.unscales):
        behind += [(function.module.tree.statement(call), step) for step in steps]
    return any(
        not runs_before(project, function, step.anchor, jump)
        for first, step in behind
        for jump in jumps(project, step, first)
    )


def _divided(context: Context, function: Function, node: ast.expr) -> Decision:
    """Divide a gradient that is read on micro-batches that do not step, for which nothing may unscale it."""
    tree = function.module.tree
    text = f"{tree.segment(node)} / {context.scaler(function, node)}.get_scale()"
    if isinstance(tree.parent(node), ast.Attribute):
        text = f"({text})"
    edit = ReplaceExpression(tree.span(node), text)
    message = "gradients that are reported before the step are divided by the loss scale"
    return decision(RULE, Status.ROUTINE, function.module, node, message, [edit])


def _limited(
    context: Context, function: Function, call: ast.Call, replaced: dict[ast.expr, str]
) -> Decision:
    """Scale the limit of a clip on micro-batches that do not step, and divide the norm that it gives by the scale."""
    module, tree = function.module, function.module.tree
    scale = f"{context.scaler(function, call)}.get_scale()"
    held = limit(context.unit.project, module, call)
    assert held is not None
    text = tree.segment(held)
    text = f"{text if isinstance(held, _TIGHT) else f'({text})'} * {scale}"
    text = tree.segment(call, {**replaced, held: text})
    up = tree.parent(call)
    if not isinstance(up, ast.Expr):
        text = f"{text} / {scale}"
        text = text if isinstance(up, _LOOSE) else f"({text})"
    edit = ReplaceExpression(tree.span(call), text)
    message = (
        "gradients are scaled on micro-batches that do not step, and are clipped to a limit that is scaled as well: torch "
        "adds 1e-6 to the scaled norm here, so the last bits of what is clipped may differ"
    )
    return decision(RULE, Status.NOTE, module, call, message, [edit])


def _asking(context: Context, module: Module, before: ast.stmt, asked: Asked, text: str) -> Edit:
    """Return what unscales where a test comes out so: the ``else`` of the test for the other way in front of it, or one of its own."""
    tree = module.tree
    block = tree.block(before)
    place = block.index(before)
    up = block[place - 1] if place else None
    if isinstance(up, ast.If) and not up.orelse and _excludes(up.test, asked):
        written = map(str.strip, tree.lines[up.lineno - 1 : up.end_lineno])
        source = ast.unparse(up)
        if [*written] == [*map(str.strip, source.splitlines())]:  # so no comment is lost
            return Replace(tree.span(up), f"{source}\nelse:\n{textwrap.indent(text, '    ')}")
    condition = context.unit.availability[module].reduce(asked.test)
    condition = condition if asked.holds else negate(condition)
    return Insert(
        tree.span(before), f"if {condition.text}:\n{textwrap.indent(text, '    ')}", after=False
    )


def _excludes(test: ast.expr, asked: Asked) -> bool:
    """Tell whether a test holds just where another one comes out otherwise."""
    known = [refine(NOTHING, test, truth) for truth in (True, False)]
    come = [None if held is None else evaluate(asked.test, held) for held in known]
    return come == [not asked.holds, asked.holds]


def _unscale(context: Context, unscale: Unscale) -> Decision:
    function = unscale.function
    scaler = context.scaler(function, unscale.before)
    tree = function.module.tree
    text = f"{scaler}.unscale_({unscale.optimizer})"
    if unscale.loop:
        text = f"for {unscale.loop}:\n    {text}"
    message = f"`{scaler}.unscale_({unscale.optimizer})` before gradients are read"
    at = unscale.behind or unscale.before
    edit: Edit = Insert(tree.span(at), text, after=unscale.behind is not None)
    if unscale.asked is not None and unscale.behind is None:
        edit = _asking(context, function.module, unscale.before, unscale.asked, text)
    return decision(RULE, Status.ROUTINE, function.module, unscale.before, message, [edit])
