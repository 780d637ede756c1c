"""Say what a first difference usually means."""

from __future__ import annotations

from amp_migrate.equivalence.comparison.steps import Difference
from amp_migrate.equivalence.result import Result

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


def explain(first: Difference, result: Result) -> str:
    """Return one line: the step, the quantity and the usual cause."""
    rank = f" on rank {first.rank}" if result.coverage.ranks > 1 else ""
    where = f"{first.quantity} at step {first.step}{rank}"
    meaning = _MEANING.get(first.quantity, "")
    if first.quantity in ("clip norm", "gradient norm") and _scaled(first, result):
        meaning = _STILL_SCALED
    if first.quantity == "number of iterations":
        meaning = f"before {first.before}, after {first.after}"
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
