"""Calls that look like Apex on an `amp` that nothing ties to it.

## What it does
Nothing. The finding names the call.

## Why
`amp.scale_loss(...)` in a file that does not import `amp` raises NameError as soon as it runs, often only with
`--fp16`; AMP213 migrates it where Apex initialized its optimizer. One on `self.amp` or on a parameter that no
call of the files given fills may be Apex or not; were it, the gradients scaled there would not go through the GradScaler.

## Example
    if args.fp16:
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()

## Use instead
    scaler.scale(loss).backward()

## Safety
Report only. The call fails loudly where `amp` is bound to nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.apex.sites import Site
from amp_migrate.apex.strangers import Stranger
from amp_migrate.facts.paths import root
from amp_migrate.placement.finding.forgotten import is_forgotten
from amp_migrate.plan.model import Decision, Status
from amp_migrate.rules.base import Rule, Safety, decision

RULE = Rule("AMP308", "amp is used where nothing ties it to Apex", Safety.REPORT)


_NATIVE = {
    "initialize": "or make a GradScaler and put the forward passes under autocast",
    "scale_loss": "or write scaler.scale(loss).backward() with a GradScaler, and scaler.step(optimizer) after it",
    "master_params": "or call scaler.unscale_(optimizer) and name the parameters themselves",
    "state_dict": "or save the state of the GradScaler",
    "load_state_dict": "or load the state of the GradScaler",
}


def beside_left(sites: Iterable[Site]) -> Iterator[Decision]:
    """Say of Apex uses that are left where nothing binds their amp, so that they do not run as they are."""
    for site in sites:
        if is_forgotten(site):
            func = site.node.func if isinstance(site.node, ast.Call) else site.node
            message = f"nothing in this file defines `{root(func)}`, so this raises NameError as soon as it runs"
            advice = "import amp in this file if it is to run with Apex"
            yield decision(RULE, Status.NOTE, site.module, site.node, message, advice=advice)


def report(found: Iterable[Stranger]) -> Iterator[Decision]:
    """Report every call by an `amp` that is bound to nothing, or to something out of sight."""
    for stranger in found:
        message = f"nothing in this file defines `{stranger.receiver}`, so this raises NameError as soon as it runs"
        advice = (
            "delete it, as it has never run; or import amp here, initialize with it and run again"
        )
        if not stranger.unbound:
            message = f"`{stranger.receiver}` is used as Apex's amp, and nothing in the files given says what it is"
            advice = f"give amp-migrate the files that set it as well, {_NATIVE[stranger.name]}"
        yield decision(RULE, Status.LEFT, stranger.module, stranger.call, message, advice=advice)
