"""Changes how functions take their arguments: by keyword, by keyword alone, from a dictionary, by default."""

from __future__ import annotations

import ast
from random import Random

from generated.refactor.code.calls import body, definitions
from generated.refactor.code.names import fresh
from generated.refactor.code.signatures import Call, Called, called
from generated.refactor.code.source import Edit, Source, drawn
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring


def _keyword_only(project: Project, rng: Random) -> Project | None:
    """Draw a function whose calls are all seen; its last parameters are then only taken by keyword."""
    for function in _weighted(project, rng):
        arguments = function.node.args
        if arguments.kwonlyargs or not arguments.args:
            continue
        first = rng.randrange(len(arguments.args))
        at = function.src.span(arguments.args[first])[0]
        changed = _named(project, function, first, [(function.path, Edit(at, at, "*, "))])
        if changed is not None:
            return changed
    return None


def _by_keyword(project: Project, rng: Random) -> Project | None:
    """Draw a function whose calls are all seen; they name their last arguments."""
    for function in _weighted(project, rng):
        positional = max((len(c.node.args) for c in function.calls), default=0)
        if positional:
            changed = _named(project, function, rng.randrange(positional), [])
            if changed is not None:
                return changed
    return None


def _from_options(project: Project, rng: Random) -> Project | None:
    """Draw a function without defaults; it takes a dictionary of keywords, and begins by reading it."""
    for function in _weighted(project, rng):
        src, node = function.src, function.node
        names = [p.arg for p in node.args.args]
        rest = body(node)
        if not names or node.args.kwonlyargs or function.defaults or not src.alone(rest[:1]):
            continue
        if any(set(names) - set(call.given) for call in function.calls) or not rest:
            continue
        kept = rng.randint(0, len(names) - 1)
        options = fresh(project, rng, ("options", "kwargs", "settings", "config"))
        indent, at = src.indent(rest[0]), src.above(rest[0])
        if src.lines(rest)[0] <= src.span(node)[0]:
            continue
        lines = "".join(f'{indent}{k} = {options}["{k}"]\n' for k in names[kept:])
        start, stop = src.span(node.args.args[kept])[0], src.span(node.args.args[-1])[1]
        edits = [
            (function.path, Edit(start, stop, f"**{options}")),
            (function.path, Edit(at, at, lines)),
        ]
        changed = _named(project, function, kept, edits)
        if changed is not None:
            return changed
    return None


def _named(
    project: Project, function: Called, first: int, edits: list[tuple[str, Edit]]
) -> Project | None:
    """Return the project with edits, and the arguments from the one at `first` named in every call."""
    names = [p.arg for p in function.node.args.args]
    for call in function.calls:
        for name, value in list(zip(names, call.node.args, strict=False))[first:]:
            if isinstance(value, ast.GeneratorExp) or _parenthesised(call, value):
                return None
            at = call.src.span(value)[0]
            edits.append((call.path, Edit(at, at, f"{name}=")))
    changed = project
    for path, src in {
        function.path: function.src,
        **{c.path: c.src for c in function.calls},
    }.items():
        text = src.edited([edit for where, edit in edits if where == path])
        if text is None:
            return None
        changed = changed.changed(path, text)
    return changed


def _parenthesised(call: Call, value: ast.expr) -> bool:
    start, stop = call.src.span(value)
    text = call.src.text
    return (
        text[:start].rstrip().endswith("((")
        or (text[:start].rstrip()[-1:] == "(" and text[:start].rstrip()[:-1].rstrip()[-1:] in ",(")
        or (text[stop:].lstrip()[:1] == ")" and text[stop:].lstrip()[1:].lstrip()[:1] == ",")
    )


def _weighted(project: Project, rng: Random) -> list[Called]:
    found = [(float(f.src.weight(ast.walk(f.node)) + 1), f) for f in called(project)]
    return list(drawn(rng, found))[:6]


def _default(project: Project, rng: Random) -> Project | None:
    """Draw a number, a string or a truth value in a call of a function; it becomes a parameter with a default."""
    places = [
        (float(src.weight([value]) * 3 + 1), (path, src, node, value))
        for path, src, node, _ in definitions(project)
        if not node.args.vararg and not node.args.kwarg and not node.args.kwonlyargs
        for value in _constants(node)
    ]
    for path, src, node, value in drawn(rng, places):
        name = fresh(project, rng, ("value", "limit", "amount", "setting", "choice"))
        start, stop = src.span(value)
        edits = [Edit(start, stop, name), _parameter(src, node, f"{name}={src.code(value)}")]
        text = src.edited(edits)
        if text is not None:
            return project.changed(path, text)
    return None


def _constants(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.Constant]:
    """Return the constants among the arguments of calls, outside of nested functions and classes."""
    found: list[ast.Constant] = []
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        current = waiting.pop()
        if isinstance(current, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(current, ast.Call):
            values = [*current.args, *(k.value for k in current.keywords)]
            found += [v for v in values if isinstance(v, ast.Constant) and _plain(v)]
        if not isinstance(current, ast.JoinedStr):
            waiting += ast.iter_child_nodes(current)
    return found


def _plain(value: ast.Constant) -> bool:
    if isinstance(value.value, str) and value.value.startswith("-"):  # an option of a command line
        return False
    return isinstance(value.value, int | float | bool | str) and value.lineno == value.end_lineno


def _parameter(src: Source, node: ast.FunctionDef | ast.AsyncFunctionDef, text: str) -> Edit:
    """Return the edit that adds a parameter at the end."""
    arguments = node.args
    last: list[ast.AST] = [*arguments.posonlyargs, *arguments.args, *arguments.defaults]
    last += [a.annotation for a in arguments.args if a.annotation]
    if last:
        at = max(src.span(n)[1] for n in last)
        while (
            src.text[at : at + 1] == ")" and src.text[:at].count("(") > src.text[:at].count(")") + 1
        ):
            at += 1
        return Edit(at, at, f", {text}")
    at = src.text.index("(", src.span(node)[0] + len("def ") + len(node.name)) + 1
    return Edit(at, at, text)


REFACTORINGS = (
    Refactoring("parameters are taken by keyword only", "functions", _keyword_only),
    Refactoring("arguments are named in every call", "functions", _by_keyword),
    Refactoring("parameters are read from a dictionary of keywords", "functions", _from_options),
    Refactoring("a constant becomes a parameter with a default", "functions", _default),
)
