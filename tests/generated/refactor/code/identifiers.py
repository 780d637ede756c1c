"""Where the identifiers of a file stand, and which scope each belongs to; a file is changed there in its text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

Edit = tuple[int, int, str]  # start, stop, and what stands there afterwards


@dataclass(eq=False)
class Scope:
    """A module, function, class or comprehension, and the names that it binds."""

    node: ast.AST
    parent: Scope | None
    bound: set[str] = field(default_factory=set)
    parameters: set[str] = field(default_factory=set)
    imported: set[str] = field(default_factory=set)
    elsewhere: dict[str, str] = field(default_factory=dict)  # declared "global" or "nonlocal"

    @property
    def is_class(self) -> bool:
        """Whether this is the body of a class."""
        return isinstance(self.node, ast.ClassDef)

    def home(self, name: str) -> Scope | None:
        """Return the scope that a name belongs to which is used in this one; None for a builtin."""
        scope: Scope | None = self
        if self.elsewhere.get(name) == "global":
            while scope and scope.parent:
                scope = scope.parent
            return scope
        if name in self.bound:
            return self
        scope = self.parent
        while scope and (scope.is_class or name not in scope.bound):
            scope = scope.parent
        return scope


@dataclass(frozen=True)
class Place:
    """An identifier: "name", "parameter", "definition", "import", "item", "attribute", "keyword" or "declared".

    `node` is the syntax node that it is part of; an "item" is what an import binds under another name.
    """

    name: str
    kind: str
    start: int
    scope: Scope
    node: ast.AST


@dataclass
class Text:
    """A file: its tree, its scopes, and its identifiers in the order of the tree."""

    text: str
    tree: ast.Module
    scopes: list[Scope]
    places: list[Place]
    lines: list[int]

    def offset(self, line: int, column: int) -> int:
        """Return where a place of the tree is in the text."""
        start = self.lines[line - 1]
        stop = self.lines[line] if line < len(self.lines) else len(self.text)
        shown = self.text[start:stop]
        return start + (
            column if shown.isascii() else len(shown.encode()[:column].decode(errors="replace"))
        )

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return start and stop of a node in the text."""
        return (
            self.offset(node.lineno, node.col_offset),  # type: ignore[attr-defined]
            self.offset(node.end_lineno, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def source(self, node: ast.AST) -> str:
        """Return the text of a node."""
        return self.text[slice(*self.span(node))]


class Unsure(Exception):
    """An identifier whose place in the text is not known, as in a nested format string."""


@lru_cache(maxsize=64)
def text(source: str) -> Text:
    """Read a file. Raises `Unsure` where the place of an identifier is not known."""
    tree = ast.parse(source)
    lines = [0, *(m.end() for m in re.finditer(r"\n", source))]
    found = Text(source, tree, [], [], lines)
    _Reader(found).module(tree)
    return found


def edited(source: str, edits: Iterable[Edit]) -> str:
    """Return a text with parts of it replaced."""
    for start, stop, new in sorted(edits, reverse=True):
        source = source[:start] + new + source[stop:]
    return source


def renamed(held: Text, places: Iterable[Place], names: Mapping[str, str]) -> str:
    """Return the text of a file with other identifiers at places."""
    return edited(held.text, {(p.start, p.start + len(p.name), names[p.name]) for p in places})


class _Reader:
    def __init__(self, found: Text) -> None:
        self.found = found
        self.string: ast.JoinedStr | None = None
        self.inside: list[tuple[str, str, Scope, ast.AST]] = []

    def module(self, tree: ast.Module) -> None:
        scope = self.scope(tree, None)
        self.bindings(scope, tree.body)
        self.all(tree.body, scope)

    def scope(self, node: ast.AST, parent: Scope | None) -> Scope:
        scope = Scope(node, parent)
        self.found.scopes.append(scope)
        return scope

    def bindings(self, scope: Scope, body: Iterable[ast.AST]) -> None:
        for node in _own(body):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                scope.bound.add(node.id)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                scope.bound.add(node.name)
            elif isinstance(node, ast.alias):
                name = (node.asname or node.name).partition(".")[0]
                scope.bound.add(name)
                scope.imported.add(name)
            elif isinstance(node, ast.ExceptHandler) and node.name:
                scope.bound.add(node.name)
            elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
                scope.bound.add(node.name)
                scope.imported.add(node.name)  # as good as one: it keeps its name
            elif isinstance(node, ast.Global | ast.Nonlocal):
                kind = "global" if isinstance(node, ast.Global) else "nonlocal"
                scope.elsewhere.update(dict.fromkeys(node.names, kind))
                if kind == "global":
                    self.found.scopes[0].bound |= set(node.names)
        if scope.parent is not None:
            scope.bound -= set(scope.elsewhere)

    def all(self, nodes: Iterable[ast.AST], scope: Scope) -> None:
        for node in nodes:
            self.visit(node, scope)

    def visit(self, node: ast.AST, scope: Scope) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            self.function(node, scope)
        elif isinstance(node, ast.ClassDef):
            self.all([*node.decorator_list, *node.bases, *node.keywords], scope)
            self.put(node.name, "definition", scope, node, r"class\s+")
            inner = self.scope(node, scope)
            self.bindings(inner, node.body)
            self.all(node.body, inner)
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            self.visit(node.generators[0].iter, scope)
            inner = self.scope(node, scope)
            for generator in node.generators:
                self.bindings(inner, [generator.target])
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.comprehension):
                    first = child is node.generators[0]
                    rest = [child.target, *([] if first else [child.iter]), *child.ifs]
                    self.all(rest, inner)
                else:
                    self.visit(child, inner)
        elif isinstance(node, ast.JoinedStr) and self.string is None:
            self.string, self.inside = node, []
            self.all(ast.iter_child_nodes(node), scope)
            self.string = None
            self.format_string(node)
        else:
            self.simple(node, scope)
            self.all(ast.iter_child_nodes(node), scope)

    def simple(self, node: ast.AST, scope: Scope) -> None:
        if isinstance(node, ast.Name):
            self.put(node.id, "name", scope, node)
        elif isinstance(node, ast.Attribute):
            self.put(node.attr, "attribute", scope, node)
        elif isinstance(node, ast.keyword) and node.arg:
            self.put(node.arg, "keyword", scope, node)
        elif isinstance(node, ast.alias):
            name = node.asname or node.name
            self.put(name, "import", scope, node, r"[\w.]+\s+as\s+" if node.asname else "")
            if node.asname:
                self.put(node.name, "item", scope, node)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            self.put(node.name, "name", scope, node, r"except.*?\bas\s+")
        elif isinstance(node, ast.Global | ast.Nonlocal):
            for name in node.names:
                self.put(name, "declared", scope, node, r"[^#\n]*?\b(?=" + name + r"\b)")

    def function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: Scope
    ) -> None:
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += filter(None, (arguments.vararg, arguments.kwarg))
        if not isinstance(node, ast.Lambda):
            self.all(node.decorator_list, scope)
            self.put(node.name, "definition", scope, node, r"(async\s+)?def\s+")
            self.all(filter(None, [*(a.annotation for a in every), node.returns]), scope)
        self.all([*arguments.defaults, *filter(None, arguments.kw_defaults)], scope)
        inner = self.scope(node, scope)
        body: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else [*node.body]
        self.bindings(inner, body)
        inner.parameters = {a.arg for a in every}
        inner.bound |= inner.parameters
        for argument in every:
            self.put(argument.arg, "parameter", inner, argument)
        self.all(body, inner)

    def put(self, name: str, kind: str, scope: Scope, node: ast.AST, before: str = "") -> None:
        if self.string is not None:
            self.inside.append((name, kind, scope, node))
            return
        if kind == "attribute":
            start = self.found.span(node)[1] - len(name)
        else:
            start = self.found.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]
            head = re.compile(before, re.DOTALL).match(self.found.text, start) if before else None
            start = head.end() if head else start
        self.add(name, kind, start, scope, node)

    def add(self, name: str, kind: str, start: int, scope: Scope, node: ast.AST) -> None:
        if self.found.text[start : start + len(name)] != name:
            raise Unsure(f"{name} is not at {start}")
        self.found.places.append(Place(name, kind, start, scope, node))

    def format_string(self, node: ast.JoinedStr) -> None:
        """Place what stands in a format string: the trees of older Pythons do not say where that is."""
        start, stop = self.found.span(node)
        parts = list(
            re.finditer(
                r"(?<!\{)\{(?!\{)[^{}]*(?:\{[^{}]*\}[^{}]*)*\}", self.found.text[start:stop]
            )
        )
        counts: dict[tuple[str, str], int] = {}
        for name, kind, scope, inner in self.inside:
            pattern = {
                "attribute": rf"(?<=\.){name}\b",
                "keyword": rf"(?<![\w.]){name}(?=\s*=[^=])",
            }.get(kind, rf"(?<![\w.\"']){name}\b(?![\"']|\s*=[^=])")
            spots = [
                start + part.start() + m.start()
                for part in parts
                for m in re.finditer(pattern, part.group())
            ]
            group = kind if kind in ("attribute", "keyword") else "name"
            number = counts.get((group, name), 0)
            counts[group, name] = number + 1
            wanted = sum(
                n == name and (k if k in ("attribute", "keyword") else "name") == group
                for n, k, _, _ in self.inside
            )
            if len(spots) != wanted:
                raise Unsure(f"{name} in a format string")
            self.add(name, kind, spots[number], scope, inner)


def _own(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of a scope, the heads of inner ones, and what walruses in comprehensions bind."""
    for node in body:
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _own(node.decorator_list)
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            yield from (n.target for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
        elif not isinstance(node, ast.Lambda):
            yield from _own(ast.iter_child_nodes(node))
