"""What the codemod makes of a variant."""

from __future__ import annotations

import difflib
import io
import re
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from pyflakes import api, reporter

from amp_migrate.engine import migrate, unstable
from amp_migrate.plan.model import Status
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source
from generated.refactor.project import Project

SETTINGS = Settings(api="torch.cuda.amp")
_ELSEWHERE = re.compile(r"because of \S+:\d+$")  # the cause is told there


@dataclass(frozen=True)
class Migrated:
    """What the codemod makes of a project: its files after, what is wrong with them, codes of what is left and fixed.

    `told` are the messages of what is fixed. `lost`: a note tells that an overflow in gradients that are cleared skips no step any more;
    `notes` are the messages of all.
    """

    after: Mapping[str, bytes]
    flaw: str
    left: tuple[str, ...]
    fixed: tuple[str, ...]
    told: tuple[str, ...]
    lines: int
    lost: bool
    notes: tuple[str, ...]


def migrated(project: Project) -> Migrated:
    """Run the codemod over a project."""
    files = project.data()
    sources = [Source.from_bytes(name, data) for name, data in files.items()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = migrate(sources, SETTINGS)
        after = {
            o.path: o.before.data if o.after is None else o.before.encode(o.after)
            for o in result.outcomes
        }
        again = unstable(result, SETTINGS) if after != files else []
    flaw = next((o.failed for o in result.outcomes if o.failed), "") or _flaw(files, after)
    if again and not flaw:
        flaw = f"a second run changes {again[0]}"
    found = result.plan.findings()
    aside = {*project.beside, *(script for script, _ in project.more)}
    left = [f for f in found if f.status is Status.LEFT and f.path not in project.beside]
    told = [f for f in found if left and f.status is Status.NOTE and f.code.startswith("AMP9")]
    causes = sorted(
        [*left, *told], key=lambda f: (f.code == "AMP101", bool(_ELSEWHERE.search(f.message)))
    )
    return Migrated(
        after,
        flaw,
        tuple(f"{f.code}: {f.message}" for f in causes),
        tuple(f.code for f in found if f.status is Status.FIXED),
        tuple(f.message for f in found if f.status is Status.FIXED),
        sum(_changed(files[name], after[name]) for name in files if name not in aside),
        any(f.code == "AMP106" and f.status is Status.NOTE for f in found),
        tuple(f.message for f in found if f.status is Status.NOTE),
    )


def _flaw(files: Mapping[str, bytes], after: Mapping[str, bytes]) -> str:
    for name, data in after.items():
        if data == files[name]:
            continue
        try:
            compile(data, name, "exec", dont_inherit=True)
        except SyntaxError as error:
            return f"{name} does not compile: {error}"
        new = messages(name, data) - messages(name, files[name])
        if new:
            return f"new in {name}: {min(new)}"
    return ""


def messages(name: str, data: bytes) -> Counter[str]:
    stream = io.StringIO()
    api.check(data.decode(), name, reporter.Reporter(stream, stream))
    texts = [line.partition(" ")[2] for line in stream.getvalue().splitlines()]
    texts = [re.sub(r" (on|from) line \d+", "", text) for text in texts]
    return Counter(t for t in texts if "may be undefined" not in t and "unable to detect" not in t)


def _changed(before: bytes, after: bytes) -> int:
    sides = before.splitlines(), after.splitlines()
    lines = list(difflib.diff_bytes(difflib.unified_diff, *sides, n=0))[2:]
    return sum(line[:1] in (b"+", b"-") for line in lines)
