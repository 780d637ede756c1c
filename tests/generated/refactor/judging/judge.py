"""Judges variants: they must train as their base before the migration, and as its migration after it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from generated.judging.check import first_difference
from generated.judging.execute import UNCACHED, Record, Run, Side, records
from generated.refactor.judging.migrated import Migrated, migrated
from generated.refactor.judging.variant import Variant
from generated.refactor.project import Base, Project

# Worst first. "invalid": the refactoring changed the program itself; "unfit": the base is not migrated or no
# refactoring found a place; "claimed": a fix rule says that it mends what the base did not need, or the other way round;
# "told": a note of the run states the difference: it evaluates in fp32, or cast where AMP is off, or fares otherwise
# where gradients overflow alone, or the one loss scale for several losses moves otherwise.
OUTCOMES = (
    "crash",
    "broken",
    "wrong",
    "claimed",
    "told",
    "left",
    "ugly",
    "same",
    "invalid",
    "unfit",
)
FAILURES = OUTCOMES[:3]
UGLY = 1.5
_UNCAST = "this evaluation runs in fp32 now and ran in fp16 under Apex"
_CAST = "in which Apex was never on"
_UNSCALED = "at O0 the GradScaler is off, although Apex honoured the given loss_scale there too"
_ONE_SCALE = "one GradScaler scales all losses, where Apex had a scale for each"
_STATIC = "unlike Apex, GradScaler skips a step whose gradients overflow"
_TRAINS = ("step", "stepped", "overflowed", "scale", "backwards", "ended")


@dataclass(frozen=True)
class Judged:
    """The outcome of a variant, one of `OUTCOMES`, and why."""

    outcome: str
    why: str = ""


@dataclass(frozen=True)
class Known:
    """How a base trains: under Apex, and migrated; `fault` says why it cannot serve."""

    migrated: Migrated
    before: Side
    after: Side
    fault: str


_KNOWN: dict[str, Known] = {}


def known(start: Base) -> Known:
    """Migrate and train a base; what is found is kept under its name."""
    if start.name not in _KNOWN:
        _KNOWN[start.name] = _trained(start)
    return _KNOWN[start.name]


def _trained(start: Base) -> Known:
    result = migrated(start.project)
    if result.flaw or result.left:
        return Known(result, {}, {}, result.flaw or result.left[0])
    before, after = records([_training(start, start.project, result.after)])[0]
    return Known(result, before, after, _fault(start, before, after))


def _fault(start: Base, before: Side, after: Side) -> str:
    for side in (before, after):
        for mode in start.modes:
            record = side.get(mode, [("ended", "a crash")])
            ended = next((str(e[1]) for e in record if e[0] == "ended" and e[1]), "")
            if ended or not any(e[0] in ("step", "printed") for e in record):
                return f"does not train: {ended}"
    return ""


def _training(
    start: Base, project: Project, after: Mapping[str, bytes]
) -> tuple[dict[str, bytes], dict[str, bytes], Run]:
    run = Run(project.entry, start.argvs, start.overflow, start.modes, project.more)
    beside = dict(start.library)
    return beside | project.data(), beside | dict(after), run


def judged(variants: Sequence[Variant]) -> list[Judged]:
    """Judge variants, which train in one process."""
    found: list[Judged | None] = [None] * len(variants)
    waiting: list[tuple[int, Variant, Migrated]] = []
    for k, variant in enumerate(variants):
        fault = known(variant.base).fault if variant.steps else "no refactoring found a place"
        if fault:
            found[k] = Judged("unfit", fault)
            continue
        try:
            waiting.append((k, variant, migrated(variant.project)))
        except Exception as error:  # the codemod must not raise, whatever it is
            found[k] = Judged("crash", f"{type(error).__name__}: {error}")
    sides = records([_training(v.base, v.project, m.after) for _, v, m in waiting])
    for (k, variant, result), (before, after) in zip(waiting, sides, strict=bool(waiting)):
        found[k] = _verdict(variant, result, before, after)
    return [verdict or Judged("unfit") for verdict in found]


def _verdict(variant: Variant, result: Migrated, before: Side, after: Side) -> Judged:
    start, like = variant.base, known(variant.base)
    change = _difference(start, like.before, before) or _ended(start, before)
    if change:
        return Judged("invalid", change)
    if result.flaw:
        return Judged("broken", result.flaw)
    difference = _difference(start, like.after, after)
    if difference.startswith("casts: ") and _only_cached_otherwise(variant, result):
        difference = ""
    if result.left:
        return Judged("left", result.left[0])
    other = _others(start, result.told, before, after)
    if other:
        return Judged("wrong", other)
    if difference:
        missing = [c for c in set(like.migrated.fixed) if c not in result.fixed]
        if missing and (result.lost or not _difference(start, like.before, after)):
            return Judged("left", f"{missing[0]} is not applied")
        if _is_told(variant, result, after):
            return Judged("told", difference)
        new = [c for c in result.fixed if c not in like.migrated.fixed]
        if not unlike(start, like.before, like.after, after):
            difference = ""
    if difference:
        return Judged("claimed" if new else "wrong", difference + (f" ({new[0]})" if new else ""))
    claims = set(result.fixed) ^ set(like.migrated.fixed)
    if claims:
        side = "alone" if min(claims) in result.fixed else "no longer"
        return Judged(
            "claimed", f"{min(claims)} is fixed {side} in the variant, which trains alike"
        )
    if result.lines > UGLY * like.migrated.lines:
        return Judged("ugly", f"{like.migrated.lines} changed lines became {result.lines}")
    return Judged("same")


def _is_told(variant: Variant, result: Migrated, after: Side) -> bool:
    """Tell whether notes of the run state all that the variant does otherwise than its migrated base."""

    def says(words: str) -> bool:
        return any(words in note for note in result.notes)

    start, like = variant.base, known(variant.base)
    if says(_ONE_SCALE) and not _difference(start, _unscaled(like.after), _unscaled(after)):
        return True
    if (says(_UNCAST) or says(_CAST)) and not _difference(start, like.after, after, _TRAINS):
        return True
    if not (says(_STATIC) or says(_UNSCALED)):
        return False
    calm = replace(start, overflow=0)
    trainings = [
        _training(calm, start.project, like.migrated.after),
        _training(calm, variant.project, result.after),
    ]
    wanted, got = (_unscaled(side) if says(_UNSCALED) else side for _, side in records(trainings))
    return not _difference(calm, wanted, got)


def _unscaled(side: Side) -> Side:
    """Return the records of a side without the loss scale."""
    return {mode: [e for e in record if e[0] != "scale"] for mode, record in side.items()}


def _only_cached_otherwise(variant: Variant, result: Migrated) -> bool:
    """Tell whether the difference is that more or fewer blocks share the fp16 copies of the weights."""
    start = replace(variant.base, modes=(UNCACHED,))
    trainings = [
        _training(start, start.project, known(variant.base).migrated.after),
        _training(start, variant.project, result.after),
    ]
    wanted, got = (after for _, after in records(trainings))
    return not _difference(start, wanted, got)


def _ended(start: Base, side: Side) -> str:
    """Return the exception that ended a script beside the one that trains."""
    for name, record in side.items():
        for event in record:
            if name not in start.modes and event[0] == "ended" and event[1]:
                return f"{name}: {event[1]}"
    return ""


def _others(start: Base, told: tuple[str, ...], before: Side, after: Side) -> str:
    """Return what scripts beside the one that trains do otherwise after the migration, but for fixes that name them."""
    for name in before.keys() - set(start.modes):
        script = re.split("[ /]", name)[-1]
        if any(script in message for message in told):
            continue
        crashed: Record = [("ended", "a crash")]
        sides = _neutral(before[name]), _neutral(after.get(name, crashed))
        difference = first_difference(*sides)
        if difference:
            return f"{name}: {difference}"
    return ""


def _difference(start: Base, wanted: Side, got: Side, kinds: tuple[str, ...] = ()) -> str:
    """Return what two sides do otherwise; where casts are on, only in events of some `kinds`."""
    for mode in start.modes:
        crashed: Record = [("ended", "a crash")]
        sides = _neutral(wanted.get(mode, crashed)), _neutral(got.get(mode, crashed))
        if kinds and "casts" in mode:
            one, other = ([e for e in side if e[0] in kinds] for side in sides)
            sides = one, other
        difference = first_difference(*sides)
        if difference:
            return f"{mode}: {difference}"
    return ""


def unlike(start: Base, before: Side, migrated_base: Side, after: Side) -> str:
    """Return what a migrated variant does as neither Apex nor its migrated base, where that clips in another order."""
    for mode in start.modes:
        one = replace(start, modes=(mode,))
        difference = _difference(one, migrated_base, after)
        if difference and _difference(one, before, after):
            return difference
    return ""


def _neutral(record: Record) -> Record:
    """Return a record without the names of the program's own modules."""
    kinds = ("printed", "step", "stepped", "overflowed", "scale", "backwards", "end", "ended")
    return [
        event if event[0] in kinds or hasattr(torch.nn, str(event[0])) else ("module", *event[1:])
        for event in record
    ]


def kind(verdict: Judged) -> tuple[str, str]:
    """Return an outcome and its reason without names and numbers, to tell failures apart."""
    words = re.sub(r"[\d.]+|'[^']*'|\S*_\S*", "", verdict.why).split()
    return verdict.outcome, " ".join(words[:5])
