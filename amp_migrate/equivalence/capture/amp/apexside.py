"""Follow and steer apex.amp, installed or reference."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from types import MethodType, ModuleType
from typing import Any

from amp_migrate.equivalence.capture.amp.native import power_of_two, sooner
from amp_migrate.equivalence.capture.config import CaptureConfig
from amp_migrate.equivalence.capture.events.backward import Backward
from amp_migrate.equivalence.capture.events.steps import Steps
from amp_migrate.equivalence.capture.patching import put, wrap
from amp_migrate.equivalence.capture.recorder import Recorder


class _NoCasts:
    """The handle of an Apex that casts nothing: O0 has none, which a program at another level may ask for."""

    def _deactivate(self) -> None:
        """Nothing is patched."""

    def _clear_cache(self) -> None:
        """Nothing is cached."""


_DEFAULT_SCALE = {"O0": 1.0, "O1": "dynamic", "O2": "dynamic", "O3": 1.0}


class ApexSide:
    """Wraps ``amp.initialize`` and ``amp.scale_loss`` of the module handed to `attach`."""

    def __init__(
        self, config: CaptureConfig, recorder: Recorder, backward: Backward, steps: Steps
    ) -> None:
        self.config = config
        self.recorder = recorder
        self.backward = backward
        self.steps = steps
        self._watchers: dict[int, Any] = {}
        self._begun: dict[int, Any] = {}
        self._growing: set[type] = set()

    def attach(self, amp: ModuleType) -> None:
        """Start following `amp` (the module apex.amp)."""
        state: Any = vars(amp)["_amp_state"]
        wrap(amp, "initialize", lambda original: self._initialize(original, state))
        if not self.config.casts:
            # Forced to O0 there is nothing to switch off, and Apex would raise.
            put(amp, "disable_casts", contextlib.nullcontext)
            state.handle = _NoCasts()
        if not self.config.light:
            wrap(amp, "scale_loss", lambda original: self._scale_loss(original, state))

    def _initialize(self, original: Any, state: Any) -> Any:
        signature = inspect.signature(original)

        def initialize(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            self._note(bound.arguments)
            if self.config.plain_fp32:
                bound.arguments["enabled"] = False
            elif not self.config.casts and bound.arguments["enabled"]:
                _casts_off(bound.arguments)
            result = original(*bound.args, **bound.kwargs)
            if bound.arguments["enabled"]:
                self._grow_sooner(state)
            return result

        return initialize

    def _note(self, arguments: dict[str, Any]) -> None:
        scale = _asked_scale(arguments)
        earlier = self.recorder.notes.get("apex_amp", {}).get("initialized", [])
        self.recorder.notes["apex_amp"] = {
            "enabled": bool(arguments["enabled"]),
            "opt_level": str(arguments["opt_level"]),
            "dynamic": scale == "dynamic",
            "loss_scale": str(scale),
            "num_losses": int(arguments["num_losses"]),
            "initialized": [*earlier, self.recorder.ahead()],
        }

    def _grow_sooner(self, state: Any) -> None:
        """Shrink the intervals of growth, those too that a program sets later, as those of a GradScaler."""
        if self.config.growth is None:
            return
        for scaler in state.loss_scalers:
            if type(scaler) not in self._growing:
                scaler._scale_seq_len = sooner(scaler._scale_seq_len, self.config.growth)
        for kind in {type(scaler) for scaler in state.loss_scalers} - self._growing:
            wrap(kind, "__setattr__", self._set)
            self._growing.add(kind)

    def _set(self, original: Any) -> Any:
        def set_(scaler: Any, name: str, value: Any) -> None:
            own = name == "_scale_seq_len"
            original(scaler, name, sooner(value, self.config.growth) if own else value)

        return set_

    def _begin(self, scaler: Any) -> None:
        """Begin at the smaller loss scale with the first loss, before which a program may have written its own."""
        if self.config.first_scale is None or id(scaler) in self._begun:
            return
        self._begun[id(scaler)] = scaler
        if scaler.dynamic:
            scaler._loss_scale = min(scaler._loss_scale, self.config.first_scale)

    def _scale_loss(self, original: Any, state: Any) -> Any:
        @contextlib.contextmanager
        def scale_loss(
            loss: Any, optimizers: Any, loss_id: int = 0, *args: Any, **kwargs: Any
        ) -> Iterator[Any]:
            if not (hasattr(state, "opt_properties") and state.opt_properties.enabled):
                with original(loss, optimizers, loss_id, *args, **kwargs) as scaled:
                    yield scaled
                return
            scaler = state.loss_scalers[loss_id]
            self._begin(scaler)
            self.backward.look()
            with original(loss, optimizers, loss_id, *args, **kwargs) as scaled:
                scale = float(scaler.loss_scale())
                self.backward.note_scaled(scaled, loss, scale, bool(scaler.dynamic))
                yield scaled
            if self.backward.looked():
                self.recorder.event("U")
            several = isinstance(optimizers, (list, tuple))
            for optimizer in optimizers if several else [optimizers]:
                self._watch(optimizer)

        return scale_loss

    def _watch(self, optimizer: Any) -> None:
        """Notice a step that Apex replaced by a function that skips it."""
        inner = optimizer.step
        function = inner.__func__ if isinstance(inner, MethodType) else inner
        if id(function) in self._watchers:
            return

        def step(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            taken = self.steps.attempts
            result = inner(*args, **kwargs)
            if self.steps.attempts == taken:
                self.steps.skipped(optimizer)
            return result

        self._watchers[id(step)] = step
        # A bound method, because learning rate schedulers read `step.__func__`.
        optimizer.step = MethodType(step, optimizer)


def _asked_scale(arguments: dict[str, Any]) -> Any:
    given = arguments["loss_scale"]
    return _DEFAULT_SCALE.get(str(arguments["opt_level"]), 1.0) if given is None else given


def _casts_off(arguments: dict[str, Any]) -> None:
    scale = _asked_scale(arguments)
    arguments.update(
        opt_level="O0",
        cast_model_type=False,
        patch_torch_functions=None,
        keep_batchnorm_fp32=None,
        master_weights=None,
        cast_model_outputs=None,
        loss_scale=scale if scale == "dynamic" else power_of_two(float(scale)),
    )
