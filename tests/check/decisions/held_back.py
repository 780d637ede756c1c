"""Functions whose arguments Apex casts, in a file that stays with it: a program that leaves Apex would run them uncast."""

from __future__ import annotations

from dataclasses import replace

from check.trainings.planted import Training

_SHARED = """\
import torch
from apex import amp

{casting}

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 4)

    def forward(self, x):
        return scores(self.body(x))
"""
_DEFINED = "def scores(x):\n    return x.exp().sum(-1, keepdim=True)\n"
_CASTING = {
    "a decorator": f"@amp.float_function\n{_DEFINED}",
    "a registration": f"{_DEFINED}\namp.register_float_function(torch, 'exp')\n",
    "a wrapped kernel": "import kernels\n\nscores = amp.float_function(kernels.scores)\n",
}
_BEFORE = """\
import torch
import torch.nn.functional as F
from apex import amp
from shared import Net

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net, opt = amp.initialize(net, opt, opt_level="O1")
for x, y in [(torch.randn(3, 4), torch.randn(3, 1))]:
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    with amp.scale_loss(loss, opt) as scaled_loss:
        scaled_loss.backward()
    opt.step()
"""
_AFTER = """\
import torch
import torch.nn.functional as F
from shared import Net

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler()
for x, y in [(torch.randn(3, 4), torch.randn(3, 1))]:
    with torch.cuda.amp.autocast():
        loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
"""


def _training(name: str, casting: str) -> Training:
    shared = _SHARED.format(casting=casting)
    line = next(n for n, text in enumerate(shared.splitlines(), 1) if "amp." in text)
    return Training(
        f"{name} stays with Apex, and a rule says so",
        {"shared.py": shared, "one.py": _BEFORE},
        {"one.py": _AFTER},
        {},
        (("AMP113", "shared.py", line),),
    )


HELD_BACK = [_training(name, casting) for name, casting in _CASTING.items()]
HELD_BACK_UNTOLD = [replace(training, claims=()) for training in HELD_BACK]
