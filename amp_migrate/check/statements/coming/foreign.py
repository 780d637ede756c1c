"""Whether what comes into a text has to do with AMP: whatever else it does may train differently."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cached_property

from amp_migrate.check.events.claims import Claims
from amp_migrate.check.events.sides import Key, Side, differs, key, staying
from amp_migrate.check.events.traces import Difference
from amp_migrate.check.statements.alike import Alike
from amp_migrate.check.statements.coming.native import Native
from amp_migrate.check.statements.parts import Held, Part, decorators, parts, without
from amp_migrate.facts.below import children, every
from amp_migrate.facts.constants import is_none, string
from amp_migrate.facts.paths import acts, all_given, calls_anything, tail, variables
from amp_migrate.facts.scopes import assigned, targets_of
from amp_migrate.project import Function
from amp_migrate.project.reach import where_named
from amp_migrate.protocol.calls.standing import standing_of
from amp_migrate.protocol.faults import Place
from amp_migrate.training.beliefs import HAND_OUT_PARAMETERS

_COMES = "comes, and has nothing to do with AMP:"
_DOES = (ast.Call, ast.BinOp, ast.Lambda, ast.Subscript, ast.Await, ast.Yield, ast.YieldFrom)
_PLACES = ast.Attribute | ast.Subscript
_LOOPS = ast.For | ast.AsyncFor
_TELLS = frozenset({"all", "any", "bool", "float", "int", "isinstance", "len", "max", "min"})
_OF_SCALER = frozenset(
    {
        "get_scale",
        "is_enabled",
        "load_state_dict",
        "scale",
        "set_growth_interval",
        "state_dict",
        "step",
        "unscale_",
        "update",
    }
)
_OF_TORCH = frozenset({"contextlib.nullcontext", "torch.clear_autocast_cache"})


def foreign(old: Side, new: Side, claims: Claims) -> Iterator[tuple[Key, Difference]]:
    """Yield what the new text computes, sets or deletes where the old one did nothing of the kind, and that is nothing of AMP."""
    alike, native = Alike(old, new), Native(old, new)
    for before, after, _ in staying(old, new, claims):
        yield from _Brought(old, new, alike, before, after, claims, native).differences()
    for name in sorted(new.functions.keys() - old.functions.keys()):
        path, after = name[0], new.functions[name]
        home = [f for other, held in old.functions.items() if other[0] == path for f in held]
        if not home or claims.bring(path) or any(map(claims.drops, home)):
            continue
        brought = _Brought(old, new, alike, home, after, claims, native)
        yield from brought.differences()
        yield from brought.idle()


class _Brought:
    """The functions of one name before and after."""

    def __init__(
        self,
        old: Side,
        new: Side,
        alike: Alike,
        before: Sequence[Function],
        after: Sequence[Function],
        claims: Claims,
        native: Native,
    ) -> None:
        self._old = old
        self._new = new
        self._alike = alike
        self._before = before
        self._after = after
        self._claims = claims
        self._native = native
        had: Held = [(f, part) for f in before for part in _all(f)]
        has: Held = [(f, part) for f in after for part in _all(f)]
        self._lost, self._fresh = without(had, has), without(has, had)

    def differences(self) -> Iterator[tuple[Key, Difference]]:
        """Yield what is foreign."""
        for function, part in self._fresh:
            found = (
                *self._within(function, part),
                *self._set(function, part),
                *self._looped(function, part),
            )
            for node in found:
                if not self._is_rewritten(part):
                    yield differs(function, node, f"`{ast.unparse(node)}` {_COMES}")

    def idle(self) -> Iterator[tuple[Key, Difference]]:
        """Yield the functions that are new, and neither have to do with AMP nor are a lambda of the old text."""
        bodies = {
            ast.unparse(node.body)
            for f in self._before
            for node in f.all_nodes
            if isinstance(node, ast.Lambda)
        }
        for function in self._after:
            body = [s for s in function.scope.body if not isinstance(s, ast.Pass)]
            alone = body[0] if len(body) == 1 else None
            is_lambda = isinstance(alone, ast.Return | ast.Expr) and alone.value is not None
            if is_lambda and ast.unparse(alone.value) in bodies:  # type: ignore[union-attr]
                continue
            if not any(self._native.mentioned(function, s) for s in body) and function.node:
                yield differs(function, function.node, f"`{function.qualname}` {_COMES}")

    def _within(self, function: Function, node: ast.AST) -> Iterator[ast.expr]:
        """Yield what a part of the new text computes that the old one did not."""
        if isinstance(node, ast.AugAssign) and not self._adds(function, node):
            yield node.target
        if isinstance(node, ast.expr) and isinstance(node, _DOES):
            if ast.unparse(node) in self._texts or self._reads(function, node):
                return
            inner = self._of_amp(function, node)
            if inner is None:
                yield node
            for given in inner or ():
                yield from self._within(function, given)
            return
        for part in children(node):
            if isinstance(part, ast.expr | ast.keyword | ast.comprehension):
                yield from self._within(function, part)

    def _adds(self, function: Function, node: ast.AugAssign) -> bool:
        """Tell whether a statement changes a variable as one of the old text did, or by something of AMP."""
        if self._native.mentioned(function, node.value):
            return True
        before = ((f, p) for f, p in self._lost if isinstance(p, ast.AugAssign))
        return any(self._alike.reads(f, p, function, node) for f, p in before)

    def _of_amp(self, function: Function, node: ast.expr) -> list[ast.expr] | None:
        """Return what something of AMP, or what happens to gradients and is compared elsewhere, is given; None for anything else."""
        if isinstance(node, ast.Call):
            return self._of_call(function, node)
        inner = [n for n in children(node) if isinstance(n, ast.expr)]
        told = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
        fixed = not any(isinstance(n, ast.Name) for n in every(node))
        return inner if told or fixed or self._native.mentioned(function, node) else None

    def _of_call(self, function: Function, call: ast.Call) -> list[ast.expr] | None:
        """Return what a call is given and called on, if it does nothing of its own, or something of AMP."""
        given = all_given(call)
        module, func = function.module, call.func
        if isinstance(func, ast.Attribute):
            looks_up = func.attr == "get" and bool(given) and string(given[0]) is not None
            widens = func.attr in ("float", "item") and not given
            if (
                looks_up
                or widens
                or func.attr in HAND_OUT_PARAMETERS
                or self._goes_on(function, func)
            ):
                return [func.value, *given]
            scaler = self._new.program.training.objects.scaler(module, func.value)
            if scaler is not None or self._native.handed_in(function, func.value):
                return given if func.attr in _OF_SCALER or self._was_set(given) else None
        elif module.scopes.builtin(func) in _TELLS:
            return given
        if self._is_brought(call) or self._answers(call):
            return given
        called = self._new.project.external(module, func)
        event = self._new.labels.of_call(function, call) is not None
        native = event or called in _OF_TORCH or self._native.itself(function, call)
        return given if native else None

    def _answers(self, call: ast.Call) -> bool:
        """Tell whether all that a function does is to look at values: ``def use_amp(): return args.fp16``."""
        answer = standing_of(self._new.program).answers.spelt(call)
        return answer is not call and not calls_anything(answer) and not acts(answer)

    def _goes_on(self, function: Function, func: ast.Attribute) -> bool:
        """Tell whether a method is called on a variable that holds what the old text called such a method on at once."""
        if not isinstance(func.value, ast.Name) or not self._native.comes(function, func.value):
            return False
        before = (n.func for _, n in self._computed if isinstance(n, ast.Call))
        spelt = (f for f in before if isinstance(f, ast.Attribute) and f.attr == func.attr)
        return any(isinstance(f.value, ast.Call) for f in spelt)

    def _was_set(self, given: Sequence[ast.expr]) -> bool:
        """Tell whether a setting of a GradScaler is what the old text set in Apex."""
        texts = {
            ast.unparse(part.value)
            for function, part in self._lost
            if isinstance(part, ast.Assign) and self._alike.mentions_apex(function, part)
        }
        return bool(given) and all(ast.unparse(value) in texts for value in given)

    def _is_brought(self, call: ast.expr) -> bool:
        """Tell whether something calls what only the new text defines, which is looked at by itself."""
        if not isinstance(call, ast.Call):
            return False
        project, known = self._new.project, self._old.functions
        run = list(project.callees(call))
        made = list(project.constructed(call))
        run += [method for cls in made for method in cls.methods.values()]
        return bool(run or made) and not any(key(f) in known for f in run)

    def _reads(self, function: Function, node: ast.expr) -> bool:
        """Tell whether something reads as what the old text computes."""
        told = _word(node) if isinstance(node, ast.Call) else ""
        called = self._new.project.external(function.module, node.func) if told else ""  # type: ignore[attr-defined]
        return any(
            self._alike.reads(before, other, function, node)
            for before, other in self._computed
            if type(other) is type(node)
            and (not isinstance(other, ast.Call) or _word(other) == told)
            and ((called or "").startswith("torch.") or not self._alike.is_apex(before, other))
        )

    def _set(self, function: Function, part: Part) -> Iterator[ast.expr]:
        """Yield the attributes and items that a part of the new text sets or deletes, and the old one did not."""
        targets = part.targets if isinstance(part, ast.Delete) else targets_of(part)
        targets = [part.target] if isinstance(part, ast.AugAssign) else targets
        value = getattr(part, "value", None)
        if value is not None and self._native.itself(function, value):
            return
        for node in (node for target in targets for node in every(target)):
            if isinstance(node, _PLACES) and not isinstance(node.ctx, ast.Load):
                if ast.unparse(node) not in self._stored and not self._holds(function, node):
                    yield node

    def _holds(self, function: Function, node: ast.expr) -> bool:
        """Tell whether an attribute is set to something of AMP, or is one of the object that nothing of the old text knows."""
        value = assigned(function.module.tree, node)
        if value is not None and self._native.itself(function, value):
            return True
        if value is not None and self._is_brought(value):
            return True
        if not isinstance(node, ast.Attribute):
            return False
        if is_none(value) and self._native.itself(function, node):
            return True
        return function.is_receiver(node.value) and not any(
            where_named(self._old.project, node.attr)
        )

    def _looped(self, function: Function, part: Part) -> Iterator[Part]:
        """Yield what a loop goes over that only the new text has, and that does more than AMP needs."""
        loop = function.module.tree.parent(part)
        if (
            isinstance(loop, _LOOPS)
            and loop.iter is part
            and not self._native.itself(function, part)
        ):
            gone = (f.module.tree.parent(p) for f, p in self._lost)
            if not any(isinstance(other, _LOOPS) for other in gone):
                if not all(self._native.itself(function, s) for s in loop.body):
                    yield part

    def _is_rewritten(self, node: Part) -> bool:
        """Tell whether a rule of the run writes something else for what the old text did with the same object."""
        roots = variables(node)
        return any(
            self._claims.rewrite(
                Place(function.module.path, part.lineno), part.end_lineno or part.lineno
            )
            and not roots.isdisjoint(variables(part))
            for function, part in self._lost
        )

    @cached_property
    def _computed(self) -> list[tuple[Function, ast.expr]]:
        nodes = ((f, node) for f in self._before for node in f.all_nodes)
        return [(f, node) for f, node in nodes if isinstance(node, _DOES)]

    @cached_property
    def _texts(self) -> frozenset[str]:
        return frozenset(ast.unparse(node) for _, node in self._computed)

    @cached_property
    def _stored(self) -> frozenset[str]:
        return frozenset(
            ast.unparse(node)
            for f in self._before
            for node in f.all_nodes
            if isinstance(node, _PLACES) and not isinstance(node.ctx, ast.Load)
        )


def _word(call: ast.Call) -> str:
    """Return the name of what a call calls, whatever that is an attribute of."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else tail(call)


def _all(function: Function) -> Iterator[Part]:
    yield from parts(function)
    yield from decorators(function)
    yield from (node for node in function.own_nodes if isinstance(node, ast.Delete))
