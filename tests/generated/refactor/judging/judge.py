"""Judges variants: they must train as their base before the migration, and as its migration after it."""

from __future__ import annotations

import difflib
import io
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from pyflakes import api, reporter

from amp_migrate.engine import migrate, unstable
from amp_migrate.plan.model import Status
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source
from generated.judging.check import first_difference
from generated.judging.execute import UNCACHED, Record, Run, Side, records
from generated.refactor.judging.variant import Variant
from generated.refactor.project import Base, Project

SETTINGS = Settings(api="torch.cuda.amp")
# Worst first. "invalid": the refactoring changed the program itself; "unfit": the base is not migrated or no
# refactoring found a place; "claimed": a fix rule says that it mends what the base did not need, or the other way round;
# "told": it trains as its base, and evaluates in fp32 where a note of the run says so.
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
_TRAINS = ("step", "stepped", "overflowed", "scale", "backwards", "ended")
_ELSEWHERE = re.compile(r"because of \S+:\d+$")  # the cause is told there


@dataclass(frozen=True)
class Migrated:
    """What the codemod makes of a project: its files after, what is wrong with them, codes of what is left and fixed.

    `told` are the messages of what is fixed. `lost`: a note tells that an overflow in gradients that are cleared skips no step any more;
    `uncast`: one tells that an evaluation is not cast any more.
    """

    after: Mapping[str, bytes]
    flaw: str
    left: tuple[str, ...]
    fixed: tuple[str, ...]
    told: tuple[str, ...]
    lines: int
    lost: bool
    uncast: bool


@dataclass(frozen=True)
class Judged:
    """The outcome of a variant, one of `OUTCOMES`, and why."""

    outcome: str
    why: str = ""


def migrated(project: Project) -> Migrated:
    """Run the codemod over a project."""
    files = project.data()
    sources = [Source.from_bytes(name, data) for name, data in files.items()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = migrate(sources, SETTINGS)
        after = {
            o.path: o.before.data if o.after is None else o.before.encode(o.after)
            for o in result.outcomes
        }
        again = unstable(result, SETTINGS) if after != files else []
    flaw = next((o.failed for o in result.outcomes if o.failed), "") or _flaw(files, after)
    if again and not flaw:
        flaw = f"a second run changes {again[0]}"
    found = result.plan.findings()
    aside = {*project.beside, *(script for script, _ in project.more)}
    left = [f for f in found if f.status is Status.LEFT and f.path not in project.beside]
    told = [f for f in found if left and f.status is Status.NOTE and f.code.startswith("AMP9")]
    causes = sorted(
        [*left, *told], key=lambda f: (f.code == "AMP101", bool(_ELSEWHERE.search(f.message)))
    )
    return Migrated(
        after,
        flaw,
        tuple(f"{f.code}: {f.message}" for f in causes),
        tuple(f.code for f in found if f.status is Status.FIXED),
        tuple(f.message for f in found if f.status is Status.FIXED),
        sum(_changed(files[name], after[name]) for name in files if name not in aside),
        any(f.code == "AMP106" and f.status is Status.NOTE for f in found),
        any(f.status is Status.NOTE and _UNCAST in f.message for f in found),
    )


def _flaw(files: Mapping[str, bytes], after: Mapping[str, bytes]) -> str:
    for name, data in after.items():
        if data == files[name]:
            continue
        try:
            compile(data, name, "exec", dont_inherit=True)
        except SyntaxError as error:
            return f"{name} does not compile: {error}"
        new = _messages(name, data) - _messages(name, files[name])
        if new:
            return f"new in {name}: {min(new)}"
    return ""


def _messages(name: str, data: bytes) -> Counter[str]:
    stream = io.StringIO()
    api.check(data.decode(), name, reporter.Reporter(stream, stream))
    texts = [line.partition(" ")[2] for line in stream.getvalue().splitlines()]
    texts = [re.sub(r" on line \d+", "", text) for text in texts]
    return Counter(t for t in texts if "may be undefined" not in t and "unable to detect" not in t)


def _changed(before: bytes, after: bytes) -> int:
    sides = before.splitlines(), after.splitlines()
    lines = list(difflib.diff_bytes(difflib.unified_diff, *sides, n=0))[2:]
    return sum(line[:1] in (b"+", b"-") for line in lines)


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
        if result.uncast and not _difference(start, like.after, after, _TRAINS):
            return Judged("told", difference)
        new = [c for c in result.fixed if c not in like.migrated.fixed]
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
        if any(name.rpartition("/")[2] in message for message in told):
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
