"""Classes whose objects have only the attributes that ``__slots__`` names: the scaler becomes one of them."""

from __future__ import annotations

import ast

from amp_migrate.facts.constants import is_true
from amp_migrate.facts.paths import path
from amp_migrate.facts.scopes import targets_of
from amp_migrate.facts.tree import Tree
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import Class


def slot(cls: Class, name: str) -> tuple[ast.expr, str] | None:
    """Return the value of ``__slots__`` of a class and what it becomes with a further name; None where none is needed.

    Raises `Cannot` where the slots are made in a way that no name can be added to.
    """
    if any(base.rpartition(".")[2] != "object" for base in cls.externals()):
        return None
    given = [_slots(base) for base in cls.mro()]
    if any(
        value is None and not _by_dataclass(base)
        for base, value in zip(cls.mro(), given, strict=True)
    ):
        return None
    if any(value is not None and {name, "__dict__"} & _named(value) for value in given):
        return None
    value = given[0]
    text = _longer(cls.module.tree, value, name) if value is not None else None
    if value is None or text is None:
        raise Cannot(
            "AMP901",
            cls.module,
            cls.node,
            f"the objects of {cls.qualname} take the attributes of its slots alone, and the GradScaler must be one of them",
            f'write the slots of {cls.qualname} as a tuple of names with "{name}" among them, then run again',
        )
    return value, text


def _slots(cls: Class) -> ast.expr | None:
    """Return what the body of a class assigns to ``__slots__``."""
    for stmt in cls.node.body:
        named = "__slots__" in map(path, targets_of(stmt))
        if named and isinstance(stmt, ast.Assign | ast.AnnAssign):
            return stmt.value
    return None


def _by_dataclass(cls: Class) -> bool:
    return any(
        isinstance(node, ast.Call)
        and any(k.arg == "slots" and is_true(k.value) for k in node.keywords)
        for node in cls.node.decorator_list
    )


def _named(value: ast.expr) -> set[object]:
    parts = value.elts if isinstance(value, ast.Tuple | ast.List | ast.Set) else [value]
    return {part.value for part in parts if isinstance(part, ast.Constant)}


def _longer(tree: Tree, value: ast.expr, name: str) -> str | None:
    """Return the text of slots with a further name; None where they are no display of names."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        quote = tree.segment(value)[-1]
        return f"({tree.segment(value)}, {quote}{name}{quote})"
    if not isinstance(value, ast.Tuple | ast.List | ast.Set):
        return None
    if not value.elts:
        return f'["{name}"]' if isinstance(value, ast.List) else f'("{name}",)'
    last = value.elts[-1]
    text = tree.segment(last)
    quote = text[-1] if isinstance(last, ast.Constant) else '"'
    return tree.segment(value, {last: f"{text}, {quote}{name}{quote}"})
