"""Which argument of a call reaches which parameter."""

from __future__ import annotations

import ast
import textwrap

import pytest

from tests.project.helpers import Case


def arguments(case: Case, path: str, text: str, qualname: str, where: str = "") -> dict[str, str]:
    """Return the arguments of a call of a function, as text by parameter."""
    target = case.function(where or path, qualname)
    call = case.call(path, text)
    (site,) = [site for site in case.project.callers(target) if site.call is call]
    return {name: ast.unparse(item) for name, item in case.project.arguments(site, target).items()}


@pytest.mark.parametrize(
    ("definition", "call", "expected"),
    [
        ("def f(a, b=2): pass", "f(1)", {"a": "1"}),
        ("def f(a, b=2): pass", "f(1, b=3)", {"a": "1", "b": "3"}),
        ("def f(a, *, b): pass", "f(b=1, a=2)", {"a": "2", "b": "1"}),
        ("def f(a, /, b): pass", "f(1, 2)", {"a": "1", "b": "2"}),
        ("def f(a, *rest, **kw): pass", "f(1, 2, x=3)", {"a": "1"}),
        ("def f(a, b): pass", "f(*xs)", {}),
        ("def f(a, b): pass", "f(1, *xs)", {"a": "1"}),
        ("def f(a, b, c): pass", "f(1, *(x.y, 2))", {"a": "1", "b": "x.y", "c": "2"}),
        ("def f(a, b): pass", "f(1, **kw)", {"a": "1"}),
    ],
)
def test_plain_calls(definition: str, call: str, expected: dict[str, str]) -> None:
    """Positional and keyword arguments find their parameters."""
    case = Case({"m.py": f"{definition}\n{call}\n"})
    assert arguments(case, "m.py", call, "f") == expected


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ("xs = (amp, 2)", {"a": "amp", "b": "2"}),
        ("xs = [y, amp]", {"b": "amp"}),
        ("xs = amp, *ys", {}),
        ("xs = (amp, 2)\nprint(xs)", {}),
        ("xs = (amp, 2)\nxs = (2, 3)", {}),
    ],
)
def test_a_collection_that_is_only_unpacked(held: str, expected: dict[str, str]) -> None:
    """What it holds reaches the parameters, as far as that is the same where the call stands."""
    text = f"from apex import amp\ny = 1\ny = 2\ndef f(a, b): pass\n{held}\nf(*xs)\n"
    assert arguments(Case({"m.py": text}), "m.py", "f(*xs)", "f") == expected


def test_bound_calls_skip_the_receiver() -> None:
    """A method's arguments start at its second parameter; a constructor's too."""
    case = Case(
        {
            "m.py": """
            class A:
                def __init__(self, x): pass
                def m(self, y, z): pass
            a = A(1)
            a.m(2, z=3)
            A.m(a, 4, 5)
            """
        }
    )
    assert arguments(case, "m.py", "A(1)", "A.__init__") == {"x": "1"}
    assert arguments(case, "m.py", "a.m(2, z=3)", "A.m") == {"y": "2", "z": "3"}
    assert arguments(case, "m.py", "A.m(a, 4, 5)", "A.m") == {"self": "a", "y": "4", "z": "5"}


def test_partial_arguments_follow_the_function() -> None:
    """In partial(f, ...) the arguments begin after the function."""
    case = Case(
        {"m.py": "from functools import partial\ndef f(a, b, c): pass\ng = partial(f, 1, c=3)\n"}
    )
    assert arguments(case, "m.py", "partial(f, 1, c=3)", "f") == {"a": "1", "c": "3"}


FORWARD = {
    "m.py": """
    class Base:
        def __init__(self, model, amp=None): pass
    class Mid(Base):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
    class Top(Mid):
        def __init__(self, extra, **kw):
            super().__init__(**kw)
    Top(1, model=net, amp=apex)
    """,
    "n.py": """
    def f(a, b, c=0): pass
    def g(*args, **kwargs):
        f(*args, **kwargs)
    g(1, 2, c=3)
    def h(x, **kwargs):
        f(1, 2, c=kwargs.pop('c'))
    """,
}


def test_forwarded_arguments_are_followed() -> None:
    """What a function takes as *args and **kwargs and passes on is found in its callers."""
    case = Case(FORWARD)
    found = arguments(case, "m.py", "super().__init__(*args, **kwargs)", "Base.__init__")
    assert found == {"model": "net", "amp": "apex"}
    assert arguments(case, "n.py", "f(*args, **kwargs)", "f") == {"a": "1", "b": "2", "c": "3"}


def test_parameters_of_a_function() -> None:
    """Names in order, which of them have defaults, and the catch-alls."""
    case = Case({"m.py": "def f(a, b=1, *c, d, e=2, **g): pass\n"})
    parameters = case.function("m.py", "f").parameters
    assert parameters.names == ("a", "b", "d", "e")
    assert set(parameters.defaults) == {"b", "e"}
    assert (parameters.vararg, parameters.kwarg) == ("c", "g")
    assert parameters.required() == ("a", "d")


FORWARDED = """
    def target(x, y, *, z=0): pass
    def mid(a, *args, **kw): target(*args, y=2, **kw)
    def third(*args, **kw): mid(5, *args, **kw)
    def second(*args, **kw): third(*args, **kw)
    def first(*args, **kw): second(*args, **kw)
    def again(*args, **kw): first(*args, **kw); again(*args, **kw)
"""


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("mid(5, x=1)", {"x": "1", "y": "2"}),
        ("mid(5, 1, z=3)", {"x": "1", "y": "2", "z": "3"}),
        ("third(x=1)", {"x": "1", "y": "2"}),
        ("third(1)", {"x": "1", "y": "2"}),
        ("again(x=1, z=4)", {"x": "1", "y": "2", "z": "4"}),
        ("again(1)", {"x": "1", "y": "2"}),
    ],
)
def test_arguments_that_are_handed_on(call: str, expected: dict[str, str]) -> None:
    """What functions hand on comes from the call that gives it, in however many steps; their own parameters do not."""
    text = textwrap.dedent(FORWARDED) + call
    case = Case({"m.py": text})
    assert arguments(case, "m.py", "target(*args, y=2, **kw)", "target") == expected
