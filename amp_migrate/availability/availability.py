"""Names and tests that only say whether Apex can be imported."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable

from amp_migrate.apex.emptied import may_be_none, only_used
from amp_migrate.apex.sites import HANDED_ON
from amp_migrate.availability.installed import (
    flags,
    gets,
    imported_flags,
    is_bound,
    is_imported,
    lacks,
    looks_up,
    reasons,
    tells_installed,
)
from amp_migrate.availability.optional import Optional, imported, optional
from amp_migrate.availability.versions import Versions
from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.flow.condition import Condition, reduce, speller
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import refine
from amp_migrate.project import Module, Project
from amp_migrate.values.several import one_of_several

_PROBE = re.compile(r"apex.*(avail|install)|has_apex|have_apex", re.I)


class Availability:
    """Answers, for one module, which tests are settled by Apex being there (``amp is not None``)."""

    def __init__(self, project: Project, module: Module) -> None:
        self._project = project
        self.module = module
        self.installed = True
        self.flags = frozenset(flags(module))
        self.lacks = frozenset(lacks(module))
        self.reasons = frozenset(reasons(module)) | self.lacks
        self._imported = frozenset(imported_flags(project, module))
        self._probes = True
        self._versions: Versions | None = None
        self.optional = Optional()
        self.optional = optional(module, self.known, lambda attr: only_used(project, attr))
        self.switched = bool(self.optional.names)

    def without_probes(self) -> Availability:
        """Return what is known without calls that ask whether Apex is installed, which stay as they are."""
        other = copy.copy(self)
        other._probes = False
        return other

    def without_apex(self) -> Availability:
        """Return the answers for a program that goes on as it runs where Apex is not installed."""
        absent = copy.copy(self)
        absent.installed = False
        return absent

    def with_native(self, versions: Versions) -> Availability:
        """Return the answers for runs with a torch that has native AMP."""
        modern = copy.copy(self)
        modern._versions = versions
        return modern

    def known(self, test: ast.expr) -> bool | None:
        """Return what a test amounts to where Apex is installed; None where it says something else."""
        told = self._versions.known(test) if self._versions is not None else None
        if told is not None:
            return told
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            return self._compare(test)
        if isinstance(test, ast.Call):
            found = self._probes and self._find_spec(test)
            found = found or gets(self.module, test)
            return self.installed if found or self._probe(test) else None
        if isinstance(test, ast.Name | ast.Attribute) and self.is_flag(test):
            return self.installed
        return not self.installed if self._is_reason(test) else None

    def truth(self, test: ast.expr, assumption: Assumption = NOTHING) -> bool | None:
        """Return what a test comes out as under an assumption about the program; None where it may be either."""
        found = evaluate(_lasting(test, _unknown), assumption)
        return evaluate(_lasting(test, self.known), assumption) if found is None else found

    def assume(self, test: ast.expr, truth: bool, base: Assumption = NOTHING) -> Assumption:
        """Return an assumption with a test that comes out as `truth`; what contradicts it stays as it is."""
        return refine(base, _lasting(test, _unknown), truth) or base

    def narrow(self, test: ast.expr, truth: bool, base: Assumption) -> Assumption:
        """Return an assumption with what is left of a test, whose parts about Apex are settled."""
        return refine(base, _lasting(test, self.known), truth) or base

    def reduce(self, test: ast.expr) -> Condition:
        """Reduce a test to what it says where Apex is installed; a name that holds amp or None is its option."""
        source = speller(self.module.tree)

        def known(node: ast.expr) -> bool | None:
            return None if self._option(node) is not None else self.known(node)

        def text(node: ast.expr) -> str:
            option = self._option(node)
            if option is None:
                return source(node)
            absent = isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is)
            return f"not {source(option)}" if absent else source(option)

        return reduce(test, known, text)

    def settles(self, test: ast.expr) -> bool:
        """Tell whether a part of a test is about Apex being there, or asks a name that holds amp or None."""
        if self.known(test) is not None or self._option(test) is not None:
            return True
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self.settles(test.operand)
        return isinstance(test, ast.BoolOp) and any(map(self.settles, test.values))

    def _option(self, node: ast.expr) -> ast.expr | None:
        """Return the option that ``amp`` or ``amp is not None`` stands for."""
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            right = node.comparators[0]
            if not isinstance(right, ast.Constant) or right.value is not None:
                return None
            node = node.left
        if not isinstance(node, ast.Name):
            return None
        return self.optional.tests.get((self.module.scopes.owner(node), node.id))

    def is_flag(self, node: ast.expr) -> bool:
        """Tell whether an expression is an availability flag, or `amp` itself."""
        return self._imported_amp(node) or (isinstance(node, ast.Name) and self.is_named(node))

    def is_named(self, node: ast.Name) -> bool:
        """Tell whether a name is an availability flag, of this file or imported from another one."""
        return node.id in self.flags or node.id in self._imported

    def _is_reason(self, node: ast.expr) -> bool:
        """Tell whether a name holds that Apex is not installed, or why, and False or None where it is."""
        if not isinstance(node, ast.Name) or node.id not in self.reasons:
            return False
        return self.module.scopes.owner(node) is self.module.tree.module

    def _is_lack(self, node: ast.expr) -> bool:
        """Tell whether a name says that Apex is not installed."""
        return self._is_reason(node) and isinstance(node, ast.Name) and node.id in self.lacks

    def _imported_amp(self, node: ast.expr) -> bool:
        """Tell whether an expression is the module `amp` by its import, not a parameter that may be None."""
        if self._project.external(self.module, node) not in HANDED_ON:
            return False
        if not isinstance(node, ast.Name):
            emptied = isinstance(node, ast.Attribute) and node.attr in may_be_none(self._project)
            return not self.switched and not emptied
        function = self._project.function_of(self.module, node)
        if node.id in function.parameters.names or self.optional.holds(self.module, node):
            return False
        if one_of_several(self._project.values, self.module, node):
            return False
        return not self.switched or imported(self.module, node)

    def _compare(self, test: ast.Compare) -> bool | None:
        left, right, op = test.left, test.comparators[0], test.ops[0]
        asked = is_imported(test) if self._probes else None
        asked = is_bound(self.module, test) if asked is None else asked
        if asked is not None:
            return asked is self.installed
        if (
            isinstance(right, ast.Constant)
            and right.value is None
            and isinstance(op, ast.Is | ast.IsNot)
        ):
            found = isinstance(left, ast.Call) and self._probes and self._find_spec(left)
            if self._imported_amp(left) or found or gets(self.module, left):
                return isinstance(op, ast.IsNot) is self.installed
            if self._is_reason(left) and not self._is_lack(left):
                return isinstance(op, ast.Is) is self.installed
        lacking = self._is_lack(left)
        told = isinstance(right, ast.Constant) and isinstance(right.value, bool)
        if isinstance(right, ast.Constant) and told and (lacking or self.is_flag(left)):
            equal = isinstance(op, ast.Eq | ast.Is)
            return (
                (right.value is (self.installed is not lacking)) is equal
                if isinstance(op, ast.Eq | ast.Is | ast.NotEq | ast.IsNot)
                else None
            )
        return None

    def _probe(self, call: ast.Call) -> bool:
        if call.args or call.keywords or not self._probes:
            return False
        callees = self._project.callees(call)
        if callees:
            return all(map(tells_installed, callees))
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        name = call.func.id if isinstance(call.func, ast.Name) else name
        return bool(_PROBE.search(name))

    def _find_spec(self, call: ast.Call) -> bool:
        return looks_up(self._project.external(self.module, call.func), call)


def _unknown(test: ast.expr) -> bool | None:
    return None


def _lasting(test: ast.expr, known: Callable[[ast.expr], bool | None]) -> ast.expr:
    """Return a test with what is known of its parts in their place; a call that is put alike answers alike."""
    answer = known(test)
    if answer is not None:
        return ast.copy_location(ast.Constant(answer), test)
    if isinstance(test, ast.UnaryOp):
        return ast.copy_location(ast.UnaryOp(test.op, _lasting(test.operand, known)), test)
    if isinstance(test, ast.BoolOp):
        values = [_lasting(value, known) for value in test.values]
        return ast.copy_location(ast.BoolOp(test.op, values), test)
    if isinstance(test, ast.Compare):
        left, *others = (_lasting(part, known) for part in (test.left, *test.comparators))
        return ast.copy_location(ast.Compare(left, test.ops, others), test)
    if isinstance(test, ast.Call):
        return ast.copy_location(ast.Name(ast.unparse(test), ast.Load()), test)
    return test
