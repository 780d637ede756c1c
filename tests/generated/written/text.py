"""Small helpers to write Python text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence

Lines = list[str]


def indent(lines: Iterable[str], levels: int = 1) -> Lines:
    """Return lines one or more levels deeper; empty lines stay empty."""
    return [("    " * levels + line) if line else "" for line in lines]


def block(head: str, body: Iterable[str]) -> Lines:
    """Return a compound statement."""
    return [f"{head}:", *indent(body)]


def mentions(lines: Iterable[str], name: str) -> bool:
    """Tell whether any line uses a name, dotted names included, not as a keyword or an attribute."""
    pattern = re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w|=[^=])")
    return any(pattern.search(line.partition("  #")[0]) for line in lines)


def define(
    name: str,
    candidates: Sequence[str],
    body: Lines,
    receiver: str = "",
    doc: str = "",
    decorator: str = "",
    defaults: Sequence[str] = (),
) -> Lines:
    """Return a function that takes those candidates that its body mentions."""
    given = [*parameters(candidates, body), *defaults]
    head = f"def {name}({', '.join([receiver, *given] if receiver else given)}):"
    lines = [f'"""{doc}"""', *body] if doc else body
    return [*([decorator] if decorator else []), head, *indent(lines)]


def parameters(candidates: Sequence[str], body: Lines) -> Lines:
    """Return the candidates that a body reads and does not bind itself."""
    function = "\n".join(["async def f():", *indent(body)])
    nodes = [node for node in ast.walk(ast.parse(function)) if isinstance(node, ast.Name)]
    bound = {node.id for node in nodes if isinstance(node.ctx, ast.Store)}
    read = {node.id for node in nodes if isinstance(node.ctx, ast.Load)}
    return [name for name in candidates if name in read - bound]


def call(name: str, arguments: Sequence[str]) -> str:
    """Return a call."""
    return f"{name}({', '.join(arguments)})"
