"""Rules as pages of text."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable

from amp_migrate.output.style import Style
from amp_migrate.rules import RULES
from amp_migrate.rules.base import Rule

FAMILIES = {
    "AMP1": "migrate: faithful rewrites of Apex AMP",
    "AMP2": "fix: mistakes that Apex code is known for; these change the training",
    "AMP3": "the rest of Apex",
    "AMP4": "native AMP code",
    "AMP5": "enable: native AMP for trainings in FP32",
    "AMP9": "left for a human",
}


def explanation(code: str | None) -> str | None:
    """Return the page of a rule, or for None the list of all; None where there is no such rule."""
    style = Style.of(sys.stdout, None)
    if code is None:
        return listing(RULES, style)
    return next((page(rule, style) for rule in RULES if rule.code == code.upper()), None)


def page(rule: Rule, style: Style) -> str:
    """Return everything that is said about a rule."""
    title = style(f"{rule.code}: {rule.title}", "bold")
    lines = [title, f"Safety: {rule.safety.value}", ""]
    for line in rule.doc.strip().splitlines():
        heading = re.match(r"#+ (.*)", line)
        lines.append(style(heading[1], "bold") if heading else line)
    return "\n".join(lines).rstrip() + "\n"


def listing(rules: Iterable[Rule], style: Style) -> str:
    """Return all rules, a line each, by family."""
    known = sorted(rules, key=lambda rule: rule.code)
    parts = []
    for family, purpose in FAMILIES.items():
        lines = [_entry(rule, style) for rule in known if rule.family == family]
        if lines:
            parts.append("\n".join([f"{family}xx  {purpose}", *lines]) + "\n")
    return "\n".join(parts) + "\namp-migrate explain CODE says what a rule does, and why.\n"


def _entry(rule: Rule, style: Style) -> str:
    safety = style(f"({rule.safety.value})", "dim")
    return f"  {style(rule.code, 'bold')}  {rule.title} {safety}"


def first_paragraph(doc: str) -> str:
    """Return the first paragraph below the first heading of a rule's text, or of the text."""
    paragraphs = [part.strip() for part in textwrap.dedent(doc).split("\n\n")]
    below = [re.sub(r"^#+ .*\n?", "", part).strip() for part in paragraphs]
    return next((" ".join(part.split()) for part in below if part), "")
