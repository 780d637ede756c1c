"""What the planner says, in the words of who never had anything but FP32 and native AMP."""

from __future__ import annotations

import re
from collections.abc import Mapping

from amp_migrate.enable.described.describe import ALIAS, SCALED
from amp_migrate.source.align import Change, moved_line

_FOREIGN = re.compile(
    rf"\b[Aa]pex\b|\binitializ\w*|scale_loss|opt_level|\bO[0-3]\b|master_params|{ALIAS}|{SCALED}"
)
_SAID = (
    (r"amp\.initialize does not run on every way to", "the optimizer is not made on every way to"),
    (r"which amp\.initialize makes only later", "which is made below the optimizer only later"),
    (r"the code that amp\.initialize gets", "the code that gets the optimizer"),
    (r"amp\.initialize gets (.+?) here, and", r"\1 is made here, and"),
    (r"amp\.initialize runs here and in", "an optimizer is made here and in"),
    (
        r"what computes the loss calls amp\.initialize as well",
        "what computes the loss makes the optimizer as well",
    ),
    (
        r"that amp\.initialize does not get, and stays unscaled",
        "that is not known, and stays unscaled",
    ),
    (r"amp\.initialize runs once, under", "the optimizer is made once, under"),
    (r"move amp\.initialize from", "make the optimizer outside of"),
    (r"although amp is initialized", "although its optimizer gets scaled gradients"),
    (r"migrated, this training would", "with AMP, this training would"),
    (r", as under Apex", ", as before"),
    (r"\. Under Apex an overflow in them .*, now it does not", ", as before"),
    (r"(which|that) Apex did( not do)?", r"\1 the training wants\2"),
    (r"and migrate this code by hand", "and add AMP to this code by hand"),
    (r"migrate (this|these|it|lines?)\b(.*?) by hand", r"add AMP to \1\2 by hand"),
)
GENERAL = "the way in which this training is written cannot be followed far enough to add AMP to it safely"


def in_user_terms(text: str) -> str | None:
    """Return a sentence of the planner without anything of the text that it read; None where that is its subject."""
    for pattern, said in _SAID:
        text = re.sub(pattern, said, text)
    return None if _FOREIGN.search(text) else text


def in_user_lines(text: str, moved: Mapping[str, list[Change]]) -> str:
    """Return a sentence whose places ``file:line`` are those of the user's files."""
    for path, differences in moved.items():
        if path in text:
            text = re.sub(
                rf"{re.escape(path)}:(\d+)",
                lambda found, path=path, d=differences: (  # type: ignore[misc]
                    f"{path}:{moved_line(int(found[1]) - 1, d) + 1}"
                ),
                text,
            )
    return text
