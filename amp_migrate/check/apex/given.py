"""What `amp.initialize` was given for the loss scale, as far as it can be read."""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterator

from amp_migrate.check.apex.assumed import Initialize, argument
from amp_migrate.facts.paths import tail

POSITIONS = {"loss_scale": 8, "min_loss_scale": 12, "max_loss_scale": 13}
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def stated(item: Initialize, name: str) -> list[ast.expr]:
    """Return what an argument of `amp.initialize` may be, as far as dictionaries that hold it can be read."""
    direct = argument(item.call, name, POSITIONS[name])
    if direct is not None:
        return [direct]
    options = [k.value for k in item.call.keywords if k.arg is None]
    found = [value for node in options for value in _held(item, node, name, ())]
    read = [ast.Subscript(node, ast.Constant(name), ast.Load()) for node in options]
    return [*found, *read] if found else []


def _held(item: Initialize, node: ast.expr, name: str, seen: tuple[str, ...]) -> Iterator[ast.expr]:
    """Yield what a dictionary may hold under a name."""
    module = item.function.module
    if isinstance(node, ast.Dict):
        for entry, value in zip(node.keys, node.values, strict=True):
            if entry is None:
                yield from _held(item, value, name, seen)
            elif isinstance(entry, ast.Constant) and entry.value == name:
                yield value
    elif isinstance(node, ast.Call) and tail(node) == "dict":
        yield from (k.value for k in node.keywords if k.arg == name)
    elif isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        text = ast.unparse(node)
        if text in seen:
            return
        for assign in module.tree.nodes(ast.Assign):
            for target in assign.targets:
                if ast.unparse(target) == text:
                    yield from _held(item, assign.value, name, (*seen, text))
                elif isinstance(target, ast.Subscript) and ast.unparse(target.value) == text:
                    if isinstance(target.slice, ast.Constant) and target.slice.value == name:
                        yield assign.value
        for call in module.tree.nodes(ast.Call):
            if isinstance(call.func, ast.Attribute) and ast.unparse(call.func) == f"{text}.update":
                yield from (k.value for k in call.keywords if k.arg == name)
                for given in call.args:
                    yield from _held(item, given, name, (*seen, text))


def folded(node: ast.expr) -> float | None:
    """Return the number that an expression of numbers is; None for any other one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return float(node.value)
        except ValueError:
            return None
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = folded(node.left), folded(node.right)
        if left is not None and right is not None:
            try:
                return float(_OPERATORS[type(node.op)](left, right))
            except (ArithmeticError, ValueError):
                return None
    if isinstance(node, ast.Call) and tail(node) in ("float", "int") and len(node.args) == 1:
        return folded(node.args[0])
    return None
