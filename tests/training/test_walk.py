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


def test_what_runs_nothing_is_followed_once(function: Function) -> None:
    walk, places, taken = _walk(function, _BEFORE, {"out": 7})
    assert walk.run(places["y"]) == set()
    assert sorted(taken) == ["data", "y"]
    assert walk.run(places["data"]) == set()
    assert walk.run(places["loss"]) == {7}
    assert sorted(taken) == ["data", "loss", "out", "x", "y"]


def test_nodes_are_all_there_behind_what_runs_nothing(function: Function) -> None:
    walk, places, _ = _walk(function, _BEFORE, {"out": 7})
    assert walk.run(places["y"]) == set()
    run, nodes = walk.back([places["loss"]])
    assert run == {7}
    assert nodes == {node for _, node in places.values()}
