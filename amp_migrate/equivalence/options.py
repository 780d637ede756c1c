"""What the user asked of a verification."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path

DEVICES = ("auto", "cpu", "cuda")
APEX = ("auto", "installed", "reference")


@dataclass(frozen=True)
class Options:
    """One verification.

    `runs` is the number of runs per side for the noise envelope (0: not asked), `margin` the
    relative loss difference that still counts as equivalent there. `growth` replaces the default
    growth interval of 2000; with `enables` before is an FP32 training, and after the same with AMP, and `batch_sizes` "auto" looks for the largest batch of each. `inject` lists the steps that overflow. `given` are the options as they were typed.
    """

    command: tuple[str, ...]
    project: Path
    inside: Path = Path()
    before: Path | None = None
    after: Path | None = None
    links: tuple[str, ...] = ()
    codemod: tuple[str, ...] = ()
    enables: bool = False
    steps: int = 24
    inject: tuple[int, ...] = (3, 7)
    growth: int = 10
    workers: int | None = None
    seed: int = 0
    device: str = "cpu"
    apex: str = "auto"
    shims: tuple[str, ...] = ()
    stubs: tuple[str, ...] = ()
    synthetic_data: bool = False
    casts: bool = True
    anchor: bool = False
    runs: int = 0
    margin: float = 0.005
    timing: bool = False
    timing_steps: int = 24
    batch_sizes: str | None = None
    timeout: float = 1800.0
    show_output: bool = False
    export: Path | None = None
    imported: Path | None = None
    given: tuple[str, ...] = ()

    @property
    def dtype(self) -> str:
        """The type that the options of the rewrite ask to cast to."""
        return "bfloat16" if any("bfloat16" in word for word in self.codemod) else "float16"


def available_device() -> str:
    """Return "cuda" where the driver answers with a GPU, else "cpu"; torch is not imported."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "cpu"
    count = ctypes.c_int(0)
    answers = driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0
    return "cuda" if answers and count.value else "cpu"
