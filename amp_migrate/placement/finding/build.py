"""Finds the AMP units of a project: which Apex sites, steps and backward passes belong together."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Hashable, Iterable
from functools import partial

from amp_migrate.apex.apart import Apart, elements, optimizer_expressions
from amp_migrate.apex.options import arguments, read
from amp_migrate.apex.sites import Kind, Site, amp_expression, sites
from amp_migrate.apex.strangers import strangers
from amp_migrate.availability.asked import entries
from amp_migrate.availability.availability import Availability
from amp_migrate.availability.handed import makers
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.steps.idle import is_idle
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.project.imported import acts
from amp_migrate.project.programs import beside, programs
from amp_migrate.project.reach import reachable, scattered, upwards
from amp_migrate.project.relatives import family
from amp_migrate.scaler.home import Home
from amp_migrate.scaler.routes.carriers import Carriers
from amp_migrate.scaler.routes.without import Without
from amp_migrate.scaler.runners import Runners
from amp_migrate.training.forwards.forwards import Forwards
from amp_migrate.training.origins.constants import constant_of
from amp_migrate.training.origins.reaching import reaching

_BY_FILE = (Kind.REGISTER, Kind.DECORATOR, Kind.LISTED, Kind.DISABLE_CASTS)
UNIT_KINDS = frozenset(Kind).difference(_BY_FILE, {Kind.IMPORT, Kind.OTHER, Kind.UNREAD})


class Index:
    """All Apex sites of a project, found once, and what is known of its networks.

    `elsewhere`: files beside it, which never meet its own, call ``amp.initialize``.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.elsewhere = False
        self.sites: list[Site] = [
            site for module in project.modules.values() for site in sites(project, module)
        ]
        self.availability = {m: Availability(project, m) for m in project.modules.values()}
        if any(a.optional.names for a in self.availability.values()):
            for availability in self.availability.values():
                availability.switched = True
        self.forwards = Forwards(project, list(self._models()))
        self.strangers = strangers(project, self.sites)

    def _models(self) -> Iterable[tuple[Module, ast.expr]]:
        for site in self.sites:
            if site.kind is Kind.INITIALIZE:
                models = arguments(site.call)[0].get("models")
                for node in elements(models):
                    yield site.module, node


def units(index: Index) -> list[list[Site]]:
    """Return the sites of each unit, in order of the first one."""
    members = [site for site in index.sites if site.kind in UNIT_KINDS]
    groups = _Groups(members)
    functions: dict[Function, list[Site]] = defaultdict(list)
    for site in members:
        functions[site.function].append(site)
    for found in functions.values():
        groups.join_all(found)
    _join_relatives(groups, functions)
    _join_reachable(index.project, groups, functions)
    _join_optimizers(index.project, groups, members)
    _join_stored(index.project, groups, members)
    _join_orphans(index.project, groups)
    return groups.result()


class _Groups:
    def __init__(self, members: list[Site]) -> None:
        self._members = members
        self._parent: dict[Site, Site] = {site: site for site in members}

    def find(self, site: Site) -> Site:
        while self._parent[site] is not site:
            self._parent[site] = self._parent[self._parent[site]]
            site = self._parent[site]
        return site

    def join_all(self, found: Iterable[Site]) -> None:
        found = list(found)
        for site in found[1:]:
            a, b = self.find(found[0]), self.find(site)
            if a is not b:
                self._parent[b] = a

    def result(self) -> list[list[Site]]:
        grouped: dict[Site, list[Site]] = defaultdict(list)
        for site in self._members:
            grouped[self.find(site)].append(site)
        return list(grouped.values())


def _join_relatives(groups: _Groups, functions: dict[Function, list[Site]]) -> None:
    """Join what stands in one class family, and in nested functions."""
    by_class: dict[object, list[Site]] = defaultdict(list)
    for function, found in functions.items():
        for outer in function.outward[1:]:
            if outer in functions:
                groups.join_all([found[0], functions[outer][0]])
        outermost = function.outward[-1].cls
        if outermost is not None:
            for relative in family(outermost):
                by_class[relative].append(found[0])
    for found in by_class.values():
        groups.join_all(found)


def _join_reachable(
    project: Project, groups: _Groups, functions: dict[Function, list[Site]]
) -> None:
    """Join what can be called, directly or not, by a caller of a function that initializes.

    A function takes the scaler from all that call it, whoever's optimizer it is given; a method has that of its object, and a function inside another one that of its maker.
    """
    apart = Apart(project, [site for found in functions.values() for site in found])
    for function, found in functions.items():
        inits = [site for site in found if site.kind is Kind.INITIALIZE]
        if not inits:
            continue
        for start in upwards(project, function):
            for reached in reachable(project, start):
                if reached not in functions:
                    continue
                own = reached.parent is not None or reached.class_around is not None
                if not (own and apart.trains_others(inits, functions[reached])):
                    groups.join_all([inits[0], functions[reached][0]])


def _join_optimizers(project: Project, groups: _Groups, members: list[Site]) -> None:
    """Join scale_loss blocks with the initialize that got the same optimizer object."""
    by_group: dict[Hashable, list[Site]] = defaultdict(list)
    for site in members:
        if site.kind in (Kind.INITIALIZE, Kind.SCALE_LOSS):
            for node in optimizer_expressions(site):
                group = project.values.group(site.module, node)
                if group is not None:
                    by_group[group].append(site)
    for found in by_group.values():
        groups.join_all(found)


