"""How a function was given the scaler."""

from __future__ import annotations

from dataclasses import dataclass, field

from amp_migrate.plan.model import AddParameter, Edit
from amp_migrate.project import Function

_DOC = "GradScaler that scales the loss"


@dataclass(slots=True)
class Thread:
    """How one function was given the scaler: the edits, and a sentence that says so."""

    function: Function
    sentence: str
    edits: list[tuple[str, Edit]] = field(default_factory=list)


def parameter(
    function: Function, name: str, default: str | None = None, *, given: bool = False
) -> tuple[str, Edit]:
    """Return the edit that gives a function the scaler as a parameter. Raises `ValueError` for a module."""
    if function.node is None:
        raise ValueError("module")
    span = function.module.tree.span(function.node)
    return function.module.path, AddParameter(span, name, default, _DOC, given)


def keeps_apart(function: Function) -> bool:
    """Tell whether a parameter that every call gives is keyword-only, as the last one has a default."""
    parameters = function.parameters
    return bool(parameters.positional) and parameters.positional[-1] in parameters.defaults
