"""What the rules about the rest of Apex share: which import a use is by, its arguments, and the names to write."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from amp_migrate.apex.sites import Kind, Site, is_apex
from amp_migrate.facts.constants import is_none
from amp_migrate.facts.paths import bottom
from amp_migrate.facts.scopes import assigned
from amp_migrate.facts.tree import Tree
from amp_migrate.plan.model import Decision, Insert, Replace, Status
from amp_migrate.project.order import inside
from amp_migrate.rules.base import FileContext, Rule, decision
from amp_migrate.source.mentions import skipped_lines

ORDER = 60
_REPLACED = {
    f"apex.parallel.{name}"
    for name in (
        "DistributedDataParallel",
        "SyncBatchNorm",
        "convert_syncbn_model",
        "create_syncbn_process_group",
    )
}
_NAMING = frozenset({"__doc__", "__module__", "__name__", "__qualname__"})
_SUBMODULES = {
    "apex.parallel.distributed": "apex.parallel",
    "apex.parallel.sync_batchnorm": "apex.parallel",
    "apex.parallel.optimized_sync_batchnorm": "apex.parallel",
    "apex.normalization.fused_layer_norm": "apex.normalization",
}


@dataclass(frozen=True, slots=True)
class Native:
    """A class of torch that takes the place of one of Apex; `also` are its other dotted names."""

    module: str
    name: str
    also: tuple[str, ...] = ()

    @property
    def dotted(self) -> str:
        """Its name in full."""
        return f"{self.module}.{self.name}"


class Obstacle(NamedTuple):
    """Why a use is left, and what to do."""

    message: str
    advice: str


def public(name: str) -> str:
    """Return the name of a thing in the package that exports it: ``apex.parallel.LARC.LARC`` is one class."""
    base, _, last = name.rpartition(".")
    if base in _SUBMODULES:
        return f"{_SUBMODULES[base]}.{last}"
    folder, _, file = base.rpartition(".")
    if file == last or (folder == "apex.optimizers" and file.startswith("fused_")):
        return f"{folder}.{last}"
    return name


def uses(context: FileContext, *names: str) -> list[Site]:
    """Return the uses of some names of Apex, or of anything in some of its modules ("apex.RNN.")."""
    return [
        site
        for site in context.of(Kind.OTHER)
        if not names_what_is_held(context, site)
        if any(
            site.name.startswith(n) or f"{site.name}." == n
            if n.endswith(".")
            else public(site.name) == n
            for n in names
        )
    ]


def names_what_is_held(context: FileContext, site: Site) -> bool:
    """Tell whether a use asks what a variable holds for its name: that is said where the variable gets it."""
    return site.name.rpartition(".")[2] in _NAMING and by_value(context, site)


def forget_native(context: FileContext) -> None:
    """Take out the uses of a name that Apex binds elsewhere in the scope, but torch where the use stands."""
    context.sites = [s for s in context.sites if s.kind is not Kind.OTHER or _is_apex_here(s)]


def origin(site: Site) -> ast.alias | None:
    """Return the import by which a use reaches Apex; None for a name that comes by another way."""
    bindings = _bindings(site)
    aliases = [b for b in bindings if isinstance(b, ast.alias)]
    if not aliases or len(aliases) < len(bindings):
        return None
    of_apex = [alias for alias in _nearest(site, aliases) if _imports_apex(site, alias)]
    return of_apex[-1] if of_apex else None


def is_variable(context: FileContext, site: Site) -> bool:
    """Tell whether a use may hold more than the class of Apex: one of the fallback, or what a variable holds."""
    return by_value(context, site) or any(not isinstance(b, ast.alias) for b in _bindings(site))


def is_imported_otherwise(site: Site, native: Native) -> bool:
    """Tell whether a use is a name that is imported as another class elsewhere, not only where Apex cannot be."""
    tree, known = site.module.tree, (native.dotted, *native.also)
    bindings = _bindings(site)
    for alias in bindings if len(bindings) > 1 else ():
        stmt = tree.parent(alias)
        if not isinstance(alias, ast.alias) or not isinstance(stmt, ast.ImportFrom):
            continue
        dotted = f"{stmt.module}.{alias.name}"
        if dotted not in known and not is_apex(dotted):
            if tree.enclosing(stmt, ast.ExceptHandler) is None:
                return True
    return False


def by_value(context: FileContext, site: Site) -> bool:
    """Tell whether only a variable brings Apex to a use, as an attribute of a configuration or a parameter.

    Where the value is named it becomes torch's, and another value may come by the same way.
    """
    if origin(site) is not None or not isinstance(site.node, ast.expr):
        return False
    bindings = _bindings(site)
    if bindings and not any(isinstance(binding, ast.alias) for binding in bindings):
        return True
    meanings = context.project.lookup.expression(site.module, site.node)
    return len(meanings) != 1 or not (isinstance(meanings[0], str) and is_apex(meanings[0]))


def _bindings(site: Site) -> list[ast.AST]:
    """Return what binds the name of a use, but for ``name = None`` where Apex is missing."""
    name = _root(site.node)
    scopes = site.module.scopes
    owner = scopes.owner(name) if name is not None else None
    if name is None or owner is None:
        return []
    tree = site.module.tree
    return [b for b in scopes.bindings(owner, name.id) if not _is_none(tree, b)]


def _is_none(tree: Tree, binding: ast.AST) -> bool:
    value = assigned(tree, binding) if isinstance(binding, ast.Name) else None
    return is_none(value)


def _is_apex_here(site: Site) -> bool:
    bindings = _bindings(site)
    aliases = [b for b in bindings if isinstance(b, ast.alias)]
    if len(aliases) < 2 or len(aliases) < len(bindings):
        return True
    return any(_imports_apex(site, alias) for alias in _nearest(site, aliases))


def _nearest(site: Site, aliases: list[ast.alias]) -> list[ast.alias]:
    """Return those imports that lie in the last statement before the use which holds any of them."""
    tree = site.module.tree
    stmt = site.statement
    while True:
        block = tree.block(stmt)
        for earlier in reversed(block[: block.index(stmt)]):
            held = [a for a in aliases if a in set(ast.walk(earlier))]
            if held:
                return held
        up = tree.parent(stmt)
        if not isinstance(up, ast.stmt | ast.ExceptHandler):
            return aliases
        stmt = tree.statement(up)


def _imports_apex(site: Site, alias: ast.alias) -> bool:
    meanings = site.module.tree.parents[alias]
    if isinstance(meanings, ast.ImportFrom):
        return meanings.level == 0 and is_apex(meanings.module or "")
    return is_apex(alias.name)


def _root(node: ast.AST) -> ast.Name | None:
    found = bottom(node) if isinstance(node, ast.expr) else None
    return found if isinstance(found, ast.Name) else None


def is_skipped(site: Site) -> bool:
    """Tell whether the line of a use asks to be left alone."""
    return site.span.line in skipped_lines(site.module.tree.text)


@dataclass(frozen=True, slots=True)
class Spelled:
    """How a class of torch is written in a file; `imported` replaces the import of Apex's."""

    name: str
    imported: ast.alias | None = None


