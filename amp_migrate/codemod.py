"""The default command: settle the settings, run, and hand the report to the console."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

from amp_migrate.api import common_folder, migrate_project, migrate_source
from amp_migrate.output.console import Console
from amp_migrate.report import Report
from amp_migrate.run import write_changes
from amp_migrate.settings import Settings, SettingsError, read_settings

_USAGE = 2
_OLD_SPELLING = b"torch.cuda.amp"


class Options(NamedTuple):
    """What the command line alone can say; the other options are those of `Settings`."""

    diff: bool
    check: bool
    show_plan: bool
    force_exclude: bool
    stdin_filename: str
    form: str
    file: Path | None
    quiet: bool
    exit_zero: bool
    colour: bool | None

    @property
    def writes(self) -> bool:
        """Whether files are rewritten."""
        return not (self.diff or self.check or self.show_plan)


def run(paths: tuple[str, ...], options: Options, given: Mapping[str, Any]) -> int:
    """Run the codemod over files and folders, or over stdin for "-"; return the exit code.

    `given` are fields of `Settings`, None where the command line did not say.
    """
    if given.get("only_fixes"):
        if given.get("fixes") is False:
            raise click.UsageError("--only-fixes and --no-fixes exclude each other.")
        given = {**given, "fixes": True}
    console = Console(options.form, options.file, options.quiet, options.colour)
    stdin = "-" in paths
    if stdin and len(paths) > 1:
        raise click.UsageError("- stands alone.")
    if console.needs_stdout and (options.diff or (stdin and options.writes)):
        raise click.UsageError(f"--output-format {options.form} needs --output-file here.")
    folder = common_folder([options.stdin_filename] if stdin else paths)
    try:
        settings = read_settings(folder).updated(given)
        _check_codes(settings)
    except SettingsError as error:
        click.echo(f"Error: {error}", err=True)
        return _USAGE
    data = sys.stdin.buffer.read() if stdin else b""
    try:
        if stdin:
            name = options.stdin_filename
            report = migrate_source(data, filename=name, settings=settings).report
        else:
            skips = options.force_exclude
            report = migrate_project(paths, settings=settings, force_exclude=skips).report
    except Exception:
        import traceback

        traceback.print_exc()
        click.echo("Error: a fault of amp-migrate itself; nothing was written", err=True)
        return _USAGE
    if options.show_plan:
        console.plan(report)
        return 0
    if options.writes and stdin:
        console.data(report.changes[0].after if report.changes else data)
    elif options.writes:
        write_changes(report)
    if options.diff:
        console.patch(report)
    verdict = report.exit(check=options.check, diff=options.diff, exit_zero=options.exit_zero)
    console.report(report, verdict, _spelling_hint(settings, report))
    return verdict.code


def _check_codes(settings: Settings) -> None:
    asked = (*settings.select, *settings.ignore)
    if not asked:
        return
    from amp_migrate.rules import RULES

    for code in asked:
        if not any(rule.code.startswith(code) for rule in RULES):
            raise SettingsError(f"no rule begins with {code}; amp-migrate explain lists them")


def _spelling_hint(settings: Settings, report: Report) -> str:
    if settings.api != "auto" or not report.changes or settings.only_fixes:
        return ""
    if report.api == "torch.amp":
        return "hint: the project declares torch >= 2.4, so this is torch.amp; see --api"
    if any(_OLD_SPELLING in change.after for change in report.changes):
        return "hint: torch >= 2.4 warns about torch.cuda.amp; --api torch.amp writes its new name"
    return ""
