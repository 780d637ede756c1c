"""How a program ended that could not be compared, and which command says more."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator

from amp_migrate.equivalence.result import Result
from amp_migrate.equivalence.runs.advice import advice


def ending(result: Result) -> Iterator[tuple[str, str]]:
    """Yield what to read about the exception that ended a program: its place, its Python, what to do."""
    crash = result.crash
    if crash is None or result.verdict.exit_code == 0:
        return
    if crash.file:
        yield "raised at", f"{crash.file}:{crash.line}"
        yield "", crash.source
    yield "python", f"{crash.executable} ({crash.python})"
    yield "what to do", advice(crash, result.options)


def explaining(result: Result) -> str:
    """Return the command that says more about the verdict; empty where there is none."""
    words = shlex.split(result.verdict.explain)
    if not words:
        return ""
    options = result.options
    if words[0] == "verify":
        return shlex.join(["amp-migrate", *words, *options.given, "--", *options.command])
    return shlex.join(["amp-migrate", os.path.relpath(options.before or options.project), *words])
