"""Asides that name Apex in comments and help texts go with it."""

from __future__ import annotations

from pathlib import Path

from shell_support import APEX_PROGRAM, amp_migrate

from amp_migrate.dependencies.asides import without_asides
from amp_migrate.source.span import Span

OPTIONS = """import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--half", help="16 bits (mixed) (through NVIDIA apex) instead of 32")
parser.add_argument("--level", help="Apex level (with apex)")
"""


def test_an_aside_in_a_comment_goes() -> None:
    before = "x = 1\n# several GPUs (after apex is set up)\ny = 2  # kept (through NVIDIA's Apex)\n"
    after = "# several GPUs\ny = 2  # kept\n"
    written = before.removeprefix("x = 1\n")
    assert without_asides(before, written) == (after, [Span(2, 0, 2, 37), Span(3, 7, 3, 37)])


def test_what_needs_it_to_be_true_stays() -> None:
    for comment in (
        "# (apex is done here)",
        "# apex (of NVIDIA/apex)",
        "# noqa (apex)",
        "# apexcharts (not apexcharts)",
        "# see f(apex(x))",
        "# no apex here",
        "# modified (from NVIDIA apex)",
        "# a level (works only for `apex`)",
        "# the weights (not after apex is set up)",
        "# the weights (see https://github.com/NVIDIA/apex/issues/75)",
    ):
        assert without_asides(comment, comment) == (comment, []), comment


def test_a_comment_that_the_old_text_has_more_often_stays() -> None:
    comment = "# the network (with apex)\n"
    assert without_asides(comment * 2, comment) == (comment, [])


def test_other_strings_stay() -> None:
    for line in (
        'print("fast (with apex)")\n',
        'parser.add_argument("--fast", help="""fast\n(with apex)""")\n',
        'parser.add_argument("--fast (apex)", help=text)\n',
        'parser.add_argument("--fast", help=f"fast (with apex) {x}")\n',
    ):
        assert without_asides(line, line) == (line, []), line


def test_text_that_does_not_parse_stays() -> None:
    text = "def f(:\n  # x (apex)\n 'a"
    assert without_asides(text, text) == (text, [])


def test_a_migrated_file_loses_them(folder: Path) -> None:
    comment = "# everything is set up (after apex)\n"
    (folder / "train.py").write_text(OPTIONS + comment + APEX_PROGRAM)
    (folder / "other.py").write_text(OPTIONS + comment)
    found = amp_migrate(".").stderr
    text = (folder / "train.py").read_text()
    assert text.startswith(
        OPTIONS.replace(" (through NVIDIA apex)", "") + comment.replace(" (after apex)", "")
    )
    assert (folder / "other.py").read_text() == OPTIONS + comment
    assert "train.py:4" not in found
    assert "train.py:5" in found


def test_a_file_that_keeps_apex_keeps_them(folder: Path) -> None:
    comment = "# everything is set up (after apex)\n"
    kept = comment + "from apex.mlp import MLP\nnetwork = MLP([4, 2])\n"
    (folder / "kept.py").write_text(kept)
    (folder / "train.py").write_text(comment + APEX_PROGRAM)
    (folder / "both.py").write_text(kept + APEX_PROGRAM)
    amp_migrate(".")
    assert (folder / "kept.py").read_text() == kept
    assert (folder / "train.py").read_text().startswith("# everything is set up\n")
    assert (folder / "both.py").read_text().startswith(comment)


def test_they_stay_where_the_rule_is_switched_off(folder: Path) -> None:
    comment = "# everything is set up (after apex)\n"
    (folder / "train.py").write_text(comment + APEX_PROGRAM)
    amp_migrate(".", "--ignore", "AMP309")
    assert (folder / "train.py").read_text().startswith(comment)


def test_a_line_that_asks_to_be_skipped_stays() -> None:
    comment = "# everything is set up (after apex)"
    text = f"{comment}  # amp-migrate: skip\n{comment}\n"
    short = comment.replace(" (after apex)", "")
    assert without_asides(text, text)[0] == f"{comment}  # amp-migrate: skip\n{short}\n"
