"""What becomes of a loss that is multiplied by the loss scale: a backward pass is all that it is good for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.constants import is_none
from amp_migrate.facts.paths import same, tail
from amp_migrate.facts.scopes import targets_of
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.reach import where_read
from amp_migrate.training.contexts import scales_loss
from amp_migrate.training.objects import Objects
from amp_migrate.training.origins.losses import Losses
from amp_migrate.training.origins.reaching import Body
from amp_migrate.training.steps import differentiates

_MEMBERS = frozenset({"items", "values"})
_NUMBERS = frozenset({"data", "detach", "item", "numpy", "tolist"})
_DROPS = ast.Expr | ast.Delete
_PASSES = (
    ast.IfExp | ast.BoolOp | ast.NamedExpr | ast.Await | ast.Starred | ast.Subscript | ast.UnaryOp
)
_HOLDS = ast.List | ast.Tuple | ast.Set | ast.Dict | ast.ListComp | ast.GeneratorExp
_Pair = tuple[Module, ast.expr]


class Uses:
    """Follows scaled losses from where they are made: names, attributes, arguments and results."""

    def __init__(self, project: Project, objects: Objects, losses: Losses, body: Body) -> None:
        self._project = project
        self._objects = objects
        self._losses = losses
        self._body = body

    def wrong(self) -> Iterator[_Pair]:
        """Yield the expressions that use a scaled loss for something else than its backward pass."""
        queue = [*self._scaled(), *self._apex()]
        seen = {node for _, node in queue}
        for module, node in queue:
            for found in self._onward(module, node):
                if found is None:
                    yield module, node
                elif found[1] not in seen:
                    seen.add(found[1])
                    queue.append(found)

    def _scaled(self) -> Iterator[_Pair]:
        for module, call in self._objects.method_calls.get("scale", []):
            assert isinstance(call.func, ast.Attribute)
            if call.args and self._objects.scaler(module, call.func.value) is not None:
                yield module, call

    def _apex(self) -> Iterator[_Pair]:
        """Yield the names of the losses that `amp.scale_loss` scales, and what a stack gives that enters it."""
        for module, call in self._project.nodes(ast.Call):
            if tail(call) == "enter_context" and len(call.args) == 1:
                if scales_loss(self._project, module, call.args[0]):
                    yield module, call
        for module, item in self._project.nodes(ast.withitem):
            name = item.optional_vars
            if isinstance(name, ast.Name) and scales_loss(self._project, module, item.context_expr):
                for load in _loads(module, name):
                    yield module, load

    def _onward(self, module: Module, node: ast.expr) -> Iterator[_Pair | None]:
        """Yield where the value of an expression goes on; None for a use of it as a number."""
        up = module.tree.user(node)
        if isinstance(up, ast.Attribute):
            yield from self._attribute(module, up)
        elif isinstance(up, ast.Call):
            yield from self._argument(module, up, node)
        elif isinstance(up, ast.Assign | ast.AnnAssign | ast.NamedExpr):
            for target in targets_of(up):
                yield from self._stored(module, target, node)
            if isinstance(up, ast.NamedExpr):
                yield module, up
        elif isinstance(up, ast.AugAssign):
            yield from self._stored(module, up.target, node) if up.value is node else ()
        elif isinstance(up, ast.Return):
            for site in self._project.callers(self._body(module, up)):
                yield site.function.module, site.call
        elif isinstance(up, ast.BinOp):
            yield from self._combined(module, up, node)
        elif isinstance(up, _PASSES):
            decides = isinstance(up, ast.IfExp) and up.test is node
            yield None if decides else (module, up)
        elif isinstance(up, _HOLDS):
            yield module, up
        elif isinstance(up, ast.Compare):
            yield from () if _asks_for_none(up) else (None,)
        elif not isinstance(up, ast.For | ast.comprehension | ast.withitem | _DROPS):
            yield None

    def _attribute(self, module: Module, up: ast.Attribute) -> Iterator[_Pair | None]:
        call = module.tree.parent(up)
        if up.attr == "backward":
            return
        if up.attr in _MEMBERS and isinstance(call, ast.Call):
            yield from self._members(module, call)
        elif up.attr in _NUMBERS:
            yield None
        elif (called := module.tree.call_of(up)) is not None:
            yield module, called

    def _members(self, module: Module, call: ast.Call) -> Iterator[_Pair]:
        """Yield the names that a loop over ``losses.items()`` gives its members."""
        loop = module.tree.parent(call)
        if isinstance(loop, ast.For | ast.comprehension) and loop.iter is call:
            targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
            if isinstance(targets[-1], ast.Name):
                for load in _loads(module, targets[-1]):
                    yield module, load

    def _argument(self, module: Module, call: ast.Call, node: ast.expr) -> Iterator[_Pair | None]:
        if call.func is node:
            return
        callees = self._project.callees(call)
        for callee in callees:
            given = self._project.given(call, callee)
            for parameter in (p for p, argument in given.items() if argument is node):
                yield from self._parameter(callee, parameter)
        if callees:
            return
        if differentiates(self._project, module, call):
            return
        name = self._project.external(module, call.func)
        inside = name is not None and name.startswith("torch.")
        yield (module, call) if inside or _sums(call) else None

    def _parameter(self, function: Function, name: str) -> Iterator[_Pair]:
        module = function.module
        for load in module.scopes.reads(function.scope, name):
            if any(isinstance(v, ast.arg) for v in self._reaching(module, load)):
                yield module, load

    def _stored(self, module: Module, target: ast.expr, value: ast.expr) -> Iterator[_Pair]:
        if isinstance(target, ast.Name):
            for load in _loads(module, target):
                if value in self._reaching(module, load):
                    yield module, load
        elif isinstance(target, ast.Attribute):
            groups = self._objects.groups(module, target)
            for where, read in where_read(self._project, target.attr):
                same_one = groups & self._objects.groups(where, read)
                if same_one and not _before(where, read, target):
                    yield where, read
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            for load in _loads(module, target.value):
                item = module.tree.parent(load)
                if not isinstance(item, ast.Subscript):
                    yield module, load
                elif same(item.slice, target.slice) and item is not target:
                    if not _within(module, item, value):
                        yield module, item

    def _reaching(self, module: Module, load: ast.Name) -> list[ast.expr | ast.arg | None]:
        return self._losses.reaching(self._body(module, load), load)

    def _combined(self, module: Module, up: ast.BinOp, node: ast.expr) -> Iterator[_Pair | None]:
        other = up.right if up.left is node else up.left
        function = self._body(module, up)
        if isinstance(up.op, ast.Div) and any(
            isinstance(part, ast.Attribute) and part.attr == "get_scale" for part in ast.walk(other)
        ):
            return
        linear = isinstance(up.op, ast.Mult | ast.Div)
        added = isinstance(up.op, ast.Add | ast.Sub) and self._losses.scaled(function, other)
        empty = isinstance(other, ast.Constant) and other.value == 0
        yield (module, up) if linear or added is not False or empty else None


def _loads(module: Module, name: ast.Name) -> list[ast.Name]:
    return module.scopes.reads(module.scopes.owner(name), name.id)


def _asks_for_none(node: ast.Compare) -> bool:
    sides = (node.left, *node.comparators)
    return any(is_none(side) for side in sides)


def _sums(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in ("sum", "list", "tuple", "dict")


def _within(module: Module, node: ast.AST, value: ast.expr) -> bool:
    return value is node or value in module.tree.ancestors(node)


def _before(module: Module, read: ast.Attribute, target: ast.Attribute) -> bool:
    """Tell whether an attribute is read for the value that replaces it."""
    return module.tree.statement(read) is module.tree.parents.get(target)
