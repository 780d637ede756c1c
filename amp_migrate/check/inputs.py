"""Whether the gradients of inputs, which no step reads, keep the scale that they had under Apex."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

from amp_migrate.check.apex.assumed import Initialize, guards
from amp_migrate.check.apex.facts import Facts
from amp_migrate.check.apex.initialized import initialized
from amp_migrate.check.apex.steady import steady
from amp_migrate.check.casts.enabled import Enabled
from amp_migrate.check.events.sides import Key, Side, differs
from amp_migrate.check.events.traces import Difference
from amp_migrate.check.gradients.scaled import scaled_now
from amp_migrate.flow.assumption import NOTHING
from amp_migrate.project import Function
from amp_migrate.project.programs import beside
from amp_migrate.training.bindings import spelt_out
from amp_migrate.training.gradients.used import Gradients

RESCALED = (
    "is the gradient of an input, which is multiplied by the loss scale now and was not under Apex:"
)


def rescaled(old: Side, new: Side, every: Iterable[Initialize]) -> Iterator[tuple[Key, Difference]]:
    """Yield the gradients of inputs behind a plain backward that runs with AMP on and is scaled now."""
    found = list(scaled_now(old, new))
    assumed = list(_assumed(old, every)) if found else []
    for name, function, call, _ in found:
        near = [enabled for files, enabled in assumed if function.module.path in files]
        if any(_may_run(enabled, function, call) for enabled in near):
            yield from _read_behind(old, name, function, call)


def _assumed(old: Side, every: Iterable[Initialize]) -> Iterator[tuple[Collection[str], Enabled]]:
    """Yield the files beside each initialize that turns AMP on, and what stays as it was there as long as AMP is on."""
    program = old.program
    live = [item for item in every if item.on is not None]
    for item in live:
        facts = Facts(((item.function, item.on or NOTHING), *item.callers))
        apex = initialized(program, {other.call for other in live}, facts)
        known = steady(program, apex, apex.spread(apex.entries()), facts)
        yield beside(program.project, item.function.module.path), Enabled(program, known, known)


def _may_run(enabled: Enabled, function: Function, call: ast.Call) -> bool:
    """Tell whether the tests around a call may come out so that it runs."""
    return all(
        enabled.truth(function, spelt_out(function.module, test)) is not (not wanted)
        for test, wanted in guards(function, call)
    )


def _read_behind(
    old: Side, name: Key, function: Function, backward: ast.Call
) -> Iterator[tuple[Key, Difference]]:
    """Yield the first gradient of an input that is read behind a backward, by its function or by those that call it."""
    gradients = Gradients(old.program.project)
    places: list[tuple[Function, ast.Call]] = [(function, backward)]
    seen = {function}
    for where, call in places:
        graph = old.program.graph(where)
        order = graph.order(exceptions=False)
        for node in where.own_nodes:
            if not isinstance(node, ast.Attribute) or not gradients.of_input(where, node):
                continue
            if any(order.may_reach(a, b) for a in graph.at(call) for b in graph.at(node)):
                _, difference = differs(where, node, f"`{ast.unparse(node)}` {RESCALED}")
                yield name, difference
                return
        for site in old.program.project.callers(where):
            if site.function not in seen:
                seen.add(site.function)
                places.append((site.function, site.call))
