"""Expressions in the place of others."""

from __future__ import annotations

import ast

import pytest

from amp_migrate.plan.model import ReplaceExpression
from rewrite.places import Places, applied

CONTEXTS = [
    "y = T",
    "y = (T)",
    "y = not T",
    "y = T.a",
    "y = T()",
    "y = T[0]",
    "y = a + T",
    "y = T * a",
    "y = a - T",
    "y = -T",
    "y = a and T",
    "y = b and T or a",
    "y = T == a",
    "y = a < T",
    "y = f(T, k=T)",
    "y = f(*T, **T)",
    "y = [T, *T]",
    "y = {T: T}",
    "y = T if T else T",
    "y = lambda: T",
    "y = T ** T",
    "y = x[T:T]",
    'y = f"{T}"',
    "y = T,",
    "y = [x for x in T if T]",
    "y: T = T",
    "y += T",
    "if T: pass",
    "while not T: pass",
    "for i in T: pass",
    "with T as a: pass",
    "assert T, T",
    "def f(a=T): return T",
    "@T\ndef f(): pass",
    "async def f(): await T",
]
TEXTS = [
    "x.y",
    "a or b",
    "a and b",
    "not a",
    "a < b",
    "a + b",
    "a * b",
    "-a",
    "a ** b",
    "a if b else c",
    "lambda: 1",
    "(a, b)",
    "(yield)",
    "1",
    "f(a)",
]


class _Substitution(ast.NodeTransformer):
    def __init__(self, text: str) -> None:
        self.text = text

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Put the expression in place of every T."""
        if node.id != "T":
            return node
        return ast.parse(f"({self.text})", mode="eval").body


@pytest.mark.parametrize("before", CONTEXTS)
@pytest.mark.parametrize("text", TEXTS)
def test_expression_keeps_its_meaning(before: str, text: str) -> None:
    """An expression in the place of another means what it means alone."""
    names = [n for n in ast.walk(ast.parse(before)) if isinstance(n, ast.Name) and n.id == "T"]

    after = applied(
        before,
        lambda p: [ReplaceExpression(p.expression("T", nth), text) for nth in range(len(names))],
    )

    assert ast.dump(ast.parse(after)) == ast.dump(_Substitution(text).visit(ast.parse(before)))


@pytest.mark.parametrize(
    ("before", "old", "text", "after"),
    [
        ("return_(x)", "x", "a or b", "return_(a or b)"),
        ("y = not x", "x", "a == b", "y = not a == b"),
        ("y = x and z", "x", "not a", "y = not a and z"),
        ("y = (a, b)", "(a, b)", "c", "y = c"),
        ("y = f((a, b))", "(a, b)", "c, d", "y = f((c, d))"),
        ("y = f(x for x in z)", "(x for x in z)", "c", "y = f(c)"),
        ("def f():\n    return(a, b)", "(a, b)", "c", "def f():\n    return(c)"),
        ('y = "a"if b else c', '"a"', "d", "y = (d)if b else c"),
        ("@a.b(c)\ndef f(): pass", "a.b(c)", "d", "@d\ndef f(): pass"),
        ("with a(b) as c: pass", "a(b)", "d()", "with d() as c: pass"),
        ("x = (  # why\n    a, b  # end\n)", "(  # why\n    a, b  # end\n)", "c", "x = c"),
    ],
)
def test_parentheses(before: str, old: str, text: str, after: str) -> None:
    """Parentheses are written where they are needed, and those that belong to the old text go."""
    assert applied(before, lambda p: [ReplaceExpression(p.expression(old), text)]) == after


@pytest.mark.parametrize(
    ("before", "edits", "after"),
    [
        ("return f(a), b", [("f(a)", "g(a)"), ("f(a), b", "f(a), b, c")], "return g(a), b, c"),
        ("y = not a + b", [("a", "c or d"), ("a + b", "a + b - 1")], "y = not (c or d) + b - 1"),
        (
            "y = f(g(h), 1)",
            [("f(g(h), 1)", "k(f(g(h), 1))"), ("h", "i"), ("g(h)", "j(g(h))")],
            "y = k(f(j(g(i)), 1))",
        ),
    ],
)
def test_inside_of_what_keeps_it(before: str, edits: list[tuple[str, str]], after: str) -> None:
    """An expression inside of one that grows is replaced there too."""
    text = f"def m():\n    {before}\n"

    found = applied(text, lambda p: [ReplaceExpression(p.expression(o), n) for o, n in edits])

    assert found == text.replace(before, after)


def test_decorated_method_deep_inside() -> None:
    """A decorator of a method that is the first statement of its class is found."""
    before = "class A:\n    @x.y\n    # why\n    def f(self): pass\n"

    after = applied(before, lambda p: [ReplaceExpression(p.expression("x.y"), "z")])

    assert after == before.replace("x.y", "z")


def test_marker_of_a_statement_and_its_expression_agree() -> None:
    """An expression statement and its value have one span, and both can be edited by it."""
    places = Places("f(a)\n")

    assert places.statement("f") == places.call("f")
