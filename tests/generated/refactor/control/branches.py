"""Says the same `if` in another way: negated, nested, merged, chained, or with what follows in its arms."""

from __future__ import annotations

from random import Random

import libcst as cst
import libcst.matchers as m

from generated.refactor.code.blocks import escapes
from generated.refactor.control.places import Place, any_of, negated, only, somewhere, unchanging
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring

_BOTH = m.BooleanOperation() | m.UnaryOperation(operator=m.Not(), expression=m.BooleanOperation())


def _de_morgan(place: Place, rng: Random) -> Project | None:
    """Turn `a and b` in a test into `not (not a or not b)`, or the other way round."""
    node = place.statement
    if not isinstance(node, cst.If | cst.While):
        return None
    found = [each for each in _operands(node.test) if m.matches(each, _BOTH)]
    if not found:
        return None
    old = rng.choice(found)
    text = _other_way(place, old)
    whole = "" if old is node.test else "("
    new = cst.parse_expression(f"({text})" if whole else text)
    test = new if old is node.test else node.test.deep_replace(old, new)
    return place.exchanged([node.with_changes(test=test)])


def _operands(test: cst.BaseExpression) -> list[cst.BaseExpression]:
    """Return the parts of a test of which only the truth matters."""
    found = [test]
    if isinstance(test, cst.BooleanOperation):
        found += _operands(test.left) + _operands(test.right)
    elif isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        found += _operands(test.expression)
    return found


def _other_way(place: Place, old: cst.BaseExpression) -> str:
    if isinstance(old, cst.UnaryOperation):
        assert isinstance(old.expression, cst.BooleanOperation)
        return _opposite(place, old.expression)
    assert isinstance(old, cst.BooleanOperation)
    return f"not ({_opposite(place, old)})"


def _opposite(place: Place, both: cst.BooleanOperation) -> str:
    """Return the text of the operation that holds where this one does not."""
    other = "or" if isinstance(both.operator, cst.And) else "and"
    sides = []
    for side in (both.left, both.right):
        text = negated(place, side)
        tree = cst.parse_expression(text)
        loose = isinstance(tree, cst.BooleanOperation) and not tree.lpar
        sides.append(f"({text})" if loose else text)
    return f" {other} ".join(sides)


def _swapped(place: Place, rng: Random) -> Project | None:
    """Swap the arms of an `if` under the negated test."""
    node = place.statement
    if not isinstance(node, cst.If) or node.orelse is None:
        return None
    if isinstance(node.orelse, cst.If):
        no = place.lead(node.orelse) + place.bare(node.orelse)
    else:
        no = place.source(node.orelse.leading_lines) + place.suite(node.orelse.body)
    yes = place.suite(node.body)
    text = f"if {negated(place, node.test)}:\n{place.indented(no)}else:\n{place.indented(yes)}"
    return place.replaced(place.lead() + text)


def _split(place: Place, rng: Random) -> Project | None:
    """Turn `if a and b: A` into two nested ones; an `else` goes along only as a copy, so there is none."""
    node = place.statement
    if not isinstance(node, cst.If) or node.orelse is not None:
        return None
    test = node.test
    if not isinstance(test, cst.BooleanOperation) or not isinstance(test.operator, cst.And):
        return None
    outer = place.source(_bare(test.left))
    inner = f"if {place.source(_bare(test.right))}:\n{place.indented(place.suite(node.body))}"
    return place.replaced(f"{place.lead()}if {outer}:\n{place.indented(inner)}")


def _bare(test: cst.BaseExpression) -> cst.BaseExpression:
    return test.with_changes(lpar=(), rpar=()) if len(test.lpar) == 1 else test


def _merged(place: Place, rng: Random) -> Project | None:
    """Turn two nested `if` without `else` into one."""
    node = place.statement
    if not isinstance(node, cst.If) or node.orelse is not None or len(node.body.body) != 1:
        return None
    inner = node.body.body[0]
    if not isinstance(inner, cst.If) or inner.orelse is not None:
        return None
    test = " and ".join(_operand(place, each) for each in (node.test, inner.test))
    above = place.lead() + place.lead(inner)
    return place.replaced(f"{above}if {test}:\n{place.indented(place.suite(inner.body))}")


