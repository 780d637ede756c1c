"""Where casts are on in native code: inside autocast blocks, and in what they call."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from enum import Enum

from amp_migrate.check.apex.courses import handed, of_one_kind, runs_each
from amp_migrate.check.apex.facts import Facts
from amp_migrate.check.casts.enabled import Enabled
from amp_migrate.facts.closure import spread
from amp_migrate.facts.paths import argument
from amp_migrate.project import Class, Function
from amp_migrate.project.once import kept
from amp_migrate.project.reach import reachable
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.beliefs import AUTOCASTS
from amp_migrate.training.contexts import around, entered
from amp_migrate.training.origins.meant import held


class Casts(Enum):
    """Whether casts are on at a place."""

    ON = "on"
    OFF = "off"
    UNKNOWN = "unknown"


class Casting:
    """Follows autocast blocks under an assumption; `made` is what holds where GradScalers are made, if that is more."""

    def __init__(self, program: Program, known: Facts, made: Facts | None = None) -> None:
        self._program = program
        self.project = program.project
        self.enabled = Enabled(program, known, made or known)
        self._within: set[ast.Call] = set()
        self._blocks: dict[ast.AST, list[tuple[ast.expr, ...]] | None] = kept(
            program.project, (Casting, program), dict
        )
        self._asked: set[ast.expr] = set()

    def here(self, function: Function, node: ast.AST) -> Casts | None:
        """Return what the blocks of a function around a node say where that is evaluated, None where there is none."""
        if node not in self._blocks:
            self._blocks[node] = self._found(function, node)
        blocks = self._blocks[node]
        if blocks is None:
            return Casts.OFF
        found = {self._around(function, contexts) for contexts in blocks}
        return next((c for c in (Casts.OFF, None, Casts.UNKNOWN) if c in found), Casts.ON)

    def _found(self, function: Function, node: ast.AST) -> list[tuple[ast.expr, ...]] | None:
        """Return the contexts around each place where a node is evaluated, inner ones first; None where that is not seen."""
        places = self._program.training.losses.deferred.evaluated(function.module, node)
        if places is None:
            return None
        return [tuple(around(function.module, place)) for place in places]

    def _around(self, function: Function, contexts: tuple[ast.expr, ...]) -> Casts | None:
        """Return what the contexts around a node say, None where there is none."""
        for given in contexts:
            found = self._context(function, given)
            if found is not None:
                return found
        decorators = function.node.decorator_list if function.node is not None else ()
        on = any(self._context(function, decorator) is Casts.ON for decorator in decorators)
        return Casts.ON if on else None

    def asked(self, function: Function, node: ast.AST) -> list[ast.expr]:
        """Return what the blocks of a function around a node ask to be on."""
        contexts = around(function.module, node)
        enabled = [argument(c, "enabled") for c in contexts if isinstance(c, ast.Call)]
        return [node for node in enabled if node is not None]

    def blocks(self) -> Iterator[tuple[Function, ast.Call, set[str | None]]]:
        """Yield the calls of autocast, with the names in torch of the types that they state."""
        for module, call in self.project.nodes(ast.Call):
            if self.project.external(module, call.func) in AUTOCASTS:
                types = (k.value for k in call.keywords if k.arg == "dtype")
                names = {self.project.external(module, t) for t in types}
                yield self.project.function_of(module, call), call, names

    def may_enter(self) -> bool:
        """Tell whether any block of the project turns casts on or off, or may."""
        for module, block in self.project.nodes(ast.With, ast.AsyncWith):
            assert isinstance(block, ast.With | ast.AsyncWith)
            given = [item.context_expr for item in block.items]
            given += [one for _, one in entered(block)]
            function = self.project.function_of(module, block)
            if any(self._context(function, node) is not None for node in given):
                return True
        return False

    def _context(self, function: Function, node: ast.expr) -> Casts | None:
        if isinstance(node, ast.IfExp):
            truth = self.enabled.truth(function, node.test)
            arms = {True: [node.body], False: [node.orelse], None: [node.body, node.orelse]}[truth]
            return self._one_of([(function, arm) for arm in arms])
        call = node if isinstance(node, ast.Call) else None
        name = self.project.external(function.module, call.func if call is not None else node)
        if name in AUTOCASTS and call is not None:
            enabled = argument(call, "enabled")
            return Casts.ON if enabled is None else self._switched(function, enabled)
        builtin = function.module.scopes.builtin
        if name is not None or (call is not None and builtin(call.func) is not None):
            return None
        return self._of_project(call) if call is not None else self._held(function, node)

    def _one_of(self, places: Iterable[tuple[Function, ast.expr]]) -> Casts | None:
        found = {self._context(*place) for place in places}
        return found.pop() if len(found) == 1 else Casts.UNKNOWN

    def _held(self, function: Function, node: ast.expr) -> Casts | None:
        """Return what the contexts say that a variable or attribute may hold, but for those of branches that are not taken."""
        if node in self._asked:
            return Casts.UNKNOWN
        found = list(held(self.project, function.module, node))
        values = [value for value in found if value is not None and value is not node]
        if not values or len(values) < len(found):
            return Casts.UNKNOWN
        self._asked.add(node)
        makers = ((self.project.function_of(self.project.module_of(v), v), v) for v in values)
        places = [(maker, value) for maker, value in makers if self.enabled.reached(maker, value)]
        says = self._one_of(places)
        self._asked.discard(node)
        return says

    def _of_project(self, call: ast.Call) -> Casts | None:
        """Return what the generators that a call makes context managers of enter around their yield."""
        classes = self.project.constructed(call)
        if classes and not any(self._enters_casts(cls) for cls in classes):
            return None
        made = self.project.callees(call)
        found: set[Casts | None] = set()
        for function in made:
            yields = [
                p.node
                for p in self._program.graph(function).points
                if isinstance(p.node, ast.Yield)
            ]
            if not yields or call in self._within:
                return Casts.UNKNOWN
            self._within.add(call)
            found |= {self.here(function, node) for node in yields}
            self._within.discard(call)
        return found.pop() if len(found) == 1 else Casts.UNKNOWN

    def _enters_casts(self, cls: Class) -> bool:
        """Tell whether entering an object of a class may turn casts on or off."""
        methods = [m for base in cls.mro() for m in base.methods.values()]
        external = [base for base in cls.externals() if base != "object"]
        run = {below for method in methods for below in reachable(self.project, method)}
        return bool(external) or any(
            self.project.external(function.module, node) in AUTOCASTS
            for function in run
            for node in function.own_nodes
            if isinstance(node, ast.Attribute | ast.Name)
        )

    def _switched(self, function: Function, node: ast.expr) -> Casts:
        truth = self.enabled.truth(function, node)
        return Casts.UNKNOWN if truth is None else Casts.ON if truth else Casts.OFF

    def at(self, function: Function, node: ast.AST, around: frozenset[Casts]) -> Casts:
        """Return whether casts are on at a node of a function that begins with them as `around` says."""
        inside = self.here(function, node)
        if inside is not None:
            return inside
        return next(iter(around)) if len(around) == 1 else Casts.UNKNOWN

    def lacks(self, function: Function, node: ast.AST, around: frozenset[Casts]) -> bool:
        """Tell whether casts are off at a node for one way at least to begin its function."""
        inside = self.here(function, node)
        return inside is Casts.OFF if inside is not None else Casts.OFF in around

    def within(self, functions: Iterable[Function]) -> bool:
        """Tell whether functions have blocks of their own, or call some that have."""

        def callees(function: Function) -> Iterator[Function]:
            return (callee for call in function.all_calls for callee in self.project.callees(call))

        return any(
            isinstance(node, ast.withitem) and self._context(function, node.context_expr)
            for function in spread(functions, callees)
            for node in function.all_nodes
        )

    def spread(
        self,
        entries: Iterable[Function],
        sure: bool = False,
        inside_networks: bool = False,
        never: Callable[[Function], bool] = lambda _: False,
    ) -> dict[Function, frozenset[Casts]]:
        """Return whether casts may be on when each function that some entries reach begins.

        With `sure`, calls that may run something else are not followed; the forward of a network is
        followed only with `inside_networks`, and functions that `never` run then are not.
        """
        begins = {entry: frozenset({Casts.OFF}) for entry in entries}
        queue = list(begins)
        while queue:
            function = queue.pop()
            for call in self._program.graph(function).calls:
                callees = [f for f in self._program.calls.run(call) if not never(f)]
                if inside_networks and not callees:
                    callees = self.project.methods(function.module, call.func, "forward")
                later = [] if callees or sure else handed(self._program, call)
                if not (callees or later) or not self.enabled.runs(function, call):
                    continue
                if sure and not of_one_kind(callees):
                    continue
                inside = self.here(function, call)
                found = begins[function] if inside is None else frozenset({inside})
                certain = found == {Casts.OFF} if later else runs_each(call, callees)
                found = found if certain else frozenset({Casts.UNKNOWN})
                for callee in callees or later:
                    held = begins.get(callee, frozenset())
                    if not found <= held:
                        begins[callee] = held | found
                        queue.append(callee)
        return begins
