"""Parameters and keyword arguments under other names, and keyword arguments that go."""

from __future__ import annotations

import pytest

from amp_migrate.plan.model import (
    DropKeyword,
    Edit,
    Hoist,
    RenameKeyword,
    RenameParameter,
    Replace,
    ReplaceExpression,
)
from amp_migrate.rewrite import EditError, rewrite
from rewrite.places import Places, Plan, applied

SIGNATURES = [
    ("def f(amp): pass", "def f(s): pass"),
    ("def f(a, amp: int = 1,) -> None: pass", "def f(a, s: int = 1,) -> None: pass"),
    ("def f(amp, /, b): pass", "def f(s, /, b): pass"),
    ("def f(*amp, k): pass", "def f(*s, k): pass"),
    ("def f(*, amp=amp): pass", "def f(*, s=amp): pass"),
    ("def f(**amp): pass", "def f(**s): pass"),
    (
        "def f(\n    amp,  # amp\n    g=lambda amp: 1,\n): pass",
        "def f(\n    s,  # amp\n    g=lambda amp: 1,\n): pass",
    ),
    ("@d\nasync def f(self, amp): amp()", "@d\nasync def f(self, s): amp()"),
]

CALLS = [
    ("f(amp=x)", "f(s=x)"),
    ("f(amp, amp=amp, k=1, **amp)", "f(amp, s=amp, k=1, **amp)"),
    ("f(\n    amp = x,  # amp\n)", "f(\n    s = x,  # amp\n)"),
    ("f(g(amp=1), amp=2)", "f(g(amp=1), s=2)"),
    ("f(amp=x)(amp=y)", "f(s=x)(amp=y)"),
]

DOCSTRINGS = [
    pytest.param(
        """Train with amp.

        Args:
            a (int): data, without amp
                amp: as above
            amp (object): the amp handle

            b: net

        Returns:
            amp: no parameter
        """,
        "            amp (object)",
        id="google",
    ),
    pytest.param(
        """Train.

        Parameters
        ----------
        a : int
            amp : as above

        amp : object, optional
            the amp handle

        Returns
        -------
        amp : object
            no parameter
        """,
        "        amp : object, optional",
        id="numpy",
    ),
    pytest.param(
        """Train.

        :param a: data for amp: much
        :param amp amp: the amp handle
        :return: amp
        """,
        ":param amp amp",
        id="sphinx",
    ),
    pytest.param("Args:\n        amp: handle", "        amp", id="google_at_the_start"),
    pytest.param("Train.\n\n    :type amp: amp\n", ":type amp", id="type_of_a_field"),
    pytest.param("Train.\n\n    @param amp: amp\n    ", "@param amp", id="epytext"),
    pytest.param("Args:\n        a, amp (int): both\n    ", "a, amp", id="two_on_a_line"),
    pytest.param("Args:\n        *amp: all\n    ", "*amp", id="star"),
    pytest.param("Train with amp: fast\n\n    amp: fast\n    ", "", id="no_list"),
]

DROPPED = [
    ("f(amp=x)", "f()"),
    ("f(a, amp=x)", "f(a)"),
    ("f(amp=x, k=1)", "f(k=1)"),
    ("f(a,\n  k=1,\n  amp=x)", "f(a,\n  k=1)"),
    ("f(\n    a,\n    amp=x,\n)", "f(\n    a,\n)"),
    ("f(\n    a,\n    amp=x,\n    k=1,\n)", "f(\n    a,\n    k=1,\n)"),
    ("f(g(amp=1), amp=2)", "f(g(amp=1))"),
]

PROGRAM = """
def f(amp, b): pass
if c:
    f(amp=1, b=2)
else:
    d()
"""


def parameter(p: Places, old: str, new: str) -> Edit:
    return RenameParameter(p.statement("def"), old, new)


def keyword(p: Places, old: str, new: str) -> Edit:
    return RenameKeyword(p.call("f"), old, new)


