"""Say what AMP brings to a training, or why it brings nothing, from what was measured."""

from __future__ import annotations

from typing import Any

from amp_migrate.equivalence.runs.timing import TimingRow

NOTHING = 0.95
"""A step that takes more than this share of its time in FP32 is no faster."""
WAITING = 0.4
UNEVEN = 0.5
START = 15e-6
"""Seconds that torch takes at most to start an operator; a GPU that gets shorter ones waits for them."""

NO_GPU = "no GPU answers here: times would say nothing about one, and are left out"


def gain(rows: tuple[TimingRow, ...], products: dict[str, Any] | None) -> str:
    """Return one sentence about the rows at the program's own batch size; empty without FP32 and AMP among them."""
    own = [row for row in rows if row.batch is None]
    fp32 = next((row for row in own if row.name == "FP32"), None)
    amp = next((row for row in own if row.name.startswith("AMP")), None)
    if fp32 is None or amp is None:
        return ""
    time, memory = amp.milliseconds / fp32.milliseconds, amp.mebibytes / fp32.mebibytes
    found = f"{amp.name} takes {time:.2f}x the time and {memory:.2f}x the memory of FP32"
    if time <= NOTHING:
        return found
    causes = [*_waits(amp), *_starts(fp32, products), *uneven(products)]
    if not causes:
        return f"{found}: it brings no time, and neither loading, small operators nor odd dimensions say why"
    return f"{found}: it brings no time because {'; and '.join(causes)}"


def _waits(amp: TimingRow) -> list[str]:
    if amp.waiting < WAITING:
        return []
    return [f"{amp.waiting:.0%} of a step goes into waiting for data"]


def _starts(fp32: TimingRow, products: dict[str, Any] | None) -> list[str]:
    number = (products or {}).get("operators", 0)
    if not number or fp32.milliseconds / 1e3 / number > START:
        return []
    each = fp32.milliseconds * 1e3 / number
    return [
        f"its {number} operators take {each:.1f} µs each, about what starting one takes: batches or layers are small"
    ]


def uneven(products: dict[str, Any] | None) -> list[str]:
    """Return what is to be said of dimensions that tensor cores do not take, at most one sentence."""
    total = (products or {}).get("multiplications", 0)
    if products is None or not total or products["uneven"] / total < UNEVEN:
        return []
    edges = " x ".join(map(str, products["largest_uneven"]))
    share = products["uneven"] / total
    return [
        f"{share:.0%} of the multiplications have dimensions that are no multiples of 8 (the largest: {edges})"
    ]
