"""What a text makes fp32: for an evaluation or a log it may, on the way to a loss it rounds otherwise than Apex did."""

from __future__ import annotations

from check.trainings.planted import Training

_HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
_BEFORE = f"""{_HEAD}from apex import amp


def gap(out, target):
    return (out.tanh() - target.half()).abs().mean()


def scores(model, loader):
    with torch.no_grad():
        return [torch.sigmoid(model(x)).max().item() for x, _ in loader]


def main(loader):
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    kept = []
    for x, y in loader:
        out = model(x)
        sharp = out * 2.5
        loss = F.cross_entropy(sharp, y) + gap(out, x[:, :2])
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()
        kept.append(out.detach().cpu().mean())
        print(torch.sigmoid(out.detach()).max().item())
    print(kept, scores(model, loader))


main([])
"""
_AFTER = f"""{_HEAD}

def gap(out, target):
    return (out.tanh() - target.half()).abs().mean()


def scores(model, loader):
    with torch.no_grad(), torch.cuda.amp.autocast():
        return [torch.sigmoid(model(x).float()).max().item() for x, _ in loader]


def main(loader):
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    kept = []
    for x, y in loader:
        with torch.cuda.amp.autocast():
            out = model(x)
            sharp = out * 2.5
            loss = F.cross_entropy(sharp, y) + gap(out, x[:, :2])
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        kept.append(out.detach().float().cpu().mean())
        print(torch.sigmoid(out.detach().float()).max().item())
    print(kept, scores(model, loader))


main([])
"""
_SHARP, _LOSS, _OUT = "sharp = out * 2.5", "gap(out, x[:, :2])", "out = model(x)\n"
_GUESS = "sharp = out\n        guess = torch.softmax(out.detach() / 0.5, dim=1)"
_GUESSED = "F.mse_loss(sharp, guess)"
_GUESS_IN_BLOCK = "sharp = out\n            guess = torch.softmax(out.detach() / 0.5, dim=1)"

_RANKS = f"""{_HEAD}from apex import amp


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x):
        return self.head(F.relu(self.body(x)))

    def compare(self, out):
        sure = torch.sigmoid(out).view(4, -1)
        return torch.clamp(0.2 + sure[:, 1:] - sure[:, :1], min=0)


def main(loader):
    model = Ranker()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O2")
    for x in loader:
        out = model(x)
        loss = model.compare(out).mean()
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()


main([torch.randn(8, 4)])
"""
_RANKS_AFTER = (
    _RANKS.replace("from apex import amp\n", "")
    .replace(
        'model, optimizer = amp.initialize(model, optimizer, opt_level="O2")',
        "scaler = torch.cuda.amp.GradScaler()",
    )
    .replace(
        """        out = model(x)
        loss = model.compare(out).mean()
""",
        """        with torch.cuda.amp.autocast():
            out = model(x)
            loss = model.compare(out.float()).mean()
""",
    )
    .replace(
        """        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()
""",
        """        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
""",
    )
)
_COMPARED = "model.compare(out.float()).mean()"


def _others(text: str) -> str:
    """Return a text with a mean in the place of what is compared."""
    return text.replace("model.compare(", "torch.relu(1 - ")


MADE_WIDE = [
    Training(
        "what O2 handed out in fp32",
        {"main.py": _RANKS},
        {"main.py": _RANKS_AFTER},
        {
            "compared in fp16": ((_COMPARED, "model.compare(out).mean()"),),
        },
    ),
    Training(
        "means of what O2 handed out in fp32",
        {"main.py": _others(_RANKS)},
        {"main.py": _others(_RANKS_AFTER)},
        {"of fp16": (("out.float()", "out"),)},
    ),
    Training(
        "a loss in fp16 at O1",
        {"main.py": _RANKS.replace("O2", "O1")},
        {"main.py": _RANKS_AFTER.replace("out.float()", "out")},
        {"in fp32": ((_COMPARED.replace("out.float()", "out"), _COMPARED),)},
    ),
    Training(
        "fp32 for scores and logs",
        {"main.py": _BEFORE},
        {"main.py": _AFTER},
        {
            "a product of a loss": ((_SHARP, "sharp = out.float() * 2.5"),),
            "handed to a helper of a loss": ((_LOSS, "gap(out.float(), x[:, :2])"),),
            "in a helper of a loss": (("out.tanh()", "out.float().tanh()"),),
            "right behind the forward": ((_OUT, "out = model(x).float()\n"),),
        },
    ),
    Training(
        "guesses that become targets",
        {"main.py": _BEFORE.replace(_LOSS, _GUESSED).replace(_SHARP, _GUESS)},
        {"main.py": _AFTER.replace(_LOSS, _GUESSED).replace(_SHARP, _GUESS_IN_BLOCK)},
        {"in fp32": (("out.detach() / 0.5", "out.detach().float() / 0.5"),)},
    ),
    Training(
        "fp32 where a loss is fp32 in any case",
        {"main.py": _BEFORE},
        {"main.py": _AFTER.replace("cross_entropy(sharp", "cross_entropy(sharp.float()")},
        {},
    ),
]
