"""Files that keep Apex beside a program that would become native."""

from __future__ import annotations

from amp_migrate.engine import migrate
from amp_migrate.plan.model import Status
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

ENGINE = """from apex import amp


def finish(loss, optimizer):
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    optimizer.step()
"""
TRAIN = """import torch
from apex import amp
from torch import nn
from engine import finish

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
pending = None
for _ in range(6):
    if pending is not None:
        finish(pending, optimizer)
    x, y = torch.randn(6, 4), torch.randint(0, 3, (6,))
    output = model(x)
    pending = nn.functional.cross_entropy(output, y)
"""
HOOKED = TRAIN.replace("pending = None", "mixed_hooks.register(amp)\npending = None")
LEGACY = HOOKED.replace("import finish", "import finish\nimport mixed_hooks")


def test_a_script_whose_whole_code_would_be_native_beside_one_that_stays() -> None:
    """What both run goes, as the one that stays lacks the GradScaler there, and each finding names a line."""
    files = {"before.py": TRAIN, "engine.py": ENGINE, "legacy_train.py": LEGACY}
    sources = [Source.from_bytes(name, text.encode()) for name, text in files.items()]
    result = migrate(sources, Settings(api="torch.cuda.amp"))
    left = {(f.path, f.code) for f in result.plan.findings() if f.status is Status.LEFT}
    assert {path for path, _ in left} == {"legacy_train.py"}
    assert all(f.span.line > 0 for f in result.plan.findings())


def test_what_keeps_a_decorator_is_told_of_the_program_that_runs_it() -> None:
    """Of two programs in folders of their own that stay, the one that imports the file."""
    files = {
        "alone/train.py": LEGACY,
        "alone/engine.py": ENGINE,
        "other/train.py": f"{LEGACY}\nfrom kernels import scatter\n",
        "other/engine.py": ENGINE,
        "other/kernels.py": "from apex import amp\n\n\n@amp.half_function\ndef scatter(x):\n    return x\n",
    }
    sources = [Source.from_bytes(name, text.encode()) for name, text in files.items()]
    findings = migrate(sources, Settings(api="torch.cuda.amp")).plan.findings()
    kept = [f for f in findings if f.path == "other/kernels.py" and f.status is Status.LEFT]
    assert kept
    assert all(f.cause is None or f.cause.path.startswith("other/") for f in kept)
    assert any(f.cause is not None for f in kept)
