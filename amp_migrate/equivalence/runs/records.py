"""What a recorded run left behind, read back from its files."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

EVENTS = {
    "B": "backward",
    "U": "unscale",
    "C": "clip",
    "(": "scaler.step",
    "S": "step taken",
    "s": "step skipped",
    "^": "scaler.update",
}
"""What the letters of `Step.events` stand for."""


@dataclass(frozen=True)
class Attempt:
    """One optimizer step, taken or skipped. `grad_norm` is None where it was skipped."""

    optimizer: int
    skipped: bool
    lr: tuple[float, ...]
    grad_norm: float | None
    update_norm: float
    weight_norm: float
    params: str
    state: dict[str, str]


@dataclass(frozen=True)
class Clip:
    """One gradient clipping: the norm before it and the limit."""

    norm: float
    limit: float


@dataclass(frozen=True)
class Step:
    """One iteration: from the first backward after a step to the next such backward.

    `losses` are unscaled, one per backward; `scales` the loss scale of each; `clean` says that
    every gradient was None or zero when the iteration began.
    """

    index: int
    events: str
    clean: bool
    losses: tuple[float, ...]
    scales: tuple[float, ...]
    clips: tuple[Clip, ...]
    attempts: tuple[Attempt, ...]
    injected: bool

    @property
    def loss(self) -> float:
        """The sum of the iteration's unscaled losses."""
        return sum(self.losses)

    @property
    def skipped(self) -> bool:
        """Whether an optimizer step was skipped."""
        return any(attempt.skipped for attempt in self.attempts)

    @property
    def grad_norm(self) -> float | None:
        """The norm of all optimizers' gradients when they stepped; None where one was skipped."""
        return _joint(attempt.grad_norm for attempt in self.attempts)

    @property
    def update_norm(self) -> float | None:
        """The norm of the change of all parameters."""
        return _joint(attempt.update_norm for attempt in self.attempts)

    @property
    def scale(self) -> float:
        """The loss scale of the first backward that was scaled."""
        return next((scale for scale in self.scales if scale != 1.0), 1.0)

    @property
    def updates(self) -> int:
        """How often ``scaler.update()`` was called."""
        return self.events.count("^")


def _joint(norms: Iterable[float | None]) -> float | None:
    held = list(norms)
    if not held or any(norm is None for norm in held):
        return None
    return float(sum(norm * norm for norm in held if norm is not None) ** 0.5)


Census = dict[tuple[str, str, str], int]


@dataclass(frozen=True)
class Timing:
    """The settled steps: seconds of each, samples loaded and seconds of waiting for them; peak memory in bytes."""

    seconds: tuple[float, ...]
    peak_bytes: int
    samples: tuple[int, ...] = ()
    waited: tuple[float, ...] = ()


@dataclass(frozen=True)
class Process:
    """One recorded process. `how` it ended: "steps" (enough recorded) or "exit"."""

    rank: int
    header: dict[str, Any]
    steps: tuple[Step, ...]
    census: Census | None
    timing: Timing | None
    fix: dict[str, Any] | None
    notes: dict[str, Any]
    how: str


@dataclass(frozen=True)
class Crash:
    """The exception that ended a program: its last line in the project, and which Python ran it.

    `file` is relative to the project and empty where no line of it was running; `missing` names a module
    that could not be imported, `absent` one of another project that lacks a name (MODULE:NAME), `modules` the folders
    whose code the exception passed through.
    """

    error: str
    file: str
    line: int
    source: str
    missing: str
    modules: tuple[str, ...]
    executable: str
    python: str
    absent: str = ""


@dataclass(frozen=True)
class Run:
    """One launch: its processes that trained, by rank, and how the command ended.

    `failure` is empty where the command did what was asked; `crash` is the exception behind it, if there was one.
    """

    label: str
    processes: tuple[Process, ...] = ()
    notes: dict[str, Any] = field(default_factory=dict)
    returncode: int = 0
    failure: str = ""
    seconds: float = 0.0
    crash: Crash | None = None

    @property
    def steps(self) -> tuple[Step, ...]:
        """The iterations of the first rank."""
        return self.processes[0].steps if self.processes else ()


def read_folder(folder: Path) -> tuple[tuple[Process, ...], dict[str, Any]]:
    """Return the processes that trained, by rank and start, and the notes of all."""
    read = [read_process(path) for path in sorted(folder.glob("*.jsonl"))]
    notes: dict[str, Any] = {}
    files: set[str] = set()
    for process in read:
        notes.update(process.notes)
        files.update(process.notes.get("files", ()))
    notes["files"] = sorted(files)
    trained = [process for process in read if process.steps or process.timing]
    trained.sort(key=lambda process: (process.rank, process.header["started"]))
    return tuple(trained), notes


def read_crash(folder: Path) -> Crash | None:
    """Return the first exception that ended a process, None where none did."""
    rows = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.crash")]
    return _crash(min(rows, key=lambda row: float(row["time"]))) if rows else None


def _crash(row: dict[str, Any]) -> Crash:
    held = {name: row[name] for name in Crash.__dataclass_fields__ if name in row}
    return Crash(**{**held, "modules": tuple(row["modules"])})


def read_process(path: Path) -> Process:
    """Read one process's file; a last line cut off by a kill is left out."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            break
    by_kind = {row["kind"]: row for row in rows}
    end = by_kind.get("end", {"how": "killed", "notes": {}})
    header = by_kind.get("process", {"rank": 0, "started": 0.0})
    return Process(
        rank=header["rank"],
        header=header,
        steps=tuple(_step(row) for row in rows if row["kind"] == "iteration"),
        census=_census(by_kind.get("census")),
        timing=_timing(by_kind.get("timing")),
        fix=by_kind.get("fix"),
        notes=end["notes"],
        how=end["how"],
    )


def _step(row: dict[str, Any]) -> Step:
    return Step(
        index=row["index"],
        events=row["events"],
        clean=row["clean"],
        losses=tuple(row["losses"]),
        scales=tuple(row["scales"]),
        clips=tuple(Clip(**clip) for clip in row["clips"]),
        attempts=tuple(
            Attempt(**{**attempt, "lr": tuple(attempt["lr"])}) for attempt in row["attempts"]
        ),
        injected=row["injected"],
    )


def _census(row: dict[str, Any] | None) -> Census | None:
    if row is None:
        return None
    return {(op, dtype, phase): number for op, dtype, phase, number in row["counts"]}


def _timing(row: dict[str, Any] | None) -> Timing | None:
    if row is None:
        return None
    seconds, samples, waited = (tuple(row.get(key, ())) for key in ("seconds", "samples", "waited"))
    return Timing(seconds, row["peak_bytes"], samples, waited)


def run_to_json(run: Run) -> dict[str, Any]:
    """Return `run` as plain data that `run_from_json` reads."""
    data = asdict(run)
    for process in data["processes"]:
        if process["census"] is not None:
            process["census"] = [[*key, number] for key, number in process["census"].items()]
    return data


def run_from_json(data: dict[str, Any]) -> Run:
    """Return the run that `run_to_json` wrote."""
    processes = tuple(
        Process(
            rank=one["rank"],
            header=one["header"],
            steps=tuple(_step(row) for row in one["steps"]),
            census=_census({"counts": one["census"]}) if one["census"] is not None else None,
            timing=_timing(one["timing"]),
            fix=one["fix"],
            notes=one["notes"],
            how=one["how"],
        )
        for one in data["processes"]
    )
    crash = _crash(data["crash"]) if data.get("crash") else None
    return Run(**{**data, "processes": processes, "crash": crash})
