"""Statements that change nothing: logging, timers, assertions, branches that are never taken, `del`."""

from __future__ import annotations

import ast
import re
from random import Random

from generated.refactor.code.names import fresh
from generated.refactor.noise.spots import (
    Spot,
    block,
    drawn,
    needing,
    values,
    with_lines,
)
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_LOGGERS = ("logger", "log", "LOG", "_logger")
_ENDS = (ast.Return, ast.Continue, ast.Break, ast.Raise)


def _logged(project: Project, rng: Random) -> Project | None:
    """A logger hears of a statement, with the objects that it works on."""
    for spot in drawn(project, rng):
        held = values(spot)
        name, known = _logger(project, spot, rng)
        about = rng.sample(held, min(len(held), rng.randint(0, 2)))
        message = (
            f'"{rng.choice(("at", "now", "values:", "trace"))} {spot.statement.lineno}'
            + " %s" * len(about)
        )
        call = f"{name}.{rng.choice(('debug', 'info'))}({', '.join([message + chr(34), *about])})"
        if rng.random() < 0.2:
            call = f"print({', '.join([message.replace(' %s', '') + chr(34), *about])}, file=sys.stderr)"
            edits = needing(spot.held, "import sys")
        else:
            edits = needing(spot.held, "import logging", *known)
        if edits and any(word in spot.held.scopes[0].bound for word in ("logging", "sys")):
            continue
        return with_lines(project, spot, [*edits, _put(spot, rng, call)])
    return None


def _logger(project: Project, spot: Spot, rng: Random) -> tuple[str, tuple[str, ...]]:
    there = re.search(r"^(\w+) = logging\.getLogger\(.*\)$", spot.held.text, re.MULTILINE)
    if there:
        return there[1], ()
    name = fresh(project, rng, _LOGGERS)
    return name, (f"{name} = logging.getLogger(__name__)",)


def _put(spot: Spot, rng: Random, *lines: str) -> tuple[int, int, str]:
    """Put lines before a statement, or after it where it may be left by its end."""
    ended = isinstance(spot.statement, _ENDS) or spot.index + 1 < len(spot.body)
    at = spot.start if ended or rng.random() < 0.5 else spot.end
    return at, at, block(spot.indent, *lines)


def _timed(project: Project, rng: Random) -> Project | None:
    """The time that some statements take goes to a logger."""
    for spot in drawn(project, rng):
        last = spot.index + rng.randint(0, 2)
        run = spot.body[spot.index : last + 1]
        if (
            len(run) <= last - spot.index
            or any(_leaves(s) for s in run)
            or "time" in _all_bound(spot)
        ):
            continue
        start = fresh(project, rng, ("start", "tic", "began", "t0"))
        name, known = _logger(project, spot, rng)
        end = Spot(spot.path, spot.held, spot.function, spot.outer, spot.body, last).end
        if not spot.held.text[:end].endswith("\n"):
            continue
        clock = rng.choice(("time.time()", "time.perf_counter()"))
        edits = [
            *needing(spot.held, "import logging", "import time", *known),
            (spot.start, spot.start, block(spot.indent, f"{start} = {clock}")),
            (end, end, block(spot.indent, f'{name}.debug("%.3f s", {clock} - {start})')),
        ]
        return with_lines(project, spot, edits)
    return None


def _leaves(statement: ast.stmt) -> bool:
    return any(isinstance(n, (*_ENDS, ast.Yield)) for n in ast.walk(statement))


def _all_bound(spot: Spot) -> set[str]:
    held = spot.held.scopes
    imported = "import time" in spot.held.text.splitlines()
    found = {name for scope in held for name in scope.bound}
    return found - ({"time"} if imported else set())


def _asserted(project: Project, rng: Random) -> Project | None:
    """An object is asserted to be there just before it is used."""
    for spot in drawn(project, rng):
        held = values(spot)
        if not held:
            continue
        name = rng.choice(held)
        test = rng.choice((f"{name} is not None", f'{name} is not None, "no {name}"'))
        return with_lines(
            project, spot, [(spot.start, spot.start, block(spot.indent, f"assert {test}"))]
        )
    return None


def _dead(project: Project, rng: Random) -> Project | None:
    """A branch that is never taken holds a copy of the statement above, or tells something."""
    for spot in drawn(project, rng):
        statement = spot.statement
        copy = spot.held.source(statement)
        edits = []
        if (
            isinstance(statement, ast.Expr)
            and "\n" not in copy
            and rng.random() < 0.6
            and not _waits(statement)
        ):
            lines = [f"    {copy}"]
        else:
            lines = ['    print("not reached")']
        test = rng.choice(("False", "False", "0", "not True", "DEBUG"))
        if test == "DEBUG":
            test = fresh(project, rng, ("DEBUG", "VERBOSE", "PROFILE"))
            edits = needing(spot.held, f"{test} = False")
        edits.append(_put(spot, rng, f"if {test}:", *lines))
        return with_lines(project, spot, edits)
    return None


def _waits(statement: ast.stmt) -> bool:
    return any(
        isinstance(n, ast.Yield | ast.YieldFrom | ast.Await | ast.NamedExpr)
        for n in ast.walk(statement)
    )


def _deleted(project: Project, rng: Random) -> Project | None:
    """A temporary is deleted after its last use."""
    for spot in drawn(project, rng):
        statement = spot.statement
        if not (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)):
            continue
        name = statement.targets[0].id
        scope = next((s for s in spot.held.scopes if s.node is spot.function), None)
        if scope is None or len(statement.targets) > 1 or name not in scope.bound:
            continue
        used = [p for p in spot.held.places if p.name == name and p.scope.home(name) is scope]
        rest = spot.body[spot.index + 1 :]
        last = max(
            (k for k, s in enumerate(rest) if any(n in _nodes(s) for n in _of(used))), default=-1
        )
        inside = set().union(*(_nodes(s) for s in spot.body[spot.index :]))
        if last < 0 or not _of(used) <= inside or any(p.scope is not scope for p in used):
            continue
        if any(_leaves(s) for s in rest[: last + 1]) or _loses(name, rest[: last + 1]):
            continue
        end = Spot(
            spot.path, spot.held, spot.function, spot.outer, spot.body, spot.index + 1 + last
        ).end
        return with_lines(project, spot, [(end, end, block(spot.indent, f"del {name}"))])
    return None


def _loses(name: str, statements: tuple[ast.stmt, ...]) -> bool:
    return any(
        isinstance(n, ast.Delete)
        or (isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load))
        for s in statements
        for n in ast.walk(s)
    )


def _of(places: list) -> set[int]:  # type: ignore[type-arg]
    return {id(p.node) for p in places}


def _nodes(statement: ast.stmt) -> set[int]:
    return {id(node) for node in ast.walk(statement)}


REFACTORINGS = (
    Refactoring("a logger hears of a statement", "noise", _logged),
    Refactoring("statements are timed", "noise", _timed),
    Refactoring("an object is asserted to be there", "noise", _asserted),
    Refactoring("a branch that is never taken", "noise", _dead),
    Refactoring("a temporary is deleted", "noise", _deleted),
)
