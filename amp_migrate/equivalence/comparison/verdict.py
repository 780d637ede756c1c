"""The five answers of a verification and their exit codes."""

from __future__ import annotations

from dataclasses import dataclass

EXACT = "EXACT"
EQUIVALENT = "EQUIVALENT"
DIFFERENT = "DIFFERENT"
INCONCLUSIVE = "INCONCLUSIVE"
CANNOT_RUN = "CANNOT_RUN"
EXIT_CODES = {EXACT: 0, EQUIVALENT: 0, DIFFERENT: 1, INCONCLUSIVE: 2, CANNOT_RUN: 3}


@dataclass(frozen=True)
class Verdict:
    """`word` is one of the five; `delta` is the relative loss deviation of an EQUIVALENT.

    `explain` are the words after ``amp-migrate`` of a command that says more, as "verify --show-output"; those of
    ``verify`` are completed by what was asked, others by the project.
    """

    word: str
    reason: str = ""
    delta: float | None = None
    explain: str = ""

    @property
    def exit_code(self) -> int:
        """0 for EXACT and EQUIVALENT, 1 DIFFERENT, 2 INCONCLUSIVE, 3 CANNOT_RUN."""
        return EXIT_CODES[self.word]

    def __str__(self) -> str:
        inside = f"{self.delta:.2g}" if self.delta is not None else ""
        if self.word in (INCONCLUSIVE, CANNOT_RUN):
            inside = self.reason
        return f"{self.word}({inside})" if inside else self.word


def inconclusive(reason: str, explain: str) -> Verdict:
    """Return that nothing can be concluded, why, and which command says more."""
    return Verdict(INCONCLUSIVE, reason, explain=explain)
