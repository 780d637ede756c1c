"""What networks give under autocast goes on in fp32 where Apex had it so, or is told of."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.autocast.leaving.computed import Computed, computed, is_high
from amp_migrate.autocast.leaving.copied import copied, handed_out
from amp_migrate.autocast.leaving.in_losses import in_losses
from amp_migrate.autocast.leaving.together import Target, together
from amp_migrate.facts.paths import walk
from amp_migrate.plan.cannot import Cannot, spoken
from amp_migrate.plan.model import Decision, Edit, ReplaceExpression, Status
from amp_migrate.project import Function
from amp_migrate.rules.base import Context, Rule, decision
from amp_migrate.training.region import Region

_ATOMS = ast.Name | ast.Attribute | ast.Call | ast.Subscript


def leaving(context: Context, rule: Rule, cast: list[Region]) -> Iterator[Decision]:
    """Make fp32 what some regions give and Apex had in fp32, where it surely has a floating type; else say so."""
    if context.unit.plain:
        return
    losses = in_losses(context.unit, cast)
    _refuse_inlined(context, losses)
    widened = [*computed(context.unit, cast), *losses]
    behind = frozenset[ast.AST](each.used for each in widened)
    copies = list(copied(context.unit, cast, behind))
    targets = [Target(each.function, each.given) for each in widened]
    targets += (Target(each.function, each.given) for each in copies if each.floating)
    bound = together(context.unit, cast, targets) if is_high(context.unit) else {}
    for made in dict.fromkeys(bound.values()):
        function = context.unit.project.holder(made)
        edit, text = _widened(function, made)
        message = (
            f"what the network gives goes on as `{text}`: Apex had it in fp32 behind its block"
        )
        yield decision(rule, Status.ROUTINE, function.module, made, message, [edit])
    for function, given, used in (each for each in widened if each.given not in bound):
        edit, text = _widened(function, given)
        message = f"what the network gives goes on as `{text}`: Apex had it in fp32 here"
        yield decision(rule, Status.ROUTINE, function.module, used, message, [edit])
    told: set[Function] = set()
    for copy in copies:
        function, call = copy.function, copy.call
        if copy.floating and copy.given not in bound:
            edit, text = _widened(function, copy.given)
            message = f"`.cpu()` copies in fp32 what the network gives: `{text}`, as Apex did"
            yield decision(rule, Status.ROUTINE, function.module, call, message, [edit])
        elif not copy.floating and function not in told:
            told.add(function)
            message = "`.cpu()` gives fp16 of what the network gives under autocast; under Apex it was fp32"
            advice = "write `.float().cpu()` where numpy, sums or files need fp32"
            yield decision(rule, Status.NOTE, function.module, call, message, advice=advice)


def returning(context: Context, rule: Rule, cast: list[Region]) -> Iterator[Decision]:
    """Say what goes out of sight in fp16."""
    for function, given in handed_out(context.unit, cast) if not context.unit.plain else ():
        message = f"what {spoken(function)} hands on may be fp16: losses that are computed of it out of sight were fp32 under Apex"
        advice = "return `.float()` of the outputs where they are to be so"
        yield decision(rule, Status.NOTE, function.module, given, message, advice=advice)


def _refuse_inlined(context: Context, found: list[Computed]) -> None:
    """Refuse what becomes fp32 in a loss that is moved out of the call in which it stands."""
    inlined = {node for _, part in context.unit.inlined for node in walk(part)}
    for function, given, _ in found:
        if given in inlined:
            _, text = _widened(function, given)
            raise Cannot(
                "AMP904",
                *function.at(given),
                f"this loss gets a statement of its own, in which `{text}` has to stand as Apex had that in fp32",
                "give the loss a name in a statement of its own, then run again",
            )


def _widened(function: Function, node: ast.expr) -> tuple[Edit, str]:
    """Return the edit that makes a value fp32, and how that reads."""
    tree = function.module.tree
    text = tree.segment(node)
    text = f"{text}.float()" if isinstance(node, _ATOMS) else f"({text}).float()"
    return ReplaceExpression(tree.span(node), text), text
