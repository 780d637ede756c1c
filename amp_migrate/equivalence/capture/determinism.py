"""Switches that make two runs of one program agree bit for bit where torch can."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

from amp_migrate.equivalence.capture.patching import wrap


def seed_everything(seed: int) -> None:
    """Seed torch; the program's own seeds come later and win."""
    torch.manual_seed(seed)


def note_compile(notes: dict[str, Any]) -> None:
    """Note that the program compiles a model; recorded runs are told to leave it as it is."""
    if "compile" not in vars(torch):  # torch < 2.0
        return

    def make(original: Any) -> Any:
        def compile(*args: Any, **kwargs: Any) -> Any:
            notes["compiles"] = True
            return original(*args, **kwargs)

        return compile

    wrap(torch, "compile", make)


def note_scripts(notes: dict[str, Any], folders: tuple[str, ...]) -> None:
    """Note that a file of the program, below `folders`, compiles something by TorchScript."""

    def make(original: Any) -> Any:
        def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
            file = sys._getframe(1).f_code.co_filename
            if any(Path(file).is_relative_to(folder) for folder in folders):
                notes["scripts"] = True
            if len(args) < 2:  # where names are looked up, counted from the caller
                kwargs["_frames_up"] = kwargs.get("_frames_up", 0) + 1
            return original(obj, *args, **kwargs)

        return script

    wrap(torch.jit, "script", make)


def allow_tf32(allowed: bool | None) -> None:
    """Let products in FP32 round to TF32, or forbid it; None leaves what the program asks for."""
    if allowed is not None:
        torch.backends.cuda.matmul.allow_tf32 = allowed
        torch.backends.cudnn.allow_tf32 = allowed


def switch_on() -> None:
    """Ask torch and cuDNN for deterministic kernels; called again at every iteration."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    warnings.filterwarnings("ignore", message=".*does not have a deterministic implementation.*")
    # Not use_deterministic_algorithms, which imports the whole compiler to configure it.
    torch.set_deterministic_debug_mode("warn")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
