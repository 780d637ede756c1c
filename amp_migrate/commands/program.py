"""The kinds of commands and arguments of the command line: a first command without a name, paths, and arguments passed on."""

from __future__ import annotations

import errno
import gc
import os
from typing import Any

import click

from amp_migrate.commands.completion import first_word, options_of_verify
from amp_migrate.commands.failure import Failure
from amp_migrate.stopping import raised

CODEMOD = "codemod"
"""Name of the command that runs where none is named."""


class Program(click.Group):
    """A group whose first command needs no name: what names no command is a path or an option."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run as the program of a process, with which all that was made goes: no garbage is looked for at its end."""
        try:
            return super().__call__(*args, **kwargs)
        finally:
            gc.freeze()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            args = ["--help"]
        if not args or args[0] not in self.commands or args[0] == CODEMOD:
            args = [CODEMOD, *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; whatever the system refuses ends it with one line."""
        try:
            with raised():
                return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Failure("stopped") from error
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            raise Failure.of(error) from error


class NamelessContext(click.Context):
    """Messages name the program alone, as the user did."""

    @property
    def command_path(self) -> str:
        return self.parent.command_path if self.parent else super().command_path


class Codemod(click.Command):
    context_class = NamelessContext


class ExistingPath(click.Path):
    """A path that exists; one that does not may be a command with a slip in it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if ctx is not None and not os.path.lexists(value) and value != "-":
            from difflib import get_close_matches

            commands = [name for name in _commands(ctx) if name != CODEMOD]
            close = get_close_matches(value, commands, n=1)
            if close:
                said = f"There is no file or folder {value!r}. Did you mean the command {close[0]}?"
                raise click.UsageError(said, ctx)
        return super().convert(value, param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[Any]:
        """Complete a path; the first word may be a command as well."""
        offered = super().shell_complete(ctx, param, incomplete)
        return first_word(ctx, incomplete, hidden=CODEMOD) + offered


class PassesOn(click.Command):
    """Leaves every argument, also ``--``, to the check itself."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.params["arguments"] = list(args)
        return []

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Complete the options of the check."""
        return options_of_verify(ctx.params.get("arguments", []), incomplete)


def _commands(ctx: click.Context) -> list[str]:
    program = ctx.find_root().command
    return list(program.commands) if isinstance(program, click.Group) else []
