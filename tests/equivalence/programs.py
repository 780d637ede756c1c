"""Three small trainings, each as an Apex program and as its correct native migration."""

from __future__ import annotations

MODELS = {
    "mlp": """
body = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 24), nn.ReLU())
head = nn.Linear(24, 4)
shape = (8, 16)
""",
    "cnn": """
body = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
    nn.Conv2d(8, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(),
)
head = nn.Linear(8, 4)
shape = (8, 3, 8, 8)
""",
    "transformer": """
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        scores = F.softmax(torch.bmm(q, k.transpose(1, 2)) / 4.0, dim=-1)
        return x + self.drop(self.out(torch.bmm(scores, v)))


class Mean(nn.Module):
    def forward(self, x):
        return x.mean(1)


body = nn.Sequential(Block(16), Block(16), Mean())
head = nn.Linear(16, 4)
shape = (4, 6, 16)
""",
}

_SETUP = """
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(1)
{model}
body.cuda()
head.cuda()
opt_body = torch.optim.SGD(
    [{{"params": list(body.parameters())[:2]}}, {{"params": list(body.parameters())[2:]}}],
    lr=0.05, momentum=0.9,
)
opt_head = torch.optim.AdamW(head.parameters(), lr=1e-2)
{initialize}
scheduler = torch.optim.lr_scheduler.StepLR(opt_body, 5, 0.5)
params = [*body.parameters(), *head.parameters()]
batches = []
for number in range(8):
    x = torch.randn(shape)
    batches.append((x.cuda(), (x.flatten(1).sum(1) > 0).long().cuda()))
"""

_APEX_LOOP = """
for step in range(40):
    for micro in range(2):
        x, y = batches[(2 * step + micro) % 8]
        loss = F.cross_entropy(head(body(x)), y) / 2
        with amp.scale_loss(loss, [opt_body, opt_head]) as scaled_loss:
            scaled_loss.backward()
    torch.nn.utils.clip_grad_norm_(params, 0.1)
    opt_body.step()
    opt_head.step()
    scheduler.step()
    opt_body.zero_grad()
    opt_head.zero_grad()
"""

_NATIVE_LOOP = """
for step in range(40):
    for micro in range(2):
        x, y = batches[(2 * step + micro) % 8]
        with torch.cuda.amp.autocast():
            loss = F.cross_entropy(head(body(x)), y) / 2
        scaler.scale(loss).backward()
    scaler.unscale_(opt_body)
    scaler.unscale_(opt_head)
    torch.nn.utils.clip_grad_norm_(params, 0.1)
    scaler.step(opt_body)
    scaler.step(opt_head)
    scaler.update()
    scheduler.step()
    opt_body.zero_grad()
    opt_head.zero_grad()
"""

_APEX_INITIALIZE = """from apex import amp
[body, head], [opt_body, opt_head] = amp.initialize(
    [body, head], [opt_body, opt_head], opt_level="O1", verbosity=0
)"""


def apex_program(model: str) -> str:
    """Return the Apex O1 program with accumulation 2, clipping and two optimizers."""
    return _SETUP.format(model=MODELS[model], initialize=_APEX_INITIALIZE) + _APEX_LOOP


def native_program(model: str) -> str:
    """Return the correct native form of `apex_program`."""
    made = "scaler = torch.cuda.amp.GradScaler()"
    return _SETUP.format(model=MODELS[model], initialize=made) + _NATIVE_LOOP


def replaced(source: str, old: str, new: str) -> str:
    """Return `source` with its one occurrence of `old` replaced; raises where there is not one."""
    if source.count(old) != 1:
        raise ValueError(f"{source.count(old)} occurrences of {old!r}")
    return source.replace(old, new)
