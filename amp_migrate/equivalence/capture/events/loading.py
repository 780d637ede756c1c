"""What the DataLoaders of a program give: how many samples, and how long the training waits for them."""

from __future__ import annotations

import time
from typing import Any

import torch.utils.data
from torch import Tensor
from torch.utils.data.dataloader import _BaseDataLoaderIter

from amp_migrate.equivalence.capture.patching import wrap


class Loading:
    """Counts samples and seconds of waiting since they were last asked for."""

    def __init__(self, notes: dict[str, Any]) -> None:
        self._notes = notes
        self._samples = 0
        self._waited = 0.0

    def install(self) -> None:
        """Start counting."""

        def make(original: Any) -> Any:
            def __next__(self_: Any) -> Any:
                started = time.perf_counter()
                batch = original(self_)
                self._waited += time.perf_counter() - started
                self._samples += samples(batch)
                return batch

            return __next__

        wrap(_BaseDataLoaderIter, "__next__", make)
        wrap(torch.utils.data.DataLoader, "__iter__", self._noted)

    def _noted(self, original: Any) -> Any:
        def __iter__(loader: Any) -> Any:
            if loader.batch_size is not None:
                self._notes.setdefault("batch", loader.batch_size)
                self._notes.setdefault("samples", _size(loader.dataset))
            return original(loader)

        return __iter__

    def taken(self) -> tuple[int, float]:
        """Return samples and seconds since the last call."""
        found = self._samples, self._waited
        self._samples, self._waited = 0, 0.0
        return found


def samples(batch: Any) -> int:
    """Return the length of the first tensor, or else list, in what a DataLoader gives."""
    if isinstance(batch, Tensor):
        return batch.shape[0] if batch.dim() else 1
    held = batch.values() if isinstance(batch, dict) else batch
    if isinstance(batch, dict) or (isinstance(batch, (list, tuple)) and not _plain(batch)):
        return next((samples(one) for one in held if not isinstance(one, (str, int, float))), 1)
    return len(batch) if hasattr(batch, "__len__") else 1


def _plain(batch: Any) -> bool:
    return all(isinstance(one, (str, int, float)) for one in batch)


def _size(dataset: Any) -> int | None:
    return len(dataset) if hasattr(dataset, "__len__") else None


def enlarge(times: float) -> None:
    """Multiply the batch size of every DataLoader."""

    def make(original: Any) -> Any:
        def __init__(self: Any, dataset: Any, batch_size: Any = 1, *args: Any, **kw: Any) -> None:
            if batch_size is not None and kw.get("batch_sampler") is None:
                batch_size = max(1, round(batch_size * times))
            original(self, dataset, batch_size, *args, **kw)

        return __init__

    wrap(torch.utils.data.DataLoader, "__init__", make)
