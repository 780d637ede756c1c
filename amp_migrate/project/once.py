"""Questions about a project, or what is made of it, that are answered once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from amp_migrate.project.project import Project


class Asked(Protocol):
    """What keeps the answers to questions about it: a project, or a program."""

    answers: dict[object, object]


Answer = TypeVar("Answer")
Subject = TypeVar("Subject", bound=Asked)


def once(ask: Callable[[Subject], Answer]) -> Callable[[Subject], Answer]:
    """Answer a question when it is first asked; the answer lives as long as what it is about."""

    @wraps(ask)
    def asked(project: Subject) -> Answer:
        if ask not in project.answers:
            project.answers[ask] = ask(project)
        return cast(Answer, project.answers[ask])

    return asked


def kept(project: Project, asked: object, make: Callable[[], Answer]) -> Answer:
    """Answer a question about some things of a project when it is first asked; the answer lives as long as the project."""
    if asked not in project.answers:
        project.answers[asked] = make()
    return cast(Answer, project.answers[asked])


def forget(subject: Asked) -> None:
    """Let go of all answers to questions about something, as nothing asks about it any more."""
    subject.answers.clear()
