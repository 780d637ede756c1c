"""Checkpoints carry the state of the GradScaler.

## What it does
`amp.state_dict()` becomes `scaler.state_dict()`, `amp.load_state_dict(x)` becomes
`scaler.load_state_dict(x)`, and the key `'amp'` of the checkpoint becomes `'scaler'`.

## Why
The loss scale is state: without it a resumed run starts again at 65536 and skips its first steps. The key
changes because Apex wrote another format under the old one.

## Example
    checkpoint = {'model': model.state_dict(), 'amp': amp.state_dict()}

## Use instead
    checkpoint = {'model': model.state_dict(), 'scaler': scaler.state_dict()}

## Safety
Faithful for new checkpoints. Those written under Apex are converted by `amp-migrate convert-checkpoint`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import root
from amp_migrate.plan import Decision, Edit, RenameKeyword, ReplaceExpression, Status
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.rules.resume import conversion
from amp_migrate.unit.sites import Kind, Site

RULE = Rule("AMP108", "checkpoints carry the GradScaler's state", Safety.FAITHFUL)


def decide(context: Context) -> Iterator[Decision]:
    """Rewrite the state_dict and load_state_dict sites of the unit."""
    renamed: set[ast.AST] = set()
    for site in context.unit.of(Kind.STATE_DICT, Kind.LOAD_STATE_DICT):
        if context.is_gone(site.node):
            yield decision(RULE, Status.MIGRATED, site.module, site.node, "goes with its branch")
            continue
        yield _site(context, site, renamed)
    loads = list(context.unit.of(Kind.LOAD_STATE_DICT))
    if loads and not context.settings.resume_compat:
        site = loads[0]
        message = "checkpoints written under Apex hold the old `amp` state, which a GradScaler cannot load"
        advice = "convert them once: amp-migrate convert-checkpoint old.pt new.pt (or use --resume-compat)"
        yield decision(RULE, Status.NOTE, site.module, site.node, message, advice=advice)


def _site(context: Context, site: Site, renamed: set[ast.AST]) -> Decision:
    tree = site.module.tree
    scaler = context.scaler(site.function, site.node)
    name = "state_dict" if site.kind is Kind.STATE_DICT else "load_state_dict"
    edits: list[Edit] = [_call(context, site, f"{scaler}.{name}")]
    keyword, call = _keyword(tree.parents, site.node)
    if keyword and call is not None:
        edits.append(RenameKeyword(tree.span(call), keyword, _key(keyword)))
    keys = _keys(site)
    if context.settings.resume_compat and site.kind is Kind.LOAD_STATE_DICT and keys:
        converted = conversion(site, keys, _key(tree.segment(keys[0])))
        edits += [converted] if converted is not None else []
    for node in keys:
        if node not in renamed:
            renamed.add(node)
            edits.append(ReplaceExpression(tree.span(node), _key(tree.segment(node))))
    return decision(
        RULE, Status.MIGRATED, site.module, site.node, f"becomes `{scaler}.{name}`", edits
    )


def _call(context: Context, site: Site, native: str) -> Edit:
    """Replace the function that is called; a conditional that only asks for Apex goes with it."""
    tree = site.module.tree
    parent = tree.parent(site.node)
    if isinstance(parent, ast.IfExp) and parent.body is site.node and not site.call.args:
        if context.unit.availability[site.module].known(parent.test):
            context.gone_nodes.update(ast.walk(parent))
            return ReplaceExpression(tree.span(parent), f"{native}()")
    return ReplaceExpression(tree.span(site.call.func), native)


def _keyword(parents: dict[ast.AST, ast.AST], node: ast.AST) -> tuple[str, ast.Call | None]:
    """Return the keyword that names the state in ``dict(amp=amp.state_dict())``, with its call."""
    up = parents.get(node)
    while isinstance(up, ast.IfExp):
        up = parents.get(up)
    if (
        not isinstance(up, ast.keyword)
        or up.arg is None
        or not ("amp" in up.arg or "apex" in up.arg)
    ):
        return "", None
    call = parents[up]
    made = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "dict"
    return (up.arg, call) if made and isinstance(call, ast.Call) else ("", None)


def _key(text: str) -> str:
    """Return the string literal of a checkpoint key with `amp` (or `apex`) in it spelt `scaler`."""
    return text.replace("apex_amp", "scaler").replace("amp", "scaler").replace("apex", "scaler")


def _keys(site: Site) -> list[ast.Constant]:
    """Return the string constants that name the state in its checkpoint, all over the function."""
    tree = site.module.tree
    if site.kind is Kind.STATE_DICT:
        key, owner = _saved_under(tree.parents, site.node)
    else:
        key, owner = _loaded_from(site.call)
    if (
        key is None
        or not isinstance(key.value, str)
        or not ("amp" in key.value or "apex" in key.value)
    ):
        return []
    found = [key]
    if owner is not None:
        for node in ast.walk(site.function.scope):
            if (
                isinstance(node, ast.Constant)
                and node.value == key.value
                and _keyed(tree.parents, node, owner)
            ):
                found.append(node)
    return list(dict.fromkeys(found))


def _saved_under(
    parents: dict[ast.AST, ast.AST], node: ast.AST
) -> tuple[ast.Constant | None, str | None]:
    up = parents.get(node)
    while isinstance(up, ast.IfExp):
        node, up = up, parents.get(up)
    if isinstance(up, ast.Dict):
        for key, value in zip(up.keys, up.values, strict=True):
            if value is node and isinstance(key, ast.Constant):
                return key, None
    if isinstance(up, ast.Assign) and len(up.targets) == 1:
        target = up.targets[0]
        if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            return target.slice, root(target)
    return None, None


def _loaded_from(call: ast.Call) -> tuple[ast.Constant | None, str | None]:
    argument = call.args[0] if call.args else None
    if isinstance(argument, ast.Subscript) and isinstance(argument.slice, ast.Constant):
        return argument.slice, root(argument)
    if (
        isinstance(argument, ast.Call)
        and argument.args
        and isinstance(argument.args[0], ast.Constant)
    ):
        return argument.args[0], root(argument)
    return None, None


def _keyed(parents: dict[ast.AST, ast.AST], node: ast.Constant, owner: str) -> bool:
    """Tell whether a string is used as a key of the checkpoint `owner`."""
    up = parents.get(node)
    if isinstance(up, ast.Subscript):
        return root(up) == owner
    if isinstance(up, ast.Compare):
        return any(root(c.func.value if _keys_call(c) else c) == owner for c in up.comparators)  # type: ignore[attr-defined]
    if (
        isinstance(up, ast.Call)
        and isinstance(up.func, ast.Attribute)
        and up.func.attr in ("get", "pop")
    ):
        return root(up.func.value) == owner
    return False


def _keys_call(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "keys"
    )
