"""Branches that become the same code: ``if fp16: with amp.scale_loss... else: loss.backward()``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.availability.installed import imports_apex
from amp_migrate.facts.paths import acts, defs, path, uses
from amp_migrate.flow import refuted
from amp_migrate.placement.backwards.behind import read_behind
from amp_migrate.placement.backwards.probes import reads_input
from amp_migrate.placement.backwards.scaled import ScaleLoss
from amp_migrate.placement.finding.networks import initialized
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.unscaling.parameters import shares_network
from amp_migrate.project import Module
from amp_migrate.training.beliefs import PARAMETERS, READS_GRADIENTS
from amp_migrate.training.bindings import values_of


@dataclass(frozen=True, eq=False, slots=True)
class Collapse:
    """An `if` whose two branches do the same natively: `kept` ("body" or "orelse") takes its place.

    It is "behind" where the body returns and does before that what stands behind the `if`, which goes then.
    """

    node: ast.If
    site: Site
    kept: str

    def gone(self) -> list[ast.stmt]:
        """Return the statements of the branch that goes."""
        return self.node.orelse if self.kept == "body" else self.node.body


@dataclass(frozen=True, eq=False, slots=True)
class Prefix:
    """An `if` whose `else` does no more than its body begins with: the common part moves before it."""

    node: ast.If
    site: Site
    moved: list[ast.stmt]


Form = tuple[object, ...]


class Branches:
    """Compares the branches of the tests around the scale_loss blocks of a unit."""

    def __init__(self, unit: Unit, scaled: dict[Site, ScaleLoss]) -> None:
        self._unit = unit
        self._blocks = {s.node: s for s in scaled.values()}
        self._handed = {use for block in scaled.values() for use in block.handed}
        self._read = {b.node for b in scaled.values() if read_behind(unit, b, scaled.values())}
        self._masters = {site.node for site in unit.of(Kind.MASTER_PARAMS)}
        self.collapses: dict[ast.If, Collapse] = {}
        self.prefixes: dict[ast.If, Prefix] = {}
        if unit.plain:  # branches of a training in FP32 are what its author wants
            return
        for site in unit.of(Kind.SCALE_LOSS, Kind.MASTER_PARAMS):
            self._around(site)

    def folded(self) -> set[ast.AST]:
        """Return every node of the tests whose branches become one."""
        return {n for test in self.collapses for n in ast.walk(test)}

    def _around(self, site: Site) -> None:
        tree = site.module.tree
        for up in tree.ancestors(site.node):
            if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef):
                self._return_before(up.body, site)
            if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef | ast.For | ast.While):
                return
            if isinstance(up, ast.If) and up.orelse and up not in self.collapses:
                self._compare(up, site)

    def _return_before(self, body: list[ast.stmt], site: Site) -> None:
        """Compare what a function does before it returns without AMP with all that stands behind that."""
        for place in range(len(body) - 2, -1, -1):
            node, rest = body[place], body[place + 1 :]
            if not isinstance(node, ast.If) or node.orelse or node in self.collapses:
                continue
            if not isinstance(node.body[-1], ast.Return) or acts(node.test):
                continue
            if not any(site.node in ast.walk(stmt) for stmt in rest):
                continue
            if self._asks_for_optimizer(site.module, node.test) and self._probes(node):
                continue
            forms = [[f for _, f in self._block(_returning(part))] for part in (node.body, rest)]
            if forms[0] == forms[1] and forms[0] and not self._clips_more([node, *rest]):
                self.collapses[node] = Collapse(node, site, "behind")

    def _compare(self, node: ast.If, site: Site) -> None:
        if self._asks_for_optimizer(site.module, node.test) and self._probes(node):
            return
        last = [node, *refuted(node)][-1].orelse
        body, orelse = list(self._block(node.body)), list(self._block(last))
        if self._clips_more([node]):
            return
        if [form for _, form in body] == [form for _, form in orelse]:
            sites = self._unit.of(Kind.SCALE_LOSS, Kind.MASTER_PARAMS)
            inside = {n for stmt in node.orelse for n in ast.walk(stmt)}
            scaling = any(s.node in inside and s.module is site.module for s in sites)
            # What is handed on or read scaled is written at the block: its branch stays, else the plain one.
            handing = any(n in self._handed or n in self._read for n in ast.walk(node))
            kept = "body" if scaling is not handing and last is node.orelse else "orelse"
            if last is not node.orelse and (handing or scaling):
                return  # another test stands between the two
            self.collapses[node] = Collapse(node, site, kept)
        elif node not in self.prefixes and last is node.orelse and len(orelse) < len(body):
            same = [form for _, form in body[: len(orelse)]] == [form for _, form in orelse]
            moved = list(dict.fromkeys(stmt for stmt, _ in body[: len(orelse)]))
            border = body[len(orelse)][0] not in moved
            moves = any(_is_native(form) for _, form in orelse) and not _decides(moved, node)
            folds = self._unit.availability[site.module].known(node.test) is not None
            if same and border and moves and not folds:
                self.prefixes[node] = Prefix(node, site, moved)

    def _asks_for_optimizer(self, module: Module, test: ast.expr) -> bool:
        """Tell whether a test only asks for an optimizer that is scaled for: it is there with AMP off as well.

        A variable asks what it was set to.
        """
        optimizers = {
            path(node) for block in self._blocks.values() for node in block.optimizer_list()
        }
        found = [test]
        for part in found:
            if isinstance(part, ast.Name):
                found += [value for value in values_of(module, part) if value not in found]
        asked = {path(part.left if isinstance(part, ast.Compare) else part) for part in found}
        return bool(asked & optimizers - {None})

    def _probes(self, node: ast.If) -> bool:
        """Tell whether the plain backward of a test is run for the gradient of an input."""
        inside = set(ast.walk(node))
        own = (b for b in self._unit.backwards if not b.scaled and b.node in inside)
        return any(reads_input(self._unit, backward) for backward in own)

    def _clips_more(self, parts: list[ast.stmt]) -> bool:
        """Tell whether one of some branches clips a whole network where the other one clips a part of it, with an optimizer of its own."""
        inside = {node for part in parts for node in ast.walk(part)}
        masters = [s for s in self._unit.of(Kind.MASTER_PARAMS) if s.node in inside]
        plain = [n for n in inside if isinstance(n, ast.Call) and n not in self._masters]
        return any(
            shares_network(self._unit, site, call)
            for site in masters
            for call in plain
            if self._gradients(call)
        )

    def _block(self, body: list[ast.stmt]) -> Iterator[tuple[ast.stmt, object]]:
        for stmt in body:
            for form in self._statement(stmt, {}):
                yield stmt, form

    def _statement(self, stmt: ast.stmt, names: dict[str, object]) -> Iterator[object]:
        block = self._blocks.get(stmt) if isinstance(stmt, ast.With) else None
        if block is not None and len(block.node.items) == 1:
            inner = {**names, block.alias: ("scaled", self._form(block.loss, names))}
            for part in block.body:
                yield from self._statement(part, inner)
        elif isinstance(stmt, ast.If) and stmt in self.collapses:
            kept = stmt.body if self.collapses[stmt].kept == "body" else stmt.orelse
            for part in kept:
                yield from self._statement(part, names)
        elif not (_does_nothing(stmt) or imports_apex([stmt]) or self._only_delays(stmt)):
            yield self._form(stmt, names)

    def _only_delays(self, stmt: ast.stmt) -> bool:
        """Tell whether a statement computes what only `delay_unscale=` of a scale_loss reads."""
        if not isinstance(stmt, ast.Assign) or any(isinstance(n, ast.Call) for n in ast.walk(stmt)):
            return False
        target = stmt.targets[0]
        block = next((b for b in self._blocks.values() if _beside(b.site, stmt)), None)
        if block is None or not isinstance(target, ast.Name) or len(stmt.targets) > 1:
            return False
        delays = {k.value for k in block.site.call.keywords if k.arg == "delay_unscale"}
        named = (n for n in block.site.function.all_nodes if isinstance(n, ast.Name))
        return bool(delays) and all(
            n is target or any(n in ast.walk(delay) for delay in delays)
            for n in named
            if n.id == target.id
        )

    def _form(self, node: object, names: dict[str, object]) -> object:
        if isinstance(node, list):
            forms: list[object] = []
            for part in node:
                if isinstance(part, ast.stmt):
                    forms += self._statement(part, names)
                else:
                    forms.append(self._form(part, names))
            return tuple(forms)
        if not isinstance(node, ast.AST):
            return node
        if isinstance(node, ast.Name) and node.id in names:
            value = names[node.id]
            return value[1] if node in self._handed and isinstance(value, tuple) else value
        if isinstance(node, ast.expr) and self._gradients(node):
            return ("parameters",)
        if isinstance(node, ast.Call):
            special = self._call(node, names)
            if special is not None:
                return special
        return (
            type(node).__name__,
            *(self._form(value, names) for _, value in ast.iter_fields(node)),
        )

    def _call(self, call: ast.Call, names: dict[str, object]) -> Form | None:
        func = call.func
        tail = (
            func.attr
            if isinstance(func, ast.Attribute)
            else func.id
            if isinstance(func, ast.Name)
            else ""
        )
        clipped, rest = _parameters(call)
        if tail in READS_GRADIENTS and clipped is not None and self._gradients(clipped):
            return ("clip", tail.rstrip("_"), self._form(rest, names))
        if tail == "backward" and isinstance(func, ast.Attribute):
            target = self._form(func.value, names)
            loss = (
                target
                if isinstance(target, tuple) and target[0] == "scaled"
                else ("scaled", target)
            )
            return ("scaled_backward", loss, self._form([*call.args, *call.keywords], names))
        return None

    def _gradients(self, node: ast.expr) -> bool:
        if node in self._masters:
            return True
        if isinstance(node, ast.Name):
            return self._lists_network(node)
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "parameters"
        )

    def _lists_network(self, name: ast.Name) -> bool:
        """Tell whether a variable keeps the list of all parameters of an initialized network."""
        project = self._unit.project
        module = project.module_of(name)
        value = module.scopes.only_value(name)
        if not isinstance(value, ast.Call) or path(value.func) not in ("list", "tuple"):
            return False
        listed = value.args[0] if value.args else None
        if not isinstance(listed, ast.Call) or not isinstance(listed.func, ast.Attribute):
            return False
        owners = project.values.groups(module, listed.func.value)
        return listed.func.attr == "parameters" and bool(owners & initialized(self._unit))


def _returning(block: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a block that ends its function, without a return of nothing."""
    last = block[-1]
    return block[:-1] if isinstance(last, ast.Return) and last.value is None else block


