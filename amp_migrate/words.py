"""Parts of sentences for messages."""

from __future__ import annotations


def plural(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def os_reason(error: OSError) -> str:
    """Return why a system call failed."""
    return (error.strerror or str(error)).lower()
