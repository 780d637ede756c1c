"""Other scripts beside the one that trains: one without Apex, one that evaluates, one that nobody migrates."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from random import Random

from generated.refactor.code.identifiers import Edit, Text, Unsure, edited, text
from generated.refactor.code.importing import dotted, imports
from generated.refactor.files.moves import by_kind
from generated.refactor.noise.spots import below_imports
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_APEX = re.compile(r"\b(apex|amp)\b")


def _beside(project: Project, stems: tuple[str, ...], rng: Random) -> str:
    """Return the path of a new script beside the one that trains."""
    folder = PurePosixPath(project.entry).parent
    used = {PurePosixPath(p).stem for p in project.files} | {
        PurePosixPath(p).parts[0] for p in project.files
    }
    free = [s for s in stems if s not in used] or [f"script_{len(project.files)}"]
    return str(folder / f"{rng.choice(free)}.py")


def _shares(project: Project, path: str) -> bool:
    """Tell whether a script uses a file of the project that uses Apex."""
    seen, waiting = set[str](), [path]
    while waiting:
        for i in imports(project, waiting[0], text(project.files[waiting.pop(0)]).tree):
            if i.path and i.path not in seen:
                seen.add(i.path)
                waiting.append(i.path)
    return any(_apex_names(text(project.files[p])) for p in seen)


def _apex_names(held: Text) -> set[str]:
    """Return what a file binds of Apex, in the module or in functions."""
    found: set[str] = set()
    for node in ast.walk(held.tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "apex":
            found |= {a.asname or a.name for a in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.asname or "apex" for a in node.names if a.name.partition(".")[0] == "apex"}
    return found


def _plain(project: Project, rng: Random) -> Project | None:
    """A script trains in FP32 with the helpers of the one that uses Apex."""
    try:
        if not _shares(project, project.entry):
            several = by_kind(project, rng)
            if several is None or not _shares(several, several.entry):
                return None
            project = several
        held = text(project.files[project.entry])
        flags = [f for f in _flags(held) if _guards(project, f)]
        rng.shuffle(flags)
        for flag in flags:
            source = _without(held, flag)
            if source is None:
                continue
            path = _beside(project, ("train_plain", "baseline", "fp32", "pretrain"), rng)
            changed = replace(project, files={**project.files, path: source})
            if _apex_names(text(source)) or not _shares(changed, path):
                continue
            return replace(changed, more=(*project.more, (path, ())))
    except (Unsure, SyntaxError):
        return None
    return None


def _options(held: Text) -> Iterator[ast.Call]:
    for node in ast.walk(held.tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".add_argument"):
            yield node


def _flags(held: Text) -> list[str]:
    """Return the switches of a command line, where nothing else has to be given."""
    found = []
    for call in _options(held):
        first = call.args[0] if call.args else None
        keywords = {k.arg: ast.unparse(k.value) for k in call.keywords}
        if not isinstance(first, ast.Constant) or not str(first.value).startswith("--"):
            return []
        if keywords.get("required") == "True":
            return []
        if keywords.get("action") == "'store_true'":
            found.append(
                keywords.get("dest", repr(str(first.value)[2:].replace("-", "_"))).strip("'\"")
            )
    return found


def _guards(project: Project, flag: str) -> bool:
    """Tell whether Apex is initialized under this switch alone."""
    for source in project.files.values():
        for node in ast.walk(text(source).tree):
            if isinstance(node, ast.If) and _asks(node.test, flag):
                if any("initialize" in ast.unparse(s) for s in node.body):
                    return True
    return False


def _asks(test: ast.expr, flag: str) -> bool:
    if isinstance(test, ast.Subscript):
        return isinstance(test.slice, ast.Constant) and test.slice.value == flag
    return isinstance(test, ast.Attribute) and test.attr == flag


def _without(held: Text, flag: str) -> str | None:
    """Return a script as it is without a switch, which it no longer has."""
    edits: list[Edit] = []
    for node in ast.walk(held.tree):
        if isinstance(node, ast.If) and _asks(node.test, flag):
            edit = _branch(held, node)
            if edit is None:
                return None
            edits.append(edit)
    spans = [e[:2] for e in edits]
    edits = [
        e for e in edits if not any(a <= e[0] and e[1] <= b and (a, b) != e[:2] for a, b in spans)
    ]
    for call in _options(held):
        name = ast.unparse(call.args[0]).strip("'\"")[2:].replace("-", "_")
        dest = next(
            (ast.unparse(k.value).strip("'\"") for k in call.keywords if k.arg == "dest"), name
        )
        if dest == flag:
            parser = ast.unparse(call.func).removesuffix(".add_argument")
            edits.append((*held.span(call), f"{parser}.set_defaults({flag}=False)"))
    return _unimported(edited(held.text, edits))


def _branch(held: Text, node: ast.If) -> Edit | None:
    """Return the edit that leaves the other branch of a condition in its place."""
    start = held.lines[node.lineno - 1]
    if held.text[start:][: node.col_offset].strip() or not held.text.startswith(
        "if", start + node.col_offset
    ):
        return None
    stop = node.end_lineno or 0
    end = held.lines[stop] if stop < len(held.lines) else len(held.text)
    indent = " " * node.col_offset
    if not node.orelse:
        return start, end, f"{indent}pass\n" if _only(held, node) else ""
    if node.orelse[0].col_offset == node.col_offset:
        return None
    body = held.text[held.lines[node.orelse[0].lineno - 1] : end]
    return (
        start,
        end,
        textwrap.indent(textwrap.dedent(body), indent, lambda line: bool(line.strip())),
    )


def _only(held: Text, node: ast.If) -> bool:
    """Tell whether a statement is the only one of its block."""
    return any(
        body == [node]
        for outer in ast.walk(held.tree)
        for body in (getattr(outer, "body", None), getattr(outer, "orelse", None))
    )


def _unimported(source: str) -> str:
    """Return a script without the imports at its head that nothing uses any more."""
    for _ in range(3):
        held = text(source)
        used = {p.name for p in held.places if p.kind in ("name", "declared")}
        edits: list[Edit] = []
        for node in held.tree.body:
            bound = _bound(node)
            stop = node.end_lineno or 0
            end = held.lines[stop] if stop < len(held.lines) else len(held.text)
            a, b = held.span(node)
            asked = {p.name for p in held.places if p.kind == "name" and not a <= p.start < b}
            if bound and not bound & (asked if isinstance(node, ast.Try) else used):
                edits.append((held.lines[node.lineno - 1], end, ""))
            elif isinstance(node, ast.ImportFrom) and bound - used:
                kept = ", ".join(ast.unparse(x) for x in node.names if (x.asname or x.name) in used)
                edits.append((a, b, f"from {'.' * node.level}{node.module or ''} import {kept}"))
        if not edits:
            break
        source = edited(source, edits)
    return source.lstrip("\n")


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.Try):
        inner = [n for n in ast.walk(node) if isinstance(n, ast.Import | ast.ImportFrom)]
        return set().union(set(), *map(_bound, inner))
    if isinstance(node, ast.Import | ast.ImportFrom) and node.names[0].name != "*":
        return {(a.asname or a.name).partition(".")[0] for a in node.names}
    return set()


def _evaluates(project: Project, rng: Random) -> Project | None:
    """A script makes the model and runs the evaluation, without Apex."""
    try:
        for changed in (project, by_kind(project, rng)):
            found = _evaluation(changed, rng) if changed is not None else None
            if found is not None:
                return found
    except (Unsure, SyntaxError):
        return None
    return None


def _evaluation(project: Project, rng: Random) -> Project | None:
    held = text(project.files[project.entry])
    main = next(
        (s for s in held.tree.body if isinstance(s, ast.FunctionDef) and s.name == "main"), None
    )
    if main is None or "__main__" not in held.text or "import *" in held.text:
        return None
    if any(_needs(call) for call in _options(held)):
        return None
    for path in sorted(project.files):
        if path == project.entry or "/" in project.entry:
            continue
        there = text(project.files[path])
        for function in there.tree.body:
            if not isinstance(function, ast.FunctionDef) or not _evaluating(function):
                continue
            wanted = [a.arg for a in function.args.args][
                : len(function.args.args) - len(function.args.defaults)
            ]
            lines = _slice(held, main, set(wanted))
            if lines is None or (
                function.name in held.scopes[0].bound and not _takes(project, function.name, path)
            ):
                continue
            source = _script(project, held, lines, path, function.name, wanted)
            new = _beside(project, ("evaluate", "predict", "run_eval", "check"), rng)
            if _apex_names(text(source)):
                continue
            return replace(
                project, files={**project.files, new: source}, more=(*project.more, (new, ()))
            )
    return None


def _takes(project: Project, name: str, path: str) -> bool:
    """Tell whether the script that trains imports a function from a file under its own name."""
    tree = text(project.files[project.entry]).tree
    return any(
        i.path == path and i.item == name and not i.alias.asname
        for i in imports(project, project.entry, tree)
    )


def _needs(call: ast.Call) -> bool:
    return any(k.arg == "required" for k in call.keywords) or not ast.unparse(
        call.args[0]
    ).startswith("'-")


def _evaluating(function: ast.FunctionDef) -> bool:
    source = ast.unparse(function)
    plain = not (function.args.vararg or function.args.kwarg or function.args.kwonlyargs)
    return (
        plain
        and ".eval()" in source
        and not re.search(r"backward|\.step\(|\bamp\b|torch\.save", source)
    )


def _slice(held: Text, main: ast.FunctionDef, wanted: set[str]) -> list[str] | None:
    """Return the lines of main that make some variables, with nothing of the training."""
    apex = _apex_names(held)
    needed, kept = set(wanted), list[ast.stmt]()
    for statement in reversed(main.body):
        if isinstance(statement, ast.ImportFrom) and _bound(statement) & needed:
            kept.insert(0, statement)
            needed -= _bound(statement)
            continue
        names = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
        stores = {
            n.id
            for n in ast.walk(statement)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        if names & apex or not isinstance(statement, ast.Assign | ast.Expr):
            continue
        call = statement.value if isinstance(statement, ast.Expr) else None
        about = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
        option = about.endswith(".add_argument") and about.partition(".")[0] in needed
        if stores & needed or option or about == "torch.manual_seed":
            kept.insert(0, statement)
            needed |= names - stores
    made = set().union(set(), *map(_bound, kept))
    made |= {
        n.id
        for s in kept
        for n in ast.walk(s)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    local = next(s for s in held.scopes if s.node is main).bound
    if not wanted <= made or (needed & local) - made:
        return None
    return [held.source(s) for s in kept]


def _script(
    project: Project, held: Text, lines: list[str], path: str, name: str, wanted: list[str]
) -> str:
    """Return a script of these lines that ends with the evaluation."""
    head = "".join(
        held.source(s) + "\n" for s in held.tree.body if isinstance(s, ast.Import | ast.ImportFrom)
    )
    own = [s.name for s in held.tree.body if isinstance(s, ast.FunctionDef | ast.ClassDef)]
    read = {n.id for line in lines for n in ast.walk(ast.parse(line)) if isinstance(n, ast.Name)}
    if read & set(own):
        stem = PurePosixPath(project.entry).stem
        head += f"from {stem} import {', '.join(sorted(read & set(own)))}\n"
    if not _takes(project, name, path):
        head += f"from {dotted(path)} import {name}\n"
    body = "".join(f"    {x}\n" for x in [*lines, f"print({name}({', '.join(wanted)}))"])
    return _unimported(f'{head}\n\ndef main():\n{body}\n\nif __name__ == "__main__":\n    main()\n')


def _stubborn(project: Project, rng: Random) -> Project | None:
    """A script uses Apex in a way that stays, with the helpers of one that can be migrated."""
    try:
        if not _shares(project, project.entry):
            several = by_kind(project, rng)
            if several is None or not _shares(several, several.entry):
                return None
            project = several
        held = text(project.files[project.entry])
        calls = [
            n
            for n in ast.walk(held.tree)
            if isinstance(n, ast.Call)
            and ast.unparse(n.func).endswith(".initialize")
            and _APEX.search(ast.unparse(n.func))
        ]
        if len(calls) != 1 or any(k.arg is None for k in calls[0].keywords):
            return None
        source = _pure(held, calls[0]) if rng.random() < 0.5 else _handed(held, calls[0])
        if source is None:
            return None
        path = _beside(project, ("train_half", "legacy_train", "experiment", "run_other"), rng)
        return replace(
            project, files={**project.files, path: source}, beside=(*project.beside, path)
        )
    except (Unsure, SyntaxError):
        return None


def _pure(held: Text, call: ast.Call) -> str | None:
    """Return a script that trains in pure half precision."""
    level = next((k.value for k in call.keywords if k.arg == "opt_level"), None)
    if level is None:
        return None
    return edited(held.text, [(*held.span(level), '"O3"')])


def _handed(held: Text, call: ast.Call) -> str | None:
    """Return a script that hands Apex to a library."""
    amp = ast.unparse(call.func).removesuffix(".initialize")
    statement = next(
        (
            s
            for s in ast.walk(held.tree)
            if isinstance(s, ast.Assign | ast.Expr) and s.value is call
        ),
        None,
    )
    if statement is None:
        return None
    stop = statement.end_lineno or 0
    end = held.lines[stop] if stop < len(held.lines) else len(held.text)
    at = below_imports(held)
    indent = " " * statement.col_offset
    return edited(
        held.text,
        [(at, at, "import mixed_hooks\n"), (end, end, f"{indent}mixed_hooks.register({amp})\n")],
    )


REFACTORINGS = (
    Refactoring("a script beside trains without Apex", "files", _plain),
    Refactoring("a script beside evaluates", "files", _evaluates),
    Refactoring("a script beside cannot be migrated", "files", _stubborn),
)
