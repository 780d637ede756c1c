"""What the compared iterations exercised; a check that nothing happened to proves nothing."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from amp_migrate.equivalence.runs.records import Run


@dataclass(frozen=True)
class Coverage:
    """Counts over the iterations of the first rank of one run."""

    steps: int = 0
    asked: int = 0
    ranks: int = 0
    optimizers: int = 0
    backwards_per_step: int = 0
    skipped: int = 0
    clips: int = 0
    clips_active: int = 0
    growths: int = 0
    lr_changes: int = 0

    def __str__(self) -> str:
        parts = [f"{self.steps} of {self.asked} steps"]
        if self.ranks > 1:
            parts.append(f"{self.ranks} ranks")
        parts.append(f"{self.optimizers} optimizer{'s' if self.optimizers != 1 else ''}")
        parts.append(
            f"{self.backwards_per_step} backward{'s' * (self.backwards_per_step != 1)} a step"
        )
        parts.append(f"{self.skipped} skipped")
        parts.append(f"clip active {self.clips_active}/{self.clips}" if self.clips else "no clip")
        parts.append(f"{self.growths} scale growths")
        parts.append(f"{self.lr_changes} learning rate changes")
        return ", ".join(parts)


def coverage_of(run: Run, asked: int) -> Coverage:
    """Count what happened in `run`."""
    steps = run.steps
    clips = [clip for step in steps for clip in step.clips]
    rates = [[attempt.lr for attempt in step.attempts] for step in steps]
    scales = [step.scale for step in steps]
    return Coverage(
        steps=len(steps),
        asked=asked,
        ranks=len(run.processes),
        optimizers=len({attempt.optimizer for step in steps for attempt in step.attempts}),
        backwards_per_step=max((len(step.losses) for step in steps), default=0),
        skipped=sum(step.skipped for step in steps),
        clips=len(clips),
        clips_active=sum(clip.norm > clip.limit for clip in clips),
        growths=_rises(scales),
        lr_changes=sum(one != other for one, other in pairwise(rates)),
    )


def _rises(scales: list[float]) -> int:
    return sum(later > earlier for earlier, later in pairwise(scales))