REFUSED: dict[str, tuple[Plan, str]] = {
    "no_such_parameter": (lambda p: [parameter(p, "x", "s")], "RenameParameter at 2:0.* named x"),
    "no_such_keyword": (lambda p: [keyword(p, "x", "s")], "RenameKeyword at 4:4-4:17: .* named x"),
    "parameter_taken": (lambda p: [parameter(p, "amp", "b")], "named b already"),
    "keyword_taken": (lambda p: [keyword(p, "amp", "b")], "named b already"),
    "parameter_twice": (
        lambda p: [parameter(p, "amp", "s"), parameter(p, "amp", "t")],
        "RenameParameter at .* another edit renames amp",
    ),
    "keyword_twice": (
        lambda p: [keyword(p, "amp", "s"), keyword(p, "amp", "t")],
        "RenameKeyword at .* another edit renames amp",
    ),
    "no_such_keyword_to_drop": (
        lambda p: [DropKeyword(p.call("f"), "x")],
        "DropKeyword at 4:4-4:17: .* named x",
    ),
    "not_a_function": (
        lambda p: [RenameParameter(p.statement("if"), "amp", "s")],
        "RenameParameter at 3:0-6:7: the statement is not a function",
    ),
    "not_a_call": (
        lambda p: [RenameKeyword(p.expression("c"), "amp", "s")],
        "RenameKeyword at 3:3-3:4: the expression is not a call",
    ),
    "replaced_call": (
        lambda p: [ReplaceExpression(p.call("f"), "g(amp=1)"), keyword(p, "amp", "s")],
        "RenameKeyword at 4:4-4:17: it was not applied",
    ),
    "replaced_call_in_a_kept_block": (
        lambda p: [
            Hoist(p.statement("if"), "body"),
            ReplaceExpression(p.call("f"), "g(amp=1)"),
            keyword(p, "amp", "s"),
        ],
        "RenameKeyword at 4:4-4:17: it was not applied",
    ),
    "replaced_function": (
        lambda p: [Replace(p.statement("def"), "def f(amp): pass"), parameter(p, "amp", "s")],
        "RenameParameter at 2:0-2:19: it was not applied",
    ),
}


@pytest.mark.parametrize(("before", "after"), SIGNATURES)
def test_parameter(before: str, after: str) -> None:
    """Only the name in the signature changes, whatever the kind of the parameter."""
    start = "async" if "async" in before else "def"

    assert applied(before, lambda p: [RenameParameter(p.statement(start), "amp", "s")]) == after


@pytest.mark.parametrize(("before", "after"), CALLS)
def test_keyword(before: str, after: str) -> None:
    """Only the keyword of that very call changes."""
    assert applied(before, lambda p: [RenameKeyword(p.call("f"), "amp", "s")]) == after


@pytest.mark.parametrize(("docstring", "line"), DOCSTRINGS)
def test_docstring(docstring: str, line: str) -> None:
    """The name changes where the docstring lists it, and nowhere in what it says."""
    before = f'def f(a, amp):\n    r"""{docstring}"""\n'
    listed = "s".join(line.rsplit("amp", 1))
    expected = before.replace("f(a, amp)", "f(a, s)").replace(line, listed)

    assert applied(before, lambda p: [RenameParameter(p.statement("def"), "amp", "s")]) == expected


def test_docstring_on_one_line() -> None:
    """A docstring in single quotes is changed like any other."""
    before = "def f(amp):\n    ':param amp: handle'\n"

    after = applied(before, lambda p: [RenameParameter(p.statement("def"), "amp", "s")])

    assert after == "def f(s):\n    ':param s: handle'\n"


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    """The error names the edit, its place and what is wrong."""
    plan, message = REFUSED[name]

    with pytest.raises(EditError, match=message):
        rewrite(PROGRAM, plan(Places(PROGRAM)))


@pytest.mark.parametrize(("before", "after"), DROPPED)
def test_dropped_keyword(before: str, after: str) -> None:
    """The argument of that very call goes, with its comma and the line that it had."""
    assert applied(before, lambda p: [DropKeyword(p.call("f"), "amp")]) == after
