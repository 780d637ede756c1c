"""Programs in which a finding would be false, or of no help: nothing is said of them."""

from __future__ import annotations

import pytest

from amp_migrate.engine import migrate
from amp_migrate.plan.model import Status
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

HEAD = """import torch
from apex import amp
"""
MADE = """model = torch.nn.Linear(3, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
LOOP = """for x in torch.randn(5, 4, 3).cuda():
    loss = model(x).sum()
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
INITIALIZED = 'model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n'
AT_LEVEL = INITIALIZED.replace('"O1"', "args.level")
BY_FLAG = INITIALIZED.replace('"O1"', "level")
FLOW_MADE = MADE.replace("torch.nn.Linear(3, 2)", "Flow()")
FLOW_LOOP = LOOP.replace("model(x).sum()", "-model.log_prob(x).mean()")
EVALUATE = """import torch


def evaluate(model, batches):
    model.eval()
    with torch.no_grad():
        return [model(x) for x in batches]
"""
PLAIN = """import torch
from common import evaluate


def main():
    model = torch.nn.Linear(3, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(5, 4, 3).cuda():
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    evaluate(model, torch.randn(5, 4, 3).cuda())


main()
"""
LEVELS = """import argparse
import torch
from apex import amp

parser = argparse.ArgumentParser()
parser.add_argument("--level", choices=["O0", "O1"], default="O1")
args = parser.parse_args()
"""
PAIR = """
class Pair(torch.nn.Module):
    def __init__(self, fp16):
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 2)
        self.optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        self.cuda()
        if fp16:
            nets = [self.first, self.second]
            (self.first, self.second), self.optimizer = amp.initialize(nets, self.optimizer)


def through(net, parts):
    return [net(part) for part in parts]


class Trainer:
    def __init__(self, fp16):
        self.pair = Pair(fp16)

    def train(self, x):
        loss = self.pair.second(through(self.pair.first, [x])[0]).sum()
        self.pair.optimizer.zero_grad()
        with amp.scale_loss(loss, self.pair.optimizer) as scaled_loss:
            scaled_loss.backward()
        self.pair.optimizer.step()
        self.evaluate(x)

    @torch.no_grad()
    def evaluate(self, x):
        self.pair.eval()

        def draw(first, second, z):
            return through(second, through(first, z))

        print(self.show(self.pair.first, self.pair.second, x).sum())

    @torch.no_grad()
    def show(self, first, second, z):
        return second(first(z))


trainer = Trainer(True)
trainer.train(torch.randn(5, 3).cuda())
"""
SHRINKING = """import torch


class Shrinking:
    def __init__(self, images):
        self.images = images
        self.pool = torch.nn.AvgPool2d(2)

    def __getitem__(self, i):
        return shrink(self.pool, self.images[i])


def shrink(pool, images):
    assert images.max() > 1
    return pool(images) // 1
"""

