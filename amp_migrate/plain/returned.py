"""Blocks that enter what a function or a lambda returns, where that comes down to `amp.scale_loss`, or to nothing but the loss.

``scale = lambda loss: amp.scale_loss(loss, optimizer)``, also beside ``lambda loss: nullcontext(loss)`` under a flag.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping

from amp_migrate.facts.below import behind_docstring
from amp_migrate.facts.paths import ACTS, acts, called_on, path, same
from amp_migrate.facts.scopes import assigned
from amp_migrate.facts.variables import put_in
from amp_migrate.plain.choice import Chosen
from amp_migrate.plain.held import Holding
from amp_migrate.plain.unused import is_manager, method_of

_DEEPEST = 3
_Body = ast.FunctionDef | ast.Lambda
_Leaf = tuple[_Body, ast.Call, ast.expr | None]


class Returning:
    """Finds in one file the blocks whose context a function of the file returns."""

    def __init__(self, holding: Holding) -> None:
        self._project, self._module = holding.project, holding.module

    def of(self, use: ast.expr) -> Chosen | None:
        """Return what a `with` enters, as a call of `amp.scale_loss`; None where no function returns one."""
        if not isinstance(use, ast.Call) or self._is_scaling(use):
            return None
        return self._chosen(use, use, (use.func,), _DEEPEST)

    def _chosen(
        self, use: ast.Call, call: ast.Call, through: tuple[ast.expr, ...], depth: int
    ) -> Chosen | None:
        """Return what a `with` enters as far as it comes down to a call; `through` are the functions called on the way."""
        scaling: list[tuple[ast.Call, ast.Call]] = []
        plain: list[ast.expr] = []
        leaves = self._leaves(call) or []
        for body, leaf, receiver in leaves:
            given = _given(body, call, receiver)
            if given is None or not self._means_the_same(use, leaf, given):
                return None
            if self._is_scaling(leaf):
                if not _may_move(leaf, given):
                    return None
                scaling.append((leaf, put_in(leaf, given)))
            elif self._project.external(self._module, leaf.func) == "contextlib.nullcontext":
                plain += put_in(leaf, given).args
            elif len(leaves) == 1 and depth and _may_move(leaf, given):
                inner = put_in(leaf, given)
                return self._chosen(use, inner, (*through, inner.func), depth - 1)
            else:
                return None
        if not scaling:
            return None
        leaf, written = scaling[0]
        alike = all(same(written, other) for _, other in scaling)
        alike = alike and all(same(loss, written.args[0]) for loss in plain)
        if not alike or len(plain) != len(leaves) - len(scaling):
            return None
        return Chosen(use, leaf, through, ast.unparse(written))

    def _is_scaling(self, call: ast.Call) -> bool:
        return (
            bool(call.args) and self._project.apex(self._module, call.func) == "apex.amp.scale_loss"
        )

    def _leaves(self, use: ast.Call) -> list[_Leaf] | None:
        """Return what the functions that a name is bound to, or the method, may return; None where not all is known."""
        receiver = called_on(use)
        bodies = self._named(use) if receiver is None else self._method(use, receiver)
        found: list[_Leaf] = []
        for body in bodies:
            if receiver is not None and isinstance(body, ast.FunctionDef) and body.decorator_list:
                receiver = None  # a static method
            results = list(_results(body)) if body is not None else [None]
            for result in results:
                if body is None or not isinstance(result, ast.Call):
                    return None
                if acts(result, ast.Lambda, ast.comprehension):
                    return None
                found.append((body, result, receiver))
        return found

    def _named(self, use: ast.Call) -> list[_Body | None]:
        """Return the functions and lambdas that a name is bound to; None for anything else."""
        name = use.func
        owner = self._module.scopes.owner(name) if isinstance(name, ast.Name) else None
        if owner is None or not isinstance(name, ast.Name):
            return []
        found: list[_Body | None] = []
        for binding in self._module.scopes.bindings(owner, name.id):
            body = assigned(self._module.tree, binding)
            if isinstance(binding, ast.FunctionDef):
                odd = binding.decorator_list and not self._hands_out(binding, use)
                found.append(None if odd else binding)
            else:
                found.append(body if isinstance(body, ast.Lambda) else None)
        return found

    def _hands_out(self, function: ast.FunctionDef, use: ast.Call) -> bool:
        """Tell whether a function is a context manager that hands out what Apex, or a function it gets, makes of a loss.

        One that only gives a `with` what Apex makes of a loss that it gets may stay.
        """
        made = entered(function)
        if made is None or not made.args:
            return False
        if not is_manager(self._project, self._module, function):
            return False
        args = function.args
        names = {a.arg for a in [*args.posonlyargs, *args.args]}
        func, loss = made.func, made.args[0]
        handed = isinstance(func, ast.Name) and func.id in names
        stays = isinstance(self._module.tree.parent(use), ast.withitem)
        return handed or not (stays and isinstance(loss, ast.Name) and loss.id in names)

    def _method(self, use: ast.Call, receiver: ast.expr) -> list[_Body | None]:
        """Return the only method of this file that a call runs, on an object that a path names."""
        method = method_of(self._project, self._module, use)
        return [method] if method is not None and path(receiver) is not None else []

    def _means_the_same(self, use: ast.Call, leaf: ast.Call, given: Mapping[str, ast.expr]) -> bool:
        """Tell whether the other names of what is returned are the same variables at the block."""
        scopes = self._module.scopes
        here = scopes.scope_of(use)
        names = (part for part in ast.walk(leaf) if isinstance(part, ast.Name))
        return all(name.id in given or scopes.sees(here, name) for name in names)


def _results(body: _Body) -> Iterator[ast.expr | None]:
    """Yield what a body that does nothing else may return; None where it does more."""
    if isinstance(body, ast.Lambda):
        yield from _arms(body.body)
        return
    inner = entered(body)
    if inner is not None:
        yield inner
        return
    yield from _of_block(behind_docstring(body))


def entered(function: ast.FunctionDef) -> ast.Call | None:
    """Return the call whose context a function enters to yield what that gives, and does nothing else."""
    body = behind_docstring(function)
    block = body[0] if len(body) == 1 else None
    if not isinstance(block, ast.With) or len(block.items) > 1:
        return None
    made, alias = block.items[0].context_expr, block.items[0].optional_vars
    yielded = block.body[0].value if isinstance(block.body[0], ast.Expr) else None
    if not isinstance(yielded, ast.Yield) or yielded.value is None or len(block.body) > 1:
        return None
    handed = alias is not None and path(alias) is not None and path(alias) == path(yielded.value)
    return made if handed and isinstance(made, ast.Call) else None


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
    return not acts(node, ast.Call)


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
    inner = sum(isinstance(n, (ast.Call, *ACTS)) for n in ast.walk(leaf))
    return not busy or (len(busy) == 1 and used[busy[0]] == 1 and inner == 1)
