"""Calls whose result grows by the scaler, where the function that makes it hands it back."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from amp_migrate.apex.options import arguments
from amp_migrate.apex.sites import Site
from amp_migrate.apex.unpacked.entries import entries
from amp_migrate.facts.paths import defs, path, same, uses, walk
from amp_migrate.facts.tree import Tree
from amp_migrate.plan.model import Edit, ReplaceExpression
from amp_migrate.project import Function, Project
from amp_migrate.project.order import comes_to, dominates, in_branch, inside, levels
from amp_migrate.project.rounds import runs_before
from amp_migrate.training.contexts import stops_exceptions
from amp_migrate.training.origins.constants import constant_of
from amp_migrate.training.origins.meant import meant
from amp_migrate.training.origins.reaching import reaching

SPARE = "_"
Settings = tuple[list[ast.AST], dict[str, ast.expr]]
_OBJECTS = ("models", "optimizers")


@dataclass(frozen=True, eq=False, slots=True)
class Receiver:
    """A call whose result grows by the scaler: `name` is what it is unpacked into."""

    function: Function
    call: ast.Call
    name: str

    @property
    def tree(self) -> Tree:
        """The tree that holds the call."""
        return self.function.module.tree

    @property
    def statement(self) -> ast.stmt:
        """The assignment of the result."""
        return self.tree.statement(self.call)

    @property
    def other_arm(self) -> ast.expr | None:
        """What is assigned instead of the result where ``call() if test else ...`` stands."""
        return _other_arm(self.function, self.call)

    def settles(self, needed: Iterable[ast.AST]) -> bool:
        """Tell whether this call has always run, and given the scaler, where the scaler is used."""
        if self.other_arm is not None:
            return False
        if "." in self.name:
            return self.tree.block(self.statement) is self.function.scope.body
        return all(dominates(self.tree, self.statement, use) for use in needed)

    def edits(self) -> Iterator[tuple[str, Edit]]:
        """Yield the edits that take the scaler out of the result."""
        statement = self.statement
        assert isinstance(statement, ast.Assign)
        path, target = self.function.module.path, statement.targets[0]
        text = f"{bare(self.tree.segment(target))}, {self.name}"
        yield path, ReplaceExpression(self.tree.span(target), text)
        other = self.other_arm
        if other is not None:
            longer = f"({bare(self.tree.segment(other))}, None)"
            yield path, ReplaceExpression(self.tree.span(other), longer)


def receives(function: Function, call: ast.Call) -> int | None:
    """Return into how many targets the result of a call is unpacked, 0 for one that takes it whole; None for neither."""
    tree = function.module.tree
    statement = tree.statement(call)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    other = _other_arm(function, call)
    if other is None and statement.value is not call:
        return None
    target = statement.targets[0]
    if isinstance(target, ast.Tuple):
        count = _length(target)
        return count if other is None or count == _length(other) else None
    return 0 if other is None and isinstance(target, ast.Name | ast.Attribute) else None


def is_object(function: Function, call: ast.Call) -> bool:
    """Tell whether the result of a call is called, or asked for attributes, in its function: no tuple is."""
    statement = function.module.tree.statement(call)
    names = {path(target) for target in getattr(statement, "targets", [])} - {None}
    used = [
        node.value if isinstance(node, ast.Attribute) else node.func
        for node in function.own_nodes
        if isinstance(node, ast.Attribute | ast.Call)
    ]
    return any(path(node) in names for node in used)


def apart_by_test(tree: Tree, nodes: Sequence[ast.AST], other: ast.AST) -> bool:
    """Tell whether one branch of a test holds some nodes, and another one not."""
    return any(
        isinstance(level, ast.If)
        and any(
            all(in_branch(tree, node, branch) for node in nodes)
            and not in_branch(tree, other, branch)
            for branch in (level.body, level.orelse)
        )
        for level in levels(tree, nodes[0])
    )


def gives(returned: ast.expr, initialize: bool) -> int | None:
    """Return how many values a function returns, 0 for one that is no display of several."""
    return 2 if initialize else _length(returned) if isinstance(returned, ast.Tuple) else 0


def settings(
    project: Project, callee: Function, sites: list[Site], given: Mapping[str, ast.expr]
) -> Settings:
    """Return whether and how a call of a function initializes, as far as it is written, and what it is given for that.

    `sites` are the initializes of the function. Where it calls another function, everything that it is given decides.
    """
    if not sites:
        return [callee.scope], dict(given)
    asked: list[ast.AST] = []
    for site in sites:
        asked += [
            level.test for level in levels(site.module.tree, site.node) if isinstance(level, ast.If)
        ]
        options = {n: node for n, node in arguments(site.call)[0].items() if n not in _OBJECTS}
        for mapping in (k.value for k in site.call.keywords if k.arg is None):
            held = entries(project, site.module, mapping, site.call)
            options |= held or {}
            asked += [mapping] if held is None else []
        known = partial(constant_of, project, reaching(project), callee, through_calls=False)
        asked += [ast.keyword(n, known(node) or node) for n, node in sorted(options.items())]
    names = {name for node in asked for name in uses(node)}
    assigned = [n for n in callee.own_nodes if isinstance(n, ast.Assign)]
    for _ in assigned:
        names |= {name for stmt in assigned if defs(stmt) & names for name in uses(stmt.value)}
    asked += [stmt for stmt in assigned if defs(stmt) & names]
    asked += [value for node in asked for value in _around(project, callee, node)]
    return asked, {name: node for name, node in given.items() if name in names}


def _around(project: Project, callee: Function, node: ast.AST) -> Iterator[ast.expr]:
    """Yield what was assigned to the variables around a function that a node of it reads."""
    scopes = callee.module.scopes
    for name in walk(node):
        if isinstance(name, ast.Name) and scopes.owner(name) is not callee.scope:
            yield from (v for v in meant(project, callee.module, name) if v is not None)


def alike(one: Settings, other: Settings) -> bool:
    """Tell whether two calls are written to initialize in the same way."""
    pairs = zip(one[0], other[0], strict=False)
    told = len(one[0]) == len(other[0]) and all(same(*pair) for pair in pairs)
    return (
        told
        and one[1].keys() == other[1].keys()
        and all(same(v, other[1][n]) for n, v in one[1].items())
    )


def superseded(
    project: Project, receiver: Receiver, others: Iterable[Receiver], needed: list[ast.AST]
) -> bool:
    """Tell whether a later call in the same function gives the scaler that is used, as the last initialize did.

    A call that is made on one arm of an expression gives way to any other.
    """
    return any(
        other.function is receiver.function
        and (
            receiver.other_arm is not None
            or runs_before(project, receiver.function, receiver.call, other.call)
        )
        and other.settles(needed)
        for other in others
    )


def on_every_way(level: ast.stmt, receivers: list[Receiver]) -> bool:
    """Tell whether every branch of an ``if`` has a call that gives the scaler."""
    calls = {r.statement for r in receivers if r.other_arm is None}
    return comes_to([level], lambda stmt: stmt in calls)


def above(receiver: Receiver, needed: list[ast.AST]) -> ast.stmt:
    """Return the statement around a call that comes before every use, else the outermost one."""
    top = receiver.statement
    for level in levels(receiver.tree, top):
        top = level
        if all(dominates(receiver.tree, level, use) for use in needed):
            break
    return top


def has_given(project: Project, receiver: Receiver, use: ast.AST) -> bool:
    """Tell whether a call has given the scaler where a use stands: it, or a block around it that lets exceptions out, comes first."""
    statement: ast.AST = receiver.statement
    while isinstance(statement, ast.stmt):
        if dominates(receiver.tree, statement, use):
            return True
        statement = receiver.tree.holder(statement)
        if not isinstance(statement, ast.With | ast.AsyncWith):
            return False
        if any(stops_exceptions(project, item.context_expr) for item in statement.items):
            return False
    return False


def outlasting(receiver: Receiver, top: ast.stmt, receivers: Iterable[Receiver]) -> ast.stmt:
    """Return the loop around a statement whose later rounds go on with what a call gave, else the statement itself."""
    given = defs(receiver.statement)
    calls = {r.statement for r in receivers}
    for level in levels(receiver.tree, top):
        if isinstance(level, ast.For | ast.AsyncFor | ast.While):
            parts: list[ast.AST] = [
                p for p in walk(level) if isinstance(p, ast.stmt) and not hasattr(p, "body")
            ]
            parts += [p.target for p in walk(level) if isinstance(p, ast.For | ast.AsyncFor)]
            own = set[str]().union(*(defs(part) for part in parts if part not in calls))
            top = level if given.isdisjoint(own) else top
    return top


def bare(text: str) -> str:
    """Take the parentheses off a tuple that stands in them."""
    if (
        text.startswith("(")
        and text.endswith(")")
        and isinstance(ast.parse(text, mode="eval").body, ast.Tuple)
    ):
        return text[1:-1].rstrip(", ")
    return text


def _other_arm(function: Function, call: ast.Call) -> ast.expr | None:
    tree = function.module.tree
    chosen = tree.parent(call)
    statement = tree.statement(call)
    if not isinstance(chosen, ast.IfExp) or not isinstance(statement, ast.Assign):
        return None
    if statement.value is not chosen or inside(tree, call, chosen.test):
        return None
    return chosen.orelse if call is chosen.body else chosen.body


def _length(node: ast.expr) -> int | None:
    if not isinstance(node, ast.Tuple) or any(isinstance(e, ast.Starred) for e in node.elts):
        return None
    return len(node.elts)
