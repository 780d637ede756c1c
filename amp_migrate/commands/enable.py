"""The command that adds AMP: settle the settings, run, and hand the report to the console."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from amp_migrate.commands.codemod import (
    Options,
    answered,
    chosen_settings,
    console_of,
    guarded,
    standard_input,
)
from amp_migrate.enable.enabling import Choices


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
    stdin = "-" in paths
    if stdin and len(paths) > 1:
        raise click.UsageError("- stands alone.")
    with console_of(options) as console:
        if console.needs_stdout and (options.diff or (stdin and options.writes)):
            raise click.UsageError(f"--output-format {options.form} needs --output-file here.")
        settings = chosen_settings([options.stdin_filename] if stdin else paths, given)
        data = standard_input() if stdin else None
        if data is not None:
            name = options.stdin_filename
            report = guarded(lambda: run_texts({name: data}, settings, choices))
        else:
            skips = options.force_exclude
            report = guarded(lambda: run_paths(paths, settings, choices, force_exclude=skips))
        return answered(report, console, options, settings, data)
