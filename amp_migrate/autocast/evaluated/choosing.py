"""Tests that only choose between forward passes, as of a model and of its average."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import defs
from amp_migrate.project import Module

_CHOICES = (ast.Assign, ast.If)


def choice(module: Module, first: ast.stmt) -> ast.stmt:
    """Return the test whose branches only choose between forwards, as that of an averaged model, if there is one."""
    tree = module.tree
    holder = tree.holder(first)
    while isinstance(holder, ast.If) and holder.orelse and first in (*holder.body, *holder.orelse):
        sides = (holder.body, holder.orelse)
        if not all(len(side) == 1 and isinstance(side[0], _CHOICES) for side in sides):
            break
        if defs(holder.body[0]) != defs(holder.orelse[0]):
            break
        first, holder = holder, tree.holder(holder)
    return first
