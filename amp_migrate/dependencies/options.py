"""Options of command lines that only told Apex what to do: nothing reads them once it is gone."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache

from amp_migrate.facts.below import every
from amp_migrate.facts.constants import string
from amp_migrate.facts.paths import argument
from amp_migrate.source.span import Span

DECLARES = ("add_argument", "option")
_WORD = re.compile(r"\w+")


def parsed(text: str) -> ast.Module | None:
    """Return the tree of a text; None for one that does not parse."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def declared(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls that declare options."""
    for node in every(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in DECLARES:
            yield node


def spoken(call: ast.Call) -> str:
    """Return how a finding names an option."""
    return next((ast.unparse(given) for given in call.args), "an option")


def span_of(node: ast.expr, text: str) -> Span:
    """Return where an argument of an option begins, up to the end of its last line."""
    lines = text.split("\n")
    last = node.end_lineno or node.lineno
    column = min(node.col_offset, len(lines[node.lineno - 1]))
    return Span(node.lineno, column, last, len(lines[last - 1]))


def forgotten(
    changed: Iterable[tuple[str, str]], texts: dict[str, str]
) -> Iterator[tuple[str, ast.Call]]:
    """Yield the options that nothing reads any more, with their files.

    `changed` are texts before and after, `texts` all texts of the project as they are now.
    """
    read = cache(parsed)
    found = list(_named(texts, read))
    gone: set[str] = set()
    for before, after in changed:
        asked = {name for _, _, name in found if name in before}
        old, new = (read(before), read(after)) if asked else (None, None)
        if old is not None and new is not None:
            gone |= asked & (_words(old) - _words(new))
    names = {name for _, _, name in found if name in gone}
    for text in texts.values():
        held = {name for name in names if name in text}
        tree = read(text) if held else None
        if held and tree is None:
            return
        names -= held & _words(tree) if tree is not None else set()
    yield from ((path, call) for path, call, name in found if name in names)


def _named(
    texts: dict[str, str], read: Callable[[str], ast.Module | None]
) -> Iterator[tuple[str, ast.Call, str]]:
    """Yield the options that are declared, with their files and the names under which they are read."""
    for path, text in texts.items():
        tree = read(text) if any(map(text.__contains__, DECLARES)) else None
        for call in declared(tree) if tree is not None else ():
            if name := _name(call):
                yield path, call, name


def _name(call: ast.Call) -> str:
    """Return the name under which an option is read; "" where that does not show."""
    dest = argument(call, "dest")
    if dest is not None:
        return string(dest) or ""
    given = [string(node) or "" for node in call.args]
    long = [text for text in given if text.startswith("--")]
    return long[0].strip("-").replace("-", "_") if long else ""


def _words(tree: ast.Module) -> set[str]:
    """Return the words by which a text may read an option: names, attributes, and words of texts, but for declarations."""
    inside = {n for call in declared(tree) for n in ast.walk(call)}
    found: set[str] = set()
    for node in (n for n in every(tree) if n not in inside):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.arg | ast.keyword) and node.arg:
            found.add(node.arg)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.update(_WORD.findall(node.value))
    return found
