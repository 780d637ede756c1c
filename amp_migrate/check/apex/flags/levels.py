"""What holds at the levels that cast the networks that they are given, and no function of torch: O2 and O3."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.check.apex.assumed import Initialize, guards
from amp_migrate.facts.constants import string
from amp_migrate.facts.paths import argument, tail
from amp_migrate.flow.assumption import Assumption
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import refine
from amp_migrate.flow.terms import term
from amp_migrate.project import Project
from amp_migrate.project.reach import where_set
from amp_migrate.training.origins.constants import constant_of
from amp_migrate.training.origins.reaching import reaching

_OF_GIVEN = ("O2", "O3")


def is_of_given(project: Project, item: Initialize) -> bool:
    """Tell whether an initialize always runs with such a level."""
    return string(_stated(project, item)) in _OF_GIVEN


def _stated(project: Project, item: Initialize) -> ast.expr | None:
    """Return the level of an initialize, the constant where a variable is one on every way: one of its file, too."""
    if not isinstance(item.level, ast.Name):
        return item.level
    at = item.function, item.level
    return constant_of(project, reaching(project), *at, through_calls=False) or item.level


def of_given(project: Project, item: Initialize) -> Assumption | None:
    """Return what holds where an initialize runs with such a level; None where it does not, or nothing says so."""
    level = _stated(project, item)
    if item.on is None or level is None:
        return None
    if isinstance(level, ast.Constant):
        return item.on if string(level) in _OF_GIVEN else None
    local = isinstance(level, ast.Name) and item.function.module.scopes.is_local(level)
    held = item.function.module.scopes.only_value(level) if local else level
    if isinstance(held, ast.IfExp):
        return _chosen(item, held)
    spelled = term(level)
    if spelled is None or not any(_may_be(project, level, name) for name in _OF_GIVEN):
        return None
    name = next(name for name in _OF_GIVEN if _may_be(project, level, name))
    if any(spelled.text in fact.term.text for _, held in item.callers for fact in held.facts):
        return None  # what leads there asks for the level
    known = item.on.only(lambda stated: spelled.text not in stated.text)
    chosen = refine(known, ast.Compare(level, [ast.Eq()], [ast.Constant(name)]), True)
    return chosen if chosen is not None and _leads_on(item, chosen) else None


def _leads_on(item: Initialize, known: Assumption) -> bool:
    """Tell whether the tests around an initialize let it run: ``if args.level == "O1":`` does so for no other level."""
    return not any(
        evaluate(test, known) is (not truth) for test, truth in guards(item.function, item.call)
    )


def _chosen(item: Initialize, choice: ast.IfExp) -> Assumption | None:
    """Return what holds where a test chooses such a level."""
    known = item.unchosen if item.unchosen is not None else item.on
    for arm, truth in ((choice.body, True), (choice.orelse, False)):
        if known is not None and string(arm) in _OF_GIVEN:
            return refine(known, choice.test, truth)
    return None


def _may_be(project: Project, level: ast.expr, name: str) -> bool:
    """Tell whether an option of the command line may have a value, as far as its choices say; anything else may."""
    if not isinstance(level, ast.Attribute) or where_set(project, level.attr):
        return True
    choices = list(_choices(project, level.attr))
    return not choices or any(each is None or name in each for each in choices)


def _choices(project: Project, option: str) -> Iterator[set[str | None] | None]:
    """Yield the choices of what the files of a project define as an option; None where one has no such list."""
    for _, call in project.nodes(ast.Call):
        if tail(call) == "add_argument" and option in _names(call):
            given = argument(call, "choices")
            plain = isinstance(given, ast.List | ast.Tuple | ast.Set)
            yield {string(each) for each in given.elts} if plain else None  # type: ignore[union-attr]


def _names(call: ast.Call) -> set[str]:
    dest = argument(call, "dest")
    texts = map(string, call.args if dest is None else [dest])
    return {text.lstrip("-").replace("-", "_") for text in texts if text is not None}
