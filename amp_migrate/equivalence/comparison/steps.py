"""Compare two recorded runs bit for bit and name the first difference in causal order."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from amp_migrate.equivalence.comparison.scales import ScaleRule
from amp_migrate.equivalence.runs.records import Attempt, Clip, Process, Run, Step

QUANTITIES = (
    "number of backwards",
    "gradients clean at start",
    "loss",
    "loss scale",
    "clip norm",
    "clip limit",
    "order of backward, clip and step",
    "optimizers stepped",
    "skipped steps",
    "gradient norm",
    "learning rate",
    "update norm",
    "parameters",
    "optimizer state",
)


@dataclass(frozen=True)
class Difference:
    """One quantity of one iteration that is not the same on both sides."""

    rank: int
    step: int
    quantity: str
    before: str
    after: str


@dataclass(frozen=True)
class Comparison:
    """The differences of two runs in causal order, and how many iterations were compared."""

    differences: tuple[Difference, ...]
    compared: int
    ranks: int

    @property
    def exact(self) -> bool:
        """Whether something was compared and nothing differs."""
        return self.compared > 0 and not self.differences

    @property
    def first(self) -> Difference | None:
        """The earliest difference, and of that iteration the first in causal order."""
        return self.differences[0] if self.differences else None

    def at(self, step: int) -> tuple[Difference, ...]:
        """Return what differs in iteration `step`."""
        return tuple(difference for difference in self.differences if difference.step == step)


def compare(before: Run, after: Run, rule: ScaleRule) -> Comparison:
    """Compare rank by rank; the loss scale where `rule` says that it must agree."""
    found: list[Difference] = []
    if not after.processes:
        recorded = str(len(before.steps)), f"0 ({after.failure})"
        return Comparison((Difference(0, 1, "number of iterations", *recorded),), 1, 1)
    if len(before.processes) != len(after.processes):
        counts = str(len(before.processes)), str(len(after.processes))
        found.append(Difference(0, 1, "training processes", *counts))
    compared = 0
    for one, other in zip(before.processes, after.processes, strict=False):
        found.extend(_compare_process(one, other, rule))
        compared += min(len(one.steps), len(other.steps))
    found.sort(key=lambda found: (found.step, causal_place(found.quantity)))
    return Comparison(tuple(found), compared, len(before.processes))


def _compare_process(before: Process, after: Process, rule: ScaleRule) -> Iterator[Difference]:
    wrong_scale = rule.first_disagreement(before.steps, after.steps)
    for one, other in zip(before.steps, after.steps, strict=False):
        for quantity, left, right in differing(one, other):
            yield Difference(before.rank, one.index, quantity, left, right)
        if one.index == wrong_scale:
            yield Difference(
                before.rank, one.index, "loss scale", f"{one.scale:g}", f"{other.scale:g}"
            )
    if len(before.steps) != len(after.steps):
        step = min(len(before.steps), len(after.steps)) + 1
        yield Difference(before.rank, step, "number of iterations", _ending(before), _ending(after))


def _ending(process: Process) -> str:
    error = str(process.notes.get("error", ""))
    return f"{len(process.steps)} ({error})" if error else str(len(process.steps))


def differing(before: Step, after: Step) -> Iterator[tuple[str, str, str]]:
    """Yield (quantity, before, after) for what differs, in causal order; not the loss scale."""
    for quantity, left, right in _quantities(before, after):
        if left != right:
            yield quantity, left, right


def _quantities(before: Step, after: Step) -> Iterator[tuple[str, str, str]]:
    for quantity, read in _READERS:
        yield quantity, read(before), read(after)
    idle = _is_skipped(before) and _is_skipped(after)
    yield "order of backward, clip and step", _order(before, idle), _order(after, idle)
    pairs = zip(before.clips, after.clips, strict=False)
    clips = [(one, _as_true(one, other, after.scale)) for one, other in pairs]
    if not (before.skipped and after.skipped):
        # After an overflow Apex leaves some gradients scaled and some not; nobody reads them.
        left, right = ([pair[side].norm for pair in clips] for side in (0, 1))
        yield "clip norm", _numbers(left), _numbers(right)
    left, right = ([pair[side].limit for pair in clips] for side in (0, 1))
    yield "clip limit", _numbers(left), _numbers(right)
    stepped = list(_both_stepped(before.attempts, after.attempts))
    left, right = ([pair[side].grad_norm or 0.0 for pair in stepped] for side in (0, 1))
    yield "gradient norm", _numbers(left), _numbers(right)
    for one, other in zip(before.attempts, after.attempts, strict=False):
        # Stand-ins for fused optimizers may keep more state than the original.
        shared = sorted(one.state.keys() & other.state.keys())
        yield "optimizer state", _state(one, shared), _state(other, shared)


def _as_true(one: Clip, other: Clip, scale: float) -> Clip:
    """Return a clip of scaled gradients to a limit that is scaled as well as that of true ones which it is."""
    if other.limit == one.limit or other.limit != one.limit * scale:
        return other
    return Clip(other.norm / scale, other.limit / scale)


def _both_stepped(
    before: tuple[Attempt, ...], after: tuple[Attempt, ...]
) -> Iterator[tuple[Attempt, Attempt]]:
    for one, other in zip(before, after, strict=False):
        if one.optimizer == other.optimizer and not (one.skipped or other.skipped):
            yield one, other


def _state(attempt: Attempt, keys: list[str]) -> str:
    return " ".join(f"{key}:{attempt.state[key]}" for key in keys)


def _is_skipped(step: Step) -> bool:
    """Tell whether there were steps of optimizers, and none was taken."""
    return bool(step.attempts) and all(one.skipped for one in step.attempts)


def _order(step: Step, idle: bool) -> str:
    """The event letters that both Apex and native AMP have; steps in a row count as one.

    Where `idle`, as both sides skip all steps, a clip changes nothing, and FP16_Optimizer makes none.
    """
    wanted = "BS" if idle else "BCS"
    letters = "".join(letter for letter in step.events.upper() if letter in wanted)
    return re.sub("S+", "S", letters)


def _numbers(values: Iterable[float | None]) -> str:
    return " ".join("skipped" if value is None else _repr(value) for value in values)


def _repr(value: float) -> str:
    return repr(value) if math.isfinite(value) else "not finite"


def causal_place(quantity: str) -> int:
    """Return the place of `quantity` in causal order."""
    return QUANTITIES.index(quantity) if quantity in QUANTITIES else len(QUANTITIES)


_READERS: tuple[tuple[str, Callable[[Step], str]], ...] = (
    ("number of backwards", lambda step: str(len(step.losses))),
    ("gradients clean at start", lambda step: "yes" if step.clean else "no"),
    ("loss", lambda step: _numbers(step.losses)),
    ("optimizers stepped", lambda step: str([one.optimizer for one in step.attempts])),
    ("skipped steps", lambda step: str([one.skipped for one in step.attempts])),
    ("learning rate", lambda step: str([list(one.lr) for one in step.attempts])),
    ("update norm", lambda step: _numbers(one.update_norm for one in step.attempts)),
    ("parameters", lambda step: " ".join(one.params for one in step.attempts)),
)
