"""What a loss is computed of, as far as it can be followed back."""

from __future__ import annotations

import ast
from functools import cached_property, partial

from amp_migrate.facts.paths import argument, outward, tail
from amp_migrate.flow.cfg.build import Graphs
from amp_migrate.flow.cfg.graph import Graph
from amp_migrate.project import Anonymous, Function, Project
from amp_migrate.project.forwarded import spread
from amp_migrate.training.bindings import own_part, returned, run_first, wholes
from amp_migrate.training.contexts import keeps_no_graph, scales_loss
from amp_migrate.training.objects import COPY, Objects
from amp_migrate.training.origins.called_lambdas import CalledLambdas
from amp_migrate.training.origins.collected import Collected, item
from amp_migrate.training.origins.deferred import Deferred
from amp_migrate.training.origins.reaching import Body, Reaching, part_before
from amp_migrate.training.origins.scale import Scale
from amp_migrate.training.origins.walk import Origin, Place, Step, Walk, all_behind
from amp_migrate.training.types.settled import (
    LEAVES,
    NARROW,
    SETTLES,
    Stops,
    below,
    has_no_graph,
    is_array,
    is_cut_off,
    is_settled,
    runs_nothing,
)
from amp_migrate.training.types.wide import is_wide

_PROTOCOLS = frozenset({"__getitem__", "__iter__", "__next__"})


