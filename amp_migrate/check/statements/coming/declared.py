"""Whether the classes and imports of a new text are those of the old one, where no rule brings others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from amp_migrate.check.events.claims import Claims
from amp_migrate.check.events.sides import Key, Side, differs
from amp_migrate.check.events.traces import Difference
from amp_migrate.project import Module

_CLASS = "is a class that only the new text has:"
_BASES = "is made of other classes than before:"
_MEANS = "is a name that meant something else:"
_APEX = "apex"
_RESPELT = re.compile(r"^torch\.cuda\.amp\b")


def declared(old: Side, new: Side, claims: Claims) -> Iterator[tuple[Key, Difference]]:
    """Yield the classes that only the new text has or makes of others, and names of the old text that mean something else."""
    for module in new.project.modules.values():
        before = old.project.modules.get(module.path)
        if before is None or before.tree.text == module.tree.text:
            continue
        if not claims.bring(module.path) and not claims.drops(before.top):
            yield from _classes(old, before, module)
            yield from _names(before, module)


def _classes(old: Side, before: Module, after: Module) -> Iterator[tuple[Key, Difference]]:
    """Yield the classes that are new, or made of others than those of Apex."""
    known = {cls.qualname: node for node, cls in before.classes.items()}
    for node, cls in after.classes.items():
        had = known.get(cls.qualname)
        if had is None:
            yield differs(after.top, node, f"`{cls.qualname}` {_CLASS}")
        elif [*map(ast.unparse, had.bases)] != [*map(ast.unparse, node.bases)]:
            if not any(old.project.apex(before, base) for base in had.bases):
                yield differs(after.top, node, f"`{cls.qualname}` {_BASES}")


def _names(before: Module, after: Module) -> Iterator[tuple[Key, Difference]]:
    """Yield what is imported or defined under a name of the file that was imported from elsewhere, but for Apex."""
    had, has = _meanings(before), _meanings(after)
    for name in had.keys() & has.keys():
        kept = {text for text, _ in had[name]}
        if any(text.partition(".")[0] == _APEX for text in kept):
            continue
        for text, node in has[name]:
            if text not in kept:
                yield differs(after.top, node, f"`{name}` {_MEANS}")
    stars = {ast.unparse(s) for s in before.tree.nodes(ast.ImportFrom) if s.names[0].name == "*"}
    for statement in after.tree.nodes(ast.ImportFrom):
        if statement.names[0].name == "*" and ast.unparse(statement) not in stars:
            yield differs(after.top, statement, f"`{ast.unparse(statement)}` {_MEANS}")


def _meanings(module: Module) -> dict[str, list[tuple[str, ast.stmt]]]:
    """Return what the names are that a file imports or defines, by how they are written out."""
    found: dict[str, list[tuple[str, ast.stmt]]] = {}
    for statement in module.tree.nodes(ast.Import, ast.ImportFrom):
        home = (
            f"{'.' * statement.level}{statement.module or ''}."
            if isinstance(statement, ast.ImportFrom)
            else ""
        )
        for alias in statement.names:
            name = alias.asname or alias.name.partition(".")[0]
            meant = home + (alias.name if alias.asname else name)
            found.setdefault(name, []).append((_RESPELT.sub("torch.amp", meant), statement))
    for node in module.tree.module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.setdefault(node.name, []).append(("defined", node))
    return found
