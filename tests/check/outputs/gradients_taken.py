"""Gradients that are taken within a loss, which Apex did without casts: between two blocks, or where autocast is off in one."""

from __future__ import annotations

from check.trainings.planted import Training

_HEAD = "import torch\nimport torch.nn as nn\nfrom torch import autograd\n"
_TAKES = "slope = autograd.grad(outputs={scores}.sum(), inputs=x, create_graph=True)[0]\n"
_BEFORE = f"""

def main(loader):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x in loader:
        x.requires_grad_(True)
        scores = model(x)
        {_TAKES.format(scores="scores")}        loss = scores.mean() + (slope.norm(dim=1) ** 2).mean()
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()


main([])
"""
_APART = f"""        {_TAKES.format(scores="scores.float()")}        with torch.cuda.amp.autocast():
"""
_AFTER = f"""

def main(loader):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for x in loader:
        x.requires_grad_(True)
        with torch.cuda.amp.autocast():
            scores = model(x)
{_APART}            loss = scores.mean() + (slope.norm(dim=1) ** 2).mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


main([])
"""
_PENALTY = """

def penalty(critic, x):
    x = x.detach().requires_grad_(True)
    found = critic(x)
{taken}    return ((slope.norm(dim=1) - 1) ** 2).mean()
"""
_OFF = "    with torch.cuda.amp.autocast(enabled=False):\n        "
_HELPED = """

def main(loader):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{made}
    for x in loader:
{loss}        optimizer.zero_grad()
{trained}

main([])
"""
_HELPED_BEFORE = _HELPED.format(
    made='    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")',
    loss="        loss = model(x).mean() + penalty(model, x)\n",
    trained=(
        "        with amp.scale_loss(loss, optimizer) as scaled:\n"
        "            scaled.backward()\n"
        "        optimizer.step()\n"
    ),
)
_HELPED_AFTER = _HELPED.format(
    made="    scaler = torch.cuda.amp.GradScaler()",
    loss=(
        "        with torch.cuda.amp.autocast():\n"
        "            loss = model(x).mean() + penalty(model, x)\n"
    ),
    trained=(
        "        scaler.scale(loss).backward()\n"
        "        scaler.step(optimizer)\n"
        "        scaler.update()\n"
    ),
)
_FOUND = _TAKES.format(scores="found")
_WIDE = _TAKES.format(scores="found.float()")

GRADIENTS_TAKEN = [
    Training(
        "gradients_between_two_blocks",
        {"main.py": f"{_HEAD}from apex import amp\n{_BEFORE}"},
        {"main.py": f"{_HEAD}{_AFTER}"},
        {"cast": ((_APART, f"            {_TAKES.format(scores='scores')}"),)},
    ),
    Training(
        "gradients_taken_by_a_helper",
        {
            "main.py": f"{_HEAD}from apex import amp\nfrom penalties import penalty\n{_HELPED_BEFORE}",
            "penalties.py": f"{_HEAD}{_PENALTY.format(taken=f'    {_FOUND}')}",
        },
        {
            "main.py": f"{_HEAD}from penalties import penalty\n{_HELPED_AFTER}",
            "penalties.py": f"{_HEAD}{_PENALTY.format(taken=f'{_OFF}{_WIDE}')}",
        },
        {"cast": ((f"{_OFF}{_WIDE}", f"    {_FOUND}"),)},
    ),
]
