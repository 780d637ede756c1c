"""Helpers for the tests about native code: a program in, its remarks or its new spelling out."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import dedent

from amp_migrate.check.text import check
from amp_migrate.facts.tree import Tree
from amp_migrate.plan import native
from amp_migrate.plan.model import Decision, Edit, Status
from amp_migrate.project import build
from amp_migrate.rewrite import rewrite


def remarked(text: str) -> list[tuple[int, str]]:
    """Return the line and code of every remark on a program; none of them edits anything."""
    found = decisions(text)
    assert all(not d.edits and d.finding.status is Status.NOTE for d in found)
    return sorted((d.finding.span.line, d.finding.code) for d in found)


def decisions(text: str, **others: str) -> list[Decision]:
    """Return what is remarked on a program and the other files of its project."""
    files = {"program.py": text, **{f"{name}.py": more for name, more in others.items()}}
    trees = {path: Tree(path, dedent(more).lstrip("\n")) for path, more in files.items()}
    found = native.Remarks(trees, lambda: build(trees)).found
    return [decision for held in found.values() for decision in held]


def upgraded(text: str, edits: Sequence[Edit] = (), others: Sequence[str] = ()) -> str:
    """Return a program in the new spelling; it compiles, has no new flaw, and is not changed again."""
    before = dedent(text).lstrip("\n")
    around = [Tree(f"other{i}.py", dedent(t).lstrip("\n")) for i, t in enumerate(others)]
    found = native.upgrade(Tree("program.py", before), edits, around)
    after = rewrite(before, [*edits, *(edit for d in found for _, edit in d.edits)])
    assert check(before, after, "program.py") is None
    again = native.upgrade(Tree("program.py", after), (), around)
    assert rewrite(after, [edit for d in again for _, edit in d.edits]) == after
    return after
