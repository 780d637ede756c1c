"""Functions whose calls are all seen, and what each call hands to which parameter."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from generated.refactor.code.calls import definitions, words
from generated.refactor.code.source import Function, Source, sources
from generated.refactor.project import Project


@dataclass(frozen=True)
class Call:
    """A call, and the expression for each parameter it gives."""

    path: str
    src: Source
    node: ast.Call
    given: dict[str, ast.expr]


@dataclass(frozen=True)
class Called:
    """A function of a module, without stars and decorators, and all of its calls."""

    path: str
    src: Source
    node: ast.FunctionDef
    parameters: tuple[str, ...]
    defaults: dict[str, ast.expr]
    calls: tuple[Call, ...]


def called(project: Project, nested: bool = False) -> Iterator[Called]:
    """Yield the functions that are only ever called by their name."""
    seen: dict[str, int] = {}
    every = list(definitions(project))
    for _, _, node, _ in every:
        seen[node.name] = seen.get(node.name, 0) + 1
    for path, src, node, klass in every:
        top = isinstance(src.parents[node], ast.Module)
        if klass is not None or not top or seen[node.name] > 1 or node.name.startswith("__"):
            continue
        a = node.args
        if not isinstance(node, ast.FunctionDef) or node.decorator_list or a.vararg or a.kwarg:
            continue
        if a.posonlyargs:
            continue
        parameters = tuple(p.arg for p in (*a.args, *a.kwonlyargs))
        defaults = dict(zip([p.arg for p in a.args[::-1]], a.defaults[::-1], strict=False))
        defaults |= {
            p.arg: d for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if d is not None
        }
        calls = _calls(project, node, [p.arg for p in a.args])
        if calls:
            yield Called(path, src, node, parameters, defaults, tuple(calls))


def _calls(project: Project, function: Function, positional: list[str]) -> list[Call] | None:
    """Return all calls of a function, or None where it is named otherwise."""
    name, found = function.name, []
    for path, src in sources(project).items():
        if name not in words(project):
            continue
        for node in ast.walk(src.tree):
            if isinstance(node, ast.alias):
                if name in (node.name.rpartition(".")[2], node.asname) and node.asname:
                    return None
                continue
            if isinstance(node, ast.arg | ast.keyword) and node.arg == name:
                return None
            if isinstance(node, ast.Constant) and node.value == name:
                return None
            word = node.id if isinstance(node, ast.Name) else getattr(node, "attr", None)
            if word != name or not isinstance(node, ast.Name | ast.Attribute):
                continue
            around = src.parents[node]
            if not isinstance(around, ast.Call) or around.func is not node:
                return None
            if isinstance(node, ast.Attribute) and not _module(project, node.value):
                return None
            given = _given(around, positional)
            if given is None:
                return None
            found.append(Call(path, src, around, given))
    return found


def _module(project: Project, node: ast.expr) -> bool:
    stems = {path.removesuffix(".py").rpartition("/")[2] for path in project.files}
    return ast.unparse(node).rpartition(".")[2] in stems


def _given(node: ast.Call, positional: list[str]) -> dict[str, ast.expr] | None:
    if any(isinstance(a, ast.Starred) for a in node.args) or len(node.args) > len(positional):
        return None
    if any(k.arg is None for k in node.keywords):
        return None
    found = dict(zip(positional, node.args, strict=False))
    return found | {k.arg: k.value for k in node.keywords if k.arg}


def simple(node: ast.expr) -> bool:
    """Tell whether an expression can be evaluated at another time nearby: names, attributes, literals."""
    if isinstance(node, ast.Attribute):
        return simple(node.value)
    return isinstance(node, ast.Name | ast.Constant)