def _parameters(call: ast.Call) -> tuple[ast.expr | None, list[ast.expr | ast.keyword]]:
    """Return what a clip is given as its parameters, by place or by name, and its other arguments."""
    if call.args:
        return call.args[0], [*call.args[1:], *call.keywords]
    given = next((k for k in call.keywords if k.arg == PARAMETERS), None)
    rest: list[ast.expr | ast.keyword] = [k for k in call.keywords if k is not given]
    return given.value if given is not None else None, rest


def _is_native(form: object) -> bool:
    """Tell whether a form holds a backward or a clip, which Apex alone had a test for."""
    if not isinstance(form, tuple):
        return False
    return form[:1] in (("scaled_backward",), ("clip",)) or any(map(_is_native, form))


def _decides(moved: list[ast.stmt], node: ast.If) -> bool:
    """Tell whether statements that are to move before a test write what it asks."""
    return bool({name for stmt in moved for name in defs(stmt)} & uses(node.test))


def _beside(site: Site, stmt: ast.stmt) -> bool:
    """Tell whether a statement stands in the block of a scale_loss."""
    return any(stmt is other for other in site.module.tree.block(site.statement))


def _does_nothing(stmt: ast.stmt) -> bool:
    """Tell whether a statement is `pass`, or code that was put into a string to switch it off."""
    return isinstance(stmt, ast.Pass) or (
        isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant)
    )
