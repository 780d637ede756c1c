"""Runs a training program in a forked process, under the reference Apex or natively on the CPU."""

from __future__ import annotations

import os
import runpy
import sys
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import fork_server
import torch

from amp_migrate.equivalence.reference import install, modules
from amp_migrate.equivalence.reference.casts import wrappers as casting
from amp_migrate.equivalence.reference.fused import FusedAdam

# What every child would repeat: to import the modules of the reference, and half of torch with the first optimizer.
modules.unregister()
torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1).step()


@dataclass(frozen=True, slots=True)
class Mode:
    """How a program runs: with its casts or without; `overflow` counts backwards from 1, 0 is none.

    Without `cached` a weight is cast at every use, on both sides. On `device` "cuda" all is made on a GPU, and
    nothing stands in for it.
    """

    casts: bool
    overflow: int
    cached: bool = True
    device: str = "cpu"

    @classmethod
    def named(cls, name: str, overflow: int) -> Mode:
        """Return the mode of a fixture; only "logic" has overflows."""
        return cls(name != "logic", overflow if name == "logic" else 0, name != "uncached")


def run(files: dict[str, str], script: str, argv: tuple[str, ...], mode: Mode, apex: bool) -> str:
    """Run `script` of a project and return what it prints, and the exception that ended it, if any."""
    return _printed(tuple(files.items()), script, argv, mode, apex)


@lru_cache(maxsize=32)
def _printed(
    files: tuple[tuple[str, str], ...], script: str, argv: tuple[str, ...], mode: Mode, apex: bool
) -> str:
    """Return what a program prints, which is the same each time: the tests of a fixture ask for it together."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in files:
            path = root / "project" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        output = root / "output"
        fork_server.call(_child, root / "project", script, argv, mode, apex, output)
        return output.read_text(encoding="utf-8")


def _child(
    root: Path, script: str, argv: tuple[str, ...], mode: Mode, apex: bool, output: Path
) -> None:
    with output.open("w", encoding="utf-8") as stream:
        sys.stdout = stream
        os.chdir(root)
        sys.argv = [script, *argv]
        sys.path.insert(0, str((root / script).parent))
        sys.dont_write_bytecode = True
        torch.set_num_threads(1)
        _prepare(mode, apex)
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as stop:
            print("exit", stop.code)
        except BaseException as error:
            print("raised", type(error).__name__, error)


def _prepare(mode: Mode, apex: bool) -> None:
    if mode.device == "cuda":
        _made_on_the_gpu()
    if apex:
        install(mode.device, casts=mode.casts, quiet=True)
        if not mode.cached:
            vars(casting)["cacheable"] = lambda value: False
    else:
        _leave_what_stays()
        _redirect(mode.casts, mode.cached, mode.device)
    if not mode.casts:
        _stay_in_fp32()
    if mode.overflow:
        _inject(mode.overflow)


def _stay_in_fp32() -> None:
    """Let networks and tensors that a program puts into fp16 itself stay in fp32 as well."""
    for kind in (torch.nn.Module, torch.Tensor):
        vars_of: Any = kind
        vars_of.half = lambda self: self


def _leave_what_stays() -> None:
    """Let ``import apex`` find the optimizers that are still in Apex, as they are today."""
    modules.register()
    for name in modules.CONTENTS.keys() - {"apex"}:
        if not name.startswith(("apex.optimizers", "apex.contrib")) or "fp16" in name:
            del sys.modules[name]
    for name in ("apex.optimizers", "apex.contrib.optimizers"):
        del vars(sys.modules[name])["FP16_Optimizer"]
    vars(sys.modules["apex.optimizers"])["FusedAdam"] = FusedAdam


def _made_on_the_gpu() -> None:
    """Make every tensor there, and let kernels repeat themselves.

    A cross entropy takes its logits in fp32, as Apex has it: CUDA's autocast rounds what it computes of fp16 to that.
    """
    torch.manual_seed(0)
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    torch.set_default_device("cuda")
    drawn = torch.randperm

    def randperm(*args: Any, generator: Any = None, **kwargs: Any) -> torch.Tensor:
        """Draw where the generator is: that of a DataLoader is on the CPU."""
        where = {} if generator is None else {"generator": generator, "device": generator.device}
        return drawn(*args, **kwargs, **where)

    vars(torch)["randperm"] = randperm
    kinds: Any = torch.Tensor
    numpy, entropy = kinds.numpy, torch.nn.functional.cross_entropy
    kinds.numpy = lambda self, **kwargs: numpy(self.cpu(), **kwargs)

    def cross_entropy(input: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        return entropy(input.float(), *args, **kwargs)

    vars(torch.nn.functional)["cross_entropy"] = cross_entropy


def _redirect(casts: bool, cached: bool, on: str) -> None:
    class Autocast(torch.amp.autocast):
        def __init__(self, *device: str, enabled: bool = True, **kwargs: Any) -> None:
            given = {"dtype": torch.float16, "cache_enabled": cached, **kwargs}
            given.pop("device_type", None)
            super().__init__(on, enabled=enabled and casts, **given)

    class GradScaler(torch.amp.GradScaler):
        def __init__(self, *device: str, **kwargs: Any) -> None:
            super().__init__(on, **kwargs)

    for module in (torch.cuda.amp, torch.amp):
        vars(module).update(autocast=Autocast, GradScaler=GradScaler)
    is_enabled = torch.is_autocast_enabled
    vars(torch).update(is_autocast_enabled=lambda device_type="cpu": is_enabled(on))


def _inject(overflow: int) -> None:
    """Make one gradient of every leaf infinite after the given backward."""
    original = torch.autograd.backward
    count = 0

    def backward(*args: Any, **kwargs: Any) -> None:
        nonlocal count
        original(*args, **kwargs)
        count += 1
        if count == overflow:
            for leaf in _leaves(args[0] if args else kwargs["tensors"]):
                if leaf.grad is not None:
                    leaf.grad.view(-1)[0] = float("inf")

    vars(torch.autograd)["backward"] = backward


def _leaves(root: Any) -> list[torch.Tensor]:
    tensors = [root] if isinstance(root, torch.Tensor) else list(root)
    seen: set[Any] = set()
    found = []
    stack = [tensor.grad_fn for tensor in tensors]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        stack.extend(up for up, _ in node.next_functions)
    return found
