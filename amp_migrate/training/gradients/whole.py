"""Where all parameters of a network are taken: those of every optimizer of it, or of a part of it, are among them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from amp_migrate.facts.paths import tail
from amp_migrate.facts.scopes import Comprehension
from amp_migrate.project import Module
from amp_migrate.training.beliefs import HAND_OUT_PARAMETERS
from amp_migrate.training.events import Event
from amp_migrate.training.objects import Objects

_COLLECTS = frozenset({"chain", "enumerate", "list", "reversed", "set", "sorted", "tuple"})
_OF_EVERY_TRAINED = frozenset({"grad", "requires_grad"})


class Whole:
    """Asks of which optimizers an expression certainly holds all parameters."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def optimizers(self, module: Module, node: ast.expr) -> frozenset[int]:
        """Return the optimizers all of whose parameters an expression hands out."""
        held = {self._objects.name(module, network) for network in _networks(module, node)}
        return frozenset(o.number for o in self._objects.optimizers if o.inside & held)

    def in_turn(self, module: Module, read: ast.AST, owner: ast.expr) -> frozenset[int]:
        """Return the same of the loop that goes over parameters and reads the gradient of each, as `read` does."""
        bound = module.scopes.bound(owner) if isinstance(owner, ast.Name) else []
        for up in module.tree.ancestors(bound[0]) if len(bound) == 1 else ():
            if isinstance(up, Comprehension):
                return self.optimizers(module, up)
            if isinstance(up, ast.For):
                inside = up in module.tree.ancestors(read) and not _passes_over(up, read)
                return self.optimizers(module, up.iter) if inside else frozenset()
        return frozenset()

    def is_part(self, module: Module, gradient: ast.Attribute) -> bool:
        """Tell whether a gradient is that of one parameter of a trained network, spelt out from there, or picked by name."""
        if _is_picked(module, gradient):
            return True
        node = gradient.value
        while isinstance(node, ast.Attribute):
            node = node.value
            if self._objects.training(self._objects.groups(module, node)):
                return True
        return False


def _is_picked(module: Module, gradient: ast.Attribute) -> bool:
    """Tell whether a loop over parameters and their names comes to a gradient by the name, and so to those of some alone."""
    tests: list[ast.expr] = []
    for up in module.tree.ancestors(gradient):
        if isinstance(up, ast.If):
            tests.append(up.test)
        if isinstance(up, ast.For):
            names = _named(up.target)
            if names & _named(gradient.value):
                return any((names - _named(gradient.value)) & _named(test) for test in tests)
    return False


def _named(node: ast.expr) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _networks(module: Module, node: ast.expr) -> Iterator[ast.expr]:
    """Yield the networks all of whose trained parameters an expression hands out."""
    if isinstance(node, Comprehension):
        first, *others = node.generators
        if not others and all(map(_is_of_trained, first.ifs)):
            yield from _networks(module, first.iter)
    elif isinstance(node, ast.Call):
        if tail(node) in HAND_OUT_PARAMETERS and isinstance(node.func, ast.Attribute):
            yield node.func.value
        elif tail(node) in _COLLECTS or _is_filter_of_trained(node):
            for given in node.args:
                yield from _networks(module, given)
    elif isinstance(node, ast.List | ast.Tuple):
        for item in node.elts:
            yield from _networks(module, item)
    elif isinstance(node, ast.Starred):
        yield from _networks(module, node.value)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _networks(module, node.left)
        yield from _networks(module, node.right)
    elif (value := module.scopes.only_value(node)) is not None:
        yield from _networks(module, value)


def _is_of_trained(test: ast.expr) -> bool:
    """Tell whether a test asks for nothing but whether a parameter is trained, or has a gradient."""
    if isinstance(test, ast.BoolOp):
        return all(map(_is_of_trained, test.values))
    if isinstance(test, ast.UnaryOp):
        return _is_of_trained(test.operand)
    if isinstance(test, ast.Compare):
        return isinstance(test.comparators[0], ast.Constant) and _is_of_trained(test.left)
    return isinstance(test, ast.Attribute) and test.attr in _OF_EVERY_TRAINED


def _is_filter_of_trained(call: ast.Call) -> bool:
    kept = call.args[0] if tail(call) == "filter" and call.args else None
    return isinstance(kept, ast.Lambda) and _is_of_trained(kept.body)


def _passes_over(loop: ast.For, read: ast.AST) -> bool:
    """Tell whether a loop may leave out the gradient of a parameter that is trained."""
    for node in ast.walk(loop):
        if isinstance(node, ast.If) and not _is_of_trained(node.test):
            inside = list(ast.walk(node))
            if read in inside or any(isinstance(n, ast.Continue | ast.Break) for n in inside):
                return True
    return False


def reads_of(read: Event, whole: frozenset[int]) -> Iterator[Event]:
    """Yield a read of gradients; those of which all are read are read for certain."""
    if len(whole) > 1:
        yield replace(read, optimizers=whole, each=True)
    if len(whole) < 2 or (read.optimizers or whole) - whole:
        yield read
