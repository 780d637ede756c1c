"""What migrated files still say of Apex, in messages, docstrings and comments, and files in which nothing is left."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from amp_migrate.facts.below import every
from amp_migrate.plan.model import Finding, Status
from amp_migrate.report import FileChange
from amp_migrate.source.span import Span

_APEX = re.compile(r"\bapex\b", re.I)
_IN_COMMENT = re.compile(r"#.*\bapex\b", re.I)
_TELLS = frozenset(
    {
        *("critical", "debug", "error", "exception", "exit", "fatal", "info", "log", "print"),
        *("warn", "warning"),
    }
)
_Said = dict[str, list[Span]]


def stale(change: FileChange, code: str) -> Iterator[Finding]:
    """Yield what the new text of a file says of Apex as the old one did, where that says it."""
    path = change.source.path
    if not path.endswith((".py", ".pyw")):
        return
    if not _is_empty(change.source.text) and _is_empty(change.text):
        if not path.endswith("__init__.py"):
            message = "nothing is left in this file"
            advice = "delete it, and what imports it"
            yield Finding(path, Span(1, 0, 1, 0), code, Status.NOTE, message, advice)
    if "apex" not in change.text.lower():
        return
    try:
        before, after = ast.parse(change.source.text), ast.parse(change.text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for spans in _still(_messages(before), _messages(after)):
        message, advice = "this message speaks of Apex", "say what runs now"
        yield from (Finding(path, at, code, Status.NOTE, message, advice) for at in spans)
    for spans in _still(_docstrings(before), _docstrings(after)):
        message, advice = "this docstring speaks of Apex", "say what holds now"
        yield from (Finding(path, at, code, Status.NOTE, message, advice) for at in spans)
    said = _comments(change.source.text)
    for spans in _still(said, _comments(change.text) if said else {}):
        message, advice = "this comment speaks of Apex", "say what holds now, or delete it"
        yield from (Finding(path, at, code, Status.NOTE, message, advice) for at in spans)


def _is_empty(text: str) -> bool:
    """Tell whether a file holds nothing but comments."""
    return all(line.strip()[:1] in ("", "#") for line in text.splitlines())


def _still(before: _Said, after: _Said) -> Iterator[list[Span]]:
    """Yield where that is said of which as much is left; what is said more often than that is not told apart."""
    for text, spans in before.items():
        if len(after.get(text, ())) == len(spans):
            yield spans


def _messages(tree: ast.Module) -> _Said:
    """Return the texts that name Apex of what is printed, logged, raised or asserted."""
    found: _Said = {}
    for node in every(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            held: ast.expr = node.exc
        elif isinstance(node, ast.Call) and _tells(node.func):
            held = node
        elif isinstance(node, ast.Assert) and node.msg is not None:
            held = node.msg
        else:
            continue
        for part in ast.walk(held):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                if _APEX.search(part.value):
                    last, end = part.end_lineno or part.lineno, part.end_col_offset or 0
                    span = Span(part.lineno, part.col_offset, last, end)
                    found.setdefault(part.value, []).append(span)
    return {text: list(dict.fromkeys(spans)) for text, spans in found.items()}


def _docstrings(tree: ast.Module) -> _Said:
    """Return the lines of docstrings that name Apex."""
    found: _Said = {}
    for node in every(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        text = ast.get_docstring(node, clean=False) or ""
        held = node.body[0] if _APEX.search(text) else None
        if not isinstance(held, ast.Expr):
            continue
        for number, line in enumerate(text.split("\n")):
            if _APEX.search(line):
                start = held.col_offset if number == 0 else len(line) - len(line.lstrip())
                at = held.lineno + number
                found.setdefault(line.strip(), []).append(
                    Span(at, start, at, start + len(line.strip()))
                )
    return found


def _tells(func: ast.expr) -> bool:
    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    return name in _TELLS


def _comments(text: str) -> _Said:
    found: _Said = {}
    if not _IN_COMMENT.search(text):
        return found
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and _APEX.search(token.string):
                found.setdefault(token.string, []).append(Span(*token.start, *token.end))
    except (tokenize.TokenError, SyntaxError):
        return {}
    return found
