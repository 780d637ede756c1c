"""Programs without AMP that share code with one that has it: what a fix does to them is said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import PurePath

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.plan.model import Decision, Finding, Status
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.reach import reachable, upwards


def named_elsewhere(
    project: Project, found: Iterable[Site], decisions: Iterable[Decision]
) -> Iterator[Decision]:
    """Yield decisions; a fix in code that programs without AMP run as well names those."""
    initializing = {site.function for site in found if site.kind is Kind.INITIALIZE}
    for decision in decisions:
        finding = decision.finding
        if finding.status is Status.FIXED and initializing:
            others = _without(
                project, _function(project.modules[finding.path], finding), initializing
            )
            if others:
                verb = "trains" if len(others) == 1 else "train"
                told = f"{finding.message}; so it does in {' and '.join(others)}, which {verb} without AMP"
                decision.finding = replace(finding, message=told)
        yield decision


def _function(module: Module, finding: Finding) -> Function:
    """Return the innermost function in which a finding stands."""
    around = [f for f in module.functions.values() if f.spans(finding.span.line)]
    return max(around, key=lambda f: f.node.lineno if f.node is not None else 0)


def _without(project: Project, function: Function, initializing: set[Function]) -> list[str]:
    """Return the names of the files of programs that run a function, and none that initializes."""
    return sorted(
        PurePath(top.module.path).name
        for top in upwards(project, function)
        if top.node is None and not initializing & set(reachable(project, top))
    )
