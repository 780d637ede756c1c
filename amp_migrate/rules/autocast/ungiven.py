"""What is said of evaluations that run networks which Apex was not given, where a block casts them at O2 and O3."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.apex.levels import OF_GIVEN
from amp_migrate.apex.sites import Kind, Site
from amp_migrate.autocast.given.networks import Run
from amp_migrate.flow.condition import FALSE, conjuncts, speller
from amp_migrate.placement.finding.networks import casts_these_alone
from amp_migrate.plan.cannot import place_of
from amp_migrate.plan.model import Decision, Finding, Place, Status
from amp_migrate.rules.base import Context, Rule
from amp_migrate.training.forwards.forwards import Forward
from amp_migrate.training.region import Region, calls_in, run_in
from amp_migrate.words import plural

_MOST = 3  # places that a note names


def high(context: Context) -> list[Site]:
    """Return the initializes that may run with O2 or O3."""
    options = context.unit.options
    sites = context.unit.of(Kind.INITIALIZE)
    return [site for site in sites if options[site].levels & OF_GIVEN]


def levels(context: Context, sites: list[Site]) -> tuple[str, str]:
    """Return at which levels O2 or O3 may be on, in words, and the variable that holds the level where there is one."""
    options = context.unit.options
    every = {level for site in sites for level in options[site].levels}
    spoken = " or ".join(sorted(OF_GIVEN & every))
    if casts_these_alone(context.unit):
        return f"at {spoken}", ""
    site = sites[0]
    given = options[site].arguments.get("opt_level")
    known = isinstance(given, ast.Name | ast.Attribute | ast.Subscript)
    name = speller(site.module.tree)(given) if given is not None and known else ""
    return f"where `{name or 'opt_level'}` is {spoken}", name


def asked_for_o1(context: Context, sites: list[Site], name: str) -> str:
    """Return the test of a run with O1, of the variable with a `name` that holds the level, and the guards of the initialize."""
    test, creation = f'{name} == "O1"', context.creations.get(sites[0])
    whole = creation.patches if creation is not None else FALSE
    return whole.text if whole.value is None and test in conjuncts(whole) else test


def ran_in_fp32(context: Context, region: Region) -> bool:
    """Tell whether Apex never cast a region, as its networks were not given to it and it patched nothing."""
    return context.patched(region) is not None and context.enabled(region) == "False"


def was_not_cast(context: Context, region: Region) -> bool:
    """Tell whether Apex surely left a region alone, as it cast the networks that it was given, of which the region runs none."""
    unit = context.unit
    if not casts_these_alone(unit):
        return False
    if context.networks.only_others(region):
        return True
    below = run_in(unit.project, [region])
    calls = [*calls_in([region]), *((f.module, call) for f in below for call in f.all_calls)]
    return not any(unit.forwards.call(module, call) is Forward.NETWORK for module, call in calls)


def cast_now(context: Context, rule: Rule, cast: Iterable[Region]) -> Iterator[Decision]:
    """Say of cast regions that they run networks which Apex was not given, whoever calls them, or for some calls."""
    for region in cast:
        run = context.networks.run(region)
        if not run.others or context.patched(region) is not None:
            continue
        where, name = levels(context, high(context))
        asked = (
            f"`{asked_for_o1(context, high(context), name)}`" if name else "whether Apex cast that"
        )
        handed = _handed(region, run)
        if not run.own:
            message = f"{where}, Apex left this in fp32, as amp.initialize was not given what it runs; it is cast now"
            advice = f"to run it as before, ask {asked} here"
        elif handed:
            message = f"{where}, Apex left this in fp32 for the network of {_spoken(handed)}, which amp.initialize was not given; it is cast now"
            advice = f"to run it as before, pass {asked} from there, and ask that here"
        else:
            continue  # one of several in it, which AMP123 names
        tree = region.module.tree
        span = tree.span(region.first).until(tree.span(region.last))
        said = message, advice
        named = handed[:_MOST] if run.own else ()
        finding = Finding(region.module.path, span, rule.code, Status.NOTE, *said, named=named)
        yield Decision(finding, [])


def _handed(region: Region, run: Run) -> tuple[Place, ...]:
    """Return where a region is handed what Apex was not given."""
    within = {n for stmt in region.statements() for n in ast.walk(stmt)}
    handed = (o for o in run.others if o.node not in within)
    return tuple(dict.fromkeys(place_of(o.function.module, o.node) for o in handed))


def _spoken(places: tuple[Place, ...]) -> str:
    rest = [plural(len(places) - _MOST, "other place")] if len(places) > _MOST else []
    return " and ".join([*map(str, places[:_MOST]), *rest])
