"""Methods of a part of the network that are handed to an evaluation, and products of what they give."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """import torch
import torch.nn.functional as F
from torch import nn
from apex import amp


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 8)
        self.out = nn.Linear(8, 4)

    def features(self, x):
        return torch.relu(self.body(x))

    def forward(self, x):
        return self.out(self.features(x))


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.online = Encoder()
        self.predictor = nn.Linear(4, 4)

    def forward(self, x):
        return self.predictor(self.online(x))


def nearest(encode, bank):
    keys = F.normalize(encode(bank).float(), dim=1)
    return (keys @ keys.t()).argmax(1)


def spread(model, x):
    features = model.online.features(x).float()
    return (features @ features.t()).argmax(1)


model = Pair().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
for x, y in loader:
    loss = F.mse_loss(model(x), y)
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled:
        scaled.backward()
    optimizer.step()
with torch.no_grad():
    print(nearest(model.online.features, x), spread(model, x))
"""
_HEAD = _BEFORE.replace("from apex import amp\n", "").partition("def nearest")[0]
_AFTER = f"""{_HEAD}def nearest(encode, bank):
    with torch.cuda.amp.autocast():
        keys = F.normalize(encode(bank).float(), dim=1)
        return (keys @ keys.t()).argmax(1)


def spread(model, x):
    with torch.cuda.amp.autocast():
        features = model.online.features(x).float()
        return (features @ features.t()).argmax(1)


model = Pair().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler()
for x, y in loader:
    with torch.cuda.amp.autocast():
        loss = F.mse_loss(model(x), y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
with torch.no_grad():
    print(nearest(model.online.features, x), spread(model, x))
"""
_KEYS = "        return (keys @ keys.t()).argmax(1)\n"
_FEATURES = "        return (features @ features.t()).argmax(1)\n"

METHODS_OF_PARTS = (
    Training(
        "methods of a part, by the name of a parameter and by their own",
        {"train.py": _BEFORE},
        {"train.py": _AFTER},
        {
            "the product behind the method that was handed in stays in fp32": (
                (_KEYS, _KEYS.replace("        return", "    return")),
            ),
            "the product behind the method of the part stays in fp32": (
                (_FEATURES, _FEATURES.replace("        return", "    return")),
            ),
            "the method that was handed in runs in fp32": (
                (
                    "    with torch.cuda.amp.autocast():\n        keys =",
                    "    if True:\n        keys =",
                ),
            ),
        },
    ),
)
