"""How a program ended that could not be compared, and which command says more."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator

from amp_migrate.equivalence.comparison.hints import raised
from amp_migrate.equivalence.result import Result
from amp_migrate.equivalence.runs.advice import advice

_MIGRATED = "the program before gets past this line, so that it is what was written that raises"


def ending(result: Result) -> Iterator[tuple[str, str]]:
    """Yield what to read about the exception that ended a program: its place, its Python, what to do."""
    crash = result.crash
    if crash is None or result.verdict.exit_code == 0:
        return
    if crash.error not in str(result.verdict) and crash.error not in result.verdict.reason:
        yield "raised", crash.error
    if crash.file:
        yield "raised at", f"{crash.file}:{crash.line}"
        yield "", crash.source
    yield "python", f"{crash.executable} ({crash.python})"
    level = result.logic
    if level is not None and level.before.crash is None:
        meaning = raised(crash.error)
        yield "what to do", f"{meaning or _MIGRATED}; --show-output shows all that both print"
        return
    unread = f"not migrated: {crash.file}: "
    mend = (note.removeprefix(unread) for note in result.notes if note.startswith(unread))
    yield "what to do", next(mend, "") or advice(crash, result.options)


def explaining(result: Result) -> str:
    """Return the command that says more about the verdict; empty where there is none."""
    words = shlex.split(result.verdict.explain)
    if not words:
        return ""
    options = result.options
    if words[0] == "verify":
        return shlex.join(["amp-migrate", *words, *options.given, "--", *options.command])
    return shlex.join(["amp-migrate", os.path.relpath(options.before or options.project), *words])
