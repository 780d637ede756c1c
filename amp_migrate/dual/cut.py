"""What goes from a program that has a way without Apex, and what is left of it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from amp_migrate.apex.sites import Site
from amp_migrate.availability.availability import Availability
from amp_migrate.dual.arms import Arm
from amp_migrate.project import Module, Project

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Given(NamedTuple):
    """The uses of Apex of a unit, and those of its whole project, with what is known in each file."""

    project: Project
    availability: Mapping[Module, Availability]
    found: list[Site]
    everywhere: list[Site]


@dataclass(frozen=True, eq=False, slots=True)
class Cut:
    """What goes: arms of tests, definitions that only they use, imports of those, and guards of imports.

    Of `tries` a handler, by its number, takes the place of the statement; of `tests` stays what asks for nothing of Apex.
    Imports in the handlers of a guard stay.

    `raising` are the arms whose runs raise from now on, `along` those that no run comes to any more. `flags` are read by what stays too, and stay False.
    `why` says by which right, `behind` what becomes of a run that took an arm which does not raise, in the chains of the `noticed` ones; `sites` are
    the uses of Apex in all of it.
    """

    why: str
    sites: tuple[Site, ...]
    arms: tuple[Arm, ...]
    behind: str = ""
    noticed: tuple[Arm, ...] = ()
    raising: tuple[Arm, ...] = ()
    along: tuple[Arm, ...] = ()
    definitions: tuple[tuple[Module, Definition], ...] = ()
    aliases: tuple[tuple[Module, ast.ImportFrom, str], ...] = ()
    guards: tuple[tuple[Module, ast.Try], ...] = ()
    flags: tuple[tuple[Module, str], ...] = ()
    tries: tuple[tuple[Module, ast.Try, int], ...] = ()
    tests: tuple[tuple[Module, ast.expr, str], ...] = ()

    def nodes(self) -> set[ast.AST]:
        """Return every node that goes."""
        found = {node for arm in self.arms for node in arm.nodes()}
        for _, node in (*self.definitions, *self.guards):
            found |= set(ast.walk(node))
        found -= {
            n for _, guard in self.guards for s in imports_instead(guard) for n in ast.walk(s)
        }
        for _, node, number in self.tries:
            kept = {n for stmt in node.handlers[number].body for n in ast.walk(stmt)}
            found |= set(ast.walk(node)) - kept
        return found

    def raising_in(self, paths: Collection[str]) -> Cut | None:
        """Return what goes where every branch in some files raises; None where one is an expression, or a flag stays."""
        arms = [arm for arm in self.outermost() if arm.module.path in paths]
        if self.flags or self.tries or any(isinstance(arm.node, ast.IfExp) for arm in arms):
            return None
        more = [arm for arm in arms if arm not in (*self.raising, *self.along)]
        return replace(self, raising=(*self.raising, *more))

    def outermost(self) -> list[Arm]:
        """Return the arms that stand in nothing else that goes."""
        inner = {n for arm in self.arms for part in arm.parts() for n in ast.walk(part)}
        for _, node in self.definitions:
            inner |= set(ast.walk(node))
        return [arm for arm in self.arms if arm.node not in inner]


def imports_instead(guard: ast.Try) -> list[ast.stmt]:
    """Return what the handlers of a guard import instead of Apex."""
    handled = [stmt for handler in guard.handlers for stmt in handler.body]
    return [stmt for stmt in handled if isinstance(stmt, ast.Import | ast.ImportFrom)]


def importing(
    modules: list[Module], names: set[str], gone: set[ast.AST]
) -> tuple[tuple[Module, ast.ImportFrom, str], ...] | None:
    """Return the imports of definitions that go; None where something that stays mentions one of them."""
    found = []
    for module in modules if names else ():
        mentioned: list[ast.AST] = [n for n in module.tree.nodes(ast.Name) if n.id in names]
        mentioned += module.tree.attributes(*names)
        mentioned += [n for n in module.tree.nodes(ast.Constant) if n.value in names]
        if any(node not in gone for node in mentioned):
            return None
        for statement in module.tree.nodes(ast.ImportFrom):
            if statement not in gone:
                found += [(module, statement, a.name) for a in statement.names if a.name in names]
    return tuple(found)
