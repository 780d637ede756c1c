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
    """What both run is left, and each finding names a line."""
    files = {"before.py": TRAIN, "engine.py": ENGINE, "legacy_train.py": LEGACY}
    sources = [Source.from_bytes(name, text.encode()) for name, text in files.items()]
    result = migrate(sources, Settings(api="torch.cuda.amp"))
    left = {(f.path, f.code) for f in result.plan.findings() if f.status is Status.LEFT}
    assert {path for path, _ in left} >= {"engine.py", "legacy_train.py"}
    assert all(f.span.line > 0 for f in result.plan.findings())
