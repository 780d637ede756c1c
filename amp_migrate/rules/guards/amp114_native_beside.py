"""An Apex branch beside a native one goes.

## What it does
Where a program chooses between Apex and native AMP, removes the Apex branches and leaves the native ones as they
are. If the choice of Apex would otherwise go unnoticed, its branch raises an error that says what to choose.

The Apex code need not stand in an `else` of the native one. Whatever uses Apex fails in a run that did not
initialize it; so once the branch that initializes raises, no run reaches the other branches, functions and tests
that use it. They go, wherever they stand, where each `scale_loss` has native AMP beside it. So does what a class
adds to an engine of DeepSpeed, which initializes Apex itself and raises without it.

## Why
The native branch is the migration: rewriting the Apex branch would write it twice.

## Example
    if backend == "native":
        scaler = torch.cuda.amp.GradScaler()
    elif backend == "apex":
        model, optimizer = amp.initialize(model, optimizer)

## Use instead
    if backend == "native":
        scaler = torch.cuda.amp.GradScaler()
    elif backend == "apex":
        raise RuntimeError("NVIDIA Apex AMP no longer exists: choose native AMP")

## Safety
Faithful for the native setting. Runs that chose Apex have to choose native; a finding names the test.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.sites import MARKS
from amp_migrate.dual.arms import Arm
from amp_migrate.dual.cut import Cut, imports_instead
from amp_migrate.facts.constants import string
from amp_migrate.facts.paths import defs, path
from amp_migrate.facts.tree import Tree
from amp_migrate.plan.cannot import place_of
from amp_migrate.plan.model import (
    Decision,
    Drop,
    DropBlock,
    DropImportedName,
    Edit,
    Hoist,
    Replace,
    ReplaceExpression,
    Status,
)
from amp_migrate.project import Module
from amp_migrate.rules.base import Rule, Safety, decision

RULE = Rule("AMP114", "an Apex branch beside a native one goes", Safety.FAITHFUL)

_RAISE = 'raise RuntimeError("NVIDIA Apex AMP no longer exists: choose native AMP")'


def cut(found: Cut) -> Iterator[Decision]:
    """Remove what only runs under Apex from a program that has a way without it."""
    edits: dict[Module, list[Edit]] = {}
    for arm in found.outermost():
        edits.setdefault(arm.module, []).extend(_arm_edits(found, arm))
    for module, tried, number in found.tries:
        span = module.tree.span(tried)
        edits.setdefault(module, []).append(Hoist(span, f"handlers[{number}]"))
    for module, node in found.definitions:
        edits.setdefault(module, []).append(Drop(module.tree.span(node)))
    for module, guard in found.guards:
        edits.setdefault(module, []).extend(_guard_edits(found, module, guard))
    for module, test, text in found.tests:
        edits.setdefault(module, []).append(ReplaceExpression(module.tree.span(test), text))
    for module, statement, name in found.aliases:
        span = module.tree.span(statement)
        edits.setdefault(module, []).append(DropImportedName(span, (name,)))
    for site in found.sites:
        first = edits.pop(site.module, [])
        yield decision(RULE, Status.MIGRATED, site.module, site.node, f"goes: {found.why}", first)
    for module, more in edits.items():
        message = "what only served Apex goes"
        yield decision(RULE, Status.ROUTINE, module, module.tree.module.body[0], message, more)
    yield from _notes(found)
    yield from _never(found)


def _never(found: Cut) -> Iterator[Decision]:
    """Tell which tests look for what a guard put into a collection where Apex was there, and find it no more."""
    gone = found.nodes()
    for module, guard in found.guards:
        put = {(module.scopes.owner(name), name.id, key) for name, key in _put(guard)}
        for test in module.tree.nodes(ast.Compare):
            key, held = test.left, test.comparators[0]
            if not isinstance(key, ast.Constant) or not isinstance(held, ast.Name) or test in gone:
                continue
            if (module.scopes.owner(held), held.id, key.value) in put:
                text = module.tree.segment(test)
                message = f"`{text}` comes out the same in every run, as Apex is gone"
                advice = "ask for native AMP instead, or delete what only ran with Apex"
                yield decision(RULE, Status.NOTE, module, test, message, advice=advice)


def _put(guard: ast.Try) -> Iterator[tuple[ast.Name, object]]:
    """Yield the collections that a guard puts a constant into, and that constant."""
    for call in (n for stmt in (*guard.body, *guard.orelse) for n in ast.walk(stmt)):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args:
            held, given = call.func.value, call.args[-1]
            if isinstance(held, ast.Name) and isinstance(given, ast.Constant):
                yield held, given.value


def _asked(arm: Arm) -> str:
    """Return what a test asks for beside the marks that Apex left on what it initialized, which nothing has any more."""
    tree, test = arm.module.tree, arm.node.test
    if arm.side == "body" and isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        kept = [part for part in test.values if not _asks_for_mark(part)]
        if kept and len(kept) < len(test.values):
            return " and ".join(map(tree.segment, kept))
    return tree.segment(test)


def _asks_for_mark(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call) or path(node.func) != "hasattr" or len(node.args) != 2:
        return False
    return string(node.args[1]) in MARKS


def _notes(found: Cut) -> Iterator[Decision]:
    """Tell what becomes of runs that choose Apex."""
    loud = dict.fromkeys(found.raising, "raises now, as Apex is gone")
    chosen = [arm for arm in found.outermost() if arm not in found.along]
    quiet = {} if loud else {arm: _becomes(found, arm) for arm in chosen}
    for arm, what in (loud or quiet).items():
        text = _asked(arm) if arm in loud else arm.module.tree.segment(arm.node.test)
        advice = ""
        if arm in loud or _asks_more(found, arm):
            advice = "let scripts and option lists that choose Apex choose native AMP instead"
        having = "with" if arm.side == "body" else "without"
        subject = f"`{text}`" if arm.side == "body" else f"the opposite of `{text}`"
        message = f"a run {having} `{text}` {what}" if arm in loud else f"{subject} {what}"
        yield decision(RULE, Status.NOTE, arm.module, arm.node, message, advice=advice)


def _becomes(found: Cut, arm: Arm) -> str:
    """Return what becomes of a run that took an arm in silence: it ends in the error of another choice, there or elsewhere."""
    if arm in found.noticed or not found.noticed:
        return found.behind
    ends = found.noticed[0]
    place = place_of(ends.module, ends.node)
    return f"goes: a run that initializes Apex ends in the error behind {place}, and what comes here otherwise goes on without AMP"


def _asks_more(found: Cut, arm: Arm) -> bool:
    """Tell whether a test asks for more than whether Apex is there, or which torch: for what somebody chose."""
    flags = {name for owner, name in found.flags if owner is arm.module}
    names = (n for n in ast.walk(arm.node.test) if isinstance(n, ast.Name) and n.id not in flags)
    return not all(
        bindings and all(isinstance(b, ast.alias) for b in bindings)
        for bindings in map(arm.module.scopes.bound, names)
    )


def _guard_edits(found: Cut, module: Module, guard: ast.Try) -> Iterator[Edit]:
    """Leave the flags that are read, and what is imported instead of Apex."""
    tree, flags = module.tree, [name for owner, name in found.flags if owner is module]
    imports = imports_instead(guard)
    if not imports:
        kept = "\n".join(f"{name} = False" for name in flags)
        yield Replace(tree.span(guard), kept) if kept else Drop(tree.span(guard))
        return
    yield Hoist(tree.span(guard), "handlers[0]")
    for stmt in guard.handlers[0].body:
        if stmt not in imports and not defs(stmt) & set(flags):
            yield Drop(tree.span(stmt))


def _arm_edits(found: Cut, arm: Arm) -> Iterator[Edit]:
    tree = arm.module.tree
    kept = arm.kept()
    if kept is not None:
        yield ReplaceExpression(tree.span(arm.node), tree.segment(kept))
    elif isinstance(arm.node, ast.If):
        inner = {n for part in arm.parts() for n in ast.walk(part)}
        if any(other is arm or other.node in inner for other in found.raising):
            body = arm.node.body if arm.side == "body" else arm.node.orelse
            yield Replace(tree.span(body[0]), _RAISE)
            for stmt in body[1:]:
                yield Drop(tree.span(stmt))
            if (asked := _asked(arm)) != tree.segment(arm.node.test):
                yield ReplaceExpression(tree.span(arm.node.test), asked)
        elif arm.node.orelse or arm.side == "orelse":
            yield Hoist(tree.span(arm.node), "orelse" if arm.side == "body" else "body")
        elif _is_elif(tree, arm.node):
            yield DropBlock(tree.span(tree.parents[arm.node]))
        else:
            yield Drop(tree.span(arm.node))


def _is_elif(tree: Tree, node: ast.If) -> bool:
    up = tree.parents[node]
    return isinstance(up, ast.If) and up.orelse == [node]
