"""Tries single refactorings: on small texts, and on bases drawn at random."""

from __future__ import annotations

import ast
import io
import keyword
import re
from collections import Counter
from random import Random
from textwrap import dedent

from pyflakes import api, reporter

from generated.refactor.bases import base, names
from generated.refactor.project import Project
from generated.refactor.refactoring import catalogue

SEEDS = 12


def once(name: str, text: str, seed: int = 0) -> str:
    """Return a script after a refactoring with these random numbers."""
    project = Project({"train.py": dedent(text).lstrip("\n")}, "train.py")
    changed = catalogue()[name].apply(project, Random(seed))
    return "" if changed is None else changed.files["train.py"]


def forms(name: str, text: str, seeds: int = SEEDS, called: str = "") -> set[str]:
    """Return all texts that a refactoring makes of a script; its new words of a lower-case kind are `called`."""
    found = {once(name, text, seed) for seed in range(seeds)} - {""}
    return {_renamed(one, text, called) for one in found} if called else found


def _renamed(after: str, before: str, called: str) -> str:
    known = set(re.findall(r"\w+", before)) | _LIBRARY | set(keyword.kwlist)
    new = {word for word in re.findall(r"\w+", after) if word.islower()} - known
    return re.sub(rf"\b({'|'.join(sorted(new))})\b", called, after) if new else after


_LIBRARY = {
    "contextlib",
    "contextmanager",
    "functools",
    "partial",
    "dict",
    "update",
    "args",
    "kwargs",
}


def flaws(name: str, wanted: int = 3, tries: int = 15) -> tuple[int, list[str]]:
    """Apply a refactoring to random bases; return how many it changed, and what is wrong with the results."""
    found, wrong = 0, list[str]()
    for seed in range(tries):
        project = base(Random(f"trial {seed}").choice(names())).project
        changed = catalogue()[name].apply(project, Random(seed))
        if changed is None:
            continue
        found += 1
        if changed.files == project.files:
            wrong.append(f"{seed}: nothing changed")
        for path, text in changed.files.items():
            before = project.files.get(path, "")
            if text != before:
                compile(text, path, "exec", dont_inherit=True)
                wrong += [f"{seed}: {m}" for m in messages(text) - messages(before)]
        if found == wanted:
            break
    return found, wrong


def messages(text: str) -> Counter[str]:
    """Return what pyflakes says about a text, without places.

    Beside a star import it doubts every name that a function binds by ``global``; that is left out.
    """
    stream = io.StringIO()
    api.check(text, "file", reporter.Reporter(stream, stream))
    said = Counter(line.partition(" ")[2] for line in stream.getvalue().splitlines())
    listed = {
        name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Global)
        for name in node.names
    }
    for name in listed:
        for message in [m for m in said if m.startswith(f"'{name}' may be undefined")]:
            del said[message]
    return said
