"""Writes constructors otherwise: a dataclass, slots; takes classes apart into functions with a state."""

from __future__ import annotations

import ast
import re
from random import Random

from generated.refactor.classes.bases import usual
from generated.refactor.code.calls import all_attributes, body, classes, dynamic, words
from generated.refactor.code.names import fresh
from generated.refactor.code.source import Edit, Function, Source, drawn, first, imported, sources
from generated.refactor.code.variables import scopes
from generated.refactor.places.attributes import constructor, plain
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring


def _found(
    project: Project,
) -> list[tuple[float, tuple[str, Source, ast.ClassDef, ast.FunctionDef]]]:
    """Return the ordinary classes without bases that have a constructor."""
    found = []
    for path, src in sources(project).items():
        for klass in classes(src):
            init = constructor(klass)
            if init is None or not usual(klass) or not plain(project, klass):
                continue
            if klass.bases or body(init)[0].lineno == init.lineno or not src.alone(body(init)):
                continue
            if not init.args.args or init.args.args[0].arg != "self":
                continue
            found.append((1 + src.weight(ast.walk(klass)), (path, src, klass, init)))
    return found


def _subclassed(project: Project, klass: ast.ClassDef) -> bool:
    return any(
        klass.name in ast.unparse(b)
        for src in sources(project).values()
        for c in ast.walk(src.tree)
        if isinstance(c, ast.ClassDef)
        for b in c.bases
    )


def _dataclass(project: Project, rng: Random) -> Project | None:
    """Let a dataclass write the assignments at the head of a constructor."""

    def one(place: tuple[str, Source, ast.ClassDef, ast.FunctionDef]) -> Project | None:
        path, src, klass, init = place
        if _subclassed(project, klass) or "dataclass" in scopes(src).module.variables:
            return None
        a = init.args
        if a.vararg or a.kwarg or a.kwonlyargs or a.posonlyargs or len(a.args) < 2:
            return None
        given = [p.arg for p in a.args[1:]]
        head: list[ast.stmt] = []
        for s in body(init):
            if not _field(s, given):
                break
            head.append(s)
        if {_target(s) for s in head} != set(given) or len(head) != len(given):
            return None
        rest = body(init)[len(head) :]
        if any(isinstance(d, ast.List | ast.Dict | ast.Set | ast.Call) for d in a.defaults):
            return None
        if _names_of_class(klass) & set(given):
            return None
        edits = _rest(src, rest, given)
        if edits is None:
            return None
        indent = src.indent(init)
        spread = [None] * (len(a.args) - len(a.defaults)) + list(a.defaults)
        rows = "".join(
            f"{indent}{p.arg}: {src.code(p.annotation) if p.annotation else 'object'}"
            + (f" = {src.code(d)}" if d is not None else "")
            + "\n"
            for p, d in list(zip(a.args, spread, strict=True))[1:]
        )
        start, stop = src.lines([init])
        if rest:
            first_, last = src.lines(rest)
            inner = src.moved(first_, last, edits)
            if inner is None:
                return None
            rows += f"\n{indent}def __post_init__(self):\n{inner}"
        at = src.span(klass)[0]
        changes = [
            Edit(at, at, "@dataclass(eq=False)\n"),
            Edit(start, stop, rows),
            *imported(src, "from dataclasses import dataclass"),
        ]
        text = src.edited(changes)
        return None if text is None else project.changed(path, text)

    return first(drawn(rng, _found(project)), one)


def _field(s: ast.stmt, given: list[str]) -> bool:
    if not isinstance(s, ast.Assign) or len(s.targets) != 1 or not isinstance(s.value, ast.Name):
        return False
    target = s.targets[0]
    own = isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self"
    return own and _target(s) == s.value.id and s.value.id in given


def _target(s: ast.stmt) -> str:
    assert isinstance(s, ast.Assign)
    target = s.targets[0]
    return target.attr if isinstance(target, ast.Attribute) else ""


def _names_of_class(klass: ast.ClassDef) -> set[str]:
    found = {getattr(n, "name", "") for n in klass.body}
    for n in klass.body:
        if isinstance(n, ast.Assign):
            found |= {t.id for t in n.targets if isinstance(t, ast.Name)}
    return found


