"""Leave behind where an exception ended a process: its last frame in the project, and which Python it was."""

from __future__ import annotations

import json
import linecache
import os
import re
import sys
import textwrap
import time
import traceback
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

_LONGEST = 300
_ORIGINAL = "Original Traceback (most recent call last):"
_FRAME = re.compile(r'^  File "(.+)", line (\d+)', re.MULTILINE)


def watch(record_dir: str, roots: tuple[tuple[str, str], ...]) -> None:
    """Write a file for an exception that nothing caught, then do what Python would have done."""
    previous = sys.excepthook

    def excepthook(
        kind: type[BaseException], value: BaseException, trace: TracebackType | None
    ) -> None:
        row = described(value, trace, tuple(copy for _, copy in roots))
        path = Path(record_dir) / f"{os.getpid()}.crash"
        path.write_text(json.dumps(row), encoding="utf-8")
        previous(kind, value, trace)

    sys.excepthook = excepthook


def described(
    value: BaseException, trace: TracebackType | None, copies: tuple[str, ...]
) -> dict[str, Any]:
    """Return an exception as plain data; `copies` are the folders that hold the project."""
    passed = [(frame.filename, frame.lineno or 0) for frame in traceback.extract_tb(trace)]
    text, elsewhere = _of_a_worker(str(value))
    passed += elsewhere
    if isinstance(value, SyntaxError) and value.filename:
        passed.append((value.filename, value.lineno or 0))
    own = [(_below(file, copies), file, line) for file, line in passed]
    name, file, line = next((one for one in reversed(own) if one[0]), ("", "", 0))
    return {
        "error": _in_one_line(f"{type(value).__name__}: {text}".rstrip(": ")),
        "file": name,
        "line": line,
        "source": linecache.getline(file, line).strip() if file else "",
        "missing": _missing(value),
        "absent": _absent(value, copies),
        "modules": sorted({Path(file).parent.as_posix() for file, _ in passed}),
        "executable": sys.executable,
        "python": sys.version.split()[0],
        "time": time.time(),
    }


def _in_one_line(text: str) -> str:
    return textwrap.shorten(text, _LONGEST, placeholder=" …")


def _of_a_worker(text: str) -> tuple[str, list[tuple[str, int]]]:
    """Return the message and the frames of the exception of another process or thread, which torch raises again as text."""
    if _ORIGINAL not in text:
        return text, []
    inner = text.partition(_ORIGINAL)[2].rstrip()
    frames = [(file, int(line)) for file, line in _FRAME.findall(inner)]
    return inner.splitlines()[-1].partition(": ")[2], frames


def _missing(value: BaseException) -> str:
    """Return the module that could not be imported."""
    return value.name or "" if isinstance(value, ModuleNotFoundError) else ""


def _absent(value: BaseException, copies: tuple[str, ...]) -> str:
    """Return the name that a module outside the project was asked for in vain, as MODULE:NAME."""
    if isinstance(value, AttributeError) and isinstance(value.obj, ModuleType):
        module, name, file = value.obj.__name__, value.name, getattr(value.obj, "__file__", "")
    elif isinstance(value, ImportError) and not isinstance(value, ModuleNotFoundError):
        wanted = re.match(r"cannot import name '(\w+)'", str(value))
        module, name, file = value.name or "", wanted and wanted[1], value.path
    else:
        return ""
    return f"{module}:{name}" if name and not _below(file or "", copies) else ""


def _below(file: str, copies: tuple[str, ...]) -> str:
    """Return a file's path in the project, empty for one that lies outside or is none (``<frozen importlib>``)."""
    if file.startswith("<"):
        return ""
    whole = Path(file).resolve()
    return next(
        (whole.relative_to(copy).as_posix() for copy in copies if whole.is_relative_to(copy)), ""
    )
