"""A model that was wrapped before `amp.initialize` is reported.

## What it does
Nothing is changed. A finding names the call.

## Why
Apex refused a model that was already in DistributedDataParallel or DataParallel; natively the order is free.

## Example
    model = DistributedDataParallel(model)
    model, optimizer = amp.initialize(model, optimizer)

## Use instead
    model = DistributedDataParallel(model)
    scaler = torch.cuda.amp.GradScaler()

## Safety
Report only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.apart import elements
from amp_migrate.apex.sites import Kind, Site
from amp_migrate.facts.paths import path, tail
from amp_migrate.placement.finding.forgotten import is_described
from amp_migrate.plan.model import Decision, Status
from amp_migrate.project.order import dominates
from amp_migrate.rules.base import Context, Rule, Safety, decision

RULE = Rule("AMP211", "the model was wrapped before amp.initialize", Safety.REPORT, order=95)


def decide(context: Context) -> Iterator[Decision]:
    """Report models that an initialize got already wrapped."""
    if not context.settings.enabled(RULE.code):
        return
    for site in context.unit.of(Kind.INITIALIZE):
        if is_described(site):
            continue
        models = context.unit.options[site].arguments.get("models")
        for stmt in _wraps(site, {path(m) for m in elements(models)}):
            message = "the model is wrapped before initialize, which Apex refused; natively the order is free"
            yield decision(RULE, Status.NOTE, site.module, stmt, message)


def _wraps(site: Site, names: set[str | None]) -> Iterator[ast.stmt]:
    tree = site.module.tree
    for node in tree.nodes(ast.Assign):
        call = node.value
        if tree.scope(node) is not tree.scope(site.node) or not isinstance(call, ast.Call):
            continue
        if tail(call) in ("DistributedDataParallel", "DDP", "DataParallel") and dominates(
            tree, node, site.node
        ):
            if any(path(target) in names for target in node.targets):
                yield node
