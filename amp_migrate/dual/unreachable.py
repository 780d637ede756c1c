"""Programs with a native way of their own: what no run reaches once choosing Apex raises."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.availability.availability import Availability
from amp_migrate.availability.choosing import announces, answers, chooses, may_be_off
from amp_migrate.dual.arms import Arm, arm_of, conditions, parts, unbound
from amp_migrate.dual.dual import beside_native, is_native, native_under
from amp_migrate.dual.twins import chosen_beside_native, made, wrapper_of
from amp_migrate.facts.paths import walk
from amp_migrate.project import Class, Function, Module, Project

_NEEDS_INITIALIZE = (
    Kind.INITIALIZE,
    Kind.SCALE_LOSS,
    Kind.STATE_DICT,
    Kind.LOAD_STATE_DICT,
    Kind.HANDED_ON,
)


@dataclass(eq=False, slots=True)
class Unreachable:
    """What goes: `raising` are the arms that initialize Apex, which raise instead.

    `definitions` are functions that only run under Apex, `guards` the imports that tell others it is there.
    `why` says by which right.
    """

    why: str = "native AMP stands beside it"
    sites: list[Site] = field(default_factory=list)
    arms: list[Arm] = field(default_factory=list)
    raising: list[Arm] = field(default_factory=list)
    definitions: list[Function] = field(default_factory=list)
    wrappers: list[Class] = field(default_factory=list)
    aliases: list[tuple[Module, ast.ImportFrom, str]] = field(default_factory=list)
    guards: list[tuple[Module, ast.Try]] = field(default_factory=list)

    def nodes(self) -> set[ast.AST]:
        """Return every node that goes."""
        found = {node for arm in self.arms for node in arm.nodes()}
        for function in self.definitions:
            found |= set(ast.walk(function.scope))
        for cls in self.wrappers:
            found |= set(ast.walk(cls.node))
        for _, guard in self.guards:
            found |= set(ast.walk(guard))
        return found


def unreachable(
    project: Project,
    availability: Mapping[Module, Availability],
    found: list[Site],
    everywhere: Iterable[Site],
) -> Unreachable | None:
    """Return what goes from a unit that has native AMP beside each scale_loss; None where that is not certain.

    Apex raises where it is used without amp.initialize. So a branch that always uses it is only entered by
    runs that initialized, and those raise from now on; what stays is what all other runs did before.
    """
    everywhere = list(everywhere)
    if not all(_has_native(project, s) for s in found if s.kind is Kind.SCALE_LOSS):
        return None
    made_here = [s for s in found if s.kind is Kind.INITIALIZE]
    scales = any(s.kind is Kind.SCALE_LOSS for s in found)
    if any(map(may_be_off, made_here)):
        return None
    if not scales and not all(chosen_beside_native(project, s) for s in made_here):
        return None
    search = _Search(project, availability, found)
    if not search.settle() or not search.covers(found):
        return None
    result = search.result
    result.guards = [
        (m, node) for m in search.modules for node in m.tree.nodes(ast.Try) if announces(node)
    ]
    gone = result.nodes()
    if not _independent(project, result, gone) or not _unused(project, result, gone):
        return None
    if not _can_choose(project, result):
        return None
    for m in search.modules:
        known = answers(availability[m], [s for s in everywhere if s.module is m])
        if chooses(known, m, gone):
            return None
    result.sites = [s for s in everywhere if s in found or s.node in gone]
    return result


def _has_native(project: Project, site: Site) -> bool:
    """Tell whether a scale_loss has native AMP beside it: in another branch, or under a test of its own."""
    if beside_native(project, site) is not None or wrapper_of(project, site) is not None:
        return True
    tree = site.module.tree
    own = conditions(tree, site.node)
    for node in walk(site.function.scope):
        if isinstance(node, ast.Call) and is_native(project, site.module, node):
            native = conditions(tree, node)
            if ast.unparse(node.func).endswith(".scale") and native and not own <= native:
                return True
    return False


class _Search:
    """Finds the arms and functions of a unit, from its uses of Apex to the callers of its functions."""

    def __init__(
        self, project: Project, availability: Mapping[Module, Availability], found: list[Site]
    ) -> None:
        self.project = project
        self.availability = availability
        self.modules = list(dict.fromkeys(site.module for site in found))
        self.result = Unreachable()
        self._tests: set[str] = set()
        wrapped = {s: cls for s in found if (cls := wrapper_of(project, s)) is not None}
        self.result.wrappers = list(dict.fromkeys(wrapped.values()))
        self._uses: list[tuple[Module, ast.AST, bool]] = [
            (s.module, s.node, s.kind is Kind.INITIALIZE)
            for s in found
            if _needs_initialize(s) and s not in wrapped
        ]
        self._seen: set[Function] = set()

    def settle(self) -> bool:
        """Find the arms; those around initialize first, whose tests the others may share."""
        for cls in self.result.wrappers:
            calls = made(self.project, cls)
            if calls is None:
                return False
            self._uses += [(module, call, False) for module, call in calls]
        uses = sorted(self._uses, key=lambda use: not use[2])
        while uses:
            module, node, initializes = uses.pop(0)
            place = arm_of(self.project, self.availability[module], module, node, self._tests)
            if isinstance(place, Arm) and (other := self._opposite(place)) is not None:
                initializes |= other in self.result.raising
                self._forget(other)
                uses.insert(0, (module, place.node, initializes))
            elif isinstance(place, Arm):
                self._add(place, initializes)
            elif isinstance(place, Function) and place.node is not None:
                more = self._callers(place, initializes)
                if more is None:
                    return False
                uses += more
            else:
                return False
        self._add_narrower()
        return bool(self.result.arms or self.result.wrappers)

    def _add_narrower(self) -> None:
        """Add the branches that ask for what raises and more: ``has_apex and backend == "apex"``."""
        for arm in [a for a in self.result.raising if isinstance(a.node, ast.If)]:
            test = ast.dump(arm.node.test)
            function = self.project.function_of(arm.module, arm.node)
            for node in walk(function.scope):
                if isinstance(node, ast.If) and node is not arm.node:
                    narrower = parts(node.test) - {test}
                    if narrower and test in parts(node.test) and node not in self.result.nodes():
                        self._add(Arm(arm.module, node, "body"), False)

    def _opposite(self, arm: Arm) -> Arm | None:
        """Return the other side of the same test, where that goes as well."""
        return next(
            (a for a in self.result.arms if a.node is arm.node and a.side != arm.side), None
        )

    def _forget(self, arm: Arm) -> None:
        for kept in (self.result.arms, self.result.raising):
            if arm in kept:
                kept.remove(arm)

    def _add(self, arm: Arm, initializes: bool) -> None:
        for kept in (self.result.arms, self.result.raising):
            if arm not in kept and (initializes or kept is self.result.arms):
                kept.append(arm)
        if arm.side == "body":
            self._tests.add(ast.dump(arm.node.test))

    def _callers(
        self, function: Function, initializes: bool
    ) -> list[tuple[Module, ast.AST, bool]] | None:
        """Return the calls of a function that always uses Apex; None where they are not all known."""
        if function in self._seen:
            return []
        self._seen.add(function)
        calls = self.project.callers(function)
        if not ((calls and self._is_plain(function)) or _is_test(function)):
            return None
        if function.is_property or function.name.startswith("__"):
            return None
        if any(self.project.callees(call.call, call.function) != [function] for call in calls):
            return None
        self.result.definitions.append(function)
        return [(call.function.module, call.call, initializes) for call in calls]

    def _is_plain(self, function: Function) -> bool:
        """Tell whether no decorator hands a function on but those that the project defines itself."""
        if function.node is None:
            return False
        made = [self.project.resolve(function.module, d) for d in function.node.decorator_list]
        named = [isinstance(d, ast.Name) for d in function.node.decorator_list]
        return all(named) and all(isinstance(f, Function) for f in made)

    def covers(self, found: list[Site]) -> bool:
        """Tell whether every use of a unit goes, adding branches that only a known test leads to."""
        for site in found:
            if site.node in self.result.nodes():
                continue
            arm = arm_of(
                self.project, self.availability[site.module], site.module, site.node, self._tests
            )
            if not isinstance(arm, Arm) or arm.side != "body" or not self._is_known(arm):
                return False
            self._add(arm, False)
        return self._unbound()

    def _is_known(self, arm: Arm) -> bool:
        known = self.availability[arm.module].known(arm.node.test)
        return known is True or ast.dump(arm.node.test) in self._tests

    def _unbound(self) -> bool:
        """Add the branches that read a variable which only what goes has set."""
        while True:
            gone = self.result.nodes()
            use = next(unbound(self.modules, gone), None)
            if use is None:
                return True
            module, node = use
            arm = arm_of(self.project, self.availability[module], module, node, self._tests)
            if not isinstance(arm, Arm):
                return False
            self._add(arm, False)


def _is_test(function: Function) -> bool:
    file = function.module.path.rpartition("/")[2]
    in_tests = file.startswith("test_") or file.endswith("_test.py")
    return in_tests and function.name.startswith("test_")


def _needs_initialize(site: Site) -> bool:
    if site.kind is Kind.LOSS_SCALE:
        return "loss_scalers" in ast.unparse(site.node)
    return site.kind in _NEEDS_INITIALIZE


def _independent(project: Project, result: Unreachable, gone: set[ast.AST]) -> bool:
    """Tell whether native AMP runs without what raises: it stands in no branch that goes, nor under its test."""
    for module in project.modules.values():
        for node in module.tree.nodes(ast.Call):
            if node in gone and is_native(project, module, node):
                return False
    return not any(
        arm.side == "body" and native_under(project, arm.module, arm.node.test)
        for arm in result.raising
    )


def _can_choose(project: Project, result: Unreachable) -> bool:
    """Tell whether each program that initialized Apex has a native way: several do not share that of one."""
    programs = {arm.module for arm in result.raising}
    if len(programs) > 1:
        return all(_holds_native(project, module) for module in programs)
    first = [*programs, *(m for m in project.modules.values() if m not in programs)]
    return any(_holds_native(project, module) for module in first)


def _holds_native(project: Project, module: Module) -> bool:
    return any(is_native(project, module, node) for node in module.tree.nodes(ast.Call))


def _unused(project: Project, result: Unreachable, gone: set[ast.AST]) -> bool:
    """Tell whether nothing that stays names a function that goes; the imports of its name go too."""
    names = {f.name for f in result.definitions} | {c.name for c in result.wrappers}
    for module in project.modules.values() if names else ():
        named = [n for n in module.tree.nodes(ast.Name) if n.id in names]
        attributes = [n for n in module.tree.nodes(ast.Attribute) if n.attr in names]
        texts = [n for n in module.tree.nodes(ast.Constant) if n.value in names]
        if any(node not in gone for node in (*named, *attributes, *texts)):
            return False
        for statement in module.tree.nodes(ast.ImportFrom):
            for alias in statement.names:
                if alias.name in names and statement not in gone:
                    result.aliases.append((module, statement, alias.name))
    return True
