"""A loss scale that is chosen at run time: when it is dynamic, and what number it is where it is not."""

from __future__ import annotations

import ast

from amp_migrate.apex.sites import Site
from amp_migrate.facts.constants import number
from amp_migrate.facts.paths import tail, walk
from amp_migrate.flow.assumption import NOTHING, Known
from amp_migrate.flow.condition import Condition, either, is_plain, negate, speller
from amp_migrate.flow.evaluate import value_of
from amp_migrate.flow.refine import refine
from amp_migrate.plan.cannot import Cannot
from amp_migrate.rules.base import Context
from amp_migrate.training.flags.setting import read

_LOOSE = (ast.BoolOp, ast.Compare, ast.IfExp, ast.UnaryOp, ast.Lambda, ast.NamedExpr)
_TAKES = ("__next__", "input", "next", "pop", "popitem", "popleft", "read", "readline", "send")


def refuse_taking(context: Context, chosen: ast.expr, site: Site) -> None:
    """Refuse a loss scale that is another one each time it is asked for: what stands for it asks more than once."""
    for _, node in read(context.unit.project, site.function, chosen):
        if any(_takes(part) or (node is not chosen and _stores(part)) for part in walk(node)):
            raise Cannot(
                "AMP909",
                site.module,
                chosen,
                f"`{speller(site.module.tree)(chosen)}` may give another loss scale each time, and the GradScaler needs it more than once",
                "put it into a variable above amp.initialize, and give it that, then run again",
            )


def _takes(node: ast.AST) -> bool:
    """Tell whether a call takes something out of what it asks."""
    return isinstance(node, ast.Call) and tail(node) in _TAKES


def _stores(node: ast.AST) -> bool:
    """Tell whether something changes more than the variables of a function."""
    kept = isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load)
    return kept or isinstance(node, ast.Global | ast.Nonlocal)


def choice(context: Context, chosen: ast.expr, site: Site) -> tuple[Condition, str, bool]:
    """Return when the scale is dynamic, the text of the static scale, and whether that is a number."""
    segment = speller(site.module.tree)
    if isinstance(chosen, ast.IfExp):
        for arm, other, test, truth in (
            (chosen.body, chosen.orelse, Condition(None, segment(chosen.test)), True),
            (chosen.orelse, chosen.body, negate(Condition(None, segment(chosen.test))), False),
        ):
            given, made = number(other), _makes_number(site, other)
            constant = isinstance(arm, ast.Constant)
            if _is_dynamic(arm, chosen.test, truth) and (constant or made or given is not None):
                if given is not None:
                    return test, repr(given), True
                text = segment(other)
                if made or _always(context, text) is not None:
                    return test, text, True
                asked = _asks_dynamic(text, other)
                known = ast.unparse(chosen.test) in _asking_dynamic(text)
                return either([test, asked]) if not known else asked, text, False
    text = segment(chosen)
    always = _always(context, text)
    if always:
        return Condition(False), text, True
    if always is False:
        return Condition(None, f"{text} is None"), text, True
    return _asks_dynamic(text, chosen), text, False


def _asks_dynamic(text: str, scale: ast.expr) -> Condition:
    """Return the test whether a loss scale, which may be a number, is dynamic."""
    operand = f"({text})" if isinstance(scale, _LOOSE) else text
    return Condition(None, f'{operand} in (None, "dynamic")')


def _asking_dynamic(text: str) -> tuple[str, ...]:
    """Return how a test spells out a part of that one."""
    return f"{text} is None", f"{text} == 'dynamic'", f"{text} in (None, 'dynamic')"


def _is_dynamic(arm: ast.expr, test: ast.expr, truth: bool) -> bool:
    """Tell whether an arm of a conditional expression is a dynamic scale wherever the test chooses it."""
    held = refine(NOTHING, test, truth)
    known = value_of(arm, held) if held is not None else None
    return isinstance(known, Known) and known.value in (None, "dynamic")


def _makes_number(site: Site, node: ast.expr) -> bool:
    """Tell whether an expression makes a number of what it is given."""
    return isinstance(node, ast.Call) and site.module.scopes.builtin(node.func) in ("float", "int")


def _always(context: Context, text: str) -> bool | None:
    """Tell whether an option always has a number; None for what need not be a number."""
    return context.unit.numbers.get(text.rpartition(".")[2]) if is_plain(text) else None
