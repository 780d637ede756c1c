"""Follow and steer the FP16_Optimizer of apex.fp16_utils, installed or reference."""

from __future__ import annotations

from typing import Any

from amp_migrate.equivalence.capture.amp.native import sooner
from amp_migrate.equivalence.capture.config import CaptureConfig
from amp_migrate.equivalence.capture.events.backward import Backward
from amp_migrate.equivalence.capture.events.steps import Steps
from amp_migrate.equivalence.capture.patching import wrap
from amp_migrate.equivalence.capture.recorder import Recorder

MODULE = "apex.fp16_utils.fp16_optimizer"


class Fp16Side:
    """Wraps the methods of FP16_Optimizer that make its loss scaler, scale a loss and step.

    It keeps fp32 copies of fp16 weights, as O2 does, and is noted as that.
    """

    def __init__(
        self, config: CaptureConfig, recorder: Recorder, backward: Backward, steps: Steps
    ) -> None:
        self.config = config
        self.recorder = recorder
        self.backward = backward
        self.steps = steps

    def attach(self, module: Any) -> None:
        """Start following the class of a module."""
        wrapper = module.FP16_Optimizer
        wrap(wrapper, "__init__", self._made)
        if not self.config.light:
            wrap(wrapper, "backward", self._backward)
            wrap(wrapper, "step", self._step)

    def _made(self, original: Any) -> Any:
        def made(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            scaler = optimizer.loss_scaler
            earlier = self.recorder.notes.get("apex_amp", {}).get("initialized", [])
            self.recorder.notes["apex_amp"] = {
                "enabled": True,
                "opt_level": "O2",
                "optimizer": "FP16_Optimizer",
                "dynamic": bool(scaler.dynamic),
                "loss_scale": "dynamic" if scaler.dynamic else str(scaler.loss_scale()),
                "num_losses": 1,
                "initialized": [*earlier, self.recorder.ahead()],
            }
            scaler._scale_seq_len = sooner(scaler._scale_seq_len, self.config.growth)
            if self.config.first_scale is not None and scaler.dynamic:
                scaler._loss_scale = min(scaler._loss_scale, self.config.first_scale)

        return made

    def _backward(self, original: Any) -> Any:
        def backward(optimizer: Any, loss: Any, *args: Any, **kwargs: Any) -> Any:
            scaler = optimizer.loss_scaler
            self.backward.awaits_scaled(float(scaler.loss_scale()), bool(scaler.dynamic))
            return original(optimizer, loss, *args, **kwargs)

        return backward

    def _step(self, original: Any) -> Any:
        def step(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            taken = self.steps.attempts
            result = original(optimizer, *args, **kwargs)
            if self.steps.attempts == taken:
                self.steps.skipped(optimizer.optimizer)
            return result

        return step
