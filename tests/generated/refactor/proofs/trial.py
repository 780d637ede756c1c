"""Tries single refactorings: on small texts, and on bases drawn at random."""

from __future__ import annotations

import keyword
import re
from random import Random
from textwrap import dedent

from generated.refactor.bases import base, names
from generated.refactor.judging.migrated import messages
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
                new = messages(path, text.encode()) - messages(path, before.encode())
                wrong += [f"{seed}: {message}" for message in new if not _bound_anew(message, text)]
        if found == wanted:
            break
    return found, wrong


def _bound_anew(message: str, text: str) -> bool:
    """Tell whether pyflakes takes an import for unused as a function binds its name anew: ``global amp``."""
    found = re.fullmatch(r"'(?:.*[. ])?(\w+)' imported but unused", message)
    return found is not None and re.search(rf"^ +global .*\b{found[1]}\b", text, re.M) is not None
