"""The way back from values, once for many of them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.project import Function, build
from amp_migrate.training.origins.walk import Origin, Place, Step, Walk

_MODULE = "def f(x):\n    return x\n"


@pytest.fixture
def function() -> Function:
    """Any function."""
    return next(f for f in build({"m.py": Tree("m.py", _MODULE)}).functions() if f.name == "f")


def _walk(
    function: Function, before: Mapping[str, Sequence[str]], runs: Mapping[str, int]
) -> tuple[Walk, dict[str, Place], list[str]]:
    """Return a walk over nodes by name, the places of them and the steps that it takes."""
    nodes = {name: ast.Name(name) for name in before}
    taken: list[str] = []

    def step(where: Function, node: ast.AST) -> Step:
        assert isinstance(node, ast.Name)
        taken.append(node.id)
        onward = [Origin(where, nodes[name]) for name in before[node.id]]
        return Step([runs[node.id]] if node.id in runs else [], onward)

    def given(number: int) -> Place:
        raise AssertionError(number)

    places: dict[str, Place] = {name: (function, node) for name, node in nodes.items()}
    return Walk(step, given), places, taken


_BEFORE = {"loss": ["out", "y"], "out": ["x"], "x": ["data"], "y": ["data"], "data": ["y"]}


def test_run_names_what_is_run_on_every_way(function: Function) -> None:
    walk, places, _ = _walk(function, _BEFORE, {"out": 7, "x": 9})
    assert walk.run(places["loss"]) == {7, 9}
    assert walk.run(places["x"]) == {9}
    assert walk.run(places["y"]) == set()


def test_every_step_is_taken_once_whatever_runs_on_the_way(function: Function) -> None:
    walk, places, taken = _walk(function, _BEFORE, {"out": 7, "y": 8})
    assert walk.run(places["y"]) == {8}
    assert sorted(taken) == ["data", "y"]
    assert walk.run(places["data"]) == {8}
    assert walk.run(places["loss"]) == {7, 8}
    assert sorted(taken) == ["data", "loss", "out", "x", "y"]


def test_a_result_comes_of_what_its_own_call_hands_in(function: Function) -> None:
    one, other = (ast.Call(ast.Name("f"), [], []) for _ in range(2))
    parameter, first, second = ast.arg("x"), ast.Name("first"), ast.Name("second")
    onward: dict[ast.AST, list[Origin]] = {
        one: [Origin(function, parameter, down=one)],
        other: [Origin(function, parameter, down=other)],
        parameter: [Origin(function, first, up=one), Origin(function, second, up=other)],
    }
    runs: dict[ast.AST, list[int]] = {first: [1], second: [2]}

    def step(_: Function, node: ast.AST) -> Step:
        return Step(runs.get(node, []), onward.get(node, []))

    walk = Walk(step, lambda _: (function, first))
    assert walk.run((function, one)) == {1}
    assert walk.run((function, other)) == {2}
    assert walk.run((function, parameter)) == {1, 2}


def test_nodes_are_all_there_behind_what_runs_nothing(function: Function) -> None:
    walk, places, _ = _walk(function, _BEFORE, {"out": 7})
    assert walk.run(places["y"]) == set()
    run, nodes = walk.back([places["loss"]])
    assert run == {7}
    assert nodes == {node for _, node in places.values()}
