"""A clip in a helper that does something else too: the clip moves to the step, and what is told beside it stays."""

from __future__ import annotations

from check.trainings.planted import Training

_HELPER = """def limit(model, loss, seen):
    TOLD
    nn.utils.clip_grad_value_(model.parameters(), 0.01)
"""
_REST = """def limit(model, loss, seen):
    TOLD
"""
_BEFORE = f"""import torch
from apex import amp
from torch import nn


{_HELPER}

def train(model, optimizer, batches, every):
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    seen = []
    for number, (x, y) in enumerate(batches):
        loss = nn.functional.mse_loss(model(x), y) / every
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        limit(model, loss, seen)
        if (number + 1) % every == 0:
            optimizer.step()
            optimizer.zero_grad()
"""
_AFTER = f"""import torch
from torch import nn


{_REST}

def train(model, optimizer, batches, every):
    scaler = torch.cuda.amp.GradScaler()
    seen = []
    for number, (x, y) in enumerate(batches):
        with torch.cuda.amp.autocast():
            loss = nn.functional.mse_loss(model(x), y) / every
        scaler.scale(loss).backward()
        limit(model, loss, seen)
        if (number + 1) % every == 0:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_value_(model.parameters(), 0.01)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
"""
_FAULT = (
    (_REST, _HELPER),
    ("        limit(model, loss, seen)\n", ""),
    (
        "            nn.utils.clip_grad_value_(model.parameters(), 0.01)\n",
        "            limit(model, loss, seen)\n",
    ),
)
_WAYS = {
    "a print": "print(loss.item())",
    "a list": "seen.append(loss.item())",
    "a function of a library": 'torch.save(loss, "loss.pt")',
}
_CALL = (
    _BEFORE.replace("    TOLD\n", "    told\n")
    .splitlines()
    .index("        limit(model, loss, seen)")
)


def _told(text: str, told: str) -> str:
    return text.replace("TOLD", told)


TAKEN_ALONG = tuple(
    Training(
        f"a clip beside {name}",
        {"train.py": _told(_BEFORE, told)},
        {"train.py": _told(_AFTER, told)},
        {
            "what is told moves with the clip": tuple(
                (_told(old, told), _told(new, told)) for old, new in _FAULT
            )
        },
        claims=(
            ("AMP208", "train.py", _CALL + 1),
            ("AMP208", "train.py", 8),
            ("AMP203", "train.py", _CALL + 2, _CALL + 3, True),
        ),
    )
    for name, told in _WAYS.items()
)
