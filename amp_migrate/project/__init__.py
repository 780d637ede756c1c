"""The project model: modules, functions, classes, calls and values across files. It only reads.

The model of one file is below `values`, which the project of all files is made of: that is imported when it is asked for.
"""

from typing import TYPE_CHECKING

from amp_migrate.project.model import Anonymous, CallSite, Class, Function, Module, Parameters

if TYPE_CHECKING:
    from amp_migrate.project.project import Project, build

__all__ = [
    "Anonymous",
    "CallSite",
    "Class",
    "Function",
    "Module",
    "Parameters",
    "Project",
    "build",
]


def __getattr__(name: str) -> object:
    if name not in ("Project", "build"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from amp_migrate.project import project

    return getattr(project, name)
