"""What runs in the blocks of `amp.disable_casts()`: a native block inside them would switch casts on again."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property

from amp_migrate.apex.sites import Kind, Site, sites
from amp_migrate.autocast.running import Running
from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import all_given, walk
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.reach import reachable, reached_by
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.contexts import entered
from amp_migrate.training.region import Region

_NAME = "disable_casts"
_MAKERS = frozenset({"apex.amp.disable_casts", "apex.amp.handle.disable_casts"})


class Disabled:
    """The calls in blocks without casts, and the functions that those run."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self.calls: set[ast.Call] = set()
        self._sites: dict[Function, Site] = {}
        self._unsure: Site | None = None
        for site in _sites(unit):
            blocks = Blocks(unit, site)
            if not blocks.known:
                self._unsure = site
            for block in blocks.found:
                for node in (n for stmt in block for n in walk(stmt)):
                    if isinstance(node, ast.Call):
                        self.calls.add(node)
                        for function in closure(_run(unit.project, node), self._stepping):
                            self._sites.setdefault(function, site)
        self._only = self._only_there(unit.project)

    def _stepping(self, function: Function) -> Iterator[Function]:
        """Yield what runs as a function lets optimizers step by closures."""
        for call in function.calls:
            if self._steps(function.module, call):
                yield from _run(self._unit.project, call)

    def _steps(self, module: Module, call: ast.Call) -> bool:
        """Tell whether a call steps an optimizer by what it is given."""
        func = call.func
        if not isinstance(func, ast.Attribute) or func.attr != "step" or not all_given(call):
            return False
        return bool(self._unit.losses.objects.optimizers_of(module, func.value))

    def _run_at(self, project: Project, function: Function) -> list[tuple[Function, ast.Call]]:
        """Return the calls that run a function, the steps of which it is the closure included; none where more may."""
        found = [(site.function, site.call) for site in project.callers(function)]
        for where, node, _ in project.escapes(function):
            call = where.module.tree.parent(node)
            if not isinstance(call, ast.Call) or not self._steps(where.module, call):
                return []
            found.append((where, call))
        return found

    def holds(self, region: Region) -> bool:
        """Tell whether a region runs in such blocks alone, so that it needs no casts."""
        nodes = (node for stmt in region.statements() for node in walk(stmt))
        calls = {node for node in nodes if isinstance(node, ast.Call)}
        return region.function in self._only or (bool(calls) and calls <= self.calls)

    def _only_there(self, project: Project) -> set[Function]:
        run_at = {f: self._run_at(project, f) for f in self._sites}
        found = {f for f, places in run_at.items() if places}
        while True:
            kept = {
                function
                for function in found
                if all(call in self.calls or where in found for where, call in run_at[function])
            }
            if kept == found:
                return found
            found = kept

    def runs(self, function: Function) -> bool:
        """Tell whether a function may run in such a block."""
        return function in self._sites

    def uncast(self) -> frozenset[ast.Call]:
        """Return the calls in such blocks in which no `scale_loss` runs: a GradScaler that is off serves them."""
        if not self.calls or self._unsure is not None:
            return frozenset()
        project = self._unit.project
        running = Running(project, frozenset(s.node for s in self._unit.of(Kind.SCALE_LOSS)))
        around = {call: project.holder(call) for call in self.calls}
        return frozenset(call for call, f in around.items() if not running.may_come(f, call))

    def shared(self, calls: Iterable[ast.Call]) -> frozenset[Function]:
        """Return the functions that some calls in such blocks run, and others elsewhere."""
        reached = (reached_by(self._unit.project, call) for call in calls)
        return frozenset().union(*reached) - self._only

    def borrows(self, function: Function, above: frozenset[Function] = frozenset()) -> bool:
        """Tell whether a function is given a scaler that is off by whatever runs it in such a block."""
        home = self._unit.home
        if function not in home.threads:
            return False
        return all(
            site.call in home.beside.uncast
            if site.call in self.calls
            else site.function in above
            or not self.runs(site.function)
            or self.borrows(site.function, above | {function})
            for site in self._unit.project.callers(function)
        )

    def refuse(self, cast: Iterable[Region]) -> None:
        """Leave the unit where a function that runs in such a block is to have casts of its own, or may run in one."""
        if self._unsure is not None:
            raise Cannot(
                "AMP904",
                self._unsure.module,
                self._unsure.node,
                "it is not known which code always runs without casts by this",
                "write `with amp.disable_casts():` around that code, and call it without elsewhere, then run again",
            )
        for region in cast:
            site = self._sites.get(region.function)
            if site is not None and not self.borrows(region.function):
                name = region.function.name
                raise Cannot(
                    "AMP904",
                    *site.at,
                    f"{name}() runs without casts here and with them elsewhere, and an autocast block in it would "
                    "switch them on here too",
                    f"call a function of its own here, with the body of {name}(), then run again",
                )


