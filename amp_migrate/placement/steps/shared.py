"""Steps in helpers that one backward feeds together with other steps: their callers write the one `update()`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from amp_migrate.facts.paths import defs, uses
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.steps.indirect import anchored, seen
from amp_migrate.plan.cannot import Cannot, spoken
from amp_migrate.project import CallSite, Function
from amp_migrate.project.order import inside, levels
from amp_migrate.project.reach import calls_to
from amp_migrate.project.rounds import may_follow, runs_before
from amp_migrate.protocol.code.turns import turns_of
from amp_migrate.training.steps import Step, is_one


@dataclass(eq=False, slots=True)
class Shared:
    """The functions that step without `update()`, and their calls, as steps of the functions that have it."""

    functions: set[Function] = field(default_factory=set)
    calls: dict[Function, list[Step]] = field(default_factory=dict)


def shared(unit: Unit) -> Shared:
    """Return the helpers that only step, with a backward of their callers that further steps need too.

    Raises `Cannot` where only some of their callers step further.
    """
    finder = _Finder(unit)
    result = Shared()
    for helper in finder.helpers:
        staying = unit.home.beside.leaving
        sites = [s for s in unit.project.callers(helper) if s.function.module.path not in staying]
        together = [site for site in sites if finder.is_shared(helper, site)]
        if not together:
            continue
        if len(together) < len(sites):
            alone = next(site for site in sites if site not in together)
            raise Cannot(
                "AMP905",
                *alone.function.at(alone.call),
                f"{spoken(helper)} is the only step here, and elsewhere one of several after one backward",
                f"step the optimizers where the backward runs instead of in {spoken(helper)}, then run again",
            )
        result.functions.add(helper)
        for site in together:
            result.calls.setdefault(site.function, []).extend(finder.steps(helper, site))
    return result


class _Finder:
    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._trained = {b.function for b in [*unit.backwards, *unit.probes]}
        self._turns = turns_of(unit.project)
        self._only = self._step_only()
        self.helpers = [*self._only, *filter(self._leaves_some, self._training())]

    def _step_only(self) -> list[Function]:
        """Return the functions that step, themselves or by such a function, and run no backward."""
        stack = list(dict.fromkeys(s.function for s in self._unit.live_steps()))
        found: dict[Function, None] = {}
        while stack:
            function = stack.pop(0)
            if function in found or function.node is None or any(self._backwards(function)):
                continue
            found[function] = None
            stack += [site.function for site in self._unit.project.callers(function)]
        return list(found)

    def _training(self) -> list[Function]:
        """Return the functions that run a backward themselves, and step behind it."""
        found = dict.fromkeys(s.function for s in self._unit.live_steps())
        return [f for f in found if f.node is not None and f not in self._only]

    def _leaves_some(self, function: Function) -> bool:
        """Tell whether all that a function steps comes behind its backward passes, one of which feeds further optimizers."""
        own = list(self._unit.live_backwards(function))
        if not own or len(list(self._backwards(function))) != len(own):
            return False
        steps = self._unit.live_steps(function)
        if any(
            may_follow(self._unit.project, function, s.call, b.node) for s in steps for b in own
        ):
            return False
        return any(
            not any(is_one(self._unit.project, function.module, o, s.optimizer) for s in steps)
            for b in own
            for o in b.optimizers
        )

    def _backwards(self, function: Function, *, gone: bool = False) -> Iterator[ast.AST]:
        """Yield what runs a backward in a function, with `gone` also in arms that go."""
        for backward in self._unit.backwards_of(function):
            if gone or backward.node not in self._unit.gone:
                yield backward.node
        for node in calls_to(self._unit.project, function, self._trained):
            if gone or node not in self._unit.gone:
                yield node

    def _steps(self, function: Function) -> list[ast.AST]:
        """Return what steps in a function: steps, and calls of functions that only step."""
        found: list[ast.AST] = [s.call for s in self._unit.live_steps(function)]
        for node in function.calls:
            if node not in self._unit.gone:
                if any(callee in self.helpers for callee in self._unit.project.callees(node)):
                    found.append(node)
        return found

    def steps(self, helper: Function, site: CallSite) -> list[Step]:
        """Return the steps that a call takes, each of the optimizer as the caller names it, or of the call itself."""
        module, anchor = site.function.module, self.anchor(site)
        if anchor is module.tree.statement(site.call):
            anchor = anchored(self._unit, site)
        own = self._unit.live_steps(helper)
        named = [step.text for s in own if (step := seen(self._unit, s, site)) is not None]
        optimizers = [ast.parse(text, mode="eval").body for text in named]
        if len(optimizers) < len(own) or not own:
            optimizers = [site.call]
        return [Step(module, site.function, site.call, node, anchor) for node in optimizers]

    def is_shared(self, helper: Function, site: CallSite) -> bool:
        """Tell whether a call of a helper steps on gradients of a backward that the step of another optimizer needs too."""
        tree = site.function.module.tree
        if helper in self._only and self.anchor(site) is not tree.statement(site.call):
            return True
        backwards = list(self._backwards(site.function, gone=True))
        for other in self._steps(site.function):
            if other is site.call or self._is_again(helper, site, other):
                continue
            ways = [(site.call, other), *([(other, site.call)] if helper in self._only else [])]
            if any(runs_before(self._unit.project, site.function, *w, backwards) for w in ways):
                return True
        return False

    def _is_again(self, helper: Function, site: CallSite, other: ast.AST) -> bool:
        """Tell whether what else steps is another call of a helper that has one optimizer, the same by both."""
        calls = [s for s in self._unit.project.calls_of(helper) if s.call is other]
        named = {ast.unparse(s.optimizer) for c in (site, *calls) for s in self.steps(helper, c)}
        variables = {name.partition(".")[0] for name in named}
        scope = site.function.scope
        bound = site.function.module.scopes.bindings
        return bool(calls) and len(named) == 1 and all(len(bound(scope, v)) == 1 for v in variables)

    def anchor(self, site: CallSite) -> ast.stmt:
        """Return the statement of a call, or the outermost loop over what it steps that runs no backward."""
        tree = site.function.module.tree
        found = tree.statement(site.call)
        backwards = list(self._backwards(site.function))
        for level in levels(tree, site.call):
            if isinstance(level, ast.For) and defs(level.target) & uses(site.call):
                once = self._turns.once(site.function, level)
                if not once and not any(inside(tree, b, level) for b in backwards):
                    found = level
        return found
