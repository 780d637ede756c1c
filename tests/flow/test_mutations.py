"""Graphs drawn wrongly are refuted by runs: the skeletons see every kind of edge."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import pytest

from amp_migrate.flow import (
    Assumption,
    EdgeKind,
    Kind,
    Paths,
    Point,
    Truth,
    Way,
    build,
    cautious,
    keeping,
    term,
)
from amp_migrate.flow.cfg.blocks import Blocks
from amp_migrate.flow.cfg.expressions import Expressions
from amp_migrate.flow.cfg.sketch import Frame, Sketch
from amp_migrate.flow.cfg.statements import Statements
from tests.flow.against import check, infeasible
from tests.flow.skeleton import skeleton
from tests.flow.tape import Trace, compiled
from tests.flow.test_skeletons import PLAIN_NAMES, runs

CHANGES = import_module("amp_migrate.flow.changes")
REFINE = import_module("amp_migrate.flow.refine")
Patch = Callable[[pytest.MonkeyPatch], None]


def past_finally(way: Way) -> Patch:
    """Let `way` leave without running what must run on it."""

    def leave(self: Sketch, how: Way, ends: list[Any]) -> None:
        for frame in reversed(self.frames):
            if (
                (frame.cleanup is not None and how is not way)
                or (frame.catches and how is Way.RAISE)
                or (frame.loop and how in (Way.BREAK, Way.CONTINUE))
            ):
                frame.left.setdefault(how, []).extend(ends)
                return
        self.frames[0].left.setdefault(how, []).extend(ends)

    return lambda patch: patch.setattr(Sketch, "_leave", leave)


def loop(else_after_break: bool, continue_leaves: bool) -> Patch:
    """Run `else` after a `break` as well, or let `continue` leave the loop."""

    def run(self: Statements, node: Any, head: int, turn: Any, done: Any) -> None:
        sketch = self.sketch
        sketch.ends = turn
        with sketch.within(Frame(loop=True)) as frame:
            if not isinstance(node, ast.While):
                self.bind(node.target)
            self.block(node.body)
        sketch.join(sketch.ends, head, EdgeKind.LOOP)
        left, again = frame.take(Way.BREAK), frame.take(Way.CONTINUE)
        if not continue_leaves:
            sketch.join(again, head, EdgeKind.CONTINUE)
            again = []
        sketch.ends = done + (left if else_after_break else []) + again
        self.block(node.orelse)
        sketch.ends = sketch.ends + ([] if else_after_break else left)

    return lambda patch: patch.setattr(Statements, "_loop", run)


def short_circuit_turned(patch: pytest.MonkeyPatch) -> None:
    """Take `and` for `or`."""
    right = Expressions._bool_test

    def wrong(self: Expressions, node: ast.BoolOp) -> Any:
        op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return right(self, ast.BoolOp(op, node.values))

    patch.setattr(Expressions, "_bool_test", wrong)


def targets_first(patch: pytest.MonkeyPatch) -> None:
    """Evaluate the targets of an assignment before its value."""

    def wrong(self: Statements, node: ast.Assign) -> None:
        for target in node.targets:
            self.bind(target)
        self.value(node.value)

    patch.setattr(Statements, "_assign", wrong)


def call_before_arguments(patch: pytest.MonkeyPatch) -> None:
    """Evaluate the keywords of a call before its other arguments."""

    def wrong(self: Expressions, node: ast.Call) -> None:
        self.value(node.func)
        for keyword in node.keywords:
            self.value(keyword.value)
        self.values(node.args)
        self.sketch.add(Kind.CALL, node)

    patch.setattr(Expressions, "_call", wrong)


def else_is_guarded(patch: pytest.MonkeyPatch) -> None:
    """Let the handlers of a `try` catch what its `else` raises, and nothing that its body does."""

    def wrong(self: Blocks, node: Any) -> Any:
        sketch = self.sketch
        self.block(node.body)
        with sketch.within(Frame(catches=True)) as frame:
            self.block(node.orelse)
        after, sketch.ends = sketch.ends, frame.take(Way.RAISE)
        if sketch.ends:
            sketch.add(Kind.CAUGHT, node)
        return after

    patch.setattr(Blocks, "_body", wrong)


def handlers_always_fit(patch: pytest.MonkeyPatch) -> None:
    """Take the first handler for one that catches everything."""
    patch.setattr(Blocks, "_fits", lambda self, handler: (self.sketch.ends, []))


def no_context_swallows(patch: pytest.MonkeyPatch) -> None:
    """Take every context for one that lets exceptions through."""
    right = Blocks.__init__
    patch.setattr(Blocks, "__init__", lambda self, sketch, *_: right(self, sketch, lambda _: False))


def comprehension_runs_once(patch: pytest.MonkeyPatch) -> None:
    """Forget that a comprehension is a loop."""
    right = Sketch.join

    def wrong(self: Sketch, ends: Any, target: int, kind: EdgeKind) -> None:
        if not isinstance(self.points[target].node, ast.comprehension):
            right(self, ends, target, kind)

    patch.setattr(Sketch, "join", wrong)


MUTATIONS: dict[str, Patch] = {
    "break past finally": past_finally(Way.BREAK),
    "continue past finally": past_finally(Way.CONTINUE),
    "return past finally": past_finally(Way.RETURN),
    "exception past finally and with": past_finally(Way.RAISE),
    "else after break": loop(True, False),
    "continue leaves the loop": loop(False, True),
    "and is or": short_circuit_turned,
    "targets first": targets_first,
    "keywords first": call_before_arguments,
    "else is guarded": else_is_guarded,
    "handlers always fit": handlers_always_fit,
    "no context swallows": no_context_swallows,
    "comprehension runs once": comprehension_runs_once,
}


@cache
def run_of(seed: int) -> tuple[ast.FunctionDef, list[Trace]]:
    """Return a skeleton and its traces, which no mutation changes."""
    function, code = compiled(skeleton(seed))
    return function, runs(code, seed, 18)


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_wrong_graph_is_refuted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTATIONS[name](monkeypatch)
    assert any(check(build(function), traces) for function, traces in map(run_of, range(300)))


def stores_keep_facts(patch: pytest.MonkeyPatch) -> None:
    """Believe that a name holds what it held after it was stored to."""
    patch.setattr(CHANGES, "_after_store", lambda point, before, rule: before)


def calls_keep_attributes(patch: pytest.MonkeyPatch) -> None:
    """Believe that no call writes an attribute."""
    patch.setattr(CHANGES, "runs_code", lambda point: False)


def stored_values_on_both_ways(patch: pytest.MonkeyPatch) -> None:
    """Believe that every name that is stored to becomes true."""
    right = CHANGES._with_stored

    def wrong(point: Point, before: Assumption, left: Assumption) -> Assumption:
        found = right(point, before, left)
        spelled = term(point.node) if isinstance(point.node, ast.Name) else None
        return found if spelled is None else found.with_fact(spelled, Truth(True))

    patch.setattr(CHANGES, "_with_stored", wrong)


def branches_turned(patch: pytest.MonkeyPatch) -> None:
    """Learn from a comparison that failed that it held."""
    right = REFINE._refine_compared
    patch.setattr(
        REFINE, "_refine_compared", lambda known, node, truth: right(known, node, not truth)
    )


PATH_MUTATIONS: dict[str, Patch] = {
    "stores keep facts": stores_keep_facts,
    "calls keep attributes": calls_keep_attributes,
    "stored values are true": stored_values_on_both_ways,
    "branches turned": branches_turned,
}


@pytest.mark.parametrize("name", PATH_MUTATIONS)
def test_wrongly_pruned_paths_are_refuted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PATH_MUTATIONS[name](monkeypatch)
    for function, traces in map(run_of, range(300)):
        graph = build(function)
        if infeasible(Paths(graph, changes=keeping(cautious(graph), PLAIN_NAMES)), traces):
            return
    raise AssertionError(f"no skeleton refutes: {name}")
