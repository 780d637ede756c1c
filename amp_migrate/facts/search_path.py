"""The folders that a file adds to ``sys.path``."""

from __future__ import annotations

import ast
import posixpath

from amp_migrate.facts.imports import last_name
from amp_migrate.facts.paths import path as dotted
from amp_migrate.facts.tree import Tree

_SAME = {"abspath", "realpath", "normpath", "expanduser", "str", "Path", "PurePath", "resolve"}
_SAME |= {"as_posix", "absolute", "fspath"}


def added_folders(tree: Tree, path: str) -> list[str]:
    """Return the folders of ``sys.path.insert``, ``append`` and ``extend`` calls, in source order.

    `path` is the file's own path. Folders under it are given as paths; a relative string, which means
    the working directory, is given relative, as written. What is computed otherwise is left out.
    """
    if "sys.path" not in tree.text and "site" not in tree.text:
        return []
    calls = [node for node in tree.parents if isinstance(node, ast.Call) and _adds(node)]
    found: list[str] = []
    for call in sorted(calls, key=lambda node: node.lineno):
        argument = call.args[-1]
        items = argument.elts if isinstance(argument, (ast.List, ast.Tuple)) else [argument]
        found += [folder for folder in (_Folder(tree, path).read(item) for item in items) if folder]
    return found


def _adds(call: ast.Call) -> bool:
    return bool(call.args) and dotted(call.func) in {
        "sys.path.insert",
        "sys.path.append",
        "sys.path.extend",
        "path.insert",
        "path.append",
        "site.addsitedir",
    }


class _Folder:
    """Reads path expressions made of strings, ``__file__``, joins and parents."""

    def __init__(self, tree: Tree, path: str) -> None:
        self.tree = tree
        self.path = path
        self.reading: set[str] = set()

    def read(self, node: ast.expr) -> str | None:
        """Return the path that `node` computes, or None."""
        value = self._value(node)
        return posixpath.normpath(value) if value else None

    def _value(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value or "."
        if isinstance(node, ast.Name):
            return self.path if node.id == "__file__" else self._variable(node.id)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            return self._joined([node.left, node.right])
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._joined([node.left, node.right])
        if isinstance(node, ast.Attribute) and node.attr == "parent":
            return self._parent(node.value, 1)
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        return self._call(node) if isinstance(node, ast.Call) else None

    def _subscript(self, node: ast.Subscript) -> str | None:
        inner, index = node.value, node.slice
        if not (isinstance(index, ast.Constant) and isinstance(index.value, int)):
            return None
        if isinstance(inner, ast.Attribute) and inner.attr == "parents":
            return self._parent(inner.value, index.value + 1)
        if isinstance(inner, ast.Attribute) and dotted(inner) == "sys.path":
            return posixpath.dirname(self.path) or "."
        return None

    def _call(self, node: ast.Call) -> str | None:
        func = node.func
        name = last_name(func)
        if name in {"getcwd", "cwd"}:
            return "."
        if name == "join" and not node.keywords:
            return self._joined(node.args)
        if name == "dirname" and node.args:
            return self._parent(node.args[0], 1)
        if name == "joinpath" and isinstance(func, ast.Attribute):
            return self._joined([func.value, *node.args])
        if name in _SAME:
            inner = node.args[0] if node.args else None
            if inner is None and isinstance(func, ast.Attribute):
                inner = func.value
            return self._value(inner) if inner is not None else None
        return None

    def _parent(self, node: ast.expr, steps: int) -> str | None:
        value = self._value(node)
        for _ in range(steps):
            if value is None:
                return None
            value = posixpath.normpath(value)
            if value in {".", ".."} or value.endswith("/.."):
                value = posixpath.join(value, "..")
            else:
                value = posixpath.dirname(value) or "."
        return value

    def _joined(self, parts: list[ast.expr]) -> str | None:
        values = [self._value(part) for part in parts]
        if not values or any(value is None for value in values):
            return None
        first, *rest = [value for value in values if value is not None]
        return posixpath.join(first, *(value.lstrip("/") for value in rest))

    def _variable(self, name: str) -> str | None:
        if name in self.reading:
            return None
        self.reading.add(name)
        for node in self.tree.parents:
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                target = node.targets[0]
                if isinstance(target, ast.Name) and target.id == name:
                    return self._value(node.value)
        return None
