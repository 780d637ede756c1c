"""Failing programs kept as cases: their files, how they run, and what was wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from generated.written.program import Program

SAVED = Path(__file__).resolve().parents[1] / "saved"


def save(program: Program, reason: str, name: str) -> Path:
    """Write a program as a case and return its folder."""
    folder = SAVED / name
    for side, files in (("before", program.files), ("twin", program.twin)):
        for path, data in files.items():
            place = folder / side / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
    facts = {
        "reason": reason,
        "entry": program.entry,
        "runs": program.runs,
        "overflow": program.overflow,
        "casts": program.casts,
        "scales": program.scales,
        "words": program.features["words"],
    }
    (folder / "case.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    return folder


def load(folder: Path) -> Program:
    """Read a case."""
    facts = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    return Program(
        features={"words": facts["words"]},
        files=_files(folder / "before"),
        twin=_files(folder / "twin"),
        entry=facts["entry"],
        runs=tuple(tuple(run) for run in facts["runs"]),
        overflow=facts["overflow"],
        casts=facts["casts"],
        scales=facts["scales"],
    )


def cases() -> Iterator[Path]:
    """Yield the folders of all cases, by name."""
    yield from sorted(path.parent for path in SAVED.glob("*/case.json"))


def _files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*.py"))}