SILENT = {
    "levels among choices": (
        "AMP102",
        {"a.py": f"{LEVELS}{MADE}{AT_LEVEL}{LOOP}"},
    ),
    "levels by a flag": (
        "AMP102",
        {
            "a.py": f'{HEAD}import sys\n{MADE}level = "O1" if "--amp" in sys.argv else "O0"\n'
            f"{BY_FLAG}{LOOP}"
        },
    ),
    "an import with nothing left of it": (
        "AMP101",
        {
            "a.py": "import torch\ntry:\n    from apex import amp\n    from apex.parallel import convert_syncbn_model\n"
            f"except ImportError:\n    amp = None\n{MADE}{INITIALIZED}model = convert_syncbn_model(model)\n{LOOP}"
        },
    ),
    "a program beside that never had Apex": (
        "AMP107",
        {
            "train.py": f"{HEAD}from common import evaluate\n{MADE}{INITIALIZED}{LOOP}evaluate(model, [torch.randn(4, 3).cuda()])\n",
            "common.py": EVALUATE,
            "plain.py": PLAIN,
        },
    ),
    "a function inside another one that nothing calls": ("AMP107", {"a.py": f"{HEAD}{PAIR}"}),
    "layers and tensors that no cast changes": (
        "AMP107",
        {
            "data.py": SHRINKING,
            "a.py": f"{HEAD}from data import Shrinking\nimport sys\n{MADE}"
            f'if "--amp" in sys.argv:\n    {INITIALIZED}data = Shrinking(torch.randn(5, 1, 4, 4).cuda())\n'
            f"print(data[0])\n{LOOP}",
        },
    ),
    "a division in a helper": (
        "AMP202",
        {
            "a.py": f"""{HEAD}

def part(loss, k):
    return loss / k


def main(model, optimizer, loader, k):
    {INITIALIZED}    for i, x in enumerate(loader):
        loss = part(model(x).sum(), k)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        if (i + 1) % k == 0:
            optimizer.step()
            optimizer.zero_grad()
"""
        },
    ),
    "a counter that never restarts": (
        "AMP203",
        {
            "a.py": f"""{HEAD}

def main(model, optimizer, loader, k, epochs):
    {INITIALIZED}    seen = 0
    for epoch in range(epochs):
        for x in loader:
            loss = model(x).sum() / k
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            seen += 1
            if seen % k == 0:
                optimizer.step()
                optimizer.zero_grad()
"""
        },
    ),
    "a known number of turns that fills its windows": (
        "AMP203",
        {
            "a.py": f"""{HEAD}
STEPS = 24
EVERY = 3


def main(model, optimizer, x):
    {INITIALIZED}    for i in range(STEPS):
        loss = model(x).sum() / EVERY
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        if (i + 1) % EVERY != 0:
            continue
        optimizer.step()
        optimizer.zero_grad()
"""
        },
    ),
    "turns that are a multiple of their windows": (
        "AMP203",
        {
            "a.py": f"""{HEAD}

def main(model, optimizer, x, k):
    {INITIALIZED}    for i in range(24 * k):
        loss = model(x).sum() / k
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        if (i + 1) % k == 0:
            optimizer.step()
            optimizer.zero_grad()
"""
        },
    ),
    "a plain backward where AMP is off": (
        "AMP206",
        {
            "a.py": f"""{HEAD}

def main(model, optimizer, loader, half):
    if half:
        {INITIALIZED}    for x in loader:
        loss = model(x).sum()
        if not half:
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            continue
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""
        },
    ),
    "a test for a type": (
        "AMP301",
        {
            "a.py": """import torch
from apex.parallel import DistributedDataParallel as DDP


def unwrapped(model):
    kinds = (DDP, torch.nn.DataParallel)
    return model.module if isinstance(model, kinds) else model
"""
        },
    ),
    "a forward in a method named like bookkeeping": (
        "AMP904",
        {
            "a.py": f"""{HEAD}

class Flow(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(3, 3)])

    def log_prob(self, x):
        for layer in self.layers:
            x = layer(x)
        return x.sum(1)


{FLOW_MADE}{INITIALIZED}{FLOW_LOOP}"""
        },
    ),
    "no optimizer at all": (
        "AMP905",
        {
            "a.py": f"""{HEAD}
model = amp.initialize(torch.nn.Linear(3, 2).cuda(), opt_level="O1")
x = torch.randn(4, 3).cuda().requires_grad_()
model(x).sum().backward()
print(x.grad)
"""
        },
    ),
    "a choice by whether there is a scaler": (
        "AMP912",
        {
            "a.py": f"""{HEAD}

def main(model, optimizer, loader):
    scaler = None
    try:
        {INITIALIZED}    except Exception:
        scaler = torch.cuda.amp.GradScaler()
    for x in loader:
        with torch.cuda.amp.autocast(enabled=scaler is not None):
            loss = model(x).sum()
        if scaler is None:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        optimizer.zero_grad()
"""
        },
    ),
}


@pytest.mark.parametrize("name", SILENT)
def test_nothing_false_is_said(name: str) -> None:
    code, files = SILENT[name]
    sources = [Source.from_bytes(path, text.encode()) for path, text in files.items()]
    result = migrate(sources, Settings(api="torch.cuda.amp"))
    findings = [f for outcome in result.outcomes for f in outcome.findings]
    said = [f for f in findings if f.status not in (Status.MIGRATED, Status.ROUTINE)]
    assert not [f.message for f in said if f.code == code or f.status is Status.LEFT]
    assert any(o.after not in (None, o.before.text) for o in result.outcomes)


@pytest.mark.parametrize(
    ("held", "cleared"),
    [
        ("clear = optimizer.zero_grad", "clear()"),
        ("resets = [optimizer.zero_grad]", "[reset() for reset in resets]"),
        ("resets = {'all': model.zero_grad}", "resets['all']()"),
    ],
)
def test_no_zero_grad_is_missing_where_something_holds_the_method(held: str, cleared: str) -> None:
    """What calls it is not always seen, so gradients are not said to pile up."""
    loop = LOOP.replace("optimizer.zero_grad()", cleared)
    text = f"{HEAD}{MADE}{INITIALIZED}{held}\n{loop}"
    source = Source.from_bytes("train.py", text.encode())
    codes = {f.code for f in migrate([source], Settings()).plan.findings()}
    assert codes
    assert "AMP204" not in codes
