"""One verification from options to result, without a command line."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from amp_migrate.equivalence.comparison.complete import LEFT
from amp_migrate.equivalence.comparison.verdict import CANNOT_RUN, Verdict, inconclusive
from amp_migrate.equivalence.ladder import Ladder
from amp_migrate.equivalence.options import Options
from amp_migrate.equivalence.progress import Meter
from amp_migrate.equivalence.result import Result
from amp_migrate.equivalence.runs.runner import ImportMismatchError, Runner
from amp_migrate.equivalence.runs.workspace import NothingMigratedError, WorkspaceError, prepare

T = TypeVar("T")


def check(options: Options) -> Result:
    """Copy, migrate, run both sides and compare; the library form of the command."""
    return in_workspace(
        options,
        lambda runner: Ladder(runner).climb(),
        lambda verdict: Result(options=options, verdict=verdict),
    )


def in_workspace(
    options: Options, work: Callable[[Runner], T], failed: Callable[[Verdict], T]
) -> T:
    """Do `work` beside copies of the project, or return what `failed` makes of the reason against it."""
    with tempfile.TemporaryDirectory(prefix="amp-migrate-") as folder:
        home = Path(folder).resolve()
        meter = Meter(sys.stderr)
        try:
            return work(Runner(options, prepare(options, home), home, meter.show))
        except NothingMigratedError as error:
            return failed(inconclusive(str(error), LEFT))
        except (WorkspaceError, ImportMismatchError) as error:
            return failed(Verdict(CANNOT_RUN, str(error)))
        finally:
            meter.clear()
