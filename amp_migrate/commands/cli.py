"""The command line. It names the options and hands them on; what it hands them to is imported late."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from amp_migrate import __version__
from amp_migrate.commands.completion import Code, Codes, Listed
from amp_migrate.commands.failure import Failure
from amp_migrate.commands.program import CODEMOD, Codemod, ExistingPath, PassesOn, Program
from amp_migrate.settings import APIS, SCALERS, Settings

FORMATS = ("text", "concise", "json", "github", "sarif")
_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_EXTRA = ("torch", "numpy", "matplotlib")
_DTYPES = ("float16", "bfloat16")
MIGRATES = (*Settings.__dataclass_fields__, "force_exclude")
"""What a command that migrates without writing has in common with the one that writes."""


@click.group(cls=Program, context_settings=_CONTEXT)
def main() -> None:
    """Move PyTorch training code from NVIDIA Apex AMP to native AMP."""


@main.command(CODEMOD, cls=Codemod, hidden=True, context_settings=_CONTEXT)
@click.argument(
    "paths", nargs=-1, metavar="[PATH]...", type=ExistingPath(exists=True, allow_dash=True)
)
@click.option("--diff", "--dry-run", is_flag=True, help="Print a patch and write nothing.")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if anything is left to do.")
@click.option("--show-plan", is_flag=True, help="Print what would be done and why; write nothing.")
@click.option("--select", type=Codes(), metavar="CODES", help="Rules to use, as AMP1,AMP203.")
@click.option("--ignore", type=Codes(), metavar="CODES", help="Rules to leave out.")
@click.option("--fixes/--no-fixes", default=None, help="Fix known mistakes (AMP2xx); the default.")
@click.option("--only-fixes", is_flag=True, default=None, help="Stay with Apex; only fix mistakes.")
@click.option(
    "--unsafe", is_flag=True, default=None, help="Also rewrite what changes the training."
)
@click.option("--api", type=click.Choice(APIS), help="Spelling to write; auto asks the project.")
@click.option(
    "--scaler",
    type=click.Choice(SCALERS),
    help="Where a GradScaler lives: passed on, or a variable of its file.",
)
@click.option("--dependencies", is_flag=True, default=None, help="Remove requirements of Apex too.")
@click.option("--resume-compat", is_flag=True, default=None, help="Keep loading Apex checkpoints.")
@click.option("--exclude", type=Listed(), metavar="PATTERNS", help="In place of the default ones.")
@click.option("--extend-exclude", type=Listed(), metavar="PATTERNS", help="More to leave out.")
@click.option("--force-exclude", is_flag=True, help="Leave out even files that are named.")
@click.option("--tracked", is_flag=True, default=None, help="Only files that git tracks.")
@click.option("--stdin-filename", metavar="PATH", default="stdin.py", help="Name of the text of -.")
@click.option("--output-format", "form", type=click.Choice(FORMATS), default="text")
@click.option(
    "-o",
    "--output-file",
    "file",
    type=click.Path(path_type=Path),
    help="Where the report goes, or with --diff the patch.",
)
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 where it would be 1.")
@click.option("--exit-on-change", is_flag=True, help="Exit 1 where files were rewritten, too.")
@click.option("--color/--no-color", "colour", default=None, help="By default on a terminal.")
@click.option("--list-rules", is_flag=True, help="List the rules.")
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(0),
    help="Processes to rewrite and check in, 0: one for each core.",
)
@click.version_option(__version__, "-V", "--version", message="amp-migrate %(version)s")
@click.pass_context
def codemod(ctx: click.Context, /, paths: tuple[str, ...], list_rules: bool, **given: Any) -> None:
    """Rewrite NVIDIA Apex AMP to native AMP in the files at and below PATH, or the current folder.

    With - for PATH it goes from stdin to stdout.

    \b
    Other commands, each with --help:
      amp-migrate enable PATH                 add native AMP to plain FP32 training
      amp-migrate verify -- python train.py   run before and after, and compare
      amp-migrate report PATH                 what would be done and why, as a page
      amp-migrate explain CODE                what a rule does, and why
      amp-migrate convert-checkpoint OLD NEW  Apex amp state to GradScaler state

    \b
    Exit codes: 0 nothing left; 1 changes pending under --check, or findings that
    need a human; 2 wrong usage, an unreadable Apex file, a failed self-check, or
    files that could not be written (then none was).
    """
    if list_rules:
        ctx.invoke(explain, code=None)
        return
    from amp_migrate.commands.codemod import Options, run

    own = {name: given.pop(name) for name in Options._fields}
    ctx.exit(run(paths or (".",), Options(**own), given))


def _installing() -> str:
    """Return the command that brings what the extra `verify` has."""
    return shlex.join([sys.executable, "-m", "pip", "install", *_EXTRA])


@main.command(context_settings=_CONTEXT)
@click.argument("paths", nargs=-1, metavar="PATH...", type=click.Path(exists=True, allow_dash=True))
@click.option(
    "--dtype",
    type=click.Choice(_DTYPES),
    default="float16",
    show_default=True,
    help="Type of the casts; bfloat16 has no GradScaler.",
)
@click.option("--flag", metavar="NAME", help="Name of the option that switches AMP.")
@click.option("--always", is_flag=True, help="No option; AMP is always on.")
@click.pass_context
def enable(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    dtype: str,
    flag: str | None,
    always: bool,
    **given: Any,
) -> None:
    """Add native AMP to the plain FP32 trainings in the files at and below PATH.

    Programs with a command line get --amp/--no-amp. What trains with AMP already, or not at all, stays as it is;
    Apex is migrated first. Exit codes are those of the migration.
    """
    from amp_migrate.commands.codemod import Options
    from amp_migrate.commands.enable import run
    from amp_migrate.enable.enabling import Choices

    own = {name: given.pop(name) for name in Options._fields}
    ctx.exit(run(paths or (".",), Options(**own), given, Choices(dtype, flag, always)))


_OWN = ("api", "fixes", "exclude", "extend_exclude", "tracked", "ignore")
_ASKED = ("diff", "check", "show_plan", "force_exclude", "stdin_filename", "form", "file")
_LOUD = ("quiet", "exit_zero", "exit_on_change", "colour")
enable.params += [o for o in codemod.params if o.name in (*_OWN, *_ASKED, *_LOUD)]


@main.command(cls=PassesOn, add_help_option=False)
@click.pass_context
def verify(ctx: click.Context, arguments: list[str]) -> None:
    """Run a training before and after the migration, and compare step by step."""
    try:
        from amp_migrate.equivalence.cli import main as check
    except ModuleNotFoundError as error:
        raise Failure(f"verify needs {error.name}: {_installing()}") from error
    ctx.exit(check(arguments))


@main.command(context_settings=_CONTEXT)
@click.argument("paths", nargs=-1, metavar="PATH...", type=click.Path(exists=True))
@click.option(
    "-o",
    "--output-file",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("migration.html"),
    show_default=True,
    help="Where the page goes.",
)
def report(paths: tuple[str, ...], file: Path, **given: Any) -> None:
    """Write what would be done, and why, as one HTML page for a team; change nothing else.

    It shows every program, each file before and after side by side with the reason of every decision, and what
    is left to do. Exit codes are those of --diff.
    """
    from amp_migrate.commands.page_command import write_page

    excludes = given.pop("force_exclude")
    code = write_page(paths or (".",), file, given, force_exclude=excludes)
    click.get_current_context().exit(code)


report.params += [option for option in codemod.params if option.name in MIGRATES]


@main.command(context_settings=_CONTEXT)
@click.argument("code", required=False, type=Code())
def explain(code: str | None) -> None:
    """Say what a rule does, why, and how safe it is; without CODE, list the rules."""
    from amp_migrate.output.explain import explanation

    content = explanation(code)
    if content is None:
        raise click.UsageError(f"There is no rule {code}; amp-migrate explain lists them.")
    click.echo(content, nl=False)


@main.command("convert-checkpoint", context_settings=_CONTEXT)
@click.argument("old", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("new", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--key", default="amp", show_default=True, help="Where the Apex state is.")
@click.option("--new-key", default="scaler", show_default=True, help="Where the new state goes.")
@click.option("--micro-batches", type=click.IntRange(1), default=1, show_default=True)
@click.option("--static", is_flag=True, help="The loss scale never changes.")
@click.option("--growth-interval", type=click.IntRange(1), default=2000, show_default=True)
@click.option("--allow-pickle", is_flag=True, help="Load objects too; only for files you trust.")
@click.option("--force", is_flag=True, help="Overwrite NEW where it exists.")
def convert_checkpoint(
    old: Path,
    new: Path,
    key: str,
    new_key: str,
    micro_batches: int,
    static: bool,
    growth_interval: int,
    allow_pickle: bool,
    force: bool,
) -> None:
    """Write a checkpoint with the Apex amp state as the state of one GradScaler.

    --micro-batches is the number of backward passes per optimizer step. A GradScaler takes from its
    state how its scale changes, which is not in that of Apex: --static for a loss_scale= that is a number,
    --growth-interval for a _scale_seq_len, in backward passes.
    """
    if new.exists() and not force:
        raise Failure(f"{new}: exists already; --force overwrites it")
    try:
        from amp_migrate.checkpoint import ConversionError, Settings, convert
    except ModuleNotFoundError as error:
        raise Failure(f"convert-checkpoint needs {error.name}: {_installing()}") from error
    try:
        settings = Settings(static, growth_interval, micro_batches)
        done = convert(old, new, key, new_key, settings=settings, pickles=allow_pickle)
    except ConversionError as error:
        raise Failure(str(error)) from error
    click.echo(done, err=True)
