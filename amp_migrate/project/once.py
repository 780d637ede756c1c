"""Questions about a project that are answered once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from amp_migrate.project.project import Project

Answer = TypeVar("Answer")


def once(ask: Callable[[Project], Answer]) -> Callable[[Project], Answer]:
    """Answer a question about a project when it is first asked; the answer lives as long as the project."""

    @wraps(ask)
    def asked(project: Project) -> Answer:
        if ask not in project.answers:
            project.answers[ask] = ask(project)
        return cast(Answer, project.answers[ask])

    return asked


def kept(project: Project, asked: object, make: Callable[[], Answer]) -> Answer:
    """Answer a question about some things of a project when it is first asked; the answer lives as long as the project."""
    if asked not in project.answers:
        project.answers[asked] = make()
    return cast(Answer, project.answers[asked])
