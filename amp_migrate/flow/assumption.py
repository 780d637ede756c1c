"""What is taken to hold at a point: terms with a value, or with a truth only."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from weakref import WeakValueDictionary

from amp_migrate.flow.bounds import Bound, Stated, follows
from amp_migrate.flow.terms import Operand, Term


@dataclass(frozen=True)
class Known:
    """The value of an expression: a constant of Python, or a tuple of such."""

    value: object
    kind: type = field(init=False)

    def __post_init__(self) -> None:
        """Tell True from 1, which are equal."""
        object.__setattr__(self, "kind", type(self.value))

    @property
    def truth(self) -> bool:
        """What `bool` makes of the value."""
        return bool(self.value)


@dataclass(frozen=True)
class Truth:
    """All that is known of a value: whether it counts as true."""

    truth: bool


Value = Known | Truth


def excludes(one: Value, other: Value) -> bool:
    """Tell whether what is known of a value cannot hold together with something else."""
    if isinstance(one, Known) and isinstance(other, Known):
        return one != other
    return one.truth is not other.truth


@dataclass(frozen=True)
class Fact:
    """A term and what is known of it."""

    term: Term
    value: Value


@lru_cache(maxsize=1 << 16)
def _fact(term: Term, value: Value) -> Fact:
    """Return the fact of a term: one object for equal ones, which sets compare at once."""
    return Fact(term, value)


_ALIVE: WeakValueDictionary[frozenset[Fact], Assumption] = WeakValueDictionary()


@dataclass(frozen=True, eq=False)
class Assumption:
    """Facts that hold together; never changed, only answered with another one.

    `assume`, in `evaluate`, makes one from text and adds what a test came out as. One object stands for equal facts,
    so that comparing and hashing take no look at them.
    """

    facts: frozenset[Fact] = frozenset()

    def __new__(cls, facts: frozenset[Fact] = frozenset()) -> Assumption:
        """Return the one object of some facts."""
        known = _ALIVE.get(facts)
        if known is None:
            known = _ALIVE[facts] = super().__new__(cls)
        return known

    def __reduce__(self) -> tuple[type[Assumption], tuple[frozenset[Fact]]]:
        """Stay the one object of these facts in a copy and in another process."""
        return Assumption, (self.facts,)

    @cached_property
    def _by_text(self) -> dict[str, Value]:
        return {fact.term.text: fact.value for fact in self.facts}

    @cached_property
    def _bounds(self) -> dict[str, list[Stated]]:
        found: dict[str, list[Stated]] = {}
        for fact in self.facts:
            if fact.term.bound is not None:
                stated = fact.term.bound, fact.value.truth
                found.setdefault(fact.term.bound.text, []).append(stated)
        return found

    def compared(self, asked: Bound) -> bool | None:
        """Return how a comparison with a number comes out by what other ones of the same term, or its truth, say."""
        return follows(asked, (*self._bounds.get(asked.text, ()), *self._as_number(asked)))

    def counts(self, term: Term) -> Truth | None:
        """Return that a term counts as true where comparisons with numbers say that it is not 0."""
        stated = self._bounds.get(term.text, ())
        zero = Bound(term.text, ast.Eq, 0)
        ordered = any(held for _, held in stated)
        return Truth(True) if ordered and follows(zero, stated) is False else None

    def _as_number(self, asked: Bound) -> Iterator[Stated]:
        """What the truth of a term says of it as a number: one that counts as false is 0, but None is not 0 either."""
        known = self._by_text.get(asked.text)
        zero = asked.op is ast.Eq and asked.number == 0
        if isinstance(known, Truth) and (known.truth or not zero):
            yield Bound(asked.text, ast.Eq, 0), not known.truth

    def get(self, term: Term) -> Value | None:
        """Return what is known of a term itself; None if nothing is."""
        return self._by_text.get(term.text)

    def says(self, text: str) -> bool:
        """Tell whether a term of a spelling is known to count as true."""
        stated = self._by_text.get(text)
        return stated is not None and stated.truth

    def with_fact(self, term: Term, value: Value) -> Assumption:
        """Return the same with one term known; what was known of it before goes."""
        gone = [fact for fact in self.facts if fact.term.text == term.text]
        return Assumption(self.facts.difference(gone) | {_fact(term, value)})

    def with_all(self, other: Assumption) -> Assumption:
        """Return the same with all known that another one says; what was known of its terms before goes."""
        texts = other._by_text
        gone = [fact for fact in self.facts if fact.term.text in texts]
        return Assumption(self.facts.difference(gone) | other.facts)

    def without_term(self, term: Term) -> Assumption:
        """Return what is left when nothing is known of a term any more."""
        return self if self.get(term) is None else self.only(lambda other: other != term)

    def without(self, changed: Callable[[Operand], bool]) -> Assumption:
        """Return what is left when the operands that `changed` picks may hold something else."""
        gone = [f for f in self.facts if any(map(changed, f.term.operands))]
        return Assumption(self.facts.difference(gone)) if gone else self

    def only(self, wanted: Callable[[Term], bool]) -> Assumption:
        """Return the facts about some terms."""
        gone = [fact for fact in self.facts if not wanted(fact.term)]
        return Assumption(self.facts.difference(gone)) if gone else self

    def common(self, other: Assumption) -> Assumption:
        """Return what both say."""
        return Assumption(self.facts & other.facts)

    def implies(self, other: Assumption) -> bool:
        """Return whether everything that the other says is said here too."""
        return other.facts <= self.facts


NOTHING = Assumption()
"""The assumption that says nothing."""
