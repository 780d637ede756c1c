"""Lets an object hold a part: methods and the attributes they use become a class of their own."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from generated.refactor.classes.bases import movable, removed, usual
from generated.refactor.code.calls import all_attributes, attributes, body, classes, dynamic
from generated.refactor.code.names import fresh
from generated.refactor.code.source import Edit, Function, Source, drawn, first, sources
from generated.refactor.code.variables import all_parameters, scopes
from generated.refactor.places.attributes import classlevel, constructor, own_name, plain
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_FIXED = (
    ast.Return | ast.Yield | ast.YieldFrom | ast.Import | ast.ImportFrom | ast.Global | ast.Nonlocal
)


@dataclass(frozen=True)
class _Whole:
    """A class that may be taken apart, with its constructor."""

    path: str
    src: Source
    klass: ast.ClassDef
    init: ast.FunctionDef


def _wholes(project: Project) -> list[tuple[float, _Whole]]:
    """Return the ordinary classes without bases and subclasses that have a constructor."""
    every = [(path, src, k) for path, src in sources(project).items() for k in classes(src)]
    derived = {
        ast.unparse(b).rpartition(".")[2]
        for src in sources(project).values()
        for k in ast.walk(src.tree)
        if isinstance(k, ast.ClassDef)
        for b in k.bases
    }
    found = []
    for path, src, klass in every:
        init = constructor(klass)
        if init is None or klass.name in derived or not usual(klass) or not plain(project, klass):
            continue
        if any(ast.unparse(b) != "object" for b in klass.bases) or not body(init):
            continue
        if (
            body(init)[0].lineno == init.lineno
            or not src.alone(body(init))
            or not _says_self(klass)
        ):
            continue
        found.append((1.0 + src.weight(ast.walk(klass)), _Whole(path, src, klass, init)))
    return found


def _says_self(klass: ast.ClassDef) -> bool:
    """Tell whether `self` is the object in all of a class, and attributes have no private names."""
    names = [n for n in ast.walk(klass) if isinstance(n, ast.Name) and n.id == "self"]
    methods = [n for n in klass.body if isinstance(n, ast.FunctionDef)]
    own = [m.args.args[0] for m in methods if m.args.args and m.args.args[0].arg == "self"]
    every = [n for n in ast.walk(klass) if isinstance(n, ast.arg) and n.arg == "self"]
    mangled = any(
        isinstance(n, ast.Attribute) and re.match(r"__\w*[^_]_?$", n.attr) for n in ast.walk(klass)
    )
    return (
        len(own) == len(every) and not mangled and all(isinstance(n.ctx, ast.Load) for n in names)
    )


def _of_self(src: Source, nodes: Sequence[ast.AST]) -> tuple[set[str], bool]:
    """Return the attributes of the object that code names, and whether it names the object itself."""
    found, bare = set(), False
    for node in (n for each in nodes for n in ast.walk(each)):
        if isinstance(node, ast.Name) and node.id == "self":
            above = src.parents[node]
            if isinstance(above, ast.Attribute):
                found.add(above.attr)
            else:
                bare = True
    return found, bare


def _extracted(project: Project, rng: Random) -> Project | None:
    if dynamic(project) or re.search(r"__slots__|pickle|deepcopy|__subclasses__", project.text):
        return None
    return first(drawn(rng, _wholes(project)), lambda whole: _apart(project, rng, whole))


def _apart(project: Project, rng: Random, whole: _Whole) -> Project | None:
    """Draw which statements of the constructor go into that of the part, and move what depends on them alone."""
    statements = body(whole.init)
    runs = [(a, b) for a in range(len(statements)) for b in range(a + 1, len(statements) + 1)]
    for a, b in list(drawn(rng, [(float(b - a), (a, b)) for a, b in runs]))[:30]:
        names = _bound(project, whole, statements[:a], statements[a:b], statements[b:])
        methods = _methods(whole, names) if names else []
        if methods:
            return _written(project, rng, whole, statements[a:b], names, methods)
    return None


def _bound(
    project: Project,
    whole: _Whole,
    above: Sequence[ast.stmt],
    run: Sequence[ast.stmt],
    below: Sequence[ast.stmt],
) -> set[str]:
    """Return the attributes that a run of the constructor binds, empty where it cannot be moved."""
    src = whole.src
    nodes = [n for s in run for n in ast.walk(s)]
    named, bare = _of_self(src, run)
    stored = {
        n.attr
        for n in nodes
        if isinstance(n, ast.Attribute) and own_name(n.value) and isinstance(n.ctx, ast.Store)
    }
    if (
        bare
        or not stored
        or named != stored
        or any(isinstance(n, _FIXED | Function) for n in nodes)
    ):
        return set()
    if stored & _of_self(src, above)[0] or _of_self(src, above)[1]:
        return set()
    local = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    if local & {n.id for s in (*above, *below) for n in ast.walk(s) if isinstance(n, ast.Name)}:
        return set()
    if local & {p.arg for p in all_parameters(whole.init)}:
        return set()
    return stored if all(_own(project, whole, name) for name in stored) else set()


def _own(project: Project, whole: _Whole, name: str) -> bool:
    """Tell whether an attribute is named on `self` alone, in this class or in others of their own."""
    asked = re.search(r"(get|has)attr\(|attrgetter", project.text)
    if classlevel(project, name) or (asked and re.search(rf"[\"']{name}[\"']", project.text)):
        return False
    for _, src, node in attributes(project, name):
        if not own_name(node.value) or src.inside(node, ast.JoinedStr):
            return False
    return True


def _methods(whole: _Whole, names: set[str]) -> list[ast.FunctionDef]:
    """Return the methods that name only these attributes and one another."""
    src = whole.src
    found = {
        m.name: (m, *_of_self(src, [m]))
        for m in whole.klass.body
        if isinstance(m, ast.FunctionDef) and m is not whole.init and not m.decorator_list
        if not m.name.startswith("__") and movable(src, whole.klass, m)
        if m.args.args and m.args.args[0].arg == "self"
    }
    found = {name: each for name, each in found.items() if not each[2]}
    while True:
        kept = {name: each for name, each in found.items() if each[1] <= names | set(found)}
        if len(kept) == len(found):
            break
        found = kept
    used = {name for name, (_, named, _) in found.items() if named}
    return [m for name, (m, _, _) in found.items() if name in used]


def _written(
    project: Project,
    rng: Random,
    whole: _Whole,
    run: Sequence[ast.stmt],
    names: set[str],
    methods: Sequence[ast.FunctionDef],
) -> Project | None:
    src, klass = whole.src, whole.klass
    delegates = [m for m in methods if _called_outside(project, whole, m.name)]
    if any(not _forwarded(m) for m in delegates):
        return None
    part = fresh(project, rng, ("parts", "core", "inner", "engine", "worker"))
    kind = fresh(project, rng, (f"{klass.name}Parts", "Parts", f"{klass.name}Core", "Engine"))
    needed = _needed(src, whole.init, run)
    start, stop = src.lines(run)
    outer, inner = src.indent(whole.init), src.indent(run[0])
    parts = [
        f"{outer}def __init__({', '.join(['self', *needed])}):\n{src.text[start:stop]}",
        *("".join(src.text[slice(*src.lines([m]))]) for m in methods),
    ]
    above = src.above(klass)
    edits = [
        Edit(above, above, f"class {kind}:\n" + "\n".join(parts) + "\n\n"),
        Edit(start, stop, f"{inner}self.{part} = {kind}({', '.join(needed)})\n"),
    ]
    for method in methods:
        if method in delegates:
            edits.append(Edit(*src.lines([method]), _delegate(src, outer, method, part)))
        else:
            edits.append(removed(src, klass, method))
    moved = names | {m.name for m in methods}
    gone = {id(n) for s in (*run, *methods) for n in ast.walk(s)}
    for node in all_attributes(src):
        if node.attr in moved and own_name(node.value) and id(node) not in gone:
            if src.inside(node, ast.ClassDef) is klass:
                end = src.span(node.value)[1]
                edits.append(Edit(end, end, f".{part}"))
    text = src.edited(edits)
    return None if text is None else project.changed(whole.path, text)


def _called_outside(project: Project, whole: _Whole, name: str) -> bool:
    return any(
        not own_name(node.value) or src.inside(node, ast.ClassDef) is not whole.klass
        for _, src, node in attributes(project, name)
    )


def _forwarded(method: ast.FunctionDef) -> bool:
    """Tell whether another method can pass on the arguments of this one."""
    a = method.args
    special = a.posonlyargs or a.kwonlyargs or a.vararg or a.kwarg
    return not special and all(isinstance(d, ast.Constant) for d in a.defaults)


def _delegate(src: Source, indent: str, method: ast.FunctionDef, part: str) -> str:
    passed = ", ".join(p.arg for p in method.args.args[1:])
    signature = ast.unparse(method.args)
    notes = f" -> {ast.unparse(method.returns)}" if method.returns else ""
    row = f"{indent}{src.unit}return self.{part}.{method.name}({passed})\n"
    return f"{indent}def {method.name}({signature}){notes}:\n{row}"


def _needed(src: Source, init: ast.FunctionDef, run: Sequence[ast.stmt]) -> list[str]:
    """Return the local variables of a constructor that a run of it reads and does not bind."""
    every = scopes(src)
    local = every.by_node[init].variables
    names = [n for s in run for n in ast.walk(s) if isinstance(n, ast.Name) and n.id != "self"]
    stored = {n.id for n in names if not isinstance(n.ctx, ast.Load)}
    read = {n.id for n in names if local.get(n.id) is every.of[n]}
    return [word for word in local if word in read - stored]


REFACTORINGS = (Refactoring("methods move to a part that the object holds", "classes", _extracted),)
