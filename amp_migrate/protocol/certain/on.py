"""What a path remembers where a GradScaler is made under a condition: AMP is on behind it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise

from amp_migrate.facts.paths import same
from amp_migrate.flow.assumption import Assumption
from amp_migrate.flow.cfg.points import Edge, Kind
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import refine
from amp_migrate.flow.terms import Aspect, Term
from amp_migrate.project import Class, Function
from amp_migrate.project.reach import set_later
from amp_migrate.protocol.run.memory import Memory
from amp_migrate.protocol.run.shared import last, names_read, shared
from amp_migrate.training.contexts import is_off


class OnMemory(Memory):
    """Takes the paths on which gradients are scaled: what a GradScaler is given as `enabled=` holds where it is made.

    So it is where every GradScaler that may be on is given the same; else one may be off while another scales.
    """

    def _along(self, function: Function, edge: Edge, known: Assumption) -> Assumption | None:
        found = super()._along(function, edge, known)
        asked = None
        if edge.source.kind is Kind.CALL:
            asked = self._asked.get(edge.source.node)
        elif edge.source.kind is Kind.ENTRY and function.cls is not None:
            asked = self._of_object(function, function.cls)
        if found is None or asked is None:
            return found
        if evaluate(asked, found) is False:
            return None
        refined = refine(found, asked, True)
        return None if refined is None else refined.only(self._is_shared)

    def is_lasting(self, term: Term) -> bool:
        """Keep in mind whether AMP is on."""
        names = {
            last(operand.text) for operand in term.operands if operand.aspect is not Aspect.CONTENT
        }
        return bool(names) and names <= self._names_asked

    def _of_object(self, function: Function, cls: Class) -> ast.expr | None:
        """Return what the GradScaler of an object was given, where it is an attribute that its constructors alone store."""
        if function.name == "__init__" or function.receiver is None:
            return None
        for node, asked in self._asked.items():
            maker = self._project.function_of(self._project.module_of(node), node)
            names = [part for part in ast.walk(asked) if isinstance(part, ast.Name | ast.Attribute)]
            if maker.name != "__init__" or maker.cls not in cls.mro():
                continue
            if maker.receiver == function.receiver and all(map(self._is_lasting, names)):
                return asked
        return None

    def _is_lasting(self, part: ast.Name | ast.Attribute) -> bool:
        """Tell whether a part of what a GradScaler is given is an attribute of the object that constructors alone store."""
        if isinstance(part, ast.Name):
            up = self._project.module_of(part).tree.parent(part)
            return isinstance(up, ast.Attribute)
        return isinstance(part.value, ast.Name) and part.attr not in set_later(self._project)

    @cached_property
    def _asked(self) -> Mapping[ast.AST, ast.expr]:
        """What the calls that make a GradScaler are given as `enabled=`."""
        made = [call for _, call in self._program.training.objects.made_scalers if not is_off(call)]
        found: dict[ast.AST, ast.expr] = {
            call: keyword.value
            for call in made
            for keyword in call.keywords
            if keyword.arg == "enabled"
        }
        alike = all(same(asked, other) for asked, other in pairwise(found.values()))
        return found if alike and len(found) == len(made) else {}

    @cached_property
    def _shared(self) -> frozenset[str]:
        """The names of the tests that are worth remembering, and those of one that `enabled=` reads as well."""
        several = super()._shared
        if not self._names_asked - several:
            return several
        once = shared(self._program, self.course, 1, self._constants)
        return several | (once & self._names_asked)

    @cached_property
    def _names_asked(self) -> frozenset[str]:
        return frozenset(name for node in self._asked.values() for name in names_read(node))
