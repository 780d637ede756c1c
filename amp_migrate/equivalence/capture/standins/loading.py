"""Stand-ins for the data sets of torchvision, and the number of DataLoader workers."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import torch.utils.data

from amp_migrate.equivalence.capture.config import CaptureConfig
from amp_migrate.equivalence.capture.imports import ImportHooks
from amp_migrate.equivalence.capture.patching import put, wrap


def install(config: CaptureConfig, hooks: ImportHooks) -> None:
    """Apply ``--workers`` and ``--synthetic-data``."""
    if config.workers is not None:
        _fix_workers(config.workers)
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


def _synthetic(datasets: ModuleType) -> None:
    from amp_migrate.equivalence.capture.standins import synthetic

    for name, made in synthetic.STAND_INS.items():
        original = getattr(datasets, name, None)
        if original is not None:
            put(datasets, name, made)
            put(sys.modules[original.__module__], name, made)  # from torchvision.datasets.cifar too