def spell(context: FileContext, site: Site, native: Native, all_done: bool) -> Spelled:
    """Choose the name for a class of torch at a use of Apex's.

    `all_done`: every use by the same import is rewritten, so the import itself may be. A name that the file has
    for the class already comes first.
    """
    alias = origin(site)
    if alias is not None and isinstance(site.node, ast.Name):
        if _falls_back(context, alias, native):
            return Spelled(site.node.id)
    known = _known(context, site, native)
    if known is None and alias is not None and isinstance(site.node, ast.Name):
        if all_done and _renames(context, alias, native):
            return Spelled(site.node.id, alias)
    return Spelled(known or native.dotted)


def _means(context: FileContext, alias: ast.alias, native: Native) -> bool:
    meanings = context.project.lookup.imported(context.module, alias)
    return any(m in (native.dotted, *native.also) for m in meanings)


def _known(context: FileContext, site: Site, native: Native) -> str | None:
    """Return a name that a plain import of the file has bound to the class where the use, or its function, is made."""
    scopes, tree = context.module.scopes, context.module.tree
    for stmt in takewhile(lambda stmt: not inside(tree, site.node, stmt), tree.module.body):
        for alias in stmt.names if isinstance(stmt, ast.ImportFrom) else []:
            name = alias.asname or alias.name
            if not _means(context, alias, native):
                continue
            owner = scopes.find(scopes.scope_of(site.node), name)
            if owner is not None and scopes.bindings(owner, name) == [alias]:
                return name
    return None


def _falls_back(context: FileContext, alias: ast.alias, native: Native) -> bool:
    """Tell whether the guard around an import goes and leaves its handler, which binds the name to torch."""
    tree = context.module.tree
    guard = tree.enclosing(alias, ast.Try)
    if guard is None or context.keeps_guards or guard.orelse or guard.finalbody:
        return False
    if any(public(s.name) not in _REPLACED for s in context.sites if s.kind is not Kind.IMPORT):
        return False
    if not all(isinstance(s, ast.ImportFrom) and is_apex(s.module or "") for s in guard.body):
        return False
    name = alias.asname or alias.name
    return any(
        isinstance(stmt, ast.ImportFrom)
        and any((a.asname or a.name) == name and _means(context, a, native) for a in stmt.names)
        for handler in guard.handlers
        for stmt in handler.body
    )


def _renames(context: FileContext, alias: ast.alias, native: Native) -> bool:
    """Tell whether the import reads well, and stays right, as one of torch under the same name."""
    tree = context.module.tree
    stmt = tree.parents[alias]
    name = alias.asname or alias.name
    if not isinstance(stmt, ast.ImportFrom) or tree.enclosing(stmt, ast.Try) is not None:
        return False
    if len(stmt.names) > 1 and tree.block(stmt) is not tree.module.body:
        return False
    return name == native.name or not any(word in name.lower() for word in ("apex", "fused"))


def replaced_import(
    rule: Rule, context: FileContext, alias: ast.alias, native: Native
) -> Iterator[Decision]:
    """Import a class of torch in place of Apex's.

    Where the statement imports nothing else, nothing else has to be decided about it.
    """
    stmt = context.module.tree.parents[alias]
    if not isinstance(stmt, ast.ImportFrom):
        return
    name = alias.asname or alias.name
    renamed = "" if name == native.name else f" as {name}"
    text = f"from {native.module} import {native.name}{renamed}"
    span = context.module.tree.span(stmt)
    if len(stmt.names) > 1:
        edits = [Insert(span, text, after=False)]
        yield decision(rule, Status.ROUTINE, context.module, stmt, f"adds `{text}`", edits)
        return
    context.sites = [s for s in context.sites if s.node is not stmt]
    edit = Replace(span, text)
    yield decision(rule, Status.MIGRATED, context.module, stmt, f"becomes `{text}`", [edit])
