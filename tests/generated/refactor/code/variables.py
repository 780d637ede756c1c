"""Which variable each name of a file is, by the scopes of Python."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from generated.refactor.code.source import Source

_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(eq=False)
class Scope:
    """A module, function, lambda, class or comprehension."""

    node: ast.AST
    outer: Scope | None
    variables: dict[str, Variable] = field(default_factory=dict)
    declared: dict[str, str] = field(default_factory=dict)

    @property
    def function(self) -> bool:
        """Whether it is a function with a body of statements."""
        return isinstance(self.node, ast.FunctionDef | ast.AsyncFunctionDef)


@dataclass(eq=False)
class Variable:
    """A variable, with all names that stand for it, in inner scopes too.

    `binders` are what binds it otherwise than by a name: parameters, imports, definitions, handlers.
    """

    name: str
    scope: Scope
    names: list[ast.Name] = field(default_factory=list)
    inner: list[ast.Name] = field(default_factory=list)
    binders: list[ast.AST] = field(default_factory=list)
    declarations: list[ast.stmt] = field(default_factory=list)

    @property
    def stores(self) -> list[ast.Name]:
        """The names that bind it."""
        return [n for n in (*self.names, *self.inner) if not isinstance(n.ctx, ast.Load)]

    @property
    def loads(self) -> list[ast.Name]:
        """The names that read it."""
        return [n for n in (*self.names, *self.inner) if isinstance(n.ctx, ast.Load)]

    @property
    def every(self) -> list[ast.Name]:
        """All names of it."""
        return [*self.names, *self.inner]

    @property
    def parameter(self) -> ast.arg | None:
        """The parameter that it is."""
        return next((b for b in self.binders if isinstance(b, ast.arg)), None)


class Scopes(ast.NodeVisitor):
    """All scopes of a file; `of` is the scope in which a node is evaluated."""

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope(tree, None)
        self.all = [self.module]
        self.by_node: dict[ast.AST, Scope] = {tree: self.module}
        self.of: dict[ast.Name, Variable] = {}
        self._here = self.module
        self._names: list[tuple[Scope, ast.Name]] = []
        self._declared: list[tuple[Scope, str, ast.stmt]] = []
        for statement in tree.body:
            self.visit(statement)
        for scope, name in self._names:
            if not isinstance(name.ctx, ast.Load):
                self._local(self._target(scope, name), name.id)
        for scope, name in self._names:
            self._resolve(scope, name)
        for scope, word, statement in self._declared:
            self._found(scope, word).declarations.append(statement)

    def _target(self, scope: Scope, name: ast.Name) -> Scope:
        walrus = getattr(name, "walrus", False)
        while walrus and isinstance(scope.node, _COMPREHENSIONS) and scope.outer:
            scope = scope.outer
        return scope

    def _local(self, scope: Scope, word: str) -> Variable:
        how = scope.declared.get(word)
        if how == "global":
            scope = self.module
        elif how == "nonlocal" and scope.outer:
            return self._found(scope.outer, word)
        return scope.variables.setdefault(word, Variable(word, scope))

    def _found(self, scope: Scope, word: str) -> Variable:
        here: Scope | None = scope
        while here is not None:
            if here.declared.get(word) == "global":
                break
            skip = isinstance(here.node, ast.ClassDef) and here is not scope
            if word in here.variables and not skip:
                return here.variables[word]
            here = here.outer
        return self.module.variables.setdefault(word, Variable(word, self.module))

    def _resolve(self, scope: Scope, name: ast.Name) -> None:
        start = self._target(scope, name)
        load = isinstance(name.ctx, ast.Load)
        variable = self._found(start, name.id) if load else self._local(start, name.id)
        (variable.names if variable.scope is scope else variable.inner).append(name)
        self.of[name] = variable

    def _bind(self, word: str, binder: ast.AST) -> None:
        self._local(self._here, word).binders.append(binder)

    def _within(self, node: ast.AST) -> Scope:
        scope = Scope(node, self._here)
        self.all.append(scope)
        self.by_node[node] = scope
        return scope

    def visit_Name(self, node: ast.Name) -> None:
        self._names.append((self._here, node))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        node.target.walrus = True  # type: ignore[attr-defined]
        self.generic_visit(node)

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        how = "global" if isinstance(node, ast.Global) else "nonlocal"
        for word in node.names:
            self._here.declared[word] = how
            self._declared.append((self._here, word, node))

    visit_Nonlocal = visit_Global

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            self._bind((alias.asname or alias.name).partition(".")[0], alias)

    visit_ImportFrom = visit_Import

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self._bind(node.name, node)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> None:
        if node.name:
            self._bind(node.name, node)
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self._bind(node.rest, node)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._bind(node.name, node)
        for decorator in node.decorator_list:
            self.visit(decorator)
        self._function(node, node.body, [node.returns] if node.returns else [])

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._function(node, [node.body], [])

    def _function(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
        body: list[ast.stmt] | list[ast.expr],
        outside: list[ast.expr],
    ) -> None:
        parameters = list(all_parameters(node))
        notes = [p.annotation for p in parameters if p.annotation]
        defaults = [*node.args.defaults, *(d for d in node.args.kw_defaults if d)]
        for expression in (*defaults, *notes, *outside):
            self.visit(expression)
        outer, self._here = self._here, self._within(node)
        for parameter in parameters:
            self._bind(parameter.arg, parameter)
        for child in body:
            self.visit(child)
        self._here = outer

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._bind(node.name, node)
        for expression in (*node.bases, *(k.value for k in node.keywords), *node.decorator_list):
            self.visit(expression)
        outer, self._here = self._here, self._within(node)
        for child in node.body:
            self.visit(child)
        self._here = outer

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
    ) -> None:
        first = node.generators[0].iter
        self.visit(first)
        outer, self._here = self._here, self._within(node)
        for generator in node.generators:
            self.visit(generator.target)
            for part in (generator.iter, *generator.ifs):
                if part is not first:
                    self.visit(part)
        heads = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        for head in heads:
            self.visit(head)
        self._here = outer

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension


def all_parameters(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
) -> Iterator[ast.arg]:
    """Yield the parameters of a function, in order."""
    a = node.args
    yield from (*a.posonlyargs, *a.args)
    yield from filter(None, (a.vararg,))
    yield from a.kwonlyargs
    yield from filter(None, (a.kwarg,))


@lru_cache(maxsize=256)
def _scopes(src: Source) -> Scopes:
    return Scopes(src.tree)


def scopes(src: Source) -> Scopes:
    """Return the scopes of a file."""
    return _scopes(src)
