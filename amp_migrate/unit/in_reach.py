"""What a function can reach the scaler through: its object, an object that it holds, a global."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import path
from amp_migrate.project import Class, Function, Project
from amp_migrate.unit.carriers import Carriers
from amp_migrate.unit.relatives import family


def stored_beside(carriers: Carriers, function: Function) -> bool:
    """Tell whether another method of the class uses the `amp` that is stored on its objects."""
    if function.cls is None or function.is_static or function.name == "__init__":
        return False
    methods = {m for cls in family(function.cls) for m in cls.methods.values()}
    beside = methods & carriers.paths.keys()
    return bool(carriers.stored) and any(
        carriers.paths[m] == m.parameters.names[0] for m in beside if m.parameters.names
    )


def held(project: Project, keepers: set[Class], function: Function) -> str | None:
    """Return an object in reach whose class keeps the scaler: ``self.trainer``."""
    if not keepers:
        return None
    scopes = [function.scope]
    if function.cls is not None:
        scopes += [m.node for m in function.cls.methods.values() if m.node is not None]
    for i, scope in enumerate(scopes):
        for node in ast.walk(scope):
            dotted = path(node) if isinstance(node, ast.Name | ast.Attribute) else None
            if dotted is None or (i and not dotted.startswith("self.")) or dotted == "self":
                continue
            classes = project.instance_classes(function.module, node)  # type: ignore[arg-type]
            if classes and keepers.issuperset(classes):
                return dotted
    return None


def is_global(function: Function, node: ast.AST) -> bool:
    """Tell whether a function reads the other objects as globals, and so the scaler too."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return not names & set(function.parameters.names)


def on_self(function: Function, node: ast.AST) -> bool:
    """Tell whether what the scaler serves at `node` is kept on the object rather than passed in."""
    roots = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return bool(function.parameters.names) and function.parameters.names[0] in roots
