"""The report of a run: what became of each training, in the form that every output reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from amp_migrate.enable.described.trainings import Training
from amp_migrate.enable.enabling import Choices, Enabled, Left
from amp_migrate.plan.model import Decision, Finding, Status
from amp_migrate.plan.unit_summary import Choice, Role, UnitSummary
from amp_migrate.report import Counts, FileChange, Problem, Report
from amp_migrate.source.file import Source, UnwritableSource
from amp_migrate.source.span import Span
from amp_migrate.words import plural


@dataclass(frozen=True, slots=True)
class TrainingSummary(UnitSummary):
    """One training as `--show-plan` shows it; `refused` says why it stays in FP32, if it does."""

    def describe(self) -> dict[str, object]:
        """Return the training as plain data."""
        size = f"a training with {plural(len(self.roles), 'part')} in {plural(len(self.files), 'file')}"
        return {**asdict(self), "size": size}


def fill(report: Report, sources: Mapping[str, Source], done: Enabled, choices: Choices) -> None:
    """Put into a report what became of trainings."""
    report.findings = sorted(
        [*done.findings, *_of_trainings(done, sources, choices)],
        key=lambda f: (f.path, f.span, f.code),
    )
    report.decisions = [Decision(finding) for finding in report.findings]
    fixed = sum(f.status is Status.FIXED for f in report.findings)
    left = sum(f.status is Status.LEFT for f in report.findings)
    made = sum(f.status is Status.MIGRATED for f in report.findings)
    report.counts = Counts(made + fixed + left, made, fixed, left)
    report.units = [_summary(training, why, report.findings) for training, why in done.trained]
    report.compared = done.compared
    for path in sorted(done.texts):
        source, text = sources[path], done.texts[path]
        try:
            report.changes.append(FileChange(source, text, source.encode(text)))
        except UnwritableSource as error:
            report.problems.append(Problem(path, f"stays as it was: {error.reason}"))


def _of_trainings(
    done: Enabled, sources: Mapping[str, Source], choices: Choices
) -> Iterator[Finding]:
    """Yield a finding for every training: that it has AMP now, or why it stays as it is."""
    seen = set()
    for training, why in done.trained:
        if why is None:
            first = training.optimizers[0]
            names = ", ".join(dict.fromkeys(f"`{o.spoken}`" for o in training.optimizers))
            how = "a GradScaler" if choices.scaled else "bfloat16, which needs no GradScaler"
            span = first.module.tree.span(first.call)
            said = f"the training of {names} runs under autocast now, with {how}"
            yield Finding(first.module.path, span, "AMP501", Status.MIGRATED, said)
        elif why not in seen:
            seen.add(why)
            span = _line(sources[why.path], why)
            yield Finding(why.path, span, why.code, Status.LEFT, why.message, why.advice)


def _line(source: Source, why: Left) -> Span:
    line = source.text.split("\n")[why.line - 1]
    return Span(why.line, len(line) - len(line.lstrip()), why.line, len(line.rstrip()))


def _summary(training: Training, why: Left | None, findings: list[Finding]) -> TrainingSummary:
    files = [module.path for module in training.modules]
    roles = [
        _role(o.module.path, o.call, o.function.qualname, "optimizer") for o in training.optimizers
    ]
    roles += [
        _role(b.module.path, b.call, b.function.qualname, "backward") for b in training.backwards
    ]
    choices = [Choice(f.path, f.span.line, f.code, f.message) for f in findings if f.path in files]
    named = list(dict.fromkeys([*files, *(c.file for c in choices)]))
    return TrainingSummary(named, roles, choices, why.message if why else "")


def _role(path: str, call: ast.Call, function: str, role: str) -> Role:
    return Role(path, call.lineno, function, role)
