"""Guards that only exist for Apex: how they fold once Apex is out of a file."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.sites import Kind
from amp_migrate.availability.installed import imports_apex
from amp_migrate.availability.truths import is_asked
from amp_migrate.facts.constants import string
from amp_migrate.facts.paths import (
    called_alone,
    defs,
    imported_name,
    mentions,
    path,
    root,
    sets,
)
from amp_migrate.facts.scopes import targets_of
from amp_migrate.plan.model import Decision, Drop, Edit, Hoist, Replace, ReplaceExpression, Status
from amp_migrate.rules.base import FileContext, Rule, decision
from amp_migrate.rules.guards.flags_asked import asked_elsewhere, still_read, taken_elsewhere, value
from amp_migrate.rules.guards.kept import star_needed, stays
from amp_migrate.rules.guards.unset import spent_in, without


class Folding:
    """Folds the guards of one file; the nodes that go with them are `gone`."""

    def __init__(self, context: FileContext, rule: Rule) -> None:
        self._context = context
        self._rule = rule
        self.gone: set[ast.AST] = set()

    def all(self) -> Iterator[Decision]:
        """Fold what says whether Apex is installed; the nodes that go are noted."""
        tree = self._context.module.tree
        for node in tree.nodes(
            *(ast.Try, ast.If, ast.Assert, ast.Assign, ast.AnnAssign),
            *(ast.Global, ast.Name, ast.Compare, ast.Call),
        ):
            if node in self.gone or node in self._context.taken:
                continue
            if isinstance(node, ast.Try) and imports_apex(node.body):
                yield from self._try(node)
            elif isinstance(node, ast.If):
                yield from self._test(node)
            elif isinstance(node, ast.Assert):
                yield from self._assertion(node)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                yield from self._none(node)
            elif isinstance(node, ast.Global):
                yield from self._global(node)
            elif isinstance(node, ast.Name | ast.Compare | ast.Call):
                yield from self._value(node)

    def unasked(self) -> Iterator[Decision]:
        """Fold the guards whose names nothing reads, where others stay for what is left in the project."""
        for node in self._context.module.tree.nodes(ast.Try):
            if node in self.gone or node in self._context.taken:
                continue
            names = {name for stmt in ast.walk(node) for name in _bound(stmt)}
            if imports_apex(node.body) and not _used_outside(self._context, node, names):
                yield from self._try(node)

    def _try(self, node: ast.Try) -> Iterator[Decision]:
        tree = self._context.module.tree
        unused = node.body + node.orelse if self._context.availability.installed else []
        if not all(_vanishes(self._context, stmt) for stmt in unused) or node.finalbody:
            return
        message = "the guard around the import of Apex goes"
        fallback = [
            h
            for h in node.handlers
            if any(_rebinds_native(self._context, node, h, stmt) for stmt in h.body)
        ]
        if fallback:
            index = node.handlers.index(fallback[0])
            edit: Edit = Hoist(tree.span(node), f"handlers[{index}]")
            kept = set(ast.walk(fallback[0]))
            self.gone |= {n for n in ast.walk(node) if n not in kept}
        else:
            asked = [name for name in asked_elsewhere(self._context) if sets(node, name)]
            said = [name for name in still_read(self._context) if self._is_bound_in(node, name)]
            lines = [f"{name} = {value(self._context)}" for name in asked]
            lacks = self._context.availability.lacks
            lines += [f"{name} = {False if name in lacks else None}" for name in said]
            edit = Replace(tree.span(node), "\n".join(lines)) if lines else Drop(tree.span(node))
            self.gone |= set(ast.walk(node))
            if asked:
                message = f"the guard around the import of Apex goes; other files ask {asked[0]}"
        yield self._folded(node, message, edit)

    def _is_bound_in(self, node: ast.Try, name: str) -> bool:
        """Tell whether a variable of the file is bound by a guard and nowhere else."""
        module, inner = self._context.module, set(ast.walk(node))
        return inner.issuperset(module.scopes.bindings(module.tree.module, name))

    def _test(self, node: ast.If) -> Iterator[Decision]:
        tree = self._context.module.tree
        if not self._context.availability.settles(node.test):
            return
        condition = self._context.availability.reduce(node.test)
        edit: Edit
        if condition.value is None:
            edit = ReplaceExpression(tree.span(node.test), condition.text)
        elif condition.value:
            edit = Hoist(tree.span(node), "body")
            self.gone |= {n for stmt in node.orelse for n in ast.walk(stmt)}
        elif node.orelse:
            edit = Hoist(tree.span(node), "orelse")
            self.gone |= {n for stmt in node.body for n in ast.walk(stmt)}
        else:
            edit = Drop(tree.span(node))
            self.gone |= set(ast.walk(node))
        message = "a test for Apex is folded"
        yield self._folded(node, message, edit)

    def _value(self, node: ast.expr) -> Iterator[Decision]:
        """Fold an availability flag that stands in an expression: ``use_amp = fp16 and APEX_AVAILABLE``."""
        tree = self._context.module.tree
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            return
        if self._context.availability.known(node) is None:
            return
        top: ast.expr = node
        up = tree.parents[top]
        while isinstance(up, ast.BoolOp) or (
            isinstance(up, ast.UnaryOp) and isinstance(up.op, ast.Not)
        ):
            top, up = up, tree.parents[up]
        if isinstance(up, ast.If | ast.Assert) or node in self.gone or top in self.gone:
            return
        called = isinstance(up, ast.Call) and up.func is node
        if isinstance(node, ast.Name) and (called or not self._is_flag(node, top)):
            return
        condition = self._context.availability.reduce(top)
        text = condition.text if condition.value is None else str(condition.value)
        if isinstance(up, ast.IfExp) and top is up.test and condition.value is not None:
            kept = up.body if condition.value else up.orelse
            others = [part for part in ast.walk(kept) if isinstance(part, ast.expr)]
            sites = {site.node for site in self._context.sites}
            if not any(
                part in sites or self._context.availability.known(part) is not None
                for part in others
            ):
                top, text = up, tree.segment(kept)
        self.gone |= set(ast.walk(top))
        edit = ReplaceExpression(tree.span(top), text)
        yield self._folded(top, "a flag for Apex is folded", edit)

    def _is_flag(self, node: ast.Name, top: ast.expr) -> bool:
        """Tell whether a name says whether Apex is there: a flag, or amp beside what else is asked."""
        context = self._context
        asked = node is not top and is_asked(context.project, context.module, node)
        return asked or context.availability.is_named(node)

    def _assertion(self, node: ast.Assert) -> Iterator[Decision]:
        """Drop what an assertion says of Apex: all of it, or its part of ``amp is not None and found``."""
        if not self._asks(node.test):
            return
        tree, test = self._context.module.tree, node.test
        parts = test.values if isinstance(test, ast.BoolOp) else []
        kept = [part for part in parts if self._context.availability.known(part) is None]
        condition = self._context.availability.reduce(test)
        if not kept or condition.value is not None or any(map(self._asks, kept)):
            self.gone |= set(ast.walk(node))
            yield self._folded(node, "an assertion on Apex goes", Drop(tree.span(node)))
            return
        self.gone |= {n for part in parts if part not in kept for n in ast.walk(part)}
        edit = ReplaceExpression(tree.span(test), condition.text)
        yield self._folded(node, "an assertion says nothing of Apex any more", edit)

    def _asks(self, test: ast.expr) -> bool:
        """Tell whether an assertion asks for Apex, and does not only call something of it."""
        called = {part.func for part in ast.walk(test) if isinstance(part, ast.Call)}
        return any(
            self._context.availability.known(part)
            for part in ast.walk(test)
            if isinstance(part, ast.expr) and part not in called
        )

    def _none(self, node: ast.Assign | ast.AnnAssign) -> Iterator[Decision]:
        """Drop ``amp = None`` and flags set at module level."""
        spent = spent_in(self._context, node)
        if not spent:
            return
        edit = without(self._context.module.tree, node, spent)
        self.gone |= set(ast.walk(node)) if isinstance(edit, Drop) else set(spent)
        said = ", ".join(map(ast.unparse, spent))
        yield self._folded(node, f"`{said}` is not needed any more", edit)

    def _global(self, node: ast.Global) -> Iterator[Decision]:
        names = [n for n in node.names if not _apex_global(self._context, n)]
        if len(names) == len(node.names):
            return
        span = self._context.module.tree.span(node)
        edit: Edit = Replace(span, f"global {', '.join(names)}") if names else Drop(span)
        self.gone |= set(ast.walk(node))
        yield self._folded(node, "Apex is no global any more", edit)

    def _folded(self, node: ast.expr | ast.stmt, message: str, edit: Edit) -> Decision:
        return decision(self._rule, Status.ROUTINE, self._context.module, node, message, [edit])


def _bound(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {imported_name(alias) for alias in node.names}
    return defs(node) if isinstance(node, ast.stmt) else set()


def _vanishes(context: FileContext, stmt: ast.stmt) -> bool:
    if isinstance(stmt, ast.Import | ast.ImportFrom):
        return imports_apex([stmt]) and not any(_live(context, stmt, a) for a in stmt.names)
    if isinstance(stmt, ast.Assign | ast.AnnAssign):
        flags = context.availability.flags | context.availability.reasons
        return all(isinstance(t, ast.Name) and t.id in flags for t in targets_of(stmt))
    if (call := called_alone(stmt)) is not None:
        texts = (string(part) for part in ast.walk(stmt))
        extends = (path(call.func) or "").startswith("sys.path.")
        return extends and any("apex" in text for text in texts if text is not None)
    return isinstance(stmt, ast.Pass)


def _live(context: FileContext, stmt: ast.stmt, alias: ast.alias) -> bool:
    """Tell whether a name imported from Apex is still used by a site that stays, or by another file."""
    if alias.name == "*":
        return star_needed(context, stmt, alias)
    name = imported_name(alias)
    return stays(context, stmt, alias) or any(
        root(site.node) == name for site in context.sites if site.kind is not Kind.IMPORT
    )


def _rebinds_native(
    context: FileContext, node: ast.Try, handler: ast.ExceptHandler, stmt: ast.stmt
) -> bool:
    """Tell whether a handler binds names that the program goes on using (a native fallback), not what it caught."""
    if isinstance(stmt, ast.ImportFrom | ast.Import):
        names = {imported_name(alias) for alias in stmt.names}
        return not imports_apex([stmt]) and _used_outside(context, node, names)
    if isinstance(stmt, ast.FunctionDef | ast.ClassDef):
        return True
    if isinstance(stmt, ast.Assign | ast.AnnAssign):
        caught = handler.name is not None and mentions(stmt, handler.name)
        values = stmt.value.elts if isinstance(stmt.value, ast.Tuple) else [stmt.value]
        held = not all(isinstance(value, ast.Constant) for value in values) and not caught
        return held and _used_outside(context, node, defs(stmt))
    return False


def _used_outside(context: FileContext, node: ast.Try, names: set[str]) -> bool:
    """Tell whether the file reads a name that a guard alone binds, or another file imports it."""
    if not all(name.isidentifier() for name in names):
        return True
    tree = context.module.tree
    inner = set(ast.walk(node))
    outside = [n for n in tree.nodes(ast.Name) if isinstance(n, ast.Name) and n not in inner]
    read = {n.id for n in outside if isinstance(n.ctx, ast.Load)}
    read |= {
        n.id
        for stmt in [*node.body, *node.orelse]
        for n in ast.walk(stmt)
        if isinstance(n, ast.Name)
    }
    rebound = {n.id for n in outside if isinstance(n.ctx, ast.Store)} & _log_names(node)
    return bool((names - rebound) & read) or taken_elsewhere(context, names - rebound)


def _log_names(node: ast.Try) -> set[str]:
    """Return the names that handlers bind to a logger: only their message needs them."""
    return {
        name
        for handler in node.handlers
        for stmt in handler.body
        if isinstance(stmt, ast.Assign) and root(stmt.value) == "logging"
        for name in defs(stmt)
    }


def _apex_global(context: FileContext, name: str) -> bool:
    imports = [s.node for s in context.of(Kind.IMPORT)]
    return any(
        imported_name(a) == name
        for n in imports
        if isinstance(n, ast.Import | ast.ImportFrom)
        for a in n.names
    )
