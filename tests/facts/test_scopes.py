"""Which scope binds a name, by the rules of Python."""

from __future__ import annotations

import ast
import symtable

import pytest

from amp_migrate.facts.scopes import Scopes, assigned
from amp_migrate.facts.tree import Tree

CASES: dict[str, tuple[str, str]] = {
    "the file": ("x = 1\nx", "top"),
    "unbound": ("x", "-"),
    "a function": ("def f():\n    x = 1\n    x", "f"),
    "read in a function": ("x = 1\ndef f():\n    x", "top"),
    "bound behind": ("def f():\n    x\n    x = 1", "f"),
    "a parameter": ("def f(x):\n    x", "f"),
    "a parameter by star": ("def f(*x):\n    x", "f"),
    "keywords by star": ("def f(**x):\n    x", "f"),
    "a default": ("x = 1\ndef f(x=x):\n    pass", "top"),
    "a decorator": ("x = 1\n@x\ndef f(x):\n    pass", "top"),
    "an annotation": ("x = 1\ndef f(y: x):\n    x = 2", "top"),
    "a lambda": ("x = 1\nlambda x: x", "lambda"),
    "a default of a lambda": ("x = 1\nlambda x=x: 0", "top"),
    "a global": ("x = 1\ndef f():\n    global x\n    x = 2\n    x", "top"),
    "a global bound there alone": ("def f():\n    global x\n    x = 2\nx", "top"),
    "a closure": ("def f():\n    x = 1\n    def g():\n        x", "f"),
    "a nonlocal": (
        "def f():\n    x = 1\n    def g():\n        nonlocal x\n        x = 2\n        x",
        "f",
    ),
    "a nonlocal two deep": (
        "def f():\n    x = 1\n    def g():\n        def h():\n            nonlocal x\n            x = 2\n            x",
        "f",
    ),
    "a nonlocal in a method": (
        "def f():\n    x = 1\n    class C:\n        def g(self):\n            nonlocal x\n            x = 2\n            x",
        "f",
    ),
    "a nonlocal of a parameter": (
        "def f(x):\n    def g():\n        nonlocal x\n        x = 2\n        x",
        "f",
    ),
    "a nonlocal beside a global": (
        "x = 0\ndef f():\n    x = 1\n    def g():\n        global x\n        x = 2\n        def h():\n            x",
        "top",
    ),
    "a class": ("class C:\n    x = 1\n    x", "C"),
    "a class seen from a method": (
        "x = 0\nclass C:\n    x = 1\n    def f(self):\n        x",
        "top",
    ),
    "a class seen from a comprehension": (
        "x = 0\nclass C:\n    x = 1\n    y = [x for _ in z]",
        "top",
    ),
    "the first source of one in a class": (
        "x = 0\nclass C:\n    x = 1\n    y = [_ for _ in x]",
        "C",
    ),
    "a base": ("x = 0\nclass C(x):\n    x = 1", "top"),
    "a comprehension": ("x = 0\n[x for x in y]", "listcomp"),
    "its first source": ("x = 0\n[0 for x in x]", "top"),
    "its second source": ("x = 0\n[0 for x in y for z in x]", "listcomp"),
    "its test": ("x = 0\n{x for x in y if x}", "setcomp"),
    "a walrus in one": ("def f():\n    [x := 1 for _ in y]\n    x", "f"),
    "a walrus in two": ("def f():\n    [[x := 1 for _ in y] for _ in z]\n    x", "f"),
    "a walrus": ("if x := 1:\n    x", "top"),
    "a walrus to a global": ("def f():\n    global x\n    [x := 1 for _ in y]\n    x", "top"),
    "a loop": ("for x in y:\n    x", "top"),
    "a with": ("def f():\n    with y as x:\n        x", "f"),
    "an except": ("def f():\n    try:\n        pass\n    except E as x:\n        x", "f"),
    "an import": ("def f():\n    import x.y\n    x", "f"),
    "an import by another name": ("def f():\n    import y as x\n    x", "f"),
    "a definition": ("def f():\n    def x(): pass\n    x", "f"),
    "a class definition": ("def f():\n    class x: pass\n    x", "f"),
    "an unpacking": ("def f():\n    (a, *x), b = y\n    x", "f"),
    "a match": ("def f():\n    match y:\n        case [x]:\n            x", "f"),
    "the rest of a sequence": ("def f():\n    match y:\n        case [_, *x]:\n            x", "f"),
    "the rest of a mapping": (
        "def f():\n    match y:\n        case {'k': _, **x}:\n            x",
        "f",
    ),
    "a match by name": ("def f():\n    match y:\n        case int() as x:\n            x", "f"),
    "added to": ("x = 0\ndef f():\n    x += 1\n    x", "f"),
    "annotated alone": ("x = 0\ndef f():\n    x: int\n    x", "f"),
    "async": ("async def f():\n    async for x in y:\n        x", "f"),
    "a generator": ("x = 0\nf(x for x in y)", "genexpr"),
}


