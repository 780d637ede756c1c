"""What a project is made of: modules, functions, classes and calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from amp_migrate.facts.below import behind_docstring, every
from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import walk
from amp_migrate.facts.scopes import Scopes
from amp_migrate.facts.tree import FunctionNode, Tree


@dataclass(eq=False, repr=False)
class Module:
    """One file: its path, its dotted name, and every dotted name it may be imported by."""

    path: str
    name: str
    names: tuple[str, ...]
    tree: Tree
    scopes: Scopes
    functions: dict[ast.AST, Function] = field(default_factory=dict)
    classes: dict[ast.ClassDef, Class] = field(default_factory=dict)

    @property
    def top(self) -> Function:
        """The pseudo function that holds the module's own top-level code."""
        return self.functions[self.tree.module]

    @property
    def qualname(self) -> str:
        """The dotted name, as functions and classes have one."""
        return self.name

    def __repr__(self) -> str:
        """Name the module."""
        return f"<Module {self.name}>"


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a function, in order; `defaults` holds those that have a default."""

    positional: tuple[str, ...] = ()
    keyword_only: tuple[str, ...] = ()
    defaults: Mapping[str, ast.expr] = field(default_factory=dict)
    vararg: str | None = None
    kwarg: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The named parameters: positional ones, then keyword-only ones."""
        return self.positional + self.keyword_only

    def required(self) -> tuple[str, ...]:
        """Return the parameters without a default."""
        return tuple(name for name in self.names if name not in self.defaults)


@dataclass(eq=False, repr=False)
class Function:
    """A function or method; `node` is None for the top-level code of a module ("<module>")."""

    module: Module
    node: FunctionNode | None
    qualname: str
    cls: Class | None = None
    parent: Function | None = None
    parameters: Parameters = Parameters()
    is_static: bool = False
    is_class: bool = False
    is_property: bool = False

    @property
    def name(self) -> str:
        """The name as defined, "<module>" for top-level code."""
        return self.node.name if self.node is not None else "<module>"

    @property
    def given(self) -> ast.expr | None:
        """What it returns, where it does nothing else."""
        body = [] if self.node is None else behind_docstring(self.node)
        return body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None

    def at(self, node: ast.AST) -> tuple[Module, ast.AST]:
        """Return the place of one of its nodes, as a refusal names it."""
        return self.module, node

    @property
    def scope(self) -> FunctionNode | ast.Module:
        """The node that holds the statements."""
        return self.node if self.node is not None else self.module.tree.module

    def spans(self, line: int) -> bool:
        """Tell whether a line of its file is one of its lines."""
        node = self.node
        return node is None or node.lineno <= line <= (node.end_lineno or node.lineno)

    @cached_property
    def own_nodes(self) -> tuple[ast.AST, ...]:
        """What stands in it, from the scope down, without what is inside nested functions, lambdas and classes."""
        return tuple(walk(self.scope))

    @cached_property
    def calls(self) -> tuple[ast.Call, ...]:
        """The calls that it makes itself."""
        return tuple(node for node in self.own_nodes if isinstance(node, ast.Call))

    @cached_property
    def all_calls(self) -> tuple[ast.Call, ...]:
        """The calls that stand in it, in nested functions too."""
        return tuple(node for node in self.all_nodes if isinstance(node, ast.Call))

    @cached_property
    def all_nodes(self) -> tuple[ast.AST, ...]:
        """All that stands in it, from the scope down."""
        return tuple(every(self.scope))

    @property
    def outward(self) -> list[Function]:
        """The function and those that it stands in, inner ones first."""
        return [self, *(self.parent.outward if self.parent is not None else ())]

    @property
    def method(self) -> Function:
        """The method that it is or stands in; the outermost function around it where that is none."""
        return next((f for f in self.outward if f.cls is not None), self.outward[-1])

    @property
    def class_around(self) -> Class | None:
        """The class whose method it is or stands in."""
        return self.method.cls

    @property
    def takes_receiver(self) -> bool:
        """Whether the first parameter is ``self`` or ``cls``, whatever it is called."""
        return self.receiver is not None

    @property
    def receiver(self) -> str | None:
        """The name of the object, or class, whose method the function is; None for what is no method."""
        given = self.parameters.positional
        return given[0] if self.cls is not None and not self.is_static and given else None

    @property
    def receivers(self) -> tuple[str, ...]:
        """The names of the objects whose methods the function is and stands in, inner first."""
        return tuple(f.receiver for f in self.outward if f.receiver is not None)

    def is_receiver(self, node: ast.AST | None) -> bool:
        """Tell whether an expression is the object whose method the function is."""
        return isinstance(node, ast.Name) and node.id == self.receiver

    def __repr__(self) -> str:
        """Name the function."""
        return f"<Function {self.module.name}:{self.qualname}>"


