"""Stand-ins for data sets that are not there, and the number of DataLoader workers."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import torch.utils.data

from amp_migrate.equivalence.capture.config import CaptureConfig
from amp_migrate.equivalence.capture.imports import ImportHooks
from amp_migrate.equivalence.capture.patching import put, wrap


def install(config: CaptureConfig, hooks: ImportHooks) -> None:
    """Apply ``--workers``, ``--shim`` and ``--synthetic-data``."""
    if config.workers is not None:
        _fix_workers(config.workers)
    for shim in config.shims:
        _shim(shim, hooks)
    if config.synthetic_data:
        hooks.after("torchvision.datasets", _synthetic)


def _fix_workers(workers: int) -> None:
    def make(original: Any) -> Any:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            # num_workers is the sixth argument after dataset.
            args = args[:5] + ((workers,) if len(args) > 5 else ()) + args[6:]
            if len(args) <= 5:
                kwargs["num_workers"] = workers
            if workers == 0:
                for name in ("prefetch_factor", "persistent_workers", "multiprocessing_context"):
                    kwargs.pop(name, None)
            original(self, *args, **kwargs)

        return __init__

    wrap(torch.utils.data.DataLoader, "__init__", make)


def _shim(text: str, hooks: ImportHooks) -> None:
    """Set ``module:attr`` to what ``file:object`` holds; a module that is not there is made."""
    target, _, source = text.partition("=")
    module_name, _, attribute = target.partition(":")
    path, _, name = source.rpartition(":")

    def replace(module: ModuleType) -> None:
        put(module, attribute, vars(_load(Path(path)))[name])

    def make_missing(spec: ModuleSpec | None) -> ModuleType | None:
        return ModuleType(module_name) if spec is None else None

    parts = module_name.split(".")
    for depth in range(1, len(parts)):
        _package_if_missing(".".join(parts[:depth]), hooks)
    hooks.provide(module_name, make_missing)
    hooks.after(module_name, replace)


def _package_if_missing(name: str, hooks: ImportHooks) -> None:
    def make(spec: ModuleSpec | None) -> ModuleType | None:
        if spec is not None:
            return None
        package = ModuleType(name)
        package.__path__ = []
        return package

    hooks.provide(name, make)


def _load(path: Path) -> ModuleType:
    name = f"amp_migrate_shim_{path.stem}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load the shim file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _synthetic(datasets: ModuleType) -> None:
    from amp_migrate.equivalence.capture.standins import synthetic

    for name, made in synthetic.STAND_INS.items():
        original = getattr(datasets, name, None)
        if original is not None:
            put(datasets, name, made)
            put(sys.modules[original.__module__], name, made)  # from torchvision.datasets.cifar too
