"""Calls that give back the object they were given."""

from __future__ import annotations

import ast
from collections.abc import Iterable

# Methods of modules, optimizers and tensors that return the object itself.
SELF_METHODS = frozenset(
    [
        "apply",
        "bfloat16",
        "cpu",
        "cuda",
        "double",
        "eval",
        "float",
        "half",
        "requires_grad_",
        "share_memory",
        "to",
        "train",
        "to_empty",
        "type",
        "xpu",
        "npu",
    ]
)

# Functions and classes outside the project whose result stands for their first argument.
_WRAPPERS = frozenset(
    [
        "BalancedDataParallel",
        "DataParallel",
        "DataParallelCriterion",
        "DataParallelModel",
        "DDP",
        "DistributedDataParallel",
        "DistributedDataParallelCPU",
        "DistributedOptimizer",
        "FSDP",
        "FullyShardedDataParallel",
        "LARC",
        "MMDataParallel",
        "MMDistributedDataParallel",
        "ShardedDataParallel",
        "compile",
        "convert_sync_batchnorm",
        "convert_syncbn_model",
        "convert_model",
        "network_to_half",
        "patch_replication_callback",
        "prep_param_lists",
        "script",
        "freeze",
        "optimize_for_inference",
        "FP16_Optimizer",
        "Lookahead",
        "SWA",
        "list",
        "tuple",
        "reversed",
        "sorted",
        "iter",
    ]
)
_NAMED = ("module", "model", "optimizer", "opt", "base_optimizer", "init_optimizer")


def wrapped(name: str, call: ast.Call) -> ast.expr | None:
    """Return the argument that `call` wraps; `name` is the dotted name of the callee."""
    if name.rpartition(".")[2] not in _WRAPPERS or name.startswith("re."):
        return None
    return wrapped_argument(call)


def wraps(bases: Iterable[str]) -> bool:
    """Tell whether a class with these bases is a wrapper itself, such as a subclass of DataParallel."""
    return any(base.rpartition(".")[2] in _WRAPPERS for base in bases)


def wrapped_argument(call: ast.Call) -> ast.expr | None:
    """Return the argument that names the wrapped object, else the first one."""
    for keyword in call.keywords:
        if keyword.arg in _NAMED:
            return keyword.value
    for argument in call.args:
        if not isinstance(argument, (ast.Constant, ast.Starred)):
            return argument
    return None
