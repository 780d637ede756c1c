"""Products of fp32 by functions that O1 had on no list: Apex left them in fp32, and autocast makes them fp16."""

from __future__ import annotations

from check.trainings.planted import Training

_HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
_MAIN_BEFORE = """

def main(loader):
    model = {made}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x, y in loader:
        loss = {loss}
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()


main([])
"""
_MAIN_AFTER = """

def main(loader):
    model = {made}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for x, y in loader:
        with torch.cuda.amp.autocast():
            loss = {loss}
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


main([])
"""
_APART = "    with torch.cuda.amp.autocast(enabled=False):\n"


def _training(
    name: str, made: str, loss: str, helper: str, apart: str, cast: str, *, file: str = ""
) -> Training:
    """Return a training whose code in `helper` multiplies fp32 where ``{product}`` stands: `apart` from casts, or as it is."""
    before, after = helper.format(product=cast), helper.format(product=apart)
    begun, main = (
        _MAIN_BEFORE.format(made=made, loss=loss),
        _MAIN_AFTER.format(made=made, loss=loss),
    )
    if not file:
        old, new = f"{_HEAD}from apex import amp\n{before}{begun}", f"{_HEAD}{after}{main}"
        return Training(name, {"main.py": old}, {"main.py": new}, {"cast": ((apart, cast),)})
    brought = f"from {file} import *\n"
    old = {
        "main.py": f"{_HEAD}from apex import amp\n{brought}{begun}",
        f"{file}.py": _HEAD + before,
    }
    new = {"main.py": f"{_HEAD}{brought}{main}", f"{file}.py": _HEAD + after}
    return Training(name, old, new, {"cast": ((apart, cast),)})


_CONTRAST = """

class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(4, 4)
        self.register_buffer("bank", torch.randn(4, 8))

    def forward(self, x):
        q = F.normalize(self.encoder(x), dim=1)
{product}        return logits / 0.1
"""
_BANK = 'logits = torch.einsum("nc,ck->nk", [q, self.bank.clone()])\n'
_CHAIN = """

def distance(gap, metric):
{product}    return spread.diagonal()
"""
_SPREAD = "spread = torch.linalg.multi_dot([gap, metric, gap.t()])\n"
_OVERLAP = """

def overlap(one, other):
{product}
"""
_SOFT = 'return torch.einsum("nk,mk->nm", F.softmax(one{to}, dim=1), F.softmax(other{to}, dim=1))'

UNLISTED = [
    _training(
        "einsum_of_normalized",
        "Contrast()",
        "F.cross_entropy(model(x), y)",
        _CONTRAST,
        f"    {_APART}            {_BANK}",
        f"        {_BANK}",
    ),
    _training(
        "chain_of_what_is_made_fp32",
        "nn.Linear(4, 4)",
        "distance(model(x).float() - torch.ones(4, 4), torch.eye(4)).sum()",
        _CHAIN,
        f"{_APART}        {_SPREAD}",
        f"    {_SPREAD}",
    ),
    _training(
        "distributions_of_another_file",
        "nn.Linear(4, 4)",
        "F.mse_loss(overlap(model(x), model(y)), torch.eye(4))",
        _OVERLAP,
        f"{_APART}        {_SOFT.format(to='.float()')}",
        f"    {_SOFT.format(to='')}",
        file="overlaps",
    ),
]
