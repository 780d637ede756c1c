"""The graph nodes of a project's variables, attributes and return values."""

from __future__ import annotations

import ast

from amp_migrate.facts.constants import string_start
from amp_migrate.facts.narrowed import asked_for_plain, is_plain
from amp_migrate.facts.paths import path
from amp_migrate.facts.scopes import ScopeNode
from amp_migrate.modules.lookup import Lookup, Meaning
from amp_migrate.modules.model import Class, Function, Module
from amp_migrate.values.links.graph import Graph
from amp_migrate.values.links.upstream import APPENDED
from amp_migrate.values.objects import Bound, Instance

ITEMS = "[]"  # the mention of any item of an object
# Generic types of Python: what they hold, or are, is what stands in their brackets.
_SAME = frozenset(
    {"Annotated", "ClassVar", "Final", "NotRequired", "Optional", "Required", "Union"}
)
_MAPPINGS = frozenset(
    {"DefaultDict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict", "dict"}
)
_TUPLES = frozenset({"Tuple", "tuple"})
_COLLECTIONS = _MAPPINGS | {
    "AbstractSet", "AsyncGenerator", "AsyncIterable", "AsyncIterator", "Collection", "Deque", "FrozenSet", "Generator",
    "Iterable", "Iterator", "List", "MutableSequence", "MutableSet", "Reversible", "Sequence", "Set", "Tuple", "deque",
    "frozenset", "list", "set", "tuple",
}  # fmt: skip