def _join_stored(project: Project, groups: _Groups, members: list[Site]) -> None:
    """Join ``network.amp = amp`` with the uses of ``self.amp`` in the class of that object."""
    reads: dict[tuple[Class, str], list[Site]] = defaultdict(list)
    for site in members:
        node = amp_expression(site)
        if isinstance(node, ast.Attribute) and site.function.cls is not None:
            for relative in family(site.function.cls):
                reads[relative, node.attr].append(site)
    for site in members if reads else ():
        parent = site.module.tree.parent(site.node)
        if site.kind is Kind.VALUE and isinstance(parent, ast.Assign):
            for target in parent.targets:
                if isinstance(target, ast.Attribute):
                    for cls in project.instance_classes(site.module, target.value):
                        groups.join_all([site, *reads.get((cls, target.attr), ())])


def _join_orphans(project: Project, groups: _Groups) -> None:
    """Join what scales or asks for a scale without an initialize to the one of its file, or to the only one that a program runs beside it.

    What hooks and runners of a library do joins every program that makes a runner.
    """
    hooked: _Hooked | None = None
    found = groups.result()
    starts = [group for group in found if any(s.kind is Kind.INITIALIZE for s in group)]
    for group in found:
        if group in starts or not any(s.kind in _TRAINS for s in group):
            continue
        modules = {site.module for site in group}
        near = [start for start in starts if modules & {site.module for site in start}]
        files = beside(project, *(module.path for module in modules))
        ran = [start for start in starts if any(site.module.path in files for site in start)]
        chosen = near if len(near) == 1 else ran if len(ran) == 1 else []
        if not chosen and hooked is None:
            hooked = _Hooked(project)
        if not chosen and hooked is not None and hooked.holds(group):
            chosen = [start for start in starts if hooked.makes(start)]
        for start in chosen:
            groups.join_all([start[0], group[0]])


class _Hooked:
    """Tells which sites serve the hooks and runners of a library."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._runners = Runners(project, [])
        self._makers = self._runners.makers()

    def holds(self, group: list[Site]) -> bool:
        """Tell whether methods that the library calls hold the sites, or call the functions that do."""
        return bool(self._makers) and any(
            self._runners.reached(function) is not None
            for site in group
            for function in upwards(self._project, site.function)
        )

    def makes(self, start: list[Site]) -> bool:
        """Tell whether the program of an initialize makes a runner."""
        functions = {site.function for site in start if site.kind is Kind.INITIALIZE}
        return any(
            self._makers & reachable(self._project, up)
            for function in functions
            for up in upwards(self._project, function)
        )


def _constant(project: Project, site: Site, value: ast.expr) -> ast.Constant | None:
    """Return the one constant that its function makes an argument of a call, if there is one."""
    return constant_of(project, reaching(project), site.function, value, through_calls=False)


_CASTS = (Kind.IMPORT, Kind.INITIALIZE, *_BY_FILE)
_TRAINS = (
    *(Kind.SCALE_LOSS, Kind.MASTER_PARAMS, Kind.LOSS_SCALE),
    *(Kind.STATE_DICT, Kind.LOAD_STATE_DICT),
)


def _are_idle(project: Project, site: Site, optimizers: list[ast.expr], found: list[Site]) -> bool:
    """Tell whether nothing trains with the optimizers of an initialize, or scales a loss beside it."""
    alone = all(
        other.kind in _CASTS
        or (other.kind is Kind.HANDED_ON and other.name == "apex.amp.initialize")
        for other in found
    )
    return alone and all(is_idle(project, site.module, optimizer) for optimizer in optimizers)


def _near(project: Project, modules: set[Module]) -> frozenset[str] | None:
    """Return the files that some program runs together with some; None where none in sight runs those."""
    paths = {module.path for module in modules}
    ran = programs(project, modules)
    seen = any(acts(program) for program, files in ran.items() if not paths.isdisjoint(files))
    return beside(project, *paths) if seen else None


def make(index: Index, found: list[Site], module_level: bool = False) -> Unit:
    """Make the unit of some sites that belong together."""
    inits: dict[Function, list[Site]] = defaultdict(list)
    options = {}
    for site in found:
        if site.kind is Kind.INITIALIZE:
            options[site] = read(index.project, site, partial(_constant, index.project, site))
            optimizers = elements(options[site].arguments.get("optimizers"))
            options[site].idle = _are_idle(index.project, site, optimizers, found)
            if optimizers and not options[site].idle:
                inits[site.function].append(site)
    modules = {site.module for site in found}
    needing = {s.function for s in found if s.kind not in (Kind.INITIALIZE, Kind.HANDED_ON)}
    switches = [
        site
        for site in index.sites
        if site.kind is Kind.IMPORT
        and site.module in modules
        and site.node in index.availability[site.module].optional.nodes
    ]
    carriers = Carriers(index.project, [] if switches else found)
    given = {}
    if scattered(index.project, inits):
        given = makers(index.project, switches, options, found)
    inits = {} if given else inits
    home = Home(index.project, dict(inits), needing, modules, carriers, module_level)
    seen = _near(index.project, modules)
    near = frozenset(index.project.modules) if seen is None else seen
    trained = (seen is None and index.elsewhere) or any(
        s.kind is Kind.INITIALIZE and s.module.path in near for s in index.sites
    )
    unknown = any(s.name == "initialize" and s.module.path in near for s in index.strangers)
    if not trained and not unknown:
        home.asked = entries(index.project, found)
    home.makers = given
    if trained:
        home.beside.without = Without(index.project, index.sites)
    home.callers.alone = bool(home.asked) or (not options and trained)
    return Unit(
        index.project, found, index.availability, index.forwards, home, options, switches=switches
    )
