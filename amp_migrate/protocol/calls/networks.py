"""Which network a function runs that a call gives it, where its calls give it different ones."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from amp_migrate.facts.closure import closure
from amp_migrate.flow.assumption import Assumption, Known
from amp_migrate.flow.terms import Term, term_of_name
from amp_migrate.project import Function
from amp_migrate.protocol.calls.arguments import Arguments, is_variable, known_value
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.beliefs import RUNS_FORWARD
from amp_migrate.training.events import Event, Kind
from amp_migrate.training.forwards.handed import Run
from amp_migrate.training.named import Groups

RUNS = (Kind.FORWARD, Kind.SHARED)
_Parameter = tuple[Function, str]


class Networks:
    """Facts about parameters: the names that may hold the network that one is, as each call says."""

    def __init__(self, program: Program, arguments: Arguments) -> None:
        self._program = program
        self._project = program.project
        self._arguments = arguments
        self._found: dict[ast.expr, Run] = {}

    def on(
        self, call: ast.Call, callee: Function, known: Assumption
    ) -> Iterator[tuple[Term, Known]]:
        """Yield which networks a function may run that a call gives it."""
        for name in self._told.get(callee, ()):
            given = self._arguments.given(call, callee).get(name)
            if given is None:
                continue
            stated = _stated(known, given.id) if is_variable(given, self._project) else None
            network = self.network(given) if stated is None else stated
            if any(network):
                yield _run(name), Known(network)

    def given(self, call: ast.Call) -> Iterator[ast.expr]:
        """Yield what a call gives for the parameters that the functions which it runs may run as networks."""
        for callee in self._program.calls.of(call):
            names = self._parameters.get(callee, ())
            given = self._arguments.given(call, callee) if names else {}
            yield from (given[name] for name in sorted(names) if name in given)

    def runs_given(self, function: Function, call: ast.Call) -> bool:
        """Tell whether a call in a function is the forward of a network that the function is given."""
        names = self._parameters.get(function, ())
        events = self._program.training.of(function).get(call, ())
        run = {name for event in events if (name := self._name(event)) in names}
        bindings, scope = function.module.scopes.bindings, function.scope
        return bool(run) and all(len(bindings(scope, name or "")) == 1 for name in run)

    def named(self, name: str, known: Assumption) -> Groups | None:
        """Return the names that may hold the network that a parameter is, where the call says it."""
        stated = _stated(known, name)
        return None if stated is None else stated.networks

    def exact(self, event: Event, known: Assumption) -> Event:
        """Return an event with the networks that it may run of those that the call gave."""
        name = self._name(event)
        stated = None if name is None else _stated(known, name)
        return event if stated is None else _of(event, stated)

    def possible(self, event: Event) -> Iterator[Event]:
        """Yield all that an event may be, by whatever call."""
        yield event
        name = self._name(event)
        for stated in self._told.get(self._function(event.node), {}).get(name or "", ()):
            yield _of(event, stated)

    @cached_property
    def _parameters(self) -> Mapping[Function, Collection[str]]:
        """The parameters of functions that are run as networks, there or in what those call."""
        return self._arguments.parameters(self._name)

    @cached_property
    def _told(self) -> Mapping[Function, Mapping[str, Collection[Run]]]:
        """The parameters for which calls give different networks, or that are handed on to those, with what they may be."""
        found: dict[_Parameter, set[Run]] = {}
        above: dict[_Parameter, set[_Parameter]] = {}
        for function, names in self._parameters.items():
            for name in names:
                here = found[function, name] = set[Run]()
                above[function, name] = set()
                for site, given in self._given(function, name):
                    held = self._parameters.get(site, ())
                    if is_variable(given, self._project) and given.id in held:
                        above[function, name].add((site, given.id))
                    else:
                        here.add(self.network(given))
        whole = {
            one: set().union(*(found[up] for up in closure([one], above.__getitem__)))
            for one in found
        }
        differing = [one for one, networks in whole.items() if len(networks) > 1]
        told: dict[Function, dict[str, set[Run]]] = {}
        for function, name in closure(differing, above.__getitem__):
            told.setdefault(function, {})[name] = whole[function, name]
        return told

    def _given(self, function: Function, name: str) -> Iterator[tuple[Function, ast.expr]]:
        for site in self._project.calls_of(function):
            given = self._arguments.given(site.call, function).get(name)
            if given is not None:
                yield self._project.holder(given), given

    def network(self, given: ast.expr) -> Run:
        """Return what a call gives: the names that may hold it, with those that share weights with it, and of what it is a part."""
        if given not in self._found:
            self._found[given] = self._network(given)
        return self._found[given]

    def _network(self, given: ast.expr) -> Run:
        module, training = self._project.module_of(given), self._program.training
        run = training.sharing.given(self._project.holder(given), given)
        networks = training.objects.groups(module, given) | run.networks
        if isinstance(given, ast.Attribute):
            meanings = self._project.meanings(module, given)
            if given.attr in RUNS_FORWARD or any(isinstance(m, Function) for m in meanings):
                networks |= training.objects.groups(module, given.value)
        return Run(networks, run.within - networks)

    def _name(self, event: Event) -> str | None:
        """Return the variable of a function that holds the network of a forward."""
        if event.kind not in RUNS or not isinstance(event.node, ast.Call):
            return None
        func = event.node.func
        named = func.value if isinstance(func, ast.Attribute) and func.attr == "forward" else func
        return named.id if is_variable(named, self._project) else None

    def _function(self, node: ast.AST) -> Function:
        return self._program.calls.body(self._project.module_of(node), node)


def _of(event: Event, network: Run) -> Event:
    """Return an event of a parameter that is a network: it is what that would be by its own name."""
    trained = event.networks | event.within
    networks = network.networks & trained
    return replace(event, networks=networks, within=(network.within & trained) - networks)


def _stated(known: Assumption, name: str) -> Run | None:
    found = known_value(known, _run(name))
    return found if isinstance(found, Run) else None


def _run(name: str) -> Term:
    return term_of_name(name, "runs({})")
