"""The floating type that a value has with Apex O1 and the one that it has with autocast, and what several of them make."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple


class Kind(Enum):
    """What a value is made of."""

    NUMBER = "a number of Python, or no tensor"
    WHOLE = "whole numbers or truth values"
    HALF = "fp16"
    WIDE = "fp32"
    UNKNOWN = "anything"


class Held(NamedTuple):
    """What a value may be, with Apex and with autocast; `single` where it may have no dimensions, `bare` where it has none."""

    apex: Kind
    native: Kind
    single: bool = False
    bare: bool = False


Helds = frozenset[Held]
NUMBER: Helds = frozenset({Held(Kind.NUMBER, Kind.NUMBER, True, True)})
WHOLE: Helds = frozenset({Held(Kind.WHOLE, Kind.WHOLE)})
HALF: Helds = frozenset({Held(Kind.HALF, Kind.HALF)})
WIDE: Helds = frozenset({Held(Kind.WIDE, Kind.WIDE)})
ONE_WIDE: Helds = frozenset({Held(Kind.WIDE, Kind.WIDE, True)})
BARE_WIDE: Helds = frozenset({Held(Kind.WIDE, Kind.WIDE, True, True)})
UNKNOWN: Helds = frozenset({Held(Kind.UNKNOWN, Kind.UNKNOWN, True)})

_ORDER = (Kind.NUMBER, Kind.WHOLE, Kind.HALF, Kind.WIDE)
_FLOATS = (Kind.HALF, Kind.WIDE)


def union(found: Sequence[Helds]) -> Helds:
    """Return what a value is that is one of several."""
    return frozenset[Held]().union(*found)


def wider(one: Kind, other: Kind) -> Kind:
    """Return what arithmetic makes of two tensors that have dimensions."""
    if Kind.UNKNOWN in (one, other):
        return Kind.WIDE if Kind.WIDE in (one, other) else Kind.UNKNOWN
    if {one, other} == {Kind.NUMBER, Kind.WHOLE}:
        return Kind.UNKNOWN
    return max(one, other, key=_ORDER.index)


def _promoted(one: Held, other: Held) -> Iterator[Held]:
    """Yield what arithmetic makes of two values: without dimensions, fp32 makes no fp16 wider, but for Apex."""
    apex, single = wider(one.apex, other.apex), one.single and other.single
    bare = one.bare and other.bare
    yield Held(apex, wider(one.native, other.native), single, bare)
    for kept, added in ((one, other), (other, one)):
        narrow = kept.native in (Kind.HALF, Kind.UNKNOWN)
        if added.single and added.native in _FLOATS and narrow:
            yield Held(apex, kept.native, single, bare)


def _put_in(target: Held, value: Held) -> Iterator[Held]:
    """Yield what ``target += value`` leaves: Apex makes it the wider type, which is a new tensor."""
    if target.native is Kind.NUMBER:
        yield from _promoted(target, value)
    else:
        yield target._replace(apex=wider(target.apex, value.apex))


def _each(
    found: Sequence[Helds], combine: Callable[[Held, Held], Iterable[Held]]
) -> Callable[[], Helds]:
    def combined() -> Helds:
        result = found[0]
        for others in found[1:]:
            pairs = itertools.product(result, others)
            result = frozenset(made for pair in pairs for made in combine(*pair))
        return result

    return combined


def promoted(found: Sequence[Helds]) -> Helds:
    """Return what arithmetic makes of some values, or a function that keeps types: nothing while one is not known."""
    return _each(found, _promoted)() if found else NUMBER


def put_in(found: Sequence[Helds]) -> Helds:
    """Return what ``target += value`` leaves in the target."""
    return _each(found, _put_in)()


def widened(found: Sequence[Helds]) -> Helds:
    """Return what a function gives that both compute in fp32."""
    return frozenset(_widened(held, Kind.WIDE, Kind.WIDE) for held in promoted(found))


def summed(found: Sequence[Helds]) -> Helds:
    """Return what a sum or a power gives, which are taken of whole numbers and of numbers of Python as well."""
    known = frozenset(held for held in promoted(found) if Kind.UNKNOWN not in held[:2])
    return widened([known]) | (UNKNOWN if known != promoted(found) else frozenset())


def widened_by_apex(found: Sequence[Helds]) -> Helds:
    """Return what a function gives that Apex alone computes in fp32."""
    return frozenset(_widened(held, Kind.WIDE, held.native) for held in promoted(found))


def copied(found: Sequence[Helds]) -> Helds:
    """Return what ``x.cpu()`` gives: Apex made floating types fp32 there, and left others."""
    every = promoted(found)
    known = frozenset(held for held in every if held.apex is not Kind.UNKNOWN)
    return widened_by_apex([known]) | (every - known)


def widened_by_native(found: Sequence[Helds]) -> Helds:
    """Return what a function gives that autocast alone computes in fp32."""
    return frozenset(_widened(held, held.apex, Kind.WIDE) for held in promoted(found))


def _widened(held: Held, apex: Kind, native: Kind) -> Held:
    if Kind.NUMBER in held[:2] or Kind.WHOLE in held[:2]:
        return held
    return held._replace(apex=apex, native=native)


def halved(found: Sequence[Helds]) -> Helds:
    """Return what a product gives that both compute in fp16."""
    return HALF if all(found) else frozenset()


def halved_by_native(found: Sequence[Helds]) -> Helds:
    """Return what a product gives that autocast alone computes in fp16."""
    made = frozenset(held for held in promoted(found) if held.apex is not Kind.NUMBER)
    return frozenset(Held(held.apex, Kind.HALF, True) for held in made)


def made_wide(found: Sequence[Helds]) -> Helds:
    """Return what ``x.float()`` gives."""
    return frozenset(held._replace(apex=Kind.WIDE, native=Kind.WIDE) for held in union(found))


def alone(found: Sequence[Helds]) -> Helds:
    """Return what values are that may have lost their dimensions."""
    return frozenset(held._replace(single=True) for held in union(found))


def bare(found: Sequence[Helds]) -> Helds:
    """Return what values are that have lost their dimensions."""
    return frozenset(held._replace(single=True, bare=True) for held in union(found))


def shaped(found: Sequence[Helds]) -> Helds:
    """Return what values are that may have been given dimensions."""
    return frozenset(
        held if Kind.NUMBER in held[:2] else held._replace(bare=False) for held in union(found)
    )


def spread(found: Sequence[Helds]) -> Helds:
    """Return what values are that have been given dimensions."""
    return frozenset(
        held if Kind.NUMBER in held[:2] else held._replace(single=False, bare=False)
        for held in union(found)
    )


def told(found: Helds) -> Helds:
    """Return what values are that are fp32 if anything."""
    known = frozenset(held for held in found if Kind.UNKNOWN not in held[:2])
    return known if known == found else known | WIDE


def always(held: Helds) -> Callable[[Sequence[Helds]], Helds]:
    """Return what gives the same, whatever it is given."""
    return lambda _: held
