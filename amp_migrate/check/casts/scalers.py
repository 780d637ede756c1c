"""Whether GradScalers are on exactly where Apex was."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property, partial

from amp_migrate.check.apex.assumed import Initialize
from amp_migrate.check.apex.facts import Facts
from amp_migrate.check.apex.related import Related
from amp_migrate.check.casts.casting import Casting, Casts
from amp_migrate.check.casts.differing import is_scaled, scales, ways
from amp_migrate.check.casts.enabled import asks_scaler
from amp_migrate.check.events.sides import Key, Side, differs, key
from amp_migrate.check.events.traces import Difference
from amp_migrate.facts.below import every as parts
from amp_migrate.facts.paths import argument, tail
from amp_migrate.flow.loops import Loop
from amp_migrate.project import Function, Module
from amp_migrate.project.reach import is_of_another, runs_one
from amp_migrate.project.rounds import may_follow
from amp_migrate.training.beliefs import AUTOCASTS
from amp_migrate.training.contexts import is_off, scaling_calls

_NAME = "`GradScaler`"
_STALE = "is imported before a function makes the one that trains:"
_ONCE = "is made once, where Apex began anew in each round of a loop:"
_GOES_ON = "is made once, where Apex began anew behind what trains:"
_EARLY = "an autocast block asks a GradScaler whether it is on before what it runs makes it:"
_OTHER = "goes by another flag than Apex did,"
ENABLED, DISABLED = "is on, where Apex was off:", "is off, where Apex was on:"


class Scalers:
    """Knows the GradScalers of the old text, which `native` reads."""

    def __init__(self, old: Side, native: Casting) -> None:
        self._old = old
        self._native = native
        self._texts: dict[Key, set[str]] = {}

    def differing(
        self, native: Casting, begun: dict[Function, frozenset[Casts]], wrong: bool, what: str
    ) -> Iterator[tuple[Key, Difference]]:
        """Yield the GradScalers that are on or off where Apex was not."""
        for function, call in native.enabled.makers:
            if is_off(call) and not all(is_off(c) for _, c in native.enabled.makers):
                continue
            if function in begun and native.enabled.reached(function, call):
                if native.enabled.on(function, call) is wrong and not self._made_before(call):
                    yield differs(function, call, f"{_NAME} {what}")

    def other(
        self, every: Sequence[Initialize], native: Casting, new: Side
    ) -> Iterator[tuple[Key, Difference]]:
        """Yield what is switched on and off by a flag that has nothing to do with those of Apex."""
        related = Related(self._old.program, every)
        project = new.project
        blocks = [
            (project.function_of(module, call), call)
            for module, call in project.nodes(ast.Call)
            if project.external(module, call.func) in AUTOCASTS
        ]
        for function, call in (*native.enabled.makers, *blocks):
            if key(function) not in self._old.functions or not self._is_new(function, call):
                continue
            truth = partial(native.enabled.truth, function)
            for asked in _conditions(function, call):
                enabled = self._added(function, asked)
                if truth(enabled) is None or any(isinstance(n, ast.Or) for n in ast.walk(enabled)):
                    flag = _of_state(new, function, enabled) or related.other(
                        new.program, function, enabled, truth
                    )
                    if flag is not None:
                        yield differs(function, call, f"`{tail(call)}` {_OTHER} `{flag}`:")

    def _added(self, function: Function, enabled: ast.expr) -> ast.expr:
        """Return what a block asks beside what one of the old text asked there: ``args.amp`` of ``args.native or args.amp``."""
        if not isinstance(enabled, ast.BoolOp) or not isinstance(enabled.op, ast.Or):
            return enabled
        had = {
            ast.unparse(way)
            for old in self._old.functions.get(key(function), ())
            for call in old.calls
            if self._old.project.external(old.module, call.func) in AUTOCASTS
            for way in ways(argument(call, "enabled"))
        }
        left = [way for way in enabled.values if ast.unparse(way) not in had]
        if len(left) < 2:
            return left[0] if left else enabled
        return ast.copy_location(ast.BoolOp(ast.Or(), left), enabled)

    def off(self, item: Initialize, native: Casting) -> Iterator[tuple[Key, Difference]]:
        """Yield the GradScaler that the function of an initialize makes off, where it makes none that may be on."""
        made = [
            (function, call)
            for function, call in native.enabled.makers
            if key(function) == key(item.function) and native.enabled.reached(function, call)
        ]
        if all(native.enabled.on(function, call) is False for function, call in made):
            for function, call in made[:1]:
                if not self._made_before(call):
                    yield differs(function, call, f"{_NAME} {DISABLED}")

    def alone(
        self, item: Initialize, entries: Iterable[Function], new: Side
    ) -> Iterator[tuple[Key, Difference]]:
        """Yield the GradScalers that are off where Apex casts nothing and scales the loss all the same."""
        if item.scaling is not None and item.trains and is_scaled(self._old, item):
            facts = Facts(((item.function, item.scaling), *item.callers))
            native = Casting(new.program, facts)
            yield from self.differing(native, native.spread(entries), False, DISABLED)
            yield from self.off(item, native)

    def outlasting(
        self, item: Initialize, native: Casting, new: Side
    ) -> Iterator[tuple[Key, Difference]]:
        """Yield the GradScaler that outlasts a loop in which Apex was initialized and its losses were scaled."""
        loops = self._old.program.graph(item.function).order().loops
        if not any(self._scales_in(item, loop) for loop in loops):
            return
        made = [
            (function, call, new.program.graph(function))
            for function, call in native.enabled.makers
            if key(function) == key(item.function)
        ]
        again = (graph.order().loops_of(p) for _, call, graph in made for p in graph.at(call))
        if not any(again):
            for function, call, _ in made[:1]:
                yield differs(function, call, f"{_NAME} {_ONCE}")

    def going_on(
        self, items: Sequence[Initialize], native: Casting
    ) -> Iterator[tuple[Key, Difference]]:
        """Yield the GradScaler of a function that initialized Apex once more behind a training."""
        for function in dict.fromkeys(item.function for item in items):
            calls = [item.call for item in items if item.function is function]
            behind = [call for call in calls if self._is_behind_training(function, call, calls)]
            made = [
                (maker, call)
                for maker, call in native.enabled.makers
                if key(maker) == key(function)
            ]
            if made and len(made) <= len(behind):
                yield differs(*made[0], f"{_NAME} {_GOES_ON}")

    def _is_behind_training(
        self, function: Function, call: ast.Call, calls: Collection[ast.Call]
    ) -> bool:
        """Tell whether a loss may be scaled between an initialize and another one of its function before it."""
        scaling = [
            c
            for c in self._old.program.graph(function).calls
            if c not in calls and self._comes_to_scaling(c)
        ]
        others = [other for other in calls if other is not call]
        project = self._old.project
        return bool(others) and any(
            may_follow(project, function, node, call, others)
            and any(may_follow(project, function, other, node, [call]) for other in others)
            for node in scaling
        )

    def _scales_in(self, item: Initialize, loop: Loop) -> bool:
        """Tell whether a loop holds an initialize and comes to a loss that is scaled."""
        calls = {p.node for p in loop.body if isinstance(p.node, ast.Call)}
        return item.call in calls and any(map(self._comes_to_scaling, calls))

    def _comes_to_scaling(self, call: ast.Call) -> bool:
        """Tell whether a call scales a loss by Apex, or runs what does."""
        project = self._old.project
        return call in scaling_calls(project) or runs_one(project, call, self._scaling)

    @cached_property
    def _scaling(self) -> frozenset[Function]:
        """The functions that scale a loss by Apex."""
        return frozenset(f for f in self._old.project.functions() if scales(self._old, f))

    def misread(self, new: Side, native: Casting) -> Iterator[tuple[Key, Difference]]:
        """Yield what reads a GradScaler before it is the one that trains."""
        yield from self._stale(new, native)
        yield from self._early(new, native)

    def _stale(self, new: Side, native: Casting) -> Iterator[tuple[Key, Difference]]:
        """Yield the imports by name of a GradScaler that a function of its file makes, which they do not follow."""
        makers = {call for function, call in native.enabled.makers if function.node is not None}
        for module in new.project.modules.values():
            known = self._old.project.modules.get(module.path)
            before = {ast.unparse(s) for s in known.tree.nodes(ast.ImportFrom)} if known else set()
            for statement in module.tree.nodes(ast.ImportFrom):
                source = new.project.lookup.source(module, statement)
                if not isinstance(source, Module) or ast.unparse(statement) in before:
                    continue
                names = {alias.name for alias in statement.names}
                top = source.tree.module
                if any(makers.intersection(source.scopes.values(top, name)) for name in names):
                    yield differs(
                        new.project.function_of(module, statement), statement, f"{_NAME} {_STALE}"
                    )

    def _early(self, new: Side, native: Casting) -> Iterator[tuple[Key, Difference]]:
        """Yield the blocks that ask a GradScaler whether it is on, and make it in what they run."""
        groups = new.program.training.objects.groups
        for module, block in new.project.nodes(ast.With):
            for context in (item.context_expr for item in block.items):
                asked = _asked(context)
                held = {name for node in asked for name in groups(module, node)}
                function = new.project.function_of(module, context)
                if held and self._is_new(function, context):
                    made = [m for m in native.enabled.makers if held & groups(m[0].module, m[1])]
                    own = partial(is_of_another, new.project, function=function)
                    if any(
                        not all(own(maker, asked=node) for node in asked)
                        and _makes(new, block, maker, call)
                        for maker, call in made
                    ):
                        yield differs(function, context, _EARLY)

    def _is_new(self, function: Function, node: ast.expr) -> bool:
        """Tell whether a call stands in a function of the old text nowhere."""
        name = key(function)
        if name not in self._texts:
            before = self._old.functions.get(name, ())
            self._texts[name] = {ast.unparse(call) for f in before for call in f.calls}
        return ast.unparse(node) not in self._texts[name]

    def _made_before(self, call: ast.Call) -> bool:
        text = ast.unparse(call)
        return any(ast.unparse(c) == text for _, c in self._native.enabled.makers)


def _asked(context: ast.expr) -> list[ast.expr]:
    """Return what a block asks whether it is on as it is entered."""
    enabled = argument(context, "enabled") if isinstance(context, ast.Call) else None
    asking = parts(enabled) if enabled is not None else ()
    calls = (node for node in asking if isinstance(node, ast.Call) and asks_scaler(node))
    return [call.func.value for call in calls if isinstance(call.func, ast.Attribute)]


def _conditions(function: Function, call: ast.Call) -> Iterator[ast.expr]:
    """Yield what decides whether a block or a GradScaler is on: what it is given, and what chooses it in its expression."""
    enabled = argument(call, "enabled")
    if enabled is not None:
        yield enabled
    for up, holds in function.module.tree.sides(call):
        if isinstance(up, ast.IfExp):
            yield up.test if holds else ast.UnaryOp(ast.Not(), up.test)


def _of_state(new: Side, function: Function, condition: ast.expr) -> str | None:
    """Return what a condition asks a GradScaler for beside whether it is on: that may change while it trains."""
    scaler = new.program.training.objects.scaler
    for node in parts(condition):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            held = scaler(function.module, node.func.value)
            if node.func.attr != "is_enabled" and held is not None:
                return ast.unparse(node)
    return None


def _makes(new: Side, block: ast.With, maker: Function, call: ast.Call) -> bool:
    """Tell whether what a block runs makes a GradScaler that may be on."""
    if is_off(call):
        return False
    above = new.program.above(maker)
    return any(
        node is call or new.program.enters(node, above)
        for statement in block.body
        for node in parts(statement)
    )
