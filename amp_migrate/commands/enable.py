"""The command that adds AMP: settle the settings, run, and hand the report to the console."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from amp_migrate.commands.codemod import Options, told
from amp_migrate.enable.enabling import Choices
from amp_migrate.report import Report
from amp_migrate.settings import Settings


def run(
    paths: tuple[str, ...], options: Options, given: Mapping[str, Any], choices: Choices
) -> int:
    """Add AMP to files and folders, or to stdin for "-"; return the exit code.

    `given` are fields of `Settings`, None where the command line did not say. Raises `Failure`, and then
    nothing was written.
    """
    from amp_migrate.enable.run import run_paths, run_texts

    if choices.flag is not None and choices.always:
        raise click.UsageError("--flag and --always exclude each other.")
    if choices.flag is not None and not choices.flag.lstrip("-").replace("-", "_").isidentifier():
        raise click.UsageError(f"{choices.flag} is no name for an option.")

    def work(settings: Settings, data: bytes | None) -> Report:
        if data is not None:
            return run_texts({options.stdin_filename: data}, settings, choices)
        return run_paths(paths, settings, choices, force_exclude=options.force_exclude)

    return told(paths, options, given, work)
