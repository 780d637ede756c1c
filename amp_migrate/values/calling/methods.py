"""Methods of objects of libraries that are read in one place and called in another: ``clear = optimizer.zero_grad``."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from amp_migrate.modules.model import Module
from amp_migrate.values.expressions import Expressions
from amp_migrate.values.objects import Fact, Held, Method, Written

CLEARS = ("zero_grad", "zero_none_grad")
NAMES = ("step", *CLEARS)
_HOLDS = (
    ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.Return, ast.Yield, ast.Lambda, ast.IfExp, ast.BoolOp, ast.Tuple, ast.List,
    ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Call, ast.keyword,
)  # fmt: skip


def state_methods(modules: Iterable[Module], expressions: Expressions) -> None:
    """Note of the methods of these names that something may hold which they are, unless the project defines them."""
    for module in modules:
        for node in (node for name in NAMES for node in module.tree.attributes(name)):
            if not _is_held(module, node) or expressions.lookup.expression(module, node):
                continue
            inner = expressions.node(module, node)
            if inner is not None:
                expressions.graph.state(inner, Method(module, node))


def may_run(fact: Fact) -> bool:
    """Tell whether a call of an object may run one of these methods."""
    if isinstance(fact, Written):
        return only_clears(fact.node) is not None
    return isinstance(fact, Method) or (isinstance(fact, Held) and bool(fact.call.args))


def only_clears(node: ast.Lambda) -> ast.Attribute | None:
    """Return the method that is all a lambda calls, where that clears gradients: so what is done to several in turn is known."""
    call = node.body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    return call.func if call.func.attr in CLEARS else None


def _is_held(module: Module, node: ast.Attribute) -> bool:
    up = module.tree.parent(node)
    read = isinstance(node.ctx, ast.Load) and module.tree.call_of(node) is None
    return read and isinstance(up, _HOLDS)
