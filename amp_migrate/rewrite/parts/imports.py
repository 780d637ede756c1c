"""Imports: fewer names in one, and one more at the top of the file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import takewhile

import libcst as cst

from amp_migrate.plan.model import AddImportedName, DropImportedName
from amp_migrate.rewrite.blocks.lines import Statement
from amp_migrate.rewrite.errors import EditError
from amp_migrate.rewrite.parts.commas import NOTHING, after_comma, append, separator

Import = cst.Import | cst.ImportFrom
Binding = tuple[str, str, str]
_PYTHON = sys.stdlib_module_names


def imported_names(node: Import) -> list[str]:
    """Return the names as written before ``as``."""
    if isinstance(node.names, cst.ImportStar):
        return ["*"]
    return [alias.evaluated_name for alias in node.names]


def added_names(
    node: cst.CSTNode, edits: Sequence[DropImportedName | AddImportedName]
) -> list[str]:
    """Return the names that edits add to a ``from`` statement; raise `EditError` for any other one."""
    added = [edit for edit in edits if isinstance(edit, AddImportedName)]
    for edit in added:
        if not isinstance(node, cst.ImportFrom) or isinstance(node.names, cst.ImportStar):
            raise EditError(edit, "the statement imports no names of a module")
    return [edit.name for edit in added]


def add_names(node: cst.ImportFrom, names: Sequence[str]) -> cst.ImportFrom:
    """Return a ``from`` statement that imports further names, one a line where its others are."""
    for name in names:
        assert not isinstance(node.names, cst.ImportStar)
        opening = node.lpar.whitespace_after if node.lpar else NOTHING
        between = separator([after_comma(alias.comma) for alias in node.names[:-1]], opening)
        end = node.rpar.whitespace_before if node.rpar else NOTHING
        added, close = append(node.names, cst.ImportAlias(cst.Name(name)), between, end)
        rpar = node.rpar.with_changes(whitespace_before=close) if node.rpar else None
        node = node.with_changes(names=added, rpar=rpar)
    return node


def dropped_names(
    node: cst.CSTNode, edits: Sequence[DropImportedName | AddImportedName]
) -> set[str]:
    """Return the names that edits remove from an import; raise `EditError` for one it lacks."""
    removing = [edit for edit in edits if isinstance(edit, DropImportedName)]
    for edit in removing:
        if not isinstance(node, Import):
            raise EditError(edit, "the statement is not an import")
        missing = set(edit.names) - set(imported_names(node))
        if missing:
            raise EditError(edit, f"the statement does not import {', '.join(sorted(missing))}")
    return {name for edit in removing for name in edit.names}


def drop_names(node: Import, names: set[str]) -> Import:
    """Return an import without some of its names, of which at least one stays."""
    assert not isinstance(node.names, cst.ImportStar)
    kept = [alias for alias in node.names if alias.evaluated_name not in names]
    if kept[-1] is not node.names[-1]:
        kept[-1] = kept[-1].with_changes(comma=node.names[-1].comma)
    changed = node.with_changes(names=kept)
    if len(kept) == 1 and isinstance(changed, cst.ImportFrom) and _on_one_line(changed):
        kept = [kept[0].with_changes(comma=cst.MaybeSentinel.DEFAULT)]
        return changed.with_changes(lpar=None, rpar=None, names=kept)
    return changed


def _on_one_line(node: cst.ImportFrom) -> bool:
    if node.lpar is None:
        return False
    return "\n" not in cst.Module(body=[cst.SimpleStatementLine([node])]).code.rstrip("\n")


def bindings(node: Import) -> set[Binding]:
    """Return what an import binds: module, name in it, and name here."""
    module = ""
    if isinstance(node, cst.ImportFrom):
        source = cst.Module([]).code_for_node(node.module) if node.module else ""
        module = "." * len(node.relative) + source
    if isinstance(node.names, cst.ImportStar):
        return {(module, "*", "*")}
    return {
        (module, alias.evaluated_name, alias.evaluated_alias or alias.evaluated_name)
        for alias in node.names
    }


def bound_by(statements: Sequence[Statement]) -> set[Binding]:
    """Return what the imports among top-level statements bind."""
    return {
        binding
        for line in statements
        if isinstance(line, cst.SimpleStatementLine)
        for node in line.body
        if isinstance(node, Import)
        for binding in bindings(node)
    }


def is_import(statement: cst.CSTNode) -> bool:
    """Tell whether a statement is a line of imports."""
    return isinstance(statement, cst.SimpleStatementLine) and all(
        isinstance(small, Import) for small in statement.body
    )


def is_future(statement: cst.CSTNode) -> bool:
    """Tell whether a statement imports from ``__future__``."""
    return (
        isinstance(statement, cst.SimpleStatementLine)
        and isinstance(statement.body[0], cst.ImportFrom)
        and isinstance(statement.body[0].module, cst.Name)
        and statement.body[0].module.value == "__future__"
    )


def is_docstring(statement: cst.CSTNode) -> bool:
    """Tell whether a statement is a plain string."""
    return (
        isinstance(statement, cst.SimpleStatementLine)
        and isinstance(statement.body[0], cst.Expr)
        and isinstance(statement.body[0].value, (cst.SimpleString, cst.ConcatenatedString))
    )


def last_of_first_imports(body: Sequence[cst.CSTNode]) -> int | None:
    """Return the position of the statement below which a new import goes.

    That is the last of the imports that stand before other code, or else the docstring or
    ``__future__`` import; None where the file starts with other code.
    """
    at = 1 if body and is_docstring(body[0]) else 0
    while at < len(body) and is_import(body[at]):
        at += 1
    return at - 1 if at else None


def place_for(new: cst.CSTNode, body: Sequence[cst.CSTNode], last: int) -> int:
    """Return the position of the import, of those up to `last`, below which a new one reads best.

    A module of Python's library goes below the first block of such imports, any other below what comes of its
    package already; else it goes below the last import that is not relative.
    """
    first = next((at for at in range(last + 1) if is_import(body[at])), last)
    packages = _packages(new)
    if not packages <= _PYTHON:
        near = (at for at in range(last, first - 1, -1) if _packages(body[at]) & packages)
        above = (at for at in range(last, first - 1, -1) if not is_relative(body[at]))
        return next(near, next(above, last))
    block = list(takewhile(lambda at: _packages(body[at]) <= _PYTHON, range(first, last + 1)))
    below = [at for at in block if min(_packages(body[at])) < min(packages)]
    return (below or block or [last])[-1]


def is_relative(statement: cst.CSTNode) -> bool:
    """Tell whether a line imports from the package of its file alone."""
    return is_import(statement) and _packages(statement) == {""}


def _packages(statement: cst.CSTNode) -> set[str]:
    """Return the packages that a line of imports names, relative ones as nothing."""
    lines = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
    return {
        (module or name).partition(".")[0]
        for node in lines
        if isinstance(node, Import)
        for module, name, _ in bindings(node)
    }
