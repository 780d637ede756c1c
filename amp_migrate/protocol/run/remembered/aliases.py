"""Variables that are other names of what an attribute holds, so that what a test says of one it says of both."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial

from amp_migrate.facts.paths import path
from amp_migrate.flow.assumption import Assumption
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import refine
from amp_migrate.flow.terms import Term
from amp_migrate.project import Function, Project
from amp_migrate.project.once import once
from amp_migrate.project.reach import set_later
from amp_migrate.protocol.calls.renaming import renamed, root_of


class Aliases:
    """Knows the attributes that variables stand for: ``opt = self.opt``, or ``self.opt = opt`` in a constructor.

    Both are bound once: the variable in its function, the attribute by constructors alone.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self._pairs: dict[Function, dict[str, str]] = {}

    def refined(
        self, function: Function, test: ast.expr, known: Assumption, truth: bool
    ) -> Assumption | None:
        """Return what is known where a test came out as `truth`, by either name; None where it cannot."""
        pairs = self.of(function)
        told = by_both(known, pairs)
        if evaluate(test, told) is (not truth):
            return None
        found = refine(told, test, truth)
        return None if found is None else by_both(found, pairs)

    def along_with(self, names: Iterable[str], functions: Iterable[Function]) -> set[str]:
        """Return the last parts of the names that others of some functions stand for."""
        asked = {*names}
        return {
            part
            for function in functions
            for name, attribute in self.of(function).items()
            if name in asked
            for part in attribute.split(".")
        }

    def of(self, function: Function) -> Mapping[str, str]:
        """Return the paths of the attributes that variables of a function stand for."""
        if function not in self._pairs:
            self._pairs[function] = dict(self._found(function)) if function.node else {}
        return self._pairs[function]

    def _found(self, function: Function) -> Iterable[tuple[str, str]]:
        assigned = [
            (node.targets[0], node.value)
            for node in function.own_nodes
            if isinstance(node, ast.Assign) and len(node.targets) == 1
        ]
        stored = Counter(
            node.attr
            for node in function.own_nodes
            if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
        )
        for target, value in assigned:
            fits = self._lasts(function, target) and self._lasts(function, value)
            if not fits or isinstance(target, ast.Name) is isinstance(value, ast.Name):
                continue
            name, attribute = sorted((target, value), key=lambda n: isinstance(n, ast.Attribute))
            own = attribute is target
            assert isinstance(name, ast.Name)
            if all(stored[part] == own for part in _attributes(attribute)):
                yield name.id, str(path(attribute))

    def _lasts(self, function: Function, node: ast.expr) -> bool:
        """Tell whether a name or path of a function means one object as long as it runs."""
        text = path(node)
        if text is None or _attributes(node) & set_later(self._project):
            return False
        return len(function.module.scopes.bindings(function.scope, text.split(".")[0])) == 1


aliases_of = once(Aliases)


def _attributes(node: ast.expr) -> set[str]:
    return {*str(path(node)).split(".")[1:]}


def by_both(known: Assumption, pairs: Mapping[str, str]) -> Assumption:
    """Return what is known, by the names of attributes for what is told of variables, and the other way round."""
    for name, attribute in pairs.items() if known.facts else ():
        for old, new in ((name, attribute), (attribute, name)):
            about = known.only(partial(_speaks_of, old))
            roots = {root_of(o.text) for fact in about.facts for o in fact.term.operands}
            if about.facts:
                known = known.with_all(renamed(about, {old: new}, frozenset(roots)))
    return known


def _speaks_of(name: str, term: Term) -> bool:
    return any(o.text == name or o.text.startswith((f"{name}.", f"{name}[")) for o in term.operands)
