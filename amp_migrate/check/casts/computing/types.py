"""Whether values keep the types that they had under Apex, by whatever computes them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from amp_migrate.check.apex.assumed import Initialize
from amp_migrate.check.apex.disabling import States
from amp_migrate.check.apex.initialized import Initialized
from amp_migrate.check.casts.casting import Casting, Casts
from amp_migrate.check.casts.computing.backwards import Gradients
from amp_migrate.check.casts.computing.copies import stale
from amp_migrate.check.casts.computing.others import Others
from amp_migrate.check.casts.computing.own_backward import OwnBackwards
from amp_migrate.check.casts.computing.products.halved import Halved
from amp_migrate.check.casts.computing.products.of_outputs import Operators
from amp_migrate.check.casts.computing.products.unlisted import Unpatched
from amp_migrate.check.casts.computing.wide import Wide
from amp_migrate.check.casts.differing import same
from amp_migrate.check.casts.networks import Networks
from amp_migrate.check.events.claims import Claims
from amp_migrate.check.events.sides import Key, Side
from amp_migrate.check.events.traces import Difference
from amp_migrate.project import Function


class Texts(NamedTuple):
    """The two texts, and what runs networks in the old one."""

    old: Side
    new: Side
    networks: Networks


class Run(NamedTuple):
    """Programs that an initialize turns AMP on for, from where they begin: what Apex has cast when each function begins, and what native AMP has.

    `others` tells the networks that no initialize is given.
    """

    apex: Initialized
    starts: Mapping[Function, States]
    native: Casting
    begun: dict[Function, frozenset[Casts]]
    begins: Sequence[Function]
    item: Initialize
    others: Others


def computed(texts: Texts, run: Run, claims: Claims) -> Iterator[tuple[Key, Difference]]:
    """Yield what is computed in another type with AMP on."""
    apex, starts, native, begun, begins, item, others = run
    entries = same(texts.new, begins)
    operators = Operators(*texts)
    yield from operators.uncast(apex, starts, native, begun)
    yield from operators.recast(starts, native, begun, claims)
    yield from Unpatched(*texts).recast(native, entries, claims)
    yield from Gradients(texts.old, texts.new).recast(native, begins, entries)
    yield from OwnBackwards(texts.old, texts.new).differences(native, begun, claims)
    yield from stale(texts.old, texts.new, native, entries)
    yield from Wide(*texts, partial(others.leaves, item)).uncast(
        apex, starts, native, begun, claims
    )

    def at_one(function: Function, call: ast.Call) -> Casts:
        return native.at(function, call, begun[function]) if function in begun else Casts.OFF

    yield from others.differing(item, begins, at_one, claims)
    yield from Halved(*texts).uncast(item, begins)
