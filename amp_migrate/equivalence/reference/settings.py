"""How the reference runs: chosen once at install, read everywhere."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass
class Settings:
    """`device` is where a tensor must live to be cast; "cpu" means anywhere."""

    device: str = "cpu"
    casts: bool = True
    quiet: bool = False

    def choose(self, device: str, casts: bool, quiet: bool) -> None:
        """Set all; "auto" takes CUDA where there is one. Raises ValueError on another device."""
        if device not in ("auto", "cpu", "cuda"):
            raise ValueError(f"device must be 'auto', 'cpu' or 'cuda', not {device!r}")
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        self.device = device
        self.casts = casts
        self.quiet = quiet

    def castable(self, tensor: torch.Tensor) -> bool:
        """Whether AMP treats `tensor` as living on the accelerator."""
        return self.device == "cpu" or tensor.is_cuda


settings = Settings()
