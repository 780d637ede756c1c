"""Check that accumulated gradients are those of one large batch, by replaying the first window."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from amp_migrate.equivalence.capture.events.backward import Backward
from amp_migrate.equivalence.capture.events.registry import Registry
from amp_migrate.equivalence.capture.patching import put, wrap
from amp_migrate.equivalence.capture.recorder import Recorder

_LOSSES = """cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss
binary_cross_entropy binary_cross_entropy_with_logits kl_div"""


class CannotReplay(Exception):
    """The window is not one model call and one mean loss per micro-batch; the text says why."""


class LargeBatch:
    """Remembers the model and loss calls of the first iteration and repeats them on all samples."""

    def __init__(self, recorder: Recorder, registry: Registry, backward: Backward) -> None:
        self.recorder = recorder
        self.registry = registry
        self.backward = backward
        self._models: list[tuple[nn.Module, tuple[Any, ...], dict[str, Any], Any]] = []
        self._losses: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []
        self._accumulated: list[Tensor] = []
        self._depth = 0
        self._inside_loss = 0
        self._done = False

    def install(self) -> None:
        """Start remembering."""
        wrap(nn.Module, "__call__", self._model_call)
        for name in _LOSSES.split():
            put(nn.functional, name, self._loss_call(vars(nn.functional)[name]))
        self.backward.after.append(self._keep_gradients)
        register_optimizer_step_pre_hook(self._check)

    def _model_call(self, original: Any) -> Any:
        def __call__(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            outermost = self._depth == 0 and not self._done
            self._depth += 1
            try:
                result = original(module, *args, **kwargs)
            finally:
                self._depth -= 1
            if outermost and torch.is_grad_enabled() and self._trained(module):
                self._models.append((module, args, kwargs, result))
            return result

        return __call__

    def _trained(self, module: nn.Module) -> bool:
        known = self.registry.order()
        return any(id(parameter) in known for parameter in module.parameters())

    def _loss_call(self, original: Any) -> Any:
        def loss(*args: Any, **kwargs: Any) -> Any:
            # A torch function mode calls the function again from inside itself.
            if not self._done and not self._inside_loss:
                self._losses.append((original, args, kwargs))
            self._inside_loss += 1
            try:
                return original(*args, **kwargs)
            finally:
                self._inside_loss -= 1

        return loss

    def _parameters(self) -> list[Tensor]:
        return [parameter for given in self.registry.per_optimizer() for parameter in given]

    def _keep_gradients(self) -> None:
        """Keep the unscaled sum so far; clipping comes later and must not count."""
        iteration = self.recorder.iteration
        if self._done or iteration is None:
            return
        scale = iteration.scales[-1]
        self._accumulated = [
            torch.zeros_like(p) if p.grad is None else p.grad.detach() / scale
            for p in self._parameters()
        ]

    def _check(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._done:
            return
        self._done = True
        count = len(self.recorder.iteration.losses) if self.recorder.iteration else 0
        if count < 2:
            return
        try:
            error = self._error(count)
        except CannotReplay as reason:
            self.recorder.write({"kind": "fix", "reason": str(reason)})
        else:
            self.recorder.write({"kind": "fix", "micro_batches": count, "error": error})

    def _error(self, count: int) -> float:
        """Return ||accumulated - large|| / ||large|| over all gradients."""
        large = self._large_gradients(count)
        pairs = list(zip(self._accumulated, large, strict=True))
        distance = sum(float((one - other).double().pow(2).sum()) for one, other in pairs)
        size = sum(float(other.double().pow(2).sum()) for _, other in pairs)
        return float((distance / size) ** 0.5) if size else float(distance > 0)

    def _large_gradients(self, count: int) -> list[Tensor]:
        if len(self._models) != count or len(self._losses) != count:
            raise CannotReplay("a micro-batch is not one call of the model and one of a loss")
        module, model_args, _, _ = self._models[0]
        for other, _, kwargs, output in self._models:
            if other is not module or kwargs or not isinstance(output, Tensor):
                raise CannotReplay("the model is not called with one tensor after another")
        for layer in module.modules():
            _refuse_batch_dependent(layer)
        function, loss_args, options = self._losses[0]
        for (_, args, kwargs), (_, _, _, output) in zip(self._losses, self._models, strict=True):
            if args[0] is not output or kwargs.get("reduction", "mean") != "mean":
                raise CannotReplay("the loss is not the mean over the model's output")
        inputs = [_joined([call[1][i] for call in self._models]) for i in range(len(model_args))]
        targets = [_joined([c[1][i] for c in self._losses]) for i in range(1, len(loss_args))]
        loss = function(module(*inputs), *targets, **options)
        parameters = self._parameters()
        grads = torch.autograd.grad(loss, parameters, allow_unused=True)
        return [
            torch.zeros_like(parameter) if grad is None else grad
            for parameter, grad in zip(parameters, grads, strict=True)
        ]


def _refuse_batch_dependent(layer: nn.Module) -> None:
    if isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.training:
        raise CannotReplay("BatchNorm makes the gradient depend on the size of the micro-batch")
    if isinstance(layer, nn.modules.dropout._DropoutNd) and layer.training and layer.p > 0:
        raise CannotReplay("dropout is drawn anew for the large batch")


def _joined(parts: list[Any]) -> Any:
    """Concatenate tensors of samples; anything else must be the same every time."""
    if all(isinstance(part, Tensor) and part.dim() for part in parts):
        return torch.cat(parts)
    return parts[0]
