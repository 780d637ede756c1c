"""Where and with what a verification ran."""

from __future__ import annotations

import platform
import shlex

from amp_migrate.equivalence.result import Result


def environment(result: Result) -> dict[str, str]:
    """Return name and value pairs for the end of a report."""
    options = result.options
    facts = {"command": shlex.join(options.command)}
    level = result.logic or result.numeric
    if level is not None and level.before.processes:
        header = level.before.processes[0].header
        facts["torch"] = f"{header['torch']}, Python {header['python']}"
        facts["device"] = _device(options.device, header["device"])
    if options.stubs:
        facts["do nothing"] = ", ".join(options.stubs)
    overflow = ", ".join(map(str, options.inject)) or "none"
    facts["settings"] = (
        f"seed {options.seed}, overflow injected at {overflow}, "
        f"growth interval {options.growth} for 2000 (casts off)"
    )
    return facts


def _device(asked: str, name: str) -> str:
    if asked == "cuda":
        return name
    machine = platform.processor() or platform.machine()
    return f"CPU ({machine}); CUDA calls redirected, CPU autocast follows CUDA's operator lists"
