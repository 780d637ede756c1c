"""The functions that a call registers with Apex, or adds to its lists, to be cast in a program."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from amp_migrate.apex.listed import listed
from amp_migrate.apex.sites import Site
from amp_migrate.facts.constants import string
from amp_migrate.facts.paths import path
from amp_migrate.project import Project
from amp_migrate.rules.casts.cast_helper import TORCH, Inside, member_inside, of_torch

NATIVE = {
    "register_half_function": {"einsum", "bmm", "matmul", "mm", "baddbmm", "addmm", "linear", "conv1d", "conv2d", "conv3d", "prelu"},
    "register_float_function": {"softmax", "log_softmax", "cross_entropy", "layer_norm", "exp", "log", "pow", "sum", "norm", "cumsum", "prod", "interpolate", "mse_loss", "l1_loss", "smooth_l1_loss", "binary_cross_entropy_with_logits"},
    "register_promote_function": {"bilinear", "cat", "stack", "addcdiv", "addcmul", "atan2", "cross", "dot"},
}  # fmt: skip
RUN_WIDE = frozenset(NATIVE["register_float_function"])


@dataclass(frozen=True, slots=True)
class Registered:
    """A function that is registered: what holds it, as it is written and by its dotted name, and what it runs."""

    verb: str
    owner: str
    place: str
    name: str | None
    runs: Inside | None


def registered_by(project: Project, site: Site) -> Registered:
    """Return what a call registers."""
    item = listed(site.name, site.call)
    if item is not None:
        verb = f"register_{'half' if item.half else 'float'}_function"
        runs = of_torch(item.owner, item.function)
        return Registered(verb, item.owner, item.owner, item.function, runs)
    arguments, verb = site.call.args, site.name.rpartition(".")[2]
    name = string(arguments[1]) if len(arguments) == 2 else None
    if name is None or path(arguments[0]) is None:
        return Registered(verb, "", "", name, None)
    owner, runs = arguments[0], member_inside(project, site.module, arguments[0], name)
    place = project.external(site.module, owner) or ""
    return Registered(verb, site.module.tree.segment(owner), place, name, runs)


def is_native(site: Site, registered: Registered) -> bool:
    """Tell whether native autocast casts the arguments of a function in the same way by itself."""
    known = registered.name in NATIVE.get(registered.verb, set())
    alone = isinstance(site.module.tree.parent(site.node), ast.Expr)
    return known and registered.place in TORCH and alone
