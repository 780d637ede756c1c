"""Ask CUDA in which dtype every operator runs that autocast or Apex O1 has in a list.

    python scripts/gpu_casts.py [--output FILE]

Each line of cast_expressions.txt is evaluated on the GPU under fp16 autocast, under the reference Apex
and under the installed Apex, where there is one; the dtypes are written to tests/equivalence/runs/cuda_dtypes.json, which
the stand-in for machines without a GPU is held against. Needs torch with CUDA and nothing else.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import subprocess
import sys
import warnings
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
EXPRESSIONS = ROOT / "scripts" / "cast_expressions.txt"
MEASURED = ROOT / "tests" / "equivalence" / "runs" / "cuda_dtypes.json"
WAYS = ("autocast", "reference", "apex")


def main() -> int:
    """Ask in a process for each way, as Apex patches what the others use; 2 without CUDA."""
    parser = argparse.ArgumentParser(description="Read the casts of autocast and of Apex on a GPU.")
    parser.add_argument("--output", type=Path, default=MEASURED)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("no CUDA device answers", file=sys.stderr)
        return 2
    if arguments.way:
        print(json.dumps(_asked(arguments.way)))
        return 0
    ways = [way for way in WAYS if way != "apex" or importlib.util.find_spec("apex") is not None]
    dtypes = {way: _in_a_process(way) for way in ways}
    page = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "date": datetime.date.today().isoformat(),
        "dtypes": {
            line: {way: found[line] for way, found in dtypes.items()} for line in expressions()
        },
    }
    arguments.output.write_text(json.dumps(page, indent=1) + "\n", encoding="utf-8")
    print(f"{len(expressions())} expressions, {', '.join(ways)}: wrote {arguments.output}")
    return 0


def _in_a_process(way: str) -> dict[str, str]:
    command = [sys.executable, __file__, "--way", way]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def expressions() -> list[str]:
    """Return the expressions, a line each."""
    lines = EXPRESSIONS.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def evaluated(device: str) -> dict[str, str]:
    """Return the dtype of every expression on `device`, or the exception it raises."""
    names = _names(torch.device(device))
    found = {}
    for line in expressions():
        try:
            found[line] = str(eval(line, names).dtype).removeprefix("torch.")
        except Exception as error:
            found[line] = f"raises {type(error).__name__}"
    return found


def _asked(way: str) -> dict[str, str]:
    warnings.simplefilter("ignore")
    if way == "autocast":
        with torch.autocast("cuda", torch.float16):
            return evaluated("cuda")
    sys.path.insert(0, str(ROOT))
    if way == "reference":
        from amp_migrate.equivalence.reference import install

        install("cuda", quiet=True)
    from apex import amp  # type: ignore[import-not-found]

    amp.initialize(torch.nn.Linear(2, 2).cuda(), opt_level="O1", verbosity=0)
    return evaluated("cuda")


def _names(device: torch.device) -> dict[str, object]:
    """Return what the expressions are made of: `h` is fp16, `f` fp32, and the number is that of dimensions."""
    torch.manual_seed(0)

    def full(*shape: int) -> torch.Tensor:
        return torch.rand(shape, device=device) * 0.9 + 0.05

    shapes: dict[str, tuple[int, ...]] = {
        "0": (),
        "1": (5,),
        "2": (5, 5),
        "3": (2, 5, 5),
        "4": (1, 3, 8, 8),
        "5": (1, 1, 4, 4, 4),
        "s": (1, 3, 8),
    }
    names: dict[str, object] = {"torch": torch, "F": torch.nn.functional, "nn": torch.nn}
    for name, shape in shapes.items():
        names[f"f{name}"] = full(*shape)
        names[f"h{name}"] = full(*shape).half()
    names["labels"] = torch.zeros(5, dtype=torch.long, device=device)
    names["ones"] = torch.ones(5, device=device)
    names["grid"] = torch.zeros(1, 2, 2, 2, device=device)
    names["dev"] = device
    return names


if __name__ == "__main__":
    raise SystemExit(main())
