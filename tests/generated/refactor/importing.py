"""The modules of a project by their dotted names, and what a file imports from them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from generated.refactor.project import Project


def dotted(path: str) -> str:
    """Return the dotted name of a file, as seen from the root of the project."""
    parts = PurePosixPath(path).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package(path: str) -> str:
    """Return the dotted name of the package that a file stands in, empty at the root."""
    return ".".join(PurePosixPath(path).parts[:-1])


def own_modules(project: Project) -> dict[str, str]:
    """Return the files of a project by dotted name; scripts also see those beside the entry."""
    beside = package(project.entry)
    found: dict[str, str] = {}
    for path in project.files:
        name = dotted(path)
        found[name] = path
        if beside and name.startswith(f"{beside}."):
            found.setdefault(name.removeprefix(f"{beside}."), path)
    return found


@dataclass(frozen=True)
class Import:
    """One name of an import statement: `path` is the file of the project it reads, if it is one.

    `item` is what is taken out of that file: a name, "*", or empty for the module itself.
    """

    node: ast.Import | ast.ImportFrom
    alias: ast.alias
    path: str | None
    item: str

    @property
    def bound(self) -> str:
        """The name it binds."""
        return self.alias.asname or self.alias.name.partition(".")[0]


def imports(project: Project, path: str, tree: ast.AST) -> Iterator[Import]:
    """Yield every name that a file imports."""
    known = own_modules(project)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(node, alias, known.get(alias.name), "")
        elif isinstance(node, ast.ImportFrom):
            source = absolute(node, path)
            for alias in node.names:
                inner = known.get(f"{source}.{alias.name}".strip("."))
                if inner and inner != path:
                    yield Import(node, alias, inner, "")
                else:
                    yield Import(node, alias, known.get(source) if source else None, alias.name)


def absolute(node: ast.ImportFrom, path: str) -> str:
    """Return the dotted name of the module that a statement imports from."""
    module = node.module or ""
    if not node.level:
        return module
    parts = PurePosixPath(path).parts[: -node.level]
    return ".".join([*parts, *([module] if module else [])])
