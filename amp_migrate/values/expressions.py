"""Which node of the graph an expression stands for."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable

from amp_migrate.facts.imports import last_name
from amp_migrate.facts.paths import argument, looked_up
from amp_migrate.facts.scopes import global_name
from amp_migrate.modules.model import Class, Module
from amp_migrate.values.forms import below, class_asked, fields, is_module_itself
from amp_migrate.values.links.graph import VALUES
from amp_migrate.values.links.unwrapped import UNWRAPS, Unwrapped
from amp_migrate.values.links.upstream import APPENDED, EACH
from amp_migrate.values.nodes import Nodes, enclosing_class
from amp_migrate.values.objects import Fact, Held, Made, Written
from amp_migrate.values.wrappers import KEEPS_ITEMS, SELF_METHODS, wrapped

_APEX_INITIALIZE = {"apex.amp.initialize", "apex.amp.frontend.initialize"}
_DEEPEST = 100
_SAME_ITEMS = {"dict", "filter", "iter", "list", "reversed", "set", "sorted", "tuple", "vars"}
NAMESPACES = {"SimpleNamespace", "Namespace"}


class Expressions:
    """Reads expressions as nodes; every expression of the source has one node, or none, for good."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.graph = nodes.graph
        self.lookup = nodes.lookup
        self.unwrapped = Unwrapped(nodes)
        self._known: dict[ast.expr, int | None] = {}
        self._depth = 0

    def node(self, module: Module, expression: ast.expr) -> int | None:
        """Return the node of an expression; None for constants, arithmetic, comparisons."""
        if expression not in self._known:
            # Odd code may ask for an expression while it is being read, or nest without end.
            self._known[expression] = None
            if self._depth < _DEEPEST:
                self._depth += 1
                self._known[expression] = self._read(module, expression)
                self._depth -= 1
        return self._known[expression]

    def _read(self, module: Module, node: ast.expr) -> int | None:
        if isinstance(node, ast.Name):
            return None if self.nodes.is_plain(module, node) else self._name(module, node)
        if isinstance(node, ast.Attribute):
            return self._attribute(module, node)
        if isinstance(node, ast.Call):
            return self._call(module, node)
        if isinstance(node, ast.Subscript):
            return self._item(module, node)
        if isinstance(node, (ast.Starred, ast.Await)):
            return self.node(module, node.value)
        if isinstance(node, ast.NamedExpr):
            return self.node(module, node.target)
        if isinstance(node, ast.IfExp):
            return self._either(module, [node.body, node.orelse])
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
            return self._either(module, node.values)
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            return self._items(module, node.elts)
        if isinstance(node, ast.Dict):
            return self._mapping(module, node)
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            return self._each(self.node(module, node.elt))
        if isinstance(node, ast.Lambda):
            return self._stated((Written(module, node),))
        return self._each(self.node(module, node.value)) if isinstance(node, ast.DictComp) else None

    def _name(self, module: Module, node: ast.Name) -> int | None:
        scope = module.scopes.owner(node)
        if scope is not None:
            return self.nodes.variable(module, scope, node.id)
        for source in self.lookup.starred_from(module):
            if source.scopes.bindings(source.tree.module, node.id):
                return self.nodes.variable(source, source.tree.module, node.id)
        stated = self._stated(self.lookup.expression(module, node))
        if stated is None and not hasattr(builtins, node.id):
            # A name from a file that is not here is a variable as well.
            return self.nodes.variable(module, module.tree.module, node.id)
        return stated

    def _stated(self, facts: tuple[Fact, ...]) -> int | None:
        if not facts:
            return None
        node = self.graph.new()
        for fact in facts:
            self.graph.state(node, fact)
        return node

    def _attribute(self, module: Module, node: ast.Attribute) -> int | None:
        for meaning in self.lookup.expression(module, node.value):
            if isinstance(meaning, Module):
                known = self.nodes.of_module(meaning, node.attr)
                if known is not None:
                    return known
            elif isinstance(meaning, Class):
                return self.nodes.attribute(meaning, node.attr)
        stated = self._stated(self.lookup.expression(module, node))
        if stated is not None:
            return stated
        of_class = class_asked(module, node.value)
        if isinstance(of_class, Class):
            return self.nodes.attribute(of_class, node.attr)
        base = self.node(module, of_class or node.value)
        if base is None or node.attr == UNWRAPS:
            return None if base is None else self.unwrapped.behind(base)
        return self.graph.field(base, node.attr)

    def _item(self, module: Module, node: ast.Subscript) -> int | None:
        if (name := global_name(node)) is not None:
            return self.nodes.variable(module, module.tree.module, name)
        base = self.node(module, node.value)
        if base is None or isinstance(node.slice, ast.Slice):
            return base
        key = f"[{node.slice.value!r}]" if isinstance(node.slice, ast.Constant) else EACH
        return self.graph.field(base, key)

    def _either(self, module: Module, options: list[ast.expr]) -> int | None:
        nodes = [n for n in (self.node(module, item) for item in options) if n is not None]
        if len(nodes) < 2:
            return nodes[0] if nodes else None
        return self._joined(nodes)

    def _joined(self, nodes: Iterable[int | None]) -> int:
        result = self.graph.new()
        for node in nodes:
            if node is not None:
                self.graph.flow(node, result)
        return result

    def _items(self, module: Module, items: list[ast.expr]) -> int:
        result = self.graph.new()
        for index, item in enumerate(items):
            inner = self.node(module, item)
            if inner is None:
                continue
            if isinstance(item, ast.Starred):
                self.graph.flow(self.graph.field(inner, EACH), self.graph.field(result, APPENDED))
            else:
                self.graph.merge(inner, self.graph.field(result, f"[{index}]"))
        return result

    def _mapping(self, module: Module, node: ast.Dict) -> int:
        result = self.graph.new()
        if all(isinstance(key, ast.Constant) for key in node.keys):
            self.graph.flow(self._items(module, node.values), self.graph.field(result, VALUES))
        for key, value in zip(node.keys, node.values, strict=True):
            inner = self.node(module, value)
            if inner is None:
                continue
            if key is None:
                self.graph.flow(inner, result)
            elif isinstance(key, ast.Constant):
                self.graph.merge(inner, self.graph.field(result, f"[{key.value!r}]"))
            else:
                self.graph.flow(inner, self.graph.field(result, APPENDED))
        return result

    def _each(self, inner: int | None) -> int:
        result = self.graph.new()
        if inner is not None:
            self.graph.flow(inner, self.graph.field(result, APPENDED))
        return result

    def _call(self, module: Module, call: ast.Call) -> int | None:
        func = call.func
        meanings = self.lookup.expression(module, func)
        if isinstance(func, ast.Name) and not meanings:
            if (builtin := self._builtin(module, call, func.id)) is not None:
                return builtin
        outside = [meaning for meaning in meanings if isinstance(meaning, str)]
        for name in outside if meanings else [last_name(func)]:
            same = wrapped(name, call)
            if same is not None:
                return self.node(module, same)
        if any(name in _APEX_INITIALIZE for name in outside):
            return self.initialized(module, call)
        if isinstance(func, ast.Attribute) and not meanings:
            if (known := self._method(module, call, func)) is not None:
                return known
        result = self.graph.new()
        for name in outside:
            self.graph.state(result, Made(name))
            if name in KEEPS_ITEMS:
                self.graph.flow(self._joined(self.node(module, a) for a in call.args), result)
            if name == "functools.partial" and call.args:
                self.graph.state(result, Held(module, call))
            if name.rpartition(".")[2] in NAMESPACES:
                self._keywords(module, call, result, "{}")
        for place, name in enumerate(fields(self.lookup, module, func)):
            given = call.args[place] if place < len(call.args) else argument(call, name)
            inner = self.node(module, given) if given is not None else None
            if inner is not None:
                self.graph.merge(inner, self.graph.field(result, name))
                self.graph.merge(inner, self.graph.field(result, f"[{place}]"))
        return result

    def _builtin(self, module: Module, call: ast.Call, name: str) -> int | None:
        if module.scopes.find(module.scopes.scope_of(call), name) is not None:
            return None
        if name == "super":
            cls = enclosing_class(module, call)
            return self.nodes.object(cls) if cls is not None else None
        if (taken := looked_up(call)) is not None:
            return self._taken(module, call, *taken)
        if name == "dict" and (call.keywords or not call.args):
            result = self._joined(self.node(module, item) for item in call.args)
            self._keywords(module, call, result, "['{}']")
            return result
        return self._iterated(module, call, name)

    def _taken(self, module: Module, call: ast.Call, base: ast.expr, name: ast.expr) -> int | None:
        """Return the node of an attribute that is taken by its name, or of what is given in its place."""
        if isinstance(name, ast.Constant) and is_module_itself(base):
            return self.nodes.of_module(module, str(name.value))
        if (node := self.node(module, base)) is None:
            return None
        found, other = self.nodes.taken(node, name), self._either(module, call.args[2:])
        return found if other is None else self._joined((found, other))

    def _iterated(self, module: Module, call: ast.Call, name: str) -> int | None:
        nodes = [self.node(module, item) for item in call.args]
        if name in _SAME_ITEMS and nodes:
            return nodes[-1]
        if name == "next" and nodes and nodes[0] is not None:
            return self.graph.field(nodes[0], EACH)
        if name in {"zip", "enumerate"}:
            result = self.graph.new()
            pair = self.graph.field(result, EACH)
            for index, node in enumerate(nodes[:1] if name == "enumerate" else nodes):
                if node is not None:
                    place = index + (name == "enumerate")
                    each = self.graph.field(node, EACH)
                    self.graph.merge(each, self.graph.field(pair, f"[{place}]"))
            return result
        return None

    def _method(self, module: Module, call: ast.Call, func: ast.Attribute) -> int | None:
        if func.attr == "__subclasses__":
            return self._subclasses(module, func.value)
        if (taken := looked_up(call)) is not None:
            return self._taken(module, call, *taken)
        if func.attr == "_replace":
            result = self._joined([self.node(module, func.value)])
            self._keywords(module, call, result, "{}")
            return result
        if func.attr not in SELF_METHODS | {"get", "setdefault", "pop", "values", "items"}:
            return None
        base = self.node(module, func.value)
        if base is None or self.nodes.has(base, func.attr):
            return None
        if func.attr in SELF_METHODS or func.attr == "values":
            return base
        if func.attr == "items":
            result = self.graph.new()
            pair = self.graph.field(result, EACH)
            self.graph.merge(self.graph.field(base, EACH), self.graph.field(pair, "[1]"))
            return result
        key = call.args[0] if call.args else None
        if isinstance(key, ast.Constant):
            return self.graph.field(base, f"[{key.value!r}]")
        if key is None:
            return None
        each = self.graph.field(base, EACH)
        if func.attr == "setdefault":
            self.graph.flow(each, self.graph.field(base, APPENDED))
        return each

    def _subclasses(self, module: Module, node: ast.expr) -> int:
        return self._each(self._stated(below(self.lookup.expression(module, node))))

    def _keywords(self, module: Module, call: ast.Call, result: int, form: str) -> None:
        for keyword in call.keywords:
            if (inner := self.node(module, keyword.value)) is None:
                continue
            if keyword.arg is None:
                self.graph.flow(inner, result)
            else:
                self.graph.merge(inner, self.graph.field(result, form.format(keyword.arg)))

    def initialized(self, module: Module, call: ast.Call) -> int | None:
        """Return the node of what ``amp.initialize`` returns: its models, or a pair with the optimizers."""
        if call.args and isinstance(call.args[0], ast.Starred):
            return self.node(module, call.args[0])
        given, optimizers = argument(call, "models", 0), argument(call, "optimizers", 1)
        models = self.node(module, given) if given is not None else None
        if optimizers is None or (isinstance(optimizers, ast.Constant) and not optimizers.value):
            return models
        result = self.graph.new()
        for index, node in enumerate((models, self.node(module, optimizers))):
            if node is not None:
                self.graph.merge(node, self.graph.field(result, f"[{index}]"))
        return result
