"""Checkouts are refactored where that is safe, the same way each time, and measured beside what they were."""

from __future__ import annotations

from pathlib import Path
from random import Random

import corpus_refactor
import pytest
from click.testing import CliRunner
from corpus import main, refactored_summary
from corpus_refactor import Applied, Pair, refactor, refactored, usable
from corpus_run import Row
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

TRAIN = """\
import torch
from apex import amp

model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = amp.initialize(model, optimizer, opt_level="O1")


def train(batches, verbose):
    for batch in batches:
        optimizer.zero_grad()
        loss = model(batch).sum()
        if verbose:
            print(loss.item())
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()


train([torch.ones(1)], True)
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with a file that uses Apex and one that does not."""
    folder = tmp_path / "corpus" / "someone__project"
    folder.mkdir(parents=True)
    (folder / "train.py").write_text(TRAIN)
    (folder / "other.py").write_text(TRAIN.replace("apex", "torch.cuda"))
    return folder


def test_files_with_apex_are_refactored(checkout: Path) -> None:
    """The same seed makes the same of them, and other files stay."""
    applied = refactor(checkout, seed=3)
    text = (checkout / "train.py").read_text()
    assert applied.files == 1 and 0 < applied.done.total() <= corpus_refactor.PER_FILE
    assert text != TRAIN and text.count("scale_loss") >= 1
    assert (checkout / "other.py").read_text() == TRAIN.replace("apex", "torch.cuda")
    (checkout / "train.py").write_text(TRAIN)
    assert refactor(checkout, seed=3).done == applied.done
    assert (checkout / "train.py").read_text() == text


@pytest.mark.parametrize(
    "text", [b"from apex import amp\r\n", b"from apex import amp\nprint 1\n", b"# apex \xe9\n"]
)
def test_files_that_cannot_be_checked_stay(checkout: Path, text: bytes) -> None:
    """Other line ends, Python 2, unknown encodings."""
    (checkout / "train.py").write_bytes(text)
    assert refactor(checkout, seed=3) == Applied()
    assert (checkout / "train.py").read_bytes() == text


@pytest.mark.parametrize("broken", ["def f(:\n", "print(undefined_name)\n"])
def test_what_fails_the_check_is_undone(monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    """A text that does not compile or names nothing known counts, and is not kept."""

    def spoil(project: Project, rng: Random) -> Project:
        return project.changed("train.py", project.files["train.py"] + broken)

    spoiling = [
        Refactoring(f"spoil {family}", family, spoil) for family in corpus_refactor.FAMILIES
    ]
    monkeypatch.setattr(corpus_refactor, "usable", lambda: spoiling)
    applied = Applied()
    assert refactored(TRAIN, "train.py", Random(0), 2, applied) == TRAIN
    assert applied.undone.total() > 2 and not applied.done


def test_families() -> None:
    """Names and noise, order and control flow; nothing that other files would have to follow."""
    names = {r.name for r in usable()}
    assert {r.family for r in usable()} == set(corpus_refactor.FAMILIES)
    assert "locals neutral" in names and "definitions neutral" not in names


def test_summary_names_what_is_lost() -> None:
    """A repository of which less is migrated is listed with what is new in its report."""
    plain = Row("a", scale_loss=(3, 0), uses=(5, 0))
    other = Row("a", scale_loss=(3, 2), uses=(5, 2), causes={"AMP901 no": 2})
    lines = list(refactored_summary([Pair(plain, other, Applied())]))
    assert (
        "as they are  scale_loss sites migrated 3 of 3 (100.0 %), repositories wholly 1 of 1"
        in lines
    )
    assert (
        "refactored   scale_loss sites migrated 1 of 3 (33.3 %), repositories wholly 0 of 1"
        in lines
    )
    assert "\nless of a: 0 sites stayed, now 2" in lines and "     2  AMP901 no" in lines


def test_command_line(checkout: Path, tmp_path: Path) -> None:
    """Both figures stand in a line; what is kept of plain runs cannot be asked for."""
    result = CliRunner().invoke(
        main, [str(checkout.parent), "-j", "1", "--refactor", "--seed", "4"], catch_exceptions=False
    )
    cells = result.output.splitlines()[1].split()
    assert cells[:3] == [checkout.name, "1/1", "1/1"] and int(cells[3]) > 0
    wrong = CliRunner().invoke(main, [str(checkout.parent), "--refactor", "--diffs", str(tmp_path)])
    assert wrong.exit_code == 2
