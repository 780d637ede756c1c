"""Where the GradScaler is made, and under which condition it is enabled."""

from __future__ import annotations

import ast
import itertools
from dataclasses import dataclass, replace

from amp_migrate.apex.sites import Site
from amp_migrate.facts.paths import walk
from amp_migrate.facts.tree import Tree
from amp_migrate.flow.condition import FALSE, TRUE, Condition, as_bool, conjunction
from amp_migrate.placement.finding.alternatives import has_alternatives
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.making.climbing import (
    Climb,
    chosen,
    climb,
    guard,
    is_guarded,
    refuse_forgotten,
)
from amp_migrate.placement.making.lasting import set_within
from amp_migrate.plan.cannot import OutOfReach
from amp_migrate.project import Function
from amp_migrate.project.imported import is_main
from amp_migrate.project.order import dominates, in_branch, inside, position
from amp_migrate.project.reach import (
    attributes_set,
    leading_to,
    made_with_object,
    of_new_objects,
    reachable,
)
from amp_migrate.project.rounds import may_follow
from amp_migrate.scaler.routes.places import always_constructed, sometimes_called
from amp_migrate.training.steps import children_of


@dataclass(frozen=True, eq=False, slots=True)
class Creation:
    """One initialize: the scaler is made at `top`, the statement of the initialize or a guard around it.

    `casts` is the condition under which Apex was on, `patches` that under which it cast all that ran, `scales` that under which it
    scaled: without the opt_level, where a loss scale is asked for that O0 honours too. `shared` tells that other initializes of
    the function make the same scaler, so that a disabled one must stand before them all. `sometimes`: the method that makes it
    need not run, so that the constructor must make a disabled one. `in_constructor`: it runs whenever an object of its class is
    made. `instead`: a run may have objects that train without Apex in the place of those that make it. `within` holds the parts
    of `casts` that the guards of the initialize stand for; `around` what else must hold where its function also returns what it
    has not initialized, and the scaler is only made behind that. `anew`: its method may run again on its object and leave the
    initialize out, which leaves AMP as it was.
    """

    site: Site
    top: ast.stmt
    casts: Condition
    scales: Condition
    patches: Condition = FALSE
    shared: bool = False
    sometimes: bool = False
    in_constructor: bool = False
    instead: bool = False
    within: tuple[tuple[ast.If, Condition], ...] = ()
    around: tuple[Condition, ...] = ()
    anew: bool = False

    def apart(self, node: ast.AST) -> list[Condition]:
        """Return the conditions of the guards that a node of the same function does not share, inner first."""
        tree = self.site.module.tree
        return [
            c for holder, c in self.within if not _same_branch(tree, holder, self.site.node, node)
        ]

    def casts_at(self, node: ast.AST, asked: Condition) -> Condition:
        """Return when Apex was on at a node of the same function; `asked` is what the initialize states."""
        return conjunction([*reversed(self.apart(node)), asked])

    @property
    def climbed(self) -> bool:
        """Whether the scaler is made outside the guards of the initialize."""
        return self.top is not self.site.statement


def creations(unit: Unit, function: Function, sites: list[Site]) -> list[Creation]:
    """Return how the scaler of the initialize sites of one function is made."""
    uses = _uses(unit, function)
    making = [site for site in sites if site in unit.home.inits.get(function, [])]
    casting = [_creation(unit, site, uses, function) for site in sites if site not in making]
    if not making:
        return casting
    if len(making) == 1 or _sequential(making):
        either = _choice(sites) if casting else None
        always = either is not None and _always_runs(function, either)
        if always and _alike(unit, sites):  # a run that only infers asks it as well
            return [_creation(unit, making[0], uses, function, either)]
        first = _creation(unit, making[0], uses, function)
        if len(making) == 1 and _asks_anew(unit, first):
            placed = _in_place(unit, first.site, always=False)
            return [replace(placed, shared=False, anew=True), *casting]
        later = _is_set_later(unit, first)
        again = (
            _in_place(unit, site, always=True)
            for site in making[1:]
            if _begins_anew(unit, making[0], site)
        )
        anew = [replace(creation, shared=False) for creation in again]
        return [_in_place(unit, first.site, always=False) if later else first, *anew, *casting]
    choice = _choice(making)
    if choice is not None and _alike(unit, making):
        return [_creation(unit, making[0], uses, function, choice), *casting]
    if choice is None:
        for site in making:
            refuse_forgotten(unit, site)
    made = choice is not None and _always_runs(function, choice) and function.name == "__init__"
    return [*(_in_place(unit, site, made) for site in making), *casting]