class Nodes:
    """Makes the nodes of a project's variables, attributes and return values as they are asked for."""

    def __init__(self, lookup: Lookup) -> None:
        self.lookup = lookup
        self.graph = Graph(self.attribute)
        self.mentions: dict[Class, set[str]] = {}
        self.stored: set[str] = set()
        self.read: set[tuple[Module, str]] = set()
        self.asked: set[str] = set()
        self._objects: dict[Class, int] = {}
        self._attributes: dict[tuple[Class, str], int] = {}
        self._bodies: dict[tuple[Class, str], int] = {}
        self._variables: dict[tuple[ScopeNode, str], int] = {}
        self._returns: dict[Function, int] = {}
        self._plain: dict[Module, frozenset[str]] = {}

    def is_plain(self, module: Module, name: ast.Name) -> bool:
        """Tell whether a variable holds a text or a number where it is read, as a test around that says: no object."""
        if module not in self._plain:
            self._plain[module] = asked_for_plain(module.tree, module.scopes)
        return name.id in self._plain[module] and is_plain(module.tree, module.scopes, name)

    def drops(self, module: Module, target: ast.expr) -> bool:
        """Tell whether nothing reads a variable that is bound more than once, as often ``_``: that joins no values."""
        if not isinstance(target, ast.Name) or target.id in self.asked:
            return False
        if (module, target.id) in self.read:
            return False
        scope = module.scopes.owner(target)
        return scope is not None and len(module.scopes.bindings(scope, target.id)) > 1

    def object(self, cls: Class) -> int:
        """Return the node of ``self`` in the methods of `cls`."""
        if cls not in self._objects:
            self._objects[cls] = node = self.graph.new()
            self.graph.state(node, Instance(cls, exact=False))
        return self._objects[cls]

    def attribute(self, cls: Class, name: str) -> int:
        """Return the node of an attribute of an instance of `cls`, or of one of its subclasses.

        What only class bodies bind (methods, registries) is that of the class itself, or what its subclasses
        put in its place. Else a class shares the attribute with those of its bases that mention it (where none
        does, with its subclasses).
        """
        key = (cls, name)
        if key not in self._attributes:
            bound = name not in self.stored and self._bound(cls, name)
            self._attributes[key] = bound or self._shared(cls, name)
        return self._attributes[key]

    def body(self, cls: Class, name: str) -> int:
        """Return the node of what the body of `cls` itself binds to a name."""
        if name in self.stored:
            return self.attribute(cls, name)
        if (cls, name) not in self._bodies:
            self._bodies[cls, name] = node = self.graph.new()
            self.graph.keep(node)
        return self._bodies[cls, name]

    def _bound(self, cls: Class, name: str) -> int | None:
        """Return the node of an attribute that only class bodies bind; None where no body in reach does."""
        binders = (home for home in cls.mro() if name in home.module.scopes.names(home.node))
        home = next(binders, None)
        below = [sub for sub in cls.subclasses() if name in sub.module.scopes.names(sub.node)]
        if home is None and not below:
            return None
        node = self.graph.plain_field(self.object(cls), name)
        self.graph.keep(node)
        inherits = home is not None and home is not cls and _is_method(home, name)
        if home is not None and inherits:
            self.graph.state(node, Bound(home.methods[name], cls))
        elif home is not None and not below:
            self.graph.merge(self.body(home, name), node)
        elif home is not None:
            below.append(home)
        for binder in below:
            inner = self.body(binder, name)
            self.graph.flow(inner, node)
            if name not in binder.methods:
                self.graph.flow(self.graph.field(node, APPENDED), self.graph.field(inner, APPENDED))
        return node

    def _shared(self, cls: Class, name: str) -> int:
        known = ITEMS if name[:1] == "[" else name
        homes = [home for home in cls.mro() if known in self.mentions.get(home, ())]
        if not homes:
            homes = [home for home in cls.subclasses() if known in self.mentions.get(home, ())]
        nodes = [self.graph.plain_field(self.object(home), name) for home in homes or [cls]]
        for node in nodes:
            self.graph.keep(node)
            self.graph.merge(nodes[0], node)
        return nodes[0]

    def returned(self, function: Function) -> int:
        """Return the node of what a function returns."""
        if function not in self._returns:
            self._returns[function] = self.graph.new()
        return self._returns[function]

    def variable(self, module: Module, scope: ScopeNode, name: str) -> int:
        """Return the node of the variable `name` that `scope` binds."""
        key = (scope, name)
        if key not in self._variables:
            self._variables[key] = node = self.graph.new()
            if isinstance(scope, ast.Module):
                self.graph.keep(node)
            if isinstance(scope, ast.ClassDef) and scope in module.classes:
                self.graph.merge(node, self.body(module.classes[scope], name))
            for binding in module.scopes.bindings(scope, name):
                self._bind(module, binding, node)
        return self._variables[key]

    def parameter(self, function: Function, name: str) -> int:
        """Return the node of a parameter (``*args`` and ``**kwargs`` too)."""
        return self.variable(function.module, function.scope, name)

    def of_module(self, module: Module, name: str) -> int | None:
        """Return the node of a module's global variable; None if the module has no such name."""
        top = module.tree.module
        for source in (module, *self.lookup.starred_from(module)):
            if source.scopes.bindings(source.tree.module, name):
                return self.variable(source, source.tree.module, name)
        return self._variables.get((top, name))

    def _bind(self, module: Module, binding: ast.AST, node: int) -> None:
        if isinstance(binding, ast.alias):
            for meaning in self.lookup.imported(module, binding):
                self.graph.state(node, meaning)
            statement = module.tree.parents.get(binding)
            if isinstance(statement, ast.ImportFrom):
                source = self.lookup.source(module, statement)
                known = self.of_module(source, binding.name) if isinstance(source, Module) else None
                if known is not None:
                    self.graph.merge(node, known)
        elif isinstance(binding, ast.ClassDef) and binding in module.classes:
            self.graph.state(node, module.classes[binding])
        elif binding in module.functions:
            function = module.functions[binding]
            if function.cls is None:
                self.graph.state(node, function)
        elif isinstance(binding, ast.arg):
            self._parameter(module, binding, node)

    def _parameter(self, module: Module, binding: ast.arg, node: int) -> None:
        function = module.functions.get(module.scopes.scope_of(binding))
        if function is None:
            return
        if function.cls is not None and function.receiver == binding.arg:
            if function.is_class:
                below = function.name == "__init_subclass__"
                for cls in function.cls.subclasses() if below else [function.cls]:
                    self.graph.state(node, cls)
            else:
                self.graph.merge(node, self.object(function.cls))
        elif binding.annotation is not None:
            self.annotate(module, binding.annotation, node)

    def annotate(self, module: Module, annotation: ast.expr, node: int) -> None:
        """Note the classes of the project that an annotation names (also quoted, or inside ``Optional``).

        What a collection is declared to hold is noted of its items.
        """
        scope = module.scopes.scope_of(annotation)
        queue: list[tuple[ast.AST, int]] = [(annotation, node)]
        for part, held in queue:
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                queue += [(inner, held) for inner in _parsed(part.value)]
            elif isinstance(part, ast.Name | ast.Attribute):
                for meaning in self._meant(module, scope, path(part) or ""):
                    if isinstance(meaning, Class):
                        self.graph.state(held, Instance(meaning, exact=False))
            elif isinstance(part, ast.Subscript):
                queue += self._declared(module, scope, part, held)
            else:
                queue += [(inner, held) for inner in ast.iter_child_nodes(part)]

    def _declared(
        self, module: Module, scope: ScopeNode, annotation: ast.Subscript, node: int
    ) -> list[tuple[ast.AST, int]]:
        """Return what ``Name[...]`` declares, each part with the node of what it is declared of."""
        base = path(annotation.value) or ""
        meanings = self._meant(module, scope, base)
        names = {m.rpartition(".")[2] for m in meanings if isinstance(m, str)}
        names = names or ({base} if not meanings else set())
        given = annotation.slice
        parts = given.elts if isinstance(given, ast.Tuple) else [given]
        if names & _MAPPINGS:
            parts = parts[1:]
        elif not names & _COLLECTIONS:
            within = parts if names & _SAME else [annotation.value]
            return [(part, node) for part in within]
        rest = any(isinstance(part, ast.Constant) and part.value is Ellipsis for part in parts)
        if names & _TUPLES and len(parts) > 1 and not rest:
            return [(part, node) for part in parts]  # each item has a class of its own
        items = self.graph.field(node, APPENDED)
        return [(part, items) for part in parts]

    def _meant(self, module: Module, scope: ScopeNode, name: str) -> tuple[Meaning, ...]:
        """Return what a dotted name means that an annotation spells."""
        parts = name.split(".")
        meanings = self.lookup.seen_from(module, scope, parts[0])
        for part in parts[1:]:
            meanings = tuple(m for base in meanings for m in self.lookup.member(base, part))
        return meanings

    def taken(self, base: int, name: ast.expr) -> int:
        """Return the node of an attribute that is taken by its name; by a computed one, of any that starts as it does."""
        if isinstance(name, ast.Constant):
            return self.graph.field(base, str(name.value))
        start = string_start(name)
        known = {name for names in self.mentions.values() for name in names}
        result = self.graph.new()
        for each in sorted(name for name in known if start and name.startswith(start)):
            self.graph.flow(self.graph.field(base, each), result)
        return result

    def has(self, node: int, name: str) -> bool:
        """Tell whether `node` is an object of a project class that has or mentions an attribute `name`."""
        return any(
            isinstance(fact, Instance)
            and any(name in self.mentions.get(cls, ()) for cls in fact.cls.mro())
            for fact in self.graph.own_facts(node)
        )


def _is_method(cls: Class, name: str) -> bool:
    """Tell whether a class defines a method that is called on its objects."""
    method = cls.methods.get(name)
    return method is not None and method.takes_receiver and not method.is_property


def function_of(module: Module, node: ast.AST) -> Function:
    """Return the function in which `node` is evaluated; the module's top-level code outside of all."""
    scope = module.scopes.scope_of(node)
    while scope not in module.functions:
        scope = module.scopes.scope_of(scope)
    return module.functions[scope]


def enclosing_class(module: Module, node: ast.AST) -> Class | None:
    """Return the class whose method, or function nested in a method, holds `node`."""
    return function_of(module, node).class_around


def _parsed(text: str) -> list[ast.AST]:
    try:
        return [ast.parse(text, mode="eval").body]
    except (SyntaxError, ValueError):
        return []
