"""Lambdas bound to a name that train, as functions: ``advance = lambda: optimizer.step()`` becomes ``def advance()``.

An expression has no room for what native AMP needs beside a step, and what a function does is seen at its calls.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import tail
from amp_migrate.facts.scopes import assigned
from amp_migrate.plain.write import Piece
from amp_migrate.project import Module, Project
from amp_migrate.source.span import Span
from amp_migrate.training.gradients.used import clips

_TRAINING = ("backward", "step")
_Place = tuple[Module, ast.AST]


@dataclass(frozen=True, slots=True)
class Named:
    """The assignment of a lambda to a name, and the head of the function that it is."""

    statement: ast.Assign
    piece: Piece


def named(project: Project, module: Module) -> Iterator[Named]:
    """Yield the lambdas of a file that may train, or compute a loss, and are bound to names of functions or of the file."""
    for node in module.tree.nodes(ast.Lambda):
        statement = module.tree.parent(node)
        if not isinstance(statement, ast.Assign):
            continue
        if not (_may_train(project, module, node) or _may_compute(project, module, statement)):
            continue
        if isinstance(module.scopes.scope_of(statement), ast.ClassDef):
            continue
        piece = _head(module, statement, node)
        if piece is not None:
            yield Named(statement, piece)


def apart(found: Named, module: Module, pieces: Collection[Piece]) -> bool:
    """Tell whether nothing else is put into the lines of a lambda."""
    place = module.tree.span(found.statement)
    return all(p.span.end_line < place.line or p.span.line > place.end_line for p in pieces)


def _may_train(project: Project, module: Module, node: ast.Lambda) -> bool:
    """Tell whether something in a lambda, or in what it calls, runs a backward, steps, looks at gradients or starts Apex."""

    def onward(place: _Place) -> Iterator[_Place]:
        for part in ast.walk(place[1]):
            if isinstance(part, ast.Call):
                yield from _called(project, place[0], part)

    starts: list[_Place] = [(module, node.body)]
    return any(
        _trains(project, where, part)
        for where, body in closure(starts, onward)
        for part in ast.walk(body)
    )


def _may_compute(project: Project, module: Module, statement: ast.Assign) -> bool:
    """Tell whether a lambda calls something for a function that runs a backward, as the loss function."""
    target, scopes = statement.targets[0], module.scopes
    if not isinstance(target, ast.Name) or not isinstance(statement.value, ast.Lambda):
        return False
    if not any(isinstance(part, ast.Call) for part in ast.walk(statement.value.body)):
        return False
    reads = scopes.reads(scopes.owner(target), target.id)
    parent = module.tree.parent
    calls = [call for read in reads if (call := module.tree.call_of(read)) is not None]
    calls = [call for call in calls if not isinstance(parent(call), ast.withitem)]
    return any(
        isinstance(node, ast.Call) and tail(node) == "backward"
        for function in {project.function_of(module, call) for call in calls}
        for node in function.own_nodes
    )


def _trains(project: Project, module: Module, node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        starts = project.apex(module, node.func) == "apex.amp.initialize"
        return starts or tail(node) in _TRAINING or clips(project, module, node)
    return isinstance(node, ast.Attribute) and node.attr == "grad"


def _called(project: Project, module: Module, call: ast.Call) -> Iterator[_Place]:
    for function in project.callees(call):
        if function.node is not None:
            yield function.module, function.node
    for target in module.scopes.bound(call.func) if isinstance(call.func, ast.Name) else ():
        value = assigned(module.tree, target)
        if isinstance(value, ast.Lambda):
            yield module, value.body


def _head(module: Module, statement: ast.Assign, node: ast.Lambda) -> Piece | None:
    """Return the head up to the colon, where the statement has its lines for itself and ends with the lambda."""
    tree = module.tree
    target = statement.targets[0]
    place, body = tree.span(statement), tree.span(node.body)
    first, last = tree.lines[place.line - 1], tree.lines[place.end_line - 1]
    rest = last[place.end_column :].strip()
    if len(statement.targets) != 1 or not isinstance(target, ast.Name):
        return None
    if first[: place.column].strip() or (rest and not rest.startswith("#")):
        return None
    if tree.span(node)[2:] != place[2:] or body.line != place.line:
        return None
    begun = first[tree.span(node).column : body.column]
    colon = begun.rindex(":")
    given = begun[len("lambda") : colon].strip()
    end = tree.span(node).column + colon + 1
    return Piece(Span(*place[:2], place.line, end), f"def {target.id}({given}): return")
