"""A use of `amp`, or of `apex.amp`, in a file, or a function, that does not import it becomes native like the rest of its program.

## What it does
Where an optimizer is initialized by Apex and `scale_loss` is called for it where nothing binds `amp`, the call is
migrated as if Apex were imported there. So is an `apex.amp.initialize` that nothing binds itself.

## Why
`from apex import amp` inside one function binds the name in that function alone: in another method or file
`amp.scale_loss(...)` raises NameError as soon as it runs, often only with `--fp16`. The optimizer tells which
`amp` was meant.

## Example
    class Trainer:
        def __init__(self, model, optimizer):
            from apex import amp

            self.model, self.optimizer = amp.initialize(model, optimizer)

        def step(self, loss):
            with amp.scale_loss(loss, self.optimizer) as scaled_loss:
                scaled_loss.backward()
            self.optimizer.step()

## Use instead
    class Trainer:
        def __init__(self, model, optimizer):
            self.model, self.optimizer = model, optimizer
            self.scaler = torch.cuda.amp.GradScaler()

        def step(self, loss):
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()

## Safety
Changes behaviour: what raised NameError trains with AMP, as the rest of the program asked for. Runs without AMP
train as before. An `amp` whose optimizer no `amp.initialize` of the files given got stays as it is, with AMP308.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.sites import Site
from amp_migrate.facts.paths import root
from amp_migrate.placement.finding.forgotten import is_forgotten
from amp_migrate.plan.model import Decision, Insert, Status
from amp_migrate.project.order import dominates
from amp_migrate.rules.base import Context, Rule, Safety, decision

RULE = Rule(
    "AMP213", "amp is used where nothing imports it, on what Apex initialized", Safety.CHANGES
)


def decide(context: Context) -> Iterator[Decision]:
    """Report the uses of amp that raised NameError; the other rules migrate them."""
    for site in _uses(context):
        message = f"nothing in this file defines `{_name(site)}`, so this raised NameError; it trains with AMP"
        yield decision(RULE, Status.FIXED, site.module, site.node, message)


def decide_in_apex(context: Context) -> Iterator[Decision]:
    """Import amp, or Apex, in front of its uses."""
    imported: list[ast.stmt] = []
    for site in sorted(_uses(context), key=lambda site: site.span):
        tree, stmt = site.module.tree, site.statement
        edits = []
        earlier = [before for before in imported if before in tree.parents]
        same = any(tree.function(before) is tree.function(stmt) for before in earlier)
        if not any(dominates(tree, before, stmt) for before in earlier) and not (
            same and _is_an_arm(site)
        ):
            imported.append(stmt)
            statement = "import apex" if _name(site) == "apex" else "from apex import amp"
            edits = [Insert(tree.span(stmt), statement, after=False)]
        message = f"nothing in this file defines `{_name(site)}`, so this raised NameError; it is imported"
        yield decision(RULE, Status.FIXED, site.module, site.node, message, edits)


def _is_an_arm(site: Site) -> bool:
    """Tell whether a use is what a conditional expression gives under a flag, which the import stands under as well."""
    up = site.module.tree.parent(site.node)
    return isinstance(up, ast.IfExp) and up.test is not site.node


def _name(site: Site) -> str | None:
    func = site.node.func if isinstance(site.node, ast.Call) else site.node
    return root(func)


def _uses(context: Context) -> Iterator[Site]:
    return (site for site in context.unit.sites if is_forgotten(site))