def _operand(place: Place, test: cst.BaseExpression) -> str:
    text = place.source(test)
    loose = isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.Or)
    other = isinstance(test, cst.IfExp | cst.Lambda | cst.NamedExpr)
    return f"({text})" if (loose or other) and not test.lpar else text


def _nested(place: Place, rng: Random) -> Project | None:
    """Turn an `elif` into an `else` that holds an `if`."""
    node = place.statement
    if not isinstance(node, cst.If) or not isinstance(node.orelse, cst.If):
        return None
    arms = [node]
    while isinstance(arms[-1].orelse, cst.If):
        arms.append(arms[-1].orelse)
    drawn = rng.choice(arms[1:])
    lead = place.lead(drawn)
    inner = cst.IndentedBlock(body=[drawn.with_changes(leading_lines=())])
    if lead.strip():
        return None
    new = node.deep_replace(drawn, cst.Else(body=inner))
    assert isinstance(new, cst.If)
    return place.exchanged([new])


def _chained(place: Place, rng: Random) -> Project | None:
    """Turn an `else` that holds only an `if` into an `elif`."""
    node = place.statement
    if not isinstance(node, cst.If) or not isinstance(node.orelse, cst.Else):
        return None
    held = node.orelse.body.body
    if len(held) != 1 or not isinstance(held[0], cst.If):
        return None
    if held[0].leading_lines or node.orelse.leading_lines:
        return None
    return place.exchanged([node.with_changes(orelse=held[0])])


def _into_arms(place: Place, rng: Random) -> Project | None:
    """Put the statements after an `if` into both of its arms."""
    node = place.statement
    if not isinstance(node, cst.If) or not place.rest or isinstance(node.orelse, cst.If):
        return None
    count = rng.randint(1, min(3, len(place.rest)))
    moved = place.rest[:count]
    if not all(isinstance(s, cst.SimpleStatementLine | cst.If | cst.With) for s in moved):
        return None
    text = place.source(moved)
    if escapes([node]) or "import" in text:
        return None
    yes = place.suite(node.body)
    no = place.suite(node.orelse.body) if node.orelse else ""
    above = place.source(node.orelse.leading_lines) if node.orelse else ""
    return place.replaced(
        f"{place.lead()}if {place.source(node.test)}:\n{place.indented(yes + text)}"
        f"{above}else:\n{place.indented(no + text)}",
        1 + count,
    )


def _out_of_arms(place: Place, rng: Random) -> Project | None:
    """Take the last statement that both arms share out of them."""
    node = place.statement
    if not isinstance(node, cst.If) or not isinstance(node.orelse, cst.Else):
        return None
    yes, no = node.body, node.orelse.body
    if not isinstance(yes, cst.IndentedBlock) or not isinstance(no, cst.IndentedBlock):
        return None
    if len(yes.body) < 2 or place.bare(yes.body[-1]) != place.bare(no.body[-1]):
        return None
    if place.lead(yes.body[-1]) != place.lead(no.body[-1]) or escapes([node]):
        return None
    shorter = yes.with_changes(body=yes.body[:-1])
    other = node.orelse.with_changes(body=no.with_changes(body=no.body[:-1]))
    new = node.with_changes(body=shorter, orelse=other if len(no.body) > 1 else None)
    return place.exchanged([new, yes.body[-1]])


def _twice(place: Place, rng: Random) -> Project | None:
    """Turn `if c: A; B` into two of the same test, kept in a variable."""
    node = place.statement
    if not isinstance(node, cst.If) or node.orelse is not None or len(node.body.body) < 2:
        return None
    if not isinstance(node.body, cst.IndentedBlock) or node.body.header.comment or escapes([node]):
        return None
    at = rng.randint(1, len(node.body.body) - 1)
    parts = place.source(node.body.body[:at]), place.source(node.body.body[at:])
    test = place.source(node.test)
    first = ""
    if not isinstance(node.test, cst.Name) or node.test.value in parts[0]:
        name = place.name(rng, "wanted", "chosen", "this_time", "verbose", "skip", "mode", "hit")
        first, test = f"{name} = {test}\n", name
    pieces = [f"if {test}:\n{place.indented(part)}" for part in parts]
    footer = place.indented(place.source(node.body.footer))
    return place.replaced(place.lead() + first + "".join(pieces) + footer)


