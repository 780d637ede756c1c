"""Functions, calls and imports, written as a programmer lays them out."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TypeVar

import libcst as cst

from generated.refactor.code.blocks import parsed
from generated.refactor.code.names import bound, tree

WIDTH = 96
Line = TypeVar("Line", bound=cst.BaseStatement)


def listed(head: str, items: Sequence[str], tail: str, depth: int, unit: str = "    ") -> str:
    """Return `head` + items + `tail` in a line, or in three where that is too long at this depth."""
    flat = f"{head}{', '.join(items)}{tail}"
    if len(flat) + len(unit) * depth <= WIDTH:
        return flat
    return f"{head}\n{unit}{', '.join(items)},\n{tail}"


def function(
    module: cst.Module,
    name: str,
    parameters: Sequence[str],
    body: Sequence[cst.BaseStatement],
    depth: int = 0,
    decorator: str = "",
) -> cst.FunctionDef:
    """Return a function of these statements, which stand as they are."""
    unit = module.default_indent
    head = listed(f"def {name}(", parameters, "):", depth, unit)
    marked = f"@{decorator}\n" if decorator else ""
    (found,) = parsed(f"{marked}{head}\n{unit}pass\n", module)
    assert isinstance(found, cst.FunctionDef)
    inner = [gap(body[0], 0), *map(_unindented, body[1:])]
    return found.with_changes(body=cst.IndentedBlock(body=inner))


def _unindented(statement: Line) -> Line:
    """Return a statement of a module whose blank lines stay empty when it is indented."""
    lines = getattr(statement, "leading_lines", ())
    if not any(line.indent and line.comment is None for line in lines):
        return statement
    kept = [x if x.comment else x.with_changes(indent=False) for x in lines]
    return statement.with_changes(leading_lines=kept)


def gap(statement: Line, lines: int) -> Line:
    """Return a statement with so many blank lines above it and its comments."""
    kept = list(getattr(statement, "leading_lines", ()))
    while kept and kept[0].comment is None:
        kept.pop(0)
    blank = [cst.EmptyLine(indent=False) for _ in range(lines)]
    return statement.with_changes(leading_lines=[*blank, *kept])


def blank_lines(statement: cst.BaseStatement) -> int:
    """Return how many blank lines stand above a statement and its comments."""
    lines = list(getattr(statement, "leading_lines", ()))
    commented = (k for k, line in enumerate(lines) if line.comment is not None)
    return next(commented, len(lines))


def above(module: cst.Module, index: int, new: Sequence[cst.BaseStatement]) -> cst.Module:
    """Return the module with definitions above one of its statements, two blank lines around each."""
    body = list(module.body)
    first = 2 if index else 0
    put = [gap(node, 2 if k else first) for k, node in enumerate(new)]
    rest = body[index:]
    if rest:
        rest[0] = gap(rest[0], max(2, blank_lines(rest[0])))
    return module.with_changes(body=[*body[:index], *put, *rest])


def imported(module: cst.Module, statement: str, like: cst.Module) -> cst.Module | None:
    """Return the module with an import of the standard library; None where its name means something else.

    `like` is the module as it was before anything used the import.
    """
    wanted = ast.dump(ast.parse(statement).body[0])
    if any(ast.dump(node) == wanted for node in tree(module).body):
        return module
    (line,) = parsed(statement + "\n", module)
    words = (ast.walk(tree(like)), ast.walk(tree(module)))
    names = {n.id for n in words[0] if isinstance(n, ast.Name)}
    arguments = {n.arg for n in words[1] if isinstance(n, ast.arg)}
    if bound(line) & (names | arguments | bound(like)):
        return None
    body = list(module.body)
    plain = [k for k, node in enumerate(body) if _is_import(node)]
    if plain:
        at = plain[0]
        body[at : at + 1] = [
            line.with_changes(leading_lines=body[at].leading_lines),
            gap(body[at], 0),
        ]  # type: ignore[attr-defined,call-overload]
        return module.with_changes(body=body)
    later = [k for k, node in enumerate(body) if _opening(node)]
    at = later[-1] + 1 if later else 0
    if at < len(body):
        compound = isinstance(body[at], cst.FunctionDef | cst.ClassDef)
        body[at] = gap(body[at], max(2 if compound else 1, blank_lines(body[at])))
    return module.with_changes(body=[*body[:at], line, *body[at:]])


def _is_import(node: cst.CSTNode) -> bool:
    if not isinstance(node, cst.SimpleStatementLine) or _opening(node):
        return False
    return isinstance(node.body[0], cst.Import | cst.ImportFrom)


def _opening(node: cst.CSTNode) -> bool:
    """Tell whether a statement is a docstring or an import from the future."""
    statement = tree(node).body[0]
    if isinstance(statement, ast.ImportFrom):
        return statement.module == "__future__"
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
