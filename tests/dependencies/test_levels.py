"""The help text of a level says what it does once Apex is gone."""

from __future__ import annotations

from pathlib import Path

import pytest
from shell_support import APEX_PROGRAM, amp_migrate

from amp_migrate.dependencies.levels import with_levels_told
from amp_migrate.source.span import Span

DECLARED = """import argparse

parser = argparse.ArgumentParser()
parser.add_argument(
    "--fp16_opt_level",
    default="O1",
    help="For fp16: Apex AMP optimization level selected in ['O0', 'O1', 'O2', and 'O3']."
    "See details at https://nvidia.github.io/apex/amp.html",
)
args = parser.parse_args()
"""
SAID = """    help="For fp16: 'O0' trains in fp32, every other level with autocast.",
"""
READ = 'half = args.fp16_opt_level != "O0"\n'


def _told(text: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join([*lines[:6], SAID, *lines[8:]])


def test_a_level_that_only_turns_casts_on_is_told() -> None:
    text = DECLARED + READ
    end = len(DECLARED.split("\n")[7])
    assert with_levels_told(text, text) == (_told(text), [Span(7, 9, 8, end)])


def test_one_line_is_told_with_what_is_around_it() -> None:
    line = "é = p.add_argument('--level', help='Apex AMP optimization level selected in [O1]')\n"
    text = line + "print(a.level != 'O0')\n"
    said = '"' + SAID.partition("fp16: ")[2].rstrip(",\n")
    assert (
        with_levels_told(text, text)[0].split("\n")[0]
        == f"é = p.add_argument('--level', help={said})"
    )


@pytest.mark.parametrize(
    "read",
    [
        "",
        "print(args.fp16_opt_level)\n",
        READ + 'if args.fp16_opt_level == "O2":\n    print()\n',
        READ + "print(args.fp16_opt_level)\n",
    ],
)
def test_a_level_that_is_read_otherwise_is_not(read: str) -> None:
    text = DECLARED + read
    assert with_levels_told(text, text) == (text, [])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("html", "html#o1"),
        ("O3'].\"", "O3'].\"  # all"),
        ('help="For', 'help=f"For'),
        ("help=", "usage="),
        ('"--fp16_opt_level"', "NAME"),
        ("args = ", "args = ("),
    ],
)
def test_other_texts_stay(old: str, new: str) -> None:
    text = DECLARED.replace(old, new) + READ
    assert with_levels_told(text, text) == (text, [])


def test_an_option_on_a_line_that_asks_to_be_skipped_stays() -> None:
    text = DECLARED.replace("O3'].\"", "O3'].\"  # amp-migrate: skip") + READ
    text = text.replace('html"', 'html"  # amp-migrate: skip')
    assert "skip" in text
    assert with_levels_told(text, text) == (text, [])


def test_an_option_that_is_new_stays() -> None:
    text = DECLARED + READ
    assert with_levels_told("", text) == (text, [])


def test_a_migrated_program_tells_it(folder: Path) -> None:
    program = APEX_PROGRAM.replace('opt_level="O1"', "opt_level=args.fp16_opt_level")
    assert program != APEX_PROGRAM
    (folder / "train.py").write_text(DECLARED + program)
    found = amp_migrate(".").stderr
    text = (folder / "train.py").read_text()
    assert text.startswith(_told(DECLARED))
    assert "speaks of Apex" not in found
