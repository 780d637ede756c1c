"""Where `amp` itself was passed along, the GradScaler is.

## What it does
A parameter that received `amp` becomes `scaler` and receives the GradScaler; `args.amp = amp` becomes
`args.scaler = scaler`. Where a constructor sets the attribute to None until `amp` is stored in it, it makes a
disabled GradScaler, and tests that stay ask `is_enabled()`.

## Why
The code already has a way for the AMP state to travel; the scaler takes it.

## Example
    # engine.py
    def backward(loss, optimizer, amp):
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()

    # main.py
    backward(loss, optimizer, amp)

## Use instead
    # engine.py
    def backward(loss, optimizer, scaler):
        scaler.scale(loss).backward()

    # main.py
    backward(loss, optimizer, scaler)

## Safety
Faithful.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.emptied import Empty, asked, test_of
from amp_migrate.apex.sites import HANDED_ON, Kind, Site
from amp_migrate.placement.making.stored import kept_guards, made_at
from amp_migrate.placement.unscaling.parameters import replaced_parameters
from amp_migrate.plan.model import (
    AddArgument,
    Decision,
    Drop,
    Edit,
    Insert,
    RenameKeyword,
    RenameParameter,
    Replace,
    ReplaceExpression,
    Status,
)
from amp_migrate.project import Function
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.rules.calls.scaler_made import made_after
from amp_migrate.rules.carrying.state_keys import native_key
from amp_migrate.scaler.routes.carriers import Entry, Passed, Stored
from amp_migrate.scaler.routes.tested import Blank, Tested

RULE = Rule("AMP117", "the GradScaler travels where amp travelled", Safety.FAITHFUL, order=11)


def decide(context: Context) -> Iterator[Decision]:
    """Rename what carried `amp`, and hand the scaler on in its place."""
    carriers = context.unit.home.carriers
    for function, old in carriers.parameters.items():
        yield _parameter(context, function, old)
    for passed in carriers.passed:
        if not carriers.receives(passed) and not context.is_gone(passed.call):
            yield _passed(context, passed)
    for entry in carriers.entries:
        if not context.is_gone(entry.site.node):
            yield _entry(context, entry)
    for site in carriers.published:
        edits: list[Edit] = [Drop(site.module.tree.span(site.statement))]
        message = "goes with the import that it shared with other functions"
        yield decision(RULE, Status.MIGRATED, site.module, site.node, message, edits)
    for stored in carriers.stored:
        if not context.is_gone(stored.statement):
            yield _stored(context, stored)
    for empty in carriers.empty:
        yield _empty(context, empty)
    for item in carriers.tested:
        decided = _asked(context, item) if isinstance(item, Tested) else _blank(context, item)
        if decided is not None:
            yield decided


def _asked(context: Context, item: Tested) -> Decision | None:
    """A test whether an attribute holds amp asks whether the scaler in its place is enabled."""
    module, function = item.module, context.unit.project.function_of(item.module, item.test)
    if _is_asked_no_more(context, function, item.test):
        return None
    owner = module.tree.segment(item.attribute.value)
    enabled = f"{owner}.{context.unit.home.name}.is_enabled()"
    text = enabled if item.positive else f"not {enabled}"
    edit = ReplaceExpression(module.tree.span(item.test), text)
    return decision(RULE, Status.ROUTINE, module, item.test, f"becomes `{text}`", [edit])


def _blank(context: Context, item: Blank) -> Decision:
    """What was None for a whole class is a disabled scaler."""
    text = f"{context.unit.home.name} = {context.spelling.scaler(['enabled=False'])}"
    edit = Replace(item.module.tree.span(item.statement), text)
    message = f"becomes `{text}`, which passes everything through"
    return decision(RULE, Status.ROUTINE, item.module, item.statement, message, [edit])


def _empty(context: Context, empty: Empty) -> Decision:
    """What was None where AMP is off is a disabled scaler; one constructor may make it already."""
    home = context.unit.home
    module, stmt = empty.function.module, empty.statement
    attribute, disabled = home.attribute(empty.function), context.spelling.scaler(["enabled=False"])
    text = f"{attribute} = {disabled}"
    made = any(home.is_attribute(function) for function in home.inits)
    span = module.tree.span
    edits: list[Edit] = [Drop(span(stmt)) if made else Replace(span(stmt), text)]
    if not empty.is_alone:  # None is as good as nothing where the scaler has another name
        parts = ((empty.target, attribute), (empty.value, disabled))
        edits = [] if made else [ReplaceExpression(span(part), new) for part, new in parts]
    message = f"becomes `{text}`, which passes everything through"
    result = decision(RULE, Status.ROUTINE, module, stmt, message, edits)
    for function, test, positive in asked(context.unit.project, empty):
        if not _is_asked_no_more(context, function, test):
            enabled = f"{context.scaler(function, test)}.is_enabled()"
            edit = ReplaceExpression(
                function.module.tree.span(test), enabled if positive else f"not {enabled}"
            )
            result.edits.append((function.module.path, edit))
    return result


def _passed(context: Context, passed: Passed) -> Decision:
    """A call that takes `amp` among ``**kwargs`` gets the scaler, under its own name."""
    site, tree = passed.site, passed.site.module.tree
    scaler = context.scaler(site.function, passed.call)
    edits: list[Edit] = [ReplaceExpression(site.span, scaler)]
    name = context.unit.home.name
    if passed.keyword is not None and passed.keyword != name:
        edits.append(RenameKeyword(tree.span(passed.call), passed.keyword, name))
    return decision(RULE, Status.MIGRATED, site.module, site.node, f"passes `{scaler}` on", edits)


def _entry(context: Context, entry: Entry) -> Decision:
    """What a checkpoint saves by its name is the scaler, under a key that no old file has."""
    site, tree = entry.site, entry.site.module.tree
    scaler = context.scaler(site.function, site.node)
    edits: list[Edit] = [ReplaceExpression(site.span, scaler)]
    if entry.key is not None and entry.key.value == "amp":
        key = native_key(tree.segment(entry.key))
        edits.append(ReplaceExpression(tree.span(entry.key), key))
    keyword = _collected(context, site)
    if keyword is not None and keyword[1] != context.unit.home.name:
        edits.append(RenameKeyword(tree.span(keyword[0]), keyword[1], context.unit.home.name))
    message = f"keeps `{scaler}` beside what is saved"
    return decision(RULE, Status.MIGRATED, site.module, site.node, message, edits)


def _collected(context: Context, site: Site) -> tuple[ast.Call, str] | None:
    """Return the call that collects amp, or None in its place, by a keyword in its ``**kwargs``: ``restore(amp=amp if on else None)``."""
    parents = site.module.tree.parents
    up = parents.get(site.node)
    while isinstance(up, ast.IfExp):
        up = parents.get(up)
    call = parents.get(up) if isinstance(up, ast.keyword) else None
    if not isinstance(up, ast.keyword) or up.arg is None or not isinstance(call, ast.Call):
        return None
    callees = context.unit.project.callees(call)
    collects = bool(callees) and all(
        f.parameters.kwarg and up.arg not in f.parameters.names for f in callees
    )
    return (call, up.arg) if collects else None


def _parameter(context: Context, function: Function, old: str) -> Decision:
    home = context.unit.home
    tree = function.module.tree
    result = decision(
        RULE,
        Status.ROUTINE,
        function.module,
        function.scope if function.node is not None else tree.module.body[0],
        f"parameter `{old}` of {function.qualname}() becomes `{home.name}`",
    )
    for member in home.project.family(function):
        if member.node is not None and old in member.parameters.names:
            edit: Edit = RenameParameter(member.module.tree.span(member.node), old, home.name)
            result.edits.append((member.module.path, edit))
            result.edits += [(member.module.path, e) for e in _uses(context, member, old)]
    for site, giver, given in home.carriers.calls(function):
        caller = site.function
        path, spans = caller.module.path, caller.module.tree.span
        if given is not None and home.project.external(giver.module, given) in HANDED_ON:
            text = context.scaler(giver, site.call if giver is caller else given)
            tree = giver.module.tree
            if text != tree.segment(given) and not _renamed(context, giver, given):
                result.edits.append((giver.module.path, ReplaceExpression(tree.span(given), text)))
        if old != home.name and any(k.arg == old for k in site.call.keywords):
            result.edits.append((path, RenameKeyword(spans(site.call), old, home.name)))
    for site, none in home.carriers.switched_off(function):
        disabled = context.spelling.scaler(["enabled=False"])
        spans = site.function.module.tree.span
        off: Edit = AddArgument(spans(site.call), disabled, home.name)
        if none is not None:
            off = ReplaceExpression(spans(none), disabled)
        result.edits.append((site.function.module.path, off))
    return result


def _renamed(context: Context, caller: Function, node: ast.expr) -> bool:
    """Tell whether an argument is a parameter of the caller that is renamed itself."""
    return (
        isinstance(node, ast.Name) and context.unit.home.carriers.parameters.get(caller) == node.id
    )


def _uses(context: Context, function: Function, old: str) -> Iterator[Edit]:
    """Rename the plain uses of the parameter: tests, and the places that hand it on."""
    handled = {
        part
        for site in context.unit.sites
        if site.module is function.module and site.kind is not Kind.VALUE
        for part in ast.walk(site.node)
    }
    stored = (stored.statement for stored in context.unit.home.carriers.stored)
    handled |= {part for statement in stored for part in ast.walk(statement)}
    scopes = function.module.scopes
    for node in function.all_nodes:
        if (
            isinstance(node, ast.Name)
            and node.id == old
            and scopes.owner(node) is function.scope
            and node not in handled
            and not context.is_gone(node)
        ):
            if not _is_asked_no_more(context, function, node):
                yield _renamed_use(context, function, node)


def _renamed_use(context: Context, function: Function, node: ast.Name) -> Edit:
    """Rename a use; a test asks `is_enabled()` where the scaler that comes may be a disabled one instead of None."""
    home, tree = context.unit.home, function.module.tree
    asked = test_of(tree, node) if home.carriers.sometimes or home.carriers.empty else None
    if asked is None:
        return ReplaceExpression(tree.span(node), home.name)
    test, positive = asked
    enabled = f"{home.name}.is_enabled()"
    return ReplaceExpression(tree.span(test), enabled if positive else f"not {enabled}")


def _is_asked_no_more(context: Context, function: Function, test: ast.AST) -> bool:
    """Tell whether a test goes with its branch, or with the choice between parameters that are the same now."""
    chosen = (
        replaced_parameters(context.unit, site)[1] for site in context.unit.of(Kind.MASTER_PARAMS)
    )
    return (
        context.is_gone(test)
        or _in_collapsed_test(context, function, test)
        or any(isinstance(c, ast.IfExp) and test in ast.walk(c.test) for c in chosen)
    )


def _in_collapsed_test(context: Context, function: Function, node: ast.AST) -> bool:
    folded = set(context.branches.collapses)
    for up in function.module.tree.ancestors(node):
        if isinstance(up, ast.If) and up in folded and any(n is node for n in ast.walk(up.test)):
            return True
    return False


def _stored(context: Context, stored: Stored) -> Decision:
    home = context.unit.home
    site, tree = stored.site, stored.site.module.tree
    span = tree.span(stored.statement)
    edits: list[Edit]
    inits = home.inits.get(site.function, [])
    scaler = context.scaler(site.function, made_at(stored, inits))
    text = f"{stored.owner}.{home.name} = {scaler}"
    if scaler == f"{stored.owner}.{home.name}":
        edits = [Drop(span)]
    elif inits and inits[0] in context.creations:
        creation = context.creations[inits[0]]
        after = not creation.climbed or made_after(context, inits[0], creation)
        for test in kept_guards(context.unit.project, stored, creation):
            text = f"if {test}:\n    " + text.replace("\n", "\n    ")
        edits = [Drop(span), Insert(tree.span(creation.top), text, after=after)]
    else:
        edits = [Replace(span, text)]
    return decision(RULE, Status.MIGRATED, site.module, site.node, f"becomes `{text}`", edits)
