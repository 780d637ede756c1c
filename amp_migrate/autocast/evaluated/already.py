"""When Apex is on already: at calls of a function that initializes in other runs (``infer(model, is_validation=True)``), or only in what an autocast block runs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence

from amp_migrate.facts.below import every
from amp_migrate.flow.condition import Condition, conjunction, conjuncts, negate
from amp_migrate.placement.making.creation import Creation
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import CallSite, Function, Project
from amp_migrate.project.reach import is_of_another
from amp_migrate.project.rounds import may_follow
from amp_migrate.protocol.code.program import program_of

Told = Callable[[str, Function, list[Creation], bool], bool]


def already_on(
    project: Project, function: Function, others: Sequence[Creation], told: Told
) -> Condition | None:
    """Return when another initialize has run where a function begins, as that can ask it; None where it cannot, or none has."""
    sites = project.callers(function)
    behind = [s for s in sites if any(_follows(project, creation, s) for creation in others)]
    done = [c for c in others if any(_follows(project, c, site) for site in behind)]
    if len(done) != 1 or done[0].casts.value is False:
        return None
    elsewhere = [site for site in sites if site not in behind]
    switch = _switch(project, function, behind, elsewhere)
    casts = done[0].casts
    if switch is None or (casts.value is None and not told(casts.text, function, done, False)):
        return None
    return conjunction([casts, switch])


def joined(own: str, already: Condition) -> Condition:
    """Return the condition under which Apex is on, by an initialize of the function or by the other one."""
    parts, others = conjuncts(Condition(None, own)), conjuncts(already)
    switch = Condition(None, others[-1])
    common = [Condition(None, part) for part in parts if part in others]
    rest = [Condition(None, p) for p in parts if p not in others and p != negate(switch).text]
    apart = [Condition(None, part) for part in others[:-1] if part not in parts]
    if apart or not rest:
        either = [] if not apart else [Condition(None, f"{own} or {already.text}")]
        return conjunction([*common, *either])
    return conjunction([*common, Condition(None, f"{switch.text} or {conjunction(rest).text}")])


def _follows(project: Project, creation: Creation, site: CallSite) -> bool:
    """Tell whether a call stands behind an initialize of its function."""
    made = creation.site
    return site.function is made.function and may_follow(
        project, site.function, made.node, site.call
    )


def _switch(
    project: Project, function: Function, behind: list[CallSite], elsewhere: list[CallSite]
) -> Condition | None:
    """Return a parameter that is given as one constant by some calls, and as the other one by the rest."""
    for name in function.parameters.names:
        here = {_given(project, site, function, name) for site in behind}
        there = {_given(project, site, function, name) for site in elsewhere}
        if here == {True} and there <= {False}:
            return Condition(None, name)
        if here == {False} and there <= {True}:
            return Condition(None, f"not {name}")
    return None


def _given(project: Project, site: CallSite, function: Function, name: str) -> object:
    node = project.arguments(site, function).get(name, function.parameters.defaults.get(name))
    constant = isinstance(node, ast.Constant) and isinstance(node.value, bool)
    return node.value if isinstance(node, ast.Constant) and constant else None


def asked_early(
    project: Project,
    creations: Iterable[Creation],
    function: Function,
    node: ast.AST,
    scaler: str | None,
) -> None:
    """Raise `Cannot` where a statement makes the GradScaler that an autocast block around it asks."""
    program = program_of(project)
    asked = ast.parse(scaler or "None", mode="eval").body
    for maker in (creation.site.function for creation in creations):
        above = program.above(maker)
        if not is_of_another(project, maker, function, asked) and any(
            program.enters(part, above) for part in every(node)
        ):
            raise Cannot(
                "AMP901",
                *function.at(node),
                f"`{maker.name}` turns AMP on in what this statement runs, after its autocast block asked for it",
                f"call `{maker.name}` before this statement instead of in it, then run again",
            )
