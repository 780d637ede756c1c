"""Runs programs in forked processes, under the reference Apex or natively, and records the training."""

from __future__ import annotations

import gc
import hashlib
import io
import os
import pickle
import runpy
import shutil
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from amp_migrate.equivalence.reference import install, modules, uninstall

# What every child would repeat: to import the modules of the reference, and half of torch with the first optimizer.
# Nothing is frozen here, though children share it: they run without collector, and every migration of a process
# counts what is frozen in it one by one, and leaves what it made to the collector as new.
modules.unregister()
torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1).step()

_SECONDS = 120  # a child that runs longer is ended, as one that hangs

_is_enabled = torch.is_autocast_enabled
_scalers: list[CPUGradScaler] = []
Record = list[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Run:
    """How a program runs: its script, the arguments of its runs, the backward that overflows, the modes.

    `more` are other scripts with their arguments; their records stand beside, under mode and script.
    """

    entry: str
    argvs: tuple[tuple[str, ...], ...]
    overflow: int
    modes: tuple[str, ...]
    more: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def parts(self) -> list[tuple[str, str, Run]]:
        """Name, mode and run of every record."""
        found = [(mode, mode, self) for mode in self.modes]
        for script, argv in self.more:
            other = replace(self, entry=script, argvs=(argv,), overflow=0, more=())
            found += [(f"{mode} {script}", mode, other) for mode in self.modes]
        return found


UNCACHED = "uncached"
Side = dict[str, Record]
Trainings = list[tuple[dict[str, bytes], dict[str, bytes], Run]]


def records(trainings: Trainings) -> list[tuple[Side, Side]]:
    """Run programs under the reference Apex and their migrations natively, in one forked process.

    Each runs in every mode: "logic" without casts, "casts", or natively without the cache of cast weights. A record holds what was printed, the exception
    that ended the run, and for every optimizer step the number of backwards before it, the learning rates,
    gradient norm and digest, and the parameters. The native sides run first, when nothing is patched yet.
    A process that dies leaves empty records; programs that shared it then run by themselves.
    """
    folder = tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
    try:
        for number, (before, after, _) in enumerate(trainings):
            _write(before, Path(folder, f"{number}before"))
            _write(after, Path(folder, f"{number}after"))

        def work() -> list[tuple[Side, Side]]:
            native, reference = (
                [
                    {
                        name: _runs(f"{folder}/{k}{side}", part, mode, side == "before")
                        for name, mode, part in run.parts
                    }
                    for k, (_, _, run) in enumerate(trainings)
                ]
                for side in ("after", "before")
            )
            return list(zip(reference, native, strict=True))

        found = _in_child(work)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if not found and len(trainings) > 1:
        return [pair for training in trainings for pair in records([training])]
    return found or [({}, {})]


def _write(files: dict[str, bytes], folder: Path) -> None:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _in_child(work: Callable[[], list[tuple[Side, Side]]]) -> list[tuple[Side, Side]]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(_SECONDS)
        gc.disable()
        try:
            with os.fdopen(writing, "wb") as stream:
                pickle.dump(work(), stream)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        data = stream.read()
    os.waitpid(child, 0)
    return pickle.loads(data) if data else []


def _runs(folder: str, run: Run, mode: str, apex: bool) -> Record:
    os.chdir(folder)
    sys.dont_write_bytecode = True
    torch.set_num_threads(1)
    sys.path.insert(0, folder)
    own = {name.removesuffix(".py") for name in os.listdir(folder)}
    result: Record = []
    for argv in run.argvs:
        for name in [n for n in sys.modules if n.partition(".")[0] in own]:
            del sys.modules[name]
        casts = mode in ("casts", UNCACHED)
        CPUAutocast.casts = casts  # also where a program under Apex has native code beside it
        CPUAutocast.cached = mode != UNCACHED
        if apex:
            install("cpu", casts=casts, quiet=True)
        else:
            _redirect(casts)
        recorder = Recorder(run.overflow, census=casts)
        result += recorder.run(run.entry, argv)
        result.append(("scale", _scale(apex)))
        _scalers.clear()
        if apex:
            uninstall()
    sys.path.remove(folder)
    return result


def _scale(apex: bool) -> float:
    """Return the loss scale of the first loss at the end of a run, 1 where AMP is off."""
    if not apex:
        used = [scaler for scaler in _scalers if scaler.has_scaled] or _scalers
        return float(used[-1].get_scale()) if used else 1.0
    found = vars(sys.modules["apex.amp"]._amp_state).get("loss_scalers")
    return float(found[0].loss_scale()) if found else 1.0


class CPUAutocast(torch.amp.autocast):
    """CUDA autocast on the CPU; without `casts` it does nothing, without `cached` it casts a weight at every use."""

    casts = True
    cached = True

    def __init__(self, *device: str, enabled: bool = True, **kwargs: Any) -> None:
        given = {"dtype": torch.float16, "cache_enabled": self.cached, **kwargs}
        super().__init__("cpu", enabled=enabled and self.casts, **given)


class CPUGradScaler(torch.amp.GradScaler):
    """The CUDA GradScaler on the CPU."""

    def __init__(self, *device: str, **kwargs: Any) -> None:
        super().__init__("cpu", **kwargs)
        self.has_scaled = False
        _scalers.append(self)

    def scale(self, outputs: Any) -> Any:
        """Scale a loss, and remember that it did."""
        self.has_scaled = True
        return super().scale(outputs)


def _redirect(casts: bool) -> None:
    CPUAutocast.casts = casts
    for module in (torch.cuda.amp, torch.amp):
        vars(module).update(autocast=CPUAutocast, GradScaler=CPUGradScaler)
    vars(torch).update(is_autocast_enabled=lambda device_type="cpu": _is_enabled("cpu"))


class Recorder:
    """Records one run by hooks on optimizers, modules and backward."""

    def __init__(self, overflow: int, census: bool) -> None:
        self._overflow = overflow
        self._census = census
        self._backwards = 0
        self._events: Record = []
        self._optimizers: list[torch.optim.Optimizer] = []

    def run(self, entry: str, argv: tuple[str, ...]) -> Record:
        """Run a script and return what was recorded."""
        sys.argv = [entry, *argv]
        hooks = [
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
        ]
        if self._census:
            hooks.append(torch.nn.modules.module.register_module_forward_hook(self._forward))
        original = torch.autograd.backward

        def backward(tensors: Any, *args: Any, **kwargs: Any) -> None:
            leaves = _leaves(tensors)
            finite = _finite(leaves)
            original(tensors, *args, **kwargs)
            self._after_backward(leaves, finite)

        vars(torch.autograd)["backward"] = backward
        output = io.StringIO()
        ended = ""
        with redirect_stdout(output), redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                runpy.run_path(entry, run_name="__main__")
            except BaseException as error:
                ended = f"{type(error).__name__}: {error}"
        vars(torch.autograd)["backward"] = original
        for hook in hooks:
            hook.remove()
        ends = [("end", _digest(_parameters(o)), _rates(o)) for o in self._optimizers]
        printed = [("printed", line) for line in output.getvalue().splitlines()]
        return [*printed, *self._events, ("backwards", self._backwards), *ends, ("ended", ended)]

    def _forward(self, module: torch.nn.Module, args: Any, result: Any) -> None:
        if not any(True for _ in module.children()) and isinstance(result, torch.Tensor):
            self._events.append((type(module).__name__, str(result.dtype), module.training))

    def _after_backward(self, leaves: list[torch.Tensor], finite: bool) -> None:
        self._backwards += 1
        if self._backwards == self._overflow:
            for leaf in leaves:
                if leaf.grad is not None:
                    leaf.grad.view(-1)[0] = float("inf")
        elif self._census and finite and not _finite(leaves):
            self._events.append(("overflowed", self._backwards))

    def _before_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if not any(optimizer is known for known in self._optimizers):
            self._optimizers.append(optimizer)
        grads = [p.grad for p in _parameters(optimizer) if p.grad is not None]
        norm = float(torch.stack([g.double().norm() for g in grads]).norm()) if grads else 0.0
        number = next(k for k, known in enumerate(self._optimizers) if known is optimizer)
        self._events.append(
            ("step", number, self._backwards, repr(norm), _digest(grads), _rates(optimizer))
        )

    def _after_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self._events.append(("stepped", _digest(_parameters(optimizer))))


def _parameters(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _rates(optimizer: torch.optim.Optimizer) -> tuple[float, ...]:
    return tuple(float(group["lr"]) for group in optimizer.param_groups)


def _finite(leaves: list[torch.Tensor]) -> bool:
    return all(bool(torch.isfinite(leaf.grad).all()) for leaf in leaves if leaf.grad is not None)


def _digest(tensors: list[torch.Tensor]) -> str:
    found = hashlib.blake2b(digest_size=8)
    for tensor in tensors:
        found.update(tensor.detach().numpy().tobytes())
    return found.hexdigest()


def _leaves(root: Any) -> list[torch.Tensor]:
    """Return the leaf tensors that a backward reached."""
    stack = [tensor.grad_fn for tensor in ([root] if isinstance(root, torch.Tensor) else root)]
    seen: set[Any] = set()
    found = []
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        stack.extend(up for up, _ in node.next_functions)
    return found
