"""Comments around statements: which belong to one, and which speak of what is going away."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import libcst as cst

_APEX = re.compile(
    r"apex|(?<![a-z])amp(?![a-z])|(?<![a-z0-9])fp_?16|(mixed|half)[ -]?precision"
    r"|(scaled?_|loss[ -]scal)|opt_level|network_to_half",
    re.IGNORECASE,
)
_NAME = re.compile(r"\bapex\b", re.IGNORECASE)
_SAYS = re.compile(r"\w")
_CALLS = re.compile(r"\bapex\b|(?<![\w.])amp\.")
_DIRECTIVE = re.compile(r"#\s*(noqa|type:|pragma|pylint|pyright|mypy|ruff|fmt|isort|nosec)")
_FILE_COMMENT = re.compile(r"#!|#.*coding[:=]")


def speaks_of_apex(comment: str) -> bool:
    """Tell whether a comment is about Apex or mixed precision."""
    return _APEX.search(comment) is not None


def calls_apex(text: str) -> bool:
    """Tell whether a statement uses Apex still."""
    return _CALLS.search(text) is not None


def split_attached(
    lines: Sequence[cst.EmptyLine],
) -> tuple[list[cst.EmptyLine], list[cst.EmptyLine]]:
    """Divide the lines above a statement: up to the last blank one, and the comments below it."""
    cut = len(lines)
    while cut and lines[cut - 1].comment is not None:
        cut -= 1
    return list(lines[:cut]), list(lines[cut:])


def split_header(lines: Sequence[cst.EmptyLine]) -> tuple[list[cst.EmptyLine], list[cst.EmptyLine]]:
    """Divide the lines above a module's code: the interpreter and encoding, and the others."""
    cut = 0
    while cut < len(lines) and (c := lines[cut].comment) and _FILE_COMMENT.match(c.value):
        cut += 1
    return list(lines[:cut]), list(lines[cut:])


def without_apex(lines: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    """Return the lines above a statement less the comments directly above it that speak of Apex.

    A block of comments that begins with Apex goes whole.
    """
    kept, attached = split_attached(lines)
    if attached and attached[0].comment and speaks_of_apex(attached[0].comment.value):
        return kept
    kept = list(lines)
    while kept and kept[-1].comment is not None and speaks_of_apex(kept[-1].comment.value):
        kept.pop()
    return kept


def without_name(lines: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    """Return the lines above a statement that becomes another, less the comment directly above it from where it speaks of Apex.

    One that does not name Apex may still hold.
    """
    upper, attached = split_attached(lines)
    said = [line.comment.value for line in attached if line.comment is not None]
    if not any(map(_NAME.search, said)):
        return list(lines)
    cut = next(i for i, text in enumerate(said) if speaks_of_apex(text))
    return [*upper, *(attached[:cut] if any(map(_SAYS.search, said[:cut])) else ())]


def own_lines(comments: Iterable[str]) -> list[cst.EmptyLine]:
    """Return comments as lines of their own, each once.

    Those that speak of Apex are left out, as are directives to tools about the line they stood on.
    """
    kept = dict.fromkeys(c for c in comments if not speaks_of_apex(c) and not _DIRECTIVE.match(c))
    return [cst.EmptyLine(comment=cst.Comment(c)) for c in kept]


def comment_lines(lines: Iterable[cst.EmptyLine]) -> list[str]:
    """Return the comments among lines."""
    return [line.comment.value for line in lines if line.comment is not None]


def header_comment(suite: cst.BaseSuite) -> list[str]:
    """Return the comment behind the colon of a block on lines of its own, if there is one."""
    if isinstance(suite, cst.IndentedBlock) and suite.header.comment is not None:
        return [suite.header.comment.value]
    return []


def below(footer: Sequence[cst.EmptyLine], text: str, margin: str) -> list[cst.EmptyLine]:
    """Return the lines behind a block that goes, less the comments that go with it and blank lines at the end.

    From the first that stands further left than the block with its `margin`, they are no part of it, and stay as they are.
    """
    lines = own_lines(c for c in comment_lines(footer) if c not in text)
    kept = {line.comment.value: line for line in lines if line.comment is not None}
    found, apart = list[cst.EmptyLine](), False
    for line in footer:
        said = None if line.comment is None else kept.pop(line.comment.value, None)
        apart = apart or (line.comment is not None and not line.indent)
        if line.comment is None:
            found.append(cst.EmptyLine(indent=False))
        elif said is not None and apart:
            space = (margin if line.indent else "") + line.whitespace.value
            found.append(said.with_changes(indent=False, whitespace=cst.SimpleWhitespace(space)))
        elif said is not None:
            found.append(said)
    while found and found[-1].comment is None:
        found.pop()
    return found


class _Collector(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, bool]] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, (cst.TrailingWhitespace, cst.EmptyLine)):
            if node.comment is not None:
                self.found.append((node.comment.value, isinstance(node, cst.TrailingWhitespace)))
            return False
        return not isinstance(node, (cst.BaseSmallStatement, cst.BaseExpression, cst.Parameters))


def comments_inside(statement: cst.BaseCompoundStatement) -> list[tuple[str, bool]]:
    """Return the comments in a compound statement, and whether they stand at the end of a line.

    Those above it and those within an expression are not among them.
    """
    collector = _Collector()
    statement.with_changes(leading_lines=()).visit(collector)
    return collector.found


def footer_lines(statement: cst.BaseCompoundStatement) -> list[cst.EmptyLine]:
    """Return the lines behind the last statement of a compound one that belong to its last block, the innermost first."""
    suite = _last_suite(statement)
    if not isinstance(suite, cst.IndentedBlock):
        return []
    last = suite.body[-1] if suite.body else None
    inner = footer_lines(last) if isinstance(last, cst.BaseCompoundStatement) else []
    return [*inner, *suite.footer]


def _last_suite(statement: cst.BaseCompoundStatement) -> cst.BaseSuite | None:
    node: cst.CSTNode | None = statement
    while node is not None:
        clauses = [getattr(node, name, None) for name in ("finalbody", "orelse")]
        handlers: Sequence[cst.CSTNode] = getattr(node, "handlers", ())
        below = next((clause for clause in clauses if clause is not None), None)
        below = below if below is not None else (handlers[-1] if handlers else None)
        if below is None:
            suite = getattr(node, "body", None)
            return suite if isinstance(suite, cst.BaseSuite) else None
        node = below
    return None
