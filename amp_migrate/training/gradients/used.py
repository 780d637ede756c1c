"""Where gradients of parameters are read, cleared or put in place through ``.grad``. What is not known reads them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.closure import spread
from amp_migrate.facts.constants import is_none, string
from amp_migrate.facts.paths import looked_up, tail
from amp_migrate.facts.scopes import assigned, targets_of
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.reach import reachable
from amp_migrate.training.beliefs import (
    CLEARS,
    HAND_OUT_PARAMETERS,
    KEEPS_THE_SCALE,
    KNOWS_NO_SCALE,
    READS_GRADIENTS,
    SHAPE_OF_GRADIENT,
    reduces,
)
from amp_migrate.training.bindings import bound_value
from amp_migrate.training.gradients.changed import given, is_data
from amp_migrate.training.gradients.kept import Kept
from amp_migrate.training.gradients.linear import Linear
from amp_migrate.training.gradients.magnitude import Magnitude
from amp_migrate.training.steppers import makes_optimizer

_DISPLAY = ast.List | ast.Tuple | ast.Set | ast.Dict


def clips(project: Project, module: Module, call: ast.Call) -> bool:
    """Tell whether a call clips gradients or computes their norm."""
    return bool({tail(call), project.lookup.called(module, call)} & READS_GRADIENTS)


class Gradients:
    """Reads the uses of ``.grad``."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self.kept = Kept(project)
        self._linear = Linear(project)

    def use(self, function: Function, node: ast.Attribute) -> str | None:
        """Return what ``x.grad`` is for: "read", "clear", "keep", "give back", or None where its values do not matter."""
        if not self._of_parameter(function, node.value):
            return None
        tree = function.module.tree
        up = tree.parent(node)
        if isinstance(node.ctx, ast.Store):
            return self._stored(function.module, up)
        if not isinstance(node.ctx, ast.Load):
            return "clear"
        found = _loaded(node, tree.parents)
        if found == "read" and self.kept.is_put_aside(function.module, node):
            return "keep"
        if found != "read" or Magnitude(function).cancels(node):
            return None if found == "read" else found
        return None if self._linear.stays(function.module, node) else found

    def is_changed(self, function: Function, gradient: ast.Attribute, name: ast.expr) -> bool:
        """Tell whether ``x.grad``, or a name that holds it, becomes anything but a multiple of what it is, or empty."""
        value = given(function.module, name)
        if value is None or self.kept.is_given_back(function.module, value):
            return False
        if self._linear.gives(function, value):
            return False
        return self._of_parameter(function, gradient.value)

    def of_input(self, function: Function, node: ast.Attribute) -> bool:
        """Tell whether ``x.grad`` is that of an input, and its values matter."""
        if node.attr != "grad" or not isinstance(node.ctx, ast.Load):
            return False
        if self._project.external(function.module, node) is not None:
            return False  # `torch.autograd.grad`
        if self._of_parameter(function, node.value):
            return False
        read = _loaded(node, function.module.tree.parents) == "read"
        return read and not Magnitude(function).cancels(node)

    def taken(self, function: Function, call: ast.Call) -> bool:
        """Tell whether the values of ``getattr(p, "grad")`` matter."""
        if not self._of_parameter(function, call.args[0]):
            return False
        return _loaded(call, function.module.tree.parents) == "read"

    def _stored(self, module: Module, up: ast.AST | None) -> str | None:
        if isinstance(up, ast.Assign | ast.AnnAssign):
            if self.kept.is_given_back(module, up.value):
                return "give back"
            return "clear" if is_none(up.value) else None
        if isinstance(up, ast.AugAssign):
            return None if isinstance(up.op, ast.Mult | ast.Div) else "read"
        return None

    def _of_parameter(self, function: Function, base: ast.expr) -> bool:
        """Tell whether the owner of a gradient may be a parameter; an input that asks for gradients is none."""
        module = function.module
        if self._project.external(module, base) is not None:
            return False
        while isinstance(base, ast.Attribute | ast.Subscript) and is_data(base):
            base = base.value
        if not isinstance(base, ast.Name):
            return True
        bindings = module.scopes.bound(base)
        values = [bound_value(module, binding) for binding in bindings]
        if any(value is not None and self._hands_out(value) for value in values):
            return True
        if self._is_trained(module, base):
            return True
        if any(isinstance(b, ast.arg) for b in bindings) or not bindings:
            return not _asks_for_gradients(function, base.id)
        # What a loop goes over may hold parameters that somebody keeps, whatever call gives it.
        own = [assigned(module.tree, binding) for binding in bindings]
        if own and all(isinstance(value, ast.Call | ast.BinOp) for value in own):
            return False
        return not _asks_for_gradients(function, base.id)

    def _is_trained(self, module: Module, name: ast.Name) -> bool:
        """Tell whether a tensor is in a list that an optimizer may get: ``Adam([image])``."""
        return any(
            self._goes_to_optimizer(module, load)
            for load in module.scopes.spelt(module.scopes.owner(name), name.id)
            if isinstance(module.tree.parent(load), _DISPLAY)
        )

    def _goes_to_optimizer(self, module: Module, item: ast.expr) -> bool:
        """Tell whether an optimizer may get what a list is made of, at once or by the variable that holds the list."""
        up = module.tree.parent(item)
        while isinstance(up, _DISPLAY | ast.Starred | ast.keyword | ast.IfExp):
            up = module.tree.parent(up)
        if isinstance(up, ast.Call):
            return self._may_make_optimizer(module, up)
        if any(isinstance(target, ast.Tuple | ast.List) for target in targets_of(up)):
            return False  # it is taken apart again
        held = [target for target in targets_of(up) if isinstance(target, ast.Name)]
        if len(held) != 1 or len(targets_of(up)) != 1:
            return not isinstance(up, ast.Return | ast.For)
        loads = module.scopes.reads(module.scopes.owner(held[0]), held[0].id)
        unpacked = all(isinstance(module.tree.parent(load), ast.Starred) for load in loads)
        return not unpacked or any(self._goes_to_optimizer(module, load) for load in loads)

    def _may_make_optimizer(self, module: Module, call: ast.Call) -> bool:
        """Tell whether a call makes an optimizer, or runs what may."""
        callees = self._project.callees(call)
        if not callees:
            known = self._project.external(module, call.func)
            return known is None or makes_optimizer(known)
        run = {f for callee in callees for f in (callee, *reachable(self._project, callee))}
        names = (self._project.external(f.module, c.func) for f in run for c in f.calls)
        return any(name is not None and makes_optimizer(name) for name in names)

    def _hands_out(self, node: ast.AST) -> bool:
        """Tell whether an expression goes over parameters, itself or in a function that it calls."""
        callees = self._project.callees

        def onward(part: ast.AST) -> Iterator[ast.AST]:
            calls = (call for call in ast.walk(part) if isinstance(call, ast.Call))
            return (callee.scope for call in calls for callee in callees(call))

        return any(map(hands_out, spread([node], onward)))


