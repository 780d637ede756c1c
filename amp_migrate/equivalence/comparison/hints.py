"""Say what a first difference usually means."""

from __future__ import annotations

import re

from amp_migrate.equivalence.comparison.steps import Difference
from amp_migrate.equivalence.result import Result
from amp_migrate.equivalence.runs.records import Step

_MEANING = {
    "number of backwards": "a backward is missing, extra, or the step moved into the accumulation",
    "gradients clean at start": "zero_grad is missing or in another place",
    "loss": "the forward, the data or the division of the loss is not the same",
    "loss scale": "the loss scale starts or moves differently",
    "clip norm": "clipping sees other gradients",
    "clip limit": "the clipping threshold is not the same",
    "order of backward, clip and step": "a clip or a step is missing or in another place",
    "gradient norm": "the optimizer steps on other gradients",
    "optimizers stepped": "an optimizer's step is missing, extra or of the wrong optimizer",
    "skipped steps": "an overflow is answered differently",
    "learning rate": "the scheduler steps differently or a parameter group changed",
    "update norm": "the optimizer changes the parameters by another amount",
    "parameters": "the optimizer changed the parameters differently",
    "optimizer state": "the optimizer's own state differs",
    "number of iterations": "one side stopped earlier",
    "training processes": "another number of processes trains",
}
_STILL_SCALED = (
    "gradients are still multiplied by the loss scale: unscale_ is missing before their use"
)

_STEPS_ITSELF = "an optimizer steps by itself, optimizer.step() instead of scaler.step(optimizer)"
_GRADIENTS = ("clip norm", "gradient norm", "skipped steps", "update norm", "parameters")
_RAISED = {
    "step() has already been called": "scaler.update() is missing behind a step",
    "unscale_() is being called after step()": (
        "scaler.update() is missing behind the step, or unscale_ stands behind it"
    ),
    "unscale_() has already been called": "unscale_ runs twice for one step",
    "No inf checks were recorded prior to update": (
        f"no scaler.step(optimizer) runs before scaler.update(): {_STEPS_ITSELF}, or its step is missing"
    ),
    "No inf checks were recorded for this optimizer": (
        "the optimizer has no gradients at its step: a backward is missing, or zero_grad stands behind it"
    ),
    "but _scale is None": "no loss was scaled before: scaler.scale(loss).backward() is missing",
    "Attempting to unscale FP16 gradients": (
        "the network has weights in fp16, which a GradScaler refuses: .half() is left"
    ),
}
"""What GradScaler raises, and what that usually means."""


def raised(error: str) -> str:
    """Return what an exception of GradScaler usually means; empty for others."""
    return next((meaning for text, meaning in _RAISED.items() if text in error), "")


def explain(first: Difference, result: Result) -> str:
    """Return one line: the step, the quantity and the usual cause."""
    rank = f" on rank {first.rank}" if result.coverage.ranks > 1 else ""
    where = f"{first.quantity} at step {first.step}{rank}"
    meaning = _MEANING.get(first.quantity, "")
    if first.quantity in ("clip norm", "gradient norm") and _scaled(first, result):
        meaning = _STILL_SCALED
    if first.quantity in _GRADIENTS:
        meaning = _beside_the_scaler(first, result) or meaning
    if first.quantity == "number of iterations":
        cause = raised(first.after)
        meaning = f"before {first.before}, after {first.after}{cause and f': {cause}'}"
    if first.quantity == "skipped steps" and result.coverage.optimizers > 1:
        meaning += (
            "; Apex skips every optimizer of a scale_loss list, GradScaler decides for each alone"
        )
    if first.quantity in ("skipped steps", "loss scale") and _loss_scales(result) > 1:
        meaning += "; Apex kept a loss scale for each loss_id, GradScaler keeps one"
    if result.fixes_differ:
        meaning += f"; to be expected, as {', '.join(result.fixes)} changed the training on purpose"
    return f"{where}: {meaning}" if meaning else where


def _loss_scales(result: Result) -> int:
    """Return how many loss scales the program before had."""
    level = result.logic
    return 1 if level is None else int(level.before.notes.get("apex_amp", {}).get("num_losses", 1))


def _beside_the_scaler(first: Difference, result: Result) -> str:
    """Return which backward or step of after, at the first difference, goes without the GradScaler; empty for none."""
    level = result.numeric or result.logic
    if level is None:
        return ""
    before = next((step for step in level.before.steps if step.index == first.step), None)
    after = next((step for step in level.after.steps if step.index == first.step), None)
    if before is None or after is None or before.scale == 1.0:
        return ""
    pairs = enumerate(zip(before.scales, after.scales, strict=False), 1)
    plain = [number for number, (ours, theirs) in pairs if ours != 1.0 == theirs]
    if plain:
        which = f"backward {plain[0]} of {len(after.scales)}"
        return f"{which} is not scaled: scaler.scale(loss).backward() is missing there"
    return _STEPS_ITSELF if _steps_itself(after) and not _steps_itself(before) else ""


def _steps_itself(step: Step) -> bool:
    """Tell whether an optimizer steps that no scaler does."""
    return "^" in step.events and re.search(r"(?<!\()[Ss]", step.events) is not None


def _scaled(first: Difference, result: Result) -> bool:
    """Whether after's norm is larger by about the loss scale: all or some gradients are scaled."""
    level = result.logic
    if level is None:
        return False
    scale = next((step.scale for step in level.after.steps if step.index == first.step), 1.0)
    try:
        before, after = float(first.before.split()[0]), float(first.after.split()[0])
    except (ValueError, IndexError):
        return False
    return scale > 1 and before > 0 and after / before > scale**0.5
