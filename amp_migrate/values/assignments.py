"""What the statements of a project say about which names hold the same object."""

from __future__ import annotations

import ast
from collections.abc import Callable

from amp_migrate.modules.model import Class, Function, Module
from amp_migrate.values.expressions import Expressions
from amp_migrate.values.forms import is_values, stands_in_turn
from amp_migrate.values.links.graph import VALUES
from amp_migrate.values.links.upstream import APPENDED, EACH
from amp_migrate.values.nodes import ITEMS, Nodes, enclosing_class, function_of
from amp_migrate.values.objects import Bound

_APPENDING = {"append", "add", "appendleft"}
_OF_COLLECTIONS = _APPENDING | {"get", "items", "pop", "setdefault", "values"}


class Flow:
    """Reads every statement of a module into the graph, in no order."""

    def __init__(self, nodes: Nodes, expressions: Expressions) -> None:
        self.nodes = nodes
        self.graph = nodes.graph
        self.expressions = expressions
        self._handlers: dict[type[ast.AST], Callable[[Module, ast.AST], None]] = {
            ast.Assign: self._assign,
            ast.AnnAssign: self._annotated,
            ast.AugAssign: self._extended,
            ast.NamedExpr: self._named,
            ast.For: self._loop,
            ast.AsyncFor: self._loop,
            ast.comprehension: self._loop,
            ast.With: self._with,
            ast.AsyncWith: self._with,
            ast.Match: self._match,
            ast.Return: self._return,
            ast.Yield: self._yield,
            ast.YieldFrom: self._yield_from,
            ast.Call: self._call,
        }

    def mention(self, module: Module) -> None:
        """Note the names that `module` reads, and which attributes its classes mention; wanted before any `read`."""
        for cls in module.classes.values():
            names = {name for name in module.scopes.names(cls.node) if not name.startswith("__")}
            self.nodes.mentions.setdefault(cls, set()).update(names)
        receivers = {function.receiver for function in module.functions.values()} - {None}
        spoken = module.tree.nodes(ast.Name)
        self.nodes.read.update((module, n.id) for n in spoken if not isinstance(n.ctx, ast.Store))
        self.nodes.asked.update(alias.name for alias in module.tree.nodes(ast.alias))
        self.nodes.asked.update(node.attr for node in module.tree.nodes(ast.Attribute))
        for node in module.tree.parents:
            if isinstance(node, ast.Attribute) and _is_stored(module, node):
                self.nodes.stored.add(node.attr)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                owner = enclosing_class(module, node) if node.value.id in receivers else None
                if owner is not None and not node.attr.startswith("__"):
                    self.nodes.mentions[owner].add(node.attr)
            elif isinstance(node, ast.Name) and node.id in receivers:
                owner = enclosing_class(module, node) if _is_collection(module, node) else None
                if owner is not None:
                    self.nodes.mentions[owner].add(ITEMS)

    def read(self, module: Module) -> None:
        """Read the definitions and statements of `module`."""
        for cls in module.classes.values():
            self._class(cls)
        for function in list(module.functions.values()):
            self._defaults(function)
        handlers = self._handlers
        for node in module.tree.parents:
            handler = handlers.get(type(node))
            if handler is not None:
                handler(module, node)

    def bind(self, module: Module, target: ast.expr, value: ast.expr) -> None:
        """Let `target` hold what `value` gives."""
        if isinstance(target, ast.Starred):
            target = target.value
        if isinstance(target, ast.Subscript) and not isinstance(
            target.slice, ast.Constant | ast.Slice
        ):
            self._put(module, target, value)
            return
        if self.nodes.drops(module, target):
            return
        if not isinstance(target, (ast.Tuple, ast.List)):
            held, given = (self.expressions.node(module, node) for node in (target, value))
            self._merge(held, given, in_turn=stands_in_turn(module, target, value))
            return
        if isinstance(value, (ast.Tuple, ast.List)) and _aligned(target, value):
            for inner, item in zip(target.elts, value.elts, strict=True):
                self.bind(module, inner, item)
            return
        node = self.expressions.node(module, value)
        if node is not None and is_values(value):
            node = self.graph.field(node, VALUES)
        if node is not None:
            self._unpack(module, target, node)

    def _put(self, module: Module, target: ast.Subscript, value: ast.expr) -> None:
        """Let what is stored under a computed key be what any key gives; it is not what stands under the others."""
        base = self.expressions.node(module, target.value)
        if base is not None:
            self._append(module, base, [value])

    def _unpack(self, module: Module, target: ast.expr, node: int) -> None:
        if isinstance(target, ast.Starred):
            self._merge(self.expressions.node(module, target.value), node)
        elif isinstance(target, (ast.Tuple, ast.List)):
            exact = True
            for index, inner in enumerate(target.elts):
                exact = exact and not isinstance(inner, ast.Starred)
                self._unpack(module, inner, self.graph.field(node, f"[{index}]" if exact else EACH))
        elif not self.nodes.drops(module, target):
            self._merge(self.expressions.node(module, target), node)

    def _merge(self, a: int | None, b: int | None, in_turn: bool = False) -> None:
        if a is not None and b is not None:
            self.graph.flow(b, a) if in_turn else self.graph.merge(a, b)

    def _class(self, cls: Class) -> None:
        for base in cls.mro():
            for name in self.nodes.mentions.get(base, ()):
                self.nodes.attribute(cls, name)
        for name in cls.module.scopes.names(cls.node):
            self.nodes.variable(cls.module, cls.node, name)
        for name, method in cls.methods.items():
            if name.startswith("__"):
                continue
            node = self.nodes.body(cls, name)
            if method.is_property:
                self.graph.merge(node, self.nodes.returned(method))
            else:
                self.graph.state(node, method if method.is_static else Bound(method, cls))

    def _defaults(self, function: Function) -> None:
        for name, value in function.parameters.defaults.items():
            node = self.expressions.node(function.module, value)
            if node is not None:
                self.graph.flow(node, self.nodes.parameter(function, name))

    def _assign(self, module: Module, node: ast.AST) -> None:
        assert isinstance(node, ast.Assign)
        for target in node.targets:
            self.bind(module, target, node.value)

    def _annotated(self, module: Module, node: ast.AST) -> None:
        assert isinstance(node, ast.AnnAssign)
        target = self.expressions.node(module, node.target)
        if target is not None:
            self.nodes.annotate(module, node.annotation, target)
        if node.value is not None:
            self.bind(module, node.target, node.value)

    def _extended(self, module: Module, node: ast.AST) -> None:
        assert isinstance(node, ast.AugAssign)
        if isinstance(node.op, ast.Add) and isinstance(node.value, (ast.List, ast.Tuple)):
            target = self.expressions.node(module, node.target)
            if target is not None:
                self._append(module, target, node.value.elts)

    def _named(self, module: Module, node: ast.AST) -> None:
        assert isinstance(node, ast.NamedExpr)
        # The target is what the expression gives, whether its name is read or not.
        target = self.expressions.node(module, node.target)
        self._merge(target, self.expressions.node(module, node.value))

    def _loop(self, module: Module, node: ast.AST) -> None:
        assert isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension))
        items = self.expressions.node(module, node.iter)
        if items is not None:
            self._unpack(module, node.target, self.graph.field(items, EACH))

    def _with(self, module: Module, node: ast.AST) -> None:
        assert isinstance(node, ast.With | ast.AsyncWith)
        for item in node.items:
            if item.optional_vars is None:
                continue
            if isinstance(item.context_expr, ast.Name):
                self.bind(module, item.optional_vars, item.context_expr)
            elif isinstance(item.context_expr, ast.Call):
                made = self.expressions.node(module, item.context_expr)
                if (
                    made is not None
                ):  # a generator that serves as a context manager enters what it yields
                    self._unpack(module, item.optional_vars, self.graph.field(made, EACH))

    def _return(self, module: Module, node: ast.AST) -> None:
        assert isinstance(node, ast.Return)
        value = None if node.value is None else self.expressions.node(module, node.value)
        if value is not None:
            result = self.nodes.returned(function_of(module, node))
            if isinstance(node.value, ast.Tuple):
                # The positions hold objects; the tuple itself is new at every call.
                self.graph.merge(value, result)
            else:
                self.graph.flow(value, result)

    def _yield(self, module: Module, node: ast.AST) -> None:
        assert isinstance(node, ast.Yield)
        value = None if node.value is None else self.expressions.node(module, node.value)
        if value is not None:
            items = self.graph.field(self.nodes.returned(function_of(module, node)), EACH)
            if isinstance(node.value, ast.Tuple):
                self.graph.merge(value, items)
            else:
                self.graph.flow(value, items)

    def _yield_from(self, module: Module, node: ast.AST) -> None:
        assert isinstance(node, ast.YieldFrom)
        value = self.expressions.node(module, node.value)
        if value is not None:
            items = self.graph.field(self.nodes.returned(function_of(module, node)), EACH)
            self.graph.flow(self.graph.field(value, EACH), items)

    def _match(self, module: Module, node: ast.AST) -> None:
        assert isinstance(node, ast.Match)
        subject = self.expressions.node(module, node.subject)
        for case in node.cases if subject is not None else ():
            self._pattern(module, case.pattern, subject)

    def _pattern(self, module: Module, pattern: ast.pattern, node: int | None) -> None:
        """Let the names of a pattern hold the parts of what it is matched with."""
        if node is None:
            return
        if isinstance(pattern, ast.MatchAs | ast.MatchStar) and pattern.name is not None:
            owner = module.scopes.find(module.scopes.scope_of(pattern), pattern.name)
            if owner is not None:
                self._merge(self.nodes.variable(module, owner, pattern.name), node)
        if isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
            self._pattern(module, pattern.pattern, node)
        elif isinstance(pattern, ast.MatchOr):
            for other in pattern.patterns:
                self._pattern(module, other, node)
        elif isinstance(pattern, ast.MatchSequence):
            exact = True
            for index, part in enumerate(pattern.patterns):
                exact = exact and not isinstance(part, ast.MatchStar)
                whole = isinstance(part, ast.MatchStar)
                step = f"[{index}]" if exact else EACH
                self._pattern(module, part, node if whole else self.graph.field(node, step))
        elif isinstance(pattern, ast.MatchMapping):
            for key, part in zip(pattern.keys, pattern.patterns, strict=True):
                if isinstance(key, ast.Constant):
                    self._pattern(module, part, self.graph.field(node, f"[{key.value!r}]"))
        elif isinstance(pattern, ast.MatchClass):
            for name, part in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
                self._pattern(module, part, self.graph.field(node, name))

    def _call(self, module: Module, node: ast.AST) -> None:
        assert isinstance(node, ast.Call)
        func = node.func
        if isinstance(func, ast.Attribute) and func.attr in _APPENDING and len(node.args) == 1:
            target = self.expressions.node(module, func.value)
            if target is not None and not self.nodes.has(target, func.attr):
                self._append(module, target, node.args)
        elif isinstance(func, ast.Name) and func.id == "setattr" and len(node.args) == 3:
            base, name, value = node.args
            target = self.expressions.node(module, base)
            if target is not None and isinstance(name, ast.Constant):
                attribute = self.graph.field(target, str(name.value))
                self._merge(attribute, self.expressions.node(module, value))

    def _append(self, module: Module, target: int, items: list[ast.expr]) -> None:
        for item in items:
            node = self.expressions.node(module, item)
            if node is not None:
                self.graph.flow(node, self.graph.field(target, APPENDED))


def _is_collection(module: Module, node: ast.Name) -> bool:
    """Tell whether a receiver is used as a collection, by itself or by a method of collections."""
    up = module.tree.parents.get(node)
    return not isinstance(up, ast.Attribute) or up.attr in _OF_COLLECTIONS


def _is_stored(module: Module, node: ast.Attribute) -> bool:
    """Tell whether an attribute is assigned through an object, or an item of it under a constant key is."""
    if not isinstance(node.ctx, ast.Load):
        return True
    item = module.tree.parents.get(node)
    return (
        isinstance(item, ast.Subscript)
        and item.value is node
        and not isinstance(item.ctx, ast.Load)
        and isinstance(item.slice, ast.Constant)
    )


def _aligned(target: ast.Tuple | ast.List, value: ast.Tuple | ast.List) -> bool:
    plain = not any(isinstance(item, ast.Starred) for item in (*target.elts, *value.elts))
    return plain and len(target.elts) == len(value.elts)
