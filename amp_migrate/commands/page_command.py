"""The command ``amp-migrate report``: a migration as one page for a team; no code is written."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from amp_migrate.api import common_folder, migrate_project
from amp_migrate.commands.codemod import chosen_settings, opened
from amp_migrate.output import progress
from amp_migrate.output.html.page import render
from amp_migrate.output.style import Style
from amp_migrate.output.summary import decided, problems, summary


def write_page(
    paths: Sequence[str], file: Path, given: Mapping[str, Any], *, force_exclude: bool
) -> int:
    """Put the page of a migration into `file`; return the exit code, that of ``--diff``. Raises `Failure`."""
    with opened(file) as output:
        settings = chosen_settings(paths, given)
        with progress.shown(sys.stderr):
            result = migrate_project(paths, settings=settings, force_exclude=force_exclude)
        page = render(result.report, common_folder(paths), paths)
        output.write(page.encode("utf-8", "replace"))
    verdict = result.report.exit(check=False, diff=True, exit_zero=False)
    style = Style.of(sys.stderr, None)
    told = [*problems(result.report, style), summary(result.report, style), decided(verdict, style)]
    click.echo("".join(told) + f"wrote {file}", err=True)
    return verdict.code
