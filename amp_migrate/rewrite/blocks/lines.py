"""A block as one flat list of lines: blank lines and comments, statements, and gaps left by edits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar, cast

import libcst as cst

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement
S = TypeVar("S", bound=Statement)


class Gap:
    """The place that a statement left; the blank lines around it are those of one place.

    It `led` to what follows where it only imported in a block: a comment that begins the block speaks of that now.
    """

    def __init__(self, *, led: bool = False) -> None:
        self.led = led


Element = cst.EmptyLine | cst.SimpleStatementLine | cst.BaseCompoundStatement | Gap


def is_blank(element: Element) -> bool:
    """Tell whether an element is a line without a comment."""
    return isinstance(element, cst.EmptyLine) and element.comment is None


def bare(statement: S) -> S:
    """Return a statement without the lines above it."""
    return (
        cast(S, statement.with_changes(leading_lines=())) if statement.leading_lines else statement
    )


def flat(
    body: Iterable[cst.BaseStatement],
    footer: Sequence[cst.EmptyLine] = (),
    header: Sequence[cst.EmptyLine] = (),
) -> list[Element]:
    """Return the lines of a block."""
    elements: list[Element] = [*header]
    for statement in body:
        if isinstance(statement, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            elements += [*statement.leading_lines, bare(statement)]
    return [*elements, *footer]


def flat_suite(suite: cst.BaseSuite) -> list[Element]:
    """Return the lines of an indented block, or of a suite on the line of its header."""
    if isinstance(suite, cst.IndentedBlock):
        return flat(suite.body, suite.footer)
    if isinstance(suite, cst.SimpleStatementSuite) and suite.body:
        return [
            cst.SimpleStatementLine(body=suite.body, trailing_whitespace=suite.trailing_whitespace)
        ]
    return []


def assemble(elements: Sequence[Element]) -> tuple[list[Statement], list[cst.EmptyLine]]:
    """Return the statements that elements make, with the lines above each, and the lines after all."""
    body: list[Statement] = []
    above: list[cst.EmptyLine] = []
    for element in close_gaps(elements):
        if isinstance(element, cst.EmptyLine):
            above.append(element)
        elif isinstance(element, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            lines = [*above, *element.leading_lines]
            body.append(element.with_changes(leading_lines=lines) if lines else element)
            above = []
    return body, above


def close_gaps(elements: Sequence[Element]) -> list[Element]:
    """Remove the gaps: around each, the larger of the two runs of blank lines stays.

    At the top of a block it is the first run that stays, at its end the last.
    """
    result: list[Element] = []
    at = 0
    while at < len(elements):
        end = at
        while end < len(elements) and (is_blank(elements[end]) or isinstance(elements[end], Gap)):
            end += 1
        if end == at:
            result.append(elements[at])
            at += 1
        else:
            if not _is_headed(result, elements[at:end]) or end == len(elements):
                result += _one_run(elements[at:end], first=at == 0, last=end == len(elements))
            at = end
    return result


def _is_headed(above: Sequence[Element], run: Sequence[Element]) -> bool:
    """Tell whether the comments at the top of a block stand right above what only imported there."""
    comments = bool(above) and all(isinstance(e, cst.EmptyLine) and not is_blank(e) for e in above)
    return comments and isinstance(run[0], Gap) and run[0].led


def _one_run(elements: Sequence[Element], *, first: bool, last: bool) -> list[Element]:
    runs: list[list[Element]] = [[]]
    for element in elements:
        if isinstance(element, Gap):
            runs.append([])
        else:
            runs[-1].append(element)
    if first:
        return runs[0]
    return runs[-1] if last else max(runs, key=len)


def statements(elements: Iterable[Element]) -> list[Statement]:
    """Return the statements among elements."""
    return [
        e for e in elements if isinstance(e, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    ]


def strip_blank(elements: Sequence[Element]) -> list[Element]:
    """Return elements without blank lines at the top."""
    start = 0
    while start < len(elements) and is_blank(elements[start]):
        start += 1
    return list(elements[start:])


def ends_as_it_was(lines: list[Element], margin: str) -> list[Element]:
    """Keep the spaces of the blank lines behind the last statement of a block, which loses its margin."""
    kept = list(lines)
    for at in range(len(kept) - 1, -1, -1):
        line = kept[at]
        if not isinstance(line, cst.EmptyLine) or line.comment is not None:
            break
        if line.indent:
            space = cst.SimpleWhitespace(margin + line.whitespace.value)
            kept[at] = line.with_changes(indent=False, whitespace=space)
    return kept


def unindented(elements: Sequence[Element]) -> list[Element]:
    """Return the lines of a module with empty ones that stay empty in a block: those of a module count as indented."""
    return [
        e.with_changes(indent=False) if isinstance(e, cst.EmptyLine) and is_blank(e) else e
        for e in elements
    ]


def nested_unit(block: cst.IndentedBlock, default: str) -> str:
    """Return by what a new block in another is indented: as that is, or less where those that stand in it are."""
    own = block.indent or default
    blocks = (getattr(statement, "body", None) for statement in block.body)
    units = [body.indent or default for body in blocks if isinstance(body, cst.IndentedBlock)]
    return min([own, *units[:1]], key=len)
