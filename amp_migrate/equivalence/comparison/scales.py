"""When the loss scales of two runs must agree, and on what."""

from __future__ import annotations

from dataclasses import dataclass

from amp_migrate.equivalence.runs.records import Run, Step

DEFAULT_INTERVAL = 2000
APEX_LIMIT = 2.0**24


@dataclass(frozen=True)
class ScaleRule:
    """`exact`: both sequences are equal. Otherwise `after` follows GradScaler's own schedule.

    Apex counts backwards, GradScaler counts updates. With several backwards per update, or
    several loss scalers, the sequences differ although both are right; then `after` must start
    where Apex starts, halve at every overflow and double after one of `intervals` updates. At the
    iterations of `restarts`, where ``amp.initialize`` has run again, it may start anew. An optimizer
    whose backward neither side scales says nothing of the scale.
    Where before is `plain`, in FP32, it has no scale that could agree with anything.
    """

    exact: bool
    intervals: tuple[int, ...] = ()
    restarts: frozenset[int] = frozenset()
    plain: bool = False

    @property
    def reason(self) -> str:
        """One line for the report; empty where scales are simply equal."""
        if self.exact or self.plain:
            return ""
        return (
            "Apex counts backwards and GradScaler counts updates, so the loss scale is held to "
            "GradScaler's own schedule instead of Apex's"
        )

    def first_disagreement(self, before: tuple[Step, ...], after: tuple[Step, ...]) -> int | None:
        """Return the first iteration whose scale is wrong, or None."""
        if self.plain:
            return None
        if self.exact:
            return _first_unequal([step.scale for step in before], after)
        wrong = [
            _first_unequal(self._schedule(before, after, interval, limit), after)
            for interval in self.intervals
            for limit in (float("inf"), APEX_LIMIT)
        ]
        return None if None in wrong else max(step for step in wrong if step is not None)

    def _schedule(
        self, before: tuple[Step, ...], after: tuple[Step, ...], interval: int, limit: float
    ) -> list[float]:
        """Return what GradScaler does from Apex's first scale, given where `after` skips and updates."""
        first = next((step.scale for step in before if step.scale != 1.0), 1.0)
        unscaled = {step.index for step in before if step.scale == 1.0}
        scale, tracker, overflow = first, 0, False
        scales = []
        for step in after:
            if step.index in self.restarts and step.scale == first:
                scale, tracker, overflow = first, 0, False
            apart = step.index in unscaled and step.scale == 1.0
            scales.append(1.0 if apart else scale)
            overflow = overflow or step.skipped
            for _ in range(step.updates):
                if overflow:
                    scale, tracker, overflow = scale / 2, 0, False
                    continue
                tracker += 1
                if tracker == interval:
                    scale, tracker = min(scale * 2, limit), 0
        return scales


PLAIN = ScaleRule(exact=False, plain=True)


def rule_for(before: Run, after: Run, growth: int | None) -> ScaleRule:
    """Choose the rule from what `before` is: Apex, or native AMP."""
    apex = before.notes.get("apex_amp")
    if apex is None or not apex["enabled"] or not apex["dynamic"]:
        return ScaleRule(exact=True)
    # A plain backward, for the gradient of an input say, is none of Apex's.
    backwards = sum(scale != 1.0 for step in before.steps for scale in step.scales)
    updates = sum(step.updates for step in after.steps)
    if backwards == updates and apex["num_losses"] == 1:
        return ScaleRule(exact=True)
    per_update = max(1, round(backwards / max(1, updates)))
    interval = growth or DEFAULT_INTERVAL
    intervals = interval, max(1, interval // per_update)
    return ScaleRule(False, intervals, frozenset(apex["initialized"]))


def _first_unequal(expected: list[float], after: tuple[Step, ...]) -> int | None:
    for scale, step in zip(expected, after, strict=False):
        if scale != step.scale:
            return step.index
    return None
