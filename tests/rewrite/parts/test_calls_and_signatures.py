"""Parameters, arguments, with items, and expressions in the place of others."""

from __future__ import annotations

import pytest

from amp_migrate.plan.model import (
    AddArgument,
    AddDecorator,
    AddParameter,
    AddWithItem,
    DropWithItem,
)
from rewrite.places import applied

PARAMETERS = [
    ("def f(): pass", "def f(s): pass"),
    ("def f(a, b): pass", "def f(a, b, s): pass"),
    ("def f(a, b=1): pass", "def f(a, b=1, s=None): pass"),
    ("def f(a: int = 1,) -> None: pass", "def f(a: int = 1, s=None,) -> None: pass"),
    ("def f(a, *args, k=1, **kw): pass", "def f(a, *args, k=1, s, **kw): pass"),
    ("def f(a, *, k): pass", "def f(a, s, *, k): pass"),
    ("def f(*, k): pass", "def f(*, k, s): pass"),
    ("def f(self, *, k=1, **kw): pass", "def f(self, *, k=1, s, **kw): pass"),
    ("def f(\n    *,\n    k,\n): pass", "def f(\n    *,\n    k,\n    s,\n): pass"),
    ("def f(**kw): pass", "def f(s, **kw): pass"),
    ("def f(a, /): pass", "def f(a, /, s): pass"),
    ("def f(a, /, *, k): pass", "def f(a, /, s, *, k): pass"),
    ("def f(\n    a,\n    b,  # why\n): pass", "def f(\n    a,\n    b,  # why\n    s,\n): pass"),
    ("def f(\n    a,\n    b  # why\n): pass", "def f(\n    a,\n    b,  # why\n    s\n): pass"),
    ("def f(\n    a,\n    *,\n    k,\n): pass", "def f(\n    a,\n    s,\n    *,\n    k,\n): pass"),
    ("def f(\n    a, b\n): pass", "def f(\n    a, b, s\n): pass"),
    ("def f(a,\n      b): pass", "def f(a,\n      b,\n      s): pass"),
    ("def f(a, b,\n      *args): pass", "def f(a, b,\n      *args, s): pass"),
    ("@d\nasync def f(self): pass", "@d\nasync def f(self, s): pass"),
]

POSITIONAL = [
    ("f()", "f(s)"),
    ("f(a, k=1)", "f(a, s, k=1)"),
    ("f(a, *b, **kw)", "f(a, *b, s, **kw)"),
    ("f(x for x in y)", "f((x for x in y), s)"),
    ("f(\n    a,\n    k=1,  # why\n)", "f(\n    a,\n    s,\n    k=1,  # why\n)"),
    ("f(\n    a, b\n)", "f(\n    a, b, s\n)"),
    ("f(a,\n  b)", "f(a,\n  b,\n  s)"),
]

KEYWORD = [
    ("f()", "f(k=s)"),
    ("f(a, b=1)", "f(a, b=1, k=s)"),
    ("f(a, *b, **kw)", "f(a, *b, k=s, **kw)"),
    ("f(\n    a,  # why\n)", "f(\n    a,  # why\n    k=s,\n)"),
    ("f(\n    a,\n    b=1  # why\n)", "f(\n    a,\n    b=1,  # why\n    k=s\n)"),
]

WITH_ITEMS = [
    ("with a: pass", "with a, s() as t: pass"),
    ("with a as b, c: pass", "with a as b, c, s() as t: pass"),
    ("with (a, b): pass", "with (a, b, s() as t): pass"),
    (
        "with (\n    a,\n    b,  # why\n): pass",
        "with (\n    a,\n    b,  # why\n    s() as t,\n): pass",
    ),
    ("async with f(\n    a\n): pass", "async with f(\n    a\n), s() as t: pass"),
]


DROPPED_ITEMS = [
    ("with a, b as c: pass", 0, "with b as c: pass"),
    ("with a, b as c: pass", 1, "with a: pass"),
    ("with (a, b as c, d,): pass", 2, "with (a, b as c,): pass"),
    ("with (\n    a,  # why\n    b,\n): pass", 1, "with (\n    a,\n): pass"),
]


@pytest.mark.parametrize(("before", "after"), PARAMETERS)
def test_parameter(before: str, after: str) -> None:
    """A new parameter is the last that may be given by position, in the layout of the list."""
    start = "async" if "async" in before else "def"

    assert applied(before, lambda p: [AddParameter(p.statement(start), "s")]) == after


GIVEN = [
    ("def f(a, b): pass", "def f(a, b, s): pass"),
    ("def f(a, b=1): pass", "def f(a, b=1, *, s): pass"),
    ("def f(a=1, **kw): pass", "def f(a=1, *, s, **kw): pass"),
    ("def f(a=1, *, c=2): pass", "def f(a=1, *, c=2, s): pass"),
    ("def f(a=1, *b): pass", "def f(a=1, *b, s): pass"),
    ("def f(a=1, /): pass", "def f(a=1, /, *, s): pass"),
    ("def f(\n    a,\n    b=1,\n): pass", "def f(\n    a,\n    b=1,\n    *,\n    s,\n): pass"),
    (
        "def f(\n    a,\n    b=1  # why\n): pass",
        "def f(\n    a,\n    b=1,  # why\n    *,\n    s\n): pass",
    ),
]


