"""The optimizers of a project: where each is made, what holds it, and what it trains."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import all_given, path
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.training.beliefs import HAND_OUT_PARAMETERS
from amp_migrate.training.bindings import values_of
from amp_migrate.training.gradients.handed_out import bases, is_kept
from amp_migrate.training.objects import Objects
from amp_migrate.training.steppers import is_optimizer_class


@dataclass(eq=False)
class Optimizer:
    """An optimizer: the call that makes it, the statement around it, and the name that then holds it.

    `name` is None where no name or attribute does, and `networks` are how the program calls the modules whose
    parameters it gets, as they can be read at the statement. `groups` and `trains` are the names of the objects.
    """

    module: Module
    function: Function
    call: ast.Call
    statement: ast.stmt
    name: str | None
    networks: tuple[str, ...]
    groups: frozenset[int]
    trains: frozenset[int]

    @property
    def spoken(self) -> str:
        """What a message calls it."""
        return self.name or ast.unparse(self.call.func)


class Optimizers:
    """Finds the optimizers of a project; what it does not know to be one may still step like one."""

    def __init__(self, project: Project, objects: Objects) -> None:
        self.project = project
        self._objects = objects

    @cached_property
    def every(self) -> tuple[Optimizer, ...]:
        """All optimizers, in the order of the files and of the text."""
        found = [self._read(module, call) for call, module in self._calls()]
        return tuple(sorted(found, key=lambda o: (o.module.path, o.call.lineno, o.call.col_offset)))

    def stepped(self, module: Module, node: ast.expr) -> list[Optimizer]:
        """Return the optimizers that an expression may hold."""
        groups = self._objects.groups(module, node)
        return [o for o in self.every if o.groups & groups]

    def method_calls(self, name: str) -> list[tuple[Module, ast.Call]]:
        """Return the calls ``x.name(...)`` of the project."""
        return self._objects.method_calls.get(name, [])

    def _calls(self) -> Iterator[tuple[ast.Call, Module]]:
        """Yield the calls that make optimizers; where a function gives one to a single caller, the call in it."""
        given = {
            call: self.project.function_of(module, call)
            for call, module in self._objects.makers.own.items()
            if call not in self._objects.makers.calls
        }
        apart = {
            function
            for call, function in given.items()
            if not _name(function.module.tree.statement(call), call)
            or len(self.project.calls_of(function)) != 1
        }
        inner = {call: f.module for call, f in given.items() if f not in apart}
        yield from inner.items()
        known = {
            group for call, module in inner.items() for group in self._objects.groups(module, call)
        }
        for call, module in self._objects.makers.calls.items():
            if not known & self._objects.groups(module, call):
                yield call, module
        stepping = self._stepping
        for module, call in self.project.nodes(ast.Call):
            if call not in self._objects.makers.calls and self._makes(module, call, stepping):
                yield call, module

    @cached_property
    def _stepping(self) -> frozenset[int]:
        """The names of what is told both to step and to clear gradients."""
        calls = self._objects.method_calls
        held = [
            {
                group
                for module, call in calls.get(method, ())
                if isinstance(call.func, ast.Attribute)
                for group in self._objects.groups(module, call.func.value)
            }
            for method in ("step", "zero_grad")
        ]
        return frozenset(held[0] & held[1])

    def _makes(self, module: Module, call: ast.Call, stepping: frozenset[int]) -> bool:
        """Tell whether a call makes an optimizer that is not torch's own: of a class, or of a library."""
        constructed = self.project.constructed(call)
        if constructed:
            return any(map(is_optimizer_class, constructed))
        if self.project.callees(call) or (
            isinstance(call.func, ast.Attribute) and call.func.attr in ("step", "zero_grad")
        ):
            return False
        name = self.project.external(module, call.func)
        if name is None or name.startswith("torch."):
            return False
        given = all_given(call)
        if any(part in self._objects.makers.own for node in given for part in ast.walk(node)):
            return False  # it holds an optimizer
        takes = any(True for node in given for _ in bases(module, node, set()))
        return takes and bool(self._objects.groups(module, call) & stepping)

    def _read(self, module: Module, call: ast.Call) -> Optimizer:
        function = self.project.function_of(module, call)
        statement = module.tree.statement(call)
        networks = tuple(self._networks(module, function, call))
        return Optimizer(
            module,
            function,
            call,
            statement,
            _name(statement, call) or self._held(module, statement, call),
            tuple(dict.fromkeys(path(node) or ast.unparse(node) for node in networks)),
            self._objects.groups(module, call),
            frozenset(g for node in networks for g in self._objects.groups(module, node)),
        )

    def _held(self, module: Module, statement: ast.stmt, call: ast.Call) -> str | None:
        """Return the attribute of an object that keeps the optimizer that its constructor is given."""
        maker = module.tree.parent(call)
        target = _name(statement, maker) if isinstance(maker, ast.Call) else None
        if target is None or not isinstance(maker, ast.Call):
            return None
        groups = self._objects.groups(module, call)
        for cls in self.project.constructed(maker):
            for method in cls.methods.values():
                for node in method.all_nodes:
                    stores = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
                    if (
                        stores
                        and isinstance(node, ast.Attribute)
                        and method.is_receiver(node.value)
                    ):
                        if self._objects.groups(cls.module, node) & groups:
                            return f"{target}.{node.attr}"
        return None

    def _networks(self, module: Module, function: Function, call: ast.Call) -> Iterator[ast.expr]:
        """Yield the networks whose parameters a call is given, that can be read where it stands.

        Of parts of a network the whole that is called.
        """
        for node in all_given(call):
            parts = [part for value in self._sources(module, node) for part in ast.walk(value)]
            found = [
                p.value
                for p in parts
                if isinstance(p, ast.Attribute) and p.attr in HAND_OUT_PARAMETERS
                if not is_kept(module, p)
            ]
            for base in self._read_in(module, function, found) or self._read_in(
                module, function, self._handed(module, parts)
            ):
                yield from self._whole(module, base)
            if path(node) and self._objects.is_network(module, node):
                yield node

    def _sources(self, module: Module, node: ast.expr) -> list[ast.expr]:
        """Return an expression, and those that its variables and the attributes of its object are set to, over and over."""
        return closure(
            [node], lambda value: (v for part in ast.walk(value) for v in self._bound(module, part))
        )

    def _bound(self, module: Module, node: ast.AST) -> Iterator[ast.expr]:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield from values_of(module, node)
        elif isinstance(node, ast.Attribute) and self._is_own(module, node):
            cls = self._class_of(module, node)
            for where, target, value in self._objects.stored.get(node.attr, ()):
                if (
                    where is module
                    and self._is_own(module, target)
                    and self._class_of(module, target) is cls
                ):
                    yield value

    def _class_of(self, module: Module, node: ast.AST) -> Class | None:
        return self.project.function_of(module, node).cls

    def _handed(self, module: Module, parts: list[ast.AST]) -> list[ast.expr]:
        """Return the networks that functions of the project are given, as those that make groups of parameters."""
        return [
            given
            for call in parts
            if isinstance(call, ast.Call) and self.project.callees(call)
            for given in all_given(call)
            if path(given) and self._objects.is_network(module, given)
        ]

    def _read_in(self, module: Module, function: Function, found: list[ast.expr]) -> list[ast.expr]:
        return [node for node in found if self._visible(module, function, node)]

    def _whole(self, module: Module, node: ast.expr) -> Iterator[ast.expr]:
        """Yield the outermost of an expression and what it is a part of that is called; else the name that it has."""
        up: ast.expr | None = node
        named: list[ast.expr] = []
        while isinstance(up, ast.Attribute | ast.Subscript | ast.Name):
            named += [up] if path(up) else []
            up = None if isinstance(up, ast.Name) else up.value
        run = [part for part in named if self._objects.groups(module, part) & self._called]
        yield from [*run[-1:], *named[:1]][:1]

    @cached_property
    def _called(self) -> frozenset[int]:
        """The names of what is called, but for functions and classes of the project."""
        return frozenset(
            group
            for module, call in self.project.nodes(ast.Call)
            if isinstance(call.func, ast.Name | ast.Attribute)
            and not self.project.constructed(call)
            for group in self._objects.groups(module, call.func)
        )

    def _is_own(self, module: Module, node: ast.Attribute) -> bool:
        return self.project.function_of(module, node).is_receiver(node.value)

    def _visible(self, module: Module, function: Function, node: ast.expr) -> bool:
        held = self.project.function_of(module, node)
        if held is function or held.node is None:
            return True
        own = isinstance(node, ast.Attribute) and held.is_receiver(node.value)
        return own and held.cls is function.cls and held.receiver == function.receiver


def _name(statement: ast.stmt, call: ast.Call) -> str | None:
    """Return the name or attribute to which a statement binds what a call gives."""
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        pairs: list[tuple[ast.expr, ast.expr]] = [(statement.target, statement.value)]
    elif isinstance(statement, ast.Assign):
        pairs = [(target, statement.value) for target in statement.targets]
    else:
        return None
    for target, value in pairs:
        for name, held in _parted(target, value):
            arms = [held.body, held.orelse] if isinstance(held, ast.IfExp) else [held]
            if call in arms:
                return path(name)
    return None


def _parted(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    sides = (target, value)
    if all(isinstance(side, ast.Tuple | ast.List) for side in sides):
        parts = [side.elts for side in sides if isinstance(side, ast.Tuple | ast.List)]
        if len(parts[0]) == len(parts[1]):
            yield from zip(*parts, strict=True)
            return
    yield target, value
