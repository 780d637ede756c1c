"""What goes against the protocol of native AMP, and the way that leads there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import PurePath


class Breach(Enum):
    """A rule of native AMP that some path breaks; the value says it in words."""

    SCALED_READ = "gradients are read while they are still multiplied by the loss scale"
    UNSCALED_READ = "gradients are clipped by the loss scale where they are not multiplied by it, or by another one"
    SCALED_STEP = "the optimizer steps on gradients that are still multiplied by the loss scale"
    HANDED = (
        "code that is not in sight is given the optimizer before its step, and may step it past the "
        "GradScaler"
    )
    UNCHECKED = (
        "the optimizer steps by itself on gradients that scaler.unscale_() checked for an overflow"
    )
    KEPT_UNCHECKED = (
        "gradients are changed by what may be made of others that scaler.unscale_() divided before the last "
        "scaler.update(): nothing skips the step where those had overflowed"
    )
    MIXED = "scaled and unscaled gradients are added up"
    DIVIDED = "scaler.step() divides gradients by the loss scale that were never multiplied by it"
    RESCALED = (
        "scaler.update() may change the loss scale between a backward and the step on its gradients"
    )
    AFTER_UNSCALE = "a scaled backward adds to gradients that are unscaled already"
    UNSCALED_TWICE = (
        "scaler.unscale_() runs twice for one optimizer without scaler.update() in between"
    )
    UNSCALED_LATE = "scaler.unscale_() runs after scaler.step() without scaler.update() in between"
    STEPPED_TWICE = "scaler.step() runs twice for one optimizer without scaler.update() in between"
    CLEARED = (
        "gradients are cleared between a backward and the step, before the GradScaler has looked for an "
        "overflow in them"
    )
    WITHOUT_GRADIENTS = (
        "scaler.step() raises where a forward raised an exception and no gradients are there, which optimizer.step() "
        "did not"
    )
    UPDATE_ALONE = (
        "scaler.update() runs although nothing was unscaled or stepped since the last one"
    )
    UNSCALED_ALONE = (
        "scaler.unscale_() and scaler.update() run where no loss was scaled since the last update(), and no optimizer "
        "steps"
    )
    NEVER_SCALED = "scaler.step(), scaler.unscale_() or scaler.update(scale) raises, as no loss is scaled before it on any path"
    NEVER_UPDATED = (
        "scaler.step() runs and scaler.update() never does, so that a second step raises"
    )
    CAST_STEP = "the optimizer steps inside an autocast block"
    CAST_BACKWARD = "a scaled backward pass runs inside an autocast block"
    CAST_WRITE = "weights are written inside an autocast block, which keeps copies of them"
    REFUSED = "binary cross entropy runs under autocast, which torch refuses"
    RECORDED = (
        "torch.jit.trace records a network inside an autocast block, which torch refuses where it keeps copies of "
        "weights"
    )
    CACHED = (
        "one autocast block runs a network without gradients and then with them: "
        "its weights get no gradients on torch before 2.13"
    )
    SCALED_LOSS = "a loss is used that is multiplied by the loss scale"
    REMADE = "a GradScaler is made anew while its optimizer goes on"
    PLACEHOLDER = (
        "a GradScaler that is off is passed on before the one that takes its place is made"
    )
    IDLE = "nothing uses the GradScaler that is made here, as another of that name is used"
    ANEW = "Apex went by another value of a setting than the GradScaler, as that is set anew in between"
    UNGROUPED = "the GradScaler is given an object that only steps an optimizer and has no param_groups, which raises"
    LISTED = "the GradScaler is given a list where it takes one optimizer, which raises"
    EMPTIED = "scaler.unscale_() is given a name that holds no optimizer at that time, which raises"
    UNBOUND = "the GradScaler is used on a path that does not make it"


class Trouble(Enum):
    """What goes wrong in a rewrite that is not used, as far as it decides what a person can do."""

    GRADIENTS = "what happens to gradients, or when"
    CASTS_ADDED = "a forward has casts that Apex did not make"
    CASTS_MISSING = "a forward lacks casts that Apex made"
    REFUSED_LOSS = "torch refuses a loss under autocast"
    OUT_OF_SIGHT = "code that cannot be read scales the loss"
    TOO_EARLY = "an optimizer steps before the first backward"
    KEPT = "gradients of one backward go into the step on those of another one"
    SET_ANEW = "a setting by which Apex went is set anew while it is on"
    CACHED = "copies that autocast makes without gradients are used with them"
    HELD_BACK = "casts stay with Apex in a file that a program shares with another one"


@dataclass(frozen=True)
class Place:
    """A line of a file."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{PurePath(self.path).name}:{self.line}"


@dataclass(frozen=True)
class Fault:
    """A breach at a place; `way` are the places that lead there, first to last, the breach itself included.

    `certain` tells whether the event names what it concerns; else it may concern any optimizer.
    """

    breach: Breach
    place: Place
    way: tuple[Place, ...]
    certain: bool = True

    def sentence(self) -> str:
        """Return the fault in one sentence, with its way."""
        return f"{self.breach.value} ({' -> '.join(map(str, self.way))})"