def _run(project: Project, node: ast.Call) -> list[Function]:
    """Return what a call reaches, by itself and by the functions that it hands to code out of sight."""
    handed = program_of(project).calls.handed(node)
    return [*reached_by(project, node), *(g for f in handed for g in (f, *reachable(project, f)))]


def _sites(unit: Unit) -> Iterator[Site]:
    for module in unit.near:
        if any(module.tree.attributes(_NAME)) or any(
            alias.name == _NAME
            for node in module.tree.nodes(ast.ImportFrom)
            for alias in node.names
        ):
            yield from (s for s in sites(unit.project, module) if s.kind is Kind.DISABLE_CASTS)


class Blocks:
    """The statements that run inside of one `disable_casts()`.

    `known` tells whether these are all of them, and run inside of it whenever AMP is on.
    """

    def __init__(self, unit: Unit, site: Site) -> None:
        self._unit = unit
        self._site = site
        own = site.node if isinstance(site.node, ast.expr) else None
        self._objects = unit.project.values.groups(site.module, own) if own else frozenset()
        self.found: list[list[ast.stmt]] = []
        self.known = True
        self._generators: set[Function] = set()
        self._decorated()
        for module in unit.project.modules.values():
            blocks: Iterable[ast.With | ast.AsyncWith] = module.tree.nodes(ast.With, ast.AsyncWith)
            for block in blocks:
                self._with(module, block)
        while self._generators:
            self._managed(self._generators.pop())
        self.known = self.known and bool(self.found)

    def _decorated(self) -> None:
        statement = self._site.module.tree.statement(self._site.node)
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            self.found.append(statement.body)

    def _with(self, module: Module, block: ast.With | ast.AsyncWith) -> None:
        for item in block.items:
            self._take(module, item.context_expr, block.body)
        for stmt, given in entered(block):
            self._take(module, given, block.body[block.body.index(stmt) + 1 :])

    def _take(self, module: Module, node: ast.expr, body: list[ast.stmt]) -> None:
        """Take a block that a context is around, if that may be the one of the site."""
        values = self._unit.project.values
        if node is not self._site.node and not self._objects & values.groups(module, node):
            return
        made = frozenset(values.made_by(module, node)) - self._without_amp
        if node is not self._site.node and not made <= _MAKERS:
            self.known = False
        self._add(module, body)

    def _add(self, module: Module, body: list[ast.stmt]) -> None:
        self.found.append(body)
        inside = {node for stmt in body for node in walk(stmt)}
        if any(isinstance(node, ast.Yield) for node in inside):
            function = self._unit.project.function_of(module, body[0])
            everywhere = (n for n in function.own_nodes if isinstance(n, ast.Yield))
            self.known = self.known and inside >= set(everywhere)
            self._generators.add(function)

    def _managed(self, function: Function) -> None:
        """Take the blocks that a generator is the context of."""
        project = self._unit.project
        for site in project.callers(function):
            module = site.function.module
            up = module.tree.parent(site.call)
            block = module.tree.parent(up) if isinstance(up, ast.withitem) else None
            if isinstance(block, ast.With | ast.AsyncWith) and project.callees(site.call) == [
                function
            ]:
                self._add(module, block.body)
            else:
                self.known = False

    @cached_property
    def _without_amp(self) -> frozenset[str]:
        """What makes the contexts that stand for the one of the site where AMP is off."""
        module, values = self._site.module, self._unit.project.values
        up = module.tree.parent(self._site.node)
        if not isinstance(up, ast.IfExp) or up.test is self._site.node:
            return frozenset()
        asked = [
            (init.module, guard.test)
            for init in self._unit.of(Kind.INITIALIZE)
            for guard in init.module.tree.ancestors(init.node)
            if isinstance(guard, ast.If)
        ]
        if not any(values.same(module, up.test, *guard) for guard in asked):
            return frozenset()
        other = up.orelse if up.body is self._site.node else up.body
        return frozenset(values.made_by(module, other))
