"""New imports at the top of a module."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from amp_migrate.rewrite.blocks.block import Slot
from amp_migrate.rewrite.blocks.comments import split_attached
from amp_migrate.rewrite.blocks.lines import Element, is_blank, statements
from amp_migrate.rewrite.blocks.snippet import parse_statements
from amp_migrate.rewrite.blocks.statements import Statements
from amp_migrate.rewrite.parts.imports import (
    bound_by,
    is_future,
    is_import,
    is_relative,
    last_of_first_imports,
    place_for,
)

_BLANK = cst.EmptyLine(indent=False)


def place_imports(
    make: Statements, body: Sequence[cst.CSTNode], slots: Sequence[Sequence[Slot]]
) -> list[Element]:
    """Put the new imports of a module below its first ones, and return those that start it."""
    lines = _missing(make, slots)
    if not lines or not body:
        return lines
    at = last_of_first_imports(body)
    if at is None:
        return _at_start(body[0], slots[0][0], lines)
    own = [is_relative(line) for line in body[: at + 1] if is_import(line)]
    if own and all(own) and is_import(body[0]):
        return _at_start(body[0], slots[0][0], lines)
    below_import = is_import(body[at]) and not is_future(body[at])
    if not below_import:
        slots[at][-1].after += [_BLANK, *lines]
    for line in statements(lines) if below_import else []:
        slots[place_for(line, body, at)][-1].after.append(line)
    if not below_import and at + 1 < len(body):
        _keep_distance(slots[at + 1][0])
    return []


def _missing(make: Statements, slots: Sequence[Sequence[Slot]]) -> list[Element]:
    present = [
        e for line in slots for slot in line for e in (*slot.before, *slot.core, *slot.after)
    ]
    bound = bound_by(statements(present))
    lines: list[Element] = []
    for edit in make.index.imports:
        make.index.mark(edit)
        new = parse_statements(edit, edit.text, make.default_indent, make.default_indent)
        binds = bound_by(statements(new))
        if not binds or not binds <= bound:
            lines += new
            bound |= binds
    return lines


def _at_start(first: cst.CSTNode, slot: Slot, lines: list[Element]) -> list[Element]:
    upper, attached = split_attached(slot.above)
    if not upper:
        upper, attached = attached, []
    slot.above = attached
    blank = 2 if isinstance(first, (cst.FunctionDef, cst.ClassDef)) else 1
    return [*upper, *lines, *[_BLANK] * blank]


def _keep_distance(slot: Slot) -> None:
    if not any(is_blank(line) for line in slot.above):
        slot.above.insert(0, _BLANK)
