"""Where the value of a gradient goes, through names, collections and calls, and whether linear maps alone take it there."""

from __future__ import annotations

import ast

from amp_migrate.facts.below import every
from amp_migrate.facts.constants import is_none
from amp_migrate.facts.imports import last_name
from amp_migrate.facts.paths import called_on, calls_method
from amp_migrate.facts.scopes import targets_of
from amp_migrate.project import Function, Module, Project
from amp_migrate.training.beliefs import KNOWS_NO_SCALE, reduces
from amp_migrate.training.bindings import bound_value, is_generator
from amp_migrate.training.gradients.changed import makes_room
from amp_migrate.training.gradients.lasting import is_own, outlive
from amp_migrate.training.gradients.maps import (
    ADDS,
    ASKS_NOTHING,
    GIVES_THEM_ON,
    MAPS,
    MULTIPLIES,
    SAYS_NO_VALUE,
    TAKES_ITS_SHAPE,
    is_empty,
)

_DISPLAYS = (ast.List, ast.Tuple, ast.Set)
_PLACES = (*_DISPLAYS, ast.Starred, ast.IfExp, ast.UnaryOp, ast.BoolOp)
_TURNS = (ast.For, ast.AsyncFor, ast.comprehension)
_PASSES = (ast.Expr, ast.If, ast.While, ast.Assert, ast.Delete)
_SHOWS = (ast.comprehension, ast.ListComp, ast.SetComp, ast.GeneratorExp)


