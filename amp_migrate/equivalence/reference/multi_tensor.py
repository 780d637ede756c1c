"""The entry point of Apex's fused kernels, of which there are none here."""

from __future__ import annotations

from typing import Any


class MultiTensorApply:
    """`available` is False, which makes programs take their plain path."""

    available = False

    def __init__(self, chunk_size: int) -> None:
        self.chunk_size = chunk_size

    def __call__(self, op: Any, noop_flag_buffer: Any, tensor_lists: Any, *args: Any) -> Any:
        """Raise RuntimeError: there is no kernel to apply."""
        raise RuntimeError(
            "Attempted to call MultiTensorApply method, but MultiTensorApply is not available"
        )


multi_tensor_applier = MultiTensorApply(2048 * 32)
