"""Gives a variable or an attribute a further name for a run of statements."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from generated.refactor.code.calls import attributes, dynamic
from generated.refactor.code.names import fresh
from generated.refactor.code.source import Edit, Function, Source, drawn, first, sources
from generated.refactor.code.variables import scopes
from generated.refactor.places.attributes import classlevel
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_SIMPLE = ast.Expr | ast.Assign | ast.Return
_LATER = ast.BoolOp | ast.IfExp | ast.Lambda | ast.comprehension | ast.GeneratorExp | ast.ListComp
_INNER = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


@dataclass(frozen=True)
class Read:
    """A statement that reads an expression for certain, and the statements after it in its block."""

    path: str
    src: Source
    node: ast.expr
    run: tuple[ast.stmt, ...]


def _reads(
    project: Project, kind: type[ast.Name] | type[ast.Attribute]
) -> Iterator[tuple[float, Read]]:
    for path, src in sources(project).items():
        for node in ast.walk(src.tree):
            if not isinstance(node, kind) or not isinstance(node.ctx, ast.Load):
                continue
            statement = _certainly(src, node)
            if statement is None or not src.alone([statement]):
                continue
            block, k = src.siblings(statement)
            if isinstance(src.parents[statement], ast.ClassDef):
                continue
            yield src.weight([node]) + 0.2, Read(path, src, node, tuple(block[k:]))


def _certainly(src: Source, node: ast.AST) -> ast.stmt | None:
    while not isinstance(node, ast.stmt):
        if isinstance(node, _LATER | ast.JoinedStr):
            return None
        node = src.parents[node]
    if isinstance(node, ast.With):
        return node
    return node if isinstance(node, _SIMPLE) else None


def _within(run: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the nodes of statements, without those of code that runs later."""
    waiting: list[ast.AST] = list(run)
    while waiting:
        node = waiting.pop()
        if isinstance(node, _INNER | ast.JoinedStr):
            continue
        yield node
        waiting += ast.iter_child_nodes(node)


def _variable(project: Project, rng: Random) -> Project | None:
    if dynamic(project):
        return None

    def one(read: Read) -> Project | None:
        src, node = read.src, read.node
        assert isinstance(node, ast.Name)
        every = scopes(src)
        variable = every.of[node]
        data = all(isinstance(b, ast.arg) for b in variable.binders)
        if variable.declarations or node not in variable.names or not data or node.id == "self":
            return None
        if not variable.stores and not variable.binders:
            return None
        if {"return", "raise"} & {type(s).__name__.lower() for s in read.run[:1]}:
            return None
        run = read.run[: rng.choice([2, 4, 20])]
        inside = {id(n) for n in _within(run)}
        mine = [n for n in variable.every if id(n) in inside]
        if any(not isinstance(n.ctx, ast.Load) for n in mine) or len(run) < 2:
            return None
        bodies = {id(n) for s in run for n in ast.walk(s)}
        if any(id(n) in bodies for n in variable.stores) or not mine:
            return None
        alias = fresh(
            project, rng, ("net", "opt", "current", "this", "handle", "item", "local_ref")
        )
        return _named(project, read, alias, node.id, mine)

    return first(drawn(rng, _reads(project, ast.Name)), one)


def _named(
    project: Project, read: Read, alias: str, old: str, mine: Sequence[ast.expr]
) -> Project | None:
    src = read.src
    start, indent = src.above(read.run[0]), src.indent(read.run[0])
    edits = [Edit(*src.span(n), alias) for n in mine]
    text = src.edited([Edit(start, start, f"{indent}{alias} = {old}\n"), *edits])
    return None if text is None else project.changed(read.path, text)


def _attribute(project: Project, rng: Random) -> Project | None:
    """Read an attribute once, where only constructors and code before it bind it."""
    if dynamic(project):
        return None

    def one(read: Read) -> Project | None:
        src, node = read.src, read.node
        assert isinstance(node, ast.Attribute)
        function = src.inside(node, *Function.__args__)
        if not isinstance(node.value, ast.Name) or not isinstance(function, Function):
            return None
        if function.name == "__init__" or not _settled(project, node.attr):
            return None
        around = src.parents[node]
        if isinstance(around, ast.Call) and around.func is node:
            return None
        if node.value.id not in {a.arg for a in function.args.args}:
            return None
        if node.value.id != "self" and f"--{node.attr}" not in project.text:
            return None
        owner = scopes(src).of[node.value]
        if owner.stores:
            return None
        here = ast.unparse(node)
        mine = [
            n
            for n in _within(read.run)
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
            if scopes(src).of.get(n.value) is owner and n.attr == node.attr
        ]
        inside = scopes(src).by_node[function].variables
        free = node.attr not in inside and node.attr not in _loaded(function)
        alias = (
            node.attr if free and rng.random() < 0.7 else fresh(project, rng, ("held", "local_ref"))
        )
        return _named(project, read, alias, here, mine)

    return first(drawn(rng, _reads(project, ast.Attribute)), one)


def _loaded(function: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}


def _settled(project: Project, name: str) -> bool:
    """Tell whether only constructors bind an attribute, and no class has it as a property."""
    if classlevel(project, name) or name.startswith("__"):
        return False
    for _, src, node in attributes(project, name):
        if isinstance(node.ctx, ast.Load):
            continue
        around = src.inside(node, *Function.__args__, ast.Lambda)
        if not isinstance(around, Function) or around.name != "__init__":
            return False
        if not isinstance(node.value, ast.Name) or node.value.id != "self":
            return False
    return True


REFACTORINGS = (
    Refactoring("a variable gets a second name", "places", _variable),
    Refactoring("an attribute gets a local name", "places", _attribute),
)