def _name(scope: ast.AST | None) -> str:
    if scope is None:
        return "-"
    if isinstance(scope, ast.Module):
        return "top"
    if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return scope.name
    kinds = {"ListComp": "listcomp", "SetComp": "setcomp", "GeneratorExp": "genexpr"}
    return kinds.get(type(scope).__name__, type(scope).__name__.lower())


def _read(tree: Tree) -> ast.Name:
    found = [n for n in tree.nodes(ast.Name) if n.id == "x" and isinstance(n.ctx, ast.Load)]
    return max(found, key=lambda n: (n.lineno, n.col_offset))


@pytest.mark.parametrize(("text", "owner"), CASES.values(), ids=CASES)
def test_owner_of_the_last_read(text: str, owner: str) -> None:
    """The scope that binds `x` where it is read last."""
    tree = Tree("m.py", text + "\n")
    scopes = Scopes(tree)
    assert _name(scopes.owner(_read(tree))) == owner


def _tables(table: symtable.SymbolTable) -> list[symtable.SymbolTable]:
    return [table, *(t for child in table.get_children() for t in _tables(child))]


@pytest.mark.parametrize("text", [text for text, _ in CASES.values()], ids=CASES)
def test_functions_bind_what_python_says(text: str) -> None:
    """What a function or file binds itself agrees with Python's own table of symbols."""
    tree = Tree("m.py", text + "\n")
    scopes = Scopes(tree)
    found = {_name(n): set(scopes.names(n)) for n in [tree.module, *tree.nodes(ast.FunctionDef)]}
    declared = {
        name for table in _tables(symtable.symtable(text, "m.py", "exec"))
        for name in table.get_identifiers() if table.lookup(name).is_declared_global()
    }  # fmt: skip
    for table in _tables(symtable.symtable(text, "m.py", "exec")):
        if table.get_name() not in found:
            continue
        own = {
            n for n in table.get_identifiers()
            if (table.lookup(n).is_local() and not table.lookup(n).is_global()) or (table.get_name() == "top" and n in declared)
        }  # fmt: skip
        if table.get_name() == "top":
            own = {
                n
                for n in table.get_identifiers()
                if table.lookup(n).is_assigned() or table.lookup(n).is_imported()
            }
            own |= declared
        assert found[table.get_name()] == own, table.get_name()


def test_bindings_are_in_source_order() -> None:
    """Whatever makes them, and through `global`, `nonlocal` and `globals()`."""
    text = (
        "x = 1\ndef f():\n    global x\n    x = 2\nimport x\nglobals()['x'] = 3\nfor x in y: pass\n"
    )
    tree = Tree("m.py", text)
    found = Scopes(tree).bindings(tree.module, "x")
    assert [tree.span(node).line for node in found] == [1, 4, 5, 6, 7]
    text = "def f():\n    x = 1\n    def g():\n        def h():\n            nonlocal x\n            x = 2\n    x = 3\n"
    tree = Tree("m.py", text)
    outer = tree.module.body[0]
    assert isinstance(outer, ast.FunctionDef)
    found = Scopes(tree).bindings(outer, "x")
    assert [tree.span(node).line for node in found] == [2, 6, 7]


def test_stars_bind_nothing_known() -> None:
    """`import *` is noted."""
    scopes = Scopes(Tree("m.py", "from a import *\nfrom b import c\n"))
    assert [stmt.module for stmt in scopes.stars] == ["a"]
    assert scopes.names(scopes.tree.module) == ["c"]


ASSIGNED: dict[str, tuple[str, str | None]] = {
    "alone": ("x = a", "a"),
    "one of several targets": ("y = x = a", "a"),
    "annotated": ("x: int = a", "a"),
    "annotated alone": ("x: int", None),
    "a walrus": ("(x := a)", "a"),
    "in a tuple": ("y, x = a, b", "b"),
    "in a tuple of another": ("y, x = a", None),
    "beside a star": ("*y, x = a, b", None),
    "of a star": ("y, x = *a, b", None),
    "of other length": ("y, x = a, b, c", None),
    "in a loop": ("for x in a: pass", None),
    "added to": ("x += a", None),
    "a parameter": ("def f(x=a): pass", None),
}


@pytest.mark.parametrize(("text", "value"), ASSIGNED.values(), ids=ASSIGNED)
def test_value_of_a_binding(text: str, value: str | None) -> None:
    """Plain assignments give it, and tuples of the same length."""
    tree = Tree("m.py", text + "\n")
    scopes = Scopes(tree)
    binding = next(
        b for s in [tree.module, *tree.nodes(ast.FunctionDef)] for b in scopes.bindings(s, "x")
    )
    found = assigned(tree, binding)
    assert (None if found is None else ast.unparse(found)) == value
