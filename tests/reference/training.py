"""One training program in its Apex form and in its native form."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from reference.support import (
    MODELS,
    OPTIMIZERS,
    batch,
    model_digest,
    optimizer_digest,
    put_inf,
)


@dataclass(frozen=True)
class Program:
    """`overflows` are (step, micro-batch) whose gradients get one infinity; `delay` is delay_unscale."""

    level: str
    model: str = "mlp"
    optimizer: str = "sgd"
    loss_scale: float | str = "dynamic"
    micro_batches: int = 1
    clip: float | None = None
    delay: bool = False
    growth: int = 2000
    overflows: tuple[tuple[int, int], ...] = ()
    steps: int = 6

    @property
    def compares_scale(self) -> bool:
        """Apex moves the scale per backward, a GradScaler per step."""
        return self.loss_scale == "dynamic" and (self.micro_batches == 1 or self.delay)


@dataclass
class Row:
    """What one step did; the norm only of a step that was taken."""

    losses: list[float] = field(default_factory=list)
    norm: float | None = None
    taken: bool = True
    scale: tuple[float, int] | None = None
    parameters: str = ""
    state: str = ""


def train_apex(program: Program, amp: Any) -> list[Row]:
    """Train under the Apex at hand."""
    model = MODELS[program.model]()
    optimizer = OPTIMIZERS[program.optimizer](model.parameters())
    model, optimizer = amp.initialize(
        model, optimizer, opt_level=program.level, loss_scale=program.loss_scale, verbosity=0
    )
    scaler = amp._amp_state.loss_scalers[0]
    scaler._scale_seq_len = program.growth
    rows = []
    for step in range(program.steps):
        row = Row()
        for micro in range(program.micro_batches):
            images, labels = batch(step, micro)
            loss = F.cross_entropy(model(images), labels) / program.micro_batches
            delay = program.delay and micro < program.micro_batches - 1
            with amp.scale_loss(loss, optimizer, delay_unscale=delay) as scaled:
                scaled.backward()
                if (step, micro) in program.overflows:
                    put_inf(model)
            row.losses.append(loss.item())
        row.taken = optimizer.step.__name__ != "skip_step"
        if program.clip is not None:
            norm = torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), program.clip)
            row.norm = float(norm) if row.taken else None
        optimizer.step()
        optimizer.zero_grad()
        if program.compares_scale:
            row.scale = (scaler.loss_scale(), scaler._unskipped)
        row.parameters = model_digest(model)
        row.state = optimizer_digest(optimizer)
        rows.append(row)
    return rows


def train_native(program: Program) -> list[Row]:
    """Train with torch alone: fp32 for O0, autocast for O1, fp16 with fp32 masters for O2."""
    model = MODELS[program.model]()
    optimizer = OPTIMIZERS[program.optimizer](model.parameters())
    scaler = make_scaler(program.loss_scale, program.growth)
    half = HalfModel(model, optimizer) if program.level == "O2" else None
    forward = half or model
    rows = []
    for step in range(program.steps):
        row = Row()
        for micro in range(program.micro_batches):
            images, labels = batch(step, micro)
            with casting(program.level):
                loss = F.cross_entropy(forward(images), labels) / program.micro_batches
            scaler.scale(loss).backward()
            if (step, micro) in program.overflows:
                put_inf(model)
            if half is not None:
                half.collect()
            row.losses.append(loss.item())
        scaler.unscale_(optimizer)
        row.taken = all_finite(optimizer)
        if program.clip is not None:
            params = [p for group in optimizer.param_groups for p in group["params"]]
            norm = torch.nn.utils.clip_grad_norm_(params, program.clip)
            row.norm = float(norm) if row.taken else None
        scaler.step(optimizer)
        scaler.update(None if program.loss_scale == "dynamic" else float(program.loss_scale))
        if half is not None:
            half.push()
        optimizer.zero_grad()
        if program.compares_scale:
            row.scale = (scaler.get_scale(), scaler._get_growth_tracker())
        row.parameters = model_digest(model)
        row.state = optimizer_digest(optimizer)
        rows.append(row)
    return rows


def make_scaler(loss_scale: float | str, growth: int = 2000) -> torch.amp.GradScaler:
    """The GradScaler for an Apex loss scale; a static one must be pinned at each update."""
    if loss_scale == "dynamic":
        return torch.amp.GradScaler("cpu", growth_interval=growth)
    scale = float(loss_scale)
    return torch.amp.GradScaler(
        "cpu", init_scale=scale, growth_interval=2**31 - 1, enabled=scale != 1.0
    )


def casting(level: str) -> contextlib.AbstractContextManager[Any]:
    """Autocast to fp16 for O1, else nothing."""
    if level != "O1":
        return contextlib.nullcontext()
    return torch.autocast("cpu", dtype=torch.float16)


def all_finite(*optimizers: torch.optim.Optimizer) -> bool:
    """Whether no gradient has an infinity or NaN."""
    grads = [
        param.grad
        for optimizer in optimizers
        for group in optimizer.param_groups
        for param in group["params"]
        if param.grad is not None
    ]
    return all(bool(torch.isfinite(grad).all()) for grad in grads)


class HalfModel:
    """O2 by hand: an fp16 model with fp32 batch norms, and fp32 masters in the optimizer."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.model = model
        for module in model.modules():
            if not (isinstance(module, _BatchNorm) and module.affine):
                self._halve(module)
        self.pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
        for group in optimizer.param_groups:
            for index, param in enumerate(group["params"]):
                if param.dtype == torch.float16 and param.requires_grad:
                    master = param.detach().float().requires_grad_(True)
                    group["params"][index] = master
                    self.pairs.append((param, master))

    @staticmethod
    def _halve(module: nn.Module) -> None:
        for tensor in [*module.parameters(recurse=False), *module.buffers(recurse=False)]:
            if tensor.is_floating_point():
                tensor.data = tensor.data.half()

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        """The fp32 output for fp32 images."""
        output: torch.Tensor = self.model(images.half())
        return output.float()

    def collect(self) -> None:
        """Add the fp16 gradients to the masters'."""
        for half, master in self.pairs:
            if half.grad is None:
                continue
            grad = half.grad.float()
            master.grad = grad if master.grad is None else master.grad.add_(grad)
            half.grad = None

    def push(self) -> None:
        """Copy the masters to the model."""
        with torch.no_grad():
            for half, master in self.pairs:
                half.copy_(master)
