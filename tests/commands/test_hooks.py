"""The hooks of pre-commit, as it runs them: with the arguments of a user behind the entry."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from shell_support import APEX_PROGRAM, NATIVE_PROGRAM, amp_migrate

ROOT = Path(__file__).resolve().parents[2]
WRITES, CHECKS = (
    entry.split()
    for entry in re.findall(
        r"^  entry: amp-migrate (.*)$", (ROOT / ".pre-commit-hooks.yaml").read_text(), re.MULTILINE
    )
)
GIVEN = pytest.mark.parametrize("given", [(), ("--api", "torch.cuda.amp")], ids=["plain", "args"])


@pytest.fixture
def repository(folder: Path) -> Path:
    """A repository with one program that git tracks and one that it does not."""
    subprocess.run(["git", "init", "-q"], check=True)
    for name in ("tracked.py", "mine.py"):
        (folder / name).write_text(APEX_PROGRAM)
    subprocess.run(["git", "add", "tracked.py"], check=True)
    return folder


def test_users_arguments_do_not_take_the_place_of_those_that_matter() -> None:
    """`args:` of a configuration replace those of the hook, and never its entry."""
    text = (ROOT / ".pre-commit-hooks.yaml").read_text()

    assert "args:" not in text.replace("`args` of", "")
    assert WRITES == ["--tracked", "--exit-on-change", "."]
    assert CHECKS == ["--check", "--tracked", "."]


@GIVEN
def test_hook_that_wrote_fails_once_and_leaves_untracked_files_alone(
    repository: Path, given: tuple[str, ...]
) -> None:
    first = amp_migrate(*WRITES, *given)

    assert first.exit_code == 1
    assert first.stderr.endswith("exit 1: 1 file was rewritten\n")
    assert (repository / "tracked.py").read_text() == NATIVE_PROGRAM
    assert (repository / "mine.py").read_text() == APEX_PROGRAM
    assert amp_migrate(*WRITES, *given).exit_code == 0


@GIVEN
def test_check_fails_for_tracked_files_alone(repository: Path, given: tuple[str, ...]) -> None:
    assert amp_migrate(*CHECKS, *given).exit_code == 1
    assert (repository / "tracked.py").read_text() == APEX_PROGRAM

    (repository / "tracked.py").write_text(NATIVE_PROGRAM)
    assert amp_migrate(*CHECKS, *given).exit_code == 0


def test_tracked_program_does_not_take_an_untracked_helper_along(repository: Path) -> None:
    """A clone would lack the helper, so the migration must not count on it."""
    (repository / "tracked.py").write_text(
        "from mine_helper import train\nfrom apex import amp\nimport torch\n"
        "model = torch.nn.Linear(4, 2).cuda()\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "model, optimizer = amp.initialize(model, optimizer, opt_level='O1')\n"
        "train(model, optimizer)\n"
    )
    helper = (
        "from apex import amp\ndef train(model, optimizer):\n    loss = model(1).sum()\n"
        "    with amp.scale_loss(loss, optimizer) as scaled:\n        scaled.backward()\n"
        "    optimizer.step()\n"
    )
    (repository / "mine_helper.py").write_text(helper)

    amp_migrate(*WRITES)

    assert (repository / "mine_helper.py").read_text() == helper
    assert "scaler" not in (repository / "tracked.py").read_text()


def test_nested_folder_and_file_are_asked_of_their_repository(repository: Path) -> None:
    (repository / "deep").mkdir()
    (repository / "deep" / "a.py").write_text(APEX_PROGRAM)
    subprocess.run(["git", "add", "deep/a.py"], check=True)

    done = amp_migrate("deep", "mine.py", "--tracked", "--diff")

    assert done.stdout.count("+++ ") == 1
    assert "+++ b/deep/a.py" in done.stdout


def test_outside_of_a_repository_it_is_refused(folder: Path) -> None:
    """Nothing would be looked at, and the check would pass."""
    (folder / "a.py").write_text(APEX_PROGRAM)

    done = amp_migrate(*CHECKS)

    assert done.stderr.startswith("Error: --tracked needs a git repository, and ")
    assert done.exit_code == 2


def test_git_that_fails_is_no_empty_repository(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")

    done = amp_migrate(*CHECKS)

    assert done.stderr == ("Error: --tracked cannot be followed: git: no such file or directory\n")
    assert done.exit_code == 2


def test_without_the_option_an_untracked_file_is_rewritten(repository: Path) -> None:
    done = amp_migrate("mine.py")

    assert (repository / "mine.py").read_text() == NATIVE_PROGRAM
    assert done.exit_code == 0
