"""What imported names mean within one file."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from amp_migrate.facts.imports import Imports, preferred
from amp_migrate.facts.search_path import added_folders
from amp_migrate.facts.tree import Tree


def meaning(text: str, last: str, name: str = "", package: bool = False) -> str | None:
    """Return what the expression `last`, appended as a statement, means."""
    tree = Tree("m.py", f"{dedent(text)}\n{last}\n")
    statement = tree.module.body[-1]
    assert isinstance(statement, ast.Expr)
    return Imports(tree, name, package).qualified(statement.value)


@pytest.mark.parametrize(
    ("text", "last", "expected"),
    [
        ("from apex import amp", "amp.scale_loss", "apex.amp.scale_loss"),
        ("from apex import amp as apex_amp", "apex_amp", "apex.amp"),
        ("import apex", "apex.amp.initialize", "apex.amp.initialize"),
        ("import apex.amp", "apex.amp", "apex.amp"),
        ("import apex.amp as X", "X.initialize", "apex.amp.initialize"),
        (
            "from apex.parallel import DistributedDataParallel as DDP",
            "DDP",
            "apex.parallel.DistributedDataParallel",
        ),
        ("import apex\namp = apex.amp", "amp.scale_loss", "apex.amp.scale_loss"),
        ("import apex\namp = apex.amp if ok else None", "amp", "apex.amp"),
        ("amp = 1", "amp", None),
        ("", "amp", None),
    ],
)
def test_import_forms(text: str, last: str, expected: str | None) -> None:
    """Every way of importing a name gives its dotted name."""
    assert meaning(text, last) == expected


def test_guarded_imports_prefer_apex() -> None:
    """Of the two branches of a guard, the one from Apex decides."""
    text = """
    try:
        from torch.cuda import amp
    except ImportError:
        from apex import amp
    """
    assert meaning(text, "amp") == "apex.amp"
    assert (
        meaning("try:\n    from apex import amp\nexcept ImportError:\n    amp = None", "amp")
        == "apex.amp"
    )


def test_imports_in_functions_stay_there() -> None:
    """A name imported in one function means nothing in another."""
    tree = Tree(
        "m.py",
        dedent("""
        def a():
            from apex import amp
            use(amp)
        def b():
            use(amp)
        def c():
            global amp
            from torch import amp
        """),
    )
    imports = Imports(tree)
    found = [n for n in ast.walk(tree.module) if isinstance(n, ast.Name) and n.id == "amp"]
    found.sort(key=lambda node: node.lineno)
    assert [imports.qualified(node) for node in found] == ["apex.amp", "torch.amp"]


def test_closure_and_class_scopes() -> None:
    """A nested function sees its outer function's import, a method does not see its class's."""
    tree = Tree(
        "m.py",
        dedent("""
        def outer():
            from apex import amp
            return [(lambda: amp.a)() for _ in x]
        class C:
            from apex import amp
            amp.b
            def f(self):
                return amp.c
        """),
    )
    imports = Imports(tree)
    found = {
        node.attr: imports.qualified(node)
        for node in ast.walk(tree.module)
        if isinstance(node, ast.Attribute)
    }
    assert found == {"a": "apex.amp.a", "b": "apex.amp.b", "c": None}


@pytest.mark.parametrize(
    ("name", "package", "text", "expected"),
    [
        ("pkg.sub.mod", False, "from . import x", "pkg.sub.x"),
        ("pkg.sub.mod", False, "from .. import x", "pkg.x"),
        ("pkg.sub.mod", False, "from ..other import x", "pkg.other.x"),
        ("pkg.sub", True, "from .other import x", "pkg.sub.other.x"),
    ],
)
def test_relative_imports(name: str, package: bool, text: str, expected: str) -> None:
    """Dots count from the module's own package."""
    assert meaning(text, "x", name, package) == expected


def test_self_reference_ends() -> None:
    """Names defined by themselves mean nothing."""
    assert meaning("a = b\nb = a", "a") is None


def test_preferred_name() -> None:
    """Apex wins over the first."""
    assert preferred(["torch.amp", "apex.amp"]) == "apex.amp"
    assert preferred(["torch.amp", "x"]) == "torch.amp"
    assert preferred([]) is None


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("'../lib'", ["../lib"]),
        ("os.path.dirname(__file__)", ["tools"]),
        ("os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')", ["."]),
        ("os.path.dirname(os.path.dirname(__file__)) + '/lib'", ["lib"]),
        ("str(Path(__file__).resolve().parent.parent / 'lib')", ["lib"]),
        ("str(Path(__file__).parents[1])", ["."]),
        ("here", ["tools/sub"]),
        ("os.environ['LIB']", []),
    ],
)
def test_search_path(expression: str, expected: list[str]) -> None:
    """Folders added to sys.path are computed from strings and the file's own place."""
    text = f"import os, sys\nhere = os.path.join(os.path.dirname(__file__), 'sub')\nsys.path.insert(0, {expression})\n"
    assert added_folders(Tree("tools/run.py", text), "tools/run.py") == expected
