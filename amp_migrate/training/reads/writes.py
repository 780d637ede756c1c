"""Where weights are written by hand: averages, clipping, copies of one network into another."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from amp_migrate.facts.scopes import assigned
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.project.reach import of_new_objects
from amp_migrate.training.bindings import bound_value
from amp_migrate.training.gradients.handed_out import bases
from amp_migrate.training.gradients.used import hands_out
from amp_migrate.training.named import Groups
from amp_migrate.training.objects import Objects

Writing = ast.Call | ast.Attribute | ast.AugAssign
_NOT_WRITTEN = frozenset({"requires_grad_", "share_memory_", "retain_grad_", "__init__"})


class Concerned(NamedTuple):
    """The names of networks that run or are written, and of those that these are parts of."""

    networks: Groups
    within: Groups


NOTHING_NAMED = Concerned(frozenset(), frozenset())


def concerned(networks: Groups, within: Groups) -> Concerned:
    """Return some networks beside what they are parts of; where they have no names, that may be what is meant."""
    return Concerned(networks, within) if networks else Concerned(within, networks)


def joined(found: Iterable[Concerned]) -> Concerned:
    """Return what any of several concerns."""
    both = list(found)
    whole = frozenset[int]().union(*(one.networks for one in both))
    return Concerned(whole, frozenset[int]().union(*(one.within for one in both)) - whole)


class Writes:
    """Asks whether a call or an assignment writes weights, and of which networks."""

    def __init__(self, project: Project, objects: Objects) -> None:
        self._project = project
        self._objects = objects

    def of(self, module: Module, node: Writing) -> Concerned | None:
        """Return the names of the networks whose weights a node writes; None where it writes none.

        It is an operation in place, ``p -= step`` too, the state of a network that is loaded, or ``p.data`` that is
        assigned to. No names stand for any network.
        """
        networks = self._networks(module, node)
        if networks is None or (networks and all(self._is_new(module, n) for n in networks)):
            return None
        named = [self._named(module, network) for network in networks]
        return joined(named) if all(one.networks for one in named) else NOTHING_NAMED

    @cached_property
    def networks(self) -> Groups:
        """The names of all networks whose weights something writes, and of what these are parts of."""
        found = joined(self.of(m, node) or NOTHING_NAMED for m, node, _ in self._all)
        return found.networks | found.within

    def by(self, function: Function) -> bool:
        """Tell whether a function writes weights itself."""
        return any(self._project.function_of(m, node) is function for m, node, _ in self._all)

    @cached_property
    def fields(self) -> frozenset[str]:
        """The names of the attributes that hold networks whose weights something writes."""
        held = [network for _, _, networks in self._all for network in networks]
        return frozenset(
            n.attr for network in held for n in spelt(network) if isinstance(n, ast.Attribute)
        )

    @cached_property
    def own(self) -> frozenset[Class]:
        """The classes of the project that write the weights of their own object."""
        found: set[Class] = set()
        for module, _, networks in self._all:
            for network in networks:
                function = self._project.function_of(module, network)
                if function.cls is not None and function.is_receiver(network):
                    found.add(function.cls)
        return frozenset(found)

    @cached_property
    def _all(self) -> list[tuple[Module, Writing, list[ast.expr]]]:
        found = []
        for module in self._project.modules.values():
            for node in module.tree.nodes(ast.Call, ast.Attribute, ast.AugAssign):
                networks = self._networks(module, node)
                if networks is not None:
                    found.append((module, node, networks))
        return found

    def _is_new(self, module: Module, owner: ast.expr) -> bool:
        """Tell whether the weights are those of an object that is being made, and of no network that it is given."""
        function = self._project.function_of(module, owner)
        if function.cls is None or not function.is_receiver(owner):
            return False
        made = (m for c in function.cls.mro() if (m := c.methods.get("__init__")) is not None)
        return of_new_objects(self._project, function) and not any(map(self._takes, made))

    def _takes(self, constructor: Function) -> bool:
        """Tell whether a constructor keeps a network that it is given."""
        given = {n for n in constructor.own_nodes if isinstance(n, ast.Name)}
        return any(
            n.id in constructor.parameters.names and self._objects.is_network(constructor.module, n)
            for n in given
            if isinstance(n.ctx, ast.Load) and not constructor.is_receiver(n)
        )

    def _named(self, module: Module, owner: ast.expr) -> Concerned:
        """Return the names of the networks whose weights an expression hands out; none where it may be any."""
        optimizers = self._objects.optimizers_of(module, owner)
        if optimizers:
            trained = [
                o.networks or set() for o in self._objects.optimizers if o.number in optimizers
            ]
            whole = frozenset[int]().union(*trained) if all(trained) else frozenset[int]()
            return Concerned(whole, frozenset())
        handed_out = module.tree.parent(module.tree.parent(owner) or owner)
        if isinstance(handed_out, ast.Call) and self._project.callees(handed_out):
            return NOTHING_NAMED
        function, found = self._project.function_of(module, owner), frozenset[int]()
        for part in spelt(owner):
            if not function.is_receiver(part.value):
                found |= self._objects.groups(module, part.value)
        return concerned(self._objects.groups(module, owner), found)

    def _networks(self, module: Module, node: Writing) -> list[ast.expr] | None:
        """Return the expressions of the networks whose weights a node writes, none where it may be any; or None."""
        if isinstance(node, ast.Attribute):
            stored = node.attr == "data" and isinstance(node.ctx, ast.Store)
            return self._of_weight(module, node.value) if stored else None
        if isinstance(node, ast.AugAssign):
            named = isinstance(node.target, ast.Name)
            return self._of_weight(module, node.target) if named else None
        method = node.func
        if not isinstance(method, ast.Attribute):
            return None
        if method.attr == "load_state_dict":
            return self._loaded(module, node, method.value)
        in_place = method.attr.endswith("_") and not method.attr.startswith("_")
        if not in_place or method.attr in _NOT_WRITTEN:
            return None
        return self._of_weight(module, method.value)

    def _loaded(self, module: Module, call: ast.Call, network: ast.expr) -> list[ast.expr] | None:
        if self._objects.optimizers_of(module, network):
            return None
        given = [owner for arg in call.args if (owner := _of_state(arg)) is not None]
        known = any(self._objects.is_network(module, node) for node in (network, *given))
        return [network] if known else None

    def _of_weight(self, module: Module, node: ast.expr) -> list[ast.expr] | None:
        """Return what hands out a parameter; None where an expression is none out of a loop over those of a network."""
        if _is_new(node):
            return None
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        while isinstance(node, ast.Attribute) and node.attr == "data":
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        found: list[ast.expr] = []
        for binding in module.scopes.bound(node):
            value = bound_value(module, binding)
            if isinstance(module.tree.parent(binding), ast.AugAssign):
                continue
            if value is None or (_is_new(value) and assigned(module.tree, binding) is value):
                continue
            if hands_out(value) or _in_turn(module, binding, value):
                owners = list(bases(module, self._turn(module, binding, value), set()))
                if not owners:
                    return []
                found += owners
        return found or None

    def _turn(self, module: Module, binding: ast.AST, value: ast.expr) -> ast.expr:
        """Return which of the things that a loop goes over together gives what a name of its target is bound to."""
        for place in reversed(list(_places(module, binding))):
            value = module.scopes.only_value(value) or value
            if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name):
                break
            called = "" if module.scopes.owner(value.func) else value.func.id
            place -= called == "enumerate"
            if called not in ("enumerate", "zip") or not 0 <= place < len(value.args):
                break
            if any(isinstance(arg, ast.Starred) for arg in value.args[: place + 1]):
                break
            value = value.args[place]
        return value


_GIVES_NEW_MEMORY = frozenset(
    {
        *("clone", "new", "new_empty", "new_full", "new_ones", "new_tensor", "new_zeros"),
        *("abs", "add", "div", "exp", "mean", "mul", "norm", "pow", "sqrt", "square", "sub", "sum"),
    }
)


def _is_new(node: ast.expr) -> bool:
    """Tell whether what a method of a tensor gives shares no memory with it, as ``p.clone().detach()``."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _GIVES_NEW_MEMORY:
            return True
        node = node.func.value
    return False


def spelt(node: ast.expr) -> Iterator[ast.Attribute | ast.Subscript]:
    """Yield the attributes and items that an expression is spelt with, the last first."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        yield node
        node = node.value


def _in_turn(module: Module, binding: ast.AST, value: ast.expr) -> bool:
    """Tell whether a loop gives a name what was handed out before."""
    loops = assigned(module.tree, binding) is None
    return loops and next(bases(module, value, set()), None) is not None


def _places(module: Module, binding: ast.AST) -> Iterator[int]:
    """Yield where a name stands in the tuples of a target, the innermost first."""
    up = module.tree.parent(binding)
    while isinstance(up, ast.Tuple | ast.List):
        yield next(i for i, item in enumerate(up.elts) if item is binding)
        binding, up = up, module.tree.parent(up)


def _of_state(node: ast.expr) -> ast.expr | None:
    """Return `x` of ``x.state_dict()``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.value if node.func.attr == "state_dict" else None
    return None
