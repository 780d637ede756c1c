"""Measure amp-migrate on a folder against what it cannot go below, in the same run.

CPU seconds of child processes, the least of some repetitions. The ratios are what counts: they do
not depend on the machine.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

_PYTHON = sys.executable
_ROOT = Path(__file__).resolve().parent.parent

IMPORT_CLICK = "import click"
SCAN = """
import os, sys
def walk(folder):
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from walk(entry.path)
            elif entry.name.endswith((".py", ".ipynb")):
                yield entry.path
for path in walk(sys.argv[1]):
    with open(path, "rb") as file:
        b"apex" in file.read()
"""
PARSE = """
import sys
import libcst as cst
for path in open(sys.argv[1]).read().splitlines():
    try:
        cst.parse_module(open(path, "rb").read())
    except Exception:
        pass
"""
IMPORT_LIBCST = "import libcst"


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds and peak memory (MiB) of one process."""

    seconds: float
    peak: float


@dataclass(frozen=True, slots=True)
class Bar:
    """A ratio or a size that must not be above `limit`."""

    name: str
    value: float
    limit: float
    unit: str

    @property
    def met(self) -> bool:
        """Whether the bar is met."""
        return self.value <= self.limit


def measure(command: Sequence[str], repeat: int) -> Cost:
    """Run a command some times; return the least CPU time and its peak memory."""
    return min((_once(command) for _ in range(repeat)), key=lambda cost: cost.seconds)


def _once(command: Sequence[str]) -> Cost:
    environment = {**os.environ, "PYTHONPATH": str(_ROOT), "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    child = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1, 2):
        raise click.ClickException(f"{' '.join(command)}: exit {child.returncode}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def python(code: str, *arguments: str) -> list[str]:
    """Return the command that runs a piece of Python."""
    return [_PYTHON, "-c", code, *arguments]


def tool(*arguments: str) -> list[str]:
    """Return the command that runs the checkout's amp-migrate."""
    return [_PYTHON, "-m", "amp_migrate", *arguments]


def importers(folder: Path) -> list[str]:
    """Return the files below a folder that really import Apex."""
    from amp_migrate.source.mentions import uses_apex

    found = []
    for path in sorted(folder.rglob("*.py")):
        data = path.read_bytes() if path.is_file() else b""
        if b"apex" in data and uses_apex(data.decode("utf-8", "replace")):
            found.append(str(path))
    return found


def bars(folder: Path, repeat: int) -> list[Bar]:
    """Measure everything for one folder."""
    importing = measure(python(IMPORT_CLICK), 5 * repeat)
    version = measure(tool("--version"), 5 * repeat)
    scan = measure(python(SCAN, str(folder)), repeat)
    run = measure(tool(str(folder), "--diff"), repeat)
    start = measure(python("pass"), 5 * repeat)
    floor = importing.seconds + scan.seconds - start.seconds
    found = importers(folder)
    rows = [("import click", importing), ("--version", version), ("walk, read, search", scan)]
    results = [Bar("--version against import click", version.seconds / importing.seconds, 1.5, "x")]
    if found:
        listing = folder / ".amp-migrate-bench"
        listing.write_text("\n".join(found))
        try:
            parse = measure(python(PARSE, str(listing)), repeat)
        finally:
            listing.unlink()
        library = measure(python(IMPORT_LIBCST), repeat).seconds
        parsing = parse.seconds - library
        beyond = run.seconds - floor - library + start.seconds
        rows.append((f"LibCST parse of {len(found)} importers", Cost(parsing, parse.peak)))
        results.append(
            Bar("run beyond scan and imports against the parse", beyond / parsing, 6, "x")
        )
    else:
        results.append(Bar("run without a hit against its floor", run.seconds / floor, 1.5, "x"))
    results.append(Bar("peak memory", run.peak, 120, "MiB"))
    for name, cost in [*rows, ("amp-migrate --diff", run)]:
        click.echo(f"{name:<40} {cost.seconds:8.3f} s {cost.peak:8.1f} MiB")
    return results


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--repeat", default=3, show_default=True, help="Repetitions; the least counts.")
def main(folders: tuple[Path, ...], repeat: int) -> None:
    """Measure amp-migrate on FOLDERS; exit 1 where a bar is missed."""
    sys.path.insert(0, str(_ROOT))
    missed = False
    for folder in folders:
        click.echo(f"{folder}")
        for bar in bars(folder, repeat):
            missed = missed or not bar.met
            verdict = "met" if bar.met else "MISSED"
            click.echo(f"  {bar.name}: {bar.value:.2f} {bar.unit} (bar {bar.limit:g}) {verdict}")
    raise SystemExit(int(missed))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
