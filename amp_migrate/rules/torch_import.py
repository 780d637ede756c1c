"""`import torch` where the written code needs it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import imported_name
from amp_migrate.facts.tree import Tree
from amp_migrate.plan.model import AddImport, Decision, Edit, Status
from amp_migrate.project import Module
from amp_migrate.rules.base import decision
from amp_migrate.rules.calls.amp102_initialize import RULE


def needed_import(module: Module, edits: list[Edit]) -> Iterator[Decision]:
    """Import torch where the edits of a file say ``torch.`` and the file does not bind the name."""
    texts = [getattr(edit, "text", "") + (getattr(edit, "header", None) or "") for edit in edits]
    read = [t.replace("from torch.", "").replace("import torch.", "") for t in texts]
    if not any("torch." in text for text in read) or binds_torch(module.tree):
        return
    first = module.tree.module.body[0]
    yield decision(
        RULE, Status.ROUTINE, module, first, "torch is imported", [AddImport("import torch")]
    )


def binds_torch(tree: Tree) -> bool:
    """Tell whether a file imports torch by its name, or reads it behind a star import that gives it."""
    stars = [
        s for s in tree.module.body if isinstance(s, ast.ImportFrom) and s.names[0].name == "*"
    ]
    if stars and any(n.id == "torch" for n in tree.nodes(ast.Name)):
        return True
    for stmt in tree.module.body:
        if isinstance(stmt, ast.Import) and any(
            imported_name(alias) == "torch" for alias in stmt.names
        ):
            return True
    return False