class Losses:
    """Follows a loss back to what computed it: assignments that reach it, parameters, results of helpers."""

    def __init__(self, project: Project, graphs: Graphs, objects: Objects, body: Body) -> None:
        self._project = project
        self._body = body
        self._graphs = graphs
        self.reached = Reaching(project, graphs, body)
        self.objects = objects
        self.deferred = Deferred(project, self.reached, body)
        self._containers = Collected(project, objects, body, self.reached)
        self._lambdas = CalledLambdas(project, body)
        self._scale = Scale(project, objects, self.reached, self._lambdas)
        self._traced: dict[tuple[ast.expr, Stops | None], tuple[set[int], set[ast.AST]]] = {}
        self._named: dict[tuple[ast.expr, Stops | None], set[int]] = {}
        self._walks = {
            stops: Walk(partial(self._step, stops=stops), self.handed_over)
            for stops in (None, SETTLES, LEAVES, NARROW)
        }

    def scaled(self, function: Function, loss: ast.expr) -> bool | None:
        """Tell whether a loss is scaled; None where it may be either."""
        return self._scale.of(function, loss)

    def networks(
        self,
        function: Function,
        loss: ast.expr,
        *,
        cast: bool = False,
        factor: bool = False,
        narrow: bool = False,
    ) -> set[int]:
        """Return the names of the networks that compute a loss, as far as it can be followed back.

        A copy of a network that a function makes for itself is `COPY`. With `cast`, values count by whether casts of the
        network show in them: through which no gradient passes, but not what was made fp32 or left its device since. A
        `factor` of a product is one even where it was made fp32, as the product makes it fp16 again. What is `narrow` has
        gone through nothing since that computes in fp32.
        """
        stops = LEAVES if factor else NARROW if narrow else SETTLES if cast else None
        if (loss, stops) not in self._named:
            self._named[loss, stops] = self._walks[stops].run((function, loss))
        return self._named[loss, stops]

    def computes(
        self, function: Function, loss: ast.expr, node: ast.AST, *, cast: bool = False
    ) -> bool:
        """Tell whether a node is among what computes a loss, as far as that can be followed back; `cast` as for `networks`."""
        return node in self._followed(function, loss, SETTLES if cast else None)[1]

    def calls(self, function: Function, loss: ast.expr, *, cast: bool) -> list[ast.Call]:
        """Return the calls among what computes a loss, as far as that can be followed back; `cast` as for `networks`."""
        stops = SETTLES if cast else None
        return [n for n in self._followed(function, loss, stops)[1] if isinstance(n, ast.Call)]

    @cached_property
    def computing(self) -> set[ast.AST]:
        """The nodes that compute the losses of backward passes."""
        losses = [
            (self._body(module, call), call.func.value)
            for module, call in self.objects.method_calls.get("backward", [])
            if isinstance(call.func, ast.Attribute)
        ]
        return all_behind(self._project, self._walks[None], losses)

    @cached_property
    def called(self) -> set[int]:
        """The names of the objects out of sight that are called to compute losses."""
        return {
            group
            for module, call in self._project.nodes(ast.Call)
            if call in self.computing and not self._project.callees(call)
            if self._project.external(module, call.func) is None
            for group in self.objects.groups(module, call.func)
        }

    def _followed(
        self, function: Function, loss: ast.expr, stops: Stops | None = None
    ) -> tuple[set[int], set[ast.AST]]:
        if (loss, stops) not in self._traced:
            self._traced[loss, stops] = self._walks[stops].back([(function, loss)])
        return self._traced[loss, stops]

    def _step(self, where: Function, part: ast.AST, stops: Stops | None) -> Step:
        """Return the names of what a node runs, and the nodes that its value comes from."""
        cast = stops is not None
        if self._is_cut_off(where, part) if stops is None else self._is_settled(where, part, stops):
            return Step()
        if isinstance(part, ast.Call) and scales_loss(self._project, where.module, part):
            if (loss := argument(part, "loss", 0)) is not None:
                return Step((), [Origin(where, loss)])
        if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load):
            if made := item(self._project, self.reached, where, part):
                return Step((), made)
        if isinstance(part, ast.Subscript | ast.Attribute) and isinstance(part.ctx, ast.Load):
            if stored := part_before(where, self.graph(where), part):
                return Step((), stored)
        run: set[int] = set()
        onward: list[Origin] = []
        results: list[Origin] = []
        if isinstance(part, ast.Call):
            callees = self._project.callees(part)
            runs_none = stops is not None and runs_nothing(self._project, part, stops)
            run = set() if runs_none else self._run(where, part, whole=cast)
            for callee in callees:
                results += [Origin(callee, value, down=part) for value in returned(callee)]
            for anonymous in self._lambdas.run(part):
                results.append(Origin(anonymous, anonymous.body.body, down=part))
        onward += self.bound(where, part, changed=cast)
        held = self.put_in(where, part)
        held -= self._containers.in_tensors if stops is NARROW else frozenset()
        if cast and isinstance(part, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
            onward += self._handed_out(where, part)
        if results and cast:
            return Step(run, results, held)
        runs = part.func if isinstance(part, ast.Call) else None
        onward += results + [
            Origin(where, child)
            for child in below(part, stops)
            if child is not runs or not isinstance(child, ast.Name)
        ]
        return Step(run, onward, held)

    def bound(self, where: Function, part: ast.AST, *, changed: bool = False) -> list[Origin]:
        """Return what a variable or an attribute that is read may hold, and what that was `changed` from; nothing for other nodes."""
        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Load):
            return self._stored(where, part)
        if not isinstance(part, ast.Name) or not isinstance(part.ctx, ast.Load):
            return []
        found: list[Origin] = []
        for value in (self.reached.changed if changed else self.reached.of)(where, part):
            if isinstance(value, ast.arg):
                found += self._arguments(where, value)
            elif value is not None:
                holder = self.reached.holder(where, value)
                found.append(Origin(holder, value, elsewhere=holder is not where))
            else:
                found += [Origin(where, whole) for whole in wholes(self._project, where, part)]
        return found

    def _is_settled(self, function: Function, node: ast.AST, stops: Stops) -> bool:
        """Tell whether no casts show in a value any more; arrays have none, whatever is put into them."""
        if is_settled(node, stops) or is_array(self._project, function.module, node):
            return True
        if stops is NARROW and is_wide(self._project, function.module, node):
            return True
        made = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        values = self.reaching(function, node) if made and isinstance(node, ast.Name) else []
        return bool(values) and all(
            isinstance(value, ast.Call)
            and is_array(self._project, self.reached.holder(function, value).module, value)
            for value in values
        )

    def _is_cut_off(self, function: Function, node: ast.AST) -> bool:
        """Tell whether no gradient passes an expression."""
        if isinstance(node, ast.Call) and keeps_no_graph(self._project, function.module, node):
            return True
        if isinstance(node, ast.Attribute) and node.attr in self.objects.stored:
            return is_cut_off(node)
        return is_cut_off(node) or has_no_graph(self._project, function.module, node)

    def _run(self, function: Function, call: ast.Call, *, whole: bool) -> set[int]:
        """Return the names of what a call runs; with the `whole` that a part of it is spelt as, however deep."""
        if isinstance(call.func, ast.Name):
            made = self.reaching(function, call.func)
            copies = [v for v in made if isinstance(v, ast.Call) and tail(v) == "deepcopy"]
            if made and len(copies) == len(made):
                own = self.objects.groups(function.module, call.func)
                of = (self.objects.groups(function.module, node) for v in copies for node in v.args)
                return {COPY, *own.difference(*of)}
        first = run_first(self._project, function.module, call)
        groups = set(self.objects.groups(function.module, first or call.func))
        held = [Origin(function, call.func)]
        for where, node, *_ in held:
            if whole and isinstance(node, ast.Name):  # a method that was handed in
                held += [o for o in self.bound(where, node) if o not in held]
            above = [*outward(node)][1:] if isinstance(node, ast.Attribute) else []
            for part in above if whole else above[:1]:
                groups |= self.objects.groups(where.module, part)
        return groups

    def _stored(self, function: Function, node: ast.Attribute) -> list[Origin]:
        """Return what is stored in an attribute that is read: ``self.loss`` of another method."""
        groups = self.objects.groups(function.module, node)
        found: list[Origin] = []
        for module, target, value in self.objects.stored.get(node.attr, ()):
            if groups & self.objects.groups(module, target):
                holder = self._project.function_of(module, target)
                own = own_part(self._project, module, target, value)
                found.append(Origin(holder, own, elsewhere=True))
        return found

    def put_in(self, function: Function, node: ast.AST) -> frozenset[int]:
        """Return what the container that is read was given: ``outputs.append(network(x))``."""
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            return frozenset()
        held = self._containers.within(function.module, node)
        own = isinstance(node, ast.Name) and held & self._containers.named(function, node.id)
        if held and isinstance(node, ast.Name) and self._is_handed_in(function, node):
            held = own or frozenset()  # what else it was given, the calls tell
        held = held.difference(n for n in own or () if not self._may_be_one(function, node, n))
        return frozenset(n for n in held if self._containers.may_be_one(function, node, n))

    def _is_handed_in(self, function: Function, name: ast.Name) -> bool:
        """Tell whether a variable is another name for what the calls of its function hand in, or for what is held elsewhere."""
        values = self.reaching(function, name)
        return bool(values) and all(
            bool(self._arguments(function, value))
            if isinstance(value, ast.arg)
            else isinstance(value, ast.Name | ast.Attribute | ast.Subscript)
            for value in values
        )

    def handed_over(self, number: int) -> Place:
        """Return where a thing is that is put into a container."""
        given = self._containers.given[number]
        return self._body(given.module, given.value), given.value

    def _handed_out(self, function: Function, node: ast.expr) -> list[Origin]:
        """Return what an object of the project gives where it is gone through, or asked for an item."""
        if not self._handing:
            return []
        item = isinstance(node, ast.Subscript)
        names = ("__getitem__",) if item else ("__iter__", "__next__", "__getitem__")
        held = node.value if isinstance(node, ast.Subscript) else node
        methods = self._handing.intersection(self._project.methods(function.module, held, *names))
        return [Origin(m, value, elsewhere=True) for m in methods for value in returned(m)]

    @cached_property
    def _handing(self) -> frozenset[Function]:
        """The methods of the project by which Python goes through objects."""
        functions = self._project.functions()
        return frozenset(f for f in functions if f.cls is not None and f.name in _PROTOCOLS)

    def _may_be_one(self, function: Function, node: ast.expr, number: int) -> bool:
        """Tell whether a variable may hold the object where it is read that it held where that was given something."""
        container = self._containers.given[number].container
        assert isinstance(node, ast.Name) and isinstance(container, ast.Name)
        one, other = self.reaching(function, node), self.reaching(function, container)
        return None in one or not set(one).isdisjoint(other)

    def _arguments(self, function: Function, parameter: ast.arg) -> list[Origin]:
        if isinstance(function, Anonymous):
            return [
                Origin(where, argument, up=call)
                for where, argument, call in self._lambdas.given(function, parameter)
            ]
        name, sites = parameter.arg, self._project.callers(function)
        given = [(s.call, at, node) for s, at, node in self._project.received(function, name)]
        given += [(s.call, s.function, w) for s in sites for w in spread(s, function, name)]
        return [Origin(where, node, up=call) for call, where, node in given if node is not None]

    def graph(self, function: Function) -> Graph:
        """Return the control flow of a function."""
        return self._graphs.of(function.scope)

    def reaching(self, function: Function, name: ast.Name) -> list[ast.expr | ast.arg | None]:
        """Return what a name may have been bound to where it is read; None for a value that is not one."""
        return self.reached.of(function, name)
