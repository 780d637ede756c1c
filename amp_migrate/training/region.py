"""Statements that autocast must cover, and what a search for them finds."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from amp_migrate.facts.below import every
from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import walk
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.order import position
from amp_migrate.project.reach import reachable

Part = tuple[Function, ast.AST]
"""A statement or an expression, with the function that it stands in."""


@dataclass(frozen=True, eq=False, slots=True)
class Region:
    """Sibling statements `first` to `last` of one block that compute a loss."""

    module: Module
    function: Function
    first: ast.stmt
    last: ast.stmt

    def statements(self) -> list[ast.stmt]:
        """Return the statements of the region in order."""
        tree = self.module.tree
        return tree.block(self.first)[position(tree, self.first) : position(tree, self.last) + 1]


@dataclass(slots=True)
class Search:
    """What a search found: regions, and whether one of them runs a network.

    `inlines` are arguments and results that compute a loss themselves, with the functions that they stand in, of which
    `outputs` only run a network for one;
    `apart` are statements behind another backward, a step or zero_grad that only compute with what is known.
    """

    regions: list[Region] = field(default_factory=list)
    network: bool = False
    inlines: list[tuple[Function, ast.expr]] = field(default_factory=list)
    outputs: list[ast.expr] = field(default_factory=list)
    elsewhere: list[Region] = field(default_factory=list)
    apart: list[list[ast.stmt]] = field(default_factory=list)

    def take(self, other: Search) -> None:
        """Add what another search found."""
        self.regions += other.regions
        self.inlines += other.inlines
        self.outputs += other.outputs
        self.network = self.network or other.network


def nodes_in(regions: Iterable[Region]) -> set[ast.AST]:
    """Return all nodes in the statements of some regions, nested functions included."""
    return {n for r in regions for stmt in r.statements() for n in every(stmt)}


def calls_in(regions: Iterable[Region]) -> Iterator[tuple[Module, ast.Call]]:
    """Yield the calls that some regions make themselves, each with its file."""
    return calls_of(parts_of(regions))


def parts_of(regions: Iterable[Region]) -> Iterator[Part]:
    """Yield the statements of some regions."""
    return ((region.function, stmt) for region in regions for stmt in region.statements())


def calls_of(parts: Iterable[Part]) -> Iterator[tuple[Module, ast.Call]]:
    """Yield the calls that some parts make themselves, each with its file."""
    for function, part in parts:
        yield from ((function.module, n) for n in walk(part) if isinstance(n, ast.Call))


def functions_run(project: Project, module: Module, call: ast.Call) -> list[Function]:
    """Return the functions that a call runs, the `forward` of the networks and criteria among them."""
    return [*project.callees(call), *project.methods(module, call.func, "forward")]


def forwards_run(project: Project, function: Function, part: ast.AST) -> Iterator[Function]:
    """Yield the `forward` of the modules of the project that a part of a function calls."""
    for _, call in calls_of([(function, part)]):
        yield from project.methods(function.module, call.func, "forward")


def run_below(project: Project, function: Function) -> Iterator[Function]:
    """Yield the functions that the calls of a function run."""
    for call in function.calls:
        yield from functions_run(project, function.module, call)


def run_in(project: Project, regions: Iterable[Region]) -> set[Function]:
    """Return the functions that run in some regions, directly or not."""
    return run_by(project, calls_in(regions))


def run_by(project: Project, calls: Iterable[tuple[Module, ast.Call]]) -> set[Function]:
    """Return the functions that some calls run, directly or not."""
    starts = (f for module, call in calls for f in functions_run(project, module, call))
    return run_with(project, starts)


def run_with(project: Project, functions: Iterable[Function]) -> set[Function]:
    """Return some functions and those that they run, directly or not."""

    def onward(function: Function) -> Iterator[Function]:
        yield from reachable(project, function)
        yield from run_below(project, function)

    return set(closure(functions, onward))
