"""Leaves parts of a class to a subclass: hooks that it overrides, methods that it continues by super()."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from random import Random

from generated.refactor.classes.bases import movable, network, removed, usual
from generated.refactor.code.blocks import Block
from generated.refactor.code.calls import body, classes
from generated.refactor.code.names import code, fresh
from generated.refactor.code.scopes import places, shared
from generated.refactor.code.source import Edit, Source, drawn, first, indented, source, sources
from generated.refactor.code.variables import all_parameters
from generated.refactor.functions.extract import is_trivial, replaced
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_HOOKS = ("on_batch", "compute_part", "do_step", "hook", "apply_stage")


def _splittable(project: Project, src: Source, klass: ast.ClassDef) -> bool:
    """Tell whether a class can become the base of one that takes its name."""
    own = len(re.findall(rf"\b{klass.name}\b", src.code(klass)))
    if "__slots__" in project.text or "__subclasses__" in project.text or own > 1:
        return False
    return usual(klass) and klass.body[0].lineno != klass.lineno and src.alone([klass])


def _renamed(src: Source, klass: ast.ClassDef, name: str) -> Edit:
    start = src.span(klass)[0]
    found = re.compile(rf"class\s+({klass.name})\b").match(src.text, start)
    assert found is not None
    return Edit(found.start(1), found.end(1), name)


def _base_name(project: Project, rng: Random, klass: ast.ClassDef) -> str:
    return fresh(project, rng, (f"{klass.name}Base", f"Base{klass.name}", f"Abstract{klass.name}"))


def _hook(project: Project, rng: Random) -> Project | None:
    """Take a run of a method out, into a hook that the base only declares."""

    def fits(block: Block) -> bool:
        klass, function = block.klass, block.function
        return klass is not None and function is not None and not function.decorators

    for place in places(project, rng, fits):
        klass = place.block.klass
        assert klass is not None
        passed = shared(project, place)
        if passed is None or is_trivial(place) or "self" in passed.outputs:
            continue
        src = sources(project)[place.path]
        node = next((c for c in classes(src) if c.name == klass.name.value), None)
        if node is None or network(node) or not _splittable(project, src, node):
            continue
        name = fresh(project, rng, _HOOKS)
        inputs = [i for i in passed.inputs if i != "self"]
        if "cls" in inputs:
            continue
        call = f"self.{name}({', '.join(inputs)})"
        results = ", ".join(passed.outputs)
        changed = replaced(place, f"{results} = {call}\n" if results else f"{call}\n").code
        rows = code(place.run).strip("\n") + "\n" + (f"return {results}\n" if results else "")
        return _overridden(project, rng, place.path, changed, node.name, name, inputs, rows)
    return None


def _overridden(
    project: Project,
    rng: Random,
    path: str,
    text: str,
    klass: str,
    name: str,
    inputs: Sequence[str],
    rows: str,
) -> Project | None:
    src = source(text)
    node = next(c for c in classes(src) if c.name == klass)
    unit, base = src.unit, _base_name(project, rng, node)
    head = f"{unit}def {name}({', '.join(['self', *inputs])}):\n"
    at = src.below(node)
    stub = f"\n{head}{unit * 2}raise NotImplementedError\n"
    below = f"\n\nclass {klass}({base}):\n{head}{indented(rows, unit * 2)}"
    changed = src.edited([_renamed(src, node, base), Edit(at, at, stub + below)])
    return None if changed is None else project.changed(path, changed)


def _template(project: Project, rng: Random) -> Project | None:
    """Leave whole methods to a subclass; the base declares them."""
    places = []
    for path, src in sources(project).items():
        for klass in classes(src):
            found = [
                m
                for m in klass.body
                if isinstance(m, ast.FunctionDef) and not m.name.startswith("__")
                if movable(src, klass, m) and not m.decorator_list
            ]
            if found and not network(klass) and _splittable(project, src, klass):
                nodes = [n for m in found for n in ast.walk(m)]
                places.append((1 + src.weight(nodes), (path, src, klass, found)))

    def one(place: tuple[str, Source, ast.ClassDef, list[ast.FunctionDef]]) -> Project | None:
        path, src, klass, found = place
        weights = [(1.0 + src.weight(ast.walk(m)), m) for m in found]
        chosen = sorted(list(drawn(rng, weights))[: rng.choice([1, 1, 2])], key=lambda m: m.lineno)
        base, unit, at = _base_name(project, rng, klass), src.unit, src.below(klass)
        edits = [_renamed(src, klass, base)]
        moved = []
        for method in chosen:
            start, stop = src.lines([method])
            moved.append(src.text[start:stop])
            head = src.text[src.span(method)[0] : src.span(body(method)[0])[0]]
            head = head[: head.rindex(":") + 1]
            if '"' in head or "#" in head or body(method)[0].lineno == method.lineno:
                return None
            indent = src.indent(method)
            stub = f"{indent}{head}\n{indent}{unit}raise NotImplementedError\n"
            if rng.random() < 0.2:
                edits.append(removed(src, klass, method))
            else:
                edits.append(Edit(start, stop, stub))
        if len(chosen) == len(klass.body) and any(e.text == "" for e in edits):
            return None
        text = f"\n\nclass {klass.name}({base}):\n" + "\n".join(moved)
        changed = src.edited([*edits, Edit(at, at, text.rstrip() + "\n")])
        return None if changed is None else project.changed(path, changed)

    return first(drawn(rng, places), one)


def _continued(project: Project, rng: Random) -> Project | None:
    """Leave the last statements of a method to a subclass, which runs the first ones by super()."""
    places = []
    for path, src in sources(project).items():
        for klass in classes(src):
            if network(klass) or not _splittable(project, src, klass):
                continue
            for method in klass.body:
                if not isinstance(method, ast.FunctionDef) or not movable(src, klass, method):
                    continue
                cuts = _cuts(src, method)
                if cuts:
                    weight = 1 + src.weight(ast.walk(method))
                    places.append((weight, (path, src, klass, method, cuts)))

    def one(
        place: tuple[str, Source, ast.ClassDef, ast.FunctionDef, list[int]],
    ) -> Project | None:
        path, src, klass, method, cuts = place
        tail = body(method)[rng.choice(cuts) :]
        base, unit = _base_name(project, rng, klass), src.unit
        start, stop = src.lines(tail)
        given = ", ".join(p.arg for p in all_parameters(method) if p.arg != "self")
        a = ast.unparse(method.args)
        inner, at = src.indent(method), src.below(klass)
        below = (
            f"\n\nclass {klass.name}({base}):\n{inner}def {method.name}({a}):\n"
            f"{inner}{unit}super().{method.name}({given})\n{src.text[start:stop]}"
        )
        edits = [_renamed(src, klass, base), Edit(start, stop, ""), Edit(at, at, below)]
        if stop == at:
            edits = [edits[0], Edit(start, stop, below)]
        changed = src.edited(edits)
        return None if changed is None else project.changed(path, changed)

    return first(drawn(rng, places), one)


def _cuts(src: Source, method: ast.FunctionDef) -> list[int]:
    """Return where a method can be cut in two that share nothing but its parameters."""
    a, statements = method.args, body(method)
    if method.decorator_list or a.vararg or a.kwarg or a.kwonlyargs or a.posonlyargs:
        return []
    if not statements or not a.args or a.args[0].arg != "self":
        return []
    if statements[0].lineno == method.lineno:
        return []
    if not src.alone(statements):
        return []
    found = []
    for cut in range(1, len(statements)):
        bound, leaves = set(), False
        for s in statements[:cut]:
            for n in ast.walk(s):
                if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load):
                    bound.add(n.id)
                leaves |= isinstance(n, ast.Return | ast.Yield | ast.YieldFrom | ast.Import)
                leaves |= isinstance(n, ast.FunctionDef | ast.ImportFrom | ast.Global)
        later = [n for s in statements[cut:] for n in ast.walk(s)]
        if leaves or any(isinstance(n, ast.Yield | ast.YieldFrom) for n in later):
            continue
        if not bound & {n.id for n in later if isinstance(n, ast.Name)} and not bound & {
            p.arg for p in a.args
        }:
            found.append(cut)
    return found


REFACTORINGS = (
    Refactoring("a run of a method becomes a hook of a subclass", "classes", _hook),
    Refactoring("methods are left to a subclass", "classes", _template),
    Refactoring("a method is continued in a subclass", "classes", _continued),
)
