"""The functions of one name before and after: where their events part."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from amp_migrate.check.casts.networks import Networks
from amp_migrate.check.events.builder import Builder, without_gradients
from amp_migrate.check.events.claims import Allowed
from amp_migrate.check.events.labels import Does
from amp_migrate.check.events.sides import Key, Side, changed
from amp_migrate.check.events.traces import Automaton, Difference, Label, Step, difference
from amp_migrate.check.gradients.clearing import Clearing, clearings
from amp_migrate.check.gradients.reading import Reads, unread
from amp_migrate.facts.below import atoms
from amp_migrate.protocol.faults import Place
from amp_migrate.report import Event

NOTHING = Allowed()
_CHECKPOINTS = Allowed(frozenset({Does.LOAD.value, Does.SAVE.value}))
_FRAME = frozenset({Does.TEST.value, Does.LOOP.value, Does.END.value, Does.CALL.value})
_GRADIENTS = _FRAME | {
    d.value for d in (Does.BACKWARD, Does.STEP, Does.CLEAR, Does.READ, Does.SAVE, Does.LOAD)
}
_WEIGHTS = _FRAME | {d.value for d in (Does.STEP, Does.FORWARD)}


class Pair:
    """The functions of one name before and after."""

    def __init__(
        self, old: Side, new: Side, name: Key, known: frozenset[Key], networks: Networks
    ) -> None:
        self._old = old
        self._new = new
        self._name = name
        self._alone = old.relevant - known, new.relevant - known
        self._networks = networks
        self._callees = old.calls(name, known), new.calls(name, known)
        self._calls = set().union(*self._callees)
        self._forwards = {t for f in old.functions[name] for t in networks.texts(f)}
        self._introduced = changed(old, new)[name]

    def difference(self, allowed: Allowed) -> Difference | None:
        """Return where the events of the two part, but for what may differ."""
        old, new, calls = self._old, self._new, self._calls - self._quiet(allowed)
        tests = old.tests(self._name, calls, allowed)
        others = new.tests(self._name, calls, allowed.kinds_only())
        invented = self._invented(others, set(tests.values()))
        if invented is not None:
            return invented
        counts, other_counts = Counter(tests.values()), Counter(others.values())
        shared = {text for text in counts if counts[text] == other_counts[text]}
        cut = allowed.without_apex
        one = Builder(
            old,
            _only(tests, shared),
            calls,
            self._forwards,
            self._alone[0],
            without_apex=cut,
            ending=cut,
        ).build(self._name)
        other = Builder(
            new,
            _only(others, shared),
            calls,
            self._forwards,
            self._alone[1],
            self._introduced,
            ending=cut,
        ).build(self._name)
        if cut and (gone := lost(one, other)) is not None:
            return gone
        moved = self._moved(allowed)
        for kinds in (_GRADIENTS, _WEIGHTS):
            own = moved if kinds is _GRADIENTS else {}
            found = difference(one, other, partial(_is_of, kinds - allowed.kinds, own), cut)
            if found is not None:
                return found
        for clearing in self._clearings(allowed):
            if (found := clearing.difference(one, other, _GRADIENTS - allowed.kinds)) is not None:
                return found
        if Does.READ.value in allowed.kinds:
            return unread(*self._reads())
        return None

    def _reads(self) -> tuple[Reads, Reads]:
        callees, old = self._callees[0], self._old
        stepping = {
            text
            for text in self._calls
            if Does.STEP.value in old.kinds(old.reached(callees.get(text, ())))
        }
        one = Reads(old, self._name, self._calls, stepping, frozenset())
        return one, Reads(self._new, self._name, self._calls, stepping, self._introduced)

    def _moved(self, allowed: Allowed) -> dict[str, frozenset[str]]:
        """Return whose gradients may be cleared at other times, and which reads of gradients may; of a kind that is missing any."""
        events = self._old.events(self._name, set(), set(), frozenset())
        found = {
            Does.CLEAR.value: {
                label.of
                for label, line in events
                if line in allowed.clearing and label.kind in (Does.CLEAR.value, Does.STEP.value)
            },
            Does.READ.value: {
                label.of
                for label, line in events
                if line in allowed.reading and label.kind == Does.READ.value
            },
        }
        return {kind: frozenset(of) for kind, of in found.items() if of}

    def _clearings(self, allowed: Allowed) -> Iterator[Clearing]:
        """Yield what rules of the run clear at other times."""
        callees, old = self._callees[0], self._old
        called = {t: old.kinds(old.reached(callees.get(t, ()))) for t in self._calls}
        yield from clearings(old, old.functions[self._name], allowed, called)

    def _quiet(self, allowed: Allowed) -> set[str]:
        """Return how both sides call what does nothing but what may differ."""
        if not allowed.kinds:
            return set()
        quiet = set()
        events = self._old.events(self._name, self._calls, set(), frozenset())
        said = {label.of for label, line in events if line in allowed.reading}
        for text in self._calls:
            one, other = (
                side.reached(callees.get(text, ()))
                for side, callees in zip((self._old, self._new), self._callees, strict=True)
            )
            kinds = self._old.kinds(one) | self._new.kinds(other)
            unsaid = Does.READ.value in kinds and text not in said
            if kinds <= allowed.kinds and not unsaid:
                if not any(self._networks.texts(f) for f in one):
                    quiet.add(text)
        return quiet

    def rows(self) -> list[Event]:
        """Return the events of both, side by side in the order of the text."""
        one = self._old.events(self._name, self._calls, self._forwards, frozenset())
        other = self._new.events(self._name, self._calls, self._forwards, self._introduced)
        return list(_aligned(one, other))

    def _invented(self, tests: Mapping[ast.AST, str], old: set[str]) -> Difference | None:
        """Return a test of the new text of which no part stands in the old one, and that asks for nothing new."""
        fresh = [
            node
            for node, text in tests.items()
            if text not in old and isinstance(node, ast.If | ast.While)
        ]
        if not fresh:
            return None
        had = {
            ast.unparse(n)
            for f in self._old.functions[self._name]
            for n in f.own_nodes
            if isinstance(n, ast.expr)
        }
        calls = self._calls - self._quiet(_CHECKPOINTS)
        strict = self._new.tests(self._name, calls, _CHECKPOINTS)
        for node in fresh:
            if node not in strict or without_gradients(node) is not None:
                continue
            parts = [part for part in atoms(node.test) if ast.unparse(part) not in had]
            if any(not self._introduced & set(_texts(part)) for part in parts):
                label = Label(Does.TEST.value, ast.unparse(node.test))
                place = Place(self._name[0], node.lineno)
                return Difference((Step(label, None, place),))
        return None


def lost(one: Automaton, other: Automaton) -> Difference | None:
    """Return an event that a way without Apex comes to, to whose like the new text never comes.

    Where no way without Apex leads to the end, nothing is to be kept.
    """
    had, has = one.labels(), {label.kind for label in other.labels()}
    if not any(label.kind == Does.END.value for label in had):
        return None
    for label, place in had.items():
        if label.kind not in _FRAME - {Does.CALL.value} | has:
            return Difference((Step(label, place, None),))
    return None


def _only(tests: Mapping[ast.AST, str], texts: set[str]) -> dict[ast.AST, str]:
    return {node: text for node, text in tests.items() if text in texts}


def _is_of(kinds: frozenset[str], moved: Mapping[str, frozenset[str]], label: Label) -> bool:
    """Tell whether an event is compared: of some kinds, or the clearing or the read of what no rule speaks of."""
    if label.kind in moved and label.of not in moved[label.kind]:
        return True
    return label.kind in kinds


def _aligned(old: Sequence[tuple[Label, int]], new: Sequence[tuple[Label, int]]) -> Iterator[Event]:
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, [x for x, _ in old], [x for x, _ in new], autojunk=False)
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        if tag == "equal":
            pairs = zip(old[start:end], new[new_start:new_end], strict=True)
            yield from (Event(str(label), line, other) for (label, line), (_, other) in pairs)
        else:
            yield from (Event(str(label), line, None) for label, line in old[start:end])
            yield from (Event(str(label), None, line) for label, line in new[new_start:new_end])


def _texts(node: ast.expr) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name | ast.Attribute):
            yield ast.unparse(part)
