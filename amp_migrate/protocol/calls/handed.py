"""What calls say of the optimizers, losses and networks that they hand on to a function that many of them share."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cached_property

from amp_migrate.facts.paths import path, tail
from amp_migrate.flow.assumption import Assumption, Known
from amp_migrate.flow.terms import Term, term_of_name
from amp_migrate.project import Function
from amp_migrate.project.once import once
from amp_migrate.protocol.calls.arguments import Arguments, is_variable, known_value, numbers
from amp_migrate.protocol.calls.networks import Networks
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.contexts import is_off
from amp_migrate.training.events import Event


class Handed:
    """Facts about parameters: which optimizer or network one is, and which a backward on one may reach."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._project = program.project
        self._arguments = Arguments(program)
        self.run = Networks(program, self._arguments)

    def on(
        self, call: ast.Call, callee: Function, known: Assumption
    ) -> Iterator[tuple[Term, Known]]:
        """Yield what a function knows of the optimizers, losses and networks of a call; of the first two nothing where there is one optimizer.

        Of a GradScaler it knows that the call makes it, to be off.
        """
        for name, given in self.given(call, callee).items():
            if isinstance(given, ast.Call) and is_off(given):
                if self._program.training.objects.makes_scaler(
                    self._project.module_of(given), given
                ):
                    yield _off(name), Known(True)
        yield from self.run.on(call, callee, known)
        if len(self._program.training.objects.optimizers) > 1:
            for name, number in self._optimizers(call, callee, known):
                yield optimizer_of(name), Known(number)
            yield from self._sets(call, callee, known)

    def _sets(
        self, call: ast.Call, callee: Function, known: Assumption
    ) -> Iterator[tuple[Term, Known]]:
        """Yield which optimizers the losses that a call gives reach, and which train the networks."""
        of_losses = self._losses, reach_of, self.reaching
        for names, spelt, found in (of_losses, (self._networks, _trained, self._training)):
            for name in names.get(callee, ()):
                given = self.given(call, callee).get(name)
                if given is None:
                    continue
                stated = None
                if is_variable(given, self._project):
                    stated = numbers(known, spelt(given.id))
                stated = found(given) if stated is None else stated
                if stated is not None:
                    yield spelt(name), Known(tuple(sorted(stated)))

    def off(self, context: ast.expr, known: Assumption) -> bool:
        """Tell whether an autocast asks a GradScaler that is off, by what is known of a parameter."""
        given = context.keywords if isinstance(context, ast.Call) else ()
        asked = next((k.value for k in given if k.arg == "enabled"), None)
        if not isinstance(asked, ast.Call) or tail(asked) != "is_enabled" or asked.args:
            return False
        return _is_of_off(asked, known)

    def is_unscaled(self, node: ast.AST, known: Assumption) -> bool:
        """Tell whether a backward is that of ``scaler.scale(loss)`` with a GradScaler that is off."""
        func = node.func if isinstance(node, ast.Call) else None
        scaled = func.value if isinstance(func, ast.Attribute) else None
        if not isinstance(scaled, ast.Call) or tail(scaled) != "scale":
            return False
        return _is_of_off(scaled, known)

    def optimizer(self, event: Event, known: Assumption) -> int | None:
        """Return the number of the optimizer that an event names, where the call says which it is."""
        named = event.named()
        found = self.held(named.id, known) if is_variable(named, self._project) else None
        return found if found in (event.optimizers or ()) else None

    def held(self, name: str, known: Assumption) -> int | None:
        """Return the number of the optimizer that a parameter is, where the call says it."""
        found = known_value(known, optimizer_of(name))
        return found if isinstance(found, int) else None

    def reached(self, loss: str, known: Assumption) -> frozenset[int] | None:
        """Return the optimizers that a backward on a loss may reach, where the call says what it computed."""
        return numbers(known, reach_of(loss))

    def trained(self, network: str, known: Assumption) -> frozenset[int] | None:
        """Return the optimizers that train a network, where the call says which network it hands on."""
        return numbers(known, _trained(network))

    def given(self, call: ast.Call, callee: Function) -> Mapping[str, ast.expr]:
        """Return the arguments of a call by the names of the parameters that take them."""
        return self._arguments.given(call, callee)

    def reaching(self, loss: ast.expr) -> frozenset[int] | None:
        """Return the optimizers that the backward of a loss may reach."""
        training = self._program.training
        holder = self._program.calls.body(self._project.module_of(loss), loss)
        return training.objects.training(training.losses.networks(holder, loss))

    def _training(self, network: ast.expr) -> frozenset[int] | None:
        """Return the optimizers that train a network."""
        objects = self._program.training.objects
        return objects.training(objects.groups(self._project.module_of(network), network))

    @cached_property
    def _losses(self) -> dict[Function, set[str]]:
        """The parameters of functions on which a backward runs, there or in what those call."""
        return self._arguments.parameters(lambda event: event.loss)

    @cached_property
    def _networks(self) -> dict[Function, set[str]]:
        """The parameters of functions whose gradients are read, there or in what those call."""
        return self._arguments.parameters(lambda event: event.network)

    def _optimizers(
        self, call: ast.Call, callee: Function, known: Assumption
    ) -> Iterator[tuple[str, int]]:
        """Yield the parameters that a call gives one optimizer of several, with its number."""
        objects = self._program.training.objects
        module = self._project.module_of(call)
        for name, given in self.given(call, callee).items():
            number = None
            if is_variable(given, self._project):
                number = self.held(given.id, known)
            if number is not None:
                yield name, number
            elif isinstance(given, ast.Name | ast.Attribute | ast.Subscript):
                numbers = objects.optimizers_of(module, given)
                if len(numbers) == 1:
                    yield name, next(iter(numbers))


handed_of = once(Handed)


def _is_of_off(call: ast.Call, known: Assumption) -> bool:
    """Tell whether a method is called of a GradScaler that is known to be off."""
    text = path(call.func.value) if isinstance(call.func, ast.Attribute) else None
    return text is not None and known.get(_off(text)) is not None


def _trained(name: str) -> Term:
    return term_of_name(name, "trained({})")


def reach_of(name: str) -> Term:
    """Return the term of which optimizers the loss that a parameter is may reach."""
    return term_of_name(name, "reach({})")


def _off(name: str) -> Term:
    return term_of_name(name, "off({})")


def optimizer_of(name: str) -> Term:
    """Return the term of which optimizer a parameter is, or chooses."""
    return term_of_name(name, "optimizer({})")
