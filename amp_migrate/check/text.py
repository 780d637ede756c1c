"""Refuse a rewrite that does not compile, or that leaves names undefined or unused."""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from amp_migrate.facts.paths import sets

if TYPE_CHECKING:
    from pyflakes.messages import Message

_COMPILE_FLAGS = {False: 0, True: ast.PyCF_ALLOW_TOP_LEVEL_AWAIT}
_REASONS = {
    "UndefinedName": "uses '{}', which nothing defines",
    "UndefinedLocal": "uses '{}' before it is assigned",
    "UndefinedExport": "exports '{}', which nothing defines",
    "UnusedImport": "imports '{}' and does not use it",
    "UnusedVariable": "assigns '{}' and does not use it",
    "UnusedIndirectAssignment": "declares '{}' and does not assign it",
    "RedefinedWhileUnused": "redefines '{}' before it is used",
}


def check(before: str, after: str, path: str) -> str | None:
    """Return why `after` must not replace `before`; None where it may.

    Only what the rewrite brought in counts: a name that was undefined before may stay so.
    """
    notebook = path.endswith(".ipynb")
    if notebook:
        from amp_migrate.source.notebook import misplaced_cell

        reason = misplaced_cell(before, after)
        if reason:
            return reason
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reason = _compile_error(after, path, notebook)
        if reason is not None and _compile_error(before, path, notebook) is None:
            return reason
        return _new_message(before, after, path)


def unused(before: str, after: str, path: str) -> list[tuple[str, str]]:
    """Return the imports and variables that `after` leaves unused, and declarations: ("import", "variable" or "declaration", name)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            new = _messages(after, path)
            new.subtract(_messages(before, path, hidden=True))
        except SyntaxError:
            return []
    kinds = {
        "UnusedImport": "import",
        "UnusedVariable": "variable",
        "UnusedIndirectAssignment": "declaration",
    }
    return [
        (kinds[kind], name) for (kind, name), n in sorted(new.items()) if n > 0 and kind in kinds
    ]


# Names that a rewrite brings in: a star import is no reason to believe that they are bound.
_OURS = {"torch", "scaler", "grad_scaler", "amp_scaler", "native_scaler"}


def _starred(text: str, path: str) -> set[str]:
    """Return the names that only a star import may define."""
    found = _flaws(text, path)
    return {str(m.message_args[0]) for m in found if type(m).__name__ == "ImportStarUsage"}


@lru_cache(maxsize=8)
def _flaws(text: str, path: str) -> tuple[Message, ...]:
    """Return the messages of pyflakes, which are asked for several times for one text."""
    from pyflakes.checker import Checker

    return tuple(Checker(ast.parse(text), path).messages)


def _compile_error(text: str, path: str, notebook: bool) -> str | None:
    try:
        compile(text, path, "exec", _COMPILE_FLAGS[notebook], dont_inherit=True)
    except SyntaxError as error:
        return f"does not compile: {error.msg} (line {error.lineno} of the result)"
    except (RecursionError, MemoryError, ValueError) as error:
        return f"does not compile: {error}"
    return None


def _new_message(before: str, after: str, path: str) -> str | None:
    try:
        new = _messages(after, path)
        new.subtract(_messages(before, path, hidden=True))
    except SyntaxError as error:
        return f"does not parse: {error.msg} (line {error.lineno} of the result)"
    for name in _OURS & (_starred(after, path) - _starred(before, path)):
        return _REASONS["UndefinedName"].format(name)
    for (kind, name), count in sorted(new.items()):
        # An unused variable of the user is not ours to remove with what made it.
        if count > 0 and not (kind == "UnusedVariable" and sets(ast.parse(before), name)):
            return _REASONS[kind].format(name)
    return None


def _messages(text: str, path: str, hidden: bool = False) -> Counter[tuple[str, str]]:
    """Count the messages of a text; `hidden`: with the undefined names that a star import may define."""
    found: Counter[tuple[str, str]] = Counter()
    for message in _flaws(text, path):
        kind = type(message).__name__
        if kind == "ImportStarUsage" and hidden:
            kind = "UndefinedName"
        if kind not in _REASONS:
            continue
        subject = _subject(kind, message.message_args)
        if kind != "UnusedImport" or not subject.endswith(".*"):  # nobody knows what that is for
            found[kind, subject] += 1
    return found


def _subject(kind: str, arguments: Sequence[object]) -> str:
    if isinstance(arguments, str):
        return arguments
    return (
        " ".join(map(str, arguments)) if kind == "UnusedIndirectAssignment" else str(arguments[0])
    )
