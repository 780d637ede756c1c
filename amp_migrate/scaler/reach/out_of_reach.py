"""Why the GradScaler cannot be had where it is needed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from amp_migrate.apex.sites import Site
from amp_migrate.availability.handed import Maker
from amp_migrate.plan.cannot import Cannot, OutOfReach, place_of, spoken
from amp_migrate.plan.model import Place
from amp_migrate.project import CallSite, Function, Project
from amp_migrate.project.order import dominates, exclusive, levels
from amp_migrate.project.reach import reached_by, runs_one
from amp_migrate.project.relatives import family
from amp_migrate.project.rounds import runs_before


@dataclass(frozen=True, eq=False, slots=True)
class Inits:
    """Where a unit initializes, by function: what runs behind one of them can have the scaler that it makes."""

    project: Project
    sites: Mapping[Function, list[Site]]

    @property
    def places(self) -> tuple[Place, ...]:
        """Where they stand."""
        return tuple(site.place for sites in self.sites.values() for site in sites)

    def unreachable(
        self, function: Function, node: ast.AST, reason: str, named: tuple[Place, ...] = ()
    ) -> Cannot:
        """Return the refusal of a function that the scaler cannot be handed to; `reason` may name places."""
        who = spoken(function)
        made = self.places
        places = ", ".join(map(str, made))
        if not made:
            message = f"nothing in the files given calls amp.initialize, so {who} has no GradScaler to use"
            advice = (
                "give amp-migrate the files that call amp.initialize as well; where nothing does, Apex refuses "
                "amp.scale_loss: write loss.backward() in its place"
            )
        elif function.node is None:
            message = f"{who} needs the GradScaler here, and no amp.initialize runs before"
            advice = f"call amp.initialize before this line (as at {places}), with enabled=False where AMP is off, then run again"
            helper = next(self._helpers(node), None)
            if helper is not None:
                maker, caller = helper
                message = f"{who} runs what needs the GradScaler, which {spoken(maker)} makes for itself alone ({places})"
                advice = f"call amp.initialize in {spoken(caller)} itself instead of in {spoken(maker)}, then run again"
        else:
            message = (
                f"{who} needs the GradScaler that amp.initialize becomes ({places}), but {reason}"
            )
            advice = f"give amp-migrate the files that call {who} as well, or delete it where nothing does"
            if named:
                advice = f"let code of the files given call {who} itself, or bring it and amp.initialize into one file, then run again"
        kind = OutOfReach if made else Cannot
        return kind("AMP901", function.module, node, message, advice, (*made, *named))

    def made_before(self, call: CallSite, above: frozenset[Function] = frozenset()) -> bool:
        """Tell whether a call finds the scaler that its function makes, or a constructor that of a method of its object.

        Where the calls of its function come out of one that makes it, or of a constructor, these must have made it.
        """
        function = call.function
        sites = self.sites.get(function)
        if sites:
            return any(_may_serve(self.project, function, site.node, call.call) for site in sites)
        if function.cls is not None and function.name == "__init__":
            relatives = family(function.cls)
            makers = {f for f in self.sites if f.cls in relatives and f is not function}
            if makers:
                before = _before(self.project, function, call.call)
                return any(runs_one(self.project, node, makers) for node in before)
        every = set(self.sites)
        if any(runs_one(self.project, node, every) for node in function.calls):
            before = _before(self.project, function, call.call)
            return any(runs_one(self.project, node, every) for node in before)
        above |= {function}
        outer = (site for site in self.project.callers(function) if site.function not in above)
        return all(self.made_before(site, above) for site in outer)

    def entered_unmade(self, users: set[Function]) -> bool:
        """Tell whether a call that is seen comes to a user of the scaler from where nothing made one before."""
        passed: dict[Function, bool] = {}
        return any(
            not self._passes(call.function, call.call, passed)
            for user in users - set(self.sites)
            for call in self.project.callers(user)
        )

    def is_made_at(self, function: Function, node: ast.AST) -> bool:
        """Tell whether a run that comes to a node of a function may have initialized before, however it came there."""
        sites = self.sites.get(function)
        if sites:
            return any(_may_serve(self.project, function, site.node, node) for site in sites)
        return self._passes(function, node, {})

    def _helpers(self, node: ast.AST) -> Iterator[tuple[Function, Function]]:
        """Yield the functions that initialize in what a call runs, with those that call them."""
        run = reached_by(self.project, node)
        for maker in self.sites:
            for site in self.project.callers(maker) if maker.cls is None else ():
                if site.function in run:
                    yield maker, site.function

    def _passes(self, function: Function, node: ast.AST, passed: dict[Function, bool]) -> bool:
        makers = set(self.sites)
        before = _before(self.project, function, node)
        if function in makers or any(runs_one(self.project, n, makers) for n in before):
            return True
        if function not in passed:
            passed[function] = True
            calls = self.project.callers(function)
            passed[function] = bool(calls) and all(
                self._passes(outer.function, outer.call, passed) for outer in calls
            )
        return passed[function]


def refuse_before(
    project: Project, makers: Sequence[ast.AST], function: Function, node: ast.AST
) -> None:
    """The creation climbs out of its guards until it comes before every use; that must be possible.

    `makers` are the initializes of the function, or its calls that hand the scaler back.
    """
    tree = function.module.tree
    if function.node is None and tree.function(node) is not None:
        return
    if not any(_may_serve(project, function, maker, node) for maker in makers):
        raise OutOfReach(
            "AMP901",
            *function.at(node),
            "this needs the GradScaler, which amp.initialize makes only later",
            "move amp.initialize above this line, then run again",
        )


def _may_serve(project: Project, function: Function, maker: ast.AST, node: ast.AST) -> bool:
    """Tell whether what a call makes is there at a node, if it is made in front of the tests that part the two."""
    tree = function.module.tree
    guards = (level for level in levels(tree, maker) if isinstance(level, ast.If))
    parted = exclusive(tree, maker, node) or any(dominates(tree, g, node) for g in guards)
    if parted or isinstance(node, ast.Return):
        return True
    return runs_before(project, function, maker, node, exceptions=True)  # in a handler, too


def moments(project: Project, begins: Sequence[ast.AST], function: Function) -> list[ast.AST]:
    """Return where a function runs that stands above what initializes in the one around it, if all of that is seen.

    What it reads of the variables around it counts when it is called, not where it is defined.
    """
    tree = function.module.tree
    above = begins and not any(
        dominates(tree, tree.statement(node), function.node or node) for node in begins
    )
    if not above or project.escapes(function):
        return []
    calls = project.calls_of(function)
    inside = all(call.function is function.parent and not call.partial for call in calls)
    return [call.call for call in calls] if inside else []


def refuse_unswitched(maker: Maker, node: ast.AST) -> None:
    """Raise `Cannot` where the scaler is needed before it is known whether it is to be enabled."""
    module = maker.function.module
    if not dominates(module.tree, maker.switch, node):
        switch = place_of(module, maker.switch)
        raise Cannot(
            "AMP901",
            module,
            node,
            f"this needs the GradScaler, and whether AMP is on is decided only later, at {switch}",
            "move that test above this line, then run again",
            (switch,),
        )


def _before(project: Project, function: Function, node: ast.AST) -> list[ast.Call]:
    calls = function.calls
    return [n for n in calls if runs_before(project, function, n, node)]


def refuse_hidden(function: Function, node: ast.AST, text: str) -> None:
    """Raise `Cannot` where a parameter of a closure hides what holds the scaler outside of it."""
    root = text.partition(".")[0]
    if "." in text and root in function.parameters.names:
        raise Cannot(
            "AMP901",
            *function.at(node),
            f"the parameter `{root}` of {function.qualname}() hides the `{root}` that holds the GradScaler",
            f"rename the parameter `{root}` of {function.qualname}(), and in calls that give it by its name, then run again",
        )
