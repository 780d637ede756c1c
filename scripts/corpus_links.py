"""Compare how the files of a checkout fit together before and after a migration."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from corpus_scan import code_files, parsed

_Table = dict[str, list[tuple[str, ...]]]
_MODE_SWITCHES = ("train", "eval")
"""Without arguments these are the methods of every network."""


@dataclass(frozen=True, slots=True)
class _Call:
    positional: int
    keywords: tuple[str, ...]
    spreads: bool


def broken_links(before: Path, after: Path, changed: list[str]) -> list[str]:
    """Return what the change of some files broke in others.

    Two things that no look at a single file shows: a name that is imported from a file which no
    longer defines it, and a call without a parameter which its function (matched by name) now needs.
    """
    old = {name: _tree(before / name) for name in changed}
    new = {name: _tree(after / name) for name in changed}
    return [*_lost_names(old, new, after), *_short_calls(old, new, after)]


def _tree(path: Path) -> ast.Module:
    tree = parsed(path, path.read_bytes()) if path.exists() else None
    return tree or ast.Module(body=[], type_ignores=[])


def _trees(folder: Path, words: Iterable[str]) -> Iterator[tuple[str, ast.Module]]:
    """Yield the files of a checkout that hold one of the words."""
    sought = [word.encode() for word in words]
    for path in code_files(folder):
        data = path.read_bytes()
        tree = parsed(path, data) if any(word in data for word in sought) else None
        if tree is not None:
            yield path.relative_to(folder).as_posix(), tree


def _lost_names(
    old: dict[str, ast.Module], new: dict[str, ast.Module], after: Path
) -> Iterator[str]:
    lost: dict[str, set[str]] = {}
    for name in old:
        gone = _defined(old[name]) - _defined(new[name]) - set(dir(builtins))
        if gone:
            lost.setdefault(_stem(name), set()).update(gone)
    for name, tree in _trees(after, set().union(*lost.values())):
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom):
                continue
            origin = (node.module or "").split(".")[-1] or Path(name).parent.name
            for alias in node.names:
                if alias.name in lost.get(origin, ()):
                    yield f"{name}: imports {alias.name} from {origin}, which no longer has it"


def _stem(name: str) -> str:
    path = Path(name)
    return path.parent.name if path.stem == "__init__" else path.stem


def _defined(tree: ast.Module) -> set[str]:
    """Return the names a module binds at its top level, in guards too."""
    names: set[str] = set()
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        pending += ast.iter_child_nodes(node)
    return names


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.arguments]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.args
        elif isinstance(node, ast.ClassDef):
            for item in node.body:
                if isinstance(item, ast.FunctionDef) and item.name == "__init__":
                    yield node.name, item.args


def _required(arguments: ast.arguments) -> tuple[str, ...]:
    names = [item.arg for item in (*arguments.posonlyargs, *arguments.args)]
    names = names[: len(names) - len(arguments.defaults)]
    keyword_only = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    names += [item.arg for item, default in keyword_only if default is None]
    return tuple(name for name in names if name not in ("self", "cls"))


def _table(tree: ast.Module) -> _Table:
    """Return the required parameters of the functions of a file, by name."""
    table: _Table = {}
    for name, arguments in _functions(tree):
        table.setdefault(name, []).append(_required(arguments))
    return table


def _short_calls(
    old: dict[str, ast.Module], new: dict[str, ast.Module], after: Path
) -> Iterator[str]:
    before = {name: _table(tree) for name, tree in old.items()}
    now = {name: _table(tree) for name, tree in new.items()}
    changed = {
        function
        for name, table in now.items()
        for function, needs in table.items()
        if needs != before[name].get(function)
    }
    for name, tree in _trees(after, changed):
        own = {function for function, _ in _functions(tree)}
        origins = _origins(tree)
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            function = ast.unparse(node.func).split(".")[-1]
            if function not in changed or (function in _MODE_SWITCHES and not node.args):
                continue
            files = [name] if function in own and isinstance(node.func, ast.Name) else [*now]
            if function in origins and isinstance(node.func, ast.Name):
                files = [file for file in now if _stem(file) == origins[function]]
            call = _call(node)
            if _fits(call, function, files, before) and not _fits(call, function, files, now):
                yield f"{name}: {node.lineno}: the call of {function} lacks an argument"


def _origins(tree: ast.Module) -> dict[str, str]:
    """Return the stems of the modules that names are imported from."""
    return {
        alias.asname or alias.name: (node.module or "").split(".")[-1]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def _fits(call: _Call, function: str, files: list[str], tables: dict[str, _Table]) -> bool:
    known = [tables.get(file, {}).get(function, []) for file in files]
    return any(_binds(call, needs) for signatures in known for needs in signatures)


def _call(node: ast.Call) -> _Call:
    spreads = any(isinstance(arg, ast.Starred) for arg in node.args)
    spreads = spreads or any(keyword.arg is None for keyword in node.keywords)
    return _Call(len(node.args), tuple(k.arg for k in node.keywords if k.arg), spreads)


def _binds(call: _Call, needs: tuple[str, ...]) -> bool:
    missing = needs[call.positional :]
    return call.spreads or all(name in call.keywords for name in missing)