def _begins_anew(unit: Unit, first: Site, later: Site) -> bool:
    """Tell whether a backward may run between an initialize and a later one of its function: Apex began with a new loss scale."""
    function, project = first.function, unit.project
    nodes = {
        node
        for backward in unit.backwards
        for where, node in leading_to(project, (backward.function, backward.node))
        if where is function
    }
    return any(may_follow(project, function, n, later.node, [first.node]) for n in nodes)


def _is_set_later(unit: Unit, made: Creation) -> bool:
    """Tell whether the loss scale may be set behind where the scaler is made, in a guard of the initialize."""
    scale = unit.options[made.site].chosen_scale
    return (
        made.climbed and scale is not None and set_within(unit, made.site.function, made.top, scale)
    )


def _refuse_asked_later(unit: Unit, site: Site, found: Climb) -> None:
    """Raise `Cannot` where what decides on AMP may be set between a test that returns and the initialize behind it."""
    tree = site.module.tree
    passed = [holder for holder, _ in found.within if not inside(tree, site.node, holder)]
    if not passed:
        return
    block = tree.block(passed[-1])
    between = block[position(tree, passed[-1]) + 1 :]
    taken = itertools.takewhile(lambda stmt: not inside(tree, site.node, stmt), between)
    arguments = unit.options[site].arguments
    asked = [
        arguments[name] for name in ("enabled", "opt_level", "loss_scale") if name in arguments
    ]
    asked += [holder.test for holder in passed[:-1]]
    behind = [stmt for stmt in taken if stmt not in passed]
    if any(set_within(unit, site.function, stmt, value) for stmt in behind for value in asked):
        raise OutOfReach(
            "AMP901",
            *site.function.at(passed[-1]),
            "the GradScaler must be there before this returns, and what amp.initialize goes by is set only behind it",
            "set that above this test, then run again",
        )


def _asks_anew(unit: Unit, made: Creation) -> bool:
    """Tell whether a method that constructors run may run again, where the tests around the initialize ask something else by then."""
    function = made.site.function
    if not made.climbed or not unit.home.is_attribute(function):
        return False
    project, scopes = unit.project, function.module.scopes
    asked = [part for holder, _ in made.within for part in walk(holder.test)]
    names = (n for n in asked if isinstance(n, ast.Name) and not function.is_receiver(n))
    stored = attributes_set(project, function)
    own = any(scopes.owner(name) is function.scope for name in names) or any(
        isinstance(part, ast.Attribute) and part.attr in stored for part in asked
    )
    begins = own and made_with_object(project, function)
    return begins and not of_new_objects(project, function)


def _choice(sites: list[Site]) -> ast.If | None:
    """Return the test of which every arm holds one of some initializes."""
    tree = sites[0].module.tree
    top = children_of(tree, [site.statement for site in sites])[0]
    return top if isinstance(top, ast.If) and is_exhaustive(top, sites) else None


def _always_runs(function: Function, test: ast.If) -> bool:
    """Tell whether a test stands in no branch or loop of its function."""
    tree = function.module.tree
    return tree.holder(test) is (function.node or tree.module)


def is_exhaustive(node: ast.If, sites: list[Site]) -> bool:
    """Tell whether every arm of a test, and of those that are its arms, holds one of some initializes."""
    return all(
        any(site.statement in arm for site in sites)
        or (len(arm) == 1 and isinstance(arm[0], ast.If) and is_exhaustive(arm[0], sites))
        for arm in (node.body, node.orelse)
    )


