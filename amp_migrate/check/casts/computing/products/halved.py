"""Products on no list of O1 that O2 and O3 ran in fp16, as parts of the networks that they were given."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from amp_migrate.check.apex.assumed import Initialize
from amp_migrate.check.apex.facts import Facts
from amp_migrate.check.apex.flags.levels import of_given
from amp_migrate.check.casts.casting import Casting, Casts
from amp_migrate.check.casts.computing.products.unlisted import at
from amp_migrate.check.casts.differing import UNCAST, differs, same, scales
from amp_migrate.check.casts.networks import Networks
from amp_migrate.check.events.sides import Key, Side, key
from amp_migrate.check.events.traces import Difference
from amp_migrate.facts.paths import argument, tail
from amp_migrate.project import Class, Function
from amp_migrate.training.forwards.classes import is_of_network
from amp_migrate.training.types.called import operands
from amp_migrate.training.types.settled import RETYPES
from amp_migrate.training.types.unlisted import Unlisted

_WIDENS = RETYPES | {"double", "float", "float32"}


@dataclass(frozen=True, eq=False)
class Halved:
    """Compares both texts, each product by its function and text, whatever is made fp32 in it."""

    old: Side
    new: Side
    networks: Networks

    def uncast(
        self, item: Initialize, begins: Sequence[Function]
    ) -> Iterator[tuple[Key, Difference]]:
        """Yield the products that the new text runs without casts at such a level, where Apex ran them in fp16."""
        known = of_given(self.old.project, item)
        ran = self._ran(item) if known is not None else set()
        if known is None or not ran:
            return
        native = Casting(self.new.program, Facts(((item.function, known), *item.callers)))
        begun = native.spread(same(self.new, begins), inside_networks=True)
        for function in begun:
            if scales(self.new, function):
                continue
            for call in self.new.program.graph(function).calls:
                if self._after.is_one(function.module, call) and at(function, call) in ran:
                    if native.here(function, call) is Casts.OFF:
                        yield differs(UNCAST, (key(function), ast.unparse(call)), call)

    def _ran(self, item: Initialize) -> set[tuple[Key, str]]:
        """Return the products in networks that an initialize is given, of nothing that the source makes fp32."""
        native, classes = Casting(self.old.program, Facts()), self._given(item)
        return {
            at(function, call)
            for function in self.old.project.functions()
            if is_of_network(function) and function.class_around in classes
            for call in function.calls
            if self._before.is_one(function.module, call)
            if native.here(function, call) is None
            if not self._is_widened(function, call)
        }

    def _given(self, item: Initialize) -> set[Class]:
        """Return the classes of the networks that an initialize is given, and of their layers."""
        given = argument(item.call, "models", 0)
        parts = given.elts if isinstance(given, ast.List | ast.Tuple) else [given]
        project, module = self.old.project, item.function.module
        queue = [c for part in parts if part for c in project.instance_classes(module, part)]
        for cls in queue:
            made = (
                part
                for base in cls.mro()
                for method in base.methods.values()
                for call in method.calls
                for part in project.constructed(call)
            )
            queue += [part for part in dict.fromkeys(made) if part not in queue]
        return {base for cls in queue for base in cls.mro()}

    def _is_widened(self, function: Function, call: ast.Call) -> bool:
        name = self.old.project.external(function.module, call.func) or ""
        losses = self.old.program.training.losses
        return any(
            tail(made) in _WIDENS
            for given in operands(call, name)
            for made in losses.calls(function, given, cast=False)
        )

    @cached_property
    def _before(self) -> Unlisted:
        return Unlisted(self.old.project, self.old.program.training.losses)

    @cached_property
    def _after(self) -> Unlisted:
        return Unlisted(self.new.project, self.new.program.training.losses)
