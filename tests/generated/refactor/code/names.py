"""Which names a piece of code reads and binds, and names that nothing uses yet."""

from __future__ import annotations

import ast
import builtins
import re
import textwrap
from collections.abc import Iterable, Sequence
from functools import lru_cache
from random import Random

import libcst as cst

from generated.refactor.project import Project

_STEMS = (
    "run_part",
    "apply_part",
    "do_stage",
    "one_round",
    "handle",
    "advance",
    "perform",
    "compute",
)


def code(nodes: cst.CSTNode | Iterable[cst.CSTNode]) -> str:
    """Return the source of nodes, dedented."""
    several = [nodes] if isinstance(nodes, cst.CSTNode) else nodes
    return textwrap.dedent("".join(map(_source, several)))


@lru_cache(maxsize=8192)
def _source(node: cst.CSTNode) -> str:
    return cst.Module(body=[]).code_for_node(node)


def tree(nodes: cst.CSTNode | Iterable[cst.CSTNode]) -> ast.Module:
    """Return the standard syntax tree of statements or of an expression, which must not be changed."""
    text = code(nodes).strip("\n")
    return _tree(f"({text}\n)" if isinstance(nodes, cst.BaseExpression) else text)


@lru_cache(maxsize=1024)
def _tree(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError:  # as `return` or `yield` outside of functions never is, but `await` may be
        return ast.parse("async def _():\n" + textwrap.indent(text, "    "))


class _Names(ast.NodeVisitor):
    """Collects the names that code reads and binds in its own scope; those of comprehensions stay inside."""

    def __init__(self) -> None:
        self.read: set[str] = set()
        self.bound: set[str] = set()
        self.declared: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Store):  # what is deleted has to be there
            self.read.add(node.id)
        if not isinstance(node.ctx, ast.Load):
            self.bound.add(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.read.add(node.target.id)
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.bound |= {(a.asname or a.name).partition(".")[0] for a in node.names}

    visit_ImportFrom = visit_Import

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.bound |= {node.name} if node.name else set()
        self.generic_visit(node)

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        self.declared |= set(node.names)

    visit_Nonlocal = visit_Global

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        arguments = node.args
        outside = [*arguments.defaults, *(d for d in arguments.kw_defaults if d)]
        if not isinstance(node, ast.Lambda):
            self.bound.add(node.name)
            outside += node.decorator_list
        for expression in outside:
            self.visit(expression)
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        own = {a.arg for a in (*every, *filter(None, (arguments.vararg, arguments.kwarg)))}
        self._inner(node.body if isinstance(node.body, list) else [node.body], own)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.bound.add(node.name)
        for expression in (*node.bases, *(k.value for k in node.keywords), *node.decorator_list):
            self.visit(expression)
        self._inner(node.body, set())

    def _comprehension(self, node: ast.expr) -> None:
        inner = _Names()
        ast.NodeVisitor.generic_visit(inner, node)
        walrus = {n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr)}
        self.read |= inner.read - (inner.bound - walrus)
        self.bound |= walrus

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def _inner(self, body: Iterable[ast.AST], own: set[str]) -> None:
        inner = _Names()
        for child in body:
            inner.visit(child)
        self.read |= inner.read - own - (inner.bound - inner.declared)
        self.bound |= inner.bound & inner.declared


def _names(nodes: cst.CSTNode | Iterable[cst.CSTNode]) -> _Names:
    found = _Names()
    found.visit(tree(nodes))
    return found


def read(nodes: cst.CSTNode | Iterable[cst.CSTNode]) -> set[str]:
    """Return the names that code reads, those of nested functions among them."""
    return _names(nodes).read


def bound(nodes: cst.CSTNode | Iterable[cst.CSTNode]) -> set[str]:
    """Return the names that code binds in its own scope."""
    return _names(nodes).bound


def free(node: ast.AST) -> set[str]:
    """Return the names that a node of the standard syntax tree reads and does not bind inside."""
    found = _Names()
    found.visit(node)
    return found.read


