"""Inputs that are written in place within a loss: autocast keeps a copy of what they were, which nothing may be given again."""

from __future__ import annotations

from check.trainings.planted import Training

_HEAD = "import torch\nimport torch.nn as nn\n"
_TRAIN = """

def main(loader):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{made}
    for x in loader:
{loss}
        optimizer.zero_grad()
{trained}


main([])
"""
_BY_APEX = _TRAIN.format(
    made='    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")',
    loss="        loss = model(x).mean() - model(worst(model, x)).mean()",
    trained=(
        "        with amp.scale_loss(loss, optimizer) as scaled:\n"
        "            scaled.backward()\n"
        "        optimizer.step()"
    ),
)
_NATIVELY = _TRAIN.format(
    made="    scaler = torch.cuda.amp.GradScaler()",
    loss=(
        "        with torch.cuda.amp.autocast():\n"
        "            loss = model(x).mean() - model(worst(model, x)).mean()"
    ),
    trained=(
        "        scaler.scale(loss).backward()\n        scaler.step(optimizer)\n        scaler.update()"
    ),
)
_CLEARED = "        torch.clear_autocast_cache()\n"
_WAYS = {
    "by_data": "        moved.data.add_(slope)\n",
    "by_assigned_data": "        moved.data = moved.data + slope\n",
    "by_an_operator": "        with torch.no_grad():\n            moved += slope\n",
    "by_an_item": "        with torch.no_grad():\n            moved[:] = moved + slope\n",
}
_MOVED = """

def worst(model, x):
    moved = x.clone().requires_grad_()
    for _ in range(3):
        slope = torch.autograd.grad(model(moved).sum(), moved)[0]
{write}    return moved.detach()
"""
_GIVEN = """

def worst(model, x):
    return moved(model, x.clone().requires_grad_())


def moved(model, place):
    for _ in range(3):
        slope = torch.autograd.grad(model(place).sum(), place)[0]
        place.data = place.data + slope
{cleared}    return place.detach()
"""
_ANEW = "        moved = (moved.detach() + slope).requires_grad_()\n"


def _texts(write: str, main: str, head: str) -> dict[str, str]:
    return {
        "main.py": f"{_HEAD}{head}from worst import worst\n{main}",
        "worst.py": f"import torch\n{_MOVED.format(write=write)}",
    }


_APEX = "from apex import amp\n"
WRITTEN_IN_PLACE = [
    *(
        Training(
            f"an_input_written_{name}",
            _texts(write, _BY_APEX, _APEX),
            _texts(write + _CLEARED, _NATIVELY, ""),
            {"kept": ((_CLEARED, ""),)},
        )
        for name, write in _WAYS.items()
    ),
    Training(
        "an_input_given_and_written",
        {
            "main.py": f"{_HEAD}{_APEX}from worst import worst\n{_BY_APEX}",
            "worst.py": f"import torch\n{_GIVEN.format(cleared='')}",
        },
        {
            "main.py": f"{_HEAD}from worst import worst\n{_NATIVELY}",
            "worst.py": f"import torch\n{_GIVEN.format(cleared=_CLEARED)}",
        },
        {"kept": ((_CLEARED, ""),)},
    ),
    Training(
        "an_input_made_anew_each_round",
        _texts(_ANEW, _BY_APEX, _APEX),
        _texts(_ANEW, _NATIVELY, ""),
        {},
    ),
]
