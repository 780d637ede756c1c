"""Parts of sentences for messages."""

from __future__ import annotations

import textwrap

_NAMES = frozenset({"amp", "apex", "mmcv", "torch", "scaler"})


def plural(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def os_reason(error: OSError) -> str:
    """Return why a system call failed."""
    return (error.strerror or str(error)).lower()


def sentence(text: str) -> str:
    """Return a message as a whole sentence; one that begins with code keeps its first letter."""
    first = text.partition(" ")[0].rstrip(",;:")
    start = text[:1].upper() + text[1:] if first.isalpha() and first not in _NAMES else text
    return start if text.endswith((".", "!", "?", ":")) else f"{start}."


def indented(code: str) -> str:
    """Return code that stands in a string of the source as an indented block."""
    return textwrap.indent(textwrap.dedent(code).strip("\n"), "    ")
