"""What a shell offers for a word that is not finished: commands, rule codes, the options of verify."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem


class Listed(click.ParamType[tuple[str, ...]]):
    """Values with commas between."""

    name = "list"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        return tuple(part.strip() for part in value.split(",") if part.strip())


class Codes(Listed):
    """Rule codes or their beginnings with commas between."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the last code of the list."""
        before, comma, last = incomplete.rpartition(",")
        return [CompletionItem(f"{before}{comma}{code}", help=said) for code, said in _rules(last)]


class Code(click.ParamType[str]):
    """One rule code."""

    name = "code"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete a code, with the title of its rule."""
        return [CompletionItem(code, help=said) for code, said in _rules(incomplete)]


def _rules(incomplete: str) -> list[tuple[str, str]]:
    from amp_migrate.rules import RULES

    known = sorted((rule.code, rule.title) for rule in RULES)
    return [(code, title) for code, title in known if code.startswith(incomplete.upper())]


def first_word(ctx: click.Context, incomplete: str, hidden: str) -> list[CompletionItem]:
    """Return the commands that fit the first word of a command line; nothing for a later one."""
    group = ctx.parent.command if ctx.parent is not None else None
    sources = map(ctx.get_parameter_source, ctx.params)
    if not isinstance(group, click.Group) or ParameterSource.COMMANDLINE in sources:
        return []
    return [
        CompletionItem(name, help=command.get_short_help_str())
        for name, command in group.commands.items()
        if name != hidden and name.startswith(incomplete)
    ]


def options_of_verify(arguments: list[str], incomplete: str) -> list[CompletionItem]:
    """Complete an option of verify or its value; behind ``--`` stands a command of the user."""
    if "--" in arguments:
        return [CompletionItem(incomplete, type="file")]
    from amp_migrate.equivalence.cli import verify

    context = verify.make_context("verify", list(arguments), resilient_parsing=True)
    last = arguments[-1] if arguments else ""
    for param in verify.params:
        waits = isinstance(param, click.Option) and not param.is_flag and last in param.opts
        if waits:
            return param.shell_complete(context, incomplete)
    return verify.shell_complete(context, incomplete)
