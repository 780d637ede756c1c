"""Count, in two iterations, which operator ran in which dtype."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from amp_migrate.equivalence.capture.events.backward import Backward
from amp_migrate.equivalence.capture.patching import wrap
from amp_migrate.equivalence.capture.recorder import Recorder

_WATCHED = """mm addmm bmm baddbmm addbmm mv addmv addr convolution convolution_backward
    _scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu
    _scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention
    _scaled_dot_product_fused_attention_overrideable _softmax _log_softmax logsumexp
    native_layer_norm native_group_norm native_batch_norm _native_batch_norm_legit
    _batch_norm_with_update cudnn_batch_norm gelu gelu_backward _prelu_kernel prelu std var
    std_mean var_mean mse_loss smooth_l1_loss huber_loss nll_loss_forward nll_loss2d_forward
    binary_cross_entropy binary_cross_entropy_with_logits soft_margin_loss _ctc_loss
    multi_margin_loss multilabel_margin_loss_forward _cdist_forward grid_sampler_2d
    upsample_nearest2d upsample_bilinear2d upsample_bicubic2d upsample_linear1d
    upsample_trilinear3d _adaptive_avg_pool2d avg_pool2d exp log log1p softplus"""
WATCHED = frozenset(_WATCHED.split())
FIRST, LAST = 2, 3
# Apex patches functions of Python, so the products inside these take their inputs as they come; and
# a cross entropy asks for log-probabilities in the dtype of its input, which autocast then leaves.
COMPOSED = (
    (torch, "einsum", WATCHED),
    (torch, "tensordot", WATCHED),
    (torch, "chain_matmul", WATCHED),
    (torch.linalg, "multi_dot", WATCHED),
    (torch.nn.functional, "cross_entropy", frozenset({"_log_softmax"})),
)


class Census(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts (operator, output dtype, phase) over the iterations `FIRST` to `LAST`."""

    def __init__(self, recorder: Recorder, backward: Backward) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.recorder = recorder
        self.backward = backward
        self.counts: Counter[tuple[str, str, str]] = Counter()
        self._active = False
        self._written = False
        self._within: dict[str, str] = {}

    def install(self) -> None:
        """Begin after the first backward; end with the last counted iteration."""
        self.backward.after.append(self._enter)
        self.backward.before.append(lambda tensors: self._leave())
        self.recorder.before_end.append(self._write)
        for owner, name, parts in COMPOSED:
            wrap(owner, name, self._named(dict.fromkeys(parts, name)))

    def _named(self, names: dict[str, str]) -> Callable[[Any], Any]:
        """Return what makes a function count the operators in it under these names."""

        def make(original: Any) -> Any:
            def called(*args: Any, **kwargs: Any) -> Any:
                outer, self._within = self._within, names
                try:
                    return original(*args, **kwargs)
                finally:
                    self._within = outer

            return called

        return make

    def _enter(self) -> None:
        if not self._active and not self._written:
            self._active = True
            self.__enter__()  # type: ignore[no-untyped-call]

    def _leave(self) -> None:
        iteration = self.recorder.iteration
        if self._active and iteration is not None and iteration.index > LAST:
            self.__exit__(None, None, None)  # type: ignore[no-untyped-call]
            self._active = False
            self._write()

    def _write(self) -> None:
        if self._written or not self.recorder.completed:
            return
        self._written = True
        counts = sorted(self.counts.items())
        self.recorder.write(
            {"kind": "census", "counts": [[*key, number] for key, number in counts]}
        )

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run `func` and count it."""
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name in WATCHED and self._counting():
            first = result if isinstance(result, Tensor) else result[0]
            if first is not None and first.dtype != torch.float64:
                phase = "backward" if self.backward.running() else "forward"
                name = self._within.get(name, name)
                self.counts[name, str(first.dtype).removeprefix("torch."), phase] += 1
        return result

    def _counting(self) -> bool:
        iteration = self.recorder.iteration
        if iteration is None:
            return False
        if iteration.index < FIRST:  # its step is taken: the next forward has begun
            return iteration.index == FIRST - 1 and bool(iteration.attempts)
        return iteration.index < LAST or (iteration.index == LAST and not iteration.attempts)
