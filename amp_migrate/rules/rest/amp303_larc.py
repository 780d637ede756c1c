"""`apex.parallel.LARC` is brought along.

## What it does
Writes the class into the file that imports it, in the place of the import. The other files of a folder import it from
the first one where that is how they import.

## Why
`apex.parallel`, and LARC with it, was removed from Apex in May 2025, and torch has nothing like it.

## Example
    from apex.parallel.LARC import LARC
    optimizer = LARC(torch.optim.SGD(model.parameters(), lr=4.8), trust_coefficient=0.001, clip=False)

## Use instead
    class LARC:
        ...  # about sixty lines

    optimizer = LARC(torch.optim.SGD(model.parameters(), lr=4.8), trust_coefficient=0.001, clip=False)

## Safety
Faithful: `scaler.step(optimizer)` takes the same steps as Apex did, bit for bit. Where the class is reached in another
way than by an import, or is compared in several files, each use gets a finding.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.sites import Site
from amp_migrate.plan.model import Decision, Edit, ReplaceExpression, Status
from amp_migrate.project import Module
from amp_migrate.rules.base import FileContext, Rule, Safety, decision
from amp_migrate.rules.definitions import above, is_free
from amp_migrate.rules.rest.found.calls import call_of
from amp_migrate.rules.rest.found.uses import ORDER, is_skipped, is_variable, origin, uses

RULE = Rule("AMP303", "Apex's LARC is brought along", Safety.FAITHFUL, order=ORDER)

APEX = "apex.parallel.LARC"
_NAME = "LARC"
_ADVICE = (
    "copy the class from apex/parallel/LARC.py of Apex 25.04 (BSD license) into the project and "
    "import it from there; scaler.step() works with it, learning rate schedulers need its `.optim`"
)
_TEXT = '''\
class LARC:
    """Layer-wise adaptive rate control (https://arxiv.org/abs/1708.03888) around an optimizer."""

    def __init__(self, optimizer, trust_coefficient=0.02, clip=True, eps=1e-8):
        self.optim = optimizer
        self.trust_coefficient = trust_coefficient
        self.clip = clip
        self.eps = eps

    @property
    def state(self):
        return self.optim.state

    @property
    def param_groups(self):
        return self.optim.param_groups

    @param_groups.setter
    def param_groups(self, value):
        self.optim.param_groups = value

    def __repr__(self):
        return repr(self.optim)

    def state_dict(self):
        return self.optim.state_dict()

    def load_state_dict(self, state_dict):
        self.optim.load_state_dict(state_dict)

    def zero_grad(self):
        self.optim.zero_grad()

    def add_param_group(self, param_group):
        self.optim.add_param_group(param_group)

    @torch.no_grad()
    def step(self):
        weight_decays = [group.get("weight_decay", 0) for group in self.optim.param_groups]
        for group, weight_decay in zip(self.optim.param_groups, weight_decays):
            group["weight_decay"] = 0  # it is part of the gradient below
            for p in group["params"]:
                if p.grad is not None:
                    self._rescale(p, group["lr"], weight_decay)
        self.optim.step()
        for group, weight_decay in zip(self.optim.param_groups, weight_decays):
            group["weight_decay"] = weight_decay

    def _rescale(self, p, lr, weight_decay):
        param_norm = torch.norm(p.data)
        grad_norm = torch.norm(p.grad.data)
        if param_norm == 0 or grad_norm == 0:
            return
        total_norm = grad_norm + param_norm * weight_decay + self.eps
        rate = self.trust_coefficient * param_norm / total_norm
        if self.clip:
            rate = min(rate / lr, 1)
        p.grad.data += weight_decay * p.data
        p.grad.data *= rate'''


def decide_file(context: FileContext) -> Iterator[Decision]:
    """Write LARC into one file that uses it, or report the uses."""
    sites = uses(context, APEX) if context.settings.enabled(RULE.code) else []
    if not sites:
        return
    obstacles = [_obstacle(context, site) for site in sites]
    names = {site.node.id for site in sites if isinstance(site.node, ast.Name)} or {_NAME}
    whole = not any(obstacles) and not any(map(is_skipped, sites)) and len(names) == 1
    if whole and is_free(context.module, name := names.pop()):
        yield from _written(context, sites, name)
        return
    for site, obstacle in zip(sites, obstacles, strict=True):
        message = obstacle or "LARC was removed from Apex, and torch has none"
        yield decision(RULE, Status.LEFT, site.module, site.node, message, advice=_ADVICE)


def _written(context: FileContext, sites: list[Site], name: str) -> Iterator[Decision]:
    text = _TEXT.replace(_NAME, name, 1)
    edits: list[Edit] = [above(context.module, sites, text, name)]
    for site in sites:
        if not isinstance(site.node, ast.Name):
            edits.append(ReplaceExpression(site.span, name))
        message = "becomes a class of this project"
        yield decision(RULE, Status.MIGRATED, site.module, site.node, message, edits)
        edits = []


def _obstacle(context: FileContext, site: Site) -> str | None:
    """Return why a use cannot be of a class in this file."""
    alias = origin(site)
    if alias is None or is_variable(context, site):
        return "only a variable brings LARC here"
    guard = context.module.tree.enclosing(alias, ast.Try)
    if guard is not None and (context.keeps_guards or not _raises(guard)):
        return "the import of LARC is guarded, and what stays may bind its name otherwise"
    if call_of(site) is None and any(_uses_larc(other) for other in context.others()):
        return (
            "LARC is compared here, and other files use it too: each would have a class of its own"
        )
    if isinstance(context.module.tree.parent(site.node), ast.ClassDef):
        return "a class is derived from LARC"
    return None


def _raises(guard: ast.Try) -> bool:
    return not guard.orelse + guard.finalbody and all(
        isinstance(handler.body[-1], ast.Raise) for handler in guard.handlers
    )


def _uses_larc(module: Module) -> bool:
    return "apex" in module.tree.text and _NAME in module.tree.text
