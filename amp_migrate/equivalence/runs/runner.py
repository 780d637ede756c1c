"""Run one side of the comparison, each time from a fresh copy of its tree."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

from amp_migrate.equivalence.capture.config import CaptureConfig
from amp_migrate.equivalence.options import Options
from amp_migrate.equivalence.runs.launch import Launch, Progress, run
from amp_migrate.equivalence.runs.records import Run, run_from_json, run_to_json
from amp_migrate.equivalence.runs.workspace import Trees, copy

EXPORT_SCHEMA = 2
LOGIC, NUMERIC, SETTLED = "logic", "numeric", "numeric, settled"

_PURPOSES = {
    LOGIC: "casts off",
    "logic again": "casts off, once more",
    NUMERIC: "casts on",
    "numeric again": "casts on, once more",
    SETTLED: "casts on, from a smaller loss scale",
    "anchor": "fp32",
    "anchor, settled": "fp32",
}


class ImportMismatchError(Exception):
    """The imported run was recorded with other settings."""


class Runner:
    """Launches the before and after programs, or takes before from an export.

    A run leaves checkpoints and logs behind that a second one might resume from, hence the copies.
    """

    def __init__(self, options: Options, trees: Trees, home: Path, progress: Progress) -> None:
        self.options = options
        self.trees = trees
        self.home = home
        self.progress = progress
        self.before_runs: dict[str, Run] = {}
        self._imported: dict[str, Run] | None = None
        if options.imported is not None:
            self._imported = read_export(options.imported, options)

    @property
    def importing(self) -> bool:
        """Whether the before-runs come from a file."""
        return self._imported is not None

    def config(self, **changes: Any) -> CaptureConfig:
        """Return the capture settings of this verification, with `changes`."""
        options = self.options
        base = CaptureConfig(
            record_dir="",
            steps=options.steps,
            seed=options.seed,
            device=options.device,
            inject=options.inject,
            # Without the fixes a program may throw away what its first micro-batches computed.
            inject_last=self.trees.full is not None,
            workers=options.workers,
            apex=options.apex,
            synthetic_data=options.synthetic_data,
            shims=self._absolute(options.shims),
            stubs=options.stubs,
        )
        return dataclasses.replace(base, **changes)

    def _absolute(self, shims: tuple[str, ...]) -> tuple[str, ...]:
        placed = []
        for shim in shims:
            target, _, source = shim.partition("=")
            path, _, name = source.rpartition(":")
            placed.append(f"{target}={(Path.cwd() / path).resolve()}:{name}")
        return tuple(placed)

    def before(self, purpose: str, config: CaptureConfig) -> Run | None:
        """Run the program before the migration; None where an import does not hold `purpose`."""
        if self._imported is not None:
            return self._imported.get(purpose)
        if self.trees.before is None:
            return None
        done = self._run(self.trees.before, f"before, {_PURPOSES.get(purpose, purpose)}", config)
        self.before_runs[purpose] = done
        return done

    def after(self, purpose: str, config: CaptureConfig) -> Run:
        """Run the migrated program."""
        return self._run(self.trees.after, f"after, {_PURPOSES.get(purpose, purpose)}", config)

    def fixed(self, purpose: str, config: CaptureConfig) -> Run:
        """Run the migrated program with its fixes."""
        return self._run(
            self.trees.full or self.trees.after, f"after with its fixes, {purpose}", config
        )

    def _run(self, tree: Path, label: str, config: CaptureConfig) -> Run:
        scratch = self.home / "run" / self.options.project.name
        copy(tree, scratch, self.options.links)
        launch = Launch(
            command=self.options.command,
            tree=scratch,
            originals=tuple({self.options.project, tree}),
            inside=self.options.inside,
            timeout=self.options.timeout,
            show=self.options.show_output,
        )
        try:
            return run(launch, label, config, self.progress)
        finally:
            shutil.rmtree(scratch.parent, ignore_errors=True)


def write_export(path: Path, options: Options, runs: dict[str, Run]) -> None:
    """Write the before-runs for a machine without Apex."""
    data = {
        "schema": EXPORT_SCHEMA,
        "settings": _settings(options),
        "runs": {purpose: run_to_json(run) for purpose, run in runs.items()},
    }
    path.write_text(json.dumps(data, indent=1), encoding="utf-8")


def read_export(path: Path, options: Options) -> dict[str, Run]:
    """Return the runs of an export; raises ImportMismatchError where its settings are others."""
    data = json.loads(path.read_text(encoding="utf-8"))
    if data.get("schema") != EXPORT_SCHEMA:
        raise ImportMismatchError(f"{path} is not an export of schema {EXPORT_SCHEMA}")
    for name, value in _settings(options).items():
        if data["settings"][name] != value:
            raise ImportMismatchError(
                f"{path} was recorded with {name} {data['settings'][name]}, now it is {value}"
            )
    return {purpose: run_from_json(run) for purpose, run in data["runs"].items()}


def _settings(options: Options) -> dict[str, Any]:
    return {
        "steps": options.steps,
        "inject": list(options.inject),
        "growth": options.growth,
        "seed": options.seed,
        "device": options.device,
    }
