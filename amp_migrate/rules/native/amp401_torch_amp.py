"""`torch.cuda.amp` becomes `torch.amp`.

## What it does
With `--api torch.amp`, writes `torch.amp.autocast("cuda")`, `torch.amp.GradScaler("cuda")`, and
`torch.amp.custom_fwd` and `custom_bwd` with `device_type="cuda"`. Imports and type checks follow.

## Why
torch 2.4 and later warn about `torch.cuda.amp`. The new functions take the device first, so `autocast(True)` and
`GradScaler(1024.0)` would mean something else if only their names were changed.

## Example
    from torch.cuda.amp import GradScaler, autocast
    scaler = GradScaler(1024.0)
    with autocast(False):
        ...

## Use instead
    from torch.amp import GradScaler, autocast
    scaler = GradScaler("cuda", 1024.0)
    with autocast("cuda", enabled=False):
        ...

## Safety
Faithful, for torch 2.4 and later. A name that is also bound otherwise, derived from, or taken from here by another
file keeps its old spelling everywhere.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from amp_migrate.facts.imports import Imports
from amp_migrate.facts.paths import bottom
from amp_migrate.facts.tree import Tree
from amp_migrate.plan.model import (
    AddArgument,
    Decision,
    DropImportedName,
    Edit,
    Finding,
    Insert,
    Replace,
    ReplaceExpression,
    Status,
)
from amp_migrate.rules.base import Rule, Safety
from amp_migrate.rules.untouched import Untouched

RULE = Rule("AMP401", "torch.cuda.amp becomes torch.amp", Safety.FAITHFUL)

_MEMBERS = ("autocast", "GradScaler", "custom_fwd", "custom_bwd")
_OLD = re.compile(r"torch\.cuda\.amp(?:\.autocast_mode|\.grad_scaler)?\.(\w+)")
_MODULE = re.compile(r"torch\.cuda\.amp(\.autocast_mode|\.grad_scaler)?\b")
_AUTOCAST = ("enabled", "dtype", "cache_enabled")


def upgrade(tree: Tree, edits: Sequence[Edit] = (), shared: Collection[str] = ()) -> list[Decision]:
    """Decide the new spelling of one file.

    `edits` are those already planned for it, which win; `shared` are names that other files import from
    here ("*" for all) and that therefore keep their meaning.
    """
    return list(_Upgrade(tree, Untouched(tree, edits), shared).decisions())


class _Upgrade:
    def __init__(self, tree: Tree, untouched: Untouched, shared: Collection[str]) -> None:
        self._tree = tree
        self._untouched = untouched
        self._shared = shared
        self._imports = Imports(tree)
        self._scopes = self._imports.scopes

    def decisions(self) -> Iterator[Decision]:
        """Yield the decisions: first the imports with what they bind, then names in full."""
        for stmt in self._tree.nodes(ast.ImportFrom, ast.Import):
            if any(_binds_old(stmt, alias) for alias in stmt.names) and self._untouched.stands(
                stmt
            ):
                yield from self._statement(stmt)
        for node in self._tree.nodes(ast.Attribute):
            if self._in_full(node) and self._untouched.stands(node):
                made = self._use(
                    node, node.attr, f"{self._tree.segment(bottom(node))}.amp.{node.attr}"
                )
                if made is not None:
                    yield self._decision(node, f"becomes torch.amp.{node.attr}", made)

    def _decision(self, node: ast.AST, message: str, edits: list[Edit]) -> Decision:
        span = self._tree.span(node)
        finding = Finding(self._tree.path, span, RULE.code, Status.MIGRATED, message)
        return Decision(finding, [(self._tree.path, edit) for edit in edits])

    def _statement(self, stmt: ast.Import | ast.ImportFrom) -> Iterator[Decision]:
        done = {alias: self._alias(stmt, alias) for alias in stmt.names if _binds_old(stmt, alias)}
        able = [alias for alias, made in done.items() if made is not None]
        if not any(done[alias] for alias in able):
            return
        yield self._decision(stmt, "imports from torch.amp", list(self._import(stmt, able)))
        for alias in able:
            yield from done[alias] or ()

    def _alias(self, stmt: ast.stmt, alias: ast.alias) -> list[Decision] | None:
        """Return the decisions about the uses of an imported name; None where it must stay as it is."""
        name = alias.asname or alias.name
        scope = self._scopes.scope_of(alias)
        bindings = self._scopes.bindings(scope, name)
        if bindings != [alias] or self._untouched.writes(name) or self._given_away(name):
            return None
        found = []
        for use in self._scopes.spelt(scope, name):
            if not self._untouched.stands(use):
                continue
            node, member = self._member(stmt, alias, use)
            made = self._use(node, member, self._tree.segment(node)) if member in _MEMBERS else None
            if made is None:
                return None
            found.append(self._decision(node, f"becomes torch.amp.{member}", made))
        return found

    def _member(self, stmt: ast.stmt, alias: ast.alias, use: ast.Name) -> tuple[ast.expr, str]:
        if _names_module(stmt, alias):
            up = self._tree.parent(use)
            return (up, up.attr) if isinstance(up, ast.Attribute) else (use, "")
        return use, alias.name

    def _given_away(self, name: str) -> bool:
        if name in self._shared or "*" in self._shared:
            return True
        return any(
            isinstance(item, ast.Constant) and item.value == name
            for node in self._tree.nodes(ast.Assign)
            if any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)
            for item in ast.walk(node.value)
        )

    def _import(self, stmt: ast.Import | ast.ImportFrom, able: list[ast.alias]) -> Iterator[Edit]:
        span = self._tree.span(stmt)
        if len(able) == len(stmt.names):
            text = self._tree.segment(stmt)
            yield Replace(span, _new_import(stmt, text))
            return
        yield DropImportedName(span, tuple(a.name for a in able))
        for alias in able:
            renamed = f" as {alias.asname}" if alias.asname else ""
            text = f"from torch.amp import {alias.name}{renamed}"
            if isinstance(stmt, ast.Import):
                text = f"import torch.amp{renamed}"
            elif _names_module(stmt, alias):
                text = f"from torch import amp{renamed}"
            yield Insert(span, text, after=True)

    def _in_full(self, node: ast.Attribute) -> bool:
        """Tell whether an attribute is `torch.cuda.amp.autocast` and the like, written out from `torch`."""
        found = _OLD.fullmatch(self._imports.qualified(node) or "")
        if found is None or node.attr not in _MEMBERS or not isinstance(node.ctx, ast.Load):
            return False
        return self._imports.qualified(bottom(node)) == "torch"

    def _use(self, node: ast.expr, member: str, name: str) -> list[Edit] | None:
        """Return the edits of one use, which is then called `name`; None where it cannot be changed."""
        tree = self._tree
        up = tree.parent(node)
        renamed: list[Edit] = []
        if tree.segment(node) != name:
            renamed.append(ReplaceExpression(tree.span(node), name))
        if (call := tree.call_of(node)) is not None:
            return self._call(call, member, name, renamed)
        if member in ("custom_fwd", "custom_bwd"):
            decorates = isinstance(up, ast.FunctionDef) and node in up.decorator_list
            text = f'{name}(device_type="cuda")'
            return [ReplaceExpression(tree.span(node), text)] if decorates else None
        return renamed if self._names_type(node) else None

    def _names_type(self, node: ast.expr) -> bool:
        child: ast.AST = node
        up = self._tree.parent(child)
        while isinstance(up, ast.Tuple | ast.Subscript | ast.BinOp):
            child, up = up, self._tree.parent(up)
        if isinstance(up, ast.Call):
            named = isinstance(up.func, ast.Name) and up.func.id == "isinstance"
            return named and up.args[-1] is child
        if isinstance(up, ast.arg | ast.AnnAssign):
            return up.annotation is child
        return isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef) and up.returns is child

    def _call(
        self, call: ast.Call, member: str, name: str, renamed: list[Edit]
    ) -> list[Edit] | None:
        span = self._tree.span(call)
        if any(isinstance(a, ast.Starred) for a in call.args):
            return None
        if member in ("custom_fwd", "custom_bwd"):
            return None if call.args else [*renamed, AddArgument(span, '"cuda"', "device_type")]
        if not call.args:
            return [*renamed, AddArgument(span, '"cuda"')]
        parts = [self._tree.segment(a) for a in call.args]
        if member == "autocast":
            if len(parts) > len(_AUTOCAST):
                return None
            parts = [f"{k}={v}" for k, v in zip(_AUTOCAST, parts, strict=False)]
        for keyword in call.keywords:
            text = self._tree.segment(keyword.value)
            parts.append(f"{keyword.arg}={text}" if keyword.arg else f"**{text}")
        given = ", ".join(['"cuda"', *parts])
        return [ReplaceExpression(span, f"{name}({given})")]


def _binds_old(stmt: ast.Import | ast.ImportFrom, alias: ast.alias) -> bool:
    """Tell whether an import binds a name to `torch.cuda.amp` or something in it that torch.amp has."""
    if isinstance(stmt, ast.Import):
        return alias.name == "torch.cuda.amp" and alias.asname is not None
    if stmt.level or stmt.module is None:
        return False
    found = _OLD.fullmatch(f"{stmt.module}.{alias.name}")
    return _names_module(stmt, alias) or (found is not None and alias.name in _MEMBERS)


def _names_module(stmt: ast.stmt, alias: ast.alias) -> bool:
    if isinstance(stmt, ast.ImportFrom):
        return stmt.module == "torch.cuda" and alias.name == "amp"
    return True


def _new_import(stmt: ast.Import | ast.ImportFrom, text: str) -> str:
    if isinstance(stmt, ast.ImportFrom) and stmt.module == "torch.cuda":
        return re.sub(r"torch\.cuda\b", "torch", text, count=1)
    return _MODULE.sub("torch.amp", text)


def taken_from(tree: Tree, others: Iterable[Tree]) -> frozenset[str]:
    """Return the names that other files may import from a file, by the last part of its name; "*" for all."""
    path = tree.path.replace("\\", "/").removesuffix(".py").removesuffix("/__init__")
    stem = path.rpartition("/")[2]
    return frozenset(
        alias.name
        for other in others
        if other is not tree and stem in other.text
        for stmt in other.nodes(ast.ImportFrom)
        if (stmt.module or "").rpartition(".")[2] == stem or (stmt.level and not stmt.module)
        for alias in stmt.names
    )
