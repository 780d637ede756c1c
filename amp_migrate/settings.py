"""What a run is asked to do: the options of the command line and of ``[tool.amp-migrate]``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

APIS = ("auto", "torch.cuda.amp", "torch.amp")
SCALERS = ("auto", "module")
TABLE = "tool.amp-migrate"
MIGRATION = "AMP1"


class SettingsError(Exception):
    """A setting that does not exist, or has no such value."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The choices of one run.

    `select` and `ignore` are rule codes or their beginnings ("AMP2"). `api` is the spelling to write;
    "auto" is "torch.amp" where the project declares torch >= 2.4, or declares none, no file of it holds an older one, and
    such a torch is installed, else "torch.cuda.amp", and is settled before the engine runs; `respell` then says whether native code is to follow. With `only_fixes`
    programs stay with Apex and only their mistakes are corrected. `scaler` "module" allows a GradScaler at module level.
    Patterns of `exclude` (in place of the default ones) and `extend_exclude` are those of .gitignore,
    relative to `root`. With `dependencies` lines that ask for Apex outside of the code go. With `tracked` files that git does not track are none of the project.
    `dtype` is the type that autocast casts to; `enables` tells that trainings in FP32 get AMP.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fixes: bool = True
    only_fixes: bool = False
    unsafe: bool = False
    api: str = "auto"
    respell: bool = True
    scaler: str = "auto"
    resume_compat: bool = False
    dependencies: bool = False
    exclude: tuple[str, ...] | None = None
    extend_exclude: tuple[str, ...] = ()
    tracked: bool = False
    dtype: str = "float16"
    enables: bool = False
    jobs: int = 1
    root: Path = Path()

    def enabled(self, code: str) -> bool:
        """Tell whether the rule `code` is on: the longest beginning in `select` or `ignore` decides."""
        if not self.fixes and code.startswith("AMP2"):
            return False
        selected = _longest(code, self.select) if self.select else 0
        return selected > _longest(code, self.ignore)

    @property
    def migrates(self) -> bool:
        """Whether programs leave Apex: not with `only_fixes`, and not where AMP1 is switched off."""
        return not self.only_fixes and self.enabled(MIGRATION)

    @property
    def corrects(self) -> bool:
        """Whether some rule that fixes mistakes is on."""
        named = any(code.startswith("AMP2") for code in self.select)
        return self.fixes and (named or self.enabled("AMP2"))

    def refuse_parts(self) -> None:
        """Raise `SettingsError` where a part of the migration is to be used or left out."""
        for code in (*self.select, *self.ignore):
            if code.startswith(MIGRATION) and code != MIGRATION:
                raise SettingsError(
                    f"{code} cannot be switched by itself: AMP1xx is one migration, whole or not at all; "
                    f"name {MIGRATION}"
                )

    def updated(self, given: Mapping[str, Any]) -> Settings:
        """Return these settings with the options that were given (those not None)."""
        return replace(self, **{name: value for name, value in given.items() if value is not None})


def _longest(code: str, beginnings: tuple[str, ...]) -> int:
    return max((len(text) for text in beginnings if code.startswith(text)), default=-1)


def read_settings(folder: Path) -> Settings:
    """Return the settings of the nearest ``pyproject.toml`` with a ``[tool.amp-migrate]`` table.

    It is looked for in `folder` and above. Raises `SettingsError` on an unknown key or a wrong value.
    """
    for place in (folder, *folder.parents):
        table = _table(place / "pyproject.toml")
        if table is not None:
            return Settings(root=place).updated(_checked(table, place / "pyproject.toml"))
    return Settings(root=folder)


def _table(file: Path) -> dict[str, Any] | None:
    try:
        data = file.read_bytes()
    except OSError:
        return None
    if b"amp-migrate" not in data:
        return None
    document = parse_toml(data, str(file))
    table = document.get("tool", {}).get("amp-migrate")
    if table is not None and not isinstance(table, dict):
        raise SettingsError(f"{file}: {TABLE} is not a table")
    return table


def parse_toml(data: bytes, name: str) -> dict[str, Any]:
    """Return a TOML document. Raises `SettingsError` where it is none."""
    import sys

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        document: dict[str, Any] = tomllib.loads(data.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{name}: {error}") from error
    return document


_LISTS = ("select", "ignore", "exclude", "extend-exclude")
_SWITCHES = ("fixes", "unsafe", "resume-compat")
_CHOICES = {"api": APIS, "scaler": SCALERS}


def _checked(table: dict[str, Any], file: Path) -> dict[str, Any]:
    known = (*_LISTS, *_SWITCHES, *_CHOICES)
    values: dict[str, Any] = {}
    for key, value in table.items():
        where = f"{file}: {TABLE}.{key}"
        if key not in known:
            raise SettingsError(f"{where}: unknown key; known are {', '.join(sorted(known))}")
        if key in _LISTS:
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                raise SettingsError(f"{where}: must be a list of strings")
            value = tuple(value)
        elif key in _SWITCHES and not isinstance(value, bool):
            raise SettingsError(f"{where}: must be true or false")
        elif key in _CHOICES and value not in _CHOICES[key]:
            raise SettingsError(f"{where}: must be one of {', '.join(_CHOICES[key])}")
        values[key.replace("-", "_")] = value
    return values
