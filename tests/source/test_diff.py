"""Patches, judged by git itself."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

from amp_migrate.output.formats.diff import patch
from amp_migrate.source.align import changes, moved_line

BODY = "".join(f"line {number}\n" for number in range(1, 41))
EDITED = BODY.replace("line 3\n", "").replace("line 20\n", "new\nlines\n") + "last\n"

VARIANTS = {
    "plain": (BODY.encode(), EDITED.encode()),
    "crlf": (BODY.replace("\n", "\r\n").encode(), EDITED.replace("\n", "\r\n").encode()),
    "cr": (BODY.replace("\n", "\r").encode(), EDITED.replace("\n", "\r").encode()),
    "mixed": (b"a\r\nb\nc\r", b"a\r\nB\r\nb\nc\r"),
    "byte-order mark": (b"\xef\xbb\xbf" + BODY.encode(), b"\xef\xbb\xbf" + EDITED.encode()),
    "latin-1": (b"'\xe9'\nx = 1\n", b"'\xe9'\nx = 2\n"),
    "form feed": (b"x = 1\n\x0c\ny = 1\n\x0cz\n", b"x = 2\n\x0c\ny = 1\n\x0cz\n"),
    "no final newline": (BODY.encode()[:-1], EDITED.encode()[:-1]),
    "final newline goes": (b"a\nb\n", b"a\nb"),
    "final newline comes": (b"a\nb", b"a\nb\n"),
    "last line without newline stays": (b"a\nb\nc\nd", b"A\nb\nc\nd"),
    "all lines go": (b"a\nb\n", b""),
    "first line comes": (b"a\n", b"b\na\n"),
    "single line": (b"a", b"b"),
    "lines that look like a patch": (b"--- a\n+++ b\n@@ -1 +1 @@\n", b"--- a\n@@ -1 +1 @@\n-- \n"),
    "unicode separators": ("a\u2028b\x85\nc\n".encode(), "a\u2028b\x85\nd\n".encode()),
}
NAMES = (
    "train.py",
    "src/package/inner/train.py",
    "na me/tr ain.py",
    "日本/été.py",
    'quo"te\\back.py',
    "tab\there.py",
    os.fsdecode(b"caf\xe9/a.py"),
    " lead.py",
    "trail /x .py",
)


def git(*arguments: str, cwd: Path, data: bytes = b"") -> None:
    done = subprocess.run(["git", *arguments], cwd=cwd, input=data, capture_output=True)
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git("init", "-q", cwd=tmp_path)
    git("config", "core.autocrlf", "false", cwd=tmp_path)
    return tmp_path


def put(file: Path, data: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("folder", ["", "sub/folder"])
def test_git_applies_the_patch_with_every_byte(
    repository: Path, variant: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the root and from a sub-directory, for a file there and for a nested one."""
    before, after = VARIANTS[variant]
    here = repository / folder
    for name in ("a.py", "deep/er/a.py"):
        put(here / name, before)
    monkeypatch.chdir(here)
    git("add", "-A", cwd=repository)
    made = b"".join(patch(name, before, after) for name in ("a.py", "deep/er/a.py"))

    git("apply", "--check", "--whitespace=nowarn", cwd=here, data=made)
    git("apply", "--whitespace=nowarn", cwd=here, data=made)

    assert (here / "a.py").read_bytes() == after
    assert (here / "deep/er/a.py").read_bytes() == after


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("folder", ["", "sub"])
def test_git_finds_files_of_any_name(
    repository: Path, name: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = repository / folder
    put(here / name, b"a\n")
    monkeypatch.chdir(here)
    git("add", "-A", cwd=repository)

    git("apply", cwd=here, data=patch(name, b"a\n", b"b\n"))

    assert (here / name).read_bytes() == b"b\n"


def test_random_edits_apply(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hunks far apart, near each other, at both ends, with repeated lines."""
    monkeypatch.chdir(repository)
    random.seed(7)
    for _ in range(60):
        old = [random.choice("abcdefgh") for _ in range(random.randrange(1, 60))]
        new = list(old)
        for _ in range(random.randrange(1, 6)):
            at = random.randrange(len(new) + 1)
            new[at : at + random.randrange(3)] = random.choices("xyab", k=random.randrange(3))
        before, after = ("\n".join(lines).encode() + b"\n" for lines in (old, new))
        put(repository / "a.py", before)
        if before != after:
            git("apply", cwd=repository, data=patch("a.py", before, after))
        assert (repository / "a.py").read_bytes() == after


def test_equal_bytes_make_no_patch() -> None:
    assert patch("a.py", b"a\n", b"a\n") == b""


def test_patch_reads_like_one_of_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert patch("a b.py", b"1\n2\n3\n4\n5\n", b"1\n2\n3\n4\n6\n") == (
        b"--- a/a b.py\t\n+++ b/a b.py\t\n@@ -2,4 +2,4 @@\n 2\n 3\n 4\n-5\n+6\n"
    )


@pytest.mark.parametrize("here", ["", "sub", "beside"])
def test_names_start_at_the_root_of_the_repository(
    repository: Path, here: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From wherever the patch is made, so that one place applies it all."""
    for name in ("a.py", "sub/b.py", "beside/c.py"):
        put(repository / name, b"1\n")
    monkeypatch.chdir(repository / here)
    back = os.path.relpath(repository)

    made = b"".join(patch(f"{back}/{name}", b"1\n", b"2\n") for name in ("a.py", "sub/b.py"))

    assert b"diff --git a/sub/b.py b/sub/b.py\n--- a/sub/b.py\n+++ b/sub/b.py\n" in made
    git("apply", cwd=repository, data=made)
    assert (repository / "a.py").read_bytes() == (repository / "sub/b.py").read_bytes() == b"2\n"


def test_absolute_path_is_relative_to_the_root_folder() -> None:
    assert patch("/x/a.py", b"1\n", b"2\n").startswith(b"--- a/x/a.py\n+++ b/x/a.py\n")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("abc", "abc", [0, 1, 2]),
        ("abc", "xabc", [1, 2, 3]),
        ("abcd", "ad", [0, 0, 0, 1]),
        ("abcd", "axyzd", [0, 1, 2, 4]),
        ("abc", "", [0, 0, 0]),
    ],
)
def test_lines_are_found_again_in_the_new_text(old: str, new: str, expected: list[int]) -> None:
    """Lines that stayed are found where they went, the others near what replaced them."""
    assert [moved_line(line, changes(old, new)) for line in range(len(old))] == expected
