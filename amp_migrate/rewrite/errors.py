"""What is raised when an edit cannot be applied."""

from __future__ import annotations

from amp_migrate.plan.model import (
    AddArgument,
    AddDecorator,
    AddImport,
    AddParameter,
    DropKeyword,
    Edit,
    RenameKeyword,
    RenameParameter,
    Wrap,
)
from amp_migrate.source.span import Span


class EditError(ValueError):
    """An edit that does not fit the text, or contradicts another edit."""

    def __init__(self, edit: Edit, reason: str) -> None:
        span = place(edit)
        where = (
            ""
            if span is None
            else f" at {span.line}:{span.column}-{span.end_line}:{span.end_column}"
        )
        super().__init__(f"{type(edit).__name__}{where}: {reason}")
        self.edit = edit
        self.span = span


def place(edit: Edit) -> Span | None:
    """Return the span that an edit names; None for an import, which names none."""
    match edit:
        case AddImport():
            return None
        case Wrap():
            return edit.first
        case AddDecorator() | AddParameter() | RenameParameter():
            return edit.function
        case AddArgument() | DropKeyword() | RenameKeyword():
            return edit.call
        case _:
            return edit.span
