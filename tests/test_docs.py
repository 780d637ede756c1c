"""Every command that README and docs show can be typed, and every file that they name is there."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from amp_migrate.commands.cli import _EXTRA, main
from amp_migrate.equivalence.cli import verify
from amp_migrate.rules import rules
from amp_migrate.settings import parse_toml

ROOT = Path(__file__).parent.parent
PACKAGE = (ROOT, ROOT / "amp_migrate")
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
PROJECT = parse_toml((ROOT / "pyproject.toml").read_bytes(), "pyproject.toml")["project"]
# What stands for something of the reader's.
THEIRS = frozenset(
    [
        "path/",
        "PATH",
        ".",
        "-",
        "FILE",
        "DIR",
        "train.py",
        "old.pt",
        "new.pt",
        "OLD",
        "NEW",
        "migration.html",
        "CODE",
        "before.json",
        "verify",
    ]
)
INSTALLED = {"torch", "torch==2.13.0"}
INDEX = "https://download.pytorch.org/whl/cpu"
KNOWN = ("amp-migrate", "pip", "pytest", "python", "bash", "cat", "git", "eval")


def commands(page: Path) -> Iterator[str]:
    """Yield every shell command of a page: of sh blocks, of indented lines, and between backticks."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.S | re.M)
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    lines = [line for block in blocks for line in block.splitlines()]
    lines += re.findall(r"^    ((?:amp-migrate|pip|python) .+)$", text, re.M)
    lines += [
        code
        for code in re.findall(r"`([^`\n]+)`", text)
        if code.split()[0] in KNOWN and " " in code
    ]
    for line in lines:
        told = re.sub(r"\s{2,}# ?", " && # ", line)
        yield from (part for part in re.split(r"&&|\||#.*", told) if part.strip())


SHOWN = [(page.name, command.strip()) for page in PAGES for command in commands(page)]


@pytest.mark.parametrize(("page", "command"), SHOWN)
def test_a_command_can_be_typed(page: str, command: str) -> None:
    """Its program, subcommand and options exist, and so do the files that are not the reader's."""
    if command.startswith("eval "):
        assert "_AMP_MIGRATE_COMPLETE=" in command
        return
    program, *words = shlex.split(command)
    assert program in KNOWN, command
    if program == "amp-migrate":
        _amp_migrate(words)
    elif program == "pip":
        _pip(words)
    elif program in ("python", "bash") and not words[0].startswith("-"):
        _script(words)


def _amp_migrate(words: list[str]) -> None:
    named = main.commands.get(words[0]) if words else None
    command = named or main.commands["codemod"]
    if named is not None:
        words = words[1:]
    if command.name == "verify":
        words = words[: words.index("--")] if "--" in words else words
        command = verify
    options = {
        name: option for option in command.params for name in [*option.opts, *option.secondary_opts]
    }
    while words:
        word = words.pop(0)
        if not word.startswith("-") or word == "-":
            assert _exists(word) or _is_code(word), word
            continue
        assert word in options, f"{command.name} {word}"
        option = options[word]
        if isinstance(option, click.Option) and not option.is_flag and words:
            option.type_cast_value(click.Context(command), _given(option, words.pop(0)))


def _given(option: click.Option, word: str) -> object:
    """Return a value as the option takes it; a path that is the reader's stands for one that exists."""
    value = str(ROOT) if isinstance(option.type, click.Path) and not _exists(word) else word
    return [value] if option.multiple else value


def _is_code(word: str) -> bool:
    return any(rule.code == word for rule in rules())


def _exists(word: str) -> bool:
    return word in THEIRS or (ROOT / word).exists()


def _pip(words: list[str]) -> None:
    """Only what can be installed: this folder with extras that it has, and torch."""
    assert words.pop(0) == "install"
    while words:
        word = words.pop(0)
        if word == "--index-url":
            assert words.pop(0) == INDEX
            continue
        local = re.fullmatch(r"\.(?:\[([\w,]+)\])?", word)
        extras = local[1].split(",") if local is not None and local[1] else []
        assert local is not None or word in INSTALLED, word
        assert set(extras) <= set(PROJECT["optional-dependencies"])


def _script(words: list[str]) -> None:
    """A script of the repository, with options that it reads."""
    name, *rest = words
    if name in THEIRS:
        return
    assert (ROOT / name).exists(), name
    options = [word for word in rest if word.startswith("--")]
    if options:
        tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
        known = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        assert set(options) <= known


def test_commands_are_found() -> None:
    """The checks above look at something."""
    assert len(SHOWN) > 25
    assert ("README.md", "pip install '.[verify]'") in SHOWN


def test_options_between_backticks_exist() -> None:
    """An option that is named alone is one of some command, or what `enable` gives a script."""
    commands = [*main.commands.values(), verify]
    known = {name for c in commands for o in c.params for name in [*o.opts, *o.secondary_opts]}
    for script in (ROOT / "scripts").glob("*.py"):
        known |= set(re.findall(r'"(--[a-z][a-z-]+)"', script.read_text(encoding="utf-8")))
    for page in PAGES:
        shown = set(re.findall(r"`(--[a-z][a-z-]+)", page.read_text(encoding="utf-8")))
        assert shown - known - {"--help", "--amp", "--no-amp"} == set(), page.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_are_there(page: Path) -> None:
    """Links, pictures, and paths of the package between backticks lead somewhere."""
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"\]\(([^)#:]+)(?:#[\w-]+)?\)", text):
        assert (page.parent / name).exists(), name
    for name in re.findall(
        r"`((?:amp_migrate|scripts|fixtures|docs|unit|rules|tests)/[\w./]*)`", text
    ):
        assert (ROOT / name).exists() or (ROOT / "amp_migrate" / name).exists(), name


def test_the_way_of_a_site_goes_through_code_that_is_there() -> None:
    text = (ROOT / "docs/how-it-decides.md").read_text(encoding="utf-8")
    rows = re.findall(r"\| `([\w/]+\.py)` \| `(\w+)` \|", text)
    assert len(rows) > 12
    for path, name in rows:
        body = ast.parse((ROOT / "amp_migrate" / path).read_text(encoding="utf-8")).body
        assert name in {getattr(statement, "name", "") for statement in body}, path
    named = re.findall(r"`([\w/]+(?:\.py|/))`", text)
    assert not [path for path in named if not any((root / path).exists() for root in PACKAGE)]


def test_anchors_lead_to_headings() -> None:
    """Links inside a page name one of its headings, as GitHub writes them."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.+)$", text, re.M)
        anchors = {
            re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings
        }
        assert set(re.findall(r"\]\(#([\w-]+)\)", text)) <= anchors, page.name


def test_pictures_are_small() -> None:
    """A clone stays quick."""
    assert all(picture.stat().st_size < 200_000 for picture in (ROOT / "docs").glob("*.png"))


def test_what_is_missing_is_what_the_extra_has() -> None:
    """The command line names the packages of the extra `verify`."""
    extra = {re.split(r"\W", entry)[0] for entry in PROJECT["optional-dependencies"]["verify"]}

    assert set(_EXTRA) == extra


def test_no_address_that_does_not_exist() -> None:
    """The README points to no index and no clone of this project that is not there."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    hook = re.search(r"^- repo: (.+)$", text, re.M)

    assert hook is not None and hook[1] == "path-or-address-of-your-clone"
    assert "amp-migrate[" not in text
    ids = set(re.findall(r"- id: ([\w-]+)", text))
    assert ids <= set(
        re.findall(r"^- id: ([\w-]+)", (ROOT / ".pre-commit-hooks.yaml").read_text(), re.M)
    )
