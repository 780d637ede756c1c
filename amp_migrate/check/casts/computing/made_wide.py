"""What the new text makes fp32 on the way to a loss that trains, and neither Apex nor autocast would: it rounds otherwise then."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence

from amp_migrate.check.casts.computing.handed_out import hands_out
from amp_migrate.check.casts.networks import Networks
from amp_migrate.check.events.claims import Claims
from amp_migrate.check.events.sides import Key, Side, differs, staying
from amp_migrate.check.events.traces import Difference
from amp_migrate.facts.paths import tail
from amp_migrate.project import Function, Module
from amp_migrate.training.beliefs import REFUSES_CASTS, SHAPES
from amp_migrate.training.contexts import Context, around, context
from amp_migrate.training.forwards.known_losses import is_loss_class
from amp_migrate.training.forwards.outputs import comes_to_backward
from amp_migrate.training.types.wide import computed as computes_wide
from amp_migrate.training.types.wide import is_one

_WIDENED = "is made fp32 on the way to a loss, which Apex did not do:"
_WRITING = frozenset({"AMP112", "AMP113", "AMP115", "AMP123"})
"""The rules that say of a line that what is computed there is made fp32, as Apex had it."""


def made_wide(
    old: Side, new: Side, claims: Claims, networks: Networks
) -> Iterator[tuple[Key, Difference]]:
    """Yield what comes into the new text so; where O1 may be on, also without gradients, as targets do."""
    losses = new.program.training.losses
    for before, after, _ in staying(old, new, claims):
        had = Counter(ast.unparse(call) for f in before for call in _widening(f))
        for function in after:
            for call in _widening(function):
                had[text := ast.unparse(call)] -= 1
                trains = call in losses.computing
                trains = trains or (
                    not networks.only_given and comes_to_backward(new.project, losses, call)
                )
                if had[text] >= 0 or not trains:
                    continue
                if _is_alike(new, function, call) or _is_claimed(claims, before, function):
                    continue
                if not _was_wide(old, networks, before, call):
                    yield differs(function, call, f"`{text}` {_WIDENED}")


def _widening(function: Function) -> Iterator[ast.Call]:
    """Yield the calls of a function that make something fp32."""
    for call in function.calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "float":
            if not call.args and not call.keywords:
                yield call


def _is_alike(side: Side, function: Function, call: ast.Call) -> bool:
    """Tell whether what is computed of it is fp32 in any case: it leaves its device, or runs in fp32 or without casts."""
    project, module = side.project, function.module
    if any(context(project, module, node) is Context.NO_CASTS for node in around(module, call)):
        return True
    used = _shaped(module, call)
    up = module.tree.parent(used)
    if isinstance(up, ast.Attribute) and up.attr in ("backward", "cpu"):
        return True
    node = module.tree.parent(up) if isinstance(up, ast.keyword | ast.Attribute) else up
    if isinstance(up, ast.BinOp) and used in computes_wide(project, module, up):
        return True
    if not isinstance(node, ast.Call):
        return False
    if used in computes_wide(project, module, node) or tail(node) in ("scale", "scale_loss"):
        return True
    name = project.external(module, node.func)
    if name is not None:
        return name in REFUSES_CASTS
    made = project.values.made_by(module, node.func)
    return bool(made) and all(is_loss_class(each) or is_one(each) for each in made)


def _was_wide(old: Side, networks: Networks, before: Sequence[Function], call: ast.Call) -> bool:
    """Tell whether the old text has there what a network handed out in fp32."""
    assert isinstance(call.func, ast.Attribute)
    text = _narrow(call.func.value)
    return any(
        hands_out(old, networks, function, node)
        for function in before
        for node in function.own_nodes
        if isinstance(node, ast.expr) and _narrow(node) == text
    )


def _narrow(node: ast.expr) -> str:
    """Return the text of an expression without what makes parts of it fp32."""
    return ast.unparse(node).replace(".float()", "")


def _shaped(module: Module, node: ast.expr) -> ast.expr:
    """Return an expression with the shapes that are given to it where it stands: ``x.float().view(-1)``."""
    while isinstance(up := module.tree.parent(node), ast.Attribute) and up.attr in SHAPES:
        called = module.tree.parent(up)
        if not isinstance(called, ast.Call) or called.func is not up:
            break
        node = called
    return node


def _is_claimed(claims: Claims, before: Sequence[Function], function: Function) -> bool:
    """Tell whether a rule of the run says of a line of the function that it makes fp32 what stands there."""
    path = function.module.path
    return any(
        claim.code in _WRITING and claim.path == path and any(f.spans(claim.line) for f in before)
        for claim in claims.every
    )
