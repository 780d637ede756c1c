"""Checkpoints carry the state of the GradScaler.

## What it does
`amp.state_dict()` becomes `scaler.state_dict()`, `amp.load_state_dict(x)` becomes
`scaler.load_state_dict(x)`, and the key `'amp'` of the checkpoint becomes `'scaler'`.

A test that asks whether there is a state (`is not None`) asks for its truth where the GradScaler may have been off when it
was saved: its state is empty then, and one that is on refuses it.

## Why
The loss scale is state: without it a resumed run starts again at 65536 and skips its first steps. The key
changes because Apex wrote another format under the old one; it stays where somebody saves or loads in a
way that cannot be followed.

## Example
    checkpoint = {'model': model.state_dict(), 'amp': amp.state_dict()}

## Use instead
    checkpoint = {'model': model.state_dict(), 'scaler': scaler.state_dict()}

## Safety
Faithful for new checkpoints. Those written under Apex are converted by `amp-migrate convert-checkpoint`, with
`--static` where the loss scale is a number: a GradScaler takes from a checkpoint how its scale changes as well, where
Apex went by what the program asked for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.placement.finding.forgotten import is_described
from amp_migrate.plan.cannot import Cannot
from amp_migrate.plan.model import (
    Decision,
    Drop,
    Edit,
    Insert,
    RenameKeyword,
    ReplaceExpression,
    Status,
)
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.rules.carrying.empty_state import (
    asked_beside,
    asked_for_truth,
    is_asked,
    is_key,
    is_none_when_off,
    is_saved_bare,
    may_be_empty,
)
from amp_migrate.rules.carrying.resume import command, conversion, static
from amp_migrate.rules.carrying.state_keys import StateKeys, keyword_of, native_key, state_keys
from amp_migrate.rules.carrying.state_read import StateRead, state_reads
from amp_migrate.scaler.routes.carriers import Passed
from amp_migrate.training.bindings import values_of

RULE = Rule("AMP108", "checkpoints carry the GradScaler's state", Safety.FAITHFUL)


def decide(context: Context) -> Iterator[Decision]:
    """Rewrite the state_dict and load_state_dict sites of the unit."""
    sites, empty = [], may_be_empty(context)
    for site in context.unit.of(Kind.STATE_DICT, Kind.LOAD_STATE_DICT):
        if context.is_gone(site.node):
            yield decision(RULE, Status.MIGRATED, site.module, site.node, "goes with its branch")
        else:
            sites.append(site)
    reads = [r for r in state_reads(context.unit, sites) if not context.is_gone(r.node)]
    yield from _reads(context, reads)
    direct = [read.site for read in reads if read.direct]
    sites = [site for site in sites if site not in direct]
    keys = state_keys(context.unit.project, sites)
    renamed: set[ast.AST] = set()
    converted = _conversions(context, sites, keys)
    for site in sites:
        asked = _asked(site, keys, renamed) if empty and site.kind is Kind.LOAD_STATE_DICT else ()
        yield _site(context, site, keys, renamed, [*asked, *converted.get(site, ())])
    for module, node in keys.others if not keys.kept else ():
        if not context.is_gone(node) and module.path not in context.unit.home.beside.leaving:
            key = native_key(module.tree.segment(node))
            edit = ReplaceExpression(module.tree.span(node), key)
            message = f"the state of the GradScaler is read by {key} too"
            yield decision(RULE, Status.ROUTINE, module, node, message, [edit])
    yield from _old_checkpoints(context, keys, converted, empty=empty)


def _asked(site: Site, keys: StateKeys, renamed: set[ast.AST]) -> Iterator[Edit]:
    """Yield the edits of tests for a state that may be empty; the keys in them are spelt by these."""
    spelt = site.module.tree.segment
    own = [] if keys.kept else keys.own[site]
    for test, edit in asked_for_truth(site, {key: native_key(spelt(key)) for key in own}):
        if is_key(test):
            renamed |= set(ast.walk(test)) & {*own}
        yield edit


def _reads(context: Context, reads: list[StateRead]) -> Iterator[Decision]:
    """Read the loss scale off the GradScaler, or out of its state."""
    for read in reads:
        site = read.site
        if site is None or not read.scale:
            raise Cannot(
                "AMP909",
                read.module,
                read.node,
                "this reads what Apex keeps of its loss scalers out of their state, and the state of a GradScaler has other keys",
                'delete this and run again; then read `["scale"]` of scaler.state_dict(), or scaler.get_scale()',
            )
        if read.direct:
            text = f"{context.scaler(site.function, site.node)}.get_scale()"
        else:
            on = all(creation.scales.value is True for creation in context.creations.values())
            segment = read.module.tree.segment
            key = "'scale'" if segment(read.node).endswith("']") else '"scale"'
            entry = f"[{key}]" if on or read.sets else f".get({key}, 1.0)"  # off, it has no state
            text = segment(read.owner) + entry
        edit = ReplaceExpression(read.module.tree.span(read.node), text)
        status = Status.MIGRATED if read.direct else Status.ROUTINE
        yield decision(RULE, status, read.module, read.node, f"becomes `{text}`", [edit])


def _conversions(context: Context, sites: list[Site], found: StateKeys) -> dict[Site, list[Edit]]:
    """Return the statements before calls that load, which convert what Apex wrote."""
    converted: dict[Site, list[Edit]] = {}
    if found.kept or not context.settings.resume_compat:
        return converted
    for site in sites:
        keys = found.own[site] if site.kind is Kind.LOAD_STATE_DICT else []
        if keys and not is_described(site):
            insert = conversion(context, site, keys, native_key(site.module.tree.segment(keys[0])))
            if insert is not None:
                converted[site] = [insert]
    return converted


def _old_checkpoints(
    context: Context, keys: StateKeys, converted: dict[Site, list[Edit]], *, empty: bool
) -> Iterator[Decision]:
    loads = list(context.unit.of(Kind.LOAD_STATE_DICT))
    loads = [site for site in loads if not (is_described(site) or _is_own(context, site))]
    loads += [
        passed.site for passed in context.unit.home.carriers.passed if _loads(context, passed)
    ]
    unread = [site for site in loads if site not in converted]
    if unread:
        site = unread[0]
        message = "checkpoints written under Apex hold the old `amp` state, which a GradScaler cannot load"
        advice = f"convert them once: {command(context, 'amp' if keys.kept else '')}"
        if keys.kept:
            message += "; the key stays, as not all that is saved and loaded can be followed"
        elif not context.settings.resume_compat:
            advice += " (or use --resume-compat)"
        if known := static(context):
            advice += f", {known}"
        if empty and is_saved_bare(context) and not all(map(is_asked, unread)):
            advice += "; load none that was saved with AMP off: it is empty, and a GradScaler that is on raises for it"
        yield decision(RULE, Status.NOTE, site.module, site.node, message, advice=advice)


def _is_own(context: Context, site: Site) -> bool:
    """Tell whether a call loads what the program itself saved just before, which no file holds."""
    given = site.call.args[0] if site.call.args else None
    saved = {other.node for other in context.unit.of(Kind.STATE_DICT)}
    if not isinstance(given, ast.Name):
        return given in saved
    values = list(values_of(site.module, given))
    return bool(values) and saved.issuperset(values)


def _loads(context: Context, passed: Passed) -> bool:
    """Tell whether a call takes `amp` by a keyword that is the key of its state in a checkpoint."""
    renamed = passed.keyword is not None and passed.keyword != context.unit.home.name
    return (
        renamed
        and not context.unit.home.carriers.receives(passed)
        and any(
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "load_state_dict"
            for function in context.unit.project.callees(passed.call)
            for node in function.own_nodes
        )
    )


def _site(
    context: Context, site: Site, found: StateKeys, renamed: set[ast.AST], more: list[Edit]
) -> Decision:
    scaler = context.scaler(site.function, site.node)
    name = "state_dict" if site.kind is Kind.STATE_DICT else "load_state_dict"
    edits: list[Edit] = [_call(context, site, scaler, name)]
    if is_described(site) and site.kind is Kind.LOAD_STATE_DICT:
        edits = _behind(site, scaler, found)
    else:
        edits += more
        edits += _renames(site, found.own[site], renamed) if not found.kept else ()
    return decision(
        RULE, Status.MIGRATED, site.module, site.node, f"becomes `{scaler}.{name}`", edits
    )


def _behind(site: Site, scaler: str, found: StateKeys) -> list[Edit]:
    """Load the state in a statement of its own, behind that of the optimizer on whose line it was described."""
    tree = site.module.tree
    block = tree.block(site.statement)
    before = block[block.index(site.statement) - 1]
    given = set(ast.walk(site.call.args[0]))
    keys = [] if found.kept else [key for key in found.own[site] if key in given]
    state = tree.segment(site.call.args[0], {k: native_key(tree.segment(k)) for k in keys})
    text = f"{scaler}.load_state_dict({state})"
    return [Insert(tree.span(before), text, after=True), Drop(tree.span(site.statement))]


def _renames(site: Site, keys: list[ast.Constant], renamed: set[ast.AST]) -> Iterator[Edit]:
    tree = site.module.tree
    keyword, call = keyword_of(site)
    if keyword and call is not None:
        yield RenameKeyword(tree.span(call), keyword, native_key(keyword))
    for node in keys:
        if node not in renamed:
            renamed.add(node)
            yield ReplaceExpression(tree.span(node), native_key(tree.segment(node)))


def _call(context: Context, site: Site, scaler: str, name: str) -> Edit:
    """Replace the function that is called; a conditional that only asks for Apex goes with it."""
    tree = site.module.tree
    choice = asked_beside(context, site)
    if choice is not None:
        context.unit.gone.update(ast.walk(choice))
        off = " if {0}.is_enabled() else None" if is_none_when_off(context, site) else ""
        return ReplaceExpression(tree.span(choice), f"{scaler}.{name}(){off.format(scaler)}")
    return ReplaceExpression(tree.span(site.call.func), f"{scaler}.{name}")
