"""What nothing reads any more once some reads of a file go: assignments, and entries of collections."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from amp_migrate.facts.paths import acts
from amp_migrate.facts.scopes import ScopeNode, assigned
from amp_migrate.flow import term
from amp_migrate.plain.held import Holding
from amp_migrate.project import Module, Project
from amp_migrate.project.reach import where_read

Key = tuple[ScopeNode | None, str]
_SETTING = (ast.Assign, ast.AnnAssign)


@dataclass(frozen=True, slots=True)
class Unused:
    """A value or function that nothing reads: the statement that only stores or deletes it, or the entry of a collection (a key or keyword)."""

    value: ast.expr | ast.FunctionDef
    statement: ast.stmt | None = None
    entry: ast.expr | ast.keyword | None = None


def method_of(project: Project, module: Module, call: ast.Call) -> ast.FunctionDef | None:
    """Return the method that a call runs, where it is one of this file alone, in a class with more in it.

    But for `staticmethod` it has no decorators.
    """
    reached = project.callees(call) if isinstance(call.func, ast.Attribute) else []
    if len(reached) != 1 or reached[0].module is not module:
        return None
    node, cls, static = reached[0].node, reached[0].cls, reached[0].is_static
    if any(other.tree.says(reached[0].name) for other in project.modules.values()):
        return None
    if not isinstance(node, ast.FunctionDef) or not (static or reached[0].takes_receiver):
        return None
    if len(node.decorator_list) > static or reached[0].is_class:
        return None
    return node if cls is not None and node in cls.node.body and len(cls.node.body) > 1 else None


def is_manager(project: Project, module: Module, function: ast.FunctionDef) -> bool:
    """Tell whether a function is a context manager by its only decorator."""
    made = [project.external(module, node) for node in function.decorator_list]
    return made == ["contextlib.contextmanager"]


class Reads:
    """The reads of the names and items of one file."""

    def __init__(self, holding: Holding) -> None:
        self._holding = holding
        self._module = holding.module
        self._loads: dict[Key, list[ast.expr]] = {}
        self._stores: dict[Key, list[ast.expr]] = {}
        tree = self._module.tree
        for node in tree.nodes(ast.Name, ast.Subscript, ast.Attribute):
            key = self.key(node)
            if key is not None:
                table = self._loads if isinstance(node.ctx, ast.Load) else self._stores
                table.setdefault(key, []).append(node)

    def key(self, node: ast.expr) -> Key | None:
        """Return what tells a variable, or an item of one, from others."""
        base = node.value if isinstance(node, ast.Subscript | ast.Attribute) else node
        if isinstance(base, ast.Subscript | ast.Attribute) and self._holding.variable(base):
            base = base.value
        known = term(node) if isinstance(base, ast.Name) else None
        if not isinstance(base, ast.Name) or known is None:
            return None
        return self._module.scopes.owner(base), known.text

    def unused(self, gone: Collection[ast.expr]) -> Iterator[Unused]:
        """Yield the values that nothing reads when some reads are gone."""
        tree = self._module.tree
        keys = {key: node for node in gone if (key := self.key(node)) is not None}
        whole: list[ast.expr] = []
        for key, sample in sorted(keys.items(), key=lambda item: len(item[0][1])):
            reads = self._loads.get(key, [])
            if not all(node in gone for node in reads) or self._is_shared(key):
                continue
            if isinstance(sample, ast.Attribute) and self._is_read_by_others(sample, gone):
                continue
            yield from self._functions(key)
            stores = self._stores.get(key, [])
            deleted = [up for t in stores if isinstance(up := tree.parent(t), ast.Delete)]
            goes = all(len(up.targets) == 1 for up in deleted)
            for up in deleted if goes else ():
                yield Unused(up.targets[0], up)
            for target in stores:
                statement = tree.parent(target)
                if isinstance(statement, _SETTING) and statement.value is not None:
                    alone = isinstance(statement, ast.AnnAssign) or len(statement.targets) == 1
                    if alone and self._is_calm(statement.value):
                        whole.append(statement.value)
                        yield Unused(statement.value, statement if goes else None)
            method = self.method(sample)
            if method is not None:
                yield Unused(method, method)
            if isinstance(sample, ast.Subscript | ast.Attribute):
                for entry in self._entries(sample):
                    if not any(entry.value in ast.walk(value) for value in whole):
                        yield entry

    def of_function(self, node: ast.FunctionDef) -> Key:
        """Return what tells the variable that a function is bound to from others."""
        owner = self._module.scopes.find(self._module.scopes.scope_of(node), node.name)
        return owner, node.name

    def method(self, read: ast.expr) -> ast.FunctionDef | None:
        """Return the method that is read to be called."""
        call = self._module.tree.call_of(read)
        return method_of(self._holding.project, self._module, call) if call is not None else None

    def _functions(self, key: Key) -> Iterator[Unused]:
        owner, name = key
        for node in self._module.scopes.bindings(owner, name) if owner is not None else ():
            if isinstance(node, ast.FunctionDef) and (
                not node.decorator_list or is_manager(self._holding.project, self._module, node)
            ):
                yield Unused(node, node)

    def _is_calm(self, value: ast.expr) -> bool:
        """Tell whether nothing happens when a value is computed, but that it is."""
        if isinstance(value, ast.Lambda) and not value.args.defaults:
            return True
        calls = (node for node in ast.walk(value) if isinstance(node, ast.Call))
        return not acts(value) and all(self._holding.only_holds(call) for call in calls)

    def _is_shared(self, key: Key) -> bool:
        owner, name = key
        return isinstance(owner, ast.Module) and self._holding.is_touched_elsewhere(name)

    def _is_read_by_others(self, attribute: ast.Attribute, gone: Collection[ast.expr]) -> bool:
        """Tell whether something reads the attribute of an object that may be the same one by another name."""
        reads = where_read(self._holding.project, attribute.attr)
        return any(node not in gone for _, node in reads)

    def _entries(self, node: ast.Subscript | ast.Attribute) -> Iterator[Unused]:
        """Yield the entries of the collections that a variable is given which an item of it reads."""
        if isinstance(node, ast.Attribute):
            key: object = node.attr
        else:
            key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        for target in self._stores.get(self.key(node.value) or (None, ""), []):
            display = assigned(self._module.tree, target)
            if isinstance(display, ast.Dict):
                for entry, value in zip(display.keys, display.values, strict=True):
                    if isinstance(entry, ast.Constant) and entry.value == key:
                        yield Unused(value, entry=entry)
            elif isinstance(display, ast.Tuple | ast.List) and isinstance(key, int):
                yield from (Unused(v) for v in display.elts[key : key + 1])
            elif isinstance(display, ast.Call):
                yield from (Unused(k.value, entry=k) for k in display.keywords if k.arg == key)
