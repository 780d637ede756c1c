"""What a path knows of an event: its optimizer or network, and whether its loss is scaled."""

from __future__ import annotations

from dataclasses import replace

from amp_migrate.flow.assumption import Assumption
from amp_migrate.flow.terms import Term, term_of_name
from amp_migrate.protocol.calls.handed import Handed
from amp_migrate.training.events import Event


def exact(handed: Handed, event: Event, known: Assumption) -> Event:
    """Return an event with what is known of its optimizer, of its network, or of its loss."""
    event = handed.run.exact(event, known)
    if not event.certain and event.optimizers is not None:
        number = handed.optimizer(event, known)
        if number is not None:
            return replace(event, optimizers=frozenset({number}))
    if event.network is not None and not event.certain:
        trained = handed.trained(event.network, known)
        event = event if trained is None else replace(event, optimizers=trained)
    if event.scaled and handed.is_unscaled(event.node, known):
        event = replace(event, scaled=False)
    loss = event.loss
    if loss is None:
        return event
    if event.optimizers is None or len(event.optimizers) > 1:
        reached = handed.reached(loss, known)
        event = event if reached is None else replace(event, optimizers=reached)
    stated = None if event.scaled is not None else known.get(of_loss(loss))
    return event if stated is None else replace(event, scaled=stated.truth)


def of_loss(name: str) -> Term:
    """Return the term of whether the loss of a name is scaled."""
    return term_of_name(name, "scaled({})")
