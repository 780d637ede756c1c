"""Asides that name Apex in comments and help texts, which hold without them: ``(should be after apex initialization)``."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from amp_migrate.dependencies.options import declared, parsed
from amp_migrate.facts.paths import argument
from amp_migrate.source.mentions import skipped_lines
from amp_migrate.source.span import Span

_APEX = re.compile(r"\bapex\b", re.I)
# By what it runs, after what it comes, or where that lies: no word of what an option is for alone, or whose the code is.
_ASIDE = re.compile(
    r"""[ \t]*\((
        ((through|via|using|with|by|in)\ )?(the\ )?(nvidia('s)?[ /-])?apex(\ (amp|support))?
        | (((should|must|has\ to|needs\ to)\ )?(be|come|run|happen|is|comes|runs)\ )?after\ [^();:.,]*\bapex\b[^();:.,]*
        | (see:?\ )?https?://[^\s()]*/apex/?
    )\)""",
    re.I | re.X,
)
_DIRECTIVE = re.compile(r"#\s*(noqa|type:|pragma|pylint|pyright|mypy|ruff|fmt|isort|nosec)")
_SAYS = re.compile(r"\w")
_Tokens = dict[str, list[Span]]


def without_asides(before: str, after: str) -> tuple[str, list[Span]]:
    """Return the new text of a file less such asides that the old one has as well, and where it has them."""
    if not _ASIDE.search(after):
        return after, []
    old, new = _found(before), _found(after)
    same = [text for text in new if len(old.get(text, ())) == len(new[text])]
    lines = after.split("\n")
    for at, said in sorted(((at, text) for text in same for at in new[text]), reverse=True):
        line = lines[at.line - 1]
        lines[at.line - 1] = line[: at.column] + _short(said) + line[at.end_column :]
    return "\n".join(lines), sorted(at for text in same for at in old[text])


def _short(said: str) -> str:
    return _ASIDE.sub("", said)


def _found(text: str) -> _Tokens:
    """Return the comments and the strings of help texts that say something without their asides, and nothing of Apex then."""
    found: _Tokens = {}
    for token in _tokens(text):
        short = _short(token.string)
        if short != token.string and not _APEX.search(short) and token.start[0] == token.end[0]:
            if _SAYS.search(short) and not _DIRECTIVE.match(token.string):
                found.setdefault(token.string, []).append(Span(*token.start, *token.end))
    return found


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    """Yield the comments of a text, and the strings of the help texts of its options."""
    tree = parsed(text)
    if tree is None:
        return
    helps, skipped = list(_helps(tree, text.split("\n"))), skipped_lines(text)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            held = any(begins <= token.start and token.end <= ends for begins, ends in helps)
            says = token.type == tokenize.COMMENT or (token.type == tokenize.STRING and held)
            if says and token.start[0] not in skipped:
                yield token
    except (tokenize.TokenError, SyntaxError):
        return


def _helps(tree: ast.Module, lines: list[str]) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield where the help texts that name Apex in asides alone begin and end, in characters."""
    for call in declared(tree):
        said = argument(call, "help")
        if isinstance(said, ast.Constant) and isinstance(said.value, str):
            if _APEX.search(_short(said.value)):
                continue
            last = said.end_lineno or said.lineno
            begins = said.lineno, _characters(lines[said.lineno - 1], said.col_offset)
            yield begins, (last, _characters(lines[last - 1], said.end_col_offset or 0))


def _characters(line: str, offset: int) -> int:
    return len(line.encode()[:offset].decode(errors="ignore"))
