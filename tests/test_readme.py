"""The README says what the tool does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from amp_migrate import Settings, migrate_source
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


SETUP = """\
import argparse
import torch
args = argparse.ArgumentParser().parse_args()
model = torch.nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion, loader, accumulation_steps = torch.nn.CrossEntropyLoss(), [], 4
"""


def test_the_diff_at_a_glance_is_what_the_tool_writes() -> None:
    """The example at the top is a program before and after."""
    shown = re.search(r"^```diff\n(.*?)^```", README, re.S | re.M)
    assert shown is not None
    lines = [line or " " for line in shown[1].splitlines()]
    before, after = (
        "".join(f"{line[1:]}\n" for line in lines if line[0] != sign).strip("\n") for sign in "+-"
    )
    settings = Settings(api="torch.cuda.amp")

    text = migrate_source(f"{SETUP}{before}\n", settings=settings).text
    assert text.removeprefix(SETUP).strip() == after.strip()


@pytest.mark.parametrize("name", re.findall(r"\]\(([^)#:]+)\)", README))
def test_links_lead_somewhere(name: str) -> None:
    """Relative links name files of the repository."""
    assert (ROOT / name).exists()


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.code)
def test_rules_speak_to_newcomers(rule) -> None:  # type: ignore[no-untyped-def]
    """What `explain` says has no word that only this project knows."""
    jargon = re.compile(
        r"\b(units?|sites?|in sight|out of sight|handed|callees?|its own step is not)\b|<module>"
    )

    assert not jargon.search(rule.doc)
    assert not jargon.search(rule.title)
