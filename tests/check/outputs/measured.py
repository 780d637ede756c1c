"""Powers and sums of what an initialized network gave, in another function than its forward: O1 ran them in fp32."""

from __future__ import annotations

from check.trainings.planted import Training

_TRAIN = """    for x, y in loader:
        {loss}
        optimizer.zero_grad()
        {backward}
"""
_APEX = {
    "loss": "loss = F.mse_loss(model(x), y)",
    "backward": "with amp.scale_loss(loss, optimizer) as scaled:\n            scaled.backward()\n        optimizer.step()",
}
_NATIVE = {
    "loss": "with torch.cuda.amp.autocast():\n            loss = F.mse_loss(model(x), y)",
    "backward": "scaler.scale(loss).backward()\n        scaler.step(optimizer)\n        scaler.update()",
}


def _training(name: str, helper: str, cast: str, use: str) -> Training:
    """Return a training that measures what its network gives in a function: as it is, with casts, and how it is called."""
    left = helper.replace("amp.disable_casts()", "torch.cuda.amp.autocast(enabled=False)")
    head = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
    begin = "\n\ndef main(loader):\n    model = nn.Linear(4, 4)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    before = (
        f"{head}from apex import amp\n{helper}{begin}"
        '    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n'
        f"{_TRAIN.format(**_APEX)}    with torch.no_grad():\n        out = model(torch.ones(4, 4))\n{use}"
    )
    after = (
        f"{head}{cast}{begin}    scaler = torch.cuda.amp.GradScaler()\n{_TRAIN.format(**_NATIVE)}"
        f"    with torch.no_grad(), torch.cuda.amp.autocast():\n        out = model(torch.ones(4, 4))\n{use}"
    )
    faults = {"it is not cast": ((cast, left),)}
    return Training(name, {"main.py": before}, {"main.py": after}, faults)


_ENERGY = "\n\ndef energy(out):\n"
_CALLED = "    print(energy(out))\n\n\nmain([])\n"
_TABLE = """    print(energy({'scores': out, 'count': len(out)}))


main([])
"""
_BLOCK = "    with torch.cuda.amp.autocast():\n"

_METER = """

class Meter:
    def __init__(self):
        self.seen = []

    def total(self):
{body}
        return mass
"""
_MASS = "mass = torch.cat(self.seen).sum(dim=1)"
_METERED = """    meter = Meter()
    meter.seen.append(out)
    print(meter.total())


main([])
"""

_GAP = """

class Gap(nn.Module):
    def __init__(self, cosine=False):
        super().__init__()
        self.cosine = cosine

    def forward(self, now, old):
        if self.cosine:
            compare = nn.CosineSimilarity()
            return 1.0 - compare(now, old).mean()
        compare = nn.MSELoss(reduction="none")
        return compare(now, old).mean()


def energy(out):
    measure_loss = Gap()
"""

_SCORER = """

class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.criterion = nn.CrossEntropyLoss()

    def score(self, out):
{body}
        return missed
"""
_MISSED = "missed = self.criterion(out, torch.zeros(4, dtype=torch.long))"

MEASURED = (
    _training(
        "a sum that is compared with another number than zero",
        f"{_ENERGY}    return out.sum() > 5\n",
        f"{_ENERGY}{_BLOCK}        return out.sum() > 5\n",
        _CALLED,
    ),
    _training(
        "a sum that is returned where it is not zero",
        f"{_ENERGY}    return out.sum() or None\n",
        f"{_ENERGY}{_BLOCK}        return out.sum() or None\n",
        _CALLED,
    ),
    _training(
        "a product of all that is compared with zero",
        f"{_ENERGY}    return torch.prod(out) > 0\n",
        f"{_ENERGY}{_BLOCK}        return torch.prod(out) > 0\n",
        _CALLED,
    ),
    _training(
        "a softmax of an exponential",
        f"{_ENERGY}    return F.softmax(torch.exp(out), 1)\n",
        f"{_ENERGY}{_BLOCK}        return F.softmax(torch.exp(out), 1)\n",
        _CALLED,
    ),
    _training(
        "a softmax of what is multiplied by an exponential",
        f"{_ENERGY}    heat = torch.exp(torch.tensor(1.0))\n    return F.softmax(heat * out, 1)\n",
        f"{_ENERGY}    heat = torch.exp(torch.tensor(1.0))\n{_BLOCK}        return F.softmax(heat * out, 1)\n",
        _CALLED,
    ),
    _training(
        "a softmax of an exponential on one of two ways",
        f"{_ENERGY}    if len(out) > 2:\n        out = torch.exp(torch.ones(4, 4))\n    return F.softmax(out, 1)\n",
        f"{_ENERGY}    if len(out) > 2:\n        out = torch.exp(torch.ones(4, 4))\n{_BLOCK}        return F.softmax(out, 1)\n",
        _CALLED,
    ),
    _training(
        "a softmax of an exponential without casts",
        f"{_ENERGY}    with amp.disable_casts():\n        near = torch.exp(out)\n    return F.softmax(near, 1)\n",
        f"{_ENERGY}    with torch.cuda.amp.autocast(enabled=False):\n        near = torch.exp(out)\n{_BLOCK}        return F.softmax(near, 1)\n",
        _CALLED,
    ),
    _training(
        "a criterion that a module has, by a method of its own",
        _SCORER.format(body=f"        {_MISSED}"),
        _SCORER.format(body=f"        with torch.cuda.amp.autocast():\n            {_MISSED}"),
        "    print(Scorer().score(out))\n\n\nmain([])\n",
    ),
    _training(
        "a loss by a module that is given outputs by name",
        f"{_GAP}    return measure_loss(old=torch.ones(4, 4), now=out)\n",
        f"{_GAP}{_BLOCK}        return measure_loss(old=torch.ones(4, 4), now=out)\n",
        _CALLED,
    ),
    _training(
        "a function of torch that is given outputs by name",
        f"{_ENERGY}    return F.smooth_l1_loss(target=torch.ones(4, 4), input=out)\n",
        f"{_ENERGY}{_BLOCK}        return F.smooth_l1_loss(target=torch.ones(4, 4), input=out)\n",
        _CALLED,
    ),
    _training(
        "a power in a helper",
        f"{_ENERGY}    return out ** 2\n",
        f"{_ENERGY}{_BLOCK}        return out ** 2\n",
        _CALLED,
    ),
    _training(
        "a running sum of a function of torch",
        f"{_ENERGY}    parts = torch.cumsum(out * 2, 0)\n    return parts\n",
        f"{_ENERGY}{_BLOCK}        parts = torch.cumsum(out * 2, 0)\n    return parts\n",
        _CALLED,
    ),
    _training(
        "a sum of what an object keeps",
        _METER.format(body=f"        {_MASS}"),
        _METER.format(body=f"        with torch.cuda.amp.autocast():\n            {_MASS}"),
        _METERED,
    ),
    _training(
        "a power of what is under a key",
        f"{_ENERGY}    return out['scores'] ** 2\n",
        f"{_ENERGY}{_BLOCK}        return out['scores'] ** 2\n",
        _TABLE,
    ),
    _training(
        "a resized output",
        f"{_ENERGY}    larger = F.interpolate(out[None], scale_factor=2)\n    return larger\n",
        f"{_ENERGY}{_BLOCK}        larger = F.interpolate(out[None], scale_factor=2)\n    return larger\n",
        _CALLED,
    ),
)
