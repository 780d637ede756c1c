"""Functions that hold amp or None and hand it to whatever initializes: the GradScaler is made there, once."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from amp_migrate.apex.options import Options
from amp_migrate.apex.sites import Kind, Site, amp_expression
from amp_migrate.facts.constants import is_none
from amp_migrate.facts.paths import calls_method, same
from amp_migrate.project import Function, Project
from amp_migrate.project.order import loop_of


@dataclass(frozen=True, eq=False, slots=True)
class Maker:
    """``if args.fp16: from apex import amp`` with ``else: amp = None`` in a function, in no loop."""

    function: Function
    switch: ast.If


def makers(
    project: Project,
    switches: Iterable[Site],
    options: Mapping[Site, Options],
    unit: Iterable[Site],
) -> dict[Function, Maker]:
    """Return the functions that choose amp or None, where all that initialize get it from them as a parameter.

    None where an initialize asks for more than a dynamic loss scale at a constant level, or where what scales among
    the sites of the `unit` does so by another test than that which chose amp.
    """
    found: dict[Function, Maker] = {}
    for switch in switches:
        maker = _maker(switch)
        if maker is None or maker.function in found:
            return {}
        found[maker.function] = maker
    if not all(_by_choice(project, site, found) for site in unit if site.kind is Kind.SCALE_LOSS):
        return {}
    for site, option in options.items():
        node = amp_expression(site)
        if not isinstance(node, ast.Name) or not _is_plain(option):
            return {}
        if not _comes_from(project, site.function, node.id, found, set()):
            return {}
    return found


def _maker(site: Site) -> Maker | None:
    tree = site.module.tree
    node = site.function.node
    test = next((up for up in tree.ancestors(site.node) if isinstance(up, ast.If)), None)
    if node is None or test is None or loop_of(tree, test) is not None:
        return None
    values = [s.value for s in test.orelse if isinstance(s, ast.Assign)]
    if len(test.orelse) != 1 or len(values) != 1 or not is_none(values[0]):
        return None
    return Maker(site.function, test)


def _by_choice(project: Project, site: Site, found: Mapping[Function, Maker]) -> bool:
    """Tell whether a loss is scaled where amp was chosen, and else not: Apex would have raised without an initialize."""
    tests = {up: holds for up, holds in site.module.tree.sides(site.node) if isinstance(up, ast.If)}
    asking = {up: holds for up, holds in tests.items() if _asks(project, site, up.test, found)}
    rest = [stmt for up in tests.keys() - asking.keys() for stmt in up.orelse]
    chosen = bool(asking) and all(asking.values())
    return chosen and not any(calls_method(stmt, "backward") for stmt in rest)


def _asks(project: Project, site: Site, test: ast.expr, found: Mapping[Function, Maker]) -> bool:
    """Tell whether a test is the one that chose amp, or asks whether amp was chosen."""
    maker = found.get(site.function)
    if maker is not None and same(test, maker.switch.test):
        return True
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot | ast.NotEq):
        test = test.left if is_none(test.comparators[0]) else test
    plain = isinstance(test, ast.Name | ast.Attribute)
    return plain and project.external(site.module, test) == "apex.amp"


def _is_plain(options: Options) -> bool:
    """Tell whether an initialize makes no more of the scaler than whether there is one."""
    plain = options.casts.value is True and options.scaling and not options.always_scales
    scale = (options.init_scale, options.pinned, options.minimum, options.maximum)
    return plain and options.chosen_scale is None and not any(scale)


def _comes_from(
    project: Project,
    function: Function,
    name: str,
    found: Mapping[Function, Maker],
    seen: set[Function],
) -> bool:
    """Tell whether a name of a function is a parameter that gets None, or what a maker holds."""
    if function in seen:
        return True
    if name not in function.parameters.names:
        return False
    received = project.received(function, name)
    for call, where, node in received:
        given = node or function.parameters.defaults.get(name)
        if is_none(given):
            continue
        # What initializes again starts with a new loss scale.
        if not isinstance(given, ast.Name) or loop_of(call.function.module.tree, call.call):
            return False
        holds = where in found and project.external(where.module, given) == "apex.amp"
        if not holds and not _comes_from(project, where, given.id, found, {*seen, function}):
            return False
    return bool(received) and not project.escapes(function)
