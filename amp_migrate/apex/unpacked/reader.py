"""What is written to a mapping, wherever it is read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.unpacked.writes import (
    GIVING,
    SOMETIMES,
    VARIES,
    Entries,
    Unread,
    Write,
    hands_out,
    in_time,
    is_looked_at,
    is_quiet,
    item_of,
    key_of,
    merged,
)
from amp_migrate.facts.paths import LOOKS
from amp_migrate.facts.tree import FunctionNode
from amp_migrate.facts.variables import Variable, variable
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.programs import is_touched_elsewhere
from amp_migrate.values.written import constants

_LOOKING = LOOKS | {"dict", "list", "set", "sorted"}
_DUMPING = frozenset({"json.dump", "json.dumps", "pprint.pprint", "pprint.pformat"})
_COPYING = frozenset({"copy.copy", "copy.deepcopy"})
_ASKING = frozenset({"keys", "__contains__"})
_LONGEST = 50


class Reader:
    """Reads mappings, or what `end` returns; `late` are the keys that are written again after the use."""

    def __init__(
        self,
        project: Project,
        module: Module,
        end: ast.Return | None = None,
        *,
        followed: int = 0,
    ) -> None:
        self._end = end
        self.project = project
        self.module = module
        self._tree = module.tree
        self.late: set[str] = set()
        self._followed = followed

    def read(self, node: ast.expr, use: ast.AST) -> Entries:
        """Return the entries of an expression that is evaluated at `use`."""
        if isinstance(node, ast.Dict):
            return self._display(node, use)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return merged(self.read(node.left, use), self.read(node.right, use))
        if isinstance(node, ast.Call):
            return self._call(node, use)
        keys: list[str] = []
        while (found := self._variable(node)) is None and isinstance(node, ast.Subscript):
            keys.insert(0, key_of(node.slice))
            node = node.value
        if found is None:
            raise Unread
        return self._stored(found, keys, use)

    def _variable(self, node: ast.expr) -> Variable | None:
        """Return a variable, or a part of a collection that is assigned once."""
        found = variable(self.module.scopes, node)
        return found if found is not None and (not found.part or found.value()) else None

    def _display(self, node: ast.Dict, use: ast.AST) -> Entries:
        found: Entries = {}
        for key, value in zip(node.keys, node.values, strict=True):
            found = merged(found, self.read(value, use) if key is None else {key_of(key): value})
        return found

    def _call(self, node: ast.Call, use: ast.AST) -> Entries:
        name = self.project.external(self.module, node.func)
        made = self._returned(node)
        if made is not None:
            return made
        method = isinstance(node.func, ast.Attribute) and node.func.attr == "copy"
        if name in _COPYING and len(node.args) == 1 and not node.keywords:
            return self.read(node.args[0], use)
        if method and name not in _COPYING and not node.args and not node.keywords:
            assert isinstance(node.func, ast.Attribute)
            return self.read(node.func.value, use)
        if self.module.scopes.builtin(node.func) != "dict":
            raise Unread
        return self._given(node, use)

    def _returned(self, call: ast.Call) -> Entries | None:
        """Return the constants of the dictionary that a function makes anew, and does nothing else."""
        found = self.project.callees(call)
        if call.args or call.keywords or len(found) != 1 or found[0].node is None:
            return None
        *above, last = found[0].node.body
        alone = found[0].cls is None and not found[0].node.decorator_list
        if not alone or not isinstance(last, ast.Return) or last.value is None:
            return None
        if all(isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) for s in above):
            return constants(found[0].module, last.value)
        if not all(map(is_quiet, above)):
            return None
        made = Reader(self.project, found[0].module, last).read(last.value, last)
        return made if all(isinstance(value, ast.Constant) for value in made.values()) else None

    def _given(self, node: ast.Call, use: ast.AST) -> Entries:
        """Return what `dict()` and `update()` take from their arguments."""
        found: Entries = {}
        for argument in node.args:
            found = merged(found, self.read(argument, use))
        for keyword in node.keywords:
            value = keyword.value
            more = self.read(value, use) if keyword.arg is None else {keyword.arg: value}
            found = merged(found, more)
        return found

    def _stored(self, name: Variable, keys: list[str], use: ast.AST) -> Entries:
        """Return what the mapping of a variable, or the one under `keys` in it, holds."""
        scope, first = name.body(), self._first(name)
        if not isinstance(scope, FunctionNode | ast.Module):
            raise Unread
        other = variable(self.module.scopes, first)
        if other is not None and other.body() is scope:
            self._follow()
            return self._stored(other, keys, use)
        if keys:
            value = self._stored(name, keys[:-1], use).get(keys[-1])
            if value is None or value in (VARIES, SOMETIMES):
                raise Unread
        else:
            value = first
        writes = [Write(self._tree.statement(value), self.read(value, value))]
        for place in self._places(name, keys):
            writes += self._written(place)
        if not keys:
            self._close(name)
        found: Entries = {}
        early = in_time(self.module, scope, writes, use)
        if name.part and writes[0] not in early:
            raise Unread
        for write in early:
            sometimes: Entries = dict.fromkeys(write.entries, SOMETIMES)
            found = merged(found, write.entries if write.always else sometimes)
        met = {write.node for write in early}
        self.late |= {key for write in writes if write.node not in met for key in write.entries}
        return self._without_inner(name, keys, found)

    def _close(self, name: Variable) -> None:
        """Refuse a variable of a module that other files may write to."""
        if isinstance(name.scope, ast.Module) and is_touched_elsewhere(
            self.project, self.module, name.name
        ):
            raise Unread

    def _follow(self) -> None:
        """Go on to another name, where names are not given one another."""
        self._followed += 1
        if self._followed > _LONGEST:
            raise Unread

    def _first(self, name: Variable) -> ast.expr:
        """Return the value of the only assignment to a variable."""
        value = name.value()
        if value is None:
            raise Unread
        return value

    def _places(self, name: Variable, keys: list[str]) -> Iterator[ast.expr]:
        """Yield the expressions that read the mapping itself."""
        for node in name.reads:
            place: ast.expr | None = node
            for key in keys:
                place = item_of(self._tree.parent(place), place, key) if place else None
            if place is not None:
                yield place

    def _written(self, place: ast.expr) -> Iterator[Write]:
        """Yield what is written where a mapping is read; `within` another one."""
        up = self._tree.parent(place)
        if isinstance(up, ast.Subscript) and up.value is place:
            yield from self._item(up)
        elif isinstance(up, ast.Attribute):
            yield from self._method(up)
        elif isinstance(up, ast.keyword) and up.arg is not None:
            self._handed_on(self._tree.parent(up), place)
        elif isinstance(up, ast.Call):
            name = self.project.external(self.module, up.func)
            looks = self.module.scopes.builtin(up.func) in _LOOKING
            if place not in up.args or not (looks or name in _DUMPING | _COPYING):
                self._handed_on(up, place)
        elif isinstance(up, ast.Dict):
            if not any(k is None and v is place for k, v in zip(up.keys, up.values, strict=True)):
                raise Unread
        elif isinstance(up, ast.Assign) and (alias := self._variable(up.targets[0])):
            yield from self._renamed(up, alias)
        elif up is not self._end and not is_looked_at(up, place):
            raise Unread

    def _handed_on(self, call: ast.AST | None, place: ast.expr) -> None:
        """Refuse a mapping that is given to functions, where one of them may write to it."""
        if not isinstance(call, ast.Call) or not self.project.callees(call):
            raise Unread
        for callee in self.project.callees(call):
            given = self.project.given(call, callee)
            names = [name for name, node in given.items() if node is place]
            if len(names) != 1:
                raise Unread
            self._follow()
            Reader(self.project, callee.module, followed=self._followed).look_at(callee, names[0])

    def look_at(self, function: Function, name: str) -> None:
        """Refuse a parameter of a function that is bound anew, or whose mapping the function may write to."""
        scopes = self.module.scopes
        if len(scopes.bindings(function.scope, name)) != 1:
            raise Unread
        for place in scopes.spelt(function.scope, name):
            if any(self._written(place)):
                raise Unread

    def _renamed(self, statement: ast.Assign, alias: Variable) -> Iterator[Write]:
        """Yield what is written to a mapping by a name that it alone gets."""
        if len(statement.targets) > 1 or self._first(alias) is not statement.value:
            raise Unread
        self._follow()
        self._close(alias)
        for place in self._places(alias, []):
            yield from self._written(place)

    def _item(self, item: ast.Subscript) -> Iterator[Write]:
        if isinstance(item.ctx, ast.Load):
            return
        stmt = self._tree.parent(item)
        if not isinstance(stmt, ast.Assign) or item not in stmt.targets:
            raise Unread
        yield Write(stmt, {key_of(item.slice): stmt.value})

    def _method(self, method: ast.Attribute) -> Iterator[Write]:
        call = self._tree.call_of(method)
        if call is None:
            raise Unread
        if method.attr == "update":
            yield Write(call, self._given(call, call))
        elif method.attr not in _ASKING | GIVING:
            raise Unread

    def _without_inner(self, name: Variable, keys: list[str], found: Entries) -> Entries:
        """Refuse where a mapping inside this one is handed out by other ways than its key."""
        if not any(isinstance(value, ast.Dict | ast.Call) for value in found.values()):
            return found
        for place in self._places(name, keys):
            if hands_out(self.module, self._tree.parent(place)):
                raise Unread
        return found
