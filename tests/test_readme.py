"""The README says what the tool does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from amp_migrate.rules import rules

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
HEADINGS = ("What it does", "Why", "Example", "Use instead", "Safety")


def table() -> str:
    """Return the rule table as the README must show it."""
    rows = [f"| {rule.code} | {rule.title} | {rule.safety.value} |" for rule in rules()]
    return "\n".join(["| code | rule | safety |", "|---|---|---|", *rows])


def test_the_rule_table_is_that_of_the_rules() -> None:
    """Every rule stands in the table with its title and safety, in order."""
    shown = re.search(r"<!-- rules -->\n(.*?)\n<!-- /rules -->", README, re.S)

    assert shown is not None
    assert table() == shown.group(1).strip()


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.code)
def test_every_rule_is_documented(rule) -> None:  # type: ignore[no-untyped-def]
    """The text of a rule has all headings, in order, and says something below each."""
    parts = re.split(r"^## (.+)$", rule.doc, flags=re.M)

    assert list(HEADINGS) == parts[1::2]
    assert all(text.strip() for text in parts[::2])


def test_codes_are_unique() -> None:
    """No two rules share a code."""
    codes = [rule.code for rule in rules()]

    assert sorted(set(codes)) == codes


@pytest.mark.parametrize("name", re.findall(r"\]\(([^)#:]+)\)", README))
def test_links_lead_somewhere(name: str) -> None:
    """Relative links name files of the repository."""
    assert (ROOT / name).exists()


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.code)
def test_rules_speak_to_newcomers(rule) -> None:  # type: ignore[no-untyped-def]
    """What `explain` says has no word that only this project knows."""
    jargon = re.compile(r"\b(units?|sites?|in sight|out of sight|handed)\b")

    assert not jargon.search(rule.doc)
    assert not jargon.search(rule.title)
