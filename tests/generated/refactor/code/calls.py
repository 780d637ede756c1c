"""Functions of a project, what names them, and what may run inside itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from generated.refactor.code.source import Function, Source, source, sources
from generated.refactor.project import Project


def definitions(project: Project) -> Iterator[tuple[str, Source, Function, ast.ClassDef | None]]:
    """Yield the functions and methods of a project, with their file and class."""
    for path, src in sources(project).items():
        for node in functions(src):
            around = src.parents[node]
            yield path, src, node, around if isinstance(around, ast.ClassDef) else None


@lru_cache(maxsize=256)
def functions(src: Source) -> tuple[Function, ...]:
    """Return the functions of a file, nested ones too."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return tuple(node for node in ast.walk(src.tree) if isinstance(node, kinds))


@lru_cache(maxsize=256)
def classes(src: Source) -> tuple[ast.ClassDef, ...]:
    """Return the classes at the level of the module."""
    return tuple(node for node in src.tree.body if isinstance(node, ast.ClassDef))


@lru_cache(maxsize=1024)
def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))


def words(project: Project) -> frozenset[str]:
    """Return every word in the files of a project."""
    return frozenset().union(*map(_words, project.files.values()))


def reentrant(project: Project, name: str) -> bool:
    """Tell whether a function may run while it runs, by the names that functions mention."""
    mentioned: dict[str, set[str]] = {}
    for _, src, node, _ in definitions(project):
        mentioned.setdefault(node.name, set()).update(_words(src.code(node)) - {node.name})
        if len(re.findall(rf"\b{node.name}\b", src.code(node))) > 1:
            mentioned[node.name].add(node.name)
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        for word in mentioned.get(waiting.pop(), ()):
            if word == name:
                return True
            if word in mentioned and word not in seen:
                seen.add(word)
                waiting.append(word)
    return False


def generator(node: Function) -> bool:
    """Tell whether a function is a generator or a coroutine."""
    kinds = ast.Yield | ast.YieldFrom | ast.Await
    return isinstance(node, ast.AsyncFunctionDef) or any(
        isinstance(n, kinds) for n in ast.walk(node)
    )


def dynamic(project: Project) -> bool:
    """Tell whether code looks at names or attributes as strings."""
    words = r"(?<![.\w])(locals|vars|globals|eval|exec|setattr|delattr|__import__)\(|__dict__"
    return re.search(words, project.text) is not None


def body(node: Function) -> list[ast.stmt]:
    """Return the statements of a function without its docstring."""
    return node.body[1:] if ast.get_docstring(node) is not None else node.body


def imports_of(project: Project, path: str) -> bool:
    """Tell whether another file of the project may import this one."""
    stem = path.removesuffix("/__init__.py").removesuffix(".py").rpartition("/")[2]
    others = (text for other, text in project.files.items() if other != path)
    return any(re.search(rf"\b(import|from)\b.*\b{re.escape(stem)}\b", text) for text in others)


def attributes(project: Project, name: str) -> list[tuple[str, Source, ast.Attribute]]:
    """Return every attribute of this name in a project."""
    return [
        (path, src, node)
        for path, text in project.files.items()
        if name in _words(text)
        for src in [source(text)]
        for node in all_attributes(src)
        if node.attr == name
    ]


@lru_cache(maxsize=256)
def all_attributes(src: Source) -> tuple[ast.Attribute, ...]:
    """Return every attribute in a file."""
    return tuple(node for node in ast.walk(src.tree) if isinstance(node, ast.Attribute))
