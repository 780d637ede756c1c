"""What hands out parameters in an expression: the networks and optimizers that these are taken of."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.below import every
from amp_migrate.facts.paths import path
from amp_migrate.facts.scopes import assigned
from amp_migrate.project import Module
from amp_migrate.training.beliefs import HAND_OUT_PARAMETERS, SHAPE_OF_GRADIENT
from amp_migrate.training.bindings import values_of

_METHODS = HAND_OUT_PARAMETERS - {"param_groups"}


def bases(module: Module, node: ast.AST, seen: set[ast.AST]) -> Iterator[ast.expr]:
    """Yield what hands out parameters in an expression, or in what its names were assigned.

    What is only asked of a parameter, as its device, hands out none.
    """
    for part in every(node):
        if part in seen:
            continue
        seen.add(part)
        if isinstance(part, ast.Attribute) and part.attr in SHAPE_OF_GRADIENT:
            seen.update(every(part.value))
            continue
        if isinstance(part, ast.Attribute) and part.attr in HAND_OUT_PARAMETERS:
            if is_kept(module, part):
                for value in _put_in(module, part):
                    yield from bases(module, value, seen)
            else:
                yield part.value
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            for value in values_of(module, part):
                if value not in seen:
                    yield from bases(module, value, seen)


def is_kept(module: Module, node: ast.Attribute) -> bool:
    """Tell whether an attribute that is called as a method of networks is a container of the program: ``self.parameters["encoder"]``."""
    if node.attr not in _METHODS or module.tree.call_of(node) is not None:
        return False
    up = module.tree.parent(node)
    if isinstance(up, ast.Subscript) and up.value is node:
        return True
    return any(isinstance(other.ctx, ast.Store) for other in _same(module, node))


def one_name(module: Module, node: ast.expr) -> str | None:
    """Return the name of the one network that an expression takes parameters of; None for anything else."""
    found = {base.id if isinstance(base, ast.Name) else None for base in bases(module, node, set())}
    return found.pop() if len(found) == 1 else None


def _put_in(module: Module, node: ast.Attribute) -> Iterator[ast.expr]:
    """Yield what an attribute is set to in the class or the file that reads it, and what its items are."""
    for other in _same(module, node):
        up = module.tree.parent(other)
        item = isinstance(up, ast.Subscript) and isinstance(up.ctx, ast.Store)
        value = assigned(module.tree, up if item and up is not None else other)
        if value is not None and (item or isinstance(other.ctx, ast.Store)):
            yield value


def _same(module: Module, node: ast.Attribute) -> Iterator[ast.Attribute]:
    """Yield what reads or sets an attribute by the same words in a class, or outside of all."""
    cls, text = module.tree.enclosing(node, ast.ClassDef), path(node)
    for other in module.tree.attributes(node.attr) if text is not None else ():
        if path(other) == text and module.tree.enclosing(other, ast.ClassDef) is cls:
            yield other
