"""Methods that only say that subclasses have one."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from amp_migrate.facts.below import behind_docstring
from amp_migrate.facts.imports import last_name
from amp_migrate.modules.model import Class, Function

_NOT_IMPLEMENTED = ("NotImplementedError", "NotImplemented")
_BASES = {"ABC", "ABCMeta"}


def is_abstract(function: Function) -> bool:
    """Tell whether no call of a method on an object gets behind it: it raises, or Python makes no such object."""
    if function.node is None or function.cls is None:
        return False
    if any(last_name(item) == "abstractmethod" for item in function.node.decorator_list):
        if _has_no_objects(function.cls):
            return True
    body = behind_docstring(function.node)
    raised = body[0].exc if len(body) == 1 and isinstance(body[0], ast.Raise) else None
    return raised is not None and last_name(raised) in _NOT_IMPLEMENTED


def concrete(methods: Iterable[Function]) -> list[Function]:
    """Return those of some methods that a call may run, all of them where each is abstract."""
    found = list(dict.fromkeys(methods))
    return [method for method in found if not is_abstract(method)] or found


def _has_no_objects(cls: Class) -> bool:
    """Tell whether Python makes no object of a class as long as a method of it is abstract."""
    given = (k.value for c in cls.mro() for k in c.node.keywords if k.arg == "metaclass")
    names = {name.rpartition(".")[2] for name in cls.externals()}
    return not _BASES.isdisjoint(names | {last_name(value) for value in given})


def topmost(method: Function) -> Class | None:
    """Return the highest class above a method that defines it too."""
    if method.cls is None:
        return None
    return [cls for cls in method.cls.mro() if method.name in cls.methods][-1]
