"""The command ``amp-migrate verify``."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from amp_migrate.equivalence.check import check, in_workspace
from amp_migrate.equivalence.comparison.verdict import CANNOT_RUN, Verdict
from amp_migrate.equivalence.options import APEX, DEVICES, Options, available_device
from amp_migrate.equivalence.recording import record_before
from amp_migrate.equivalence.report import terminal, writers
from amp_migrate.equivalence.runs.runner import Runner, write_export

_PROGRAM = "amp-migrate verify"
_WRITER = "torch.utils.tensorboard"
_FOLDER = click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path)
_FILE = click.Path(dir_okay=False, path_type=Path)


class _Steps(click.ParamType[tuple[int, ...]]):
    """Step numbers with commas between; "none" for no step."""

    name = "steps"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        if value == "none":
            return ()
        try:
            return tuple(int(part) for part in value.split(","))
        except ValueError:
            self.fail(f"{value!r} is not a list of step numbers such as 3,7", param, ctx)


class _Shim(click.ParamType[str]):
    """A name of a module, and the file and name of what stands in for it."""

    name = "shim"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        spelled = re.fullmatch(r"[\w.]+:\w+=(.+):\w+", value)
        if spelled is None:
            self.fail(f"{value!r} is not MODULE:ATTR=FILE:OBJECT", param, ctx)
        if not Path(spelled[1]).is_file():
            self.fail(f"{spelled[1]} is no file", param, ctx)
        return str(value)


@click.command(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    options_metavar="[OPTIONS] --",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="COMMAND [ARGS]...")
@click.option("--project", type=_FOLDER, help="The folder to copy and migrate; the current one.")
@click.option("--before", type=_FOLDER, help="The program before, as it is.")
@click.option("--after", type=_FOLDER, help="The program after, as it is (a migration by hand).")
@click.option("--link", multiple=True, metavar="PATH", help="Data folder to link, not copy.")
@click.option("--enable", "enables", is_flag=True, help="Before is FP32, after the same with AMP.")
@click.option("--codemod", default="", metavar="OPTIONS", help="Options for the migration.")
@click.option("--steps", default=24, show_default=True, type=click.IntRange(2))
@click.option(
    "--inject-overflow",
    type=_Steps(),
    default=(3, 7),
    metavar="3,7|none",
    help="Steps whose gradients are made infinite; 3,7 by default.",
)
@click.option(
    "--growth",
    default=10,
    show_default=True,
    type=click.IntRange(1),
    help="Growth interval in place of 2000, casts off.",
)
@click.option("--seed", default=0, show_default=True)
@click.option("--workers", type=click.IntRange(0), help="num_workers of every DataLoader.")
@click.option("--device", type=click.Choice(DEVICES), default="auto", show_default=True)
@click.option("--apex", type=click.Choice(APEX), default="auto", show_default=True)
@click.option(
    "--shim", type=_Shim(), multiple=True, metavar="MODULE:ATTR=FILE:OBJECT", help="A stand-in."
)
@click.option(
    "--stub",
    multiple=True,
    metavar="MODULE",
    help="A package that has to do nothing (loggers, plots).",
)
@click.option("--synthetic-data", is_flag=True, help="Stand-ins for the torchvision data sets.")
@click.option("--casts/--no-casts", default=True, help="Also compare with fp16 casts; the default.")
@click.option("--anchor", is_flag=True, help="Also measure both sides' errors against fp32.")
@click.option("--runs", default=0, type=click.IntRange(0), help="Runs a side for the envelope (5).")
@click.option("--margin", default=0.005, show_default=True, help="Loss difference allowed there.")
@click.option(
    "--timing/--no-timing", default=None, help="Step time and memory; on CUDA the default."
)
@click.option(
    "--batch-sizes",
    type=click.Choice(["auto"]),
    help="With --enable on CUDA: also time the largest batch that fits on each side.",
)
@click.option("--timeout", default=1800.0, show_default=True, help="Seconds for one run.")
@click.option("--show-output", is_flag=True, help="Let the program's output through.")
@click.option("--export", type=_FILE, help="Run before only and write it to this file.")
@click.option("--import", "imported", type=_FILE, help="Take before from an export.")
@click.option("--json", "json_file", type=_FILE, help="Write the report as JSON.")
@click.option("--html", "html_file", type=_FILE, help="Write the report as one HTML file.")
@click.option("--png", "png_file", type=_FILE, help="Write the curves as a picture.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="All three, here.")
@click.option("--color/--no-color", "colour", default=None)
def verify(
    command: tuple[str, ...],
    project: Path | None,
    json_file: Path | None,
    html_file: Path | None,
    png_file: Path | None,
    out: Path | None,
    colour: bool | None,
    **given: Any,
) -> int:
    """Run a training before and after its migration, and compare step by step.

    COMMAND is how the training is started: python train.py, python -m package, torchrun, a shell
    script. It runs several times in copies of the project, each stopped after --steps optimizer
    steps. This executes your code.

    \b
    Exit codes: 0 EXACT or EQUIVALENT, 1 DIFFERENT, 2 INCONCLUSIVE, 3 CANNOT_RUN.
    """
    if not command:
        raise click.UsageError("Name the command that starts the training: -- python train.py")
    if given["batch_sizes"] is not None and not given["enables"]:
        raise click.UsageError("--batch-sizes needs --enable.")
    if given["after"] is not None and given["before"] is None and given["imported"] is None:
        raise click.UsageError("--after needs --before or --import.")
    for name in given["stub"]:
        if name.partition(".")[0] in ("apex", "torch") and name != _WRITER:
            raise click.UsageError(f"--stub {name}: the comparison needs it.")
    options = _options(command, project, given)
    click.echo(f"running your code: {shlex.join(command)}  (device {options.device})", err=True)
    if options.export is not None:
        return _export(options, options.export)
    result = check(options)
    click.echo(terminal.render(result, _coloured(colour)), color=True, nl=False)
    targets = writers.targets(out, json_file, html_file, png_file)
    for path in writers.write(result, targets):
        click.echo(f"wrote {path}", err=True)
    return result.verdict.exit_code


def _options(command: tuple[str, ...], project: Path | None, given: dict[str, Any]) -> Options:
    device = given.pop("device")
    device = available_device() if device == "auto" else device
    timing = given.pop("timing")
    inject = given.pop("inject_overflow")
    return Options(
        command=command,
        given=_typed(command),
        project=(project or Path.cwd()).resolve(),
        inside=_inside(project),
        device=device,
        inject=() if given["enables"] else inject,  # nothing skips a step in FP32
        links=given.pop("link"),
        shims=given.pop("shim"),
        stubs=given.pop("stub"),
        codemod=tuple(shlex.split(given.pop("codemod"))),
        timing=device == "cuda" if timing is None else timing,
        **given,
    )


def _typed(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of the command line before those of `command`."""
    words = click.get_current_context().obj or ()
    before = words[: len(words) - len(command)]
    return before[:-1] if before[-1:] == ("--",) else before


