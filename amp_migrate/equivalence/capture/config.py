"""What one recorded run is asked to do, handed to its processes as a JSON file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class CaptureConfig:
    """Settings of one recorded run.

    `casts` False runs the program in fp32 with its loss scale rounded to a power of two.
    `plain_fp32` also switches the loss scaler off (the fp32 row of the timing table). `everywhere` names the
    type that an FP32 program is cast to from each forward to its backward; empty: not at all. `first_scale` is
    the loss scale to begin with in place of the program's own.
    `cast` replaces the type that autocast blocks ask for, `tf32` allows or forbids TF32 (None: as the program has it),
    `batch_times` multiplies every batch size, and `products` counts the products of an iteration.
    `light` records step time and peak memory only. `kick` seeds a change of one unit in the
    last place of the weights after the first step. `inject` lists the iterations to overflow, in
    their first backward or, with `inject_last`, in their last. `device` is "cpu" or "cuda".
    `stubs` are modules whose every name is to do nothing.
    `roots` are pairs (original folder, its copy): import paths are moved to the copy.
    """

    record_dir: str
    steps: int = 24
    seed: int = 0
    device: str = "cpu"
    casts: bool = True
    plain_fp32: bool = False
    everywhere: str = ""
    first_scale: float | None = None
    cast: str = ""
    tf32: bool | None = None
    batch_times: float = 1.0
    products: bool = False
    inject: tuple[int, ...] = ()
    inject_last: bool = False
    growth: int | None = None
    workers: int | None = None
    census: bool = False
    light: bool = False
    kick: int | None = None
    check_fix: bool = False
    apex: str = "auto"
    synthetic_data: bool = False
    shims: tuple[str, ...] = ()
    stubs: tuple[str, ...] = ()
    roots: tuple[tuple[str, str], ...] = ()

    def write(self, path: Path) -> None:
        """Write the settings to `path`."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: str) -> CaptureConfig:
        """Read what `write` wrote."""
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        data["inject"] = tuple(data["inject"])
        data["shims"] = tuple(data["shims"])
        data["stubs"] = tuple(data["stubs"])
        data["roots"] = tuple((old, new) for old, new in data["roots"])
        return cls(**data)
