"""Calls that give back the object they were given."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from amp_migrate.facts.paths import argument

# Methods of modules, optimizers and tensors that return the object itself.
SELF_METHODS = frozenset(
    [
        "apply", "bfloat16", "cpu", "cuda", "double", "eval", "float", "half", "requires_grad_", "share_memory",
        "to", "train", "to_empty", "type", "xpu", "npu",
    ]
)  # fmt: skip

# Classes whose objects have the items of the list or dictionary that they are given.
KEEPS_ITEMS = frozenset(
    f"torch.nn.{name}" for name in ("ModuleDict", "ModuleList", "ParameterDict", "ParameterList")
)

# Functions and classes outside the project whose result stands for their first argument.
_WRAPPERS = frozenset(
    [
        "BN_convert_float", "BalancedDataParallel", "DDP", "DataParallel", "DataParallelCriterion",
        "DataParallelModel", "DistributedDataParallel", "DistributedDataParallelCPU", "DistributedOptimizer",
        "FP16Model", "FP16_Optimizer", "FSDP", "FullyShardedDataParallel", "LARC", "Lookahead",
        "MMDataParallel", "MMDistributedDataParallel", "SWA", "ShardedDataParallel", "convert_network",
        "convert_sync_batchnorm", "convert_syncbn_model", "network_to_half", "torch.compile",
        "torch.jit.freeze", "torch.jit.optimize_for_inference", "torch.jit.script",
    ]
)  # fmt: skip
# What only tells a type checker what its second argument is, and gives that back.
_CASTS = frozenset({"typing.cast", "typing_extensions.cast"})
_NAMED = ("module", "model", "optimizer", "opt", "base_optimizer", "init_optimizer")


def itself(given: ast.expr) -> ast.expr:
    """Return the object that methods at its end give back: ``Linear(4, 2)`` of ``Linear(4, 2).cuda()``."""
    while isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute):
        if given.func.attr not in SELF_METHODS:
            break
        given = given.func.value
    return given


def wrapped(name: str, call: ast.Call) -> ast.expr | None:
    """Return the argument that `call` wraps or gives back; `name` is the dotted name of the callee."""
    if name in _CASTS:
        return argument(call, "val", 1)
    known = name in _WRAPPERS or name.rpartition(".")[2] in _WRAPPERS
    return wrapped_argument(call) if known else None


def wraps(bases: Iterable[str]) -> bool:
    """Tell whether a class with these bases is a wrapper itself, such as a subclass of DataParallel."""
    return any(base.rpartition(".")[2] in _WRAPPERS for base in bases)


def wrapped_argument(call: ast.Call) -> ast.expr | None:
    """Return the argument that names the wrapped object, else the first one."""
    for keyword in call.keywords:
        if keyword.arg in _NAMED:
            return keyword.value
    for positional in call.args:
        if not isinstance(positional, (ast.Constant, ast.Starred)):
            return positional
    return None
