"""Makes the features of a program agree with each other."""

from __future__ import annotations

from generated.choices.sets import Features
from generated.choices.wishes_layout import LAYOUTS
from generated.choices.wishes_steps import STEPS


def settled(picked: Features) -> Features:
    """Return the features with those changed that do not go together."""
    result = dict(picked)
    for _ in range(2):
        for conditions, forced in (*STEPS, *LAYOUTS):
            if all(result[name] in options for name, options in conditions.items()):
                result |= forced
    return result
