"""Units that stay whatever their trainings look like: private parts of Apex, wrappers out of sight, scattered initializes."""

from __future__ import annotations

import ast

from amp_migrate.apex.sites import AMP_CALLS, Kind
from amp_migrate.placement.finding.internals import by_hand
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.plan.cannot import Cannot, OutOfReach, spoken
from amp_migrate.project.reach import scattered


def refuse_unknown(unit: Unit) -> None:
    """Refuse what is private to Apex, and older interfaces that stay."""
    for site in unit.of(Kind.OTHER_AMP):
        kept = site.module.tree.older.kept.get(site.span.line)
        message, advice = (
            f"{site.name} is private to Apex, and native AMP has nothing like it",
            by_hand(site),
        )
        called = site.name.removeprefix("apex.amp.")
        if called in AMP_CALLS:
            message = f"amp.{called} is used as a value here, and native AMP has no function that does its work"
            advice = f"call amp.{called} where it is to run, and write the names of its parameters where only those are asked for, then run again"
        if kept is not None:
            why = kept.seen_from(site.module.path, site.span.line)
            message = f"{site.name} stays, with all of its training: {why}"
            advice = kept.advice
        raise Cannot("AMP909", *site.at, message, advice)


def refuse_wrappers(unit: Unit) -> None:
    """Refuse a helper from elsewhere that wraps Apex: it would go on calling it."""
    for module in unit.modules:
        for node in module.tree.nodes(ast.ImportFrom):
            if (node.module or "").partition(".")[0] == "apex":
                continue
            for alias in node.names:
                if "Apex" in alias.name and alias.name[:1].isupper() and _is_foreign(unit, node):
                    raise Cannot(
                        "AMP912",
                        module,
                        node,
                        f"{alias.name} of {node.module} wraps Apex, and {node.module} is not in the files given",
                        f"use what {node.module} has for native AMP instead of {alias.name}, then run again",
                    )


def refuse_handed(unit: Unit) -> None:
    """Refuse an initialize in a lambda, which runs wherever that is called, if at all."""
    for site in unit.of(Kind.INITIALIZE):
        if isinstance(site.module.tree.body(site.node), ast.Lambda):
            raise Cannot(
                "AMP909",
                *site.at,
                "amp.initialize runs where this lambda is called, and it is not known under what tests that is",
                "write amp.initialize where the lambda is called, then run again",
            )


def _is_foreign(unit: Unit, node: ast.ImportFrom) -> bool:
    tail = (node.module or "").rpartition(".")[2]
    return node.level == 0 and not any(
        m.name.rpartition(".")[2] == tail for m in unit.project.modules.values()
    )


def refuse_scattered(unit: Unit) -> None:
    """Refuse two initializes of one run, which would need one GradScaler that both make; so would all objects of a class."""
    found = scattered(unit.project, unit.home.inits, unit.home.is_attribute)
    if found is None:
        return
    function, other = found
    if unit.home.module_level:
        return  # as Apex had one for the process, which each of them makes anew
    site = unit.home.inits[function][0]
    if other is None:
        raise OutOfReach(
            "AMP901",
            *site.at,
            f"{function.qualname}() is a class method, so a GradScaler made in it would belong to no object",
            f"move amp.initialize from {function.qualname}() to the function that trains, then run again",
        )
    again = unit.home.inits[other][0]
    raise OutOfReach(
        "AMP901",
        *site.at,
        f"amp.initialize runs here and in {spoken(other)} ({again.place}), which {spoken(function)} calls",
        "keep one of the two, for both ways to get a model, then run again",
        (again.place,),
    )
