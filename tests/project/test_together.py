"""Which files a program may run together with another one."""

from __future__ import annotations

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.project.programs import beside

_FILES = {
    "train.py": "import engine\nimport losses",
    "search.py": "import losses",
    "engine.py": "",
    "losses.py": "",
    "plot.py": "",
}
_BESIDE = {
    "train.py": {"train.py", "engine.py", "losses.py"},
    "search.py": {"search.py", "losses.py"},
    "engine.py": {"train.py", "engine.py", "losses.py"},
    "losses.py": {"train.py", "search.py", "engine.py", "losses.py"},
    "plot.py": {"plot.py"},
}


@pytest.mark.parametrize("path", _FILES)
def test_files_of_the_programs_that_run_a_file(path: str) -> None:
    """What two programs import is in both; the programs themselves are not beside each other."""
    assert _beside(_FILES, path) == _BESIDE[path]


def test_an_import_by_an_unknown_name_reaches_every_file() -> None:
    """Where some file imports by a name that is a value, any two files may run together."""
    files = _FILES | {"plot.py": "import importlib\nmodule = importlib.import_module(name)"}
    assert _beside(files, "engine.py") == set(files)


def test_an_import_by_an_unknown_name_reaches_no_file_beside_the_folders_of_the_known_ones() -> (
    None
):
    """Programs in folders of their own: what one finds by a name lies where what it imports lies."""
    files = {f"{at}/{path}": text for at in ("one", "two") for path, text in _FILES.items()}
    files["one/train.py"] += "\nimport importlib\nmodule = importlib.import_module(name)"
    assert _beside(files, "one/plot.py") == {path for path in files if path.startswith("one/")}
    assert _beside(files, "two/plot.py") == {"two/plot.py"}


@pytest.mark.parametrize("name", ["test_plot.py", "plot_test.py", "conftest.py"])
def test_an_import_by_an_unknown_name_reaches_no_file_that_pytest_collects(name: str) -> None:
    """A test runs what it imports itself, beside nothing that is found by a name."""
    files = _FILES | {"find.py": "import importlib\nmodule = importlib.import_module(name)"}
    assert _beside(files | {name: "import losses"}, name) == {name, "losses.py"}
    assert _beside(files | {name: "import losses"}, "plot.py") == set(files)


def test_a_test_that_imports_by_an_unknown_name_reaches_every_file_but_other_tests() -> None:
    """What pytest collects may import a program by its name, but no other test."""
    files = _FILES | {"test_any.py": "import importlib\nmodule = importlib.import_module(name)"}
    assert _beside(files | {"test_plot.py": ""}, "test_any.py") == set(files)


@pytest.mark.parametrize(
    "call",
    ["hydra.utils.instantiate(config)", "pydoc.locate(name)", "runpy.run_path(name)"],
)
def test_what_asks_a_library_for_a_name_reaches_every_file(call: str) -> None:
    """A library that makes what a text names may import any file."""
    files = _FILES | {"plot.py": f"import {call.split('.')[0]}\nfound = {call}"}
    assert _beside(files, "engine.py") == set(files)


def test_an_import_by_a_written_name_reaches_that_file() -> None:
    """A name that is written out is an import like any other."""
    files = _FILES | {"plot.py": "import importlib\nmodule = importlib.import_module('losses')"}
    assert _beside(files, "plot.py") == {"plot.py", "losses.py"}


def _beside(files: dict[str, str], path: str) -> set[str]:
    trees = {name: Tree(name, text) for name, text in files.items()}
    return set(beside(build(trees, ["."]), path))
