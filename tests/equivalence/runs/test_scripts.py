"""Scripts as people write them are recorded without a change: launched, not imported."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from amp_migrate.equivalence.capture.config import CaptureConfig
from amp_migrate.equivalence.runs.launch import Launch, run
from amp_migrate.equivalence.runs.records import Run
from equivalence.forked import forked_launches  # noqa: F401

STEPS = 4

HEAD = """
import torch
from torch import nn
torch.manual_seed(0)
device = torch.device("cuda:0")
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss().to(device)

def step():
    x = torch.randn(4, 8, device=device)
    y = torch.randint(0, 2, (4,)).cuda(non_blocking=True)
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    torch.cuda.synchronize()
"""

SCRIPTS = {
    "hard-coded CUDA in an infinite loop": HEAD
    + """
assert torch.cuda.is_available() and torch.cuda.device_count() == 1
torch.backends.cudnn.benchmark = True
model = nn.DataParallel(model)
start = torch.cuda.Event(enable_timing=True)
while True:
    step()
""",
    "bare except around the step": HEAD
    + """
while True:
    try:
        step()
    except:
        pass
""",
    "except Exception around the step": HEAD
    + """
for _ in range(100):
    try:
        step()
    except Exception as error:
        print(error)
""",
    "DataLoader with two workers": """
import torch
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,)))
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(10):
    for x, y in DataLoader(data, batch_size=8, shuffle=True, num_workers=2, pin_memory=True):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
        optimizer.step()
""",
    "arguments with data paths": HEAD
    + """
import argparse, os
parser = argparse.ArgumentParser()
parser.add_argument("--data", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "data"))
args = parser.parse_args()
os.makedirs(args.data, exist_ok=True)
torch.save(model.state_dict(), os.path.join(args.data, "start.pt"))
model.load_state_dict(torch.load(os.path.join(args.data, "start.pt"), map_location=device))
for _ in range(100):
    step()
""",
    "spellings of CUDA": """
import torch
from torch import nn
torch.cuda.set_device(0)
torch.cuda.manual_seed_all(3)
print(torch.cuda.get_device_name(0), torch.cuda.get_device_properties(0).total_memory)
device = torch.device("cuda", 0)
model = nn.DataParallel(nn.Linear(8, 2).to(0), device_ids=[0, 1]).cuda(0).to(memory_format=torch.contiguous_format)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    ahead = torch.zeros(3, device="cuda:0")
torch.cuda.current_stream().wait_stream(stream)
ahead.record_stream(torch.cuda.current_stream())
start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
torch.save(model.state_dict(), "start.pt")
for place in ("cuda:0", {"cuda:0": "cuda:0"}, lambda storage, name: storage.cuda(0)):
    model.load_state_dict(torch.load("start.pt", map_location=place))
assert torch.cuda.FloatTensor(3).zero_().dtype == torch.rand(3).type(torch.cuda.FloatTensor).dtype
while True:
    start.record()
    torch.cuda.nvtx.range_push("step")
    x = torch.randn(4, 8).cuda(0, non_blocking=True)
    y = torch.randint(2, (4,)).to(device=device, dtype=torch.long, non_blocking=True)
    with torch.cuda.amp.autocast():
        loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.cuda.nvtx.range_pop()
    end.record()
    torch.cuda.synchronize(device)
    print(start.elapsed_time(end), torch.cuda.max_memory_allocated() / 2**20, torch.cuda.memory_summary())
""",
    "an optimizer class of its own, wrapped by a plain class": """
import torch

class Signs(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.data.add_(p.grad.sign(), alpha=-group["lr"])

class Lookahead:
    def __init__(self, inner):
        self.inner = inner
        self.slow = [p.detach().clone() for p in inner.param_groups[0]["params"]]

    def step(self):
        self.inner.step()
        for p, slow in zip(self.inner.param_groups[0]["params"], self.slow):
            p.data.copy_(slow.add_(p.data - slow, alpha=0.5))

model = torch.nn.Linear(4, 2).cuda()
optimizer = Lookahead(Signs(model.parameters(), lr=0.1))
for _ in range(100):
    model.zero_grad()
    model(torch.randn(3, 4).cuda()).pow(2).mean().backward()
    optimizer.step()
""",
    "a compiled model": """
import torch
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2)).cuda()
model = torch.compile(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
for _ in range(100):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(torch.randn(4, 8).cuda()).float().pow(2).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
""",
    "LBFGS with a closure": """
import torch
model = torch.nn.Linear(8, 1)
x, y = torch.randn(32, 8), torch.randn(32, 1)
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=5)
for _ in range(100):
    def closure():
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        return loss
    optimizer.step(closure)
