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

from amp_migrate.dual.arms import Arm
from amp_migrate.dual.dual import Branch
from amp_migrate.dual.fallback import Fallback
from amp_migrate.dual.unreachable import Unreachable
from amp_migrate.plan.model import (
    Decision,
    Drop,
    DropElse,
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


def remove(branches: list[Branch]) -> Iterator[Decision]:
    """Remove the Apex branches of a unit."""
    for branch in branches:
        tree = branch.module.tree
        test = tree.segment(branch.node.test)
        for i, site in enumerate(branch.sites):
            edits = list(_edits(branch)) if i == 0 else []
            message = f"the Apex branch `{test}` goes; native AMP stands beside it"
            yield decision(RULE, Status.MIGRATED, site.module, site.node, message, edits)
        message = f"the Apex code under `{test}` goes, and such a run takes the way of all others"
        advice = "let scripts and option lists that choose Apex choose native AMP instead"
        if branch.loud:
            message = f"a run with `{test}` raises now, as Apex is gone"
        yield decision(RULE, Status.NOTE, branch.module, branch.node, message, advice=advice)


def fall_back(found: Fallback) -> Iterator[Decision]:
    """Remove what only ran where Apex was installed, from a program that falls back to native AMP."""
    edits: dict[Module, list[Edit]] = {}
    for module, test in _outermost(found):
        edits.setdefault(module, []).extend(_edits(Branch(module, test, (), False)))
    for module, definition in found.definitions:
        edits.setdefault(module, []).append(Drop(module.tree.span(definition)))
    for module, guard in found.guards:
        kept = "\n".join(f"{name} = False" for owner, name in found.flags if owner is module)
        span = module.tree.span(guard)
        edits.setdefault(module, []).append(Replace(span, kept) if kept else Drop(span))
    for module, statement, name in found.aliases:
        edits.setdefault(module, []).append(DropImportedName(module.tree.span(statement), (name,)))
    said: set[Module] = set()
    for site in found.sites:
        first = [] if site.module in said else edits.pop(site.module, [])
        said.add(site.module)
        message = "goes: the program falls back to native AMP where Apex is missing"
        yield decision(RULE, Status.MIGRATED, site.module, site.node, message, first)
    for module, more in edits.items():
        message = "imports what only served Apex"
        yield decision(RULE, Status.ROUTINE, module, module.tree.module.body[0], message, more)
    for module, test in _outermost(found):
        text = module.tree.segment(test.test)
        message = f"`{text}` is never true without Apex, and goes: such a run does what it did where Apex was missing"
        advice = "let scripts and option lists that choose Apex choose native AMP instead"
        yield decision(RULE, Status.NOTE, module, test, message, advice=advice)


def cut(found: Unreachable) -> Iterator[Decision]:
    """Remove what only runs under Apex from a program that has a native way, and let choosing Apex raise."""
    edits: dict[Module, list[Edit]] = {}
    for arm in _outermost_arms(found):
        edits.setdefault(arm.module, []).extend(_arm_edits(found, arm))
    for function in found.definitions:
        span = function.module.tree.span(function.scope)
        edits.setdefault(function.module, []).append(Drop(span))
    for cls in found.wrappers:
        edits.setdefault(cls.module, []).append(Drop(cls.module.tree.span(cls.node)))
    for module, guard in found.guards:
        edits.setdefault(module, []).append(Drop(module.tree.span(guard)))
    for module, statement, name in found.aliases:
        span = module.tree.span(statement)
        edits.setdefault(module, []).append(DropImportedName(span, (name,)))
    for site in found.sites:
        message = f"goes: {found.why}, and choosing Apex raises"
        first = edits.pop(site.module, [])
        yield decision(RULE, Status.MIGRATED, site.module, site.node, message, first)
    for module, more in edits.items():
        message = "what only served Apex goes"
        yield decision(RULE, Status.ROUTINE, module, module.tree.module.body[0], message, more)
    for arm in found.raising:
        text = arm.module.tree.segment(arm.node.test)
        advice = "let scripts and option lists that choose Apex choose native AMP instead"
        message = f"a run that chooses Apex by `{text}` raises now"
        yield decision(RULE, Status.NOTE, arm.module, arm.node, message, advice=advice)


def _outermost_arms(found: Unreachable) -> Iterator[Arm]:
    functions = {n for function in found.definitions for n in ast.walk(function.scope)}
    inner = {n for arm in found.arms for part in arm.parts() for n in ast.walk(part)}
    return (arm for arm in found.arms if arm.node not in functions | inner)


def _arm_edits(found: Unreachable, arm: Arm) -> Iterator[Edit]:
    tree = arm.module.tree
    kept = arm.kept()
    if kept is not None:
        yield ReplaceExpression(tree.span(arm.node), tree.segment(kept))
    elif isinstance(arm.node, ast.If):
        inner = {n for part in arm.parts() for n in ast.walk(part)}
        loud = any(other is arm or other.node in inner for other in found.raising)
        if arm.side == "body":
            yield from _edits(Branch(arm.module, arm.node, (), loud))
        elif loud:
            yield Replace(tree.span(arm.node.orelse[0]), _RAISE)
            for stmt in arm.node.orelse[1:]:
                yield Drop(tree.span(stmt))
        else:
            yield DropElse(tree.span(arm.node))


def _outermost(found: Fallback) -> Iterator[tuple[Module, ast.If]]:
    others = {n for _, node in found.definitions for n in ast.walk(node)}
    inner = {n for _, test in found.tests for stmt in test.body for n in ast.walk(stmt)}
    for module, test in found.tests:
        if test not in others | inner:
            yield module, test


def _edits(branch: Branch) -> Iterator[Edit]:
    tree = branch.module.tree
    span = tree.span(branch.node)
    if branch.loud:
        body = branch.node.body
        yield Replace(tree.span(body[0]), _RAISE)
        for stmt in body[1:]:
            yield Drop(tree.span(stmt))
    elif branch.node.orelse:
        yield Hoist(span, "orelse")
    elif _is_elif(branch):
        yield DropElse(tree.span(tree.parents[branch.node]))
    else:
        yield Drop(span)


def _is_elif(branch: Branch) -> bool:
    up = branch.module.tree.parents[branch.node]
    return isinstance(up, ast.If) and up.orelse == [branch.node]
