"""Migrate a copy of one checkout and measure what came of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path

from corpus_links import broken_links
from corpus_scan import Scan, parsed, scan

from amp_migrate.rules.guards.kept import FP16_UTILS

TOOL = (sys.executable, "-m", "amp_migrate")
_RUFF = (
    *(sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache"),
    *("--target-version", "py311", "--output-format", "json"),
)
_COPY = "checkout"
_FOLLOWS = re.compile("since its unit cannot be migrated|for what is left of it")
_NAMES = re.compile(r"'[^']*'|\S+\.(py|ipynb)\S*")
_UNDEFINED = ("F821", "F822", "F823")
_UNUSED = ("F401", "F811", "F841")
_STARRED = ("F405", re.compile("^`(?P<name>[^`]+)` may be undefined"))


@dataclass(slots=True)
class Row:
    """What one repository showed; every list names files or lines, empty where all is well.

    `scale_loss` and `uses` count sites before and after by a scan that knows nothing of the tool;
    `findings` counts the tool's own report by status and code, `problems` are files it gave up,
    `causes` counts why units were left: what it reports besides what merely follows from that.
    """

    name: str
    scale_loss: tuple[int, int] = (0, 0)
    uses: tuple[int, int] = (0, 0)
    findings: dict[str, dict[str, int]] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    causes: dict[str, int] = field(default_factory=dict)
    remaining: list[str] = field(default_factory=list)
    unparsed: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    undefined: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    unstable: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    crash: str = ""
    seconds: float = 0.0

    @property
    def troubles(self) -> dict[str, list[str]]:
        """What a migration must never show, by kind."""
        return {
            "broken": self.broken,
            "undefined": self.undefined,
            "unused": self.unused,
            "links": self.links,
            "unstable": self.unstable,
        }

    @property
    def whole(self) -> bool:
        """Whether nothing of Apex AMP remains and nothing broke."""
        return self.uses[1] == 0 and not (self.crash or self.broken or self.undefined)

    def total(self, status: str) -> int:
        """Return how many sites the tool reports with a status."""
        return sum(self.findings.get(status, {}).values())


@dataclass(frozen=True, slots=True)
class Output:
    """Where to keep what was migrated: a folder of copies, a folder of patches."""

    copies: Path | None = None
    diffs: Path | None = None


@dataclass(frozen=True, slots=True)
class _Tool:
    """The command line of the tool, and how many seconds it may take."""

    command: tuple[str, ...]
    limit: float

    def run(self, scratch: Path) -> subprocess.CompletedProcess[str]:
        """Run it in a folder with nothing but checkouts, so that no file of theirs is imported."""
        root = Path(__file__).resolve().parent.parent
        return subprocess.run(
            [*self.command, "--output-format", "json", _COPY],
            cwd=scratch,
            env={**os.environ, "PYTHONPATH": str(root), "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            timeout=self.limit,
        )


def measure(
    checkout: Path, output: Output, tool: Sequence[str] = TOOL, limit: float = 600.0
) -> Row:
    """Migrate a copy of `checkout` and return what came of it; a failure becomes part of the row.

    A run of the tool is ended after `limit` seconds.
    """
    row = Row(checkout.name)
    with tempfile.TemporaryDirectory(prefix="corpus-") as scratch:
        try:
            _measure(row, checkout, Path(scratch), output, _Tool((*tool,), limit))
        except subprocess.TimeoutExpired:
            row.crash = f"ran longer than {limit:.0f} s"
        except Exception:
            row.crash = traceback.format_exc(limit=-3)
    return row


def _measure(row: Row, checkout: Path, scratch: Path, output: Output, tool: _Tool) -> None:
    before, after = scratch / "before", scratch / _COPY
    for folder in (before, after):
        shutil.copytree(checkout, folder, symlinks=True)
    sites = scan(before)
    row.unparsed = list(sites.unparsed)
    row.scale_loss = (sites.count("scale_loss"),) * 2
    row.uses = (sites.count(),) * 2
    start = time.perf_counter()
    run = tool.run(scratch)
    row.seconds = time.perf_counter() - start
    row.crash = _crash(run)
    _compare(row, sites, before, after)
    if not row.crash:
        _read_report(row, run.stdout)
        row.unstable = _second_run(scratch, tool)
    _keep(row, before, after, output)


def _crash(run: subprocess.CompletedProcess[str]) -> str:
    if "Traceback (most recent call last)" in run.stderr or run.returncode not in (0, 1, 2):
        return run.stderr.strip()[-2000:] or f"exit code {run.returncode}"
    return ""


def _read_report(row: Row, text: str) -> None:
    report = json.loads(text)
    row.problems = [f"{_name(item['path'])}: {item['reason']}" for item in report["problems"]]
    for finding in report["findings"]:
        status, code = finding["status"], finding["code"]
        counts = row.findings.setdefault(status, {})
        counts[code] = counts.get(code, 0) + 1
        message = finding["message"].replace(f"{_COPY}/", "")
        if status == "left":
            place = f"{_name(finding['path'])}:{finding['location']['row']}"
            row.left.append(f"{place}: {code} {message}")
        if (status == "left" or code.startswith("AMP9")) and not _FOLLOWS.search(message):
            cause = f"{code} {_NAMES.sub('...', message)}"
            row.causes[cause] = row.causes.get(cause, 0) + 1


def _name(path: str) -> str:
    return path.removeprefix(f"{_COPY}/")


def _compare(row: Row, sites: Scan, before: Path, after: Path) -> None:
    rest = scan(after)
    row.scale_loss = (sites.count("scale_loss"), rest.count("scale_loss"))
    row.uses = (sites.count(), rest.count())
    row.remaining = [f"{use.path}:{use.line}: {use.kind}" for use in rest.uses]
    row.changed = _differing(before, after)
    row.broken = [name for name in row.changed if _breaks(before / name, after / name)]
    new = _lint(after, row.changed, starred=False) - _lint(before, row.changed, starred=True)
    for (code, name, message), count in sorted(new.items()):
        line = f"{name}: {code} {message}" + (f" ({count} times)" if count > 1 else "")
        (row.undefined if code in _UNDEFINED else row.unused).append(line)
    row.links = broken_links(before, after, row.changed)


def _differing(before: Path, after: Path) -> list[str]:
    names = {path.relative_to(side).as_posix() for side in (before, after) for path in _files(side)}
    return sorted(name for name in names if _bytes(before / name) != _bytes(after / name))


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _breaks(before: Path, after: Path) -> bool:
    """Tell whether a file compiled before and does not now."""
    return _compiles(before) and not _compiles(after)


def _compiles(path: Path) -> bool:
    tree = parsed(path, path.read_bytes()) if path.exists() else None
    if tree is None:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(tree, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def _lint(folder: Path, names: list[str], *, starred: bool) -> Counter[tuple[str, str, str]]:
    """Return ruff's messages on undefined and unused names, without their places.

    Those that a star import may bring count as undefined where `starred`: that may be the one that goes.
    """
    files = [name for name in names if (folder / name).exists()]
    if not files:
        return Counter()
    codes = ",".join((*_UNDEFINED, *_UNUSED, _STARRED[0]))
    run = subprocess.run(
        [*_RUFF, "--select", codes, *files],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    found: Counter[tuple[str, str, str]] = Counter()
    for item in json.loads(run.stdout):
        name = Path(item["filename"]).relative_to(folder.resolve()).as_posix()
        code, message = item["code"], item["message"]
        if starred:
            code, message = _as_undefined(code, message)
        if code in (*_UNDEFINED, *_UNUSED):
            found[code, name, message] += 1
    return found


def _as_undefined(code: str, message: str) -> tuple[str, str]:
    """Take a name for undefined that a star import hid, if Apex has no such name.

    It was undefined before the star import of Apex went.
    """
    starred = _STARRED[1].match(message) if code == _STARRED[0] else None
    if starred is None or starred["name"] in FP16_UTILS:
        return code, message
    return _UNDEFINED[0], f"Undefined name `{starred['name']}`"


def _second_run(scratch: Path, tool: _Tool) -> list[str]:
    """Return the files that another run changes again."""
    once = scratch / "once"
    shutil.copytree(scratch / _COPY, once, symlinks=True)
    tool.run(scratch)
    names = _differing(once, scratch / _COPY)
    shutil.rmtree(scratch / _COPY)
    once.rename(scratch / _COPY)
    return names


def _keep(row: Row, before: Path, after: Path, output: Output) -> None:
    if output.copies:
        target = output.copies / row.name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(after, target, symlinks=True)
    if output.diffs:
        output.diffs.mkdir(parents=True, exist_ok=True)
        patch = "".join(_patch(before / name, after / name, name) for name in row.changed)
        (output.diffs / f"{row.name}.patch").write_text(patch, encoding="utf-8")


def _patch(before: Path, after: Path, name: str) -> str:
    sides = [(_bytes(path) or b"").decode("utf-8", "replace") for path in (before, after)]
    old, new = (side.replace("\r\n", "\n").splitlines(keepends=True) for side in sides)
    lines = unified_diff(old, new, f"a/{name}", f"b/{name}", n=5)
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)