def declared(nodes: cst.CSTNode | Iterable[cst.CSTNode]) -> set[str]:
    """Return the names that code declares global or nonlocal."""
    return _names(nodes).declared


def certain(statements: Sequence[cst.CSTNode]) -> set[str]:
    """Return the names that a run of statements binds for certain, if it ends without an exception."""
    return _run(tree(statements).body)


def _run(body: Sequence[ast.stmt]) -> set[str]:
    found: set[str] = set()
    for statement in body:
        found = (found | _certain(statement)) - deleted(statement)
    return found


def _certain(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.If):
        return _bound_by([statement.test]) | _common([statement.body, statement.orelse])
    if isinstance(statement, ast.With):
        return _bound_by(statement.items) | _run(statement.body)
    if isinstance(statement, ast.Try):
        arms = [[*statement.body, *statement.orelse], *(h.body for h in statement.handlers)]
        return _common(arms) | _run(statement.finalbody)
    if isinstance(statement, ast.For | ast.AsyncFor | ast.While | ast.Match | ast.Delete):
        return set()
    return _bound_by([statement])


def _common(arms: Sequence[Sequence[ast.stmt]]) -> set[str]:
    """Return what every arm binds that does not leave by its own last statement."""
    going = [_run(arm) for arm in arms if not (arm and isinstance(arm[-1], _LEAVING))]
    return set.intersection(*going) if going else set()


_LEAVING = ast.Return | ast.Raise | ast.Continue | ast.Break


def deleted(node: ast.AST) -> set[str]:
    """Return the names that code deletes anywhere."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Del)}


def _bound_by(nodes: Sequence[ast.AST]) -> set[str]:
    found = _Names()
    for node in nodes:
        found.visit(node)
    return found.bound


def needed(statements: Sequence[cst.CSTNode]) -> set[str]:
    """Return the names that a run of statements may read before it binds them."""
    return _needed(tree(statements).body, set())


def _needed(body: Sequence[ast.stmt], have: set[str]) -> set[str]:
    found: set[str] = set()
    have = set(have)
    for statement in body:
        head, first, arms = _parts(statement)
        found |= _read_by(head) - have
        for arm in arms:
            found |= _needed(arm, have | first)
        have = (have | _certain(statement)) - deleted(statement)
    return found


def _parts(
    statement: ast.stmt,
) -> tuple[Sequence[ast.AST], set[str], Sequence[Sequence[ast.stmt]]]:
    """Return what a statement reads at its head, what the head binds, and the blocks below it."""
    if isinstance(statement, ast.If | ast.While):
        head = [statement.test]
        return head, _bound_by(head), (statement.body, statement.orelse)
    if isinstance(statement, ast.For | ast.AsyncFor):
        targets = _bound_by([statement.target])
        return [statement.iter, statement.target], targets, (statement.body, statement.orelse)
    if isinstance(statement, ast.With | ast.AsyncWith):
        return statement.items, _bound_by(statement.items), (statement.body,)
    if isinstance(statement, ast.Try):
        handled = [[ast.Expr(h.type), *h.body] if h.type else h.body for h in statement.handlers]
        names = {h.name for h in statement.handlers if h.name}
        whole = [*statement.body, *statement.orelse]
        return [], names, (whole, *handled, statement.finalbody)
    return [statement], set(), ()


def _read_by(nodes: Sequence[ast.AST]) -> set[str]:
    found = _Names()
    for node in nodes:
        found.visit(node)
    return found.read


def fresh(project: Project, rng: Random, stems: Sequence[str] = _STEMS) -> str:
    """Return a name that occurs nowhere in a project."""
    words = set(re.findall(r"\w+", project.text)) | set(dir(builtins))
    stem = rng.choice(list(stems))
    names = (stem, *(f"{stem}_{k}" for k in range(2, 1000)))
    return next(name for name in names if name not in words)