@pytest.mark.parametrize(("before", "after"), GIVEN)
def test_parameter_that_every_call_gives(before: str, after: str) -> None:
    """One that every call gives has no default: behind one that has some, it goes by its name alone."""
    assert applied(before, lambda p: [AddParameter(p.statement("def"), "s", given=True)]) == after


def test_parameters_in_the_order_of_the_plan() -> None:
    """Each of several parameters follows the one before."""
    before = "def f(a, b=1): pass\n"

    after = applied(
        before,
        lambda p: [
            AddParameter(p.statement("def"), "s", default="0"),
            AddParameter(p.statement("def"), "t"),
        ],
    )

    assert after == "def f(a, b=1, s=0, t=None): pass\n"


@pytest.mark.parametrize(("before", "after"), POSITIONAL)
def test_positional_argument(before: str, after: str) -> None:
    """A positional argument follows the others and stands before keywords."""
    assert applied(before, lambda p: [AddArgument(p.call("f"), "s")]) == after


@pytest.mark.parametrize(("before", "after"), KEYWORD)
def test_keyword_argument(before: str, after: str) -> None:
    """A keyword argument is last but for ``**``."""
    assert applied(before, lambda p: [AddArgument(p.call("f"), "s", keyword="k")]) == after


def test_arguments_of_nested_calls() -> None:
    """A call inside a call that gets an argument gets its own."""
    after = applied(
        "f(g(a), k=f(b))\n",
        lambda p: [AddArgument(p.call(c), "s") for c in ("f(g", "g(", "f(b")],
    )

    assert after == "f(g(a, s), s, k=f(b, s))\n"


@pytest.mark.parametrize(("before", "after"), WITH_ITEMS)
def test_with_item(before: str, after: str) -> None:
    """A new item is the last, in the layout of the list."""
    start = "async" if "async" in before else "with"

    assert applied(before, lambda p: [AddWithItem(p.statement(start), "s() as t")]) == after


@pytest.mark.parametrize(("before", "place", "after"), DROPPED_ITEMS)
def test_item_taken_away(before: str, place: int, after: str) -> None:
    """The other items keep their layout, the last one a trailing comma if there was one."""
    assert applied(before, lambda p: [DropWithItem(p.statement("with"), place)]) == after


GOOGLE = '''def f(a, b):
    """Train.

    Args:
        a (int): data
        b: net
            and more

    Returns:
        loss
    """
'''
NUMPY = '''def f(a, b):
    """Train.

    Parameters
    ----------
    a : int
        data
    b
        net

    Returns
    -------
    loss
    """
'''
SPHINX = '''def f(a, b):
    """Train.

    :param int a: data
    :type a: int
    :param b: net
        and more
    :return: loss
    """
'''


@pytest.mark.parametrize(
    ("before", "last", "line"),
    [
        pytest.param(GOOGLE, "            and more\n", "        s: the scaler\n", id="google"),
        pytest.param(NUMPY, "        net\n", "    s\n        the scaler\n", id="numpy"),
        pytest.param(SPHINX, "        and more\n", "    :param s: the scaler\n", id="sphinx"),
    ],
)
def test_docstring(before: str, last: str, line: str) -> None:
    """A docstring that lists parameters gets the new one, after the last, in its own style."""
    after = applied(before, lambda p: [AddParameter(p.statement("def"), "s", doc="the scaler")])

    assert after == before.replace("(a, b)", "(a, b, s)").replace(last, last + line)


@pytest.mark.parametrize(
    "docstring",
    [
        pytest.param('"""Train a net."""', id="no_list"),
        pytest.param('"""Use as in\\n\\n    Args: none\\n"""', id="no_section"),
        pytest.param("'Args: '", id="one_line"),
        pytest.param("1", id="none"),
    ],
)
def test_docstring_without_a_list_stays(docstring: str) -> None:
    """Nothing is added to a docstring that lists no parameters."""
    before = f"def f(a):\n    {docstring}\n"

    after = applied(before, lambda p: [AddParameter(p.statement("def"), "s", doc="the scaler")])

    assert after == before.replace("(a)", "(a, s)")


def test_docstring_that_ends_on_its_last_parameter() -> None:
    """The closing quotes stay where they are: behind the last line."""
    before = 'def f(a):\n    """Train.\n\n    :param a: data"""\n'

    after = applied(before, lambda p: [AddParameter(p.statement("def"), "s", doc="scaler")])

    assert after == 'def f(a, s):\n    """Train.\n\n    :param a: data\n    :param s: scaler"""\n'


DECORATED = {
    "the first": ("def f(x):\n    pass\n", "@d(a=1)\ndef f(x):\n    pass\n"),
    "the innermost": (
        "class C:\n\t@staticmethod  # kept\n\tdef f(x): return x\n",
        "class C:\n\t@staticmethod  # kept\n\t@d(a=1)\n\tdef f(x): return x\n",
    ),
    "below a comment": (
        "x = 1\n\n# about f\n@e\n\ndef f():\n    pass\n",
        "x = 1\n\n# about f\n@e\n@d(a=1)\n\ndef f():\n    pass\n",
    ),
}


@pytest.mark.parametrize(("before", "after"), DECORATED.values(), ids=DECORATED)
def test_decorator(before: str, after: str) -> None:
    """A new decorator stands right above the `def`, below those that are there."""
    assert applied(before, lambda p: [AddDecorator(p.statement("def f"), "d(a=1)")]) == after
