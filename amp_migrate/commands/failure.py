"""What ends a command with one line."""

from __future__ import annotations

import click

from amp_migrate.words import os_reason


class Failure(click.ClickException):
    """Ends the command with one line and the exit code of a failure."""

    exit_code = 2

    @classmethod
    def of(cls, error: OSError) -> Failure:
        """Make one of a system call that failed."""
        names = [str(name) for name in (error.filename, error.filename2) if name is not None]
        return cls(": ".join([*names, os_reason(error)]))
