"""Values that surely have a floating type: as what gives them shows, or as something is computed of them that takes no other."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property, partial

from amp_migrate.facts.paths import all_given, tail
from amp_migrate.flow.cfg.points import Kind as PointKind
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.once import kept
from amp_migrate.training.beliefs import MULTIPLYING_LAYERS, RUN_IN_HALF, SHAPES
from amp_migrate.training.bindings import returned
from amp_migrate.training.forwards.known_losses import is_loss, is_loss_class
from amp_migrate.training.forwards.outputs import VIEWS
from amp_migrate.training.origins.losses import Losses
from amp_migrate.training.origins.reaching import changed_by
from amp_migrate.training.origins.walk import Origin, Place, Step, Walk, handed_in
from amp_migrate.training.types.floats import Kind
from amp_migrate.training.types.known import types_of

FRACTIONS = frozenset({"sigmoid", "softmax", "tanh"})
"""Functions and methods that give fractions, whatever they are given."""
KEEPS_TYPE = SHAPES | FRACTIONS | {"clone", "cuda", "relu"}

_FLOATS = frozenset({Kind.HALF, Kind.WIDE})
_ASKING = frozenset({"log_softmax", "logsigmoid", "logsumexp", "mean", "sigmoid", "softmax", "std", "var"})  # fmt: skip
"""Functions and methods of torch that compute of fractions alone, or make them of what they are given."""
_OF_LOSSES = frozenset({"mean", "std", "var"})
_ASKING_FUNCTIONS = RUN_IN_HALF | {"cosine_similarity", "normalize", "softmin", "softplus"}
_ASKING_MODULES = MULTIPLYING_LAYERS | {"LogSoftmax", "Sigmoid", "Softmax"}
_TENSORS = ("torch", "torch.nn.functional", "torch.special")
_METHODS = SHAPES | frozenset(
    {"chunk", "clone", "cpu", "cuda", "expand", "flip", "index_select", "narrow", "relu", "repeat", "split", "t", "unbind"}
)  # fmt: skip
_JOINS = frozenset({"cat", "concat", "hstack", "stack", "vstack"})


def floating_of(project: Project, losses: Losses, *, scores: bool = False) -> Floating:
    """Return what answers for a project; made once. What is known to be `scores` is no loss, of which only a mean is taken."""
    asked = floating_of, losses, scores
    return kept(project, asked, lambda: Floating(project, losses, scores=scores))


class Floating:
    """Answers for the expressions of a project."""

    def __init__(self, project: Project, losses: Losses, *, scores: bool = False) -> None:
        self._names = _ASKING - _OF_LOSSES if scores else _ASKING
        self._project = project
        self._losses = losses
        self._types = types_of(project, losses)

    def __call__(self, function: Function, node: ast.expr) -> bool:
        """Tell whether a tensor surely has a floating type."""
        return self._is(function, node, frozenset())

    def copied(self, function: Function, call: ast.Call) -> bool:
        """Tell whether ``x.cpu()`` is of such a tensor, also by what is computed of the copy."""
        assert isinstance(call.func, ast.Attribute)
        return call in self._asked or self(function, call.func.value)

    def _is(self, function: Function, node: ast.AST, seen: frozenset[ast.AST]) -> bool:
        if node in seen:
            return True  # what comes round to itself is what it was before
        seen |= {node}
        if not isinstance(node, ast.expr):
            return False
        if node in self._asked or {held.apex for held in self._types.of(function, node)} <= _FLOATS:
            return True
        if isinstance(node, ast.Name):
            return self._is_name(function, node, seen)
        if isinstance(node, ast.List):
            return all(self._is(function, each, seen) for each in node.elts)
        if isinstance(node, ast.Call):
            return self._is_given(function, node, seen)
        if isinstance(node, ast.Subscript) and not _spans(node):
            return self._is_item(function, node)
        part = _whole(node)
        if part is None and isinstance(node, ast.Attribute):
            stored = [o[:2] for o in self._losses.bound(function, node)]
            return bool(stored) and all(
                self._is(*each, seen) for each in (*stored, *self._put_in(function, node))
            )
        return part is not None and self._is(function, part, seen)

    def _put_in(self, function: Function, node: ast.expr) -> Iterator[Place]:
        """Yield what was put into the container that a variable or attribute holds."""
        return (self._losses.handed_over(n) for n in self._losses.put_in(function, node))

    def _joined(self, function: Function, node: ast.expr) -> frozenset[int]:
        """Return what was put into a container of which torch makes one tensor: ``torch.cat(outputs)``."""
        up = function.module.tree.parent(node)
        joins = isinstance(up, ast.Call) and up.args[:1] == [node] and tail(up) in _JOINS
        return self._losses.put_in(function, node) if joins else frozenset()

    def _is_name(self, function: Function, name: ast.Name, seen: frozenset[ast.AST]) -> bool:
        """Tell whether all that a variable may hold is so."""
        values = list(self._bound(function, name))
        return (
            bool(values)
            and all(
                bound in self._asked
                or (
                    value is not None
                    and self._is(self._losses.reached.holder(function, value), value, seen)
                )
                for bound, value in values
            )
            and all(self._is(*each, seen) for each in self._put_in(function, name))
        )

    def _is_given(self, function: Function, call: ast.Call, seen: frozenset[ast.AST]) -> bool:
        """Tell whether a call gives such a value."""
        if callees := self._project.callees(call):
            ends = [(callee, value) for callee in callees for value in returned(callee)]
            return bool(ends) and all(self._is(*end, seen) for end in ends)
        if self._gives_scores(function, call):
            return True
        if not _is_torch(self._project, function.module, call):
            return False
        if getattr(call.func, "attr", "") in FRACTIONS:
            return True
        part = _kept(self._project, function.module, call)
        return part is not None and self._is(function, part, seen)

    def _gives_scores(self, function: Function, call: ast.Call) -> bool:
        """Tell whether a network gives scores elsewhere, called with as much."""
        if any(held.apex is Kind.WHOLE for held in self._types.of(function, call)):
            return False  # as classes outside of a training
        groups = self._project.values.groups(function.module, call.func)
        given = len(all_given(call))
        return any(given == many and groups & others for many, others in self._giving)

    @cached_property
    def _giving(self) -> set[tuple[int, frozenset[int]]]:
        """How much calls are given that give scores, and the names of what is called."""
        groups = self._project.values.groups
        asked = floating_of(self._project, self._losses, scores=True)._asked
        calls = (n for n in asked if isinstance(n, ast.Call) and not self._project.callees(n))
        return {(len(all_given(c)), groups(self._project.module_of(c), c.func)) for c in calls}

    def _is_item(self, function: Function, node: ast.Subscript) -> bool:
        """Tell whether the same item of what a variable holds is asked for fractions elsewhere."""
        if not isinstance(node.value, ast.Name):
            return False
        held = {bound for bound, _ in self._bound(function, node.value)}
        text = ast.unparse(node)
        return bool(held) and any(
            held <= {bound for bound, _ in self._bound(function, other.value)}
            for other in self._items.get((function, text), ())
            if isinstance(other.value, ast.Name)
        )

    @cached_property
    def _items(self) -> dict[tuple[Function, str], list[ast.Subscript]]:
        """The items that are asked for fractions, by their functions and texts."""
        found: dict[tuple[Function, str], list[ast.Subscript]] = {}
        for node in self._asked:
            if isinstance(node, ast.Subscript):
                at = self._project.holder(node), ast.unparse(node)
                found.setdefault(at, []).append(node)
        return found

    @cached_property
    def _asked(self) -> set[ast.AST]:
        """The expressions and variables that go as they are into what computes of fractions alone."""
        walk = Walk(partial(Floating._step, self), self._losses.handed_over)
        return walk.back(self._asking())[1]

    def _asking(self) -> Iterator[tuple[Function, ast.expr]]:
        """Yield what is given to something that takes fractions alone."""
        for module, call in self._project.nodes(ast.Call):
            given = self._asks(module, call)
            if given is not None:
                yield self._project.function_of(module, call), given

    def _asks(self, module: Module, call: ast.Call) -> ast.expr | None:
        name = self._project.external(module, call.func)
        if name is not None:
            package, _, last = name.rpartition(".")
            functional = last in _ASKING_FUNCTIONS or is_loss(last)
            asks = last in self._names or (package == _TENSORS[1] and functional)
            return _first(call) if package in _TENSORS and asks else None
        if isinstance(call.func, ast.Attribute) and call.func.attr in self._names:
            return None if self._project.callees(call) else call.func.value
        made = self._project.values.made_by(module, call.func)
        asks = bool(made) and all(is_loss_class(each) or _is_module(each) for each in made)
        return _first(call) if asks else None

    def _step(self, function: Function, node: ast.AST) -> Step:
        """Return what comes straight before a value, in its type."""
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            return Step((), self._origins(function, node), self._joined(function, node))
        if isinstance(node, ast.Attribute) and node.attr not in VIEWS:
            return Step((), [], self._joined(function, node))
        if isinstance(node, ast.Call):
            if callees := self._project.callees(node):
                ends = [Origin(c, value, down=node) for c in callees for value in returned(c)]
                return Step((), ends)
            if _is_torch(self._project, function.module, node):
                part = _kept(self._project, function.module, node)
                return Step((), [Origin(function, part)] if part is not None else [])
            return Step()
        return Step((), [Origin(function, part) for part in _parts(node)])

    def _origins(self, function: Function, name: ast.Name) -> list[Origin]:
        found: list[Origin] = []
        for bound, value in self._bound(function, name):
            if isinstance(value, ast.expr):
                holder = self._losses.reached.holder(function, value)
                found.append(Origin(holder, value, elsewhere=holder is not function))
            if isinstance(bound, ast.arg):
                found += handed_in(self._project, function, bound.arg)
            elif bound is not value:
                found.append(Origin(function, bound))
        return found

    def _bound(
        self, function: Function, name: ast.Name
    ) -> Iterator[tuple[ast.AST, ast.expr | None]]:
        """Yield where a variable may have been bound last, each with the value that stands there."""
        module = function.module
        if module.scopes.owner(name) is not function.scope:
            for value in self._losses.reaching(function, name):
                if value is not None:
                    yield value, value if isinstance(value, ast.expr) else None
            return
        for value in self._losses.reaching(function, name):
            if isinstance(value, ast.arg):
                yield value, None
        for point in self._losses.graph(function).bound_before(name):
            if point.kind is PointKind.ENTRY or point.node is None:
                continue
            value = point.value
            if value is None:
                up = module.tree.parent(point.node)
                plain = isinstance(up, ast.Assign) and point.node in up.targets
                value = up.value if plain and isinstance(up, ast.Assign) else None
            elif changed_by(module, value) is not None:
                value = None
            yield point.node, value


def _is_torch(project: Project, module: Module, call: ast.Call) -> bool:
    """Tell whether a call is of a function of torch, or of a method that no class of the project is seen to have."""
    name = project.external(module, call.func)
    return name.startswith("torch.") if name is not None else isinstance(call.func, ast.Attribute)


def _kept(project: Project, module: Module, call: ast.Call) -> ast.expr | None:
    """Return what a call of torch gives in its type."""
    name = project.external(module, call.func)
    if name is not None:
        return _first(call) if name.rpartition(".")[2] in _JOINS | _METHODS else None
    kept_by = isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS
    return call.func.value if kept_by and isinstance(call.func, ast.Attribute) else None


def _first(call: ast.Call) -> ast.expr | None:
    given = all_given(call)
    return given[0] if given and not isinstance(given[0], ast.Starred) else None


def _is_module(made: str) -> bool:
    package, _, name = made.rpartition(".")
    return package.startswith("torch.nn") and name in _ASKING_MODULES


def _spans(node: ast.Subscript) -> bool:
    """Tell whether an index takes a part of a tensor, as no container has it: ``x[:, 0]``."""
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return len(indices) > 1 or any(isinstance(each, ast.Slice) for each in indices)


def _whole(node: ast.expr) -> ast.expr | None:
    """Return the tensor that an expression gives another view of."""
    if isinstance(node, ast.Subscript):
        return node.value if _spans(node) else None
    if isinstance(node, ast.Attribute):
        return node.value if node.attr in VIEWS else None
    return node.value if isinstance(node, ast.NamedExpr) else None


def _parts(node: ast.AST) -> Iterable[ast.expr]:
    """Return what an expression gives one of, in its type."""
    if isinstance(node, ast.List):
        return node.elts
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        return [node.elt]
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    part = _whole(node) if isinstance(node, ast.expr) else None
    return [] if part is None else [part]
