"""Which uses of Apex belong together."""

from __future__ import annotations

import ast

import pytest

from amp_migrate.apex.apart import elements
from amp_migrate.placement.finding.build import units
from amp_migrate.project.reach import reachable, scattered, upwards
from amp_migrate.project.relatives import family, runs
from tests.placement.training import Training
from tests.project.helpers import Case

AMP = "from apex import amp\n"
INIT = "m, o = amp.initialize(m, o)"
SCALE = "with amp.scale_loss(l, o) as s: s.backward()"

CASES: dict[str, tuple[dict[str, str], list[list[int]]]] = {
    "one function": ({"a.py": f"{AMP}def f(m, o):\n    {INIT}\n    {SCALE}\n"}, [[3, 4]]),
    "caller and callee": (
        {"a.py": f"{AMP}def f(m, o):\n    {INIT}\n    g(o)\ndef g(o):\n    {SCALE}\n"}, [[3, 6]],
    ),
    "two functions that nothing runs together": (
        {"a.py": f"{AMP}def f(m, o):\n    {INIT}\n    {SCALE}\ndef g(m, o):\n    {INIT}\n    {SCALE}\n"},
        [[3, 4], [6, 7]],
    ),
    "two functions of one program": (
        {"a.py": f"{AMP}def f(m, o):\n    {INIT}\ndef g(o):\n    {SCALE}\nm, o = make()\nf(m, o)\ng(o)\n"},
        [[3, 5]],
    ),
    "two methods of a class": (
        {"a.py": f"{AMP}class C:\n    def f(self, m, o):\n        {INIT}\n    def g(self, o):\n        {SCALE}\n"}, [[4, 6]],
    ),
    "a class and its base": (
        {"a.py": f"{AMP}class B:\n    def f(self, m, o):\n        {INIT}\nclass C(B):\n    def g(self, o):\n        {SCALE}\n"}, [[4, 7]],
    ),
    "a nested function": (
        {"a.py": f"{AMP}def f(m, o):\n    {INIT}\n    def g():\n        {SCALE}\n"}, [[3, 5]],
    ),
    "two files": (
        {"a.py": f"{AMP}from b import g\ndef f(m, o):\n    {INIT}\n    g(o)\n", "b.py": f"{AMP}def g(o):\n    {SCALE}\n"},
        [[4, 3]],
    ),
    "without an initialize, of the only one of a program": (
        {"a.py": f"{AMP}import b\n{INIT}\n", "b.py": f"{AMP}def g(o):\n    {SCALE}\n"}, [[3, 3]],
    ),
    "without an initialize, beside that of another program": (
        {"a.py": f"{AMP}{INIT}\n", "b.py": f"{AMP}def g(o):\n    {SCALE}\n"}, [[2], [3]],
    ),
    "without an initialize, of none": ({"b.py": f"{AMP}def g(o):\n    {SCALE}\n"}, [[3]]),
    "two programs": (
        {"a.py": f"{AMP}{INIT}\n{SCALE}\n", "b.py": f"{AMP}{INIT}\n{SCALE}\n"}, [[2, 3], [2, 3]],
    ),
    "nothing": ({"a.py": AMP}, []),
}  # fmt: skip


@pytest.mark.parametrize(("files", "groups"), CASES.values(), ids=CASES)
def test_units(files: dict[str, str], groups: list[list[int]]) -> None:
    """What one run ties together: by calls, classes, nesting, optimizers."""
    case = Training(files)
    found = [[site.span.line for site in group] for group in units(case.index)]
    assert found == groups


def test_elements() -> None:
    """The elements of a display, an expression alone, nothing for None."""
    for text, found in (
        ("[a, b]", ["a", "b"]),
        ("(a,)", ["a"]),
        ("a", ["a"]),
        ("None", []),
        ("[]", []),
    ):
        node = ast.parse(text, mode="eval").body
        assert [ast.unparse(part) for part in elements(node)] == found
    assert elements(None) == []


CALLS = """\
def a(): b()
def b(): c()
def c(): pass
def d():
    def e(): c()
def f(): f()
x = lambda: a()
"""


def test_what_functions_reach() -> None:
    """Calls, and the functions nested in one; what is barred, and what only it calls, is left out."""
    case = Case({"m.py": CALLS})
    of = {f.qualname: f for f in case.project.modules["m.py"].functions.values()}

    def names(found: object) -> set[str]:
        return {f.qualname for f in found}  # type: ignore[attr-defined]

    assert names(reachable(case.project, of["a"])) == {"a", "b", "c"}
    assert names(reachable(case.project, of["d"])) == {"d", "d.<locals>.e", "c"}
    assert names(reachable(case.project, of["f"])) == {"f"}
    assert names(reachable(case.project, of["a"], [of["b"]])) == {"a"}
    assert names(reachable(case.project, of["a"], [of["a"]])) == set()
    assert {"a", "b", "c", "d.<locals>.e"} <= names(upwards(case.project, of["c"]))
    assert "d" not in names(upwards(case.project, of["c"]))
    assert scattered(case.project, [of["a"], of["c"]]) == (of["a"], of["c"])
    assert scattered(case.project, [of["b"], of["f"]]) is None


def test_class_methods_make_no_scaler() -> None:
    """An object of the class is not there."""
    case = Case(
        {"m.py": "class C:\n    @classmethod\n    def f(cls): pass\n    def g(self): pass\n"}
    )
    f, g = case.function("m.py", "C.f"), case.function("m.py", "C.g")
    assert scattered(case.project, [g, f]) == (f, None)


CLASSES = """\
class A:
    def f(self): pass
class B(A):
    def f(self): super().f()
class C(A):
    def f(self): pass
class D(B): pass
class E: pass
"""


def test_relatives() -> None:
    """Bases and subclasses; two that only have a base in common are none."""
    case = Case({"m.py": CLASSES})
    of = {c.name: c for c in case.project.modules["m.py"].classes.values()}

    def names(name: str) -> set[str]:
        return {c.name for c in family(of[name])}

    assert names("A") == {"A", "B", "C", "D"}
    assert names("B") == {"A", "B", "D"} and names("D") == {"A", "B", "D"}
    assert names("C") == {"A", "C"} and names("E") == {"E"}
    assert family(of["B"])[0] is of["B"]
    base = of["A"].methods["f"]
    assert runs(of["A"], base) and runs(of["B"], base) and runs(of["D"], base)
    assert not runs(of["C"], base) and not runs(of["E"], base)


def test_class_around() -> None:
    """That of the method, also around a function nested in it."""
    text = (
        "class C:\n    def f(self):\n        def g():\n            def h(): pass\ndef k(): pass\n"
    )
    case = Case({"m.py": text})
    functions = case.project.modules["m.py"].functions.values()
    found = {f.name: f.class_around for f in functions if f.node is not None}
    assert {name: cls and cls.name for name, cls in found.items()} == {
        "f": "C", "g": "C", "h": "C", "k": None,
    }  # fmt: skip
