"""The project model: modules, functions, classes, calls and values across files. It only reads."""

from amp_migrate.project.model import Anonymous, CallSite, Class, Function, Module, Parameters
from amp_migrate.project.project import Project, build
from amp_migrate.values.values import Values

__all__ = [
    "Anonymous",
    "CallSite",
    "Class",
    "Function",
    "Module",
    "Parameters",
    "Project",
    "Values",
    "build",
]