def _rest(src: Source, rest: list[ast.stmt], given: list[str]) -> list[Edit] | None:
    """Return the edits that read fields where parameters were read; None where the two may differ."""
    names = [n for s in rest for n in ast.walk(s) if isinstance(n, ast.Name) and n.id in given]
    stored = {
        n.attr
        for s in rest
        for n in ast.walk(s)
        if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load)
    }
    if any(n.id in stored or not isinstance(n.ctx, ast.Load) for n in names):
        return None
    if any(src.inside(n, ast.JoinedStr, ast.Lambda, *Function.__args__[1:]) for n in names):
        return None
    called = any(
        isinstance(n, ast.Call) and ast.unparse(n.func).startswith("self.")
        for s in rest
        for n in ast.walk(s)
    )
    if names and called:
        return None
    return [Edit(*src.span(n), f"self.{n.id}") for n in names]


def _slots(project: Project, rng: Random) -> Project | None:
    """Give a class slots for all attributes that its methods bind."""

    def one(place: tuple[str, Source, ast.ClassDef, ast.FunctionDef]) -> Project | None:
        path, src, klass, _ = place
        if _subclassed(project, klass) or re.search(r"getattr|deepcopy|pickle", src.text):
            return None
        bound = {
            n.attr
            for n in all_attributes(src)
            if not isinstance(n.ctx, ast.Load) and src.inside(n, ast.ClassDef) is klass
            if ast.unparse(n.value) == "self"
        }
        outside = {
            n.attr
            for s in sources(project).values()
            for n in all_attributes(s)
            if not isinstance(n.ctx, ast.Load) and ast.unparse(n.value) != "self"
        }
        if not bound or outside or bound & _names_of_class(klass):
            return None
        if any(isinstance(n, ast.Assign) for n in klass.body):
            return None
        head = klass.body[1:] if ast.get_docstring(klass) is not None else klass.body
        at, indent = src.above(head[0]), src.indent(head[0])
        slots = ", ".join(f'"{name}"' for name in sorted(bound))
        tail = "," if len(bound) == 1 else ""
        text = src.edited([Edit(at, at, f"{indent}__slots__ = ({slots}{tail})\n\n")])
        return None if text is None else project.changed(path, text)

    if dynamic(project) or "__slots__" in project.text:
        return None
    return first(drawn(rng, _found(project)), one)


def _functions(project: Project, rng: Random) -> Project | None:
    """Make functions of the methods of a class whose one object stands in a variable."""
    if dynamic(project):
        return None
    return first(drawn(rng, _found(project)), lambda place: _apart(project, rng, *place))


def _apart(
    project: Project,
    rng: Random,
    path: str,
    src: Source,
    klass: ast.ClassDef,
    init: ast.FunctionDef,
) -> Project | None:
    methods = [m for m in klass.body if isinstance(m, ast.FunctionDef)]
    doc = ast.get_docstring(klass) is not None
    if len(methods) + doc != len(klass.body) or _subclassed(project, klass):
        return None
    names = {m.name: m.name for m in methods if m is not init}
    if any(
        m.decorator_list or n.startswith("__") for n, m in zip(names, methods[1:], strict=False)
    ):
        return None
    if methods[0] is not init or _several_lines(klass, doc):
        return None
    uses = _uses(project, path, src, klass, names)
    if uses is None:
        return None
    make = fresh(
        project, rng, (f"make_{klass.name.lower()}", f"new_{klass.name.lower()}", "build_state")
    )
    state = fresh(project, rng, ("state", "run", "ctx"))
    new = {}
    for name in names:
        taken = words(project) if name in scopes(src).module.variables else set()
        known = name if not taken and _own_word(project, name) else f"{name}_{state}"
        if known != name and known in words(project):
            return None
        new[name] = known
    edits: list[Edit] = []
    for node in ast.walk(klass):
        if isinstance(node, ast.Name) and node.id == "self":
            above = src.parents[node]
            called = src.parents[above]
            if isinstance(above, ast.Attribute) and above.attr in names:
                if not isinstance(called, ast.Call) or called.func is not above:
                    return None
                edits += _called(src, called, new[above.attr], state)
            elif src.inside(node, ast.JoinedStr):
                return None
            else:
                edits.append(Edit(*src.span(node), state))
    texts = [_function(src, m, init, make, state, new, edits) for m in methods]
    if any(t is None for t in texts):
        return None
    outside = _outside(uses, make, new, state)
    if outside is None:
        return None
    start, stop = src.span(klass)[0], src.below(klass)
    changed = src.edited(
        [
            Edit(start, stop, "\n\n".join(t or "" for t in texts)),
            *outside,
            *imported(src, "from types import SimpleNamespace"),
        ]
    )
    return None if changed is None else project.changed(path, changed)


