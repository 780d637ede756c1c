"""Run the codemod over a folder of checkouts and tell how much of their Apex code it migrates.

Each child folder is one repository. Nothing in it is changed and none of its code is run.
With --refactor, each is migrated once more after refactorings of its Apex files that change nothing
of what they do, and what is migrated then stands beside what was before.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path

import click
from corpus_refactor import Pair, measure_both
from corpus_run import Output, Row, measure

_HEAD = ("repository", "sites", "found", "migr", "fixed", "left", "whole", "files", "s", "trouble")
_SHOWN = 30


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--only", multiple=True, help="Take the repositories whose name holds this.")
@click.option("--skip", multiple=True, help="Leave out the repositories whose name holds this.")
@click.option("-j", "--jobs", default=2, show_default=True, help="Repositories at a time.")
@click.option("--json", "report", type=click.Path(path_type=Path), help="Write all of it here.")
@click.option("--write", "copies", type=click.Path(path_type=Path), help="Keep migrated copies.")
@click.option("--diffs", type=click.Path(path_type=Path), help="Keep one patch per repository.")
@click.option("--limit", default=600.0, show_default=True, help="Seconds that one run may take.")
@click.option("--refactor", is_flag=True, help="Measure refactored copies too.")
@click.option("--seed", default=0, show_default=True, help="Draw other refactorings.")
@click.option("-v", "--verbose", is_flag=True, help="Name every trouble and every site left.")
def main(
    folder: Path,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    jobs: int,
    report: Path | None,
    copies: Path | None,
    diffs: Path | None,
    limit: float,
    refactor: bool,
    seed: int,
    verbose: bool,
) -> None:
    """Migrate a copy of each repository in FOLDER and print what came of it."""
    checkouts = sorted(
        (path for path in folder.iterdir() if path.is_dir()), key=lambda path: path.name.lower()
    )
    checkouts = [path for path in checkouts if not only or any(text in path.name for text in only)]
    checkouts = [path for path in checkouts if not any(text in path.name for text in skip)]
    if not checkouts:
        raise click.UsageError(f"no repository in {folder}")
    if refactor:
        if copies or diffs or report:
            raise click.UsageError("--refactor prints only")
        _refactored(checkouts, seed, jobs, limit)
        return
    form = _form(max(len(path.name) for path in checkouts))
    click.echo(form.format(*_HEAD))
    rows: list[Row] = []
    run = partial(measure, output=Output(copies, diffs), limit=limit)
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        for row in pool.map(run, checkouts):
            rows.append(row)
            click.echo(form.format(*_cells(row)).rstrip())
            if report:
                report.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    for line in _details(rows) if verbose else ():
        click.echo(line)
    for line in summary(rows):
        click.echo(line)


def _refactored(checkouts: list[Path], seed: int, jobs: int, limit: float) -> None:
    """Print what is migrated of each repository as it is, and of a refactored copy."""
    form = f"{{:{max(len(path.name) for path in checkouts)}}} {{:>9}} {{:>10}} {{:>6}}  {{}}"
    click.echo(form.format("repository", "sites", "refactored", "steps", "trouble"))
    pairs: list[Pair] = []
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        for pair in pool.map(partial(measure_both, seed=seed, limit=limit), checkouts):
            pairs.append(pair)
            sides = [
                f"{row.scale_loss[0] - row.scale_loss[1]}/{row.scale_loss[0]}" for row in pair.rows
            ]
            steps = pair.applied.done.total()
            click.echo(form.format(pair.plain.name, *sides, steps, _trouble(pair.other)).rstrip())
    for line in refactored_summary(pairs):
        click.echo(line)


def refactored_summary(pairs: list[Pair]) -> Iterator[str]:
    """Yield the share of sites migrated before and after the refactorings, and what they were."""
    yield ""
    for title, side in (("as they are", 0), ("refactored", 1)):
        rows = [pair.rows[side] for pair in pairs]
        found = sum(row.scale_loss[0] for row in rows)
        rest = sum(row.scale_loss[1] for row in rows)
        whole = sum(row.whole for row in rows if row.uses[0])
        users = sum(bool(row.uses[0]) for row in rows)
        yield (
            f"{title:12} scale_loss sites migrated {found - rest} of {found} ({_share(found - rest, found)}), "
            f"repositories wholly {whole} of {users}"
        )
    steps: Counter[str] = Counter()
    undone: Counter[str] = Counter()
    for pair in pairs:
        steps.update(pair.applied.done)
        undone.update(pair.applied.undone)
    files = sum(pair.applied.files for pair in pairs)
    yield f"files refactored {files}, refactorings {steps.total()}, undone as the check failed {undone.total()}"
    yield from _lost(pairs)
    yield "\nrefactorings: applied, undone"
    for name in sorted(steps | undone, key=lambda n: (-steps[n], n)):
        yield f"{steps[name]:6} {undone[name]:4}  {name}"


def _lost(pairs: list[Pair]) -> Iterator[str]:
    """Yield the repositories of which less is migrated after the refactorings, with what is said of that."""
    for pair in pairs:
        plain, other = pair.rows
        if other.scale_loss[1] > plain.scale_loss[1] or (other.crash and not plain.crash):
            yield f"\nless of {plain.name}: {plain.scale_loss[1]} sites stayed, now {other.scale_loss[1]}"
            new = Counter(other.causes) - Counter(plain.causes)
            yield from (f"{count:6}  {cause}" for cause, count in new.most_common())
            yield from (f"  {line}" for line in other.crash.splitlines()[-1:])


def _form(width: int) -> str:
    """Return the format of a line of the table; its cells are those of `_HEAD`.

    "sites" is scale_loss blocks migrated / found by the scan, "found" to "left" is the tool's tally.
    """
    return f"{{:{width}}} {{:>9}} {{:>5}} {{:>5}} {{:>5}} {{:>5}} {{:>5}} {{:>5}} {{:>6}}  {{}}"


def _cells(row: Row) -> tuple[str | int, ...]:
    found, rest = row.scale_loss
    counts = [row.total(status) for status in ("migrated", "fixed", "left")]
    whole = "yes" if row.whole else "no"
    sites = f"{found - rest}/{found}"
    seconds = f"{row.seconds:.1f}"
    return row.name, sites, sum(counts), *counts, whole, len(row.changed), seconds, _trouble(row)


def _trouble(row: Row) -> str:
    lists = {**row.troubles, "given up": row.problems}
    words = [f"{len(items)} {kind}" for kind, items in lists.items() if items]
    return ", ".join((["crashed"] if row.crash else []) + words)


def _details(rows: list[Row]) -> Iterator[str]:
    for row in rows:
        named = {**row.troubles, "problem": row.problems, "left": row.left}
        lines = [f"{kind}: {item}" for kind, items in named.items() for item in items]
        lines += [f"crash: {line}" for line in row.crash.splitlines()]
        if lines:
            yield f"\n{row.name}"
            yield from (f"  {line}" for line in lines)


def summary(rows: list[Row]) -> Iterator[str]:
    """Yield the totals, the two shares, and why sites were left."""
    found = sum(row.scale_loss[0] for row in rows)
    rest = sum(row.scale_loss[1] for row in rows)
    users = [row for row in rows if row.uses[0]]
    whole = sum(row.whole for row in users)
    yield ""
    yield f"scale_loss sites migrated   {found - rest} of {found} ({_share(found - rest, found)})"
    yield f"repositories wholly         {whole} of {len(users)} ({_share(whole, len(users))})"
    uses = sum(row.uses[0] for row in rows), sum(row.uses[1] for row in rows)
    yield f"Apex AMP uses remaining     {uses[1]} of {uses[0]}"
    counts = [sum(row.total(status) for row in rows) for status in ("migrated", "fixed", "left")]
    yield "tally of the tool           {} migrated, {} fixed, {} left".format(*counts)
    yield f"files changed               {sum(len(row.changed) for row in rows)}"
    yield f"no Python 3 before          {sum(len(row.unparsed) for row in rows)}"
    yield f"given up by the tool        {sum(len(row.problems) for row in rows)}"
    for kind in rows[0].troubles:
        yield f"{kind:27} {sum(len(row.troubles[kind]) for row in rows)}"
    yield f"crashed                     {sum(bool(row.crash) for row in rows)}"
    yield f"seconds                     {sum(row.seconds for row in rows):.1f}"
    yield from _counted("left by code", [row.findings.get("left", {}) for row in rows])
    yield from _counted("why", [row.causes for row in rows])


def _counted(title: str, counts: list[dict[str, int]]) -> Iterator[str]:
    """Yield the commonest of what the repositories counted, and in how many of them it occurs."""
    sites: Counter[str] = Counter()
    for count in counts:
        sites.update(count)
    yield f"\n{title}: sites, repositories"
    for name, number in sites.most_common(_SHOWN):
        yield f"{number:6} {sum(name in count for count in counts):4}  {name}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


if __name__ == "__main__":
    main()
