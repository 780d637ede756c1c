"""The floating types that expressions have with Apex O1 and with autocast, as far as they can be followed back."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from amp_migrate.facts.constants import string
from amp_migrate.facts.paths import argument, tail
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.once import kept
from amp_migrate.training.beliefs import WEIGHTS
from amp_migrate.training.bindings import bound_value, returned, unpacked, wholes
from amp_migrate.training.contexts import in_training_mode
from amp_migrate.training.origins.losses import Losses
from amp_migrate.training.types.called import Called
from amp_migrate.training.types.floats import (
    NUMBER,
    ONE_WIDE,
    UNKNOWN,
    WHOLE,
    Helds,
    Kind,
    alone,
    always,
    halved,
    promoted,
    put_in,
    spread,
    summed,
    told,
    union,
)
from amp_migrate.training.types.handed import Handed
from amp_migrate.training.types.keyed import Keyed, taken
from amp_migrate.training.types.operators import Join, spans

_SAME = frozenset({"H", "T", "data", "mH", "mT", "real"})
_NUMBERS = frozenset({"device", "dtype", "ndim", "shape"})
_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)


Parameter = tuple[Function, str]
_NEVER_HALF = frozenset({Kind.NUMBER, Kind.WHOLE, Kind.WIDE})


def types_of(project: Project, losses: Losses) -> Types:
    """Return what answers for a project; made once."""
    return kept(project, (types_of, losses), lambda: Types(project, losses))


def types_of_outputs(
    project: Project, losses: Losses, fed: frozenset[Parameter], *, evaluating: bool
) -> Types:
    """Return what answers where some parameters are `fed` with fp32, and networks train if not `evaluating`."""
    made = partial(Types, project, losses, evaluating, fed)
    return kept(project, (types_of_outputs, losses, fed, evaluating), made)


class Spot(NamedTuple):
    """An expression, or a statement that changes a variable, in a function."""

    function: Function
    node: ast.AST


class Rule(NamedTuple):
    """What a value is made of, and how its types come of theirs."""

    parts: tuple[Spot, ...]
    join: Join = union


_UNKNOWN = Rule((), always(UNKNOWN))
_NUMBER = Rule((), always(NUMBER))


class Types:
    """Answers for the expressions of a project; what is worked out once is kept."""

    def __init__(
        self,
        project: Project,
        losses: Losses,
        evaluating: bool = False,
        fed: frozenset[Parameter] = frozenset(),
    ) -> None:
        self._project, self._losses = project, losses
        self._evaluating, self._fed = evaluating, fed
        self._called = Called(project)
        self._handed = Handed(project)
        self._keyed = Keyed(project, losses, self._handed)
        self._known: dict[Spot, Helds] = {}

    def of(self, function: Function, node: ast.expr) -> Helds:
        """Return all that an expression may be."""
        start = Spot(function, node)
        if start not in self._known:
            self._settle(start)
        return self._known[start] or UNKNOWN

    def is_wide(self, function: Function, node: ast.expr) -> bool:
        """Tell whether an expression is surely no fp16 with autocast."""
        return {held.native for held in self.of(function, node)} <= _NEVER_HALF

    def _settle(self, start: Spot) -> None:
        """Work out the least that agrees with all rules, where variables come of themselves in loops."""
        rules: dict[Spot, Rule] = {start: self._found(*start)}
        queue, users = [start], dict[Spot, list[Spot]]()
        for spot in queue:
            for part in rules[spot].parts:
                users.setdefault(part, []).append(spot)
                if part not in rules and part not in self._known:
                    rules[part] = self._found(*part)
                    queue.append(part)
        self._known |= dict.fromkeys(rules, frozenset())
        while queue:
            spot = queue.pop()
            made = rules[spot].join([self._known[part] for part in rules[spot].parts])
            if made != self._known[spot]:
                self._known[spot] = made
                queue += users.get(spot, ())

    def _found(self, function: Function, node: ast.AST) -> Rule:
        """Return the rule of an expression; a parameter that is fed is fp32 where nothing tells its type."""
        rule = self._rule(function, node)
        fed = isinstance(node, ast.Name) and (function, node.id) in self._fed
        return Rule(rule.parts, lambda found: told(rule.join(found))) if fed else rule

    def _rule(self, function: Function, node: ast.AST) -> Rule:
        """Return the rule of an expression by its kind."""
        if isinstance(node, ast.Name):
            return self._name(function, node)
        if isinstance(node, ast.Attribute):
            return self._attribute(function, node)
        if isinstance(node, ast.Call):
            return self._call(function, node)
        if isinstance(node, ast.BinOp):
            return _binary(function, node)
        if isinstance(node, ast.AugAssign):
            return self._changed(function, node)
        if isinstance(node, ast.Subscript):
            found = self._keyed.items(function, node)
            return Rule(tuple(Spot(*each) for each in found)) if found else _item(function, node)
        if isinstance(node, ast.Compare) or _negates(node):
            return Rule((), always(WHOLE))
        if isinstance(node, ast.Constant | ast.JoinedStr):
            return _NUMBER
        parts = list(_parts(node))
        if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict) and not parts:
            return Rule((), always(frozenset()))
        return Rule(tuple(Spot(function, part) for part in parts)) if parts else _UNKNOWN

    def _name(self, function: Function, node: ast.Name) -> Rule:
        if not isinstance(node.ctx, ast.Load):
            return _UNKNOWN
        rules: list[Rule] = []
        for value in self._losses.reached.read(function, node):
            if isinstance(value, ast.arg):
                rules.append(self._parameter(function, value))
            elif value is None:
                found = wholes(self._project, function, node)
                rules.append(Rule(tuple(Spot(function, whole) for whole in found)))
            else:
                holder = self._losses.reached.holder(function, value)
                up = holder.module.tree.parent(value)
                changes = isinstance(up, ast.AugAssign) and up.value is value
                spot = Spot(holder, up if changes and up is not None else value)
                parts = taken(self._project, holder, node.id, value)
                rules.append(Rule(tuple(Spot(*part) for part in parts) or (spot,)))
        given = [Spot(*self._losses.handed_over(n)) for n in self._losses.put_in(function, node)]
        return _either([*rules, Rule(tuple(given))] if given and rules else rules)

    def _parameter(self, function: Function, parameter: ast.arg) -> Rule:
        """Return the rule of what all calls hand in for a parameter."""
        default = function.parameters.defaults.get(parameter.arg)
        spots: list[Spot] = []
        for given in self._handed.given(function, parameter.arg):
            if given is not None:
                spots.append(Spot(self._project.holder(given), given))
            elif default is not None:
                spots.append(Spot(function, default))
            else:
                return _UNKNOWN
        return _either([Rule(tuple(spots))])

    def _changed(self, function: Function, node: ast.AugAssign) -> Rule:
        """Return the rule of what ``target += value`` leaves in a variable."""
        target, module = node.target, function.module
        if not isinstance(target, ast.Name):
            return _UNKNOWN
        rules = []
        for binding in module.scopes.bound(target):
            if isinstance(binding, ast.arg):
                rules.append(self._parameter(function, binding))
            elif binding is not target:
                values = self._bound(module, binding)
                rules.append(Rule(tuple(Spot(function, value) for value in values)))
        before = _either([rule for rule in rules if rule.parts or rule is _UNKNOWN])
        matrix = isinstance(node.op, ast.MatMult)
        count = len(before.parts)
        grows = any(isinstance(part.node, ast.Tuple | ast.List) for part in before.parts)

        def joined(found: Sequence[Helds]) -> Helds:
            if grows:
                return union(found)
            left = before.join(found[:count])
            return halved(found) if matrix else put_in([left, found[count]])

        return Rule((*before.parts, Spot(function, node.value)), joined)

    def _bound(self, module: Module, binding: ast.AST) -> list[ast.expr]:
        up = module.tree.parent(binding)
        if isinstance(up, ast.AugAssign):
            return []
        value = bound_value(module, binding)
        return [value] if value is not None else unpacked(self._project, module, binding)

    def _attribute(self, function: Function, node: ast.Attribute) -> Rule:
        if node.attr in _NUMBERS:
            return _NUMBER
        if node.attr in _SAME:
            return Rule((Spot(function, node.value),))
        origins = self._losses.bound(function, node)
        spots = [Spot(origin.function, origin.node) for origin in origins]
        spots += self._registered(function, node)
        if not spots and node.attr in (*WEIGHTS, "grad"):
            return Rule((), always(ONE_WIDE))
        return _either([Rule(tuple(spots))])

    def _registered(self, function: Function, node: ast.Attribute) -> Iterator[Spot]:
        """Yield what a module registers as a buffer or parameter of a name: ``self.register_buffer("queue", ...)``."""
        classes = self._project.instance_classes(function.module, node.value)
        for method in {m for c in classes for base in c.mro() for m in base.methods.values()}:
            for call in method.calls:
                if tail(call) in ("register_buffer", "register_parameter"):
                    held = argument(call, "tensor", 1) or argument(call, "param", 1)
                    if held is not None and string(argument(call, "name", 0)) == node.attr:
                        yield Spot(method, held)

    def _call(self, function: Function, call: ast.Call) -> Rule:
        project, module = self._project, function.module
        if project.constructed(call):
            return _UNKNOWN
        callees = project.callees(call) or project.methods(module, call.func, "forward")
        if callees:
            ends = [Spot(f, value) for f in callees for value in returned(f)]
            if self._evaluating:
                ends = [spot for spot in ends if not in_training_mode(*spot)]
            return Rule(tuple(ends)) if ends else _NUMBER
        found = self._called.of(module, call)
        if found is None:
            return _UNKNOWN
        return Rule(tuple(Spot(function, part) for part in found.parts), found.join)


def _either(rules: Sequence[Rule]) -> Rule:
    """Return the rule of what is one of several; anything where there is none, or one of nothing that is seen."""
    if not rules or any(not rule.parts for rule in rules):
        return _UNKNOWN
    return Rule(tuple(spot for rule in rules for spot in rule.parts))


def _binary(function: Function, node: ast.BinOp) -> Rule:
    both = Spot(function, node.left), Spot(function, node.right)
    if isinstance(node.op, ast.MatMult):
        return Rule(both, halved)
    if isinstance(node.op, ast.Pow):
        return Rule(both[:1], summed)
    return Rule((), always(WHOLE)) if isinstance(node.op, _BITS) else Rule(both, promoted)


def _item(function: Function, node: ast.Subscript) -> Rule:
    """Return the rule of an item, which may have no dimensions where none of its indices spans some."""
    return Rule((Spot(function, node.value),), spread if spans(node) else alone)


def _negates(node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _parts(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what an expression gives one of: the arms of a choice, the items of a container."""
    if isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
    elif isinstance(node, ast.BoolOp | ast.Dict):
        yield from node.values
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        yield from node.elts
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Starred | ast.NamedExpr | ast.DictComp):
        yield node.value
    elif isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp):
        yield node.elt
