"""The statements of one block: what each becomes, what comes beside it, and what wraps them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import libcst as cst

from amp_migrate.plan.model import Replace, Wrap
from amp_migrate.rewrite.blocks.comments import (
    calls_apex,
    speaks_of_apex,
    split_attached,
    without_apex,
    without_name,
)
from amp_migrate.rewrite.blocks.lines import Element, Gap, Statement, bare, is_blank, statements
from amp_migrate.rewrite.blocks.statements import Part, Statements
from amp_migrate.rewrite.errors import EditError
from amp_migrate.rewrite.index import Index
from amp_migrate.rewrite.locate import Line
from amp_migrate.rewrite.parts.imports import Import


@dataclass
class Slot:
    """A statement of a block, or several on one line: the lines above, what it becomes, its company."""

    nodes: Sequence[cst.CSTNode]
    above: list[cst.EmptyLine]
    core: list[Element]
    before: list[Element] = field(default_factory=list)
    after: list[Element] = field(default_factory=list)

    def outside(self) -> list[Element]:
        """Return what stands above the statement: its lines, and what is put before it.

        A comment keeps to a compound statement, unless it is about mixed precision; above a simple
        one it speaks of the step that the new statements belong to.
        """
        upper, attached = split_attached(self.above)
        comments = [line.comment.value for line in attached if line.comment is not None]
        near = any(map(speaks_of_apex, comments)) or not isinstance(
            self.nodes[0], cst.BaseCompoundStatement
        )
        if not self.before or (near and not isinstance(self.before[0], cst.EmptyLine | Gap)):
            return [*self.above, *self.before]
        return [*upper, *self.before, *self._distance(), *attached]

    def beside(self) -> list[Element]:
        """Return what is put after the statement."""
        return [*self._distance(), *self.after] if self.after else []

    def _distance(self) -> list[Element]:
        if not isinstance(self.nodes[-1], (cst.FunctionDef, cst.ClassDef)):
            return []
        blank = [line for line in split_attached(self.above)[0] if is_blank(line)]
        return [*blank] or [cst.EmptyLine(indent=False)]


def block_slots(
    make: Statements, original: Sequence[cst.CSTNode], updated: Sequence[cst.CSTNode]
) -> list[list[Slot]]:
    """Return the slots of every line of a block."""
    slots: list[list[Slot]] = []
    for old, new in zip(original, updated, strict=True):
        if isinstance(old, Line) and isinstance(new, cst.SimpleStatementLine):
            slots.append(_line_slots(make, old, new))
        elif isinstance(new, cst.BaseCompoundStatement):
            slots.append([_compound_slot(make, old, new)])
    return slots


def _compound_slot(make: Statements, old: cst.CSTNode, new: cst.BaseCompoundStatement) -> Slot:
    part = make.part(old, new)
    above = _above(make.index, old, list(new.leading_lines))
    return Slot([old], above, _led(make, old, part.lines()), part.before, part.after)


def _led(make: Statements, old: cst.CSTNode, core: list[Element]) -> list[Element]:
    """Return the lines of a statement; where an import in a block goes, it has led to what follows."""
    lines: Sequence[cst.CSTNode] = [old]
    if isinstance(old, cst.Try) and isinstance(old.body, cst.IndentedBlock):
        lines = old.body.body
    imports = all(
        isinstance(small, Import)
        for line in lines
        for small in (line.body if isinstance(line, Line) else (line,))
    )
    gone = len(core) == 1 and isinstance(core[0], Gap)
    return [Gap(led=True)] if gone and imports and len(make.units) > 1 else core


def _above(index: Index, statement: cst.CSTNode, lines: list[cst.EmptyLine]) -> list[cst.EmptyLine]:
    if index.is_gone(statement):
        return without_apex(lines)
    if statement in index.leaving:
        return split_attached(lines)[0]
    edit = index.changes.get(statement)
    if edit is None or (isinstance(edit, Replace) and calls_apex(edit.text)):
        return lines
    return without_name(lines)


def _line_slots(make: Statements, old: Line, new: cst.SimpleStatementLine) -> list[Slot]:
    parts = [make.part(o, n) for o, n in zip(old.body, new.body, strict=True)]
    above = list(new.leading_lines)
    if len(parts) == 1:
        above = _above(make.index, old.body[0], above)
        core = _led(make, old.body[0], parts[0].lines(bare(new)))
        return [Slot(old.body, above, core, parts[0].before, parts[0].after)]
    if not _is_split(make.index, old, parts):
        return [Slot(old.body, above, _joined(parts, new))]
    slots = []
    kept = [part for part in parts if part.core]
    for node, part in zip(old.body, parts, strict=True):
        last = bool(kept) and part is kept[-1]
        line = cst.SimpleStatementLine(
            body=[cst.Pass()],
            trailing_whitespace=new.trailing_whitespace if last else cst.TrailingWhitespace(),
        )
        core = part.lines(line)
        slots.append(Slot([node], above, core, part.before, part.after))
        above = []
    return slots


def _is_split(index: Index, old: Line, parts: list[Part]) -> bool:
    """Tell whether statements of one line need lines of their own."""
    return (
        any(part.before or part.after or not part.fits_line() for part in parts)
        or any(node in index.wraps for node in old.body[1:])
        or any(node in index.wrap_ends for node in old.body[:-1])
    )


def _joined(parts: list[Part], line: cst.SimpleStatementLine) -> list[Element]:
    smalls = [part.core for part in parts if isinstance(part.core, cst.BaseSmallStatement)]
    if not smalls:
        return [Gap()]
    smalls[-1] = smalls[-1].with_changes(semicolon=line.body[-1].semicolon)
    return [line.with_changes(body=smalls, leading_lines=())]


def block_elements(
    make: Statements, slots: Sequence[Slot], unit: str, opened: frozenset[Wrap] = frozenset()
) -> list[Element]:
    """Return the lines of a block, the wrapped ones under their headers; `opened` wraps stand around it."""
    elements: list[Element] = []
    at = 0
    while at < len(slots):
        slot = slots[at]
        wraps = (w for n in slot.nodes for w in make.index.wraps.get(n, ()) if w not in opened)
        wrap = max(wraps, key=lambda w: w.last, default=None)
        if wrap is None:
            elements += [*slot.outside(), *slot.core, *slot.beside()]
            at += 1
            continue
        end = _wrap_end(make.index, wrap, slots, at)
        inner = _inner(slots[at : end + 1])
        body = block_elements(make, inner, unit, opened | {wrap})
        elements += [*slot.outside(), _wrapped(make, wrap, body, unit), *slots[end].beside()]
        at = end + 1
    return elements


def _wrap_end(index: Index, wrap: Wrap, slots: Sequence[Slot], start: int) -> int:
    last = index.statement(wrap, wrap.last)
    for at in range(start, len(slots)):
        if last in slots[at].nodes:
            return at
    raise EditError(
        wrap,
        "its first and last statement do not stand in one block, in this order, or another wrap ends between them",
    )


def _inner(slots: Sequence[Slot]) -> list[Slot]:
    """Return the slots of a wrap, without what stays above its first and below its last statement."""
    inner = list(slots)
    inner[0] = replace(inner[0], above=[], before=[])
    inner[-1] = replace(inner[-1], after=[])
    return inner


def _wrapped(make: Statements, wrap: Wrap, inner: list[Element], unit: str) -> Statement:
    if not statements(inner):
        raise EditError(wrap, "no statement is left to wrap")
    make.index.mark(wrap)
    return make.under(wrap, wrap.header, [*inner, *make.written(wrap, wrap.more)], unit)
