"""The command ``amp-migrate report``: a migration as one page for a team; no code is written."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from amp_migrate.api import common_folder, migrate_project
from amp_migrate.output.html.page import render
from amp_migrate.output.style import Style
from amp_migrate.output.summary import decided, problems, summary
from amp_migrate.settings import SettingsError, read_settings
from amp_migrate.words import os_reason

_USAGE = 2


def write_page(
    paths: Sequence[str], file: Path, given: Mapping[str, Any], *, force_exclude: bool
) -> int:
    """Put the page of a migration into `file`; return the exit code, that of ``--diff``."""
    try:
        settings = read_settings(common_folder(paths)).updated(given)
    except SettingsError as error:
        return _failed(str(error))
    result = migrate_project(paths, settings=settings, force_exclude=force_exclude)
    page = render(result.report, common_folder(paths), paths)
    try:
        file.write_text(page, encoding="utf-8", errors="replace")
    except OSError as error:
        return _failed(f"{file}: {os_reason(error)}")
    verdict = result.report.exit(check=False, diff=True, exit_zero=False)
    style = Style.of(sys.stderr, None)
    told = [*problems(result.report, style), summary(result.report, style), decided(verdict, style)]
    click.echo("".join(told) + f"wrote {file}", err=True)
    return verdict.code


def _failed(reason: str) -> int:
    click.echo(f"Error: {reason}", err=True)
    return _USAGE
