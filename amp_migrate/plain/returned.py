"""Blocks that enter what a function or a lambda returns, where that comes down to `amp.scale_loss`, or to nothing but the loss.

``scale = lambda loss: amp.scale_loss(loss, optimizer)``, also beside ``lambda loss: nullcontext(loss)`` under a flag.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator, Mapping

from amp_migrate.facts.paths import path, same
from amp_migrate.facts.scopes import assigned
from amp_migrate.plain.choice import Chosen
from amp_migrate.plain.held import Holding
from amp_migrate.plain.unused import method_of

_ACTS = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)
_BOUND = (ast.Lambda, ast.comprehension, *_ACTS[1:])
_Body = ast.FunctionDef | ast.Lambda
_Leaf = tuple[_Body, ast.Call, ast.expr | None]


class Returning:
    """Finds in one file the blocks whose context a function of the file returns."""

    def __init__(self, holding: Holding) -> None:
        self._project, self._module = holding.project, holding.module

    def of(self, item: ast.withitem) -> Chosen | None:
        """Return what a `with` enters, as a call of `amp.scale_loss`; None where no function returns one."""
        use = item.context_expr
        leaves = self._leaves(use) if isinstance(use, ast.Call) else None
        if not isinstance(use, ast.Call) or not leaves:
            return None
        scaling: list[tuple[ast.Call, ast.Call]] = []
        plain: list[ast.expr] = []
        for body, leaf, receiver in leaves:
            given = _given(body, use, receiver)
            if given is None or not self._means_the_same(use, leaf, given):
                return None
            if self._project.apex(self._module, leaf.func) == "apex.amp.scale_loss" and leaf.args:
                if not _may_move(leaf, given):
                    return None
                scaling.append((leaf, _put_in(leaf, given)))
            elif self._project.external(self._module, leaf.func) == "contextlib.nullcontext":
                plain += _put_in(leaf, given).args
            else:
                return None
        if not scaling:
            return None
        leaf, written = scaling[0]
        alike = all(same(written, other) for _, other in scaling)
        alike = alike and all(same(loss, written.args[0]) for loss in plain)
        if not alike or len(plain) != len(leaves) - len(scaling):
            return None
        return Chosen(use, leaf, (use.func,), ast.unparse(written))

    def _leaves(self, use: ast.Call) -> list[_Leaf] | None:
        """Return what the functions that a name is bound to, or the method, may return; None where not all is known."""
        receiver = use.func.value if isinstance(use.func, ast.Attribute) else None
        bodies = self._named(use.func) if receiver is None else self._method(use, receiver)
        found: list[_Leaf] = []
        for body in bodies:
            results = list(_results(body)) if body is not None else [None]
            for result in results:
                if body is None or not isinstance(result, ast.Call):
                    return None
                if any(isinstance(n, _BOUND) for n in ast.walk(result)):
                    return None
                found.append((body, result, receiver))
        return found

    def _named(self, name: ast.expr) -> list[_Body | None]:
        """Return the functions and lambdas that a name is bound to; None for anything else."""
        owner = self._module.scopes.owner(name) if isinstance(name, ast.Name) else None
        if owner is None or not isinstance(name, ast.Name):
            return []
        found: list[_Body | None] = []
        for binding in self._module.scopes.bindings(owner, name.id):
            body = assigned(self._module.tree, binding)
            if isinstance(binding, ast.FunctionDef):
                found.append(None if binding.decorator_list else binding)
            else:
                found.append(body if isinstance(body, ast.Lambda) else None)
        return found

    def _method(self, use: ast.Call, receiver: ast.expr) -> list[_Body | None]:
        """Return the only method of this file that a call runs, on an object that a path names."""
        method = method_of(self._project, self._module, use)
        return [method] if method is not None and path(receiver) is not None else []

    def _means_the_same(self, use: ast.Call, leaf: ast.Call, given: Mapping[str, ast.expr]) -> bool:
        """Tell whether the other names of what is returned are the same variables at the block."""
        scopes = self._module.scopes
        here = scopes.scope_of(use)
        return all(
            name.id in given or scopes.find(here, name.id) is scopes.owner(name)
            for name in ast.walk(leaf)
            if isinstance(name, ast.Name)
        )


def _results(body: _Body) -> Iterator[ast.expr | None]:
    """Yield what a body that does nothing else may return; None where it does more."""
    if isinstance(body, ast.Lambda):
        yield from _arms(body.body)
        return
    begun = ast.get_docstring(body, clean=False) is not None
    yield from _of_block(body.body[1:] if begun else body.body)


def _of_block(block: list[ast.stmt]) -> Iterator[ast.expr | None]:
    for stmt in block:
        if isinstance(stmt, ast.If) and _is_calm(stmt.test):
            yield from _of_block([*stmt.body, *stmt.orelse])
        elif isinstance(stmt, ast.Return) and stmt.value is not None:
            yield from _arms(stmt.value)
        else:
            yield None


def _arms(node: ast.expr) -> Iterator[ast.expr | None]:
    if isinstance(node, ast.IfExp) and _is_calm(node.test):
        yield from _arms(node.body)
        yield from _arms(node.orelse)
    else:
        yield node


def _is_calm(node: ast.expr) -> bool:
    return not any(isinstance(n, _ACTS) for n in ast.walk(node))


def _given(body: _Body, use: ast.Call, receiver: ast.expr | None) -> dict[str, ast.expr] | None:
    """Return the argument of each parameter of a function; None where they are not all written in the call."""
    args = body.args
    names = [a.arg for a in [*args.posonlyargs, *args.args]]
    values = [*([receiver] if receiver is not None else []), *use.args]
    if args.vararg or args.kwarg or args.kwonlyargs or len(values) > len(names):
        return None
    if any(isinstance(a, ast.Starred) for a in use.args):
        return None
    given = dict(zip(names, values, strict=False))
    for keyword in use.keywords:
        if keyword.arg is None or keyword.arg in given or keyword.arg not in names:
            return None
        given[keyword.arg] = keyword.value
    return given if set(given) == set(names) else None


def _may_move(leaf: ast.Call, given: Mapping[str, ast.expr]) -> bool:
    """Tell whether the arguments may be evaluated where the parameters stand: at most one is more than a variable."""
    used = Counter(n.id for n in ast.walk(leaf) if isinstance(n, ast.Name))
    busy = [n for n, v in given.items() if path(v) is None and not isinstance(v, ast.Constant)]
    inner = sum(isinstance(n, _ACTS) for n in ast.walk(leaf))
    return not busy or (len(busy) == 1 and used[busy[0]] == 1 and inner == 1)


class _PutIn(ast.NodeTransformer):
    def __init__(self, given: Mapping[str, ast.expr]) -> None:
        self._given = given

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Put an argument in place of its parameter."""
        return self._given.get(node.id, node)


def _put_in(leaf: ast.Call, given: Mapping[str, ast.expr]) -> ast.Call:
    """Return a call with the arguments in place of the parameters."""
    found: ast.Call = _PutIn(given).visit(copy.deepcopy(leaf))
    return found
