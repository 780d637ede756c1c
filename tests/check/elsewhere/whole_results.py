"""What amp.initialize gives, kept whole: the network alone where there is no optimizer."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """import torch
import torch.nn.functional as F
from apex import amp


def prepare(parts):
    return amp.initialize(parts["net"], parts.get("optimizer"), opt_level="O1")


def main(evaluate, batches):
    net = torch.nn.Linear(4, 3)
    parts = {"net": net}
    if not evaluate:
        parts["optimizer"] = torch.optim.SGD(net.parameters(), lr=0.1)
    ready = prepare(parts)
    if evaluate:
        net = ready
    else:
        net, optimizer = ready
        for x, y in batches:
            loss = F.mse_loss(net(x), y)
            optimizer.zero_grad()
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            optimizer.step()
    with torch.no_grad():
        print(net(torch.ones(1, 4)))
"""
_WHOLE = (
    '(parts["net"], parts["optimizer"]) if parts.get("optimizer") is not None else parts["net"]'
)
_AFTER = f"""import torch
import torch.nn.functional as F


def prepare(parts):
    return ({_WHOLE.replace('parts["optimizer"]', 'parts.get("optimizer")')}), torch.cuda.amp.GradScaler()


def main(evaluate, batches):
    net = torch.nn.Linear(4, 3)
    parts = {{"net": net}}
    if not evaluate:
        parts["optimizer"] = torch.optim.SGD(net.parameters(), lr=0.1)
    ready, scaler = prepare(parts)
    if evaluate:
        net = ready
    else:
        net, optimizer = ready
        for x, y in batches:
            with torch.cuda.amp.autocast():
                loss = F.mse_loss(net(x), y)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    with torch.no_grad(), torch.cuda.amp.autocast():
        print(net(torch.ones(1, 4)))
"""


def _held(text: str) -> str:
    """Hand the parts over in a list, as `held[0]`."""
    head, main = text.split("def main(")
    head = head.replace("parts", "held[0]").replace("prepare(held[0])", "prepare(held)")
    return f"{head}def main({main.replace('prepare(parts)', 'prepare([parts])')}"


WHOLE_RESULTS = (
    Training(
        "a result that is kept whole",
        {"train.py": _BEFORE},
        {"train.py": _AFTER},
        {
            "it is a pair without an optimizer too": (
                (' if parts.get("optimizer") is not None else parts["net"]', ""),
            )
        },
    ),
    Training(
        "a result that is kept whole of what a list holds",
        {"train.py": _held(_BEFORE)},
        {"train.py": _held(_AFTER)},
        {
            "it is a pair without an optimizer too": (
                (' if held[0].get("optimizer") is not None else held[0]["net"]', ""),
            )
        },
    ),
)
