"""Compares the events of every function of a training before and after, path by path."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from amp_migrate.check.assumed import initializes
from amp_migrate.check.claims import Allowed, Claims
from amp_migrate.check.forwards import Forwards
from amp_migrate.check.labels import Does
from amp_migrate.check.networks import Networks
from amp_migrate.check.settings import scales
from amp_migrate.check.sides import Builder, Key, Side, without_gradients
from amp_migrate.check.traces import Difference, Label, Step, difference
from amp_migrate.facts.paths import walk
from amp_migrate.protocol.faults import Place
from amp_migrate.protocol.program import Program

NOTHING = Allowed()
_FRAME = frozenset({Does.TEST.value, Does.LOOP.value, Does.END.value, Does.CALL.value})
_GRADIENTS = _FRAME | {
    d.value for d in (Does.BACKWARD, Does.STEP, Does.CLEAR, Does.READ, Does.SAVE, Does.LOAD)
}
_WEIGHTS = _FRAME | {d.value for d in (Does.STEP, Does.FORWARD)}


@dataclass(frozen=True)
class Parted:
    """A function whose events differ."""

    key: Key
    difference: Difference


def parted(before: Program, after: Program, claims: Claims) -> Iterator[Parted]:
    """Yield the functions whose events differ, but for what the rules of a run claim."""
    old, new = Side(before), Side(after)
    both = old.functions.keys() & new.functions.keys()
    known = (old.relevant | new.relevant) & both
    for name in sorted(known):
        if old.text(name) == new.text(name):
            continue
        found = _compared(old, new, name, known, NOTHING)
        if found is not None and (allowed := claims.allowed(old.functions[name])):
            found = _compared(old, new, name, known, allowed)
        if found is not None:
            yield Parted(name, found)
    every = [i for i in initializes(before.project) if not claims.drops(i.function)]
    networks = Networks(before, old.labels, every)
    for name, found in Forwards(old, new, tuple(every), networks).differences():
        yield Parted(name, found)
    for name, found in scales(old, new, every):
        yield Parted(name, found)


def _compared(
    old: Side, new: Side, name: Key, known: frozenset[Key], allowed: Allowed
) -> Difference | None:
    calls = old.calls(name, known) | new.calls(name, known)
    tests, others = old.tests(name, calls, allowed), new.tests(name, calls, allowed.kinds_only())
    counts, other_counts = Counter(tests.values()), Counter(others.values())
    shared = {text for text in counts if counts[text] == other_counts[text]}
    tests, others = _only(tests, shared), _only(others, shared)
    forwards = old.forwards(name) | new.forwards(name)
    introduced = new.names(name) - old.names(name)
    strict = new.tests(name, calls, Allowed(frozenset({Does.LOAD.value, Does.SAVE.value})))
    invented = _invented(old, new, name, introduced, strict)
    if invented is not None:
        return invented
    cut = allowed.without_apex
    alone = old.relevant - known, new.relevant - known
    one = Builder(old, tests, calls, forwards, alone[0], frozenset(), cut, cut).build(name)
    other = Builder(new, others, calls, forwards, alone[1], introduced, False, cut).build(name)
    for kinds in (_GRADIENTS - allowed.kinds, _WEIGHTS - allowed.kinds):
        found = difference(one, other, partial(_is_of, kinds), allowed.without_apex)
        if found is not None:
            return found
    return None


def _only(tests: Mapping[ast.AST, str], texts: set[str]) -> dict[ast.AST, str]:
    return {node: text for node, text in tests.items() if text in texts}


def _is_of(kinds: frozenset[str], label: Label) -> bool:
    return label.kind in kinds


def _invented(
    old: Side, new: Side, name: Key, introduced: frozenset[str], tests: Mapping[ast.AST, str]
) -> Difference | None:
    """Return a test of the new text of which no part is a test of the old one, and that asks for nothing new."""
    had = {
        ast.unparse(n)
        for f in old.functions[name]
        for n in walk(f.scope)
        if isinstance(n, ast.expr)
    }
    for node, text in tests.items():
        if not isinstance(node, ast.If | ast.While) or without_gradients(node) is not None:
            continue
        parts = [part for part in atoms(node.test) if ast.unparse(part) not in had]
        if any(not introduced & set(_texts(part)) for part in parts):
            place = Place(name[0], node.lineno)
            return Difference((Step(Label(Does.TEST.value, text[3:]), None, place),))
    return None


def _texts(node: ast.expr) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name | ast.Attribute):
            yield ast.unparse(part)


def atoms(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the tests that `and`, `or` and `not` join."""
    if isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from atoms(value)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield from atoms(node.operand)
    else:
        yield node
