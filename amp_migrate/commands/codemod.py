"""The default command: settle the settings, run, and hand the report to the console."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from amp_migrate.api import common_folder, migrate_project, migrate_source
from amp_migrate.commands.failure import Failure
from amp_migrate.output import progress
from amp_migrate.output.console import Console
from amp_migrate.output.hints import apply_hint, spelling_hint
from amp_migrate.output.target import OutputFile
from amp_migrate.report import Report
from amp_migrate.run import write_changes
from amp_migrate.settings import Settings, SettingsError, read_settings
from amp_migrate.source.file import SourceError
from amp_migrate.words import os_reason

_USAGE = 2
_UNTOUCHED = "nothing was written"


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
    exit_on_change: bool
    colour: bool | None

    @property
    def writes(self) -> bool:
        """Whether files are rewritten."""
        return not (self.diff or self.check or self.show_plan)


def run(paths: tuple[str, ...], options: Options, given: Mapping[str, Any]) -> int:
    """Run the codemod over files and folders, or over stdin for "-"; return the exit code.

    `given` are fields of `Settings`, None where the command line did not say. Raises `Failure`, and then
    nothing was written.
    """
    if given.get("only_fixes"):
        if given.get("fixes") is False:
            raise click.UsageError("--only-fixes and --no-fixes exclude each other.")
        given = {**given, "fixes": True}
    return told(paths, options, given, partial(_migrated, paths, options))


def told(
    paths: tuple[str, ...],
    options: Options,
    given: Mapping[str, Any],
    work: Callable[[Settings, bytes | None], Report],
) -> int:
    """Run some work on files and folders, or on stdin for "-", and say what it found; return the exit code."""
    stdin = "-" in paths
    if stdin and len(paths) > 1:
        raise click.UsageError("- stands alone.")
    with _console(options) as console:
        if console.needs_stdout and (options.diff or (stdin and options.writes)):
            raise click.UsageError(f"--output-format {options.form} needs --output-file here.")
        settings = chosen_settings([options.stdin_filename] if stdin else paths, given)
        data = standard_input() if stdin else None
        report = _guarded(lambda: work(settings, data))
        return _answered(report, console, options, settings, data)


@contextmanager
def _console(options: Options) -> Iterator[Console]:
    """Open where the output goes before anything is done."""
    with nullcontext() if options.file is None else opened(options.file) as file:
        yield Console(options.form, file, options.quiet, options.colour, options.diff)


@contextmanager
def opened(path: Path) -> Iterator[OutputFile]:
    """Open a file for output. Raises `Failure`."""
    try:
        file = OutputFile(path)
    except OSError as error:
        raise Failure(f"{path}: {os_reason(error)}; {_UNTOUCHED}") from error
    try:
        yield file
    finally:
        file.close()


def chosen_settings(paths: Iterable[str], given: Mapping[str, Any]) -> Settings:
    """Return the settings of a project with what the command line says. Raises `Failure`."""
    try:
        settings = read_settings(common_folder(paths)).updated(given)
        _check_codes(settings)
    except SettingsError as error:
        raise Failure(str(error)) from error
    return settings


def _check_codes(settings: Settings) -> None:
    settings.refuse_parts()
    asked = (*settings.select, *settings.ignore)
    if not asked:
        return
    from amp_migrate.rules import RULES

    for code in asked:
        if not any(rule.code.startswith(code) for rule in RULES):
            raise SettingsError(f"no rule begins with {code}; amp-migrate explain lists them")


def standard_input() -> bytes:
    """Return what comes on stdin. Raises `Failure`."""
    if sys.stdin is None:
        raise Failure("standard input is closed")
    return sys.stdin.buffer.read()


def _migrated(
    paths: tuple[str, ...], options: Options, settings: Settings, data: bytes | None
) -> Report:
    if data is not None:
        return migrate_source(data, filename=options.stdin_filename, settings=settings).report
    skips = options.force_exclude
    return migrate_project(paths, settings=settings, force_exclude=skips).report


def _guarded(work: Callable[[], Report]) -> Report | None:
    """Return what a run finds; None for a fault of the tool itself, which is shown."""
    try:
        with progress.shown(sys.stderr):
            return work()
    except SettingsError as error:
        raise Failure(str(error)) from error
    except OSError:
        raise
    except Exception:
        import traceback

        traceback.print_exc()
        click.echo(f"Error: a fault of amp-migrate itself; {_UNTOUCHED}", err=True)
        return None


def _answered(
    report: Report | None,
    console: Console,
    options: Options,
    settings: Settings,
    data: bytes | None,
) -> int:
    """Write or print what a run found; return the exit code. `data` is what came on stdin."""
    if report is None:
        return _USAGE
    if options.show_plan:
        console.plan(report)
        return 0
    if options.writes and data is not None:
        console.data(report.changes[0].after if report.changes else data)
    elif options.writes:
        _write(report)
    if options.diff:
        console.patch(report)
    verdict = report.exit(
        check=options.check,
        diff=options.diff,
        exit_zero=options.exit_zero,
        exit_on_change=options.exit_on_change,
    )
    hint = spelling_hint(settings, report)
    if options.diff and data is None:
        hint = "\n".join(filter(None, [hint, apply_hint(report)]))
    console.report(report, verdict, hint)
    return verdict.code


def _write(report: Report) -> None:
    try:
        write_changes(report)
    except SourceError as error:
        raise Failure(f"{error}; {_UNTOUCHED}") from error
    except KeyboardInterrupt as error:
        raise Failure(f"stopped; {_UNTOUCHED}") from error
