"""What computes a loss by a function or a module of torch, or what O1 ran in fp32 like one."""

from __future__ import annotations

import ast

from amp_migrate.check.events.labels import Labels
from amp_migrate.facts.paths import path
from amp_migrate.project import Function, Module, Project
from amp_migrate.training.beliefs import REFUSES_CASTS, REFUSING_LAYERS
from amp_migrate.training.forwards.indifferent import only_looks_up

LOSSES = ("torch.nn.functional.", "torch.nn.")
_MEASURES = (
    *("loss", "cross_entropy", "kl_div", "softmax", "normalize"),
    *("cosine_similarity", "cosinesimilarity"),
)


def is_measure(project: Project, module: Module, func: ast.expr) -> bool:
    """Tell whether what is called is a loss of torch, by its name or by what made it."""
    named = project.external(module, func) or (path(func) or "").rpartition(".")[2]
    names = [n.lower() for n in (project.values.made_by(module, func) or [named])]
    return all(n.endswith(_MEASURES) for n in names) and is_loss(project, module, func)


def is_loss(project: Project, module: Module, func: ast.expr) -> bool:
    """Tell whether what is called is a function or a module of torch.nn that autocast does not refuse."""
    name = project.external(module, func) or ""
    if name.startswith(LOSSES[0]):
        return name not in REFUSES_CASTS
    made = project.values.made_by(module, func)
    known = bool(made) and not only_looks_up(project, module, func)
    return known and all(m.startswith(LOSSES[1]) and m not in REFUSING_LAYERS for m in made)


def is_widened(labels: Labels, function: Function, node: ast.expr) -> bool:
    """Tell whether an argument is made fp32 by hand: casts make no difference to it."""
    if isinstance(node, ast.Name):
        values = labels.values_of(function, node)
        return bool(values) and all(isinstance(v, ast.Call) and _widens(v) for v in values)
    return isinstance(node, ast.Call) and _widens(node)


def _widens(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in ("float", "double")
