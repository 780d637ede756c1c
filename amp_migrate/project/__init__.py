"""All files together: modules, calls and values, the programs among them, what runs before what, and what code out of sight may call."""

from amp_migrate.modules.model import Anonymous, CallSite, Class, Function, Module, Parameters
from amp_migrate.project.forwarded import Received
from amp_migrate.project.project import Project, build

__all__ = [
    "Anonymous",
    "CallSite",
    "Class",
    "Function",
    "Module",
    "Parameters",
    "Project",
    "Received",
    "build",
]
