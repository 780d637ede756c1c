"""Which places statements read and write, what calls do to them, and how places meet."""

from __future__ import annotations

import ast

import pytest

from amp_migrate.autocast.slicing.effects import Effects
from amp_migrate.autocast.slicing.places import Place, Places, touches, without
from tests.project.helpers import Case

STATEMENTS: dict[str, tuple[str, set[str], set[str]]] = {
    "an assignment": ("y = x", {"x"}, {"y"}),
    "an attribute": ("a.b = c.d", {"a", "c.d"}, {"a.b"}),
    "an item": ("a['k'] = b[0]", {"a", "b[0]"}, {"a['k']"}),
    "an item whose key varies": ("a[i] = b[j]", {"a", "b", "i", "j"}, {"a"}),
    "items of items": ("y = a['k'].b[1]", {"a['k'].b[1]"}, {"y"}),
    "several": ("a, (b, *c) = d", {"d"}, {"a", "b", "c"}),
    "a walrus": ("f(y := x)", {"f", "x"}, {"y"}),
    "added to": ("y += x", {"x"}, {"y"}),
    "annotated": ("y: int = x", {"x"}, {"y"}),
    "deleted": ("del y, a.b", {"a"}, {"y", "a.b"}),
    "mutated": ("ys.append(x)", {"ys.append", "ys", "x"}, {"ys"}),
    "read by a method": ("y = x.mean()", {"x.mean", "x"}, {"y"}),
    "a loop": ("for i, x in ys:\n    z = x", {"ys", "x"}, {"i", "x", "z"}),
    "a with": ("with o as f:\n    y = f", {"o", "f"}, {"f", "y"}),
    "a match": ("match x:\n    case [a, *b]:\n        pass", {"x"}, {"a", "b"}),
    "a match of a mapping": ("match x:\n    case {'k': a, **b}:\n        pass", {"x"}, {"a", "b"}),
    "a match by name": ("match x:\n    case int() as a:\n        pass", {"x"}, {"a"}),
    "in a call of a call": ("y = f(x)(z)", {"f", "x", "z"}, {"y"}),
}


NAMES = ["a", "b", "c", "d", "f", "i", "j", "o", "x", "y", "ys", "z"]


@pytest.mark.parametrize(("text", "reads", "writes"), STATEMENTS.values(), ids=STATEMENTS)
def test_places_of_statements(text: str, reads: set[str], writes: set[str]) -> None:
    """Names, attributes and items with constant keys are places; what holds an item whose key varies is."""
    lines = "".join(f"    {line}\n" for line in text.splitlines())
    case = Case({"m.py": f"def t({', '.join(NAMES)}):\n{lines}"})
    module = case.project.modules["m.py"]
    places = Places(case.project)
    function = module.tree.module.body[0]
    assert isinstance(function, ast.FunctionDef)
    stmts = function.body
    assert {_text(p) for s in stmts for p in places.reads(module, s)} == reads
    assert {_text(p) for s in stmts for p in places.writes(module, s)} == writes


def _text(place: Place) -> str:
    return place.name + "".join(place.steps)


def test_comprehensions_have_names_of_their_own() -> None:
    """A name of a comprehension is not the one around it."""
    case = Case({"m.py": "x = 1\ny = [x for x in z]\n"})
    module = case.project.modules["m.py"]
    places = Places(case.project)
    first, second = module.tree.module.body
    assert not touches(places.writes(module, first), set(places.reads(module, second)))


def test_places_meet() -> None:
    """What holds a place, and an item of it, meet it; an attribute of it and another place do not."""
    scope = ast.parse("")
    x, attribute = Place(scope, "x"), Place(scope, "x", (".a",))
    item, inner = Place(scope, "x", ("[0]",)), Place(scope, "x", ("[0]", ".b"))
    assert touches({x}, {x}) and touches({x}, {attribute}) and touches({x}, {inner})
    assert touches({item}, {x}) and touches({inner}, {x})
    assert not touches({attribute}, {x})
    assert not touches({item}, {attribute}) and not touches({Place(scope, "y")}, {x})
    assert not touches({Place(ast.parse(""), "x")}, {x})
    assert without({x, attribute, inner}, [item]) == {x, attribute}
    assert without({x, attribute, inner}, [x]) == set()


CALLS: dict[str, tuple[str, set[str], set[str]]] = {
    "nothing": ("def f(a):\n    return a.b\n", {"x.y.b"}, set()),
    "an attribute of an argument": ("def f(a):\n    a.b = 1\n", set(), {"x.y.b"}),
    "an item of an argument": ("def f(a):\n    a['k'] = 1\n", set(), {"x.y['k']"}),
    "a variable of its own": ("def f(a):\n    b = 1\n    a = 2\n", set(), set()),
    "a list that is given": ("def f(a):\n    a.append(1)\n", {"x.y.append"}, {"x.y"}),
    "a global": ("def f(a):\n    global g\n    g = 1\n", set(), {"g"}),
    "by another": ("def f(a):\n    h(a)\ndef h(c):\n    c.d = 1\n", set(), {"x.y.d"}),
    "by itself": ("def f(a):\n    f(a)\n    a.e = 1\n", set(), {"x.y.e"}),
    "by star": ("def f(*a):\n    a[0].b = 1\n", set(), {"x.y.b"}),
    "in a nested function, which may be run": (
        "def f(a):\n    def g():\n        a.b = 1\n",
        set(),
        {"x.y.b"},
    ),
}


@pytest.mark.parametrize(("functions", "reads", "writes"), CALLS.values(), ids=CALLS)
def test_effects_of_calls(functions: str, reads: set[str], writes: set[str]) -> None:
    """A call reads and writes what its function does to what it is given, and to what outlives it."""
    case = Case({"m.py": f"g = x = 1\n{functions}f(x.y)\n"})
    module = case.project.modules["m.py"]
    effects, places = Effects(case.project), Places(case.project)
    stmt = module.tree.module.body[-1]
    own_reads = {_text(p) for p in places.reads(module, stmt)}
    found = {_text(p) for p in effects.reads(module.top, stmt)}
    assert {text for text in found - own_reads if text.startswith("x.y") or text == "g"} == reads
    assert {_text(p) for p in effects.writes(module.top, stmt)} == writes
