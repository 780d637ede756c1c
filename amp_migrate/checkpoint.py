"""Checkpoints written under Apex: their loss scale as the state of one `torch.amp.GradScaler`."""

from __future__ import annotations

import argparse
import math
import os
import pickle
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

APEX_GROWTH_INTERVAL = 2000
# A scale that stays: float32 rounds the product back to the scale; GradScaler wants a factor below 1.
_STATIC = {"backoff_factor": 1 - 2**-30, "growth_interval": 2**31 - 1}
_SCALER_MODULE = "apex.amp.scaler"
_UNREADABLE = (
    *(pickle.UnpicklingError, RuntimeError, EOFError, OSError, AttributeError, ImportError),
    *(KeyError, IndexError, ValueError),
)


class ConversionError(Exception):
    """A checkpoint that cannot be converted, and why."""


class LossScaler:
    """Takes the place of Apex's class while a file that pickled one is read."""


LossScaler.__module__ = _SCALER_MODULE


@dataclass(frozen=True, slots=True)
class LossScale:
    """What Apex keeps of one loss scaler: its scale, and the steps since an overflow.

    Only an FP16_Optimizer also keeps how its scale changes; amp goes by what the program asks for.
    """

    scale: float
    unskipped: int
    static: bool = False
    growth_interval: int | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """What Apex took from the program, and a GradScaler takes from its state.

    `micro_batches` is the number of backward passes per optimizer step: Apex counts the former, a GradScaler the
    latter, and so `growth_interval`, which is in backward passes, is divided by it. A `static` scale never changes.
    """

    static: bool = False
    growth_interval: int = APEX_GROWTH_INTERVAL
    micro_batches: int = 1


DEFAULTS = Settings()


def convert(
    old: Path,
    new: Path,
    key: str,
    new_key: str,
    *,
    settings: Settings = DEFAULTS,
    pickles: bool = False,
) -> str:
    """Write `new` as `old` with the Apex state at `key` as GradScaler state at `new_key`.

    Only tensors and plain data are loaded unless `pickles`. Return a
    sentence that says what was done. A state that is None, as without AMP, stays None. Raises `ConversionError`.
    """
    checkpoint = _load(old, pickles)
    if not isinstance(checkpoint, dict):
        raise ConversionError(f"{old}: is not a dict but a {type(checkpoint).__name__}")
    without = key in checkpoint and checkpoint[key] is None
    key, scales = (key, []) if without else _loss_scales(old, checkpoint, key)
    if new_key in checkpoint and new_key != key:
        raise ConversionError(f"{old}: has {new_key!r} already")
    state = None if without else scaler_state(scales, settings)
    if _holds_scaler(checkpoint[key]):
        converted = {**_without_objects(checkpoint), new_key: state}
    else:
        items = ((new_key, state) if name == key else (name, it) for name, it in checkpoint.items())
        converted = _without_objects(dict(items))
    _save(converted, new)
    return f"{new}: {_said(scales, state)} at {new_key!r}, from {key!r}"


