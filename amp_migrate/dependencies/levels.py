"""Help texts of options that choose a level of Apex: the level only tells whether casts are on now."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from amp_migrate.dependencies.options import declared, parsed, span_of
from amp_migrate.facts.paths import argument
from amp_migrate.source.mentions import skipped_lines
from amp_migrate.source.span import Span

# As transformers' examples have it, which many programs were made from.
_SAYS = re.compile(
    r"(?P<before>For fp16: )?(NVIDIA )?Apex AMP optimization level selected in \[[^\]]*\]\.? ?"
    r"(See details at https://nvidia\.github\.io/apex/amp\.html\.?)?",
    re.I,
)
_NOW = "'O0' trains in fp32, every other level with autocast."


def with_levels_told(before: str, after: str) -> tuple[str, list[Span]]:
    """Return the new text of a file with such help texts said anew, and where the old one has them.

    Only of options that it compares with O0 alone.
    """
    if not _SAYS.search(after):
        return after, []
    old, new = dict(_found(before)), dict(_found(after))
    lines, told, skipped = after.split("\n"), list[Span](), skipped_lines(after)
    for option, said in sorted(new.items(), key=lambda item: item[1].lineno, reverse=True):
        begins, ends = said.lineno - 1, (said.end_lineno or said.lineno) - 1
        pieces = "\n".join(lines[begins : ends + 1])
        if skipped.intersection(range(begins + 1, ends + 2)):
            continue
        if option in old and "#" not in pieces and _only_turns_on(option, after):
            head = lines[begins].encode()[: said.col_offset].decode()
            tail = lines[ends].encode()[said.end_col_offset :].decode()
            led = _SAYS.fullmatch(str(said.value))
            assert led is not None
            lines[begins : ends + 1] = [f'{head}"{led["before"] or ""}{_NOW}"{tail}']
            told.append(span_of(old[option], before))
    return "\n".join(lines), sorted(told)


def _found(text: str) -> Iterator[tuple[str, ast.Constant]]:
    """Yield the options with such help texts, by their names in the code."""
    tree = parsed(text)
    for call in declared(tree) if tree is not None else ():
        said, given = argument(call, "help"), call.args[:1]
        if isinstance(said, ast.Constant) and isinstance(said.value, str):
            name = given[0] if given else None
            if _SAYS.fullmatch(said.value) and isinstance(name, ast.Constant):
                yield str(name.value).lstrip("-").replace("-", "_"), said


def _only_turns_on(option: str, text: str) -> bool:
    """Tell whether a text reads an option, and only to compare it with O0."""
    nodes = list(ast.walk(parsed(text) or ast.Module([], [])))
    read = [n for n in nodes if isinstance(n, ast.Attribute) and n.attr == option]
    read = [n for n in read if isinstance(n.ctx, ast.Load)]
    compared = [n.left for n in nodes if isinstance(n, ast.Compare) and _is_with_o0(n)]
    named = any(isinstance(n, ast.Constant) and n.value == option for n in nodes)
    return bool(read) and not named and all(node in compared for node in read)


def _is_with_o0(test: ast.Compare) -> bool:
    other = test.comparators[0]
    differs = len(test.ops) == 1 and isinstance(test.ops[0], ast.NotEq)
    return differs and isinstance(other, ast.Constant) and other.value == "O0"
