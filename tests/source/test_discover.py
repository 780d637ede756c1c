"""Which files are found: git itself says what is ignored."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from amp_migrate.settings import Settings
from amp_migrate.source.discover import Hit, Other, Skipped, discover, folders, uses_apex

APEX = b"from apex import amp\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def put(tree: Path, *names: str, data: bytes = APEX) -> None:
    for name in names:
        file = tree / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def hits(*paths: str, settings: Settings | None = None, force_exclude: bool = False) -> list[str]:
    found = discover(paths or (".",), settings or Settings(), force_exclude=force_exclude)
    return [item.path for item in found if isinstance(item, Hit)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"from apex import amp", True),
        (b"    import apex.optimizers as o", True),
        (b"import torch, apex", True),
        (b"from apex.parallel import *", True),
        (b"x = apex.amp", True),
        (b'find_spec("apex")', True),
        (b"__import__('apex.amp')", True),
        (b'"from apex import amp\\n",', True),
        (b"with self.amp.scale_loss(loss, optimizer) as s:", True),
        (b"# the apex of a triangle", False),
        (b"def find_apex(self): import x  # apex", False),
        (b"torch.cuda.amp.autocast", False),
        (b"", False),
    ],
)
def test_bytes_that_look_like_apex_code(data: bytes, expected: bool) -> None:
    assert uses_apex(data) is expected


def test_python_files_and_notebooks_are_found_in_sorted_order(tree: Path) -> None:
    put(tree, "b.py", "a.py", "n.ipynb", "a/z.py", "a/b/c.py", "stub.pyi", "text.txt", "amp.md")
    put(tree, "other.py", data=b"import torch\n")

    assert hits() == ["a.py", "b.py", "n.ipynb", "a/z.py", "a/b/c.py"]


def test_file_that_several_paths_reach_comes_once(tree: Path) -> None:
    put(tree, "a.py", "s/b.py")

    assert hits(".", "a.py", "s", "./s/../s/b.py") == ["a.py", "s/b.py"]


def test_paths_outside_of_the_working_directory_are_absolute(tree: Path) -> None:
    put(tree.parent, "outside.py")

    assert hits("../outside.py") == [str(tree.parent / "outside.py")]


@pytest.mark.parametrize(
    "name", [".git", "venv", ".venv", "build", "node_modules", "site-packages"]
)
def test_folders_that_hold_no_code_of_the_project_are_left_out(tree: Path, name: str) -> None:
    put(tree, f"{name}/a.py", f"deep/{name}/a.py")

    assert hits() == []
    assert hits(name) == [f"{name}/a.py"]


def test_virtual_environment_of_any_name_is_left_out(tree: Path) -> None:
    put(tree, "env/pyvenv.cfg", "env/lib/a.py", "environment/a.py")

    assert hits() == ["environment/a.py"]


GITIGNORES = {
    ".gitignore": "*.log.py\n/top.py\nout/\n!out/kept.py\nsub/*.py\n!sub/kept.py\n\\#x.py\n# c\n/\n",
    "sub/.gitignore": "!again.py\nlocal/\n**/deep.py\n",
    "sub/inner/.gitignore": "!deep.py\n*.py\n!kept.py\n",
    "a b/.gitignore": "x?.py\n[ab].py \n",
    ".git/info/exclude": "excluded.py\n",
}
NAMES = (
    *("top.py", "x.log.py", "in/top.py", "out/kept.py", "out/a.py", "in/out/a.py", "#x.py"),
    *("sub/a.py", "sub/kept.py", "sub/again.py", "sub/local/a.py", "sub/b/deep.py", "excluded.py"),
    *("sub/inner/deep.py", "sub/inner/kept.py", "sub/inner/c.py", "local/a.py", "a b/x1.py"),
    *("a b/a.py", "a b/c.py", "in/excluded.py", "out.py"),
)


@pytest.fixture
def repository(tree: Path) -> Path:
    subprocess.run(["git", "init", "-q"], check=True)
    for name, text in GITIGNORES.items():
        put(tree, name, data=text.encode())
    put(tree, *NAMES)
    return tree


def git_files(*folders: str) -> list[str]:
    command = ["git", "-c", "core.quotePath=off", "ls-files", "-co", "--exclude-standard", *folders]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return sorted(name for name in listed.splitlines() if name.endswith(".py"))


def test_files_that_git_ignores_are_left_out(repository: Path) -> None:
    assert sorted(hits()) == git_files()
    assert len(git_files()) == 7


def test_file_that_git_tracks_is_taken_though_a_pattern_names_it(repository: Path) -> None:
    subprocess.run(["git", "add", "-f", "out/a.py", "sub/local/a.py", "top.py"], check=True)

    assert sorted(hits()) == git_files()
    assert len(git_files()) == 10


def test_repository_of_the_hook_that_runs_is_not_asked(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "add", "-f", "top.py"], check=True)
    monkeypatch.setenv("GIT_DIR", str(repository / "elsewhere"))

    assert "top.py" in hits()


@pytest.mark.parametrize("folder", ["sub", "in", "a b", "sub/inner"])
def test_rules_of_the_folders_above_hold(repository: Path, folder: str) -> None:
    assert sorted(hits(folder)) == git_files(folder)


def test_rules_end_at_an_inner_repository(tree: Path) -> None:
    put(tree, "inner/a.py")
    put(tree, ".gitignore", data=b"*.py\n")
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "init", "-q", "inner"], check=True)

    assert hits() == ["inner/a.py"]


def test_file_that_is_named_is_taken_though_git_ignores_it(repository: Path) -> None:
    assert hits("top.py", "out/a.py") == ["out/a.py", "top.py"]


def test_exclude_stands_in_place_of_the_default_folders(tree: Path) -> None:
    put(tree, "build/a.py", "tests/a.py", "src/tests/b.py", "src/a.py", "a_test.py")

    assert hits(settings=Settings(exclude=("tests",))) == ["a_test.py", "build/a.py", "src/a.py"]
    assert hits(settings=Settings(extend_exclude=("/tests", "*_test.py"))) == [
        "src/a.py",
        "src/tests/b.py",
    ]


def test_patterns_are_relative_to_the_root_of_the_settings(tree: Path) -> None:
    put(tree, "src/tests/a.py", "tests/a.py")

    assert hits(settings=Settings(extend_exclude=("/tests",), root=tree / "src")) == ["tests/a.py"]


def test_excluded_file_that_is_named_is_left_out_only_when_forced(tree: Path) -> None:
    put(tree, "build/a.py", "src/gen/a.py", "src/a.py")
    named = ("build/a.py", "src/gen/a.py", "src/a.py")
    settings = Settings(extend_exclude=("gen",))

    assert hits(*named, settings=settings) == ["build/a.py", "src/a.py", "src/gen/a.py"]
    assert hits(*named, settings=settings, force_exclude=True) == ["src/a.py"]


def test_links_to_folders_are_not_followed_and_loops_do_no_harm(tree: Path) -> None:
    put(tree, "a/x.py")
    put(tree.parent, "elsewhere/y.py")
    (tree / "a" / "loop").symlink_to(tree)
    (tree / "out").symlink_to(tree.parent / "elsewhere")

    assert hits() == ["a/x.py"]
    assert hits("out") == ["out/y.py"]


def test_link_to_a_file_is_taken_when_the_walk_does_not_meet_its_target(tree: Path) -> None:
    put(tree, "a.py")
    put(tree.parent, "elsewhere.py")
    (tree / "again.py").symlink_to("a.py")
    (tree / "outer.py").symlink_to(tree.parent / "elsewhere.py")
    (tree / "broken.py").symlink_to("missing.py")

    assert hits() == ["a.py", "outer.py"]


def test_other_kinds_of_named_files_are_passed_over(tree: Path) -> None:
    put(tree, "a.txt", "Makefile")
    put(tree, "train", data=b"#!/usr/bin/env python3\nfrom apex import amp\n")
    put(tree, "note.txt", data=b"nothing of interest")

    found = list(discover(["a.txt", "Makefile", "train", "note.txt"], Settings()))

    assert [(item.path, isinstance(item, Hit)) for item in found] == [
        ("Makefile", False),
        ("a.txt", False),
        ("train", True),
    ]
    assert not any(isinstance(item, Skipped) and item.error for item in found)


def test_huge_file_is_skipped_with_a_reason_if_it_uses_apex(tree: Path) -> None:
    put(tree, "big.py", data=APEX + b"#" * 5_000_000)
    put(tree, "big_amp.py", data=b"apex" + b"#" * 5_000_000)

    found = [item for item in discover(["."], Settings()) if not isinstance(item, Other)]

    assert found == [Skipped("big.py", "uses Apex but is larger than 5 MB", error=True)]


def test_folder_that_cannot_be_listed_is_reported(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tree, "a.py", "locked/b.py")
    scandir = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)

    assert list(discover(["."], Settings())) == [
        Hit("a.py", APEX),
        Skipped("locked", "cannot be listed: permission denied", error=True),
    ]


def test_names_that_are_no_text_are_found(tree: Path) -> None:
    name = os.fsdecode(b"caf\xe9.py")
    put(tree, name, "na me.py", "日本.py")

    assert sorted(hits()) == sorted([name, "na me.py", "日本.py"])


def test_files_that_do_not_use_apex_are_named_for_those_that_import_them(
    repository: Path,
) -> None:
    put(repository, "plain.py", "out/plain.py", "sub/plain.py", data=b"import torch\n")

    others = {item.path: item for item in discover(["."], Settings()) if isinstance(item, Other)}

    assert {path: other.ignored for path, other in others.items()} == {
        "plain.py": False,
        "sub/plain.py": True,
    }
    assert others["plain.py"].read() == b"import torch\n"


def test_folders_are_named_as_the_files_below_them(tree: Path) -> None:
    put(tree, "src/a.py")

    assert folders([".", "src", "src/a.py", ".."]) == [".", "src", str(tree.parent)]
