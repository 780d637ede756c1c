"""The same program in other bytes: line ends, indentation, marks, comments."""

from __future__ import annotations

import random
import re

from generated.choices.sets import Features
from generated.written.text import Lines

_REMARKS = ("TODO check this", "see the paper", "as in the baseline", "keep in sync with eval")


def encoded(f: Features, text: str, rng: random.Random) -> bytes:
    """Return the bytes of a file."""
    if f["comments"] != "none":
        text = "\n".join(
            _remarked(text.split("\n"), rng, 0.15 if f["comments"] == "many" else 0.04)
        )
    kind = f["format"]
    if kind == "tabs":
        return _indented(text, "\t").encode()
    if kind == "two_spaces":
        return _indented(text, "  ").encode()
    if kind == "crlf":
        return text.replace("\n", "\r\n").encode()
    if kind == "bom":
        return b"\xef\xbb\xbf" + text.encode()
    if kind == "no_newline":
        return text.rstrip("\n").encode()
    if kind == "latin":
        return ("# -*- coding: latin-1 -*-\n# Entra\u00eenement\n" + text).encode("latin-1")
    return text.encode()


def _indented(text: str, unit: str) -> str:
    lines = []
    for line in text.split("\n"):
        body = line.lstrip(" ")
        lines.append(unit * ((len(line) - len(body)) // 4) + body)
    return "\n".join(lines)


def _remarked(lines: Lines, rng: random.Random, share: float) -> Lines:
    """Give some statements a comment at their end."""
    result = []
    for line in lines:
        simple = re.fullmatch(r"\s+[\w.]+(, [\w.]+)* [-+]?= .*[\w)\]]|\s+[\w.]+\(.*\)", line)
        if simple and "#" not in line and rng.random() < share:
            line = f"{line}  # {rng.choice(_REMARKS)}"
        result.append(line)
    return result
