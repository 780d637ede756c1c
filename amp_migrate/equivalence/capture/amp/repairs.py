"""Repairs that let the Apex of 2025 run on today's torch, and on the CPU.

Nothing on disk changes. On every device: fp32 weights used twice before a backward (the weight
cache reads a node that torch 1.10 removed), nn.PReLU and F.bilinear (functions that moved), RNN
inputs (a check newer than Apex). On the CPU also: type names, device checks, the list of batched
matrix products that a CPU build of torch leaves out.
"""

from __future__ import annotations

import importlib
import inspect
import textwrap
from types import ModuleType
from typing import Any

import torch

from amp_migrate.equivalence.capture.patching import put, wrap


def before_import(on_cpu: bool) -> None:
    """Prepare torch for ``import apex``."""
    if not on_cpu:
        return
    put(torch.cuda, "IntTensor", torch.IntTensor)
    wrap(torch.Tensor, "type", _cuda_type_names)
    if torch.version.cuda is None:
        put(torch.version, "cuda", "12.8")


def after_import(amp: ModuleType, on_cpu: bool) -> None:
    """Repair the imported apex.amp."""
    utils: Any = importlib.import_module(amp.__name__ + ".utils")
    _repair_weight_cache(utils)
    _repair_rnn_input()
    wrap(amp, "initialize", lambda original: _registering(amp, original))
    if on_cpu:
        put(importlib.import_module(amp.__name__ + "._initialize"), "check_params_fp32", _accept)
        put(utils, "maybe_half", _caster(utils, torch.half, "HalfTensor"))
        put(utils, "maybe_float", _caster(utils, torch.float, "FloatTensor"))


def _accept(models: Any) -> None:
    return None


def _cuda_type_names(original: Any) -> Any:
    def type(self: Any, *args: Any, **kwargs: Any) -> Any:
        answer = original(self, *args, **kwargs)
        if isinstance(answer, str) and ".cuda." not in answer:
            return answer.replace("torch.", "torch.cuda.", 1)
        return answer

    return type


def _repair_weight_cache(utils: Any) -> None:
    source = textwrap.dedent(inspect.getsource(utils.cached_cast))
    repaired = source.replace("next_functions[1][0]", "next_functions[0][0]")
    exec(compile(repaired, "cached_cast", "exec"), vars(utils))


def _repair_rnn_input() -> None:
    rnn: Any = torch.nn.modules.rnn
    for kind in ("RNN_TANH", "RNN_RELU"):
        rnn._rnn_impls.pop(kind, None)

    def make(original: Any) -> Any:
        def check_input(self: Any, given: Any, batch_sizes: Any) -> Any:
            return original(self, given.to(self._flat_weights[0].dtype), batch_sizes)

        return check_input

    wrap(rnn.RNNBase, "check_input", make)


def _registering(amp: Any, original: Any) -> Any:
    def initialize(*args: Any, **kwargs: Any) -> Any:
        # Apex forgets registered functions at every initialize.
        amp.register_half_function(torch.nn.functional, "prelu")
        amp.register_promote_function(torch.nn.functional, "bilinear")
        return original(*args, **kwargs)

    return initialize


def _caster(utils: Any, dtype: torch.dtype, name: str) -> Any:
    def cast(x: Any, label: str = "", verbose: bool = False) -> Any:
        if utils.is_nested(x):
            return type(x)([cast(one) for one in x])
        return x if utils.type_string(x) == name else x.to(dtype)

    return cast
