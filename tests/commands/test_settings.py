"""Options of pyproject.toml and which rules are on."""

from __future__ import annotations

from pathlib import Path

import pytest

from amp_migrate.settings import Settings, SettingsError, read_settings


@pytest.mark.parametrize(
    ("settings", "code", "expected"),
    [
        (Settings(), "AMP103", True),
        (Settings(select=("AMP1",)), "AMP103", True),
        (Settings(select=("AMP1",)), "AMP203", False),
        (Settings(ignore=("AMP203",)), "AMP203", False),
        (Settings(ignore=("AMP203",)), "AMP201", True),
        (Settings(ignore=("AMP2",), select=("AMP201",)), "AMP201", True),
        (Settings(ignore=("AMP2",), select=("AMP201",)), "AMP202", False),
        (Settings(ignore=("AMP2",), select=("AMP",)), "AMP201", False),
        (Settings(ignore=("AMP2",), select=("AMP2",)), "AMP201", False),
        (Settings(fixes=False), "AMP201", False),
        (Settings(fixes=False, select=("AMP201",)), "AMP201", False),
        (Settings(fixes=False), "AMP101", True),
    ],
)
def test_longest_beginning_decides(settings: Settings, code: str, expected: bool) -> None:
    assert settings.enabled(code) is expected


def configure(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(text)
    return folder


def test_every_key_is_read(tmp_path: Path) -> None:
    configure(
        tmp_path,
        """
        [tool.amp-migrate]
        select = ["AMP1", "AMP2"]
        ignore = ["AMP203"]
        exclude = ["third_party"]
        extend-exclude = ["old"]
        fixes = false
        unsafe = true
        resume-compat = true
        api = "torch.amp"
        scaler = "module"
        """,
    )

    assert read_settings(tmp_path) == Settings(
        select=("AMP1", "AMP2"),
        ignore=("AMP203",),
        exclude=("third_party",),
        extend_exclude=("old",),
        fixes=False,
        unsafe=True,
        resume_compat=True,
        api="torch.amp",
        scaler="module",
        root=tmp_path,
    )


def test_nearest_file_with_the_table_counts(tmp_path: Path) -> None:
    configure(tmp_path, "[tool.amp-migrate]\nfixes = false\n")
    inner = configure(tmp_path / "a" / "b", "[tool.ruff]\n# amp-migrate\n")

    assert read_settings(inner) == Settings(fixes=False, root=tmp_path)


def test_options_of_the_command_line_win(tmp_path: Path) -> None:
    configure(tmp_path, "[tool.amp-migrate]\nfixes = false\napi = 'torch.amp'\n")

    settings = read_settings(tmp_path).updated({"fixes": True, "api": None})

    assert (settings.fixes, settings.api) == (True, "torch.amp")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[tool.amp-migrate]\nselects = []\n",
            "tool.amp-migrate.selects: unknown key; known are api",
        ),
        ("[tool.amp-migrate]\nselect = 'AMP1'\n", "must be a list of strings"),
        ("[tool.amp-migrate]\nignore = [1]\n", "must be a list of strings"),
        ("[tool.amp-migrate]\nfixes = 'no'\n", "must be true or false"),
        ("[tool.amp-migrate]\napi = 'apex'\n", "must be one of auto, torch.cuda.amp, torch.amp"),
        ("[tool]\namp-migrate = 3\n", "is not a table"),
        ("[tool.amp-migrate\n", "pyproject.toml"),
    ],
)
def test_wrong_settings_are_errors(tmp_path: Path, text: str, message: str) -> None:
    configure(tmp_path, text)

    with pytest.raises(SettingsError) as caught:
        read_settings(tmp_path)

    assert message in str(caught.value)


def test_unreadable_toml_without_our_name_is_not_our_business(tmp_path: Path) -> None:
    configure(tmp_path, "[tool.ruff\n")

    assert read_settings(tmp_path).fixes is True
