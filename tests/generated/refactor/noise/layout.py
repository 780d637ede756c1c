"""The same statements on other lines: semicolons, bodies beside their heads, split and joined calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from random import Random

from generated.refactor.noise.spots import Spot, drawn, with_lines
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_SIMPLE = (
    ast.Expr,
    ast.Assign,
    ast.AugAssign,
    ast.Return,
    ast.Pass,
    ast.Continue,
    ast.Break,
    ast.Raise,
)


def _simple(spot: Spot, statement: ast.stmt) -> bool:
    """Tell whether a statement is one line without a comment."""
    start, stop = spot.held.span(statement)
    end = spot.held.text.find("\n", stop)
    rest = spot.held.text[stop : end if end >= 0 else None]
    return (
        isinstance(statement, _SIMPLE)
        and "\n" not in spot.held.text[start:stop]
        and not rest.strip()
    )


def _semicolons(project: Project, rng: Random) -> Project | None:
    """Two or three short statements share a line."""
    for spot in drawn(project, rng):
        run = spot.body[spot.index : spot.index + rng.randint(2, 3)]
        if len(run) < 2 or not all(_simple(spot, s) for s in run):
            continue
        texts = [spot.held.source(s) for s in run]
        start, stop = spot.held.span(run[0])[0], spot.held.span(run[-1])[1]
        if "#" in spot.held.text[start:stop] or sum(map(len, texts)) > 150:
            continue
        if any(b.lineno != a.lineno + 1 for a, b in pairwise(run)):
            continue
        return with_lines(project, spot, [(start, stop, "; ".join(texts))])
    return None


def _one_liner(project: Project, rng: Random) -> Project | None:
    """The body of an `if`, `with` or `for` of one statement stands beside its head."""
    for spot in drawn(project, rng):
        statement = spot.statement
        if not isinstance(statement, ast.If | ast.With | ast.For | ast.While):
            continue
        body = statement.body
        if len(body) != 1 or not _simple(spot, body[0]) or getattr(statement, "orelse", []):
            continue
        start = spot.held.span(body[0])[0]
        head = spot.held.text[: spot.held.lines[body[0].lineno - 1]].rstrip()
        if (
            not head.endswith(":")
            or body[0].lineno == statement.lineno
            or "#" in head.rpartition("\n")[2]
        ):
            continue
        return with_lines(project, spot, [(len(head), start, " ")])
    return None


def _split(project: Project, rng: Random) -> Project | None:
    """A call has one argument on each line, or breaks its statement with a backslash."""
    for spot in drawn(project, rng):
        if not _simple(spot, spot.statement) and not isinstance(spot.statement, ast.With | ast.If):
            continue
        calls = [c for c in _head_calls(spot) if c.args or c.keywords]
        if not calls:
            continue
        call = rng.choice(calls)
        start, stop = spot.held.span(call)
        function = spot.held.source(call.func)
        if "\n" in spot.held.text[start:stop] or "#" in spot.held.text[start:stop]:
            continue
        if isinstance(call.args[0] if call.args else None, ast.GeneratorExp):
            continue
        arguments = sorted([*call.args, *call.keywords], key=lambda a: spot.held.span(a)[0])
        texts = [spot.held.source(a) for a in arguments]
        if not spot.held.text[start:].startswith(f"{function}("):
            continue
        inner = f"{spot.indent}    "
        if rng.random() < 0.6:
            new = f"{function}(\n" + "".join(f"{inner}{t},\n" for t in texts) + f"{spot.indent})"
        else:
            new = f"{function}({texts[0]}" + "".join(f",\n{inner}    {t}" for t in texts[1:]) + ")"
        if new == spot.held.text[start:stop]:
            continue
        return with_lines(project, spot, [(start, stop, new)])
    return None


def _head_calls(spot: Spot) -> Iterator[ast.Call]:
    statement = spot.statement
    heads: list[ast.AST] = [statement]
    if isinstance(statement, ast.With):
        heads = [item.context_expr for item in statement.items]
    elif isinstance(statement, ast.If):
        heads = [statement.test]
    for head in heads:
        inside = [n for n in ast.walk(head) if isinstance(n, ast.JoinedStr)]
        hidden = {id(n) for string in inside for n in ast.walk(string)}
        yield from (n for n in ast.walk(head) if isinstance(n, ast.Call) and id(n) not in hidden)


def _joined(project: Project, rng: Random) -> Project | None:
    """A statement of several lines becomes one."""
    for spot in drawn(project, rng):
        start, stop = spot.held.span(spot.statement)
        source = spot.held.text[start:stop]
        if not isinstance(spot.statement, _SIMPLE) or "\n" not in source:
            continue
        if any(mark in source for mark in ('"""', "'''", "#", "\\\n")):
            continue
        new = " ".join(line.strip() for line in source.splitlines())
        for old, better in (
            ("( ", "("),
            (", )", ")"),
            (" )", ")"),
            ("[ ", "["),
            (", ]", "]"),
            ("{ ", "{"),
            (", }", "}"),
        ):
            new = new.replace(old, better)
        if ast.dump(ast.parse(new)) != ast.dump(ast.parse(source)):
            continue
        return with_lines(project, spot, [(start, stop, new)])
    return None


def _wrapped(project: Project, rng: Random) -> Project | None:
    """A value goes into parentheses, or to the next line."""
    for spot in drawn(project, rng):
        statement = spot.statement
        if (
            not isinstance(statement, ast.Assign | ast.AugAssign | ast.Expr | ast.Return)
            or not statement.value
        ):
            continue
        if isinstance(statement.value, ast.Yield | ast.YieldFrom | ast.NamedExpr) or not _simple(
            spot, statement
        ):
            continue
        start, stop = spot.held.span(statement.value)
        source = spot.held.text[start:stop]
        if spot.held.span(statement)[1] != stop:
            continue
        forms = [f"({source})", f"(\n{spot.indent}    {source}\n{spot.indent})"]
        if not isinstance(statement, ast.Expr):
            forms.append(f"\\\n{spot.indent}    {source}")
        return with_lines(project, spot, [(start, stop, rng.choice(forms))])
    return None


REFACTORINGS = (
    Refactoring("statements share a line", "noise", _semicolons),
    Refactoring("a body stands beside its head", "noise", _one_liner),
    Refactoring("a call is split over lines", "noise", _split),
    Refactoring("a statement is joined to one line", "noise", _joined),
    Refactoring("a value is wrapped", "noise", _wrapped),
)
