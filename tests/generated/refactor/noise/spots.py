"""Places between the statements of functions, where something harmless may be put in."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random

from generated.refactor.code.identifiers import Edit, Text, Unsure, edited, text
from generated.refactor.project import Project

MATTERS = re.compile(
    r"backward|scale_loss|\.step\(|zero_grad|clip_grad|initialize|loss|model\(|state_dict|\bnext\(|no_grad"
)


@dataclass(frozen=True)
class Spot:
    """A statement on lines of its own: statement `index` of `body`, which may be that of a function or deeper."""

    path: str
    held: Text
    function: ast.FunctionDef | None
    outer: ast.stmt | ast.Module
    body: tuple[ast.stmt, ...]
    index: int

    @property
    def statement(self) -> ast.stmt:
        """The statement."""
        return self.body[self.index]

    @property
    def indent(self) -> str:
        """What stands before it on its line."""
        line = self.held.lines[self.statement.lineno - 1]
        return self.held.text[line:][: self.statement.col_offset]

    @property
    def start(self) -> int:
        """Where the line of the statement begins, or that of the comments and decorators above it."""
        return _start(self.held, self.statement)

    @property
    def end(self) -> int:
        """Where the line after the statement begins."""
        line = self.statement.end_lineno or 0
        return self.held.lines[line] if line < len(self.held.lines) else len(self.held.text)


def _start(held: Text, statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", [])
    line = min([statement.lineno, *(d.lineno for d in decorators)]) - 1
    while line and re.match(rf" {{{statement.col_offset}}}#", held.text[held.lines[line - 1] :]):
        line -= 1
    return held.lines[line]


def spots(project: Project, path: str) -> list[Spot]:
    """Return every statement of a file before which a line may be put."""
    held = text(project.files[path])
    return [spot for spot in _spots(path, held, held.tree, None) if _alone(spot)]


def _spots(
    path: str, held: Text, outer: ast.stmt | ast.Module, function: ast.FunctionDef | None
) -> Iterator[Spot]:
    inside = outer if isinstance(outer, ast.FunctionDef) else function
    for body in bodies(outer):
        if not isinstance(outer, ast.ClassDef):
            for index, statement in enumerate(body):
                if index or not _is_string(statement):
                    yield Spot(path, held, inside, outer, tuple(body), index)
        for statement in body:
            yield from _spots(path, held, statement, inside)


def bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the blocks of a compound statement."""
    for name in ("body", "orelse", "finalbody"):
        body = getattr(node, name, None)
        if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
            if not (name == "orelse" and isinstance(node, ast.If) and _is_elif(node)):
                yield body
            else:
                yield from bodies(body[0])
    for handler in getattr(node, "handlers", ()):
        yield handler.body


def _is_elif(node: ast.If) -> bool:
    first = node.orelse[0]
    return (
        len(node.orelse) == 1 and isinstance(first, ast.If) and first.col_offset == node.col_offset
    )


def _is_string(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _alone(spot: Spot) -> bool:
    held, statement = spot.held, spot.statement
    before = held.text[held.lines[statement.lineno - 1] :][: statement.col_offset]
    stop = held.span(statement)[1]
    after = held.text[stop : held.text.find("\n", stop)].strip()
    if isinstance(statement, ast.Import | ast.ImportFrom) and spot.function is None:
        return False
    return not before.strip() and (not after or after.startswith("#"))


def drawn(project: Project, rng: Random, functions: bool = True) -> Iterator[Spot]:
    """Yield statements in random order; two of three touch the training, as long as there are any."""
    found: list[Spot] = []
    for path in project.files:
        try:
            found += spots(project, path)
        except (Unsure, SyntaxError):
            continue
    if functions and any(s.function for s in found):
        found = [s for s in found if s.function]
    rng.shuffle(found)
    lead = [s for s in found if matters(s)]
    rest = [s for s in found if not matters(s)]
    while lead or rest:
        pick = lead if lead and (not rest or rng.random() < 2 / 3) else rest
        yield pick.pop()


def matters(spot: Spot) -> bool:
    """Tell whether a statement, or the first line of a compound one, has to do with the training."""
    if isinstance(spot.statement, ast.FunctionDef | ast.ClassDef):
        return False
    body = getattr(spot.statement, "body", None)
    start, stop = spot.held.span(spot.statement)
    if isinstance(body, list) and body:
        stop = max(start, spot.held.span(body[0])[0])
    return bool(MATTERS.search(spot.held.text, start, stop))


def with_lines(project: Project, spot: Spot, edits: Iterable[Edit]) -> Project:
    """Return the project with edits in the file of a spot."""
    return project.changed(spot.path, edited(spot.held.text, edits))


def block(indent: str, *lines: str) -> str:
    """Return lines under an indentation, blank ones without it."""
    return "".join(f"{indent}{line}\n" if line else "\n" for line in lines)


def needing(held: Text, *statements: str) -> list[Edit]:
    """Return the edit that puts imports, and definitions under them, below the imports of a file; not those it has."""
    there = held.text.splitlines()
    missing = [s for s in statements if s.splitlines()[0] not in there]
    if not missing:
        return []
    imports = [s for s in missing if s.startswith(("import ", "from "))]
    rest = [s for s in missing if s not in imports]
    text = "".join(f"{s}\n" for s in imports) + "".join(f"\n{s}\n" for s in rest)
    at = below_imports(held)
    return [(at, at, text)]


def below_imports(held: Text) -> int:
    """Return where the line below the first imports of a file begins."""
    last: ast.stmt | None = None
    for statement in held.tree.body:
        if _brings(statement) or (last is None and _is_string(statement)):
            last = statement
        else:
            break
    if last is not None:
        line = last.end_lineno or 0
        return held.lines[line] if line < len(held.lines) else len(held.text)
    rows = held.text.split("\n")
    return held.lines[next((k for k, row in enumerate(rows) if row[:1] != "#"), 0)]


def _brings(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Try | ast.If):
        return any(isinstance(n, ast.Import | ast.ImportFrom) for n in statement.body)
    return isinstance(statement, ast.Import | ast.ImportFrom)


def values(spot: Spot) -> list[str]:
    """Return names that a statement surely uses as objects: what it calls, or takes attributes of."""
    statement = spot.statement
    if not isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign | ast.Return):
        return []
    function = next((s for s in spot.held.scopes if s.node is spot.function), None)
    own = function.bound - function.imported - {"self"} if function else set()
    return sorted({n.value.id for n in _sure(statement) if _object(n) and n.value.id in own})


def _object(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)


def _sure(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    inner = ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
    if not isinstance(node, inner | ast.IfExp | ast.BoolOp | ast.Compare):
        for child in ast.iter_child_nodes(node):
            yield from _sure(child)
