"""Options that are the fields of dataclasses: HfArgumentParser of transformers, and tyro."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.enable.described.parser import Parser
from amp_migrate.project import Class, Module, Project

_HF = frozenset({"transformers.HfArgumentParser", "transformers.hf_argparser.HfArgumentParser"})
_TYRO = frozenset({"tyro.cli"})
_GIVES = frozenset(
    {"parse_args_into_dataclasses", "parse_dict", "parse_json_file", "parse_yaml_file"}
)
Found = tuple[Parser, frozenset[int]]


def typed(project: Project) -> Iterator[Found]:
    """Yield the dataclasses of a project that hold options, with what is called by an object of each."""
    for module, call in project.nodes(ast.Call):
        if project.external(module, call.func) in _TYRO and call.args:
            for cls in _classes(project, module, call.args[0]):
                yield from _held(project, module, "tyro", cls, call)
        elif isinstance(call.func, ast.Attribute) and call.func.attr in _GIVES:
            yield from _of_transformers(project, module, call)


def _of_transformers(project: Project, module: Module, call: ast.Call) -> Iterator[Found]:
    assert isinstance(call.func, ast.Attribute)
    given = _given(project, module, call.func.value)
    results = _results(module, call)
    for position, node in enumerate(given):
        for cls in _classes(project, module, node):
            for result in results.get(position, ()):
                yield from _held(project, module, "HfArgumentParser", cls, result)


def _given(project: Project, module: Module, parser: ast.expr) -> list[ast.expr]:
    """Return the dataclasses that a parser is made of, in the order of what it gives; empty where that is not seen."""
    made = [
        node
        for node in module.tree.nodes(ast.Call)
        if project.external(module, node.func) in _HF
        and project.values.groups(module, node) & project.values.groups(module, parser)
    ]
    if len(made) != 1 or not made[0].args:
        return []
    first = made[0].args[0]
    return list(first.elts) if isinstance(first, ast.Tuple | ast.List) else [first]


def _results(module: Module, call: ast.Call) -> dict[int, list[ast.expr]]:
    """Return the expressions that hold what a parser gives, by its position."""
    up = module.tree.parent(call)
    if isinstance(up, ast.Subscript) and isinstance(up.slice, ast.Constant):
        return {up.slice.value: [up]} if isinstance(up.slice.value, int) else {}
    if isinstance(up, ast.Assign) and isinstance(up.targets[0], ast.Tuple | ast.List):
        return {position: [target] for position, target in enumerate(up.targets[0].elts)}
    return {}


def _classes(project: Project, module: Module, node: ast.expr) -> list[Class]:
    return [m for m in project.lookup.expression(module, node) if isinstance(m, Class)]


def _held(
    project: Project, module: Module, kind: str, cls: Class, result: ast.expr
) -> Iterator[Found]:
    """Yield a dataclass that can get one more field, with what a result of the parser is called by."""
    if cls.fields() and not cls.children and _is_dataclass(project, cls):
        options = {name for base in cls.mro() for name in base.fields()}
        yield Parser(kind, cls.module, cls.node, options), project.values.groups(module, result)


def _is_dataclass(project: Project, cls: Class) -> bool:
    marks = (d.func if isinstance(d, ast.Call) else d for d in cls.node.decorator_list)
    return any(project.external(cls.module, mark) == "dataclasses.dataclass" for mark in marks)
