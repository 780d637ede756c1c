"""The anatomy of one ``with amp.scale_loss(loss, optimizer) as scaled_loss:`` block."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from amp_migrate.apex.sites import Site
from amp_migrate.facts.paths import path
from amp_migrate.unit.cannot import Cannot


@dataclass(frozen=True, eq=False, slots=True)
class ScaleLoss:
    """A scale_loss block: its loss and optimizer expressions, the name it binds, and its backward calls."""

    site: Site
    node: ast.With
    loss: ast.expr
    optimizers: ast.expr | None
    alias: str
    loss_id: ast.expr | None
    delayed: ast.expr | None
    unchecked: bool
    backwards: tuple[ast.Call, ...]

    def optimizer_list(self) -> tuple[ast.expr, ...]:
        """Return the optimizers as written, the elements of a list display one by one."""
        if self.optimizers is None:
            return ()
        if isinstance(self.optimizers, ast.List | ast.Tuple):
            return tuple(self.optimizers.elts)
        return (self.optimizers,)


def read(site: Site) -> ScaleLoss:
    """Read a scale_loss site; raises `Cannot` where it is no plain with-block."""
    tree = site.module.tree
    call = site.call
    item = tree.parent(call)
    node = tree.parent(item) if item is not None else None
    if not isinstance(item, ast.withitem) or not isinstance(node, ast.With):
        raise _odd(site, "amp.scale_loss does not stand in a `with` of its own")
    if len(node.items) != 1 or not isinstance(item.optional_vars, ast.Name):
        raise _odd(site, "amp.scale_loss shares its `with`, or binds no plain name")
    arguments = _arguments(call)
    if arguments is None or "loss" not in arguments:
        raise _odd(site, "the arguments of amp.scale_loss are unpacked here, and cannot be read")
    alias = item.optional_vars.id
    backwards = tuple(_backwards(node, alias))
    if not backwards and not keeps_name(node, alias):
        raise _odd(site, f"`{alias}.backward()` is not called in the block")
    unchecked = arguments.get("delay_overflow_check")
    return ScaleLoss(
        site,
        node,
        arguments["loss"],
        arguments.get("optimizers"),
        alias,
        arguments.get("loss_id"),
        arguments.get("delay_unscale"),
        isinstance(unchecked, ast.Constant) and unchecked.value is True,
        backwards,
    )


_NAMES = ("loss", "optimizers", "loss_id", "model", "delay_unscale", "delay_overflow_check")


def _arguments(call: ast.Call) -> dict[str, ast.expr] | None:
    if any(isinstance(a, ast.Starred) for a in call.args) or any(
        k.arg is None for k in call.keywords
    ):
        return None
    named = dict(zip(_NAMES, call.args, strict=False))
    named |= {k.arg: k.value for k in call.keywords if k.arg is not None}
    return named


def _backwards(node: ast.With, alias: str) -> list[ast.Call]:
    found = []
    for part in ast.walk(node):
        if (
            isinstance(part, ast.Call)
            and isinstance(part.func, ast.Attribute)
            and part.func.attr == "backward"
        ):
            if path(part.func.value) == alias or _sum_of(part.func.value) == alias:
                found.append(part)
    return sorted(found, key=lambda c: (c.lineno, c.col_offset))


def keeps_name(node: ast.With, alias: str) -> bool:
    """Tell whether the scaled loss is used for more than `backward` and logging, and so keeps its name."""
    for part in ast.walk(node):
        grads = isinstance(part, ast.Call) and (path(part.func) or "").endswith("autograd.grad")
        if grads or isinstance(part, ast.BinOp):
            if any(isinstance(n, ast.Name) and n.id == alias for n in ast.walk(part)):
                return True
    return False


def _sum_of(node: ast.expr) -> str | None:
    """Return the name in ``name.mean()`` and ``name.sum()``."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("mean", "sum")
    ):
        return path(node.func.value)
    return None


def _odd(site: Site, message: str) -> Cannot:
    return Cannot(
        "AMP902",
        site.module,
        site.node,
        message,
        "write `with amp.scale_loss(loss, optimizer) as scaled_loss:` with `scaled_loss.backward()` in it, then run again",
    )