def _alike(unit: Unit, sites: list[Site]) -> bool:
    """Tell whether some initializes make the same GradScaler, on whichever of them a run comes."""
    made = [
        replace(unit.options[s], arguments={}, level=None, patches=TRUE, remarks=[]) for s in sites
    ]
    alike = all(options == made[0] and options.chosen_scale is None for options in made)
    return alike and not any(chosen(unit, site) for site in sites)


def _uses(unit: Unit, function: Function) -> list[ast.AST]:
    uses = list(unit.home.users.get(function, []))
    if function.node is None:
        uses += [f.node for f in unit.home.users if f is not function and f.node is not None
                 and f.module is function.module and f.parent is None and _is_own(unit, f)
                 and f not in unit.home.threads]  # fmt: skip
    return uses


def _is_own(unit: Unit, function: Function) -> bool:
    """Tell whether a function has the scaler from its file: not from its object."""
    return function.cls is None or unit.home.resolved.get(function) == unit.home.name


def _sequential(sites: list[Site]) -> bool:
    """Tell whether the first of several initializes always runs before the others."""
    tree = sites[0].module.tree
    return all(dominates(tree, sites[0].statement, other.node) for other in sites[1:])


def _creation(
    unit: Unit, site: Site, uses: list[ast.AST], function: Function, start: ast.stmt | None = None
) -> Creation:
    trains = site in unit.home.inits.get(function, [])
    found = climb(unit, site, uses, function, start)
    _refuse_asked_later(unit, site, found)
    outer = [*(condition for _, condition in reversed(found.within)), *chosen(unit, site)]
    conditions = _conditions(unit, site, outer)
    flags = (
        False,
        found.once or _is_lacking(unit, function, found.top),
        always_constructed(unit.project, function),
        function.cls is not None and trains and has_alternatives(unit, function.cls),
    )
    around = _around(unit, site, found.top) if unit.home.returning.at_times(function) else ()
    return Creation(site, found.top, *conditions, *flags, tuple(found.within), tuple(around))


def _is_lacking(unit: Unit, function: Function, top: ast.stmt) -> bool:
    """Tell whether a use may come to no scaler: the function that makes it, or the branch there, need not have run."""
    home, project = unit.home, unit.project
    apart = set(home.users) - reachable(project, function)
    if home.is_attribute(function) and apart:
        unmade = not made_with_object(project, function)
        if sometimes_called(project, function) or (unmade and home.made.entered_unmade(apart)):
            return True
    return (
        (home.module_level and is_guarded(function.module.tree, top))
        or home.returning.conditional(function)
        or home.carriers.sometimes
        or (bool(home.carriers.empty) and function.name != "__init__")
    )


def _around(unit: Unit, site: Site, top: ast.stmt) -> list[Condition]:
    """Return what the tests around a statement ask that runs, outer first."""
    tree = site.module.tree
    return [
        guard(unit, site, level, in_branch(tree, top, level.body))
        for level in tree.ancestors(top)
        if isinstance(level, ast.If) and not is_main(level)
    ][::-1]


def _same_branch(tree: Tree, holder: ast.If, a: ast.AST, b: ast.AST) -> bool:
    bodies = (holder.body, holder.orelse)
    return any(in_branch(tree, a, body) and in_branch(tree, b, body) for body in bodies)


def _in_place(unit: Unit, site: Site, always: bool) -> Creation:
    conditions = _conditions(unit, site, chosen(unit, site))
    return Creation(site, site.statement, *conditions, shared=True, sometimes=not always)


def _conditions(
    unit: Unit, site: Site, guards: list[Condition]
) -> tuple[Condition, Condition, Condition]:
    """Return the conditions under which Apex cast, scaled, and cast all that ran."""
    options, bools = unit.options[site], unit.not_bools
    scaled = options.switch if options.always_scales else options.casts
    asked = (options.casts, scaled, options.patches)
    casts, scales, patches = (as_bool(conjunction([*guards, each]), bools) for each in asked)
    return casts, scales, patches
