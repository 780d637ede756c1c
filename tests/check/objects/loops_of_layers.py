"""Networks that go through their layers in a loop: those of two objects are two where each has made its own."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """import torch
from torch import nn
from apex import amp


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 2)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def both(student, teacher, x):
    with torch.no_grad():
        soft = teacher(x)
    return student(x), soft


def main():
    student, teacher = Net(6), Net(8)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    student, optimizer = amp.initialize(student, optimizer, opt_level="O1")
    for x, y in []:
        optimizer.zero_grad()
        hard, soft = both(student, teacher, x)
        loss = nn.functional.mse_loss(hard, y) + nn.functional.mse_loss(hard, soft)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()


main()
"""
_AFTER = (
    _BEFORE.replace("from apex import amp\n", "")
    .replace(
        '    student, optimizer = amp.initialize(student, optimizer, opt_level="O1")\n',
        "    scaler = torch.cuda.amp.GradScaler()\n",
    )
    .replace(
        """        hard, soft = both(student, teacher, x)
        loss = nn.functional.mse_loss(hard, y) + nn.functional.mse_loss(hard, soft)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
""",
        """        with torch.cuda.amp.autocast():
            hard, soft = both(student, teacher, x)
            loss = nn.functional.mse_loss(hard, y) + nn.functional.mse_loss(hard, soft)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
""",
    )
)
_LOOP = "for layer in self.layers:"
_ASSIGNED = "self.layers = nn.ModuleList([nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 2)])"
_MADE = "student, teacher = Net(6), Net(8)"
_SOFT = "        soft = teacher(x)\n"
_CLEAR = "    torch.clear_autocast_cache()\n"
_Edits = tuple[tuple[str, str], ...]
_APART: dict[str, _Edits] = {
    "a loop": (),
    "a loop that counts": ((_LOOP, "for number, layer in enumerate(self.layers):"),),
    "a loop over some": ((_LOOP, "for layer in self.layers[:2]:"),),
    "a loop over names": ((_LOOP, "for name, layer in self.layers.named_children():"),),
    "a loop over either": (
        (
            _ASSIGNED,
            f"{_ASSIGNED}\n        self.others = nn.ModuleList([nn.Linear(4, 2)])",
        ),
        (_LOOP, "for layer in self.layers if len(x) else self.others:"),
    ),
    "a variable": ((_LOOP, "layers = list(self.layers)\n        for layer in layers:"),),
}
_ALIKE: dict[str, _Edits] = {
    "one network given twice": (("= both(student, teacher, x)", "= both(student, student, x)"),),
    "layers that are given": (
        ("def __init__(self, width):", "def __init__(self, layers):"),
        (_ASSIGNED, "self.layers = nn.ModuleList(layers)"),
        (
            _MADE,
            "layers = [nn.Linear(4, 8), nn.Linear(8, 2)]\n    student, teacher = Net(layers), Net(layers)",
        ),
    ),
    "layers of the file": (
        ("class Net", "LAYERS = nn.ModuleList([nn.Linear(4, 8), nn.Linear(8, 2)])\n\n\nclass Net"),
        (_ASSIGNED, "self.layers = LAYERS"),
    ),
    "a layer that is put in": ((_MADE, f"{_MADE}\n    teacher.layers.append(student.layers[0])"),),
    "layers that are set": ((_MADE, f"{_MADE}\n    teacher.layers = student.layers"),),
    "a loop over what is given as well": (
        ("def __init__(self, width):", "def __init__(self, width, more=()):"),
        (_ASSIGNED, f"{_ASSIGNED}\n        self.more = more"),
        (_LOOP, "for layer in (*self.layers, *self.more):"),
        (
            _MADE,
            "more = nn.ModuleList([nn.Linear(2, 2)])\n    student, teacher = Net(6, more), Net(8, more)",
        ),
    ),
}


def _edited(text: str, edits: _Edits) -> dict[str, str]:
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return {"main.py": text}


LOOPS_OF_LAYERS = (
    *(
        Training(f"layers apart: {name}", _edited(_BEFORE, edits), _edited(_AFTER, edits), {})
        for name, edits in _APART.items()
    ),
    *(
        Training(
            f"shared layers: {name}",
            _edited(_BEFORE, edits),
            _edited(_AFTER, (*edits, (_SOFT, _SOFT + _CLEAR))),
            {"the copies without gradients are kept": ((_CLEAR, ""),)},
        )
        for name, edits in _ALIKE.items()
    ),
)
