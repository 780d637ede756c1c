"""Moves variables of a function to the module, a class or the object: globals, class attributes, attributes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from random import Random

from generated.refactor.code.calls import body, dynamic, generator, reentrant, words
from generated.refactor.code.names import fresh
from generated.refactor.code.source import Edit, Function, Source, drawn, first, sources
from generated.refactor.code.variables import Scope, Variable, scopes
from generated.refactor.places.containers import (
    candidates,
    first_parameter,
    outermost,
    place,
    replaced,
)
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

Change = Callable[[Project, Random, str, Source, Scope, list[Variable]], Project | None]


def _of_functions(
    change: Change, methods: bool = False
) -> Callable[[Project, Random], Project | None]:
    """Apply a change to some variables of a function that never runs within itself."""

    def apply(project: Project, rng: Random) -> Project | None:
        if dynamic(project):
            return None
        places = [
            (src.weight(n for v in moving for n in v.every), (path, src, scope, moving))
            for path, src in sources(project).items()
            for scope, moving in candidates(project, src, path)
            if scope.function and not (methods and first_parameter(src, scope) is None)
        ]

        def one(found: tuple[str, Source, Scope, list[Variable]]) -> Project | None:
            path, src, scope, moving = found
            node = scope.node
            assert isinstance(node, Function)
            if generator(node) or reentrant(project, node.name) or _nested(src, node):
                return None
            count = rng.choice([1, 2, 2, 3, 4])
            chosen = list(drawn(rng, [(src.weight(v.every), v) for v in moving]))[:count]
            return change(project, rng, path, src, scope, chosen)

        return first(drawn(rng, places), one)

    return apply


def _nested(src: Source, node: Function) -> bool:
    """Tell whether a function is made anew by another, or makes functions that may outlive it."""
    if src.inside(node, *Function.__args__, ast.Lambda) is not None:
        return True
    kinds = (*Function.__args__, ast.Lambda, ast.GeneratorExp)
    return any(isinstance(n, kinds) for n in ast.walk(node) if n is not node)


def _to_globals(
    project: Project, rng: Random, path: str, src: Source, scope: Scope, chosen: list[Variable]
) -> Project | None:
    """Make locals globals of the same name; `global` declares those that the function binds."""
    node = scope.node
    assert isinstance(node, Function)
    everywhere = scopes(src).module.variables
    chosen = [v for v in chosen if not v.parameter and v.name not in everywhere]
    if not chosen or not all(_own_word(scopes(src).all, v) for v in chosen):
        return None
    outside = "\n".join(text for other, text in project.files.items() if other != path)
    if "import *" in outside:
        return None
    head = body(node)[0]
    if head.lineno == node.lineno or not src.alone([head]):
        return None
    names = sorted(v.name for v in chosen)
    start = src.above(head)
    edits = [Edit(start, start, f"{src.indent(head)}global {', '.join(names)}\n")]
    if rng.random() < 0.5:
        outer = src.above(outermost(src, node))
        edits.append(Edit(outer, outer, "".join(f"{n} = None\n" for n in names) + "\n\n"))
    return _written(project, path, src, edits)


def _own_word(every: Sequence[Scope], variable: Variable) -> bool:
    """Tell whether a class body around does not bind the name of a variable, nor another function nests it."""
    return not any(
        variable.name in scope.variables and isinstance(scope.node, ast.ClassDef) for scope in every
    )


def _to_a_class(
    project: Project, rng: Random, path: str, src: Source, scope: Scope, chosen: list[Variable]
) -> Project | None:
    """Keep locals in attributes of a class that nobody makes objects of."""
    kind = fresh(project, rng, ("State", "Setup", "Globals", "Current"))
    at = place(src, scope, chosen)
    if at is None:
        return None
    indent = src.indent(at)
    names = [v.name for v in chosen]
    fields = "".join(f"{src.unit}{name} = None\n" for name in names)
    header = f"class {kind}:\n{fields}\n\n"
    given = "".join(f"{indent}{kind}.{v.name} = {v.name}\n" for v in chosen if v.parameter)
    start, outer = src.above(at), src.above(outermost(src, scope.node))
    edits = [Edit(outer, outer, header), *replaced(src, chosen, lambda word: f"{kind}.{word}")]
    if given:
        edits.append(Edit(start, start, given))
    return _written(project, path, src, edits)


def _to_self(
    project: Project, rng: Random, path: str, src: Source, scope: Scope, chosen: list[Variable]
) -> Project | None:
    """Keep locals of a method in attributes of its object, where no attribute has the name."""
    node = scope.node
    assert isinstance(node, Function)
    own = first_parameter(src, scope)
    klass = src.parents[node]
    assert isinstance(klass, ast.ClassDef)
    if own is None or own.arg != "self" or node.decorator_list or "__slots__" in src.code(klass):
        return None
    if any("Module" in ast.unparse(b) or "Optimizer" in ast.unparse(b) for b in klass.bases):
        return None
    taken = {n.attr for s in sources(project).values() for n in ast.walk(s.tree) if _attribute(n)}
    methods = {n.name for s in sources(project).values() for n in ast.walk(s.tree) if _defined(n)}
    underscore = "_" if rng.random() < 0.4 else ""
    chosen = [v for v in chosen if underscore + v.name not in taken | methods]
    chosen = [v for v in chosen if not underscore or underscore + v.name not in words(project)]
    at = place(src, scope, chosen) if chosen else None
    if at is None:
        return None
    indent = src.indent(at)
    given = "".join(
        f"{indent}self.{underscore}{v.name} = {v.name}\n" for v in chosen if v.parameter
    )
    start = src.above(at)
    edits = list(replaced(src, chosen, lambda word: f"self.{underscore}{word}"))
    if given:
        edits.append(Edit(start, start, given))
    return _written(project, path, src, edits)


def _attribute(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute)


def _defined(node: ast.AST) -> bool:
    return isinstance(node, Function | ast.ClassDef)


def _written(project: Project, path: str, src: Source, edits: list[Edit]) -> Project | None:
    text = src.edited(edits)
    return None if text is None else project.changed(path, text)


REFACTORINGS = (
    Refactoring("locals become globals", "places", _of_functions(_to_globals)),
    Refactoring("locals become class attributes", "places", _of_functions(_to_a_class)),
    Refactoring(
        "locals become attributes of self", "places", _of_functions(_to_self, methods=True)
    ),
)
