"""Classes that share their attributes: bases and subclasses."""

from __future__ import annotations

from amp_migrate.project import Class, Function


def family(cls: Class) -> list[Class]:
    """Return a class with its known bases and all that derive from them or it."""
    found: list[Class] = []
    stack = [cls]
    while stack:
        here = stack.pop()
        if here not in found:
            found.append(here)
            stack += [*here.bases, *here.subclasses()]
    return found


def class_around(function: Function) -> Class | None:
    """Return the class whose method a function is, or is nested in."""
    while function.cls is None and function.parent is not None:
        function = function.parent
    return function.cls