def hands_out(node: ast.AST) -> bool:
    """Tell whether an expression goes over parameters of a network or an optimizer."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and part.attr in HAND_OUT_PARAMETERS:
            return True
        if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant):
            if part.slice.value == "params":
                return True
    return False


def absent(test: ast.expr) -> tuple[ast.Attribute, bool] | None:
    """Return the gradient that a test asks for, and how the test comes out where there is none."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        asked = absent(test.operand)
        return None if asked is None else (asked[0], not asked[1])
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    gradient, against = test.left, test.comparators[0]
    if not isinstance(gradient, ast.Attribute) or gradient.attr != "grad":
        return None
    if not isinstance(against, ast.Constant) or against.value is not None:
        return None
    return gradient, isinstance(test.ops[0], ast.Is | ast.Eq)


def _asks_for_gradients(function: Function, name: str) -> bool:
    """Tell whether a function makes a tensor a leaf that asks for gradients, as it does an input or a perturbation."""
    return any(
        isinstance(held, ast.Name) and held.id == name
        for part in function.own_nodes
        if isinstance(part, ast.Attribute)
        for held in _made_a_leaf(function, part)
    )


def _made_a_leaf(function: Function, asked: ast.Attribute) -> Iterator[ast.expr]:
    """Yield what ``x.requires_grad = True``, ``x.requires_grad_()`` and ``x = y.detach().requires_grad_()`` make a leaf."""
    if asked.attr == "requires_grad_":
        yield asked.value
        tree = function.module.tree
        call = tree.call_of(asked)
        yield from targets_of(tree.parent(call)) if call is not None else ()
    elif asked.attr == "requires_grad" and isinstance(asked.ctx, ast.Store):
        yield asked.value


def _loaded(node: ast.expr, parents: dict[ast.AST, ast.AST]) -> str | None:
    up = parents.get(node)
    if isinstance(up, ast.Compare):
        others = [*up.comparators, up.left]
        against_none = any(is_none(o) for o in others)
        return None if against_none else "read"
    if isinstance(up, ast.Attribute):
        called = parents.get(up)
        if up.attr in CLEARS:
            return "clear"
        if up.attr in SHAPE_OF_GRADIENT or up.attr in KNOWS_NO_SCALE:
            return None
        if up.attr in KEEPS_THE_SCALE:
            value: ast.expr = called if isinstance(called, ast.Call) and called.func is up else up
            return _loaded(value, parents)
        return "read"
    if isinstance(up, ast.Expr | ast.If | ast.BoolOp | ast.UnaryOp | ast.IfExp):
        return None
    if isinstance(up, ast.Subscript) and up.value is node:
        return _item(up, parents)
    if isinstance(up, ast.Call):
        if reduces(tail(up)) or tail(up) in KNOWS_NO_SCALE:
            return None
    if isinstance(up, ast.AugAssign) and up.target is node:
        return None if isinstance(up.op, ast.Mult | ast.Div) else "read"
    return "read"


def _item(node: ast.Subscript, parents: dict[ast.AST, ast.AST]) -> str | None:
    """Return what an item of a gradient is for; one that is set to zero is as good as cleared."""
    if isinstance(node.ctx, ast.Load):
        return _loaded(node, parents)
    up = parents.get(node)
    zero = isinstance(up, ast.Assign) and isinstance(up.value, ast.Constant) and up.value.value == 0
    return None if zero else "read"


def takes_gradient(call: ast.Call) -> bool:
    """Tell whether a call is ``getattr(p, "grad")``."""
    found = looked_up(call)
    return found is not None and string(found[1]) == "grad"
