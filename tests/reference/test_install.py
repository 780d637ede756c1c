"""Putting the modules in place and taking them away without a trace."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.nn.modules import rnn

from amp_migrate.equivalence import reference
from reference.support import batch, linear, mlp, sgd

_PATCHED = (torch, F, torch.Tensor, rnn, rnn.RNNBase)


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    reference.uninstall()


def _attributes() -> list[dict[str, Any]]:
    return [dict(vars(owner)) for owner in _PATCHED]


def test_importing_the_package_does_not_import_torch() -> None:
    """So that it can be imported before the program imports torch."""
    code = "import sys, amp_migrate.equivalence.reference; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("apex.amp", "initialize"),
        ("apex.amp.scaler", "LossScaler"),
        ("apex.amp.handle", "scale_loss"),
        ("apex.amp._amp_state", "master_params"),
        ("apex.amp.opt", "OptimWrapper"),
        ("apex.parallel", "DistributedDataParallel"),
        ("apex.parallel", "convert_syncbn_model"),
        ("apex.parallel.LARC", "LARC"),
        ("apex.parallel.distributed", "Reducer"),
        ("apex.optimizers", "FusedAdam"),
        ("apex.optimizers.fused_lamb", "FusedLAMB"),
        ("apex.normalization", "FusedRMSNorm"),
        ("apex.normalization.fused_layer_norm", "fused_layer_norm_affine"),
        ("apex.fp16_utils", "FP16_Optimizer"),
        ("apex.fp16_utils.loss_scaler", "DynamicLossScaler"),
        ("apex.multi_tensor_apply", "multi_tensor_applier"),
        ("apex.contrib.xentropy", "SoftmaxCrossEntropyLoss"),
        ("apex.contrib.clip_grad", "clip_grad_norm_"),
    ],
)
def test_names_of_apex_import(module: str, name: str) -> None:
    """The modules real programs import from."""
    reference.install("cpu")
    assert name in vars(importlib.import_module(module))


def test_submodules_are_attributes() -> None:
    """`import apex` is enough for `apex.amp` and `apex.parallel`."""
    reference.install("cpu")
    apex = importlib.import_module("apex")
    assert apex.amp is sys.modules["apex.amp"]
    assert apex.parallel.LARC is sys.modules["apex.parallel.LARC"]
    assert importlib.util.find_spec("apex") is not None


def test_what_is_not_offered_does_not_import() -> None:
    """A module that Apex does not have, or this package does not offer."""
    reference.install("cpu")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("apex.RNN")


def test_uninstall_removes_modules() -> None:
    """Nothing of apex stays in sys.modules."""
    reference.install("cpu")
    reference.uninstall()
    assert not [name for name in sys.modules if name.split(".")[0] == "apex"]


def test_unknown_device_is_refused() -> None:
    """Only "auto", "cpu" and "cuda"."""
    with pytest.raises(ValueError, match="tpu"):
        reference.install("tpu")


@pytest.mark.parametrize("leave", [reference.reset, reference.uninstall])
def test_patches_leave_no_trace(leave: Any) -> None:
    """After O1 every attribute of torch is what it was, inherited ones included."""
    before = _attributes()
    reference.install("cpu", quiet=True)
    amp = sys.modules["apex.amp"]
    for _ in range(2):
        model = linear()
        amp.initialize(model, sgd(model), opt_level="O1")
    assert _attributes() != before
    leave()
    assert _attributes() == before


def test_reset_forgets_the_state(amp: Any) -> None:
    """As in a new process, with the same modules."""
    model = linear()
    amp.initialize(model, sgd(model), opt_level="O1")
    state = amp._amp_state
    reference.reset()
    assert amp._amp_state is state
    assert not hasattr(state, "opt_properties")
    assert not hasattr(state, "loss_scalers")
    assert sys.modules["apex.amp"] is amp
    with (
        pytest.raises(RuntimeError, match="not been initialized"),
        amp.scale_loss(torch.ones(1), sgd(model)),
    ):
        pass


def test_on_cuda_cpu_tensors_are_not_cast() -> None:
    """Apex casts what lives on the GPU; with device "cuda" a CPU tensor stays fp32."""
    reference.install("cuda", quiet=True)
    amp = sys.modules["apex.amp"]
    amp._amp_state.allow_incoming_model_not_fp32 = True
    model = linear()
    amp.initialize(model, opt_level="O1")
    assert model(torch.ones(1, 2)).dtype == torch.float32


def test_on_cuda_a_cpu_model_is_refused() -> None:
    """Parameters must be on the GPU before initialize."""
    reference.install("cuda", quiet=True)
    with pytest.raises(RuntimeError, match=r"expected torch\.cuda\.FloatTensor"):
        sys.modules["apex.amp"].initialize(linear(), opt_level="O1")


@pytest.mark.parametrize("level", ["O1", "O2", "O3"])
def test_without_casts_everything_is_fp32(level: str) -> None:
    """`casts=False` keeps the loss scale and drops the precision changes."""
    reference.install("cpu", casts=False, quiet=True)
    amp = sys.modules["apex.amp"]
    model = mlp()
    optimizer = sgd(model)
    amp.initialize(model, optimizer, opt_level=level, loss_scale="dynamic")
    output = model(batch(0)[0])
    with amp.disable_casts() if level == "O1" else torch.enable_grad():
        assert output.dtype == torch.float32
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    with amp.scale_loss(output.sum(), optimizer) as scaled:
        assert scaled.item() == output.sum().item() * 2.0**16
        scaled.backward()


def test_messages(capsys: pytest.CaptureFixture[str]) -> None:
    """Initialize and a skipped step talk; verbosity 0 and `quiet` silence them."""
    for quiet, verbosity, talks in ((False, 1, True), (False, 0, False), (True, 1, False)):
        reference.install("cpu", quiet=quiet)
        amp = sys.modules["apex.amp"]
        model = linear()
        optimizer = sgd(model)
        amp.initialize(model, optimizer, opt_level="O0", loss_scale="dynamic", verbosity=verbosity)
        with amp.scale_loss(model(torch.full((1, 2), float("inf"))).sum(), optimizer) as scaled:
            scaled.backward()
        optimizer.step()
        said = capsys.readouterr().out
        assert ("Selected optimization level O0" in said) is talks
        skipped = "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0"
        assert (skipped in said) is talks
        reference.uninstall()
