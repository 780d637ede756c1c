"""Follow and steer native AMP: GradScaler and autocast."""

from __future__ import annotations

import math
from typing import Any

import torch

from amp_migrate.equivalence.capture.config import CaptureConfig
from amp_migrate.equivalence.capture.events.backward import Backward
from amp_migrate.equivalence.capture.events.steps import Steps
from amp_migrate.equivalence.capture.patching import wrap
from amp_migrate.equivalence.capture.recorder import Recorder

DEFAULT_GROWTH_INTERVAL = 2000


def power_of_two(scale: float) -> float:
    """Return the power of two nearest to `scale`: multiplying by it rounds nothing."""
    return 2.0 ** round(math.log2(scale)) if scale > 0 else scale


def sooner(interval: int, growth: int | None) -> int:
    """Shrink a growth interval so that the default becomes `growth`; ratios between two stay."""
    if growth is None:
        return interval
    return max(1, round(interval * growth / DEFAULT_GROWTH_INTERVAL))


def follow_scaler(recorder: Recorder, backward: Backward, steps: Steps) -> None:
    """Record scale, unscale_, step and update of every GradScaler."""
    scaler_class: Any = torch.amp.GradScaler
    inside_step: list[Any] = []

    def scale(original: Any) -> Any:
        def scale(self: Any, outputs: Any) -> Any:
            scaled = original(self, outputs)
            if self.is_enabled():
                recorder.notes["grad_scaler"] = True
                backward.note_scaled(scaled, outputs, self.get_scale(), dynamic=True)
            return scaled

        return scale

    def unscale_(original: Any) -> Any:
        def unscale_(self: Any, optimizer: Any) -> Any:
            if self.is_enabled() and not inside_step:
                recorder.event("U")
            return original(self, optimizer)

        return unscale_

    def step(original: Any) -> Any:
        def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if not self.is_enabled():
                return original(self, optimizer, *args, **kwargs)
            recorder.event("(")
            taken = steps.attempts
            inside_step.append(optimizer)
            try:
                result = original(self, optimizer, *args, **kwargs)
            finally:
                inside_step.pop()
            if steps.attempts == taken:
                steps.skipped(optimizer)
            return result

        return step

    def update(original: Any) -> Any:
        def update(self: Any, *args: Any, **kwargs: Any) -> Any:
            if self.is_enabled():
                recorder.event("^")
            return original(self, *args, **kwargs)

        return update

    for name, make in (
        ("scale", scale),
        ("unscale_", unscale_),
        ("step", step),
        ("update", update),
    ):
        wrap(scaler_class, name, make)


def steer_scaler(config: CaptureConfig, fake_cuda: bool) -> None:
    """Make growth come sooner, scales powers of two (casts off), and CUDA scalers CPU ones."""

    def make(original: Any) -> Any:
        def __init__(
            self: Any,
            device: str = "cuda",
            init_scale: float = 2.0**16,
            growth_factor: float = 2.0,
            backoff_factor: float = 0.5,
            growth_interval: int = DEFAULT_GROWTH_INTERVAL,
            enabled: bool = True,
        ) -> None:
            original(
                self,
                "cpu" if fake_cuda else device,
                init_scale=_first_scale(init_scale, config),
                growth_factor=growth_factor,
                backoff_factor=backoff_factor,
                growth_interval=sooner(growth_interval, config.growth),
                enabled=enabled and not config.plain_fp32,
            )

        return __init__

    def set_growth_interval(original: Any) -> Any:
        def set_(self: Any, new_interval: int) -> None:
            original(self, sooner(new_interval, config.growth))

        return set_

    wrap(torch.amp.GradScaler, "__init__", make)
    wrap(torch.amp.GradScaler, "set_growth_interval", set_growth_interval)


def _first_scale(own: float, config: CaptureConfig) -> float:
    scale = own if config.first_scale is None else min(own, config.first_scale)
    return scale if config.casts else power_of_two(scale)


def steer_autocast(config: CaptureConfig, fake_cuda: bool, notes: dict[str, Any]) -> None:
    """Switch autocast off where asked, let CUDA autocast act on the CPU, and note the type it casts to."""

    def make(original: Any) -> Any:
        def __init__(
            self: Any,
            device_type: str,
            dtype: torch.dtype | None = None,
            enabled: bool = True,
            cache_enabled: bool | None = None,
        ) -> None:
            if fake_cuda and str(device_type).startswith("cuda"):
                device_type, dtype = "cpu", dtype or torch.float16
            if config.cast:
                dtype = getattr(torch, config.cast)
            original(self, device_type, dtype, enabled and config.casts, cache_enabled)
            if enabled and config.casts and not config.everywhere:
                notes["autocast"] = str(self.fast_dtype).removeprefix("torch.")

        return __init__

    wrap(torch.amp.autocast_mode.autocast, "__init__", make)
