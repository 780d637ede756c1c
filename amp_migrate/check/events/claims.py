"""What named rules of a run say that they change: the only differences between before and after that pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from amp_migrate.check.events.labels import Does
from amp_migrate.project import Function
from amp_migrate.protocol.faults import Place

BACKENDS = "AMP114"
RAISES = "AMP115"
BOUNDS = "AMP102"
STEPS = "AMP105"
UNCAST = ("AMP107", "AMP124")
INSIDE = "AMP212"
FURTHER = "AMP116"
MENDED = "AMP206"
LEFT = "AMP214"
REGISTERS = "AMP113"
IN_FP32 = "AMP123"
OWN_BACKWARD = "AMP125"
WINDOWS = "AMP203"
SAYS = frozenset({STEPS, "AMP106", WINDOWS})
MOVED = frozenset({"AMP207", "AMP208"})
MOVES = frozenset({"AMP201", "AMP204"})
"""The rules that say of steps which may be left out what differs, and those that move what clears behind the step."""

_KINDS = {
    "AMP201": (Does.CLEAR,),
    "AMP204": (Does.CLEAR,),
    "AMP207": (Does.READ,),
    "AMP208": (Does.READ,),
    "AMP508": (Does.SAVE, Does.LOAD),
}
_REWRITES = frozenset(
    {
        "AMP108", "AMP111", "AMP121", "AMP122", "AMP202", "AMP301", "AMP302", "AMP303", "AMP304", "AMP305", "AMP306", "AMP307",
        "AMP308",
    }
)  # fmt: skip
_BRINGS = frozenset({REGISTERS, "AMP122", "AMP303"})
_TESTS = frozenset({"AMP110", "AMP204", "AMP208"})


class Claim(NamedTuple):
    """A rule of the run, and the lines of the old text that it speaks of; a note says what is no longer the same."""

    code: str
    path: str
    line: int
    last: int = 0
    is_note: bool = False

    def is_of(self, place: Place, last: int = 0) -> bool:
        """Tell whether it speaks of one of some lines of the old text."""
        ends = max(self.line, self.last)
        return self.path == place.path and self.line <= max(place.line, last) and place.line <= ends


@dataclass(frozen=True)
class Allowed:
    """What may differ in one function: kinds of events, tests by their lines, and the way of Apex beside another.

    `clearing` are the lines of the claims that gradients are cleared at other times: they name the optimizers. `reading` are
    those of the claims that gradients are read at other times: they name the reads.
    """

    kinds: frozenset[str] = frozenset()
    lines: frozenset[int] = frozenset()
    without_apex: bool = False
    clearing: frozenset[int] = frozenset()
    reading: frozenset[int] = frozenset()

    def kinds_only(self) -> Allowed:
        """Return what holds on the other side as well, which has other lines."""
        return Allowed(self.kinds, frozenset(), self.without_apex)

    def __bool__(self) -> bool:
        return bool(self.kinds or self.lines or self.without_apex)


@dataclass(frozen=True)
class Claims:
    """The claims of a run, and the type that its casts are to have."""

    every: tuple[Claim, ...] = field(default=())
    dtype: str = "float16"

    def say(self, code: str, place: Place) -> bool:
        """Tell whether a rule of the run speaks of a line of the old text."""
        return any(c.code == code and c.line == place.line for c in self._of(place.path))

    def note(self, code: str, place: Place) -> bool:
        """Tell whether a rule of the run reports that what stands on a line of the old text is no longer the same."""
        return any(
            c.is_note and c.code == code and c.line <= place.line <= c.last
            for c in self._of(place.path)
        )

    def uncast(self, place: Place) -> bool:
        """Tell whether a rule of the run reports that what stands on a line of the old text is not cast as before."""
        return any(self.note(code, place) for code in UNCAST)

    def move(self, place: Place) -> bool:
        """Tell whether a rule of the run moves what clears gradients on a line of the old text behind the step."""
        return any(c.code in MOVES and c.is_of(place) for c in self._of(place.path))

    def speak_of(self, place: Place, last: int = 0) -> bool:
        """Tell whether a rule of the run speaks of a statement that begins on a line of the old text, or of a part of it."""
        return any(c.is_of(place, last) for c in self._of(place.path))

    def rewrite(self, place: Place, last: int) -> bool:
        """Tell whether a rule of the run writes something else for what stands on some lines of the old text."""
        return any(c.code in _REWRITES and c.is_of(place, last) for c in self._of(place.path))

    def bring(self, path: str) -> bool:
        """Tell whether a rule of the run writes functions or classes of its own into a file."""
        return any(c.code in _BRINGS for c in self._of(path))

    def allowed(self, functions: Iterable[Function]) -> Allowed:
        """Return what the rules of the run change in some functions of the old text."""
        kinds: set[str] = set()
        lines: set[int] = set()
        lines_of: dict[Does, set[int]] = {Does.CLEAR: set(), Does.READ: set()}
        without_apex = False
        for function in functions:
            for claim in self._of(function.module.path):
                without_apex |= claim.code == BACKENDS
                if not function.spans(claim.line):
                    continue
                found = _KINDS.get(claim.code, ())
                kinds.update(kind.value for kind in found)
                for kind in lines_of.keys() & set(found):
                    lines_of[kind].update(range(claim.line, max(claim.line, claim.last) + 1))
                if claim.code in _TESTS:
                    lines.add(claim.line)
        clearing, reading = (frozenset(lines_of[kind]) for kind in (Does.CLEAR, Does.READ))
        return Allowed(frozenset(kinds), frozenset(lines), without_apex, clearing, reading)

    def drops(self, function: Function) -> bool:
        """Tell whether the run says that the way of Apex goes from the file of a function."""
        return any(claim.code == BACKENDS for claim in self._of(function.module.path))

    def _of(self, path: str) -> Sequence[Claim]:
        return self._by_path.get(path, ())

    @cached_property
    def _by_path(self) -> dict[str, list[Claim]]:
        found: dict[str, list[Claim]] = {}
        for claim in self.every:
            found.setdefault(claim.path, []).append(claim)
        return found
