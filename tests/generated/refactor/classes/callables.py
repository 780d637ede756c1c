"""Makes objects of runs of statements, and classes of functions."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from random import Random

import libcst as cst

from generated.refactor.code.blocks import Block, blocks, parsed, put
from generated.refactor.code.calls import imports_of
from generated.refactor.code.names import bound, code, fresh
from generated.refactor.code.scopes import Place, before, places, shared
from generated.refactor.code.signatures import Called, called
from generated.refactor.code.source import Edit, Source, drawn, first, indented, source
from generated.refactor.code.writing import above, blank_lines, gap
from generated.refactor.functions.extract import is_trivial
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring


def _object(project: Project, rng: Random) -> Project | None:
    """Make an object of a run in a loop: built before the loop of what stays, called with the rest."""

    def fits(block: Block) -> bool:
        return block.function is not None and bool(block.loops)

    for place in places(project, rng, fits):
        passed = shared(project, place)
        if passed is None or is_trivial(place) or "cls" in passed.inputs:
            continue
        changed = _built(project, rng, place, passed.inputs, passed.outputs)
        if changed is not None:
            return changed
    return None


def _built(
    project: Project, rng: Random, place: Place, inputs: Sequence[str], outputs: Sequence[str]
) -> Project | None:
    module, loop = place.module, place.block.loops[0]
    around = next(b for b in blocks(module) if any(s is loop for s in b.body))
    index = next(k for k, s in enumerate(around.body) if s is loop)
    sure, changing = before(around, index), bound(loop.with_changes(leading_lines=()))
    kept = [i for i in inputs if i in sure and i not in changing]
    given = [i for i in inputs if i not in kept]
    names = {k: "owner" if k == "self" else k for k in kept}
    if not kept or set(kept) & set(outputs) or "self" in given:
        return None
    if "owner" in (*inputs, *outputs):
        return None
    rows = respelled(code(place.run).strip("\n") + "\n", {k: f"self.{n}" for k, n in names.items()})
    if rows is None:
        return None
    kind = fresh(project, rng, ("BatchStep", "Runner", "Stage", "Unit"))
    held = fresh(project, rng, ("do_batch", "stage", "runner", "unit"))
    method = rng.choice(["__call__", "__call__", "run", "apply"])
    results, unit = ", ".join(outputs), module.default_indent
    call = f"{held}{'' if method == '__call__' else '.' + method}({', '.join(given)})"
    new = parsed(f"{results} = {call}\n" if results else f"{call}\n", module)
    new[0] = gap(new[0], blank_lines(place.run[0]))
    body = [*place.block.body[: place.start], *new, *place.block.body[place.stop :]]
    inner = loop.with_deep_changes(place.block.home, body=body)
    assert isinstance(inner, cst.For | cst.While)
    (made,) = parsed(f"{held} = {kind}({', '.join(kept)})\n", module)
    made = gap(made, blank_lines(loop))
    changed = put(module, around, index, index + 1, [made, gap(inner, 0)])
    fields = "".join(f"{unit * 2}self.{n} = {n}\n" for n in names.values())
    back = f"return {results}\n" if results else ""
    text = (
        f"class {kind}:\n{unit}def __init__({', '.join(['self', *names.values()])}):\n{fields}\n"
        f"{unit}def {method}({', '.join(['self', *given])}):\n{indented(rows + back, unit * 2)}"
    )
    return project.changed(place.path, above(changed, place.outermost, parsed(text, module)))


def respelled(rows: str, names: dict[str, str]) -> str | None:
    """Return statements that read variables by other expressions; None where they bind or format them."""
    src = source(rows)
    edits = []
    for node in ast.walk(src.tree):
        if isinstance(node, ast.arg) and node.arg in names:
            return None
        if isinstance(node, ast.Name) and node.id in names:
            if not isinstance(node.ctx, ast.Load) or _formatted(src, node):
                return None
            edits.append(Edit(*src.span(node), names[node.id]))
    return src.edited(edits)


def _formatted(src: Source, node: ast.AST) -> bool:
    return src.inside(node, ast.JoinedStr) is not None


def _class(project: Project, rng: Random) -> Project | None:
    """Make a static method, a class method or a callable object of a function."""
    found = [
        f
        for f in called(project)
        if not imports_of(project, f.path) or all(c.path == f.path for c in f.calls)
        if all(c.path == f.path for c in f.calls) and not _long_strings(f.node)
    ]
    places = [(1 + f.src.weight(ast.walk(f.node)), f) for f in found]
    return first(drawn(rng, places), lambda function: _owned(project, rng, function))


def _long_strings(node: ast.FunctionDef) -> bool:
    """Tell whether a function holds a text of several lines, which another indentation would change."""
    return any(
        isinstance(n, ast.Constant | ast.JoinedStr) and n.lineno != n.end_lineno
        for n in ast.walk(node)
    )


def _owned(project: Project, rng: Random, function: Called) -> Project | None:
    src, node = function.src, function.node
    unit, name = src.unit, node.name
    start, stop = src.lines([node])
    text = src.text[start:stop]
    at = src.span(node)[0] - start
    comments, text = text[:at], text[at:]
    opening = text.index("(", text.index(name)) + 1
    shape = rng.choice(["static", "class", "call"])
    kind = fresh(project, rng, ("Steps", "Training", "Helpers", "Routines"))
    edits = [
        Edit(*src.span(call.node.func), f"{kind}.{name}")
        for call in function.calls
        if shape != "call"
    ]
    empty = text[opening:].lstrip().startswith(")")
    lead = "" if shape == "static" else ("self" if shape == "call" else "cls")
    lead += "" if empty or not lead else ", "
    word = "__call__" if shape == "call" else name
    head = f"def {word}({lead}" + text[opening:]
    mark = {"static": "@staticmethod\n", "class": "@classmethod\n", "call": ""}[shape]
    rows = f"{comments}class {kind}:\n" + indented(mark + head, unit)
    if shape == "call":
        rows += f"\n\n{name} = {kind}()\n"
    if any(start <= e.start < stop for e in edits):
        return None
    changed = src.edited([*edits, Edit(start, stop, rows)])
    return None if changed is None else project.changed(function.path, changed)


REFACTORINGS = (
    Refactoring("a run in a loop becomes an object", "classes", _object),
    Refactoring("a function becomes a method of a class", "classes", _class),
)
