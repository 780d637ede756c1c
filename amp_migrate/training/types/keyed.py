"""Items of dicts that functions make and return, by their keys: ``outputs["loss"]``; parts of what networks give."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.constants import string
from amp_migrate.project import Function, Project
from amp_migrate.training.bindings import returned
from amp_migrate.training.origins.losses import Losses
from amp_migrate.training.types.handed import Handed

Place = tuple[Function, ast.expr]


class Keyed:
    """Follows what holds a dict back to where that is made."""

    def __init__(self, project: Project, losses: Losses, handed: Handed) -> None:
        self._project = project
        self._handed = handed
        self._losses = losses

    def items(self, function: Function, node: ast.Subscript) -> list[Place]:
        """Return what may be under the key that is asked for; nothing where not all dicts are seen, or one may be changed."""
        key = string(node.slice)
        if key is None:
            return []
        places: list[Place] = []
        for made in self._made(function, node.value, set()):
            pairs = None if made is None else _pairs(made[1])
            if made is None or pairs is None:
                return []
            if key in pairs:  # asking one without it raises
                places.append((made[0], pairs[key]))
        return places

    def _made(
        self, function: Function, node: ast.expr, seen: set[tuple[Function, ast.AST]]
    ) -> Iterator[Place | None]:
        """Yield the displays of dicts that an expression may hold; None for anything else."""
        if (function, node) in seen:
            return
        seen.add((function, node))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            values = [] if self._losses.put_in(function, node) else self._losses.reaching(function, node)  # fmt: skip
            if not values:
                yield None
            for value in values:
                if isinstance(value, ast.expr):
                    yield from self._made(self._losses.reached.holder(function, value), value, seen)
                elif value is not None:
                    yield from self._taken(function, value, seen)
                else:
                    yield None
        elif isinstance(node, ast.IfExp):
            for way in (node.body, node.orelse):
                yield from self._made(function, way, seen)
        elif isinstance(node, ast.Dict) or _is_dict(function, node):
            yield function, node
        else:
            yield from self._given_back(function, node, seen)

    def _taken(
        self, function: Function, parameter: ast.arg, seen: set[tuple[Function, ast.AST]]
    ) -> Iterator[Place | None]:
        """Yield the displays that calls hand in for a parameter."""
        for site in self._handed.sites(function) or (None,):
            given = self._project.arguments(site, function).get(parameter.arg) if site else None
            if given is None:
                yield None
            else:
                yield from self._made(self._project.holder(given), given, seen)

    def _given_back(
        self, function: Function, node: ast.expr, seen: set[tuple[Function, ast.AST]]
    ) -> Iterator[Place | None]:
        project, module = self._project, function.module
        callees: list[Function] = []
        if isinstance(node, ast.Call) and not project.constructed(node):
            callees = project.callees(node) or project.methods(module, node.func, "forward")
        ends = [(callee, value) for callee in callees for value in returned(callee)]
        if not ends:
            yield None
        for callee, value in ends:
            yield from self._made(callee, value, seen)


def taken(project: Project, where: Function, name: str, value: ast.expr) -> list[Place]:
    """Return what a variable takes of what a network gives several of: `losses` of ``loss, losses = network(x)``.

    Nothing where it takes no part, or not all that the network may give shows.
    """
    module = where.module
    up = module.tree.parent(value)
    target = up.targets[0] if isinstance(up, ast.Assign) and len(up.targets) == 1 else None
    if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Call):
        return []
    names = [part.id if isinstance(part, ast.Name) else None for part in target.elts]
    if names.count(name) != 1 or project.callees(value):
        return []
    forwards = project.methods(module, value.func, "forward")
    given = [(forward, back) for forward in forwards for back in returned(forward)]
    shown = [
        (f, b.elts[names.index(name)])
        for f, b in given
        if isinstance(b, ast.Tuple) and _fits(b, names)
    ]
    return shown if len(shown) == len(given) else []


def _fits(display: ast.Tuple, names: list[str | None]) -> bool:
    spread = any(isinstance(part, ast.Starred) for part in display.elts)
    return len(display.elts) == len(names) and not spread


def _is_dict(function: Function, node: ast.expr) -> bool:
    if not isinstance(node, ast.Call) or node.args:
        return False
    return function.module.scopes.builtin(node.func) == "dict"


def _pairs(node: ast.expr) -> dict[str, ast.expr] | None:
    """Return what a display or a call of ``dict`` has under its keys; None where it does not name all of them."""
    if isinstance(node, ast.Dict):
        keys = [string(each) if each is not None else None for each in node.keys]
        pairs = list(zip(keys, node.values, strict=True))
    else:
        assert isinstance(node, ast.Call)
        pairs = [(keyword.arg, keyword.value) for keyword in node.keywords]
    found = {key: value for key, value in pairs if key is not None}
    return found if len(found) == len(pairs) else None
