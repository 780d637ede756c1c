"""Chooses a value by a conditional expression, or by an `if`."""

from __future__ import annotations

from random import Random

import libcst as cst

from generated.refactor.code.names import read
from generated.refactor.control.places import Place, any_of, negated, only, simple, somewhere
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring


def _to_if(place: Place, rng: Random) -> Project | None:
    """Turn `x = a if c else b` or `return a if c else b` into an `if`."""
    small = only(place.statement)
    if isinstance(small, cst.Assign | cst.AugAssign | cst.AnnAssign | cst.Return | cst.Expr):
        choice = small.value
        if isinstance(choice, cst.IfExp):
            start = place.source(small.with_changes(value=cst.Name("_")))[:-1]
            return _as_if(place, choice, start, "", rng)
    return None


def _as_if(place: Place, choice: cst.IfExp, start: str, after: str, rng: Random) -> Project | None:
    line = place.statement
    assert isinstance(line, cst.SimpleStatementLine)
    yes, no = (f"{start}{place.source(v)}\n" for v in (choice.body, choice.orelse))
    test = place.source(choice.test)
    if rng.random() < 0.3:
        test, yes, no = negated(place, choice.test), no, yes
    comment = line.trailing_whitespace.comment
    above = place.lead() + (f"{comment.value}\n" if comment else "")
    text = f"{above}if {test}:\n{place.indented(yes)}else:\n{place.indented(no)}{after}"
    return place.replaced(text)


def _out_of_expression(place: Place, rng: Random) -> Project | None:
    """Take a conditional expression out of a statement, into an `if` above it that sets a name."""
    small = only(place.statement)
    if not isinstance(small, cst.Assign | cst.AugAssign | cst.Return | cst.Expr):
        return None
    if " else " not in place.project.files[place.path]:
        return None
    found = _Choices()
    small.visit(found)
    fit = [c for c in found.choices if simple(place.source(c.test)) and _plain(place, c)]
    if not fit:
        return None
    choice = rng.choice(fit)
    name = place.name(rng, "value", "picked", "level", "choice", "setting", "a_or_b")
    new = place.statement.deep_replace(choice, cst.Name(name))
    assert isinstance(new, cst.SimpleStatementLine)
    return _as_if(place, choice, f"{name} = ", place.bare(new), rng)


def _plain(place: Place, choice: cst.IfExp) -> bool:
    return all(simple(place.source(v)) for v in (choice.body, choice.orelse))


class _Choices(cst.CSTVisitor):
    """Collects the conditional expressions that a statement evaluates in any case."""

    def __init__(self) -> None:
        self.choices: list[cst.IfExp] = []

    def visit_IfExp(self, node: cst.IfExp) -> bool:
        self.choices.append(node)
        return False

    def visit_BooleanOperation(self, node: cst.BooleanOperation) -> bool:
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        return False

    def visit_ListComp(self, node: cst.ListComp) -> bool:
        return False

    def visit_GeneratorExp(self, node: cst.GeneratorExp) -> bool:
        return False

    def visit_DictComp(self, node: cst.DictComp) -> bool:
        return False


def _to_expression(place: Place, rng: Random) -> Project | None:
    """Turn an `if` whose arms set the same name, or return, into a conditional expression."""
    node = place.statement
    if not isinstance(node, cst.If) or isinstance(node.orelse, cst.If) or "#" in place.bare():
        return None
    yes = _single(node.body)
    count = 1
    if node.orelse:
        no = _single(node.orelse.body)
    elif isinstance(yes, cst.Assign) and _kept(place, yes):
        no = yes.with_changes(value=yes.targets[0].target)
    else:
        no = only(place.rest[0]) if place.rest else None
        count = 2
        if not isinstance(no, cst.Return) or place.lead(place.rest[0]):
            return None
    test = place.source(node.test)
    if isinstance(node.test, cst.IfExp | cst.NamedExpr | cst.Lambda) and not node.test.lpar:
        test = f"({test})"
    start, values = _start(place, yes), []
    if not start or start != _start(place, no):
        return None
    for small in (yes, no):
        values.append(place.source(small.value))  # type: ignore[union-attr]
    if any("\n" in v or v.startswith(("lambda", "yield")) or " if " in v for v in values):
        return None
    text = f"{start}{_item(values[0])} if {test} else {_item(values[1])}"
    if len(text) > 95:
        return None
    return place.replaced(f"{place.lead()}{text}\n", count)


def _kept(place: Place, small: cst.Assign) -> bool:
    """Tell whether an assignment of one name reads that name too, so that it has a value."""
    target = small.targets[0].target
    return isinstance(target, cst.Name) and target.value in read(small.value)


def _item(text: str) -> str:
    loose = isinstance(cst.parse_expression(text), cst.Tuple) and not text.startswith("(")
    return f"({text})" if loose else text


def _single(suite: cst.BaseSuite) -> cst.BaseSmallStatement | None:
    if len(suite.body) != 1:
        return None
    held = suite.body[0]
    return held if isinstance(held, cst.BaseSmallStatement) else only(held)


def _start(place: Place, small: cst.BaseSmallStatement | None) -> str:
    """Return the text of an assignment or `return` up to its value, empty for anything else."""
    if not isinstance(small, cst.Assign | cst.AugAssign | cst.Return) or small.value is None:
        return ""
    bare = small.with_changes(value=cst.Name("_"), semicolon=cst.MaybeSentinel.DEFAULT)
    return place.source(bare)[:-1]


REFACTORINGS = (
    Refactoring(
        "a conditional expression becomes an if",
        "control",
        somewhere(any_of(_to_if, _out_of_expression), cst.SimpleStatementLine),
    ),
    Refactoring(
        "an if becomes a conditional expression", "control", somewhere(_to_expression, cst.If)
    ),
)
