"""Edits of random programs do to the source what the same operations do to the `ast`."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from amp_migrate.facts.tree import Tree
from amp_migrate.plan.model import AddImport, Drop, Edit, Hoist, Insert, Move, Wrap
from amp_migrate.rewrite import rewrite
from amp_migrate.source.span import Span
from rewrite.programs import Writer

_FIELDS = ("body", "orelse", "finalbody")


def comments(text: str) -> Counter[str]:
    """Return the comments of a program."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Counter(token.string for token in tokens if token.type == tokenize.COMMENT)


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield every statement list below a node."""
    for inner in ast.walk(node):
        for name in _FIELDS:
            value = getattr(inner, name, None)
            if isinstance(value, list):
                yield value


@dataclass
class Model:
    """A program as `ast`, on which the operations of a plan are carried out by hand."""

    tree: Tree
    edits: list[Edit] = field(default_factory=list)
    taken: set[ast.stmt] = field(default_factory=set)
    lost: list[Span] = field(default_factory=list)

    def home(self, statement: ast.stmt) -> list[ast.stmt]:
        """Return the list that holds a statement now."""
        return next(b for b in blocks(self.tree.module) if statement in b)

    def free(self, statement: ast.stmt) -> bool:
        """Tell whether no operation concerns a statement, what holds it or what it holds."""
        span = self.tree.span(statement)
        return not any(
            span.contains(self.tree.span(t)) or self.tree.span(t).contains(span) for t in self.taken
        )

    def drop(self, statement: ast.stmt) -> None:
        self.edits.append(Drop(self.tree.span(statement)))
        self.home(statement).remove(statement)
        self.lose(statement)

    def lose(self, statement: ast.stmt) -> None:
        """Note the lines of a statement that is removed, with the comments that end its blocks."""
        span = self.tree.span(statement)
        end = span.end_line
        for line in self.tree.lines[span.end_line :]:
            deeper = len(line) - len(line.lstrip()) > span.column
            if line and not (deeper and line.lstrip().startswith("#")):
                break
            end += 1
        decorators = getattr(statement, "decorator_list", [])
        start = min([span.line, *(d.lineno for d in decorators)])
        self.lost.append(span._replace(line=start, end_line=end))

    def wrap(self, statement: ast.stmt) -> None:
        home = self.home(statement)
        at = home.index(statement)
        last = home[at]
        if at + 1 < len(home) and self.tree_has(home[at + 1]) and self.free(home[at + 1]):
            last = home[at + 1]
            self.taken.add(last)
        header = ast.parse("with w:\n    pass").body[0]
        assert isinstance(header, ast.With)
        header.body = [statement] if last is statement else [statement, last]
        self.edits.append(Wrap(self.tree.span(statement), self.tree.span(last), "with w:"))
        home[at : at + len(header.body)] = [header]

    def insert(self, statement: ast.stmt, after: bool) -> None:
        home = self.home(statement)
        home.insert(home.index(statement) + after, ast.parse("new()").body[0])
        self.edits.append(Insert(self.tree.span(statement), "new()", after))

    def hoist(self, statement: ast.stmt, random: Random) -> None:
        names = [n for n in _FIELDS if getattr(statement, n, None)]
        if not names:
            return self.drop(statement)
        name = random.choice(names)
        kept = getattr(statement, name)
        self.edits.append(Hoist(self.tree.span(statement), name))
        home = self.home(statement)
        at = home.index(statement)
        home[at : at + 1] = kept
        self.lose(statement)
        return None

    def move(self, statement: ast.stmt, anchor: ast.stmt, after: bool, inside: str | None) -> None:
        if not isinstance(anchor, (ast.If, ast.For, ast.With, ast.FunctionDef, ast.Try)):
            inside = None
        spans = self.tree.span(statement), self.tree.span(anchor)
        self.edits.append(Move(*spans, after, inside))
        self.home(statement).remove(statement)
        if inside is not None:
            assert isinstance(anchor, (ast.If, ast.For, ast.With, ast.FunctionDef, ast.Try))
            anchor.body.insert(0 if inside == "start" else len(anchor.body), statement)
        else:
            home = self.home(anchor)
            home.insert(home.index(anchor) + after, statement)

    def tree_has(self, statement: ast.stmt) -> bool:
        """Tell whether a statement was in the source."""
        return hasattr(statement, "lineno") and statement in self.tree.parents

    def dump(self) -> str:
        """Return the tree with ``pass`` in the blocks that lost their statements."""
        for node in ast.walk(self.tree.module):
            if hasattr(node, "body") and node.body == [] and not isinstance(node, ast.Module):
                node.body = [ast.Pass()]
            if isinstance(node, ast.Try) and not node.handlers and not node.finalbody:
                node.finalbody = [ast.Pass()]
        return ast.dump(self.tree.module)


def planned(model: Model, random: Random) -> None:
    """Carry out a few operations that do not concern each other."""
    every = [n for n in ast.walk(model.tree.module) if isinstance(n, ast.stmt)]
    for _ in range(random.randint(1, 4)):
        statement = random.choice(every)
        if not model.free(statement):
            continue
        kind = random.choice(["drop", "wrap", "insert", "hoist", "move"])
        others = [
            s
            for s in every
            if model.free(s) and not model.tree.span(statement).contains(model.tree.span(s))
        ]
        model.taken.add(statement)
        if kind == "drop":
            model.drop(statement)
        elif kind == "wrap":
            model.wrap(statement)
        elif kind == "insert":
            model.insert(statement, random.random() < 0.5)
        elif kind == "hoist":
            model.hoist(statement, random)
        elif others:
            anchor = random.choice(others)
            if model.tree.span(anchor).contains(model.tree.span(statement)):
                model.move(statement, anchor, random.random() < 0.5, None)
            else:
                model.taken.add(anchor)
                model.move(
                    statement, anchor, random.random() < 0.5, random.choice([None, "start", "end"])
                )


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False))
def test_no_edit_no_change(random: Random) -> None:
    """A file without edits keeps every byte, and so does one whose edits add nothing."""
    text = "import os\n" + Writer(random).program()

    assert rewrite(text, [AddImport("import os")]) == text


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=False))
def test_edits_do_what_they_do_to_the_ast(random: Random) -> None:
    """The result parses to the edited tree, and no comment is lost but with what is removed."""
    text = Writer(random).program()
    model = Model(Tree("program.py", text))
    planned(model, random)

    result = rewrite(text, model.edits)

    assert ast.dump(ast.parse(result)) == model.dump(), (text, model.edits, result)
    kept = comments(result)
    lines = text.split("\n")
    removed = [line for span in model.lost for line in lines[span.line - 1 : span.end_line]]
    missing = comments(text) - kept
    assert all(any(line.endswith(c) for line in removed) for c in missing), (
        text,
        model.edits,
        result,
    )
    assert not kept - comments(text)
