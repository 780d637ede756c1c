"""What is said of Apex outside of the code, and what can be removed of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from amp_migrate.dependencies.asides import without_asides
from amp_migrate.dependencies.files import is_one, naming_apex
from amp_migrate.dependencies.levels import with_levels_told
from amp_migrate.dependencies.lines import Line, asking
from amp_migrate.dependencies.options import DECLARES, declared, forgotten, parsed, span_of, spoken
from amp_migrate.dependencies.stale import stale
from amp_migrate.dependencies.told import TEXTS
from amp_migrate.dependencies.torch_limit import note_limits, source_of
from amp_migrate.facts.paths import argument
from amp_migrate.plan.model import Finding, Status
from amp_migrate.report import FileChange, Report
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source, UnwritableSource
from amp_migrate.source.span import Span

CODE = "AMP309"
_APEX = re.compile(r"\bapex\b", re.I)
_AMP = re.compile(r"\bamp\b|mixed[ -]precision|\bfp16\b|half[ -]precision|\bopt[-_]level\b", re.I)
_ASIDE = "what this says of Apex, in brackets, goes"
_LEVEL = "this says of the levels what holds now"
_IMPORTS = re.compile(r"^\s*(import|from)\s+apex\b", re.M)


def look(report: Report, paths: Iterable[str], settings: Settings) -> None:
    """Note what asks for Apex though no code of the project does any more; with `dependencies` it goes.

    Of a project in which some does, that is what is said in migrated files that import it no more. What keeps torch
    too old for what is written is noted in both.
    `report` gets the findings, and the changes where lines go.
    """
    if not settings.migrates:
        return
    note_limits(report, paths, settings)
    if settings.enabled(CODE):
        _look(report, paths, settings)
    report.findings.sort(key=lambda item: (item.path, item.span, item.code))


def _look(report: Report, paths: Iterable[str], settings: Settings) -> None:
    report.findings += _shortened(report)
    if _needs_apex(report):
        changes = (change for change in report.changes if not _IMPORTS.search(change.text))
        report.findings += [item for change in changes for item in stale(change, CODE)]
        if not report.counts.left and not report.problems:  # what stays are parts beside AMP
            report.findings += _helps(report, _AMP)
        return
    for name, data in naming_apex(paths, settings):
        source = report.sources.get(name) or source_of(name, data)
        found = list(asking(source)) if source is not None else []
        if source is None or not found:
            continue
        report.sources[name] = source
        changed = any(change.path == name for change in report.changes)
        gone = [line for line in found if settings.dependencies and line.removable and not changed]
        if not _remove(report, source, {line.number for line in gone}):
            gone = []
        report.findings += [_finding(name, line, line in gone) for line in found]
    report.findings += _texts(report, paths, settings)
    report.findings += _helps(report)
    report.findings += [item for change in report.changes for item in stale(change, CODE)]


def _needs_apex(report: Report) -> bool:
    """Tell whether code of the project still imports Apex, or may."""
    imports = [item for item in report.findings if item.code == "AMP101"]
    stays = any(item.status in (Status.LEFT, Status.NOTE) for item in imports)
    return stays or report.counts.left > 0 or bool(report.problems)


def _remove(report: Report, source: Source, numbers: set[int]) -> bool:
    """Take whole lines out of a file; tell whether that was done."""
    if not numbers:
        return False
    lines = source.text.split("\n")
    text = "\n".join(line for number, line in enumerate(lines, 1) if number not in numbers)
    try:
        report.changes.append(FileChange(source, text, source.encode(text)))
    except UnwritableSource:
        return False
    return True


def _shortened(report: Report) -> Iterator[Finding]:
    """Take Apex out of comments and help texts that are known, of files that import it no more, and yield where."""
    for number, change in enumerate(report.changes):
        if not change.path.endswith((".py", ".pyw")) or _IMPORTS.search(change.text):
            continue
        text, asides = without_asides(change.source.text, change.text)
        text, levels = with_levels_told(change.source.text, text)
        if asides or levels:
            report.changes[number] = FileChange(change.source, text, change.source.encode(text))
        for places, message in ((asides, _ASIDE), (levels, _LEVEL)):
            for at in places:
                yield Finding(change.path, at, CODE, Status.ROUTINE, message)


def _finding(path: str, line: Line, gone: bool) -> Finding:
    stripped = line.text.strip()
    start = line.text.index(stripped)
    span = Span(line.number, start, line.number, start + len(stripped))
    if gone:
        return Finding(path, span, CODE, Status.ROUTINE, "goes, as no code uses Apex any more")
    message = "this installs Apex, which no code in the files given imports any more"
    if line.plain:
        message = "this installs the package apex of PyPI, which is not NVIDIA's and which no code imports"
    advice = "delete what installs it here"
    if line.removable:
        advice = "delete the line, or run again with --dependencies"
    return Finding(path, span, CODE, Status.NOTE, message, advice)


def _texts(report: Report, paths: Iterable[str], settings: Settings) -> Iterator[Finding]:
    """Yield the first line of each text for people that speaks of Apex."""
    for name, data in naming_apex(paths, settings, TEXTS):
        source = report.sources.get(name) or source_of(name, data)
        if source is None or not is_one(name, TEXTS):
            continue
        for number, line in enumerate(source.text.split("\n"), 1):
            if (said := _APEX.search(line)) is not None:
                report.sources[name] = source
                message = (
                    "this text speaks of Apex, which no code in the files given imports any more"
                )
                advice = "say what holds now: nothing has to be installed for AMP but torch"
                span = Span(number, said.start(), number, said.end())
                yield Finding(name, span, CODE, Status.NOTE, message, advice)
                break


def _helps(report: Report, told: re.Pattern[str] = _APEX) -> Iterator[Finding]:
    """Yield the options whose help text speaks of Apex and of what is `told`, and those that nothing reads once it is gone."""
    now = {name: source.text for name, source in report.sources.items() if _is_code(name)}
    now |= {change.path: change.text for change in report.changes if change.path in now}
    changed = [(change.source.text, change.text) for change in report.changes if change.path in now]
    unread = {(path, spoken(call)) for path, call in forgotten(changed, now)}
    for source in report.sources.values():
        if not _is_code(source.path) or not any(map(source.text.__contains__, DECLARES)):
            continue
        tree, after = parsed(source.text), parsed(now[source.path])
        said = {spoken(c) for c in _speaking(after)} if after is not None else set()
        for call in declared(tree) if tree is not None else ():
            help_text = argument(call, "help")
            if (source.path, spoken(call)) in unread and call.args:
                message = f"nothing reads {spoken(call)} any more: what did so went with Apex"
                advice = "delete it, or say in its help text that it does nothing, where scripts still pass it"
                span = span_of(call.args[0], source.text)
            elif help_text is None or not told.search(ast.unparse(help_text)):
                continue
            elif spoken(call) in said and _speaks(call):
                message = f"the help text of {spoken(call)} speaks of Apex"
                advice, span = "say what the option does now", span_of(help_text, source.text)
            else:
                continue
            yield Finding(source.path, span, CODE, Status.NOTE, message, advice)


def _speaking(tree: ast.Module) -> Iterator[ast.Call]:
    return filter(_speaks, declared(tree))


def _speaks(call: ast.Call) -> bool:
    """Tell whether the help text of an option names Apex."""
    said = argument(call, "help")
    return said is not None and _APEX.search(ast.unparse(said)) is not None


def _is_code(path: str) -> bool:
    return path.endswith((".py", ".pyw", ".ipynb"))
