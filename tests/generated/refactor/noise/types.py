"""Type annotations of parameters, results and variables."""

from __future__ import annotations

import ast
import re
from random import Random

from generated.refactor.code.identifiers import Edit, Text, edited
from generated.refactor.noise.helpers import texts
from generated.refactor.noise.spots import drawn, needing, with_lines
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_CHECKING = "from typing import TYPE_CHECKING"
_WORDS = {
    "Module": {
        "model",
        "net",
        "network",
        "module",
        "generator",
        "discriminator",
        "model_d",
        "model_g",
    },
    "Optimizer": {"optimizer", "optim", "optimizer_d", "optimizer_g", "optim_d", "optim_g"},
    "DataLoader": {"loader", "train_loader", "val_loader", "dataloader"},
    "Tensor": {
        "loss",
        "images",
        "labels",
        "inputs",
        "targets",
        "data",
        "target",
        "output",
        "outputs",
        "x",
        "y",
    },
}
_GUARDED = {
    "Optimizer": "from torch.optim import Optimizer",
    "Module": "from torch.nn import Module",
    "DataLoader": "from torch.utils.data import DataLoader",
    "Tensor": "from torch import Tensor",
}


def _annotated(project: Project, rng: Random) -> Project | None:
    """The parameters of some functions get types, and so do their results."""
    for path, held in texts(project, rng):
        functions = [n for n in ast.walk(held.tree) if isinstance(n, ast.FunctionDef)]
        functions = [f for f in functions if _parameters(f)]
        if not functions:
            continue
        edits: list[Edit] = []
        used: set[str] = set()
        for function in functions if rng.random() < 0.5 else [rng.choice(functions)]:
            for parameter in _parameters(function):
                kind = _kind(held, parameter.arg, rng)
                used.add(kind.strip('"'))
                stop = held.span(parameter)[1]
                spaced = held.text[stop] == "="
                edits.append((stop, stop + spaced, f": {kind}" + (" = " if spaced else "")))
            edits += _result(held, function)
        edits += _needs(held, used)
        return project.changed(path, edited(held.text, edits))
    return None


def _parameters(function: ast.FunctionDef) -> list[ast.arg]:
    a = function.args
    every = [*a.posonlyargs, *a.args, *a.kwonlyargs]
    return [p for p in every if p.annotation is None and p.arg not in ("self", "cls")]


def _kind(held: Text, name: str, rng: Random) -> str:
    """Return a type that a name suggests, spelt as the file can."""
    bound = held.scopes[0].bound
    named = next((k for k, words in _WORDS.items() if name in words), "")
    spelt = {
        "Module": "torch.nn.Module",
        "Tensor": "torch.Tensor",
        "Optimizer": "torch.optim.Optimizer",
    }
    if named in spelt and "torch" in bound and rng.random() < 0.5:
        return spelt[named]
    if named and not bound & {*_GUARDED, "TYPE_CHECKING"}:
        return f'"{named}"'
    return "object" if "Any" in bound else rng.choice(("Any", "Any", "object"))


def _needs(held: Text, used: set[str]) -> list[Edit]:
    """Return the edits that import what the annotations name, for type checkers alone where they quote it."""
    lines = ["from typing import Any"] if "Any" in used else []
    guarded = [f"    {_GUARDED[name]}" for name in sorted(used & set(_GUARDED))]
    if guarded:
        lines += [_CHECKING, "\n".join(["if TYPE_CHECKING:", *guarded])]
    return needing(held, *lines)


def _result(held: Text, function: ast.FunctionDef) -> list[Edit]:
    """Return the edit that says that a function returns nothing."""
    if function.returns or any(
        isinstance(n, ast.Return | ast.Yield | ast.YieldFrom) for n in ast.walk(function)
    ):
        return []
    stop = held.span(function.body[0])[0]
    head = held.text[held.span(function)[0] : stop]
    colon = re.search(r"\)(\s*):\s*(#[^\n]*)?(\n\s*(#[^\n]*)?)*$", head)
    if not colon or ast.get_docstring(function) is not None:
        return []
    at = held.span(function)[0] + colon.start() + 1
    return [(at, at, " -> None")]


def _variable(project: Project, rng: Random) -> Project | None:
    """Variables get types where they are assigned."""
    for spot in drawn(project, rng):
        statement = spot.statement
        if not isinstance(statement, ast.Assign) or len(statement.targets) > 1:
            continue
        target = statement.targets[0]
        scope = next((s for s in spot.held.scopes if s.node is spot.function), None)
        if (
            isinstance(target, ast.Name)
            and scope
            and target.id not in scope.elsewhere | dict.fromkeys(scope.parameters)
        ):
            plain = True
        else:
            plain = isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self"
        if not plain:
            continue
        typed = _kind(spot.held, ast.unparse(target).removeprefix("self."), rng)
        stop = spot.held.span(target)[1]
        edits = [(stop, stop, f": {typed}"), *_needs(spot.held, {typed.strip('"')})]
        return with_lines(project, spot, edits)
    return None


REFACTORINGS = (
    Refactoring("parameters get types", "noise", _annotated),
    Refactoring("a variable gets a type", "noise", _variable),
)
