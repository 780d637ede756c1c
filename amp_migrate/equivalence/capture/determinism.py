"""Switches that make two runs of one program agree bit for bit where torch can."""

from __future__ import annotations

import os
import warnings

import torch


def seed_everything(seed: int) -> None:
    """Seed torch; the program's own seeds come later and win."""
    torch.manual_seed(seed)


def switch_on() -> None:
    """Ask torch and cuDNN for deterministic kernels; called again at every iteration."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    warnings.filterwarnings("ignore", message=".*does not have a deterministic implementation.*")
    # Not use_deterministic_algorithms, which imports the whole compiler to configure it.
    torch.set_deterministic_debug_mode("warn")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
