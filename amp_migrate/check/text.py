"""Refuse a rewrite that does not compile, or that leaves names undefined or unused."""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from amp_migrate.facts.constants import string
from amp_migrate.facts.paths import path, sets

if TYPE_CHECKING:
    from pyflakes.messages import Message

_COMPILE_FLAGS = {False: 0, True: ast.PyCF_ALLOW_TOP_LEVEL_AWAIT}
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
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
    written = ast.parse(after)
    asked = _asked_by_name(written)
    gone = _bound(ast.parse(before)) - _bound(written) if asked else set[str]()
    for name in sorted(asked & gone):
        return f"looks for '{name}' by its name, which nothing binds any more"
    for name in _OURS & (_starred(after, path) - _starred(before, path)):
        return _REASONS["UndefinedName"].format(name)
    for (kind, name), count in sorted(new.items()):
        # An unused variable of the user is not ours to remove with what made it.
        if count > 0 and not (kind == "UnusedVariable" and sets(ast.parse(before), name)):
            return _REASONS[kind].format(name)
    return None


def _bound(tree: ast.Module) -> set[str]:
    """Return the names that a text binds, in whatever scope."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
    return found


def _asked_by_name(tree: ast.Module) -> set[str]:
    """Return the names that a text looks up among those of its file: ``globals().get("amp")``, ``"amp" in dir()``."""
    found: set[str] = set()
    local = {n for f in ast.walk(tree) if isinstance(f, _FUNCTIONS) for n in ast.walk(f)}
    for node in ast.walk(tree):
        held: ast.expr | None = None
        keys: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            held, keys = node.comparators[0], [node.left]
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            held, keys = node.value, [node.slice]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            held, keys = node.func.value, node.args[:1]
        elif isinstance(node, ast.Call) and path(node.func) in ("getattr", "hasattr"):
            held, keys = node.args[0], node.args[1:2]
        if held is not None and _is_namespace(held, node in local):
            found |= {key for part in keys if (key := string(part)) is not None}
    return found


def _is_namespace(node: ast.expr, local: bool) -> bool:
    """Tell whether an expression gives the names of the file, in a function or not, or the file as a module."""
    if isinstance(node, ast.Subscript):
        return path(node.value) == "sys.modules" and path(node.slice) == "__name__"
    named = isinstance(node, ast.Call) and not node.args and path(node.func)
    return named == "globals" or (not local and named in ("dir", "locals", "vars"))


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
