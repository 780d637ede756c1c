"""What a run found and did, as data for every form of output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from amp_migrate.words import plural

if TYPE_CHECKING:
    from amp_migrate.plan.model import Decision, Finding
    from amp_migrate.source.discover import Skipped
    from amp_migrate.source.file import Source


SELF_CHECK = frozenset({"AMP910", "AMP595"})
"""The rules that say why a rewrite was refused."""


class Unit(Protocol):
    """What the engine says about one AMP unit, whose files belong together."""

    @property
    def files(self) -> list[str]:
        """The paths of its files."""

    def describe(self) -> dict[str, object]:
        """Return the files, roles and decisions of the unit as plain data."""


class Event(NamedTuple):
    """What happens in a training, with its line before and after; None on the side that does not have it."""

    what: str
    before: int | None
    after: int | None


class Compared(NamedTuple):
    """A function whose events were compared before and after."""

    path: str
    function: str
    events: tuple[Event, ...]


class Counts(NamedTuple):
    """How many Apex sites there were, and what became of them: found = migrated + fixed + left."""

    found: int = 0
    migrated: int = 0
    fixed: int = 0
    left: int = 0


class Problem(NamedTuple):
    """A file that may hold Apex code and was not migrated, and why."""

    path: str
    reason: str


class FileChange(NamedTuple):
    """A file before and after: its bytes, and the text after."""

    source: Source
    text: str
    after: bytes

    @property
    def path(self) -> str:
        """The name of the file."""
        return self.source.path

    @property
    def before(self) -> bytes:
        """The bytes the file had."""
        return self.source.data


class Exit(NamedTuple):
    """The exit code and what decided it; `reason` is empty where there is nothing to say."""

    code: int
    reason: str = ""


@dataclass(slots=True)
class Report:
    """What a run found and did, for every form of output.

    `compared` are the functions that change, with what happens in each before and after. `decisions` are the findings with their edits in the order they were made. `changes` are those that can be made, `api` is the spelling they were written in, `installed_torch` the version
    that decided it, empty where the project did; `only_fixes` tells that the program was to stay with Apex, and
    `migrates` is False there and where the migration is switched off. `read` counts the files that were looked at.
    `enables` tells that the run adds AMP to FP32 trainings, and `counts` are trainings.
    """

    sources: dict[str, Source] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    units: Sequence[Unit] = ()
    compared: Sequence[Compared] = ()
    changes: list[FileChange] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    passed_over: list[Skipped] = field(default_factory=list)
    written: bool = False
    api: str = ""
    installed_torch: str = ""
    read: int = 0
    only_fixes: bool = False
    migrates: bool = True
    enables: bool = False

    @property
    def files_with_sites(self) -> int:
        """The number of files that hold an Apex site."""
        from amp_migrate.plan.model import Status

        counted = (Status.MIGRATED, Status.FIXED, Status.LEFT)
        return len({item.path for item in self.findings if item.status in counted})

    @property
    def files_left(self) -> set[str]:
        """The files that hold a use of Apex that is left."""
        from amp_migrate.plan.model import Status

        return {item.path for item in self.findings if item.status is Status.LEFT}

    @property
    def _left(self) -> str:
        return "training" if self.enables else "place"

    def exit(
        self, *, check: bool, diff: bool, exit_zero: bool, exit_on_change: bool = False
    ) -> Exit:
        """Decide the exit code: 2 for problems and refused rewrites, 1 for what is left, else 0.

        With `exit_on_change` it is 1 where files were rewritten, too.
        """
        failed = {item.path for item in self.findings if item.code in SELF_CHECK}
        failed.update(problem.path for problem in self.problems)
        if failed:
            verb = "changed" if self.enables else "migrated"
            return Exit(2, f"{plural(len(failed), 'file')} could not be {verb}")
        pending = len(self.changes) if check else 0
        left = 0 if diff and not check else self.counts.left
        written = len(self.changes) if exit_on_change and self.written else 0
        were = "was" if written == 1 else "were"
        reasons = [
            *([f"{plural(written, 'file')} {were} rewritten"] if written else []),
            *([f"{plural(pending, 'file')} would change"] if pending else []),
            *([f"{plural(left, self._left)} left for a human"] if left else []),
        ]
        return Exit(1 if reasons and not exit_zero else 0, " and ".join(reasons))