def _inside(project: Path | None) -> Path:
    """Return the folder of the project that the command is to start in."""
    if project is None:
        return Path()
    here = Path.cwd().resolve()
    return here.relative_to(project) if here.is_relative_to(project) else Path()


def _export(options: Options, path: Path) -> int:
    """Record the before-runs that `--import` may ask for."""

    def work(runner: Runner) -> int:
        logic = record_before(runner)
        if not logic.steps:
            click.echo(f"before: {logic.failure or 'no optimizer step was recorded'}", err=True)
            return 3
        write_export(path, options, runner.before_runs)
        click.echo(f"wrote {path}", err=True)
        return 0

    def failed(verdict: Verdict) -> int:
        click.echo(verdict, err=True)
        return verdict.exit_code

    return in_workspace(options, work, failed)


def _coloured(colour: bool | None) -> bool:
    return terminal.wants_colour(sys.stdout) if colour is None else colour


def main(args: list[str]) -> int:
    """Run the command with `args` and return its exit code."""
    try:
        return int(
            verify.main(args=args, prog_name=_PROGRAM, standalone_mode=False, obj=tuple(args)) or 0
        )
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        error.show()
        return CANNOT_RUN_CODE
    except click.Abort:
        click.echo("stopped", err=True)
        return CANNOT_RUN_CODE


CANNOT_RUN_CODE = Verdict(CANNOT_RUN).exit_code
