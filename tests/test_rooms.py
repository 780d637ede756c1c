"""The rooms of the package: which may import which, and that every module can be imported by itself."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import amp_migrate

ROOT = Path(amp_migrate.__file__).parent
READS = ("facts", "flow", "modules", "project", "values")
BELOW = {
    "words": set(),
    "stopping": set(),
    "settings": set(),
    "source": {"settings", "stopping", "words"},
    "facts": {"source"},
    "flow": {"facts"},
    "modules": {"facts"},
    "values": {"facts", "modules"},
    "project": {"facts", "flow", "modules", "values"},
    "training": {*READS},
    "protocol": {*READS, "training"},
    "check.apex": {*READS, "training", "protocol"},
    "check.events": {*READS, "training", "protocol", "check.apex"},
    "check.casts": {*READS, "training", "protocol", "check.apex", "check.events"},
    "check.gradients": {*READS, "training", "protocol", "check.apex", "check.events"},
    "check.statements": {
        *(*READS, "training", "protocol", "check.apex", "check.events", "check.gradients", "source")
    },
    "check": {
        *(*READS, "training", "protocol", "check.apex", "check.events", "check.casts"),
        *("check.gradients", "check.statements"),
        *("source", "processes", "report"),
    },
    "plan.model": {"source"},
    "plan.cannot": {"plan.model", "project"},
    "report": {"plan.model", "source", "words"},
    "apex": {*READS, "plan.cannot", "plan.model", "source"},
    "availability": {*READS, "training", "apex"},
    "scaler": {*READS, "training", "plan.cannot", "plan.model", "apex", "availability"},
    "placement": {
        *(*READS, "training", "protocol", "plan.cannot"),
        *("apex", "availability", "scaler"),
    },
    "autocast": {
        *(*READS, "training", "protocol", "plan.cannot"),
        *("apex", "placement"),
    },
    "dual": {
        *(*READS, "training", "plan.cannot"),
        *("apex", "availability", "autocast", "placement"),
    },
    "plain": {*READS, "apex", "source", "training"},
    "rules": {
        *(
            *READS,
            "training",
            "protocol",
            "plan.cannot",
            "plan.model",
            "settings",
            "source",
            "words",
        ),
        *("apex", "autocast", "availability", "dual", "placement", "scaler"),
    },
    "older": {
        *(*READS, "training", "protocol", "plan.cannot", "plan.model", "settings"),
        *("apex", "rules"),
    },
    "plan": {
        *(*READS, "protocol", "plan.cannot", "plan.model", "rules", "plain", "settings", "source"),
        *("apex", "availability", "dual", "placement", "scaler"),
    },
    "enable": {
        *(*READS, "training", "protocol", "plan", "plan.cannot", "plan.model", "rules", "scaler"),
        *("check", "check.events", "rewrite", "report", "settings", "source", "words", "autocast"),
        *("engine", "outcome", "output", "run"),
    },
    "rewrite": {"source", "plan.model"},
    "attempts": {
        *(*READS, "protocol", "plan", "plan.model", "plain", "rules"),
        *("check", "check.events", "rewrite", "source", "outcome", "processes"),
    },
    "dependencies": {"facts", "plan.model", "report", "settings", "source"},
    "output": {"", "plan.model", "report", "rules", "settings", "source", "words"},
    "equivalence": {"", "stopping", "words"},
}


@cache
def modules() -> Mapping[str, ast.Module]:
    """Return the modules of the package by their dotted names."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        name = ".".join(parts).removesuffix(".__init__")
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def imported(nodes: Iterator[ast.AST]) -> Iterator[str]:
    """Yield the modules of the package that some statements import."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            inner = (f"{node.module}.{alias.name}" for alias in node.names)
            names = [name if name in modules() else node.module for name in inner]
        else:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        yield from (name for name in names if name in modules())


def at_once(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what runs when a module is imported."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from at_once(child)


def packages(name: str) -> set[str]:
    """Return the packages around a module."""
    parts = name.split(".")
    return {".".join(parts[:end]) for end in range(1, len(parts))}


def room(name: str) -> str:
    """Return the room, or the module beside the rooms, that a module stands in: the innermost one that the table knows."""
    inner = name.partition(".")[2]
    around = inner
    while around and around not in BELOW:
        around = around.rpartition(".")[0]
    return around or inner.partition(".")[0]


def test_every_module_can_be_imported_first() -> None:
    runs = {}
    for name, tree in modules().items():
        needs = set(imported(at_once(tree)))
        around = {package for need in needs for package in packages(need)}
        runs[name] = (needs | around) - packages(name) - {name}
    try:
        TopologicalSorter(runs).prepare()
    except CycleError as error:
        pytest.fail(f"modules import each other: {' <- '.join(error.args[1])}")


@pytest.mark.parametrize("here", BELOW)
def test_rooms_import_only_what_is_below_them(here: str) -> None:
    wrong = {
        name: above
        for name, tree in modules().items()
        if room(name) == here
        and (above := {n for n in imported(ast.walk(tree)) if room(n) not in {here, *BELOW[here]}})
    }
    assert not wrong


def test_no_room_is_below_itself() -> None:
    try:
        TopologicalSorter(BELOW).prepare()
    except CycleError as error:
        pytest.fail(f"rooms import each other: {' <- '.join(error.args[1])}")


def test_every_room_says_what_it_may_import() -> None:
    rooms = {path.name for path in ROOT.iterdir() if (path / "__init__.py").is_file()}
    assert rooms - set(BELOW) == {"commands"}  # what a user types stands above all


def test_nothing_below_what_a_user_types_knows_of_it() -> None:
    above = {
        name: found
        for name, tree in modules().items()
        if room(name) not in {"", "__main__", "commands"}
        and (found := {n for n in imported(ast.walk(tree)) if room(n) == "commands"})
    }
    assert not above


@pytest.mark.parametrize("root", [ROOT, Path(__file__).parent], ids=["package", "tests"])
def test_no_folder_holds_more_than_twelve_modules(root: Path) -> None:
    held = Counter(p.parent for p in root.rglob("*.py") if p.name != "__init__.py")
    assert not {folder: count for folder, count in held.items() if count > 12}


def test_no_module_is_longer_than_three_hundred_lines() -> None:
    lengths = {p: len(p.read_text(encoding="utf-8").splitlines()) for p in ROOT.rglob("*.py")}
    assert not {path: length for path, length in lengths.items() if length > 300}
