"""Looks for what only runs under Apex: from the uses of Apex of a unit to the tests, functions and classes around them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.availability.availability import Availability
from amp_migrate.dual.arms import Arm, arm_of, is_shut, shut, unbound
from amp_migrate.dual.cut import Definition
from amp_migrate.dual.twins import made, wrappers
from amp_migrate.facts.constants import is_none
from amp_migrate.facts.scopes import assigned
from amp_migrate.flow.assumption import NOTHING
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.programs import is_touched_elsewhere

_NEEDS_INITIALIZE = (
    Kind.INITIALIZE, Kind.SCALE_LOSS, Kind.STATE_DICT, Kind.LOAD_STATE_DICT, Kind.HANDED_ON,
)  # fmt: skip


@dataclass(frozen=True, eq=False, slots=True)
class _Use:
    """Something that fails in a run which did not initialize Apex, or initializes it."""

    module: Module
    node: ast.AST
    initializes: bool


class Search:
    """Finds the arms and definitions of a unit that go; `raising` are the arms that initialize Apex.

    `stuck` is a use of Apex that no test chooses, where the search ended at one.
    """

    def __init__(
        self, project: Project, availability: Mapping[Module, Availability], found: list[Site]
    ) -> None:
        self._project = project
        self._availability = availability
        self.found = found
        self.modules = list(dict.fromkeys(site.module for site in found))
        self.arms: list[Arm] = []
        self.raising: list[Arm] = []
        self.definitions: list[tuple[Module, Definition]] = []
        self.stuck: ast.AST | None = None
        self._without = NOTHING
        self._seen: set[Function] = set()
        wrapped = wrappers(project, found)
        self._wrappers = list(dict.fromkeys(wrapped.values()))
        self._initializing = {c for s, c in wrapped.items() if s.kind is Kind.INITIALIZE}
        self._uses = [
            _Use(s.module, s.node, s.kind is Kind.INITIALIZE)
            for s in found
            if _needs_initialize(s) and s not in wrapped
        ]

    def gone(self) -> set[ast.AST]:
        """Return every node that goes."""
        found = {node for arm in self.arms for node in arm.nodes()}
        return found | {n for _, node in self.definitions for n in ast.walk(node)}

    def settle(self) -> bool:
        """Find the arms; those around initialize first, whose tests the others may share."""
        for cls in self._wrappers:
            calls = made(self._project, cls)
            if calls is None:
                return False
            self.definitions.append((cls.module, cls.node))
            makes = cls in self._initializing
            self._uses += [_Use(module, call, makes) for module, call in calls]
        uses = sorted(self._uses, key=lambda use: not use.initializes)
        while uses:
            use = uses.pop(0)
            self.stuck = use.node
            place = self._arm(use.module, use.node)
            if isinstance(place, Arm):
                other = self._opposite(place)
                if other is None:
                    self._add(place, use.initializes)
                else:
                    whole = _Use(place.module, place.node, use.initializes or other in self.raising)
                    self._forget(other)
                    uses.insert(0, whole)
            elif isinstance(place, Function) and place.node is not None:
                more = self._callers(place, use.initializes)
                if more is None:
                    return False
                uses += more
            else:
                return False
        self.stuck = None
        self._add_narrower()
        return bool(self.arms or self._wrappers)

    def covers(self, found: list[Site]) -> bool:
        """Tell whether every use of a unit goes, adding branches that only a test which fails now leads to."""
        for site in found:
            if site.node in self.gone():
                continue
            arm = self._arm(site.module, site.node)
            if isinstance(arm, Arm) and self._asks_for_apex(arm):
                self._add(arm, False)
            elif not self._is_empty(site):
                return False
        return self._add_unbound()

    def empty(self) -> set[ast.AST]:
        """Return the uses of variables that hold `amp` in runs alone which raise from now on, and None in others."""
        gone = self.gone()
        return {s.node for s in self.found if s.node not in gone and self._is_empty(s)}

    def _is_empty(self, site: Site) -> bool:
        """Tell whether a variable that is handed on gets None in all runs that do not raise."""
        node = site.node
        named = site.kind is Kind.VALUE and isinstance(node, ast.Name)
        return named and self._holds_none(site.module, node, frozenset())  # type: ignore[arg-type]

    def _holds_none(self, module: Module, node: ast.Name, seen: frozenset[ast.AST]) -> bool:
        """Tell whether nothing but the branches that raise gives a variable more than None; what was `seen` adds nothing."""
        if isinstance(module.scopes.owner(node), ast.Module) and is_touched_elsewhere(
            self._project, module, node.id
        ):
            return False
        raising = {part for arm in self.raising for part in arm.nodes()}
        bound = [binding for binding in module.scopes.bound(node) if binding not in raising]
        return bool(bound) and all(
            self._is_given_none(module, each, seen.union(bound))
            if isinstance(each, ast.arg)
            else is_none(assigned(module.tree, each))
            for each in bound
            if each not in seen
        )

    def _is_given_none(self, module: Module, taken: ast.arg, seen: frozenset[ast.AST]) -> bool:
        """Tell whether all calls of a function that stay are seen, and leave a parameter at None or hand it what holds that."""
        function, gone = self._project.function_of(module, taken), self.gone()
        default = function.parameters.defaults.get(taken.arg)
        received = self._project.received(function, taken.arg)
        stays = [got for got in received if got.site.call not in gone]
        given = [(got.function.module, got.node or default) for got in stays]
        alone = bool(given) and not self._project.escapes(function)
        return alone and all(
            is_none(value) or (isinstance(value, ast.Name) and self._holds_none(where, value, seen))
            for where, value in given
        )

    def _arm(self, module: Module, node: ast.AST) -> Arm | Function | None:
        return arm_of(self._project, self._availability[module], module, node, self._without)

    def _asks_for_apex(self, arm: Arm) -> bool:
        known = self._availability[arm.module]
        installed = arm.side == "body" and known.known(arm.node.test) is True
        return installed or is_shut(known, arm, self._without)

    def _add_narrower(self) -> None:
        """Add the branches that ask for what raises, or for that and more: ``has_apex and backend == "apex"``."""
        for arm in [a for a in self.raising if isinstance(a.node, ast.If)]:
            known = self._availability[arm.module]
            without = shut(known, arm)
            function = self._project.function_of(arm.module, arm.node)
            for node in function.own_nodes:
                for narrower in self._sides(arm.module, node) if node is not arm.node else ():
                    if is_shut(known, narrower, without) and node not in self.gone():
                        self._add(narrower, False)

    def _sides(self, module: Module, node: ast.AST) -> Iterator[Arm]:
        """Yield the body of an ``if``, or the sides of a conditional expression that call something of Apex."""
        if isinstance(node, ast.If):
            yield Arm(module, node, "body")
        elif isinstance(node, ast.IfExp):
            for side, part in (("body", node.body), ("orelse", node.orelse)):
                calls = (n for n in ast.walk(part) if isinstance(n, ast.Call))
                if any(self._project.apex(module, call.func) for call in calls):
                    yield Arm(module, node, side)

    def _opposite(self, arm: Arm) -> Arm | None:
        """Return the other side of the same test, where that goes as well."""
        return next((a for a in self.arms if a.node is arm.node and a.side != arm.side), None)

    def _forget(self, arm: Arm) -> None:
        for kept in (self.arms, self.raising):
            if arm in kept:
                kept.remove(arm)

    def _add(self, arm: Arm, initializes: bool) -> None:
        for kept in (self.arms, self.raising):
            if arm not in kept and (initializes or kept is self.arms):
                kept.append(arm)
        self._without = shut(self._availability[arm.module], arm, self._without)

    def _callers(self, function: Function, initializes: bool) -> list[_Use] | None:
        """Return the calls of a function that always uses Apex; None where they are not all known."""
        if function in self._seen:
            return []
        self._seen.add(function)
        calls = self._project.callers(function)
        if not ((calls and self._is_plain(function)) or _is_test(function)):
            return None
        if function.node is None or function.is_property or function.name.startswith("__"):
            return None
        if any(self._project.callees(call.call) != [function] for call in calls):
            return None
        self.definitions.append((function.module, function.node))
        return [_Use(call.function.module, call.call, initializes) for call in calls]

    def _is_plain(self, function: Function) -> bool:
        """Tell whether no decorator hands a function on but those that the project defines itself."""
        if function.node is None:
            return False
        made = [self._project.resolve(function.module, d) for d in function.node.decorator_list]
        named = [isinstance(d, ast.Name) for d in function.node.decorator_list]
        return all(named) and all(isinstance(f, Function) for f in made)

    def _add_unbound(self) -> bool:
        """Add the branches that read a variable which only what goes has set."""
        while (use := next(unbound(self.modules, self.gone()), None)) is not None:
            arm = self._arm(*use)
            if not isinstance(arm, Arm):
                return False
            self._add(arm, False)
        return True


def _is_test(function: Function) -> bool:
    file = function.module.path.rpartition("/")[2]
    in_tests = file.startswith("test_") or file.endswith("_test.py")
    return in_tests and function.name.startswith("test_")


def _needs_initialize(site: Site) -> bool:
    if site.kind is Kind.LOSS_SCALE:
        return any(
            isinstance(node, ast.Attribute) and node.attr == "loss_scalers"
            for node in ast.walk(site.node)
        )
    return site.kind in _NEEDS_INITIALIZE