def _own_word(project: Project, name: str) -> bool:
    """Tell whether a word is only the name of methods."""
    for src in sources(project).values():
        for node in ast.walk(src.tree):
            if name in (getattr(node, "id", ""), getattr(node, "arg", "")):
                return False
    return True


def _several_lines(klass: ast.ClassDef, doc: bool) -> bool:
    nodes = [n for k in klass.body[doc:] for n in ast.walk(k)]
    return any(
        isinstance(n, ast.Constant | ast.JoinedStr) and n.lineno != n.end_lineno for n in nodes
    )


def _uses(
    project: Project, path: str, src: Source, klass: ast.ClassDef, names: dict[str, str]
) -> list[tuple[Source, ast.Name]] | None:
    """Return the variable's names where the one object of a class is made in the same file and called."""
    if sum(len(re.findall(rf"\b{klass.name}\b", t)) for t in project.files.values()) != 2:
        return None
    made = [
        n
        for n in ast.walk(src.tree)
        if isinstance(n, ast.Call) and ast.unparse(n.func) == klass.name
    ]
    if len(made) != 1:
        return None
    statement = src.parents[made[0]]
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Name):
        return None
    variable = scopes(src).of[target]
    if variable.stores != [target] or variable.binders or variable.declarations:
        return None
    for load in variable.loads:
        above = src.parents[load]
        if not isinstance(above, ast.Attribute) or src.inside(load, ast.JoinedStr):
            return None
        call = src.parents[above]
        if above.attr in names and (not isinstance(call, ast.Call) or call.func is not above):
            return None
    return [(src, n) for n in variable.every]


def _called(src: Source, call: ast.Call, name: str, state: str) -> list[Edit]:
    """Return the edit that turns `object.method(` into `function(state, `."""
    start = src.span(call)[0]
    _, end = src.span(call.func)
    opening = src.text.index("(", end) + 1
    empty = not call.args and not call.keywords
    return [Edit(start, opening, f"{name}({state}{'' if empty else ', '}")]


def _function(
    src: Source,
    method: ast.FunctionDef,
    init: ast.FunctionDef,
    make: str,
    state: str,
    new: dict[str, str],
    edits: list[Edit],
) -> str | None:
    start, stop = src.lines([method])
    indent = src.indent(method)
    text = src.moved(start, stop, edits)
    if text is None:
        return None
    rows = "".join(
        line[len(indent) :] if line.startswith(indent) else line
        for line in text.splitlines(keepends=True)
    )
    pattern = rf"def {method.name}\(\s*self\s*(,\s*)?"
    if not re.search(pattern, rows):
        return None
    if method is not init:
        return re.sub(
            pattern, lambda m: f"def {new[method.name]}({state}{m[1] or ''}", rows, count=1
        )
    rows = re.sub(pattern, f"def {make}(", rows, count=1)
    if any(isinstance(n, ast.Return) for n in ast.walk(init)):
        return None
    head = src.text[src.lines(body(init))[0] :]
    line = head.splitlines()[0][len(indent) :]
    inner = line[: len(line) - len(line.lstrip())]
    lines = rows.splitlines(keepends=True)
    at = src.lines(body(init))[0]
    before = len(src.text[start:at].splitlines())
    lines.insert(before, f"{inner}{state} = SimpleNamespace()\n")
    return "".join([*lines, f"{inner}return {state}\n"])


def _outside(
    uses: list[tuple[Source, ast.Name]], make: str, new: dict[str, str], state: str
) -> list[Edit] | None:
    edits = []
    for src, name in uses:
        above = src.parents[name]
        if isinstance(above, ast.Assign):
            call = above.value
            assert isinstance(call, ast.Call)
            edits.append(Edit(*src.span(call.func), make))
        elif isinstance(above, ast.Attribute) and above.attr in new:
            call = src.parents[above]
            assert isinstance(call, ast.Call)
            edits += _called(src, call, new[above.attr], name.id)
    return edits


REFACTORINGS = (
    Refactoring("a class becomes a dataclass", "classes", _dataclass),
    Refactoring("a class has slots", "classes", _slots),
    Refactoring("a class becomes functions with a state", "classes", _functions),
)
