"""Classes that share the attributes of their objects: bases and subclasses."""

from __future__ import annotations

from amp_migrate.facts.paths import mentions
from amp_migrate.project import Class, Function


def family(cls: Class) -> list[Class]:
    """Return a class with all whose methods may run on an object that its own methods run on.

    Two classes that only have a base in common are no relatives: no object is of both.
    """
    found = {member: None for below in (cls, *cls.subclasses()) for member in below.mro()}
    return list({cls: None, **found})


def runs(cls: Class, method: Function) -> bool:
    """Tell whether the objects of a class run a method of it or of a base, if only by ``super()``."""
    for owner in cls.mro():
        own = owner.methods.get(method.name)
        if own is method:
            return True
        if own is not None and not mentions(own.scope, "super"):
            return False
    return False
