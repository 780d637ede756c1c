"""What happens in a training, as data."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from amp_migrate.facts.mark import Mark
from amp_migrate.facts.paths import argument


class Kind(Mark):
    """What an event is; the comment says what `optimizers` of such an event are."""

    MAKE = "made"  # the optimizer that a call makes
    BACKWARD = "backward"  # those whose gradients it may add to
    READ_GRAD = "reads gradients"  # those whose gradients it reads
    KEEP_GRAD = "puts gradients aside"  # those whose gradients it puts aside
    GIVE_GRAD = "gives gradients back"  # those whose gradients become what was put aside
    PUT_GRAD = "puts gradients in place"  # those whose gradients become what was worked out apart
    CHANGE_GRAD = (
        "changes gradients"  # those whose gradients become others, of these and whatever else
    )
    UNSCALE = "unscale_"  # the one it is called for
    STEP = "step"  # the one that steps
    UPDATE = "update"  # all of its scaler
    SET_SCALE = "update(scale)"  # all of its scaler
    ZERO_GRAD = "zero_grad"  # those whose gradients it clears
    ABSENT = "no gradients"  # those of which a test found that there are none
    FORWARD = "forward"  # those that train the network
    PART = "forward of a part"  # none: a method of a network runs a part of it
    SHARED = "forward of shared weights"  # none: what runs shares weights with the networks
    REFUSES_CASTS = "binary cross entropy"  # none: an operation that raises under autocast
    RECORDS = "torch.jit.trace"  # none: what records a network
    CLEAR_CASTS = "clear_autocast_cache"  # none: autocast casts every weight anew
    WEIGHT_WRITE = "writes weights"  # none: by hand, not by a step
    RUNS_WRITTEN = "runs what is written"  # none: a network whose weights something writes
    MAKE_SCALER = "GradScaler"  # none: a GradScaler begins at its first scale
    OTHER_STEP = "other step"  # none: what steps may be an optimizer, or a scheduler
    HANDED = "handed"  # those that code out of sight is given; `scaler` where it is given one


@dataclass(frozen=True, eq=False)
class Event:
    """One event at a node.

    `optimizers` are numbers of optimizers; None where it may concern any. `scaler` is the number of the
    GradScaler that acts, None for none. `scaled` tells of a BACKWARD whether its loss is multiplied by the scale:
    True, False, or None where either may be; of a READ_GRAD that it takes gradients that are. `networks` are the names that hold the network of a FORWARD, or the part, those
    of a SHARED that have the weights, those that a RUNS_WRITTEN may run, or whose weights a WEIGHT_WRITE writes; none there where it may be any.
    `unsure` tells that the GradScaler may be one that is never on, and `loss` is the name of the loss of a
    BACKWARD, where it has one; `network` that of the one network of a READ_GRAD. `assumed` tells of a READ_GRAD that
    nothing is known of what runs, of a FORWARD that it is a method that may run only part of the network, of a SHARED always, and of
    HANDED that a library is given the optimizer, or that a GradScaler goes with it; `each` that a READ_GRAD concerns every one of several
    optimizers, not one of them; `beside` that the call may run functions of the project, and this where it does not;
    `block` are the optimizers of the block of Apex around a BACKWARD, where a path tells which these are.
    `own` tells of a FORWARD or SHARED that the network is a part that the object of the method has made for itself, and
    `within` are the networks of which a SHARED or RUNS_WRITTEN runs a part, or a WEIGHT_WRITE writes one.
    """

    kind: Kind
    node: ast.AST
    optimizers: frozenset[int] | None = None
    scaler: int | None = None
    scaled: bool | None = False
    networks: frozenset[int] = frozenset()
    unsure: bool = False
    loss: str | None = None
    network: str | None = None
    assumed: bool = False
    each: bool = False
    beside: bool = False
    own: bool = False
    within: frozenset[int] = frozenset()
    block: frozenset[int] | None = None

    @property
    def certain(self) -> bool:
        """Whether it is known which optimizers it concerns."""
        return self.each or len(self.optimizers or ()) == 1

    def may_concern(self, number: int) -> bool:
        """Tell whether it may concern an optimizer by its number."""
        return self.optimizers is None or number in self.optimizers

    def named(self) -> ast.expr | None:
        """Return the expression that names the optimizer of a STEP or UNSCALE through a scaler."""
        if self.scaler is None or not isinstance(self.node, ast.Call):
            return None
        return argument(self.node, "optimizer", 0)


def sharing(call: ast.Call, networks: frozenset[int], within: frozenset[int], own: bool) -> Event:
    """Return the forward of what shares weights with networks, or with those of which it is a part."""
    return Event(Kind.SHARED, call, networks=networks, assumed=True, own=own, within=within)


def joined(events: Iterable[Event]) -> Iterator[Event]:
    """Yield what a call does that may run any of several methods: one event of a kind, of all that it may concern."""
    found: dict[tuple[Kind, ast.AST, int | None], Event] = {}
    for event in events:
        key = (event.kind, event.node, event.scaler)
        other = found.get(key, event)
        of, more = event.optimizers, other.optimizers
        both = None if of is None or more is None else of | more
        found[key] = replace(event, optimizers=both, beside=event.beside or other.beside)
    yield from found.values()


def trains(held: Mapping[ast.AST, tuple[Event, ...]]) -> bool:
    """Tell whether any event is more than a step of what may have nothing to do with training."""
    return any(e.kind is not Kind.OTHER_STEP for events in held.values() for e in events)
