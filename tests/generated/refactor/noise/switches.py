"""A statement stands under a switch that is never thrown, whose name says more or less."""

from __future__ import annotations

import ast
import textwrap
from random import Random

from generated.refactor.code.identifiers import Edit
from generated.refactor.code.names import fresh
from generated.refactor.noise.spots import Spot, below_imports, block, drawn, with_lines
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_OFF = (
    "dry_run",
    "skip_update",
    "skip_step",
    "frozen",
    "flag_b",
    "evaluate",
    "is_last",
    "no_sync",
    "warming_up",
)
_ON = ("do_update", "apply_step", "training", "flag_a", "sync", "enabled", "should_step")


def _switched(project: Project, rng: Random) -> Project | None:
    """Put some statements under a parameter with a default, a variable or a constant of the module."""
    for spot in drawn(project, rng):
        run = spot.body[spot.index : spot.index + rng.choice((1, 1, 1, 2, 3))]
        if spot.function is None or not all(isinstance(s, ast.Expr | ast.With) for s in run):
            continue
        if any(
            isinstance(n, ast.NamedExpr | ast.Yield | ast.Return) for s in run for n in ast.walk(s)
        ):
            continue
        last = Spot(
            spot.path, spot.held, spot.function, spot.outer, spot.body, spot.index + len(run) - 1
        )
        source = spot.held.text[spot.start : last.end]
        if '"""' in source or "'''" in source or "\\\n" in source or not source.endswith("\n"):
            continue
        off = rng.random() < 0.7
        name = fresh(project, rng, _OFF if off else _ON)
        edits: list[Edit] = []
        made = _made(spot, rng.choice(("parameter", "variable", "constant")), name, not off)
        if made is None:
            continue
        inner = textwrap.indent(source, "    ", lambda line: bool(line.strip()))
        shown, edit = made
        edits = [
            edit,
            (spot.start, last.end, f"{spot.indent}if {'not ' if off else ''}{shown}:\n{inner}"),
        ]
        return with_lines(project, spot, edits)
    return None


def _made(spot: Spot, kind: str, name: str, value: bool) -> tuple[str, Edit] | None:
    """Return how a switch is read, and the edit that makes it."""
    held, function = spot.held, spot.function
    assert function is not None
    if kind == "constant":
        at = below_imports(held)
        return name.upper(), (at, at, f"\n{name.upper()} = {value}\n")
    arguments = function.args
    plain = not (
        arguments.vararg or arguments.kwonlyargs or arguments.kwarg or arguments.posonlyargs
    )
    if kind == "parameter" and plain and arguments.args and function.name != "main":
        ends = [held.span(a)[1] for a in (*arguments.args, *arguments.defaults)]
        return name, (max(ends), max(ends), f", {name}={value}")
    first = function.body[0]
    if ast.get_docstring(function) is not None or isinstance(first, ast.FunctionDef | ast.ClassDef):
        return None
    line = held.lines[first.lineno - 1]
    if line == spot.start or held.text[line : held.span(first)[0]].strip():
        return None
    indent = held.text[line : held.span(first)[0]]
    return name, (line, line, block(indent, f"{name} = {value}"))


REFACTORINGS = (Refactoring("a statement stands under a switch", "noise", _switched),)
