"""Reads comprehensions and generator expressions into points."""

from __future__ import annotations

import ast
from typing import ClassVar

from amp_migrate.facts.paths import stored
from amp_migrate.flow.cfg.expressions import Expressions
from amp_migrate.flow.cfg.points import EdgeKind, Kind
from amp_migrate.flow.cfg.sketch import End

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp


class Comprehensions(Expressions):
    """Adds comprehensions, which loop at once, and generator expressions, which are defined."""

    READERS: ClassVar[dict[type[ast.AST], str]] = {
        **Expressions.READERS,
        ast.ListComp: "_comprehension",
        ast.SetComp: "_comprehension",
        ast.DictComp: "_comprehension",
        ast.GeneratorExp: "_generator",
    }

    def _generator(self, node: ast.GeneratorExp) -> None:
        self.value(node.generators[0].iter)
        self.sketch.add(Kind.DEFINE, node)
        if self.at_once:
            self.turns(node, node.generators)

    def _comprehension(self, node: Comprehension) -> None:
        self.value(node.generators[0].iter)
        self.turns(node, node.generators)

    def turns(
        self, node: Comprehension | ast.GeneratorExp, generators: list[ast.comprehension]
    ) -> None:
        """Run the loops of a comprehension whose first iterable is evaluated."""
        self.inner.append(
            frozenset(name for item in node.generators for name in stored(item.target))
        )
        self._turn(node, generators)
        self.inner.pop()

    def _turn(
        self, node: Comprehension | ast.GeneratorExp, generators: list[ast.comprehension]
    ) -> None:
        if not generators:
            if isinstance(node, ast.DictComp):
                self.values((node.key, node.value))
            else:
                self.value(node.elt)
            if isinstance(node, ast.GeneratorExp) and not self.at_once:
                self.sketch.add(Kind.YIELD, node)
            return
        first, *rest = generators
        head = self.sketch.add(Kind.NEXT, first)
        item, done = self.ways(head, None)
        self.sketch.ends = item
        self.bind(first.target)
        skipped: list[End] = []
        for condition in first.ifs:
            true, false = self.test(condition)
            self.sketch.ends = true
            skipped = skipped + false
        if rest:
            self.value(rest[0].iter)
        self._turn(node, rest)
        self.sketch.join(self.sketch.ends + skipped, head, EdgeKind.LOOP)
        self.sketch.ends = done
