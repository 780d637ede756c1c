"""Programs that choose Apex where it is installed and native AMP otherwise: what is left of them without Apex."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.availability.availability import Availability
from amp_migrate.availability.installed import imports_apex
from amp_migrate.dual.dual import is_native
from amp_migrate.project import Module, Project
from amp_migrate.unit.order import inside

_HANDLER = (ast.Assign, ast.Pass)
Definition = ast.FunctionDef | ast.ClassDef


@dataclass(eq=False)
class Fallback:
    """What goes: tests that only Apex makes true, definitions that only they use, imports and their guards.

    `flags` are read by what stays too, and stay False.
    """

    sites: list[Site]
    tests: list[tuple[Module, ast.If]] = field(default_factory=list)
    definitions: list[tuple[Module, Definition]] = field(default_factory=list)
    guards: list[tuple[Module, ast.Try]] = field(default_factory=list)
    aliases: list[tuple[Module, ast.ImportFrom, str]] = field(default_factory=list)
    flags: list[tuple[Module, str]] = field(default_factory=list)

    def nodes(self) -> set[ast.AST]:
        """Return every node that goes."""
        found: set[ast.AST] = set()
        for _, test in self.tests:
            found |= {n for stmt in test.body for n in ast.walk(stmt)} | set(ast.walk(test.test))
        for _, node in [*self.definitions, *self.guards]:
            found |= set(ast.walk(node))
        return found


def fallback(
    project: Project,
    availability: Mapping[Module, Availability],
    found: list[Site],
    everywhere: Iterable[Site],
) -> Fallback | None:
    """Return what goes from a unit whose program has a native way for when Apex is missing; None for others."""
    modules = list(dict.fromkeys(site.module for site in found))
    result = Fallback([s for s in everywhere if s.module in modules])
    for module in modules:
        flags = availability[module].flags
        guards = [node for node in module.tree.nodes(ast.Try) if _is_guard(node)]
        if not flags and not guards:
            return None
        result.guards += [(module, node) for node in guards]
        result.tests += [(module, node) for node in _never(module, flags)]
    if not any(_leads_to_native(project, module, test) for module, test in result.tests):
        return None
    if not _settle_definitions(project, result) or not _complete(result, availability):
        return None
    return result


def _is_guard(node: ast.Try) -> bool:
    """Tell whether a `try` imports Apex, and goes on without it: ``amp = None``, ``has_apex = False``."""
    simple = all(isinstance(s, ast.Import | ast.ImportFrom | ast.Assign) for s in node.body)
    handled = all(isinstance(s, _HANDLER) for h in node.handlers for s in h.body)
    return imports_apex(node.body) and simple and handled and not node.orelse + node.finalbody


def _never(module: Module, flags: frozenset[str]) -> list[ast.If]:
    """Return the tests that are false without Apex, those of values that only such tests set included."""
    tests = list(module.tree.nodes(ast.If))
    unknown = _unknown(module)
    dead: list[ast.If] = []
    while True:
        inside = {n for test in dead for stmt in test.body for n in ast.walk(stmt)}
        gone = _values(n for n in inside if isinstance(n, ast.Assign))
        gone -= _values(n for n in module.tree.nodes(ast.Assign) if n not in inside)
        gone = {pair for pair in gone if pair[0] not in unknown}
        more = [t for t in tests if t not in dead and _is_false(t.test, flags, gone)]
        if not more:
            return dead
        dead += more


def _values(assignments: Iterable[ast.Assign]) -> set[tuple[str, object]]:
    return {
        (target.id, node.value.value)
        for node in assignments
        if isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _unknown(module: Module) -> set[str]:
    """Return the variables that get anything else than constants."""
    plain = {
        target
        for node in module.tree.nodes(ast.Assign)
        if isinstance(node.value, ast.Constant)
        for target in node.targets
    }
    return {
        node.id
        for node in module.tree.nodes(ast.Name)
        if isinstance(node.ctx, ast.Store) and node not in plain
    }


def _is_false(test: ast.expr, flags: frozenset[str], gone: set[tuple[str, object]]) -> bool:
    if isinstance(test, ast.Name):
        return test.id in flags
    if isinstance(test, ast.BoolOp):
        parts = [_is_false(value, flags, gone) for value in test.values]
        return any(parts) if isinstance(test.op, ast.And) else all(parts)
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq) and len(test.ops) == 1:
        left, right = test.left, test.comparators[0]
        return (
            isinstance(left, ast.Name)
            and isinstance(right, ast.Constant)
            and (left.id, right.value) in gone
        )
    return False


def _leads_to_native(project: Project, module: Module, test: ast.If) -> bool:
    """Tell whether the other branches of a test set native AMP up."""
    return any(
        is_native(project, module, node)
        or (
            isinstance(node, ast.Name | ast.Attribute)
            and (project.external(module, node) or "").startswith(("torch.cuda.amp.", "torch.amp."))
        )
        for stmt in test.orelse
        for node in ast.walk(stmt)
    )


def _settle_definitions(project: Project, result: Fallback) -> bool:
    """Add the definitions that use Apex; they must be used by nothing that stays."""
    gone = result.nodes()
    wanted: list[tuple[Module, Definition]] = []
    for site in result.sites:
        if site.node in gone:
            continue
        outer = _definition(site)
        if outer is None:
            return False
        if (site.module, outer) not in wanted:
            wanted.append((site.module, outer))
    result.definitions = wanted
    gone = result.nodes()
    return all(_unused(project, result, node.name, gone) for _, node in wanted)


def _definition(site: Site) -> Definition | None:
    for node in site.module.tree.module.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and inside(
            site.module.tree, site.node, node
        ):
            return node
    return None


def _unused(project: Project, result: Fallback, name: str, gone: set[ast.AST]) -> bool:
    for module in project.modules.values():
        uses: list[ast.expr] = [n for n in module.tree.nodes(ast.Name) if n.id == name]
        uses += [n for n in module.tree.nodes(ast.Attribute) if n.attr == name]
        if any(use not in gone for use in uses):
            return False
        for node in module.tree.nodes(ast.ImportFrom):
            if any(alias.name == name for alias in node.names):
                result.aliases.append((module, node, name))
    return True


def _complete(result: Fallback, availability: Mapping[Module, Availability]) -> bool:
    """Tell whether no name of what goes is read by what stays, and all Apex goes."""
    gone = result.nodes()
    if any(site.node not in gone for site in result.sites):
        return False
    for module in {site.module for site in result.sites}:
        loads = [n for n in module.tree.nodes(ast.Name) if isinstance(n.ctx, ast.Load)]
        read = {n.id for n in loads if n not in gone}
        if read & _bound(result, module):
            return False
        result.flags += [(module, name) for name in sorted(read & availability[module].flags)]
    return any(site.kind is not Kind.IMPORT for site in result.sites)


def _bound(result: Fallback, module: Module) -> set[str]:
    return {
        alias.asname or alias.name.partition(".")[0]
        for owner, guard in result.guards
        if owner is module
        for node in ast.walk(guard)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