@dataclass(eq=False, repr=False)
class Anonymous(Function):
    """A lambda; `parent` is the function that it stands in."""

    body: ast.Lambda = field(kw_only=True)

    @property
    def name(self) -> str:
        """What Python calls all of them."""
        return "<lambda>"

    @property
    def given(self) -> ast.expr:
        """What it returns."""
        return self.body.body

    @property
    def scope(self) -> ast.Lambda:  # type: ignore[override]
        """The node that holds the expression."""
        return self.body


@dataclass(eq=False, repr=False)
class Class:
    """A class; `external_bases` are the dotted names of the bases that the project does not define."""

    module: Module
    node: ast.ClassDef
    qualname: str
    bases: list[Class] = field(default_factory=list)
    external_bases: tuple[str, ...] = ()
    methods: dict[str, Function] = field(default_factory=dict)
    children: list[Class] = field(default_factory=list)
    _order: tuple[Class, ...] = ()

    @property
    def name(self) -> str:
        """The name as defined."""
        return self.node.name

    def settle(self) -> None:
        """Note that the bases stay as they are."""
        self._order = self.mro()

    def mro(self) -> tuple[Class, ...]:
        """Return the class and its known bases, nearest first: a base follows all its subclasses."""
        if self._order:
            return self._order
        order: list[Class] = []
        visiting: set[Class] = set()

        def visit(cls: Class) -> None:
            if cls in visiting:
                return
            visiting.add(cls)
            for base in reversed(cls.bases):
                visit(base)
            order.append(cls)

        visit(self)
        return tuple(order[::-1])

    def subclasses(self) -> list[Class]:
        """Return every known class below this one, nearest first, without itself."""
        return [cls for cls in closure(self.children, lambda c: c.children) if cls is not self]

    def method(self, name: str) -> Function | None:
        """Return the method that an instance finds under `name`; None if no known class has it."""
        for cls in self.mro():
            if name in cls.methods:
                return cls.methods[name]
        return None

    def fields(self) -> list[str]:
        """Return the names that the body of the class annotates: what a dataclass is made of."""
        return [
            statement.target.id
            for statement in self.node.body
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
        ]

    def externals(self) -> tuple[str, ...]:
        """Return the dotted names of all bases outside the project, its bases' included."""
        return tuple(dict.fromkeys(name for cls in self.mro() for name in cls.external_bases))

    def __repr__(self) -> str:
        """Name the class."""
        return f"<Class {self.module.name}:{self.qualname}>"


@dataclass(frozen=True, eq=False)
class CallSite:
    """A call that may reach a function.

    `function` holds the call. `bound`: the first parameter is taken (a method through its object).
    `partial`: the call is ``functools.partial(f, ...)``, and its arguments follow `f`.
    `constructor`: the call is of the class, and reaches ``__init__``.
    """

    function: Function
    call: ast.Call
    bound: bool = False
    partial: bool = False
    constructor: bool = False

    def arguments(self) -> list[ast.expr]:
        """Return the positional arguments, without the function given to ``partial``."""
        return self.call.args[1:] if self.partial else self.call.args


def overriding(function: Function) -> list[Function]:
    """Return a method with those it overrides and those that override it, itself first."""

    def related(member: Function) -> Iterator[Function]:
        cls = member.cls
        for below in (cls, *cls.subclasses()) if cls is not None else ():
            named = (other.methods.get(function.name) for other in below.mro())
            yield from (method for method in named if method is not None)

    return closure([function], related)
