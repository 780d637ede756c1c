"""One run of `amp-migrate enable` from paths to a report: find what trains, set Apex apart, enable and check twice."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping

from amp_migrate.enable.enabling import Choices, Enabled, enable
from amp_migrate.enable.reporting import fill
from amp_migrate.modules.select import relevant
from amp_migrate.output import progress
from amp_migrate.plan.model import Finding, Status
from amp_migrate.report import Problem, Report
from amp_migrate.run import with_api
from amp_migrate.settings import Settings
from amp_migrate.source.discover import Hit, Other, discover, folders
from amp_migrate.source.file import Source, UnreadableSource
from amp_migrate.source.mentions import may_use_apex
from amp_migrate.source.span import Span

_MARK = b"\n# amp-migrate: a file that leads to others"
_TRAINS = b".backward("


def run_paths(
    paths: Collection[str], settings: Settings, choices: Choices, *, force_exclude: bool = False
) -> Report:
    """Add AMP to the trainings at and below `paths`; nothing is written yet."""
    report = Report(enables=True)
    contents: dict[str, bytes | Callable[[], bytes]] = {}
    for count, item in enumerate(discover(paths, settings, force_exclude=force_exclude), 1):
        progress.at("reading", count)
        if isinstance(item, Hit):
            contents[item.path] = item.data
        elif isinstance(item, Other):
            if not item.ignored:
                contents[item.path] = item.read
        elif item.error:
            report.problems.append(Problem(item.path, item.reason))
        else:
            report.passed_over.append(item)
    report.read = len(contents)
    _enable(report, contents, folders(paths), settings, choices)
    return report


def run_texts(texts: Mapping[str, bytes], settings: Settings, choices: Choices) -> Report:
    """Add AMP to the trainings of files that are one project and are not read from the disk."""
    report = Report(enables=True, read=len(texts))
    _enable(report, texts, [], settings, choices)
    return report


def _enable(
    report: Report,
    contents: Mapping[str, bytes | Callable[[], bytes]],
    roots: list[str],
    settings: Settings,
    choices: Choices,
) -> None:
    read = {path: held if isinstance(held, bytes) else held() for path, held in contents.items()}
    sources = {source.path: source for source in _decoded(_training(read, roots), report)}
    apex = [path for path, source in sources.items() if may_use_apex(source.text)]
    data = {path: source.data for path, source in sources.items()}
    apart = set(_leading(data, roots, apex))
    report.sources = dict(sources)
    settings = with_api(settings, report, roots)
    report.api = settings.api
    progress.at("adding AMP", len(sources))
    own = {path: source for path, source in sources.items() if path not in apart}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = enable(list(own.values()), choices, settings)
        _repeat(done, own, choices, settings, report)
    done.findings += [_first(sources[path]) for path in apex]
    fill(report, sources, done, choices)


def _training(data: Mapping[str, bytes], roots: list[str]) -> dict[str, bytes]:
    """Return the files that run a backward pass, with those that lead to them and that they lead to."""
    seeds = [path for path, content in data.items() if _TRAINS in content]
    found = set(_leading(data, roots, seeds))
    return {path: content for path, content in data.items() if path in found}


def _leading(data: Mapping[str, bytes], roots: list[str], seeds: Iterable[str]) -> list[str]:
    """Return the files that some files work together with, those included."""
    marked = {path: data[path] + _MARK for path in seeds}
    return relevant({**data, **marked}, roots, _MARK) if marked else []


def _decoded(data: Mapping[str, bytes], report: Report) -> Iterable[Source]:
    for path, content in data.items():
        try:
            yield Source.from_bytes(path, content)
        except UnreadableSource as error:
            report.problems.append(Problem(error.path, error.reason))


def _repeat(
    done: Enabled,
    sources: Mapping[str, Source],
    choices: Choices,
    settings: Settings,
    report: Report,
) -> None:
    """Take back everything where a second run would change something again."""
    if not done.texts:
        return
    progress.at("checking that a second run changes nothing", len(sources))
    again = [s.with_text(done.texts.get(path, s.text)) for path, s in sources.items()]
    changed = enable(again, choices, settings).texts
    if changed:
        why = "stays as it was: a second run would change it again"
        report.problems += [Problem(path, why) for path in changed]
        done.texts.clear()


def _first(source: Source) -> Finding:
    """Return what is said about a file that uses Apex."""
    lines = source.text.split("\n")
    number = next((n for n, line in enumerate(lines) if may_use_apex(line)), 0)
    said = "this uses Apex, and so has AMP already"
    advice = f"run amp-migrate {source.path} first, which makes it native AMP"
    span = Span(number + 1, 0, number + 1, len(lines[number]))
    return Finding(source.path, span, "AMP593", Status.LEFT, said, advice)
