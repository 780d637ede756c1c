"""When Apex was on: what must hold for an `amp.initialize` to run, and to turn casts on."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from amp_migrate.check.apex.facts import Facts, with_given
from amp_migrate.check.apex.given import asked, casts_nothing, choice_of, given, off_arm, switched
from amp_migrate.check.apex.installed import installed
from amp_migrate.facts.paths import argument, mentions, variables
from amp_migrate.facts.variables import put_in
from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import refine
from amp_migrate.project import Function, Project
from amp_migrate.project.once import once
from amp_migrate.project.order import levels, position
from amp_migrate.project.reach import attributes_set
from amp_migrate.training.flags.setting import got, read
from amp_migrate.training.origins.constants import constant_of
from amp_migrate.training.origins.reaching import reaching

_NAMES = frozenset({"apex.amp.initialize", "apex.amp.frontend.initialize"})
_OPTIMIZERS, _ENABLED, _LEVEL, _LOSS_SCALE = 1, 2, 3, 8


Outcome = tuple[str, bool]
"""A test, as it is dumped, and how it comes out."""


@dataclass(frozen=True, eq=False)
class Initialize:
    """A call of `amp.initialize`: its function, and what holds with AMP on and in each way of it being off.

    `off` is empty where the call runs in any case. `on` is None where the call never turns AMP on. `scaled` are the
    ways of `off` in which the loss is scaled all the same, as level O0 does with a loss scale of its own, `done` those
    of a test of what the function sets itself, as whether it did so before; `scaling` is
    the way of a call with AMP on that casts nothing, as it is given no models, and scales the loss. `callers` is
    what holds in the functions that call the function where it runs, as far as there is one call only; `missed` is
    what holds in one of those that lead to it where that does not take the call, and in those that gave it what it asks. `level` is the opt_level. `above` is, for ways
    of `off`, what holds then in the functions that gave the flag on, `unread` the one test of which nothing else is known.
    `unchosen` is what holds besides the test by which a level is chosen, if one is.
    """

    function: Function
    call: ast.Call
    on: Assumption | None
    off: tuple[Assumption, ...]
    scaled: tuple[Assumption, ...] = ()
    done: tuple[Assumption, ...] = ()
    scaling: Assumption | None = None
    callers: tuple[tuple[Function, Assumption], ...] = ()
    missed: tuple[tuple[tuple[Function, Assumption], ...], ...] = ()
    level: ast.expr | None = None
    above: Mapping[Assumption, tuple[tuple[Function, Assumption], ...]] = field(
        default_factory=dict
    )
    unread: Mapping[Assumption, Outcome] = field(default_factory=dict)
    unchosen: Assumption | None = None

    def without(self, known: Assumption) -> Facts:
        """Return what holds in a run in which one of the ways of being off is taken."""
        failed = self.unread.get(known)
        told = ((self.function, *failed),) if failed is not None else ()
        return Facts(((self.function, known), *self.above.get(known, ())), told)

    def whichever_level(self) -> Facts:
        """Return what holds where it runs, but for a test by which its level is chosen."""
        known = self.unchosen if self.unchosen is not None else self.on
        return Facts(((self.function, known or NOTHING), *self.callers))

    @property
    def trains(self) -> bool:
        """Whether the call is given an optimizer."""
        given = argument(self.call, "optimizers", _OPTIMIZERS)
        nothing = isinstance(given, ast.Constant) or (
            isinstance(given, ast.List | ast.Tuple) and not given.elts
        )
        return given is not None and not nothing


@once
def initializes(project: Project) -> list[Initialize]:
    """Return the calls of `amp.initialize` of a project."""
    found = []
    for module, call in project.nodes(ast.Call):
        if project.apex(module, call.func) in _NAMES:
            found.append(_read(project, project.function_of(module, call), call))
    return found


def _read(project: Project, function: Function, call: ast.Call) -> Initialize:
    on: Assumption | None = installed(project, function)
    off: list[Assumption] = []
    done: list[Assumption] = []
    asked: list[tuple[Assumption, ast.expr, bool]] = []
    unread: dict[Assumption, list[Outcome]] = {}
    stored = attributes_set(project, function)
    for test, truth in _led_through(project, function, call):
        if on is None or evaluate(test, on) is truth:
            continue
        parts = list(_missed(on, test, truth))
        missed = [way for way, _ in parts]
        asked += [(way, part, not truth) for way, part in parts]
        for way, part in parts:
            if way == on:
                unread.setdefault(way, []).append((ast.dump(part), not truth))
        off += missed
        done += missed if _asks(project, function, test, stored) else []
        on = refine(on, test, truth)
    level = _level(project, function, call)
    nothing = casts_nothing(call, level)
    choice = None if nothing else choice_of(function, level)
    unchosen = on if choice is not None else None
    on, by_level = switched(on, None if nothing else choice or level, None)
    asked += [(way, choice.test, choice.body is off_arm(choice)) for way in by_level if choice]
    enabled = given(function.module, call, "enabled", _ENABLED)
    on, by_switch = switched(on, enabled, True)
    asked += [(way, enabled, False) for way in by_switch if enabled is not None]
    own = argument(call, "loss_scale", _LOSS_SCALE) is not None or any(
        k.arg is None for k in call.keywords
    )
    scaling = None
    if nothing:
        by_level = [on] if on is not None else []
        fixed = isinstance(level, ast.Constant) and level.value == "O3"
        on, scaling = None, on if own or not fixed else None
    scaled = tuple(by_level) if own or nothing else ()
    on = None if on is None else with_given(project, function, on)
    callers = tuple(_callers(project, function))
    aside = tuple(_aside(project, function))
    ways = (*off, *by_level, *by_switch)
    above = {w: tuple(_given_on(project, function, test, truth)) for w, test, truth in asked}
    sole = {way: outcomes[0] for way, outcomes in unread.items() if ways.count(way) == 1}
    return Initialize(
        function,
        call,
        on,
        ways,
        scaled,
        tuple(done),
        scaling,
        callers,
        aside,
        level,
        above,
        sole,
        unchosen,
    )


def _given_on(
    project: Project, function: Function, test: ast.expr, truth: bool
) -> Iterator[tuple[Function, Assumption]]:
    """Yield what a test of parameters asks in the functions on the only way to one, as what they pass on says it."""
    seen = {function}
    while len(sites := project.callers(function)) == 1 and sites[0].function not in seen:
        given, names = project.arguments(sites[0], function), variables(test)
        bindings = _bindings(function, names)
        if not names <= {*given} or not all(isinstance(node, ast.arg) for node in bindings):
            return
        test, function = put_in(test, {name: given[name] for name in names}), sites[0].function
        held, names = refine(NOTHING, test, truth), variables(test)
        if held is None or held == NOTHING or len(_bindings(function, names)) > len(names):
            return
        seen.add(function)
        yield function, held


def _bindings(function: Function, names: Iterable[str]) -> list[ast.AST]:
    scopes = function.module.scopes
    return [node for name in names for node in scopes.bindings(function.scope, name)]


def _missed(
    known: Assumption, test: ast.expr, truth: bool
) -> Iterator[tuple[Assumption, ast.expr]]:
    """Yield what holds where a test comes out otherwise, for each part of it that decides so by itself.

    Nothing is said of the other parts, as what they ask may go by the same flag.
    """
    kind = ast.And if truth else ast.Or
    joined = isinstance(test, ast.BoolOp) and isinstance(test.op, kind)
    for part in test.values if isinstance(test, ast.BoolOp) and joined else [test]:
        without = refine(known, part, not truth)
        if without is not None and (not joined or without != known):
            yield without, part


def _level(project: Project, function: Function, call: ast.Call) -> ast.expr | None:
    """Return the opt_level of a call, the constant where a variable of its function is one on every way."""
    level = given(function.module, call, "opt_level", _LEVEL)
    level = level or asked(project, function.module, call)
    if not isinstance(level, ast.Name) or not function.module.scopes.is_local(level):
        return level
    found = constant_of(project, reaching(project), function, level, through_calls=False)
    return found or level


def _callers(project: Project, function: Function) -> Iterator[tuple[Function, Assumption]]:
    """Yield the functions on the only way to one, nearest first, with what holds where they take it."""
    seen = {function}
    while len(sites := project.callers(function)) == 1 and sites[0].function not in seen:
        function = sites[0].function
        seen.add(function)
        held, _ = _passed(project, function, sites[0].call)
        if held is None:
            return
        yield function, held


def _aside(
    project: Project, function: Function
) -> Iterator[tuple[tuple[Function, Assumption], ...]]:
    """Yield the functions that lead to one, with each way of theirs past the call that does, and what that is above them."""
    queue, seen = [function], {function}
    for callee in queue:
        sites = project.callers(callee)
        stored = attributes_set(project, callee) if sites else frozenset()
        for site in sites:
            held, missed = _passed(project, site.function, site.call, stored)
            for way, test, truth in missed:
                yield (site.function, way), *_given_on(project, site.function, test, truth)
            if held is not None and site.function not in seen:
                seen.add(site.function)
                queue.append(site.function)


def _passed(
    project: Project, function: Function, call: ast.Call, stored: frozenset[str] = frozenset()
) -> tuple[Assumption | None, list[tuple[Assumption, ast.expr, bool]]]:
    """Return what holds at a call, None where it never runs, and what holds in each way past it, with Apex installed.

    A way comes with the test that takes it, and how that comes out.

    A test of an attribute that is `stored` by what the call runs is passed by where that has run before.
    """
    known = installed(project, function)
    missed: list[tuple[Assumption, ast.expr, bool]] = []
    for test, truth in guards(function, call):
        if evaluate(test, known) is truth:
            continue
        held, without = refine(known, test, truth), refine(known, test, not truth)
        if held is None:
            return None, missed
        if (
            without is not None
            and without != known
            and not mentions(test, "__name__")
            and not _asks(project, function, test, stored)
        ):
            missed.append((without, test, not truth))
        known = held
    return known, missed


def _asks(project: Project, function: Function, test: ast.expr, attributes: frozenset[str]) -> bool:
    """Tell whether a test, or a method or property that it asks, reads one of some attributes."""
    parts = (got(n) or n for _, body in read(project, function, test) for n in ast.walk(body))
    return any(isinstance(n, ast.Attribute) and n.attr in attributes for n in parts)


def guards(function: Function, node: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the tests of the branches in which a node stands, outermost first, and how they came out."""
    return reversed([(up.test, holds) for up, holds in function.module.tree.sides(node)])


def _led_through(
    project: Project, function: Function, node: ast.AST
) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the tests that lead to a node, and how they come out: those around it, and those above that return otherwise.

    Those count that read nothing which the function sets: that would say that it has run before.
    """
    tree, stored = function.module.tree, attributes_set(project, function)
    early: list[tuple[ast.expr, bool]] = []
    for level in levels(tree, node):
        before = tree.block(level)[: position(tree, level)]
        if any(isinstance(stmt, ast.Raise | ast.Return) for stmt in before):
            early.clear()  # nothing leads there
            break
        for stmt in reversed(before):
            returns = _returning(stmt) if isinstance(stmt, ast.If) else None
            if isinstance(stmt, ast.If) and returns is not None:
                names = variables(stmt.test)
                once_bound = len(_bindings(function, names)) <= len(names)
                if once_bound and not _asks(project, function, stmt.test, stored):
                    early.append((stmt.test, not returns))
    yield from (*reversed(early), *guards(function, node))


def _returning(test: ast.If) -> bool | None:
    """Return how a test comes out where it returns at once; None where it does so either way, or neither."""
    ends = [bool(part) and isinstance(part[-1], ast.Return) for part in (test.body, test.orelse)]
    return ends[0] if ends[0] is not ends[1] else None
