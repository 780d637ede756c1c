"""Which names hold the same object through the constructs of Python."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.project.helpers import Case
from tests.values.test_values import same

SAME: dict[str, tuple[str, str, str]] = {
    "try": ("try:\n    b = a\nexcept E:\n    b = None\nb", "a", "b"),
    "finally": ("try:\n    pass\nfinally:\n    b = a\nb", "a", "b"),
    "nonlocal": ("def f():\n    b = None\n    def g():\n        nonlocal b\n        b = a\n    g()\n    b\nf()", "a", "b"),
    "nonlocal two deep": ("def f():\n    b = None\n    def g():\n        def h():\n            nonlocal b\n            b = a\n        h()\n    g()\n    b\nf()", "a", "b"),
    "global": ("def f():\n    global b\n    b = a\nf()\nb", "a", "b"),
    "a class body": ("class C:\n    x = a\nC.x", "C.x", "a"),
    "a class attribute of an object": ("class C:\n    x = a\nC().x", "C().x", "a"),
    "a default": ("def f(b=a):\n    b\nf()", "b", "a"),
    "an unpacking in a comprehension": ("[b for b, c in [(a, d)]]", "b", "a"),
    "a walrus in a comprehension": ("[(b := a) for x in y]\nb", "b", "a"),
    "a coroutine": ("async def f():\n    return a\nasync def g():\n    b = await f()\n    b", "a", "b"),
    "an asynchronous loop": ("async def f():\n    async for b in [a]:\n        b", "a", "b"),
    "an asynchronous context": ("async def held(x):\n    yield x\nasync def f():\n    async with held(a) as b:\n        b", "a", "b"),
    "a pattern": ("match a:\n    case b:\n        b", "a", "b"),
    "a pattern by name": ("match a:\n    case C() as b:\n        b", "a", "b"),
    "a pattern of a sequence": ("match (a, d):\n    case [b, c]:\n        b, c", "a", "b"),
    "a pattern of a mapping": ("c = {'G': a, 'D': d}\nmatch c:\n    case {'G': b}:\n        b", "a", "b"),
    "a pattern of a class": ("class C:\n    def __init__(self, x):\n        self.x = x\nc = C(a)\nmatch c:\n    case C(x=b):\n        b", "a", "b"),
    "one of two patterns": ("match a:\n    case int(b) | b:\n        b", "a", "b"),
    "behind a star": ("match (a, d):\n    case [*_, b]:\n        b", "a", "b"),
    "the last behind a star": ("x = [a, d, e]\n*c, b = x\nb", "e", "b"),
    "an annotated assignment": ("b: Net = a\nb", "a", "b"),
    "a wrapper with a number first": ("b = DDP(0, a)\nb", "a", "b"),
    "a method by another name": ("class C:\n    def f(self, x):\n        x\ng = C().f\ng(a)", "x", "a"),
    "a static method by another name": ("class C:\n    @staticmethod\n    def f(x):\n        x\ng = C().f\ng(a)", "x", "a"),
    "a dictionary in another": ("k = {'G': a}\nc = {'D': d, **k}\nc['G']", "c['G']", "a"),
    "an annotated attribute": ("class C:\n    def __init__(self, x):\n        self.x: Net = x\nC(a).x", "C(a).x", "a"),
    "yield from": ("def g():\n    yield a\ndef f():\n    yield from g()\nfor b in f():\n    b", "a", "b"),
    "star arguments": ("def f(b, c):\n    b, c\nf(*[a, d])", "a", "b"),
    "or": ("b = None or a\nb", "a", "b"),
    "a chain": ("b = c = d = a\nb, d", "b", "d"),
    "a swap": ("b, c = a, d\nb, c = c, b\nc", "c", "a"),
    "a tuple with a star": ("b, *c = a, d\nb, c", "b", "a"),
    "a static method": ("class C:\n    @staticmethod\n    def f(x):\n        x\nC.f(a)", "x", "a"),
    "a class method": ("class C:\n    @classmethod\n    def f(cls, x):\n        x\nC.f(a)", "x", "a"),
    "super": ("class B:\n    def f(self, x):\n        x\nclass C(B):\n    def f(self, y):\n        super().f(y)\nC().f(a)", "x", "a"),
    "a lambda that map runs": ("list(map(lambda b: b.c, [a, d]))", "a", "b"),
    "a function that map runs": ("def f(x, y):\n    x, y\nfor each in map(f, [d], [a]):\n    each", "y", "a"),
    "a bound method that filter runs": ("class C:\n    def f(self, x):\n        x\nlist(filter(C().f, [a]))", "x", "a"),
    "what filter leaves": ("for b in filter(None, [a]):\n    b", "a", "b"),
    "a function taken off a list": ("def f(x):\n    x\nc = []\nc.append(f)\nc.pop()(a)", "x", "a"),
    "a method looked up by a name": ("class C:\n    def f(self, x):\n        x\ndef run(name):\n    g = getattr(C(), name, None)\n    g(a)\nrun('f')", "x", "a"),
    "a method of some name": ("class C:\n    def f(self, x):\n        x\ng = getattr(C(), input())\ng(a)", "x", "a"),
    "a name of the function around": ("class C:\n    def f(self, x):\n        x\ndef run(name):\n    def find():\n        return getattr(C(), name)\n    find()(a)\nrun('f')", "x", "a"),
    "a method that a partial object keeps": ("from functools import partial\nclass C:\n    def f(self, x):\n        x\ndef run(name):\n    partial(getattr(C(), name), a)()\nrun('f')", "x", "a"),
    "a default of a lookup": ("b = getattr(d, input(), a)\nb", "a", "b"),
    "a lookup by a method": ("class C:\n    def f(self, x):\n        x\ndef run(name):\n    C().__getattribute__(name)(a)\nrun('f')", "x", "a"),
    "a method that a class names": ("class B:\n    part = 'f'\n    def f(self, x):\n        x\n    def base(self):\n        return getattr(self, self.part, self)\nB().base()(a)", "x", "a"),
    "a method that a derived class names": ("class B:\n    part = ''\n    def f(self, x):\n        x\n    def run(self):\n        g = getattr(self, self.part)\n        g(a)\nclass C(B):\n    part = 'f'\nC().run()", "x", "a"),
    "a method that a library may name": ("from lib import L\nclass B(L):\n    part = 'net'\n    def f(self, x):\n        x\n    def run(self):\n        g = getattr(self, self.part)\n        g(a)\nB().run()", "x", "a"),
    "a method that an object is told": ("class B:\n    part = 'net'\n    def __init__(self, part):\n        self.part = part\n    def f(self, x):\n        x\n    def run(self):\n        g = getattr(self, self.part)\n        g(a)\nB('f').run()", "x", "a"),
    "what a type checker is told": ("from typing import cast\nb = cast(Net, a)\nb", "a", "b"),
    "what a type checker is told by name": ("import typing\nb = typing.cast(typ=Net, val=a)\nb", "a", "b"),
    "an item of any key": ("c = {}\nc[k] = a\nb = c[j]\nb", "a", "b"),
    "an item copied under any key": ("c = {}\nc[k] = a\ne = {}\nfor j in c:\n    e[j] = c[j]\nb = e[k]\nb", "a", "b"),
    "a method that is named from outside": ("class B:\n    part = 'net'\n    def f(self, x):\n        x\n    def run(self):\n        g = getattr(self, self.part)\n        g(a)\nb = B()\nsetattr(b, 'part', 'f')\nb.run()", "x", "a"),
    "what is no text": ("b = None\nif isinstance(a, str):\n    c = d\nelse:\n    b = a\nb", "a", "b"),
    "what is a class of the file": ("class Net: ...\nb = None\nif isinstance(a, (str, Net)):\n    b = a\nb", "a", "b"),
    "what is bound again under the test": ("b = None\nif isinstance(c, str):\n    c = a\n    b = c\nb", "a", "b"),
    "what a function under the test reads later": ("if isinstance(a, str):\n    def f():\n        return a\na = d\nb = f()\nb", "d", "b"),
    "a type that the file binds": ("str = Net\nb = None\nif isinstance(a, str):\n    b = a\nb", "a", "b"),
}  # fmt: skip
APART: dict[str, tuple[str, str, str]] = {
    "a class body and its method": ("class C:\n    x = a\n    def f(self):\n        x", "x", "a"),
    "a name of a comprehension": ("b = d\n[b for b in [a]]\nb", "b", "a"),
    "a parameter that hides": ("b = a\ndef f(b):\n    b\nf(d)", "b", "a"),
    "another branch's name": ("if x:\n    b = a\nelse:\n    c = d\nb, c", "b", "c"),
    "a second of a pair": ("b, c = a, d\nb, c", "c", "a"),
    "a static method's first": ("class C:\n    @staticmethod\n    def f(x, y):\n        x, y\nC.f(a, d)", "y", "a"),
    "a rebound parameter of another": ("def f(x):\n    y = x\n    y\nf(d)\nb = a\nb", "y", "b"),
    "another key of a pattern": ("c = {'G': a, 'D': d}\nmatch c:\n    case {'G': b}:\n        b", "d", "b"),
    "a method of another name": ("class C:\n    def f(self, x):\n        x\n    def on_f(self, y):\n        y\ng = getattr(C(), f'on_{z}')\ng(a)", "x", "a"),
    "the type that a type checker is told": ("from typing import cast\nb = cast(a, d)\nb", "a", "b"),
    "a cast that is another function": ("def cast(x, y):\n    return x\nb = cast(d, a)\nb", "a", "b"),
    "a second of a pattern": ("match (a, d):\n    case [b, c]:\n        b, c", "a", "c"),
    "a method beside the part that a class names": ("class B:\n    part = 'net'\n    def f(self, x):\n        x\n    def base(self):\n        return getattr(self, self.part, self)\nB().base()(a)", "x", "a"),
    "a method beside the part of a derived class": ("class B:\n    part = ''\n    def f(self, x):\n        x\n    @classmethod\n    def load(cls):\n        m = cls()\n        if hasattr(m, 'part') and hasattr(m, cls.part):\n            m = getattr(m, cls.part)\n        m(a)\nclass C(B):\n    part = 'net'\nC.load()", "x", "a"),
    "a method beside the part that a function of a method asks for": ("import torch\nclass B(torch.nn.Module):\n    part = 'net'\n    def f(self, x):\n        x\n    def run(self):\n        def find():\n            return getattr(self, f'{self.part}_head')\n        find()(a)\nB().run()", "x", "a"),
    "what is a text": ("b = None\nif isinstance(a, str):\n    b = a\nb", "b", "a"),
    "what is a text or a number": ("b = None\nif x and isinstance(a, (int, float)):\n    for y in z:\n        b = a\nb", "b", "a"),
    "what is a text in an expression": ("b = a if isinstance(a, str) else None\nb", "b", "a"),
    "what is a text where it is handed on": ("def f(y):\n    y\nisinstance(a, str) and f(a)", "y", "a"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "one", "other"), SAME.values(), ids=SAME)
def test_same_object(text: str, one: str, other: str) -> None:
    """What one name holds, the other may hold."""
    assert same(text, one, other)


@pytest.mark.parametrize(("text", "one", "other"), APART.values(), ids=APART)
def test_different_objects(text: str, one: str, other: str) -> None:
    """Names of other scopes, other elements and other branches stay apart."""
    assert not same(text, one, other)


COPIED = """
    import torch

    def other(value):
        return lib.turn(value)

    kept = {}
    kept["optimizer"] = torch.optim.SGD([], 0.1)
    made = {}
    for key in given:
        kept[key] = given[key]
        kept[key] = other(key)
        made[key] = kept[key]
    """


@pytest.mark.parametrize(
    ("asked", "found"),
    [("given[key]", set()), ("other(key)", set()), ("kept[key]", {"torch.optim.SGD"})],
)
def test_what_is_stored_under_a_computed_key(asked: str, found: set[str]) -> None:
    """It is not what stands under other keys, though what any key gives may be each of them."""
    case = Case({"m.py": dedent(COPIED) + f"\nlast = {asked}\n"})
    module, _ = case.at("m.py", "last")
    node = case.at("m.py", asked, -1)[1]
    assert set(case.project.values.made_by(module, node)) == found
