"""What will be done, as data: edits and decisions. A plan decides; nothing here edits or prints."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from amp_migrate.source.span import Span


@dataclass(frozen=True, slots=True)
class Replace:
    """Put `text` (whole statements, 4-space indentation, starting at column 0) in place of a statement.

    Comments above the statement and the comment at its end stay. Edits inside `span` are refused.
    """

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Drop:
    """Remove a statement, and the comment lines directly above it that speak of Apex.

    A block left without statements gets `pass`, unless its statement is dropped too. Only `Move` may take one out of it.
    """

    span: Span


@dataclass(frozen=True, slots=True)
class ReplaceExpression:
    """Put another expression in place of one (also a decorator, a default or a with-item's value)."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Insert:
    """Put whole statements before or after a statement, in its block, in plan order; `defines` is a name for other files too."""

    span: Span
    text: str
    after: bool
    defines: str = ""


@dataclass(frozen=True, slots=True)
class Wrap:
    """Put the statements from `first` to `last` (siblings of one block) under `header`, as ``with x:``.

    Edits inside apply as well; statements inserted before `first` or after `last` stay outside;
    statements moved away leave. Two wraps may not overlap unless one lies inside a statement of the other.
    `more` are statements that follow under the header.
    """

    first: Span
    last: Span
    header: str
    more: str = ""


@dataclass(frozen=True, slots=True)
class Hoist:
    """Put the statements of one block of a compound statement in its place.

    `block` is "body", "orelse", "finalbody" or "handlers[0]". Edits inside the kept block apply,
    edits inside the others are refused.
    """

    span: Span
    block: str


@dataclass(frozen=True, slots=True)
class DropBlock:
    """Remove the `else` (or `elif` chain) of a statement, or the "body" of an `if`, whose `elif` or `else` takes its place."""

    span: Span
    block: str = "orelse"


@dataclass(frozen=True, slots=True)
class Move:
    """Take a statement from its place and put it before or after `anchor`, in the block of `anchor`.

    Other edits of the moved statement apply to it. `inside` puts it at the end of the body of `anchor`
    (a compound statement) when "end", at its start when "start". There it stands under `header`, as ``if x:``.
    """

    span: Span
    anchor: Span
    after: bool
    inside: str | None = None
    header: str | None = None


@dataclass(frozen=True, slots=True)
class AddDecorator:
    """Give a function one more decorator, the innermost. `function` is the span of the def."""

    function: Span
    text: str


@dataclass(frozen=True, slots=True)
class AddParameter:
    """Give a function a parameter, last before keyword-only ones and ``**kwargs``; behind ``*args`` it is one of them.

    Where all parameters (but ``self``) are keyword-only, so is the new one. `function` is the span of the def. Where an
    earlier parameter has a default, `default` None means the text "None", or if the new one is `given` in every call,
    that it is keyword-only. A docstring that lists parameters gets a line (`doc`).
    """

    function: Span
    name: str
    default: str | None = None
    doc: str | None = None
    given: bool = False


@dataclass(frozen=True, slots=True)
class RenameParameter:
    """Give a parameter of a function another name, in the signature and where a docstring lists it.

    Uses in the body are edits of their own. `function` is the span of the def.
    """

    function: Span
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class RenameKeyword:
    """Give a keyword argument of a call another name: ``f(amp=x)`` becomes ``f(scaler=x)``."""

    call: Span
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class AddArgument:
    """Give a call an argument: positional (before keywords) when `keyword` is None."""

    call: Span
    text: str
    keyword: str | None = None


@dataclass(frozen=True, slots=True)
class DropKeyword:
    """Take a keyword argument out of a call: ``f(a, b=1)`` becomes ``f(a)``."""

    call: Span
    keyword: str


@dataclass(frozen=True, slots=True)
class AddWithItem:
    """Give a ``with`` statement one more item, last."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class DropWithItem:
    """Take an item from a ``with`` statement that has others; `place` counts them from 0."""

    span: Span
    place: int


@dataclass(frozen=True, slots=True)
class DropImportedName:
    """Remove names from an ``import`` or ``from`` statement; the statement goes with its last name.

    `names` are the imported names as written before ``as`` ("amp", "apex.amp", "*").
    """

    span: Span
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddImportedName:
    """Let a ``from`` statement import one name more; a name that another edit adds there is added once."""

    span: Span
    name: str


@dataclass(frozen=True, slots=True)
class AddImport:
    """Add a top-level import unless the file has it: `text` is the statement, as ``import torch``.

    It goes below the last top-level import that stands before other code (docstring and ``__future__``
    imports first); at the top of the code where there is none.
    """

    text: str


Edit = (
    Replace | Drop | ReplaceExpression | Insert | Wrap | Hoist | DropBlock | Move | AddDecorator | AddParameter | RenameParameter
    | RenameKeyword | AddArgument | DropKeyword | AddWithItem | DropWithItem | DropImportedName | AddImportedName | AddImport
)  # fmt: skip


class Status(enum.Enum):
    """What became of a place.

    The tally counts Apex uses that were MIGRATED, mistakes that were FIXED and Apex uses that were LEFT.
    NOTE is advice; ROUTINE is an edit that belongs to a migrated unit but stands at no Apex use.
    """

    MIGRATED = "migrated"
    FIXED = "fixed"
    LEFT = "left"
    NOTE = "note"
    ROUTINE = "routine"


class Place(NamedTuple):
    """Where something stands that a finding speaks of, in the file as it was read."""

    path: str
    span: Span

    def __str__(self) -> str:
        return f"{self.path}:{self.span.line}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report: what was done or left at a place, why, and what to do.

    `cause` is the place of the finding that keeps this one as it is. `named` are places whose text stands in
    the message or the advice; reports put in their lines after the run.
    """

    path: str
    span: Span
    code: str
    status: Status
    message: str
    advice: str = ""
    cause: Place | None = None
    named: tuple[Place, ...] = ()

    @property
    def place(self) -> Place:
        """Where it stands."""
        return Place(self.path, self.span)


@dataclass(slots=True)
class Decision:
    """What a rule says about one place: the edits by file, and the finding that reports them; `beside` are others that it speaks of."""

    finding: Finding
    edits: list[tuple[str, Edit]] = field(default_factory=list)
    beside: tuple[Place, ...] = ()


@dataclass(slots=True)
class Plan:
    """Every decision of a run, in the order they were made."""

    decisions: list[Decision] = field(default_factory=list)

    def edits(self, path: str) -> Iterator[Edit]:
        """Yield the edits of one file in the order of the plan, each once."""
        seen = set()
        for decision in self.decisions:
            for where, edit in decision.edits:
                if where == path and edit not in seen:
                    seen.add(edit)
                    yield edit

    def paths(self) -> list[str]:
        """Return the files that have an edit, in order of first appearance."""
        return list(dict.fromkeys(path for d in self.decisions for path, _ in d.edits))

    def findings(self) -> list[Finding]:
        """Return the findings, by file and place."""
        return sorted((d.finding for d in self.decisions), key=lambda f: (f.path, f.span, f.code))