""",
    "two optimizers in turn": """
import torch
g, d = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)
opt_g = torch.optim.Adam(g.parameters())
opt_d = torch.optim.Adam(d.parameters())
for _ in range(100):
    z = torch.randn(4, 4)
    opt_d.zero_grad(); d(g(z).detach()).mean().backward(); opt_d.step()
    opt_g.zero_grad(); (-d(g(z)).mean()).backward(); opt_g.step()
""",
    "fused AdamW and a scaler": """
import torch
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
scaler = torch.amp.GradScaler("cuda")
for _ in range(100):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(torch.randn(4, 8).cuda()).float().pow(2).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
""",
}


LOOKED_INTO = (
    "LBFGS with a closure",
    "fused AdamW and a scaler",
    "two optimizers in turn",
    "a compiled model",
)
LAUNCHED = "hard-coded CUDA in an infinite loop", "DataLoader with two workers"


def launched(folder: Path, source: str, *command: str, **changes: object) -> Run:
    """Record `source` as train.py in `folder`, started by `command`."""
    (folder / "train.py").write_text(textwrap.dedent(source), encoding="utf-8")
    config = CaptureConfig("", steps=STEPS, **changes)  # type: ignore[arg-type]
    launch = Launch(command or ("python", "train.py"), folder, timeout=120)
    return run(launch, "test", config, lambda label, done, asked: None)


@pytest.mark.parametrize("name", LAUNCHED)
def test_script_is_launched_and_stopped(tmp_path: Path, name: str) -> None:
    """A script yields the asked iterations and ends, though it would run for long, and its workers end with it."""
    done = launched(tmp_path, SCRIPTS[name])
    assert (done.failure, [step.index for step in done.steps]) == ("", [1, 2, 3, 4])


@pytest.mark.usefixtures("forked_launches")
@pytest.mark.parametrize("name", [n for n in SCRIPTS if n not in (*LAUNCHED, *LOOKED_INTO)])
def test_script_is_recorded_and_stopped(tmp_path: Path, name: str) -> None:
    """Every script yields the asked iterations and ends, though most would run for long."""
    done = launched(tmp_path, SCRIPTS[name])
    assert (done.failure, [step.index for step in done.steps]) == ("", [1, 2, 3, 4])


@pytest.mark.usefixtures("forked_launches")
def test_closure_backwards_belong_to_their_step(tmp_path: Path) -> None:
    """Each LBFGS step holds the several backwards of its closure."""
    done = launched(tmp_path, SCRIPTS["LBFGS with a closure"])
    assert [len(step.attempts) for step in done.steps] == [1, 1, 1, 1]
    assert len(done.steps[0].losses) > 1


@pytest.mark.usefixtures("forked_launches")
def test_fused_optimizer_is_seen_unscaled_and_skipping(tmp_path: Path) -> None:
    """A fused kernel unscales and skips by itself; the record says so."""
    done = launched(tmp_path, SCRIPTS["fused AdamW and a scaler"], inject=(2,))
    assert [step.skipped for step in done.steps] == [False, True, False, False]
    assert done.steps[0].grad_norm is not None and done.steps[0].grad_norm < 100


def test_compiled_model_is_noted(tmp_path: Path) -> None:
    """The compiler is off in a recorded run, so dtypes are counted as ever, and the record says so."""
    done = launched(tmp_path, SCRIPTS["a compiled model"], inject=(2,), census=True)
    assert done.notes["compiles"] is True
    assert [step.skipped for step in done.steps] == [False, True, False, False]
    assert done.processes[0].census[("addmm", "float16", "forward")] == 4


def test_scripted_functions_are_noted(tmp_path: Path) -> None:
    """They cast by rules of their own; names in what is compiled are found as before."""
    source = """
    import torch
    class Pair:
        def __init__(self, a: torch.Tensor) -> None:
            self.a = a
    Pair = torch.jit.script(Pair)

    @torch.jit.script
    def gated(x, y):
        return torch.tanh(x) * Pair(y).a

    model = torch.nn.Linear(3, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(4):
        optimizer.zero_grad()
        out = model(torch.randn(2, 3))
        gated(out, out).sum().backward()
        optimizer.step()
    """
    elsewhere = launched(tmp_path, source)
    launch = Launch(("python", "train.py"), tmp_path, (tmp_path / "original",), timeout=120)
    config = CaptureConfig("", steps=STEPS)
    done = run(launch, "test", config, lambda label, done, asked: None)
    assert (done.failure, len(done.steps), done.notes.get("scripts")) == ("", 4, True)
    assert "scripts" not in elsewhere.notes  # train.py is in no project here, as a library's file


def test_spawned_processes_are_recorded_by_rank(tmp_path: Path) -> None:
    """mp.spawn: each child writes its own record."""
    source = """
    import os, torch, torch.multiprocessing as mp, torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    def worker(rank):
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29631")
        dist.init_process_group("nccl", rank=rank, world_size=2)
        torch.cuda.set_device(rank)
        torch.manual_seed(0)
        model = DistributedDataParallel(torch.nn.Linear(4, 1).cuda(rank), device_ids=[rank])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(50):
            optimizer.zero_grad()
            model(torch.full((2, 4), float(rank + step)).cuda(rank)).pow(2).mean().backward()
            optimizer.step()

    if __name__ == "__main__":
        mp.spawn(worker, nprocs=2)
    """
    done = launched(tmp_path, source)
    assert [process.rank for process in done.processes] == [0, 1]
    first, second = (process.steps for process in done.processes)
    assert [step.attempts[0].params for step in first] == [s.attempts[0].params for s in second]
    assert first[0].losses != second[0].losses


def test_torchrun_records_each_rank(tmp_path: Path) -> None:
    """Two gloo ranks under torchrun leave two records."""
    source = """
    import torch, torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    dist.init_process_group("nccl")
    model = DistributedDataParallel(torch.nn.Linear(4, 1).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(50):
        optimizer.zero_grad()
        model(torch.full((2, 4), float(dist.get_rank() + step)).cuda()).pow(2).mean().backward()
        optimizer.step()
    """
    command = ("torchrun", "--nproc-per-node", "2", "--master-port", "29632", "train.py")
    done = launched(tmp_path, source, *command)
    assert [(process.rank, len(process.steps)) for process in done.processes] == [(0, 4), (1, 4)]


def test_shell_script_and_module_commands(tmp_path: Path) -> None:
    """A shell script and ``python -m`` are followed into the Python they start."""
    (tmp_path / "run.sh").write_text("set -e\npython -m train\n", encoding="utf-8")
    assert len(launched(tmp_path, SCRIPTS["two optimizers in turn"], "bash", "run.sh").steps) == 4


@pytest.mark.parametrize("name", ["python", "python3"])
def test_a_script_that_replaces_its_import_paths_is_followed(tmp_path: Path, name: str) -> None:
    """``PYTHONPATH=src python train.py`` in a script or behind ``env`` leaves the recording in place."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "config.py").write_text("STEPS = 4\n", encoding="utf-8")
    (tmp_path / "run.sh").write_text(f"PYTHONPATH=src {name} train.py\n", encoding="utf-8")
    source = "from config import STEPS\n" + SCRIPTS["two optimizers in turn"]

    assert len(launched(tmp_path, source, "bash", "run.sh").steps) == STEPS
    by_env = ("env", "PYTHONPATH=src", name, "train.py")
    assert len(launched(tmp_path, source, *by_env).steps) == STEPS


def test_hidden_sitecustomize_still_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment's own sitecustomize is not lost."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import builtins; builtins.HERE = 5\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    source = SCRIPTS["two optimizers in turn"].replace(
        "import torch\n", "assert HERE == 5\nimport torch\n"
    )
    assert len(launched(tmp_path, source).steps) == 4


@pytest.mark.usefixtures("forked_launches")
def test_shims_workers_and_synthetic_data(tmp_path: Path) -> None:
    """Missing data sets are stood in for, by hand and built in, and workers can be switched off."""
    (tmp_path / "stand.py").write_text("class Data(list):\n    pass\n", encoding="utf-8")
    package = tmp_path / "torchvision" / "datasets"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("")
    (package / "__init__.py").write_text("from torchvision.datasets.cifar import CIFAR10\n")
    (package / "cifar.py").write_text("class CIFAR10:\n    def __init__(self): raise OSError\n")
    source = """
    import numpy as np, torch, torchvision.datasets
    from mydata import Private
    from torch.utils.data import DataLoader
    from torchvision.datasets.cifar import CIFAR10
    assert CIFAR10 is torchvision.datasets.CIFAR10
    assert isinstance(Private([1]), list)
    data = torchvision.datasets.CIFAR10("missing", train=True, download=True)
    data.transform = lambda image: torch.from_numpy(np.array(image)).float().mean((0, 1))
    loader = DataLoader(data, batch_size=16, num_workers=7, prefetch_factor=2)
    assert loader.num_workers == 0
    model = torch.nn.Linear(3, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    """
    shim = f"mydata:Private={tmp_path / 'stand.py'}:Data"
    done = launched(tmp_path, source, workers=0, synthetic_data=True, shims=(shim,))
    assert (done.failure, len(done.steps)) == ("", 4)


@pytest.mark.usefixtures("forked_launches")
def test_stubs_do_nothing(tmp_path: Path) -> None:
    """A package that is not there, and one that is, whatever the program does with their names."""
    source = """
    import nowhere.deep.place as deep
    from nowhere import Writer, log
    from nowhere.hooks import Hook
    from xml import dom
    import torch
    from torch.utils.tensorboard import SummaryWriter

    SummaryWriter("runs", comment="x").add_scalar("loss", torch.ones(()), global_step=1)

    class Own(Writer, torch.nn.Module):
        def __init__(self, folder):
            super().__init__(folder, flush=3)
            self.folder = folder

    @deep.traced
    @log.timed(every=3)
    def rate():
        return 1e-3

    writer, plain = Own("runs"), Writer("runs")
    assert writer.folder == "runs" and isinstance(plain, Writer) and not isinstance(3, Hook)
    writer.add_scalar("x", 1.0).close()
    plain["a"] = 3
    with plain.at("b") as entered, log:
        entered.write(list(plain), len(log), plain["c"])
    assert not log.active and not plain.active and not hasattr(plain, "__array__")
    assert not list(dom.items) and Hook is not Writer
    model = torch.nn.Linear(3, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate())
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.randn(2, 3)).sum().backward()
        optimizer.step()
        writer.add_scalar("loss", 1.0)
    """
    done = launched(tmp_path, source, stubs=("nowhere", "xml", "torch.utils.tensorboard"))
    assert (done.failure, len(done.steps)) == ("", 4)


@pytest.mark.usefixtures("forked_launches")
def test_shims_are_there_before_torch_is(tmp_path: Path) -> None:
    """A program may import what is stood in for before torch, and the stand-in may use what it replaces."""
    stand = tmp_path / "stand.py"
    stand.write_text(
        "import json\nold = json.loads\ndef loads(text): return old(text or '{}')\nclass Log: pass\n",
        encoding="utf-8",
    )
    source = """
    from nowhere.logs import Log
    import json
    assert json.loads("") == {} and Log()
    import torch
    model = torch.nn.Linear(3, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.randn(2, 3)).sum().backward()
        optimizer.step()
    """
    shims = (f"nowhere.logs:Log={stand}:Log", f"json:loads={stand}:loads")
    done = launched(tmp_path, source, shims=shims)
    assert (done.failure, len(done.steps)) == ("", 4)


def test_failure_is_named(tmp_path: Path) -> None:
    """A program that raises is reported by its exception, one that is missing by its name."""
    assert launched(tmp_path, "raise ValueError('no such data')").failure.endswith("no such data")
    assert "nonsense" in launched(tmp_path, "", "nonsense-command").failure
