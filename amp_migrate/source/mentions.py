"""Cheap answers from a file's text, before anything is parsed."""

from __future__ import annotations

import re

_SKIP_FILE = re.compile(r"^\s*#\s*amp-migrate:\s*skip-file\b", re.M)
_SKIP = re.compile(r"#\s*amp-migrate:\s*skip\b(?!-file)")
_IMPORT = re.compile(r"\bfrom\s+apex\b|\bimport\b[^\n]*\bapex\b")
_OLDER = ("FP16_Optimizer", "prep_param_lists", "wrap_optimizer")
_INIT = re.compile(r"\bamp\.init\(")
_NATIVE = re.compile(
    r"\b(?:GradScaler|autocast)\b|torch\.cuda\.amp\b|from\s+torch\.cuda\s+import\b"
)
_BY_NAME = re.compile(r"(?:import_module|__import__)\(\s*[\"']apex\b")

LOGS = frozenset({"critical", "debug", "error", "exception", "info", "log", "warn", "warning"})
"""Methods of a logger that only say something."""
TEXTS = frozenset({"ascii", "format", "len", "list", "map", "repr", "sorted", "str", "tuple"})
"""Functions of Python that make what is said."""


def skips_file(text: str) -> bool:
    """Tell whether a file asks to be left alone with ``# amp-migrate: skip-file``."""
    return "amp-migrate" in text and bool(_SKIP_FILE.search(text))


def skipped_lines(text: str) -> frozenset[int]:
    """Return the lines that carry ``# amp-migrate: skip``."""
    if "amp-migrate" not in text:
        return frozenset()
    return frozenset(i for i, line in enumerate(text.split("\n"), 1) if _SKIP.search(line))


def uses_apex(text: str) -> bool:
    """Tell whether a text imports Apex, as far as a line can show."""
    return "apex" in text and bool(_IMPORT.search(text) or imports_by_name(text))


def uses_older(text: str) -> bool:
    """Tell whether a text may use an interface of Apex from before today's amp."""
    words = any(word in text for word in _OLDER)
    return "apex" in text and (words or bool(_INIT.search(text)))


def may_use_apex(text: str) -> bool:
    """Tell whether a text imports Apex, or scales a loss as Apex does without importing it."""
    return uses_apex(text) or "scale_loss(" in text


def speaks_of_amp(text: str) -> bool:
    """Tell whether a text may use Apex or native AMP."""
    return may_use_apex(text) or bool(_NATIVE.search(text))


def imports_by_name(text: str) -> bool:
    """Tell whether a text imports Apex by a call: ``importlib.import_module("apex.amp")``."""
    return "apex" in text and bool(_BY_NAME.search(text))
