"""The library does what the command line does."""

from __future__ import annotations

import doctest
import subprocess
import sys
from pathlib import Path

import pytest
from shell_support import APEX_PROGRAM, NATIVE_PROGRAM, amp_migrate

import amp_migrate as package
from amp_migrate import Settings, Status, migrate_project, migrate_source
from amp_migrate.settings import parse_toml

ROOT = Path(__file__).parent.parent


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program that migrates and one that is left, and the working directory above it."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(APEX_PROGRAM, encoding="utf-8")
    (folder / "other.py").write_text(
        "import nets\nfrom apex import amp\n"
        'model, optimizer = amp.initialize(nets.model, nets.optimizer, opt_level="O3")\n'
        "with amp.scale_loss(nets.loss(model), optimizer) as scaled_loss:\n"
        "    scaled_loss.backward()\noptimizer.step()\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    return folder


def test_the_page_shows_what_happens(project: Path) -> None:
    """Every example of docs/api.md gives what is printed below it."""
    found = doctest.testfile(str(ROOT / "docs" / "api.md"), module_relative=False)

    assert (found.attempted > 10, found.failed) == (True, 0)


def test_source_and_command_line_agree() -> None:
    """A text and the same text on standard input become the same."""
    printed = amp_migrate("-", stdin=APEX_PROGRAM.encode()).stdout

    assert migrate_source(APEX_PROGRAM).text == printed == NATIVE_PROGRAM


def test_project_and_command_line_agree(project: Path) -> None:
    """The patch, the exit code and the bytes on the disk are those of the command line."""
    result = migrate_project("project")
    shown = amp_migrate("project", "--diff").stdout
    checked = amp_migrate("project", "--check").exit_code

    assert (result.diff(), result.exit_code) == (shown, checked)
    assert (project / "train.py").read_text(encoding="utf-8") == APEX_PROGRAM
    result.write()
    assert (project / "train.py").read_text(encoding="utf-8") == NATIVE_PROGRAM


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("cookie", ["", "# -*- coding: latin-1 -*-\n", "\ufeff"])
def test_text_keeps_its_newlines_and_characters(end: str, cookie: str) -> None:
    """What is given as text comes back as text, whatever encoding and newlines the file declares."""
    given = (cookie + APEX_PROGRAM).replace("\n", end)
    wanted = (cookie + NATIVE_PROGRAM).replace("\n", end)

    assert migrate_source(given).text == wanted
    assert migrate_source(NATIVE_PROGRAM.replace("\n", end)).text == NATIVE_PROGRAM.replace(
        "\n", end
    )


def test_settings_hold() -> None:
    """Settings choose the spelling."""
    assert (
        "torch.amp.autocast"
        in migrate_source(APEX_PROGRAM, settings=Settings(api="torch.amp")).text
    )


def test_every_setting_is_documented() -> None:
    """The page names what `Settings` takes, but for what a run works out by itself."""
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    own = {"root", "respell", "dtype", "enables"}

    assert {name for name in Settings.__dataclass_fields__ if f"`{name}`" not in page} <= own


def test_what_cannot_be_read_is_a_problem() -> None:
    """A text that is not Python 3 stays, and says so."""
    text = "from apex import amp\nprint 1\n"
    result = migrate_source(text, filename="old.py")

    assert (result.text, result.exit_code) == (text, 2)
    assert [(p.path, "not Python 3" in p.reason) for p in result.problems] == [("old.py", True)]


def test_a_missing_path_is_an_error(tmp_path: Path) -> None:
    """A path that does not exist is no empty project."""
    with pytest.raises(FileNotFoundError, match="nowhere"):
        migrate_project(tmp_path / "nowhere")


def test_one_path_or_several(project: Path) -> None:
    """One path needs no list, and paths may be of any kind."""
    one, several = migrate_project(project), migrate_project([str(project / "train.py"), "project"])

    assert [c.after for c in one.changes] == [c.after for c in several.changes]
    assert {f.status for f in one.findings} >= {Status.MIGRATED, Status.LEFT}


def test_the_package_is_light_and_complete() -> None:
    """Importing the package loads nothing of it, and every public name is there."""
    loaded = subprocess.run(
        [
            sys.executable,
            "-c",
            "import amp_migrate, sys; print([m for m in sys.modules if 'amp_migrate.' in m])",
        ],
        capture_output=True,
        text=True,
        check=True,
    )

    assert loaded.stdout == "[]\n"
    assert all(getattr(package, name) is not None for name in package.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        package.__getattr__("nothing")


def test_the_types_are_shipped() -> None:
    """The marker of a typed package is part of what is installed."""
    document = parse_toml((ROOT / "pyproject.toml").read_bytes(), "pyproject.toml")

    assert "py.typed" in document["tool"]["setuptools"]["package-data"]["amp_migrate"]
    assert (Path(package.__file__).parent / "py.typed").exists()
