"""Which names a computed attribute may have: the strings that calls, loops and assignments in sight give it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from amp_migrate.facts.constants import string
from amp_migrate.facts.paths import LOOKS
from amp_migrate.facts.scopes import ScopeNode, assigned
from amp_migrate.facts.tree import Tree
from amp_migrate.modules.bases import GIVE_NOTHING
from amp_migrate.modules.binding import bind
from amp_migrate.modules.model import CallSite, Class, Function, Module
from amp_migrate.values.nodes import function_of

_Mention = tuple[Module, ast.AST]
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# Functions of Python that look at a collection, or go through it or a copy.
_GO_THROUGH = LOOKS | {"enumerate", "list", "reversed", "set", "sorted", "tuple", "zip"}


class Spoken:
    """Asks for the strings that an expression may be; a parameter, by every place that says the name of its function."""

    def __init__(self, modules: Mapping[str, Module]) -> None:
        self._modules = modules
        self._mentions: dict[str, list[_Mention]] | None = None
        self._variables: dict[tuple[ast.AST, str], frozenset[str] | None] = {}

    def names(self, function: Function, node: ast.expr) -> frozenset[str] | None:
        """Return the strings that an expression of a function may be; None where that is not told."""
        return self._strings(function, node)

    def _strings(self, function: Function, node: ast.expr) -> frozenset[str] | None:
        constant = string(node)
        if constant is not None:
            return frozenset({constant})
        if isinstance(node, ast.IfExp):
            return _all(self._strings(function, arm) for arm in (node.body, node.orelse))
        if isinstance(node, ast.Name):
            return self._named(function, node)
        if isinstance(node, ast.Attribute):
            return self._of_classes(function, node)
        parts = _parts(node)
        known = [self._strings(function, part) for part in parts or ()]
        told = [some for some in known if some is not None]
        if not parts or len(told) < len(known):
            return None
        return frozenset(map("".join, product(*told)))

    def _named(self, function: Function, node: ast.Name) -> frozenset[str] | None:
        """Return what a variable of a function is bound to, worked out once; None for one that is asked for itself meanwhile."""
        owner = function.module.scopes.owner(node)
        home = function.module.functions.get(owner) if owner is not None else None
        if isinstance(owner, _COMPREHENSIONS):
            home = function_of(function.module, node)
        if home is None or owner is None:
            return None
        key = owner, node.id
        if key not in self._variables:
            self._variables[key] = None
            self._variables[key] = self._bound(home, owner, node.id)
        return self._variables[key]

    def _bound(self, function: Function, owner: ScopeNode, name: str) -> frozenset[str] | None:
        """Return what binds a variable: the calls of a function, a loop over strings, or assignments."""
        bindings = function.module.scopes.bindings(owner, name)
        if owner is function.scope and name in function.parameters.names:
            given = all(isinstance(binding, ast.arg) for binding in bindings)
            return self._given(function, name) if given else None
        tree = function.module.tree
        held = {b: taken for b in bindings if (taken := _collection(tree, b)) is not None}
        values = [v for b in bindings if b not in held for v in _bound(tree, b)]
        strings = [
            self._strings(function, value)
            if value is not None and not isinstance(value, ast.Name)
            else None
            for value in values
        ]
        strings += [self._of_classes(function, each, items=True) for each in held.values()]
        return _all(strings)

    def _of_classes(
        self,
        function: Function,
        node: ast.Attribute,
        *,
        items: bool = False,
    ) -> frozenset[str] | None:
        """Return what classes give an attribute of the object of a method; None where anything else may give it.

        With `items`, what the collection holds that they give it, if nothing but these puts anything into it.
        """
        cls = _class_of(function, node.value)
        related = [cls, *cls.subclasses()] if cls is not None else []
        family = dict.fromkeys(base for each in related for base in each.mro())
        if any(not GIVE_NOTHING.issuperset(each.external_bases) for each in family):
            return None
        bodies: set[ast.AST] = {each.node for each in family}
        found: list[frozenset[str] | None] = []
        for module, mention in self._said(node.attr):
            if _is_asked(module, mention):
                if items and not _leaves_items(module, mention):
                    return None
                continue
            in_class = module.tree.parents.get(module.tree.statement(mention)) in bodies
            if isinstance(mention, ast.Name) and not in_class:
                continue
            value = assigned(module.tree, mention)
            found.append(_listed(value) if items else self._kept(module, value))
        return _all(found)

    def _kept(self, module: Module, value: ast.expr | None) -> frozenset[str] | None:
        """Return what an attribute is set to: a string, or what a constructor is given for a parameter."""
        text = string(value)
        if text is not None:
            return frozenset({text})
        if not isinstance(value, ast.Name) or function_of(module, value).name != "__init__":
            return None
        return self._named(function_of(module, value), value)

    def _given(self, function: Function, name: str) -> frozenset[str] | None:
        """Return what every place that says the name of a function gives one of its parameters; None where one does not."""
        found = []
        said = function.name
        if said == "__init__":
            if function.cls is None or function.cls.children:
                return None
            said = function.cls.name
        for module, mention in self._said(said):
            given = _given(module, function, mention, name)
            if given is None:
                return None
            found.append(self._strings(function_of(module, given), given))
        return _all(found)

    def _said(self, name: str) -> list[_Mention]:
        if self._mentions is None:
            self._mentions = {}
            for module in self._modules.values():
                for said, node in _mentioned(module):
                    self._mentions.setdefault(said, []).append((module, node))
        return self._mentions.get(name, [])


def _mentioned(module: Module) -> Iterator[tuple[str, ast.AST]]:
    for node in module.tree.parents:
        if isinstance(node, ast.Attribute):
            yield node.attr, node
        elif isinstance(node, ast.Name):
            yield node.id, node
        elif isinstance(node, ast.alias) and node.asname is not None:
            yield node.name, node
        elif (text := string(node)) is not None:
            yield text, node


def _class_of(function: Function, node: ast.expr) -> Class | None:
    """Return the class of the object that an expression is in a method, or in a function of it."""
    around = next((f for f in function.outward if f.is_receiver(node)), None)
    bound = function.module.scopes.bound(node) if isinstance(node, ast.Name) else []
    alone = len(bound) == 1 and isinstance(bound[0], ast.arg)
    return around.cls if around is not None and alone else None


def _is_asked(module: Module, mention: ast.AST) -> bool:
    """Tell whether what says a name there gives nothing to it: it reads an attribute, or asks whether there is one."""
    if isinstance(mention, ast.Attribute | ast.Name):
        return isinstance(mention.ctx, ast.Load)
    up = module.tree.parents.get(mention)
    asks = isinstance(up, ast.Call) and module.scopes.builtin(up.func) in ("getattr", "hasattr")
    return asks or isinstance(mention, ast.alias)


def _given(module: Module, function: Function, mention: ast.AST, name: str) -> ast.expr | None:
    """Return what a call of what may be a function gives its parameter; None for any other mention."""
    call = module.tree.call_of(mention)
    if call is None:
        return None
    passed = bind(CallSite(function, call, bound=function.takes_receiver), function)
    return passed.given.get(name)


def _collection(tree: Tree, binding: ast.AST) -> ast.Attribute | None:
    """Return the attribute whose items a loop binds a name to."""
    loop = tree.parents.get(binding)
    if not isinstance(loop, ast.For | ast.comprehension) or loop.target is not binding:
        return None
    return loop.iter if isinstance(loop.iter, ast.Attribute) else None


def _listed(value: ast.expr | None) -> frozenset[str] | None:
    """Return the strings of a collection that is written out; None where it holds anything else."""
    if not isinstance(value, ast.Tuple | ast.List | ast.Set):
        return None
    return _all(
        None if (text := string(item)) is None else frozenset({text}) for item in value.elts
    )


def _leaves_items(module: Module, mention: ast.AST) -> bool:
    """Tell whether what reads a collection puts nothing into it: it goes through it, or asks for one item or how many."""
    up = module.tree.parents.get(mention)
    if isinstance(up, ast.For | ast.comprehension):
        return up.iter is mention
    if isinstance(up, ast.Call):
        return module.scopes.builtin(up.func) in _GO_THROUGH
    return isinstance(up, ast.Subscript) and isinstance(up.ctx, ast.Load)


def _bound(tree: Tree, binding: ast.AST) -> Iterator[ast.expr | None]:
    """Yield what a name is bound to in one place: a value, or each item of a collection that is written out."""
    loop = tree.parents.get(binding)
    if not isinstance(loop, ast.For | ast.comprehension) or loop.target is not binding:
        yield assigned(tree, binding)
    elif isinstance(loop.iter, ast.Tuple | ast.List | ast.Set):
        yield from loop.iter.elts
    else:
        yield None


def _parts(node: ast.expr) -> list[ast.expr] | None:
    """Return what a string is put together of, in order; None for what is no sum of strings."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [node.left, node.right]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        given = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
        return _filled(string(node.left), "%s", "%", given)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        formats = node.func.attr == "format" and not node.keywords
        return _filled(string(node.func.value) if formats else None, "{}", "{", node.args)
    if not isinstance(node, ast.JoinedStr):
        return None
    plain = all(
        isinstance(part, ast.Constant) or (part.conversion == -1 and part.format_spec is None)
        for part in node.values
        if isinstance(part, ast.Constant | ast.FormattedValue)
    )
    parts = [p.value if isinstance(p, ast.FormattedValue) else p for p in node.values]
    return parts if plain else None


def _filled(
    template: str | None, gap: str, mark: str, given: list[ast.expr]
) -> list[ast.expr] | None:
    """Return the parts of a template with what is given in its gaps; None where it has others, or not as many."""
    pieces = template.split(gap) if template is not None else []
    if len(pieces) != len(given) + 1 or any(mark in piece for piece in pieces):
        return None
    parts: list[ast.expr] = [ast.Constant(pieces[0])]
    for value, piece in zip(given, pieces[1:], strict=True):
        parts += [value, ast.Constant(piece)]
    return None if any(isinstance(value, ast.Starred) for value in given) else parts


def _all(found: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    """Return the strings of all that is told; None where something is not, or nothing is."""
    strings: set[str] = set()
    for some in found:
        if some is None:
            return None
        strings |= some
    return frozenset(strings) or None