def _whole_suite(place: Place, rng: Random) -> Project | None:
    """Write `if c: a` in one line where its arm is one short statement, or the other way round."""
    node = place.statement
    if not isinstance(node, cst.If) or node.orelse is not None:
        return None
    if isinstance(node.body, cst.SimpleStatementSuite):
        lines = [cst.SimpleStatementLine(body=[s]) for s in node.body.body]
        return place.exchanged([node.with_changes(body=cst.IndentedBlock(body=lines))])
    small = only(node.body.body[0]) if len(node.body.body) == 1 else None
    if small is None or "#" in place.bare() or "\n" in place.source(small):
        return None
    suite = cst.SimpleStatementSuite(body=[small])
    return place.exchanged([node.with_changes(body=suite)])


def _out_of_loop(place: Place, rng: Random) -> Project | None:
    """Ask a test that a loop does not change before the loop, which is written twice."""
    node = place.statement
    if not isinstance(node, cst.For | cst.While) or place.at_class_level:
        return None
    if any(isinstance(s, cst.FunctionDef | cst.ClassDef) for s in node.body.body):
        return None
    fit = [
        each
        for each in node.body.body
        if isinstance(each, cst.If) and unchanging(place, place.source(each.test), [node])
    ]
    if not fit or len(place.bare()) > 1500:
        return None
    asked = rng.choice(fit)
    yes = place.bare(_chosen(node, asked, asked.body))
    orelse = asked.orelse
    rest = orelse.body if isinstance(orelse, cst.Else) else orelse
    no = place.bare(_chosen(node, asked, rest))
    test = place.source(asked.test)
    text = f"if {test}:\n{place.indented(yes)}else:\n{place.indented(no)}"
    return place.replaced(place.lead() + text)


def _chosen(
    loop: cst.For | cst.While, asked: cst.If, arm: cst.BaseSuite | cst.If | None
) -> cst.For | cst.While:
    """Return a loop with one arm in place of an `if` of its body."""
    held: list[cst.BaseStatement] = []
    for each in loop.body.body:
        if each is not asked:
            held.append(each)  # type: ignore[arg-type]
        elif isinstance(arm, cst.If):
            held.append(arm.with_changes(leading_lines=asked.leading_lines))
        elif isinstance(arm, cst.IndentedBlock):
            first = arm.body[0]
            lines = [*asked.leading_lines, *getattr(first, "leading_lines", ())]
            held += [first.with_changes(leading_lines=lines), *arm.body[1:]]  # type: ignore[list-item]
        elif isinstance(arm, cst.SimpleStatementSuite):
            held.append(cst.SimpleStatementLine(arm.body, leading_lines=asked.leading_lines))
    body = held or [cst.SimpleStatementLine([cst.Pass()])]
    return loop.with_changes(body=loop.body.with_changes(body=body))


_NESTING = any_of(_split, _merged, _nested, _chained, _out_of_arms)

REFACTORINGS = tuple(
    Refactoring(name, "control", somewhere(change, *kinds))
    for name, change, kinds in (
        ("de Morgan's law in a test", _de_morgan, (cst.If, cst.While)),
        ("the arms of an if are swapped", _swapped, (cst.If,)),
        ("ifs are merged, split, nested or chained", _NESTING, (cst.If,)),
        ("what follows an if goes into its arms", _into_arms, (cst.If,)),
        ("an if becomes two of the same test", _twice, (cst.If,)),
        ("an if stands in one line", _whole_suite, (cst.If,)),
        ("an if becomes one around its loop", _out_of_loop, (cst.For, cst.While)),
    )
)