def scaler_state(scales: list[LossScale], settings: Settings = DEFAULTS) -> dict[str, Any]:
    """Return the GradScaler state that goes on where Apex stopped.

    Of several loss scales the smallest is taken. A count that Apex let run past its interval (it
    does for a static scale) is reduced: a GradScaler grows only when its count meets the interval.
    An empty list, that of disabled AMP, gives the empty state of a disabled GradScaler.
    """
    if not scales:
        return {}
    least = min(scales, key=lambda item: (item.scale, item.unskipped))
    passes = least.growth_interval or settings.growth_interval
    micro_batches = settings.micro_batches
    interval = max(1, passes // micro_batches)
    tracker = least.unskipped % passes // micro_batches
    state = {
        "scale": least.scale,
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": interval,
        "_growth_tracker": min(tracker, interval - 1),
    }
    return {**state, **_STATIC} if settings.static or least.static else state


def _loss_scales(old: Path, checkpoint: dict[Any, Any], key: str) -> tuple[str, list[LossScale]]:
    """Return where the Apex state is, and its loss scales in order."""
    if key in checkpoint:
        return key, [_loss_scale(old, item) for item in _entries(old, key, checkpoint[key])]
    for name, value in checkpoint.items():
        if _holds_scaler(value):
            return name, [_loss_scale(old, vars(value["loss_scaler"]))]
    known = ", ".join(map(repr, checkpoint))
    raise ConversionError(f"{old}: has no {key!r}; it has {known} (--key)")


def _entries(old: Path, key: str, state: object) -> list[Mapping[str, Any]]:
    if _holds_scaler(state):
        assert isinstance(state, dict)
        return [vars(state["loss_scaler"])]
    if not isinstance(state, dict) or not all(isinstance(item, dict) for item in state.values()):
        raise ConversionError(f"{old}: {key!r} is not the state of Apex amp")
    names = sorted(state, key=lambda name: (len(str(name)), str(name)))
    if any(not str(name).startswith("loss_scaler") for name in names):
        raise ConversionError(f"{old}: {key!r} is not the state of Apex amp; it has {names}")
    return [state[name] for name in names]


def _loss_scale(old: Path, entry: Mapping[str, Any]) -> LossScale:
    scale = entry.get("loss_scale", entry.get("_loss_scale"))
    unskipped = entry.get("unskipped", entry.get("_unskipped"))
    if scale is None or unskipped is None:
        raise ConversionError(f"{old}: a loss scaler without scale or count: {dict(entry)}")
    if not (math.isfinite(float(scale)) and float(scale) > 0):
        raise ConversionError(f"{old}: the loss scale is {float(scale)}")
    static, interval = entry.get("dynamic") is False, entry.get("_scale_seq_len")
    return LossScale(float(scale), int(unskipped), static, interval)


def _holds_scaler(value: object) -> bool:
    """Tell whether a value is the state of an FP16_Optimizer, which pickles its loss scaler."""
    return isinstance(value, dict) and isinstance(value.get("loss_scaler"), _scaler_class())


def _scaler_class() -> type:
    module = sys.modules.get(_SCALER_MODULE)
    return module.LossScaler if module is not None else LossScaler


def _without_objects(value: Any) -> Any:
    """Return the checkpoint with Apex's objects as plain data, so that it loads without Apex."""
    if isinstance(value, _scaler_class()):
        entry = vars(value)
        return {"loss_scale": entry["_loss_scale"], "unskipped": entry["_unskipped"]}
    if type(value) is dict:
        return {name: _without_objects(item) for name, item in value.items()}
    return value


def _load(old: Path, pickles: bool) -> object:
    try:
        with _apex_names(), nullcontext() if pickles else _plain_globals():
            return torch.load(old, map_location="cpu", weights_only=not pickles)
    except _UNREADABLE as error:
        if pickles or "weights_only" not in str(error):
            raise ConversionError(f"{old}: cannot be read: {_first_line(error)}") from error
        named = re.search(r"[Uu]nsupported (?:global|class):? (?:GLOBAL )?(\S+)", str(error))
        held = f"holds {named[1]}, more" if named is not None else "holds more"
        raise ConversionError(
            f"{old}: {held} than tensors and plain data; --allow-pickle loads it, which can run code from the file"
        ) from error


def _plain_globals() -> AbstractContextManager[object]:
    """Let plain loading take what Apex programs often save; torch < 2.5 cannot be told."""
    try:
        from torch.serialization import safe_globals
    except ImportError:
        return nullcontext()
    return safe_globals([LossScaler, argparse.Namespace])


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


@contextmanager
def _apex_names() -> Iterator[None]:
    """Let `apex.amp.scaler` be imported while a file is read, unless the real one is there."""
    if _SCALER_MODULE in sys.modules:
        yield
        return
    names = ("apex", "apex.amp", _SCALER_MODULE)
    before = {name: sys.modules.get(name) for name in names}
    stand_ins = {name: ModuleType(name) for name in names}
    vars(stand_ins[_SCALER_MODULE])["LossScaler"] = LossScaler
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def _save(checkpoint: dict[Any, Any], new: Path) -> None:
    fresh = new.with_name(f".amp-migrate-{os.getpid()}.tmp")
    try:
        torch.save(checkpoint, fresh)
        fresh.replace(new)
    except (OSError, RuntimeError) as error:
        raise ConversionError(f"{new}: cannot be written: {_first_line(error)}") from error
    finally:
        fresh.unlink(missing_ok=True)


def _said(scales: list[LossScale], state: dict[str, Any] | None) -> str:
    if state is None:
        return "None, saved without AMP,"
    if not scales:
        return "the empty state of a disabled GradScaler"
    several = f" (the smallest of {len(scales)})" if len(scales) > 1 else ""
    if state["growth_interval"] == _STATIC["growth_interval"]:
        return f"static loss scale {state['scale']:g}{several}"
    return f"loss scale {state['scale']:g}{several}, growth count {state['_growth_tracker']}"
