"""Variables that hold outputs and are changed by operators: they keep their type, and whose output they are."""

from __future__ import annotations

from check.trainings.planted import Training, files

_Edits = tuple[tuple[str, str], ...]

_OUTPUT = """
# file: main.py
import torch
import torch.nn.functional as F
from apex import amp

model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
for x, y in []:
    near = model(x)
    near += torch.exp(-x)
    loss = F.cross_entropy(near, y)
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled:
        scaled.backward()
    optimizer.step()
"""
_OUTPUT_EDITS = (
    ("from apex import amp\n", ""),
    (
        'model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n',
        "scaler = torch.cuda.amp.GradScaler()\n",
    ),
    (
        "    near = model(x)\n    near += torch.exp(-x)\n    loss = F.cross_entropy(near, y)\n",
        "    with torch.cuda.amp.autocast():\n        near = model(x)\n        near += torch.exp(-x)\n        loss = F.cross_entropy(near, y)\n",
    ),
    (
        "    with amp.scale_loss(loss, optimizer) as scaled:\n        scaled.backward()\n    optimizer.step()\n",
        "    scaler.scale(loss).backward()\n    scaler.step(optimizer)\n    scaler.update()\n",
    ),
)
_OUTPUT_FAULTS: dict[str, _Edits] = {
    "loss behind": (("        loss = F.cross", "    loss = F.cross"),),
    "sum and loss behind": (
        ("        loss = F.cross", "    loss = F.cross"),
        ("        near +=", "    near +="),
    ),
}
_LOGITS = """
# file: losses.py
import torch
import torch.nn.functional as F


def contrast(features, labels, temperature):
    logits = features @ features.t()
    logits /= temperature
    near = torch.zeros_like(logits)
    near += torch.exp(logits)
    weights = F.softmax(near, dim=1)
    return F.nll_loss(torch.log(weights + 1e-6), labels)
# file: main.py
import torch
from apex import amp

from losses import contrast


def train(loader):
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x, y in loader:
        features = model(x)
        loss = contrast(features, y, 0.1)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()


train([])
"""
_LOGITS_EDITS = (
    ("from apex import amp\n", ""),
    (
        '    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n',
        "    scaler = torch.cuda.amp.GradScaler()\n",
    ),
    (
        "        features = model(x)\n        loss = contrast(features, y, 0.1)\n",
        "        with torch.cuda.amp.autocast():\n            features = model(x)\n            loss = contrast(features, y, 0.1)\n",
    ),
    (
        "        with amp.scale_loss(loss, optimizer) as scaled:\n            scaled.backward()\n        optimizer.step()\n",
        "        scaler.scale(loss).backward()\n        scaler.step(optimizer)\n        scaler.update()\n",
    ),
)
_LOGITS_FAULTS: dict[str, _Edits] = {
    "nothing cast but model": (("            loss = contrast", "        loss = contrast"),),
    "softmax not cast": (
        (
            "    weights = F.softmax(near, dim=1)",
            "    with torch.cuda.amp.autocast(enabled=False):\n        weights = F.softmax(near, dim=1)",
        ),
    ),
}
_SCORES = """
# file: main.py
import torch
import torch.nn.functional as F
from torch import nn
from apex import amp


class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)

    def forward(self, x):
        total = self.a(x)
        total += self.b(x)
        return total


def train(loader):
    model = Scores()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x, y in loader:
        scores = model(x)
        scores *= 2
        scores -= scores.max()
        probabilities = F.softmax(scores, dim=-1)
        loss = F.mse_loss(probabilities, y)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()
"""
_SCORES_EDITS = (
    ("from apex import amp\n", ""),
    (
        '    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n',
        "    scaler = torch.cuda.amp.GradScaler()\n",
    ),
    (
        "        scores = model(x)\n        scores *= 2\n        scores -= scores.max()\n        probabilities = F.softmax(scores, dim=-1)\n        loss = F.mse_loss(probabilities, y)\n",
        "        with torch.cuda.amp.autocast():\n            scores = model(x)\n            scores *= 2\n            scores -= scores.max()\n            probabilities = F.softmax(scores, dim=-1)\n            loss = F.mse_loss(probabilities, y)\n",
    ),
    (
        "        with amp.scale_loss(loss, optimizer) as scaled:\n            scaled.backward()\n        optimizer.step()\n",
        "        scaler.scale(loss).backward()\n        scaler.step(optimizer)\n        scaler.update()\n",
    ),
)
_SCORES_FAULTS: dict[str, _Edits] = {
    "softmax behind": (
        ("            probabilities", "        probabilities"),
        ("            loss", "        loss"),
    ),
    "difference behind": (
        ("            probabilities", "        probabilities"),
        ("            loss", "        loss"),
        ("            scores -=", "        scores -="),
    ),
    "all behind": (
        ("            probabilities", "        probabilities"),
        ("            loss", "        loss"),
        ("            scores -=", "        scores -="),
        ("            scores *=", "        scores *="),
    ),
}
_SUM = """
# file: main.py
import torch
import torch.nn.functional as F
from apex import amp


def train(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x, y in loader:
        near = 0
        for shift in (0.1, 0.2):
            near += torch.exp(-model(x + shift))
        near /= 2
        loss = F.cross_entropy(near, y)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()
        print(F.softmax(near, dim=1).max())
"""
_SUM_EDITS = (
    ("from apex import amp\n", ""),
    (
        '    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n',
        "    scaler = torch.cuda.amp.GradScaler()\n",
    ),
    (
        "        for shift in (0.1, 0.2):\n            near += torch.exp(-model(x + shift))\n        near /= 2\n        loss = F.cross_entropy(near, y)\n",
        "        with torch.cuda.amp.autocast():\n            for shift in (0.1, 0.2):\n                near += torch.exp(-model(x + shift))\n            near /= 2\n            loss = F.cross_entropy(near, y)\n",
    ),
    (
        "        with amp.scale_loss(loss, optimizer) as scaled:\n            scaled.backward()\n        optimizer.step()\n",
        "        scaler.scale(loss).backward()\n        scaler.step(optimizer)\n        scaler.update()\n",
    ),
)
_SUM_FAULTS: dict[str, _Edits] = {
    "exponentials of outputs without casts": (
        (
            "            for shift in (0.1, 0.2):\n                near += torch.exp(-model(x + shift))\n            near /= 2\n",
            "            outputs = [model(x + shift) for shift in (0.1, 0.2)]\n        for output in outputs:\n            near += torch.exp(-output)\n        if True:\n            near /= 2\n",
        ),
    )
}
_WIDENED = """
# file: main.py
import torch
import torch.nn.functional as F
from apex import amp


def train(model, bias, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x, y in loader:
        logits = model(x).float()
        logits += bias
        loss = F.cross_entropy(logits, y)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()
"""
_WIDENED_EDITS = (
    ("from apex import amp\n", ""),
    (
        '    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n',
        "    scaler = torch.cuda.amp.GradScaler()\n",
    ),
    (
        "        logits = model(x).float()\n        logits += bias\n        loss = F.cross_entropy(logits, y)\n",
        "        with torch.cuda.amp.autocast():\n            logits = model(x).float()\n            logits += bias\n            loss = F.cross_entropy(logits, y)\n",
    ),
    (
        "        with amp.scale_loss(loss, optimizer) as scaled:\n            scaled.backward()\n        optimizer.step()\n",
        "        scaler.scale(loss).backward()\n        scaler.step(optimizer)\n        scaler.update()\n",
    ),
)
_WIDENED_FAULTS: dict[str, _Edits] = {
    "the network runs behind": (
        (
            "            logits = model(x).float()\n            logits += bias\n",
            "            pass\n        logits = model(x).float()\n        logits += bias\n        if True:\n",
        ),
    )
}


def _training(name: str, before: str, edits: _Edits, faults: dict[str, _Edits]) -> Training:
    after = before
    for old, new in edits:
        assert old in after, old
        after = after.replace(old, new)
    return Training(name, files(before), files(after), faults)


CHANGED_BY_OPERATORS = (
    _training("an output and what is computed in fp32", _OUTPUT, _OUTPUT_EDITS, _OUTPUT_FAULTS),
    _training("similarities in another file", _LOGITS, _LOGITS_EDITS, _LOGITS_FAULTS),
    _training("scores of two layers", _SCORES, _SCORES_EDITS, _SCORES_FAULTS),
    _training("a sum of what is computed in fp32", _SUM, _SUM_EDITS, _SUM_FAULTS),
    _training("an output made fp32 and changed then", _WIDENED, _WIDENED_EDITS, _WIDENED_FAULTS),
    _training(
        "an output made fp32 and changed then, loss behind",
        _WIDENED,
        (
            *_WIDENED_EDITS,
            *(
                (
                    "            logits += bias\n            loss =",
                    "        logits += bias\n        loss =",
                ),
            ),
        ),
        {},
    ),
)
