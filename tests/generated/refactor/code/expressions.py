"""Expressions at the head of a statement: where they stand, and how they are replaced."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

import libcst as cst

from generated.refactor.code.blocks import Block, blocks, mentions
from generated.refactor.code.scopes import TRAINING, Place
from generated.refactor.code.writing import blank_lines, gap
from generated.refactor.project import Project

_LATER = cst.Lambda | cst.ListComp | cst.SetComp | cst.DictComp | cst.GeneratorExp
_MAYBE = cst.IfExp | cst.BooleanOperation


@dataclass(frozen=True)
class Spot:
    """An expression that is evaluated once whenever its statement begins; `place` is that statement."""

    place: Place
    node: cst.BaseExpression

    @property
    def statement(self) -> cst.BaseStatement:
        """The statement at whose head the expression stands."""
        return self.place.run[0]

    def replaced(
        self, new: cst.BaseExpression, above: Sequence[cst.BaseStatement] = ()
    ) -> cst.Module:
        """Return the module with another expression, and statements right above."""
        changed = self.statement.deep_replace(self.node, new)
        assert isinstance(changed, cst.BaseStatement)
        if not above:
            return self.put([changed])
        first = gap(above[0], blank_lines(self.statement))
        comments = [line for line in getattr(changed, "leading_lines", ()) if line.comment]
        if comments:
            first = first.with_changes(leading_lines=[*first.leading_lines, *comments])  # type: ignore[attr-defined]
        return self.put([first, *above[1:], changed.with_changes(leading_lines=())])

    def put(self, new: Sequence[cst.BaseStatement]) -> cst.Module:
        """Return the module with other statements in the place of the statement."""
        from generated.refactor.code.blocks import put

        place = self.place
        return put(place.module, place.block, place.start, place.stop, new)


def spots(
    project: Project,
    rng: Random,
    wanted: Callable[[cst.BaseExpression], bool],
    fits: Callable[[Block], bool] = lambda block: True,
    tries: int = 40,
) -> Iterator[Spot]:
    """Yield expressions of statements in a random order; in three of four orders those of the training come first."""
    statements = [
        Place(path, project.module(path), block, k, k + 1)
        for path in project.files
        for block in blocks(project.module(path))
        if fits(block)
        for k, statement in enumerate(block.body)
        if not isinstance(statement, cst.FunctionDef | cst.ClassDef)
    ]
    rng.shuffle(statements)
    found = (
        Spot(place, node) for place in statements for node in _drawn(place.run[0], wanted, rng)
    )
    if rng.random() < 0.25:
        for _, spot in zip(range(tries), found, strict=False):
            yield spot
        return
    rest: list[Spot] = []
    for spot in found:
        if mentions(spot.node, *TRAINING):
            yield spot
            tries -= 1
        else:
            rest.append(spot)
        if not tries:
            return
    yield from rest[:tries]


def _drawn(
    statement: cst.CSTNode, wanted: Callable[[cst.BaseExpression], bool], rng: Random
) -> list[cst.BaseExpression]:
    nodes = [node for node in at_once(statement) if wanted(node)]
    rng.shuffle(nodes)
    return nodes


def at_once(statement: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """Yield the expressions that run whenever a statement begins: not those of its blocks, lambdas and loops."""
    for head in _heads(statement):
        yield from _inside(head)


def _heads(statement: cst.CSTNode) -> Iterator[cst.CSTNode]:
    if isinstance(statement, cst.SimpleStatementLine):
        if len(statement.body) == 1:
            small = statement.body[0]
            value = getattr(small, "value", None)
            if isinstance(value, cst.BaseExpression):
                yield value
    elif isinstance(statement, cst.If):
        yield statement.test
    elif isinstance(statement, cst.For):
        yield statement.iter
    elif isinstance(statement, cst.With):
        yield statement.items[0].item


def _inside(node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    if isinstance(node, _LATER | cst.Await | cst.Yield | cst.BaseString):
        return
    if isinstance(node, cst.BaseExpression):
        yield node
    children: Sequence[cst.CSTNode] = node.children
    if isinstance(node, cst.IfExp):
        children = [node.test]
    elif isinstance(node, cst.BooleanOperation) or (
        isinstance(node, cst.Comparison) and len(node.comparisons) > 1
    ):
        children = [node.left]
    for child in children:
        yield from _inside(child)


def simple(node: cst.CSTNode) -> bool:
    """Tell whether an expression only looks up names, attributes and constants, or computes with them."""
    calm = (
        ast.Name
        | ast.Attribute
        | ast.Constant
        | ast.Subscript
        | ast.UnaryOp
        | ast.BinOp
        | ast.Compare
        | ast.BoolOp
        | ast.IfExp
        | ast.Tuple
        | ast.List
        | ast.expr_context
        | ast.operator
        | ast.unaryop
        | ast.cmpop
        | ast.boolop
        | ast.Expression
        | ast.Module
        | ast.Expr
    )
    from generated.refactor.code.names import tree

    return all(isinstance(n, calm) for n in ast.walk(tree(node)))