class Followed:
    """Where the value of one gradient goes: `seen` is what has it, a gradient or several of them."""

    def __init__(self, project: Project, module: Module, gradient: ast.expr) -> None:
        self._project = project
        self.seen: set[ast.AST] = set()
        self._queue: list[tuple[Module, ast.expr]] = []
        self._bound: set[ast.AST] = set()
        self._alike: list[tuple[Module, ast.expr]] = []
        self._factors: list[ast.expr] = []
        self._see(module, gradient)
        self.is_linear = self._follow()

    def _follow(self) -> bool:
        for module, node in self._queue:
            if not self._goes_on(module, node):
                return False
        return (
            all(self._keeps_changed(module, node) for module, node in self._queue)
            and all(self.is_alike(module, node) for module, node in self._alike)
            and not any(map(self._depends, self._factors))
            and not outlive(self._project, self._queue)
        )

    def _depends(self, factor: ast.expr) -> bool:
        """Tell whether a factor is made of gradients, or of the scale."""
        return any(part in self.seen for part in every(factor)) or calls_method(factor, "get_scale")

    def _see(self, module: Module, *nodes: ast.expr) -> bool:
        """Note that expressions have the value."""
        for node in nodes:
            if node not in self.seen:
                self.seen.add(node)
                self._queue.append((module, node))
        return True

    def _goes_on(self, module: Module, node: ast.expr) -> bool:
        """Note what gets the value from where an expression with it stands; False where that is no linear map."""
        up = module.tree.parent(node)
        if isinstance(up, _PASSES):
            return True
        if isinstance(up, ast.Attribute):
            return self._asked(module, up)
        if isinstance(up, ast.Call | ast.keyword):
            call = up if isinstance(up, ast.Call) else module.tree.parent(up)
            return isinstance(call, ast.Call) and self._given(module, call, node)
        if isinstance(up, ast.Subscript):
            return up.value is node and self._item(module, up)
        if isinstance(up, ast.Compare):
            within = all(isinstance(op, ast.In | ast.NotIn) for op in up.ops)
            return (within and up.left is not node) or any(map(is_none, up.comparators))
        if isinstance(up, ast.BinOp):
            return self._computed(module, up, node)
        if isinstance(up, ast.Dict):
            return node in up.values and self._see(module, up)
        if isinstance(up, ast.DictComp):
            return node is up.value and self._see(module, up)
        if isinstance(up, _SHOWS):
            return self._shown(module, up, node)
        if isinstance(up, ast.Tuple) and (own := _own_targets(module, up, node)):
            return all(self._put(module, target) for target in own)
        if isinstance(up, _PLACES):
            together = up.elts if isinstance(up, _DISPLAYS) else []
            self._alike += [(module, other) for other in together if other is not node]
            return self._see(module, up)
        if isinstance(up, ast.For | ast.AsyncFor):
            return self._gone_over(module, up.target, node)
        if isinstance(up, ast.Return):
            return self._returned(module, up)
        if isinstance(up, ast.AugAssign):
            self._alike.append((module, up.target))
            return self._changed(module, up) and self._put(module, up.target)
        targets = targets_of(up)
        if isinstance(up, ast.NamedExpr):
            self._see(module, up)
        return bool(targets) and all(self._put(module, target) for target in targets)

    def _asked(self, module: Module, asked: ast.Attribute) -> bool:
        """Follow an attribute or a method of what has the value."""
        name, call = asked.attr, module.tree.call_of(asked)
        if name in SAYS_NO_VALUE or name in KNOWS_NO_SCALE:
            return name != "type" or call is None or not (call.args or call.keywords)
        if not isinstance(asked.ctx, ast.Load):
            return False
        if name in GIVES_THEM_ON:
            return self._see(module, call or asked)
        if call is None:
            return False
        if name == "setdefault":
            self._alike += [(module, one) for one in call.args[1:]]
            return self._see(module, call)
        if name in MULTIPLIES:
            self._factors += [*call.args, *(k.value for k in call.keywords)]
            return self._see(module, call)
        if name in ADDS and call.args:
            self._factors += [*call.args[1:], *(k.value for k in call.keywords)]
            self._alike.append((module, call.args[0]))
            return self._see(module, call)
        return False

    def _given(self, module: Module, call: ast.Call, node: ast.expr) -> bool:
        """Follow an argument of a call."""
        name, callees = last_name(call), self._project.callees(call)
        if callees:
            return all(self._received(module, call, callee, node) for callee in callees)
        if name in KNOWS_NO_SCALE or name in ASKS_NOTHING or name in TAKES_ITS_SHAPE:
            return True
        if name == "zip":
            return self._side_by_side(module, call, node)
        if reduces(name) or name in MAPS:
            return self._see(module, call)
        method = call.func if isinstance(call.func, ast.Attribute) and node in call.args else None
        if method is None or name not in ADDS or self._project.external(module, method) is not None:
            return False
        self._alike += [(module, one) for one in (method.value, *call.args)]
        return self._put(module, method.value, inside=True)

    def _side_by_side(self, module: Module, call: ast.Call, node: ast.expr) -> bool:
        """Follow one of the collections that a loop goes over side by side; else all of them have to be of gradients."""
        turn = module.tree.parent(call)
        target = turn.target if isinstance(turn, _TURNS) else None
        if isinstance(target, ast.Tuple) and node in call.args:
            if len(target.elts) == len(call.args):
                return self._put(module, target.elts[call.args.index(node)])
        self._alike += [(module, other) for other in call.args]
        return self._see(module, call)

    def _received(self, module: Module, call: ast.Call, callee: Function, node: ast.expr) -> bool:
        """Follow an argument into a function, and what that gives back for it out of there."""
        names = [name for name, value in self._project.given(call, callee).items() if value is node]
        if not names or is_generator(callee):
            return False
        scopes, scope = callee.module.scopes, callee.scope
        for name in names:
            bound = scopes.bindings(scope, name)
            self._bound.update(one for one in bound if isinstance(one, ast.arg))
            self._see(callee.module, *scopes.reads(scope, name))
        return True

    def _returned(self, module: Module, statement: ast.Return) -> bool:
        function = self._project.function_of(module, statement)
        sites = self._project.callers(function)
        if not sites or self._project.escapes(function):
            return False
        return all(self._see(site.function.module, site.call) for site in sites)

    def _item(self, module: Module, item: ast.Subscript) -> bool:
        """Follow an item of what has the value, or what becomes one."""
        if isinstance(item.ctx, ast.Load):
            return self._see(module, item)
        up = module.tree.parent(item)
        if isinstance(up, ast.AugAssign):
            return self._changed(module, up)
        self._alike += [(module, up.value)] if isinstance(up, ast.Assign) else []
        return isinstance(up, ast.Assign | ast.Delete)

    def _changed(self, module: Module, statement: ast.AugAssign) -> bool:
        if isinstance(statement.op, ast.Mult | ast.Div):
            self._factors.append(statement.value)
            return True
        self._alike.append((module, statement.value))
        return isinstance(statement.op, ast.Add | ast.Sub)

    def _computed(self, module: Module, result: ast.BinOp, node: ast.expr) -> bool:
        other = result.right if result.left is node else result.left
        if isinstance(result.op, ast.Add | ast.Sub):
            self._alike.append((module, other))
            return self._see(module, result)
        self._factors.append(other)
        divides = isinstance(result.op, ast.Div) and result.left is node
        return (divides or isinstance(result.op, ast.Mult)) and self._see(module, result)

    def _shown(self, module: Module, up: ast.AST, node: ast.expr) -> bool:
        """Follow what a comprehension goes over, asks, or collects."""
        if isinstance(up, ast.comprehension):
            return node is not up.iter or self._gone_over(module, up.target, node)
        return isinstance(up, ast.expr) and self._see(module, up)

    def _gone_over(self, module: Module, target: ast.expr, over: ast.expr) -> bool:
        """Follow the items of a collection into the names of a loop."""
        if isinstance(over, ast.Call) and isinstance(target, ast.Tuple):
            if last_name(over) in ("enumerate", "items") and len(target.elts) == 2:
                return self._put(module, target.elts[1])
        return self._put(module, target)

    def _put(self, module: Module, target: ast.expr, inside: bool = False) -> bool:
        """Follow the value into what it is put in: a name, an item of what a name holds, or a gradient again."""
        if isinstance(target, ast.Tuple | ast.List):
            return all(self._put(module, part, inside) for part in target.elts)
        if isinstance(target, ast.Attribute) and target.attr == "data":
            target = target.value
        if isinstance(target, ast.Attribute):
            return target.attr == "grad"
        if isinstance(target, ast.Subscript | ast.Call | ast.Starred):
            held = called_on(target) if isinstance(target, ast.Call) else target.value
            return held is not None and self._put(module, held, inside=True)
        if not isinstance(target, ast.Name):
            return False
        owner = module.scopes.owner(target)
        reads = module.scopes.reads(owner, target.id)
        if inside:
            self._alike += [(module, read) for read in reads[:1]]
        else:
            self._bound.add(target)
        if isinstance(owner, ast.Module) and not reads:
            return False  # kept for somebody else
        return is_own(self._project, module, owner) and self._see(module, *reads)

    def is_alike(self, module: Module, node: ast.expr) -> bool:
        """Tell whether an expression has values of gradients alone, or zeros."""
        if is_none(node) or makes_room(node) or is_empty(node):
            return True
        base: ast.AST = node
        while isinstance(base, ast.Attribute | ast.Subscript | ast.Starred) or (
            isinstance(base, ast.Call) and isinstance(base.func, ast.Attribute)
        ):
            if isinstance(base, ast.Attribute) and base.attr == "grad":
                return True
            base = base.func if isinstance(base, ast.Call) else base.value
        made = isinstance(node, ast.Call) and self._project.external(module, node.func) is not None
        if made or not isinstance(base, ast.Name):
            return node in self.seen
        return all(self._is_of_them(module, binding) for binding in module.scopes.bound(base))

    def _keeps_changed(self, module: Module, node: ast.expr) -> bool:
        """Tell whether a name stays what it is where ``name *= 2`` or ``name += other`` changes it."""
        bound = module.scopes.bound(node) if isinstance(node, ast.Name) else []
        changes = (module.tree.parent(binding) for binding in bound)
        return all(self._changed(module, up) for up in changes if isinstance(up, ast.AugAssign))

    def _is_of_them(self, module: Module, binding: ast.AST) -> bool:
        if binding in self._bound:
            return True
        if isinstance(module.tree.parent(binding), ast.AugAssign):
            return True
        value = bound_value(module, binding)
        return value is not None and (makes_room(value) or is_empty(value) or value in self.seen)


def _own_targets(module: Module, display: ast.Tuple, node: ast.expr) -> list[ast.expr]:
    """Return what gets one of several values that a statement assigns side by side: ``first, second = a, b``."""
    up = module.tree.parent(display)
    targets = up.targets if isinstance(up, ast.Assign) else []
    sides = [target for target in targets if isinstance(target, ast.Tuple | ast.List)]
    parts = [part for side in sides for part in (*side.elts, *display.elts)]
    paired = all(len(side.elts) == len(display.elts) for side in sides)
    if not sides or len(sides) < len(targets) or not paired:
        return []
    if any(isinstance(part, ast.Starred) for part in parts):
        return []
    return [side.elts[display.elts.index(node)] for side in sides]
