"""Parts of the recording by themselves: digests, the choice of Apex, the progress line."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from amp_migrate.equivalence import progress
from amp_migrate.equivalence.capture.config import CaptureConfig
from amp_migrate.equivalence.capture.events import digest
from amp_migrate.equivalence.runs.launch import Launch, run
from equivalence.forked import record

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64, torch.bool)


@pytest.mark.parametrize("dtype", DTYPES)
def test_digest_tells_bits_apart(dtype: torch.dtype) -> None:
    """Equal bits have equal digests whatever their layout; another value or order has another."""
    tensor = (torch.arange(12).reshape(3, 4) % 5).to(dtype)
    turned = tensor.t().contiguous().t()
    swapped = tensor.flip(1)
    for of in (lambda t: digest.digest([t]), lambda t: digest._on_device(t.contiguous().view(-1))):
        assert of(tensor) == of(turned)
        assert of(tensor) != of(swapped)


def test_digest_of_complex_and_empty_tensors() -> None:
    """Complex numbers count with both parts, and nothing is something."""
    one = torch.complex(torch.ones(2), torch.zeros(2))
    assert digest.digest([one]) != digest.digest([one.conj().resolve_conj() + 1j])
    assert digest.digest([torch.zeros(0)]) == digest.digest([])


INSTALLED = {
    "apex/__init__.py": "",
    "apex/amp/__init__.py": """
        import contextlib
        from types import SimpleNamespace
        from . import utils
        _amp_state = SimpleNamespace(opt_properties=SimpleNamespace(enabled=False), loss_scalers=[])
        registered = []

        def initialize(model, optimizer, enabled=True, opt_level="O1", loss_scale=None, num_losses=1):
            return model, optimizer

        @contextlib.contextmanager
        def scale_loss(loss, optimizers, loss_id=0):
            yield loss

        def register_half_function(module, name):
            registered.append(name)

        register_promote_function = register_half_function
    """,
    "apex/amp/_initialize.py": "def check_params_fp32(models):\n    raise RuntimeError('not CUDA')\n",
    "apex/amp/utils.py": """
        def cached_cast(cast_fn, x, cache):
            return x.next_functions[1][0]

        maybe_half = maybe_float = None
    """,
}
PROGRAM = """
    import torch
    from types import SimpleNamespace
    from apex import amp
    from apex.amp import _initialize, utils
    model = torch.nn.Linear(2, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer)
    assert amp.registered == ["prelu", "bilinear"]
    assert utils.cached_cast(None, SimpleNamespace(next_functions=[["weight"]]), {}) == "weight"
    _initialize.check_params_fp32([model])
    while True:
        optimizer.zero_grad()
        with amp.scale_loss(model(torch.ones(1, 2).cuda()).sum(), optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize("asked", ["auto", "reference"])
def test_installed_apex_is_used_and_repaired(
    asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An apex that has amp is taken, repaired in memory and named; the reference on request."""
    for name, text in INSTALLED.items():
        path = tmp_path / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "train.py").write_text(textwrap.dedent(PROGRAM), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    launch = Launch(("python", "train.py"), tmp_path / "project", timeout=60)
    done = run(launch, "test", CaptureConfig("", steps=2, apex=asked), lambda *told: None)
    if asked == "auto":
        assert (done.failure, len(done.steps)) == ("", 2)
        assert done.notes["apex"] == f"installed Apex ({tmp_path / 'site' / 'apex'})"
    else:
        assert done.notes["apex"].startswith("reference Apex")
        assert "ImportError" in done.failure


ACCELERATOR = """
    import apex.amp as amp
    import torch
    device = torch.accelerator.current_accelerator()
    assert device == torch.device("cuda") and torch.accelerator.device_count() == 1
    assert torch.accelerator.current_stream().is_capturing() is False
    model = torch.nn.Linear(2, 1).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer)
    while True:
        optimizer.zero_grad()
        with amp.scale_loss(model(torch.ones(1, 2, device=device)).sum(), optimizer) as scaled:
            scaled.backward()
        optimizer.step()
        torch.accelerator.synchronize()
"""


def test_the_accelerator_answers_as_the_gpu_does(tmp_path: Path) -> None:
    """Where CUDA calls are redirected, `torch.accelerator` is a GPU as well; Apex may be imported above torch."""
    (tmp_path / "train.py").write_text(textwrap.dedent(ACCELERATOR), encoding="utf-8")
    launch = Launch(("python", "train.py"), tmp_path, timeout=60)
    config = CaptureConfig("", steps=2, apex="reference")
    done = run(launch, "test", config, lambda *told: None)
    assert (done.failure, len(done.steps)) == ("", 2)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


HALF_DATA = """
import torch
from torch.nn import functional as F
from apex import amp

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.LayerNorm(4), torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
for _ in range(3):
    features, targets = torch.randn(3, 4).half(), torch.randn(3, 2).half()
    loss = F.mse_loss(model(features), targets) + (features @ model[1].weight.t()).mean()
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("casts", [False, True])
def test_data_in_fp16_meet_weights_in_fp32(casts: bool) -> None:
    """Without the casts that would make one type of both, the operators take the wider one."""
    run = record(HALF_DATA, CaptureConfig("", casts=casts))
    assert len(run.steps) == 3, run.failure


ATTACKED = """
import torch
from apex import amp

model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
for _ in range(3):
    x = torch.randn(3, 4, requires_grad=True)
    loss = model(x).pow(2).mean()
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        gradient = torch.autograd.grad(scaled_loss, x)[0] * loss / scaled_loss
    optimizer.zero_grad()
    with amp.scale_loss(model((x + gradient).detach()).pow(2).mean(), optimizer) as scaled_loss:
        scaled_loss.backward()
    optimizer.step()
"""


def test_a_scaled_loss_without_a_backward_begins_no_iteration() -> None:
    """Gradients of the step before are still there when an attack asks for those of its input."""
    steps = record(ATTACKED, CaptureConfig("", casts=False)).steps
    assert [(step.clean, step.events) for step in steps] == [(True, "BUS")] * 3


def test_progress_is_shown_on_terminals_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a second the line says how far the run is; it goes at the end; a file sees nothing."""
    times: Iterator[float] = iter((0.0, 0.5, 2.0, 0.0, 2.0))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(times))
    terminal, file = Terminal(), io.StringIO()
    meter = progress.Meter(terminal)
    meter.show("before, logic", 0, 24)
    meter.show("before, logic", 1, 24)
    assert terminal.getvalue() == ""
    meter.show("before, logic", 5, 24)
    assert terminal.getvalue() == "\r\x1b[2K  before, logic: step 5/24, 2 s"
    meter.clear()
    assert terminal.getvalue().endswith("\r\x1b[2K")
    silent = progress.Meter(file)
    silent.show("before, logic", 0, 24)
    silent.show("before, logic", 5, 24)
    silent.clear()
    assert file.getvalue() == ""
