"""GradScalers that what an autocast block runs makes: the block has asked for one before, which was off."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """import torch
import torch.nn.functional as F
from apex import amp


class Trainer:
    def __init__(self, net):
        self.net = net
        self.ready = False

    def ensure(self):
        if self.ready:
            return
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.net, self.opt = amp.initialize(self.net, self.opt, opt_level="O1")
        self.ready = True

    def compute(self, x, y):
        {inside}
        return F.mse_loss(self.net(x), y)

    def fit(self, loader):
        for x, y in loader:
            {outside}
            loss = {computed}
            self.opt.zero_grad()
            with amp.scale_loss(loss, self.opt) as scaled_loss:
                scaled_loss.backward()
            self.opt.step()


Trainer(torch.nn.Linear(7, 3)).fit([(torch.randn(6, 7), torch.randn(6, 3))])
"""
_AFTER = """import torch
import torch.nn.functional as F


class Trainer:
    def __init__(self, net):
        self.net = net
        self.ready = False
        self.scaler = torch.cuda.amp.GradScaler(enabled=False)

    def ensure(self):
        if self.ready:
            return
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.scaler = torch.cuda.amp.GradScaler()
        self.ready = True

    def compute(self, x, y):
        {inside}
        return F.mse_loss(self.net(x), y)

    def fit(self, loader):
        for x, y in loader:
            {outside}
            with torch.cuda.amp.autocast({asked}):
                loss = {computed}
            self.opt.zero_grad()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.opt)
            self.scaler.update()


Trainer(torch.nn.Linear(7, 3)).fit([(torch.randn(6, 7), torch.randn(6, 3))])
"""
_ASKS, _BLOCK = "enabled=self.scaler.is_enabled()", "torch.cuda.amp.autocast("


def _training(
    name: str,
    fault: tuple[str, str],
    *,
    inside: str = "pass",
    outside: str = "pass",
    computed: str = "self.compute(x, y)",
    asked: str = "",
) -> Training:
    given = {"inside": inside, "outside": outside, "computed": computed}
    after = _AFTER.format(asked=asked, **given)
    return Training(
        name, {"train.py": _BEFORE.format(**given)}, {"train.py": after}, {name: (fault,)}
    )


_ASKED = (_BLOCK, f"{_BLOCK}{_ASKS}")
ASKED_EARLY = [
    _training("a block runs what makes the GradScaler", _ASKED, inside="self.ensure()"),
    _training(
        "a block calls a lambda that makes the GradScaler",
        _ASKED,
        outside="compute = lambda: (self.ensure(), self.compute(x, y))[1]",
        computed="compute()",
    ),
    _training(
        "a block makes the GradScaler",
        (
            f"            self.ensure()\n            with {_BLOCK}{_ASKS}):\n",
            f"            with {_BLOCK}{_ASKS}):\n                self.ensure()\n",
        ),
        outside="self.ensure()",
        asked=_ASKS,
    ),
]

_MADE_BEFORE = """import torch
import torch.nn.functional as F
from apex import amp


class Weighted(torch.nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = weight

    def forward(self, a, b):
        return F.mse_loss(a, b) * self.weight


class Trainer:
    def __init__(self, mode):
        self.net = torch.nn.Linear(7, 3)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        if {made}:
            self.net, self.opt = amp.initialize(self.net, self.opt, opt_level="O1")

    def anew(self, given):
        {anew}

    def fit(self, loader):
        for x, y in loader:
            self.opt.zero_grad()
            loss = self.anew("Weighted")(self.net(x), y)
            with amp.scale_loss(loss, self.opt) as scaled_loss:
                scaled_loss.backward()
            self.opt.step()


KINDS = {{"Weighted": Weighted, "Trainer": Trainer}}
KINDS["Trainer"]("train").fit([(torch.randn(6, 7), torch.randn(6, 3))])
"""
_MADE_AFTER = """import torch
import torch.nn.functional as F


class Weighted(torch.nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = weight

    def forward(self, a, b):
        return F.mse_loss(a, b) * self.weight


class Trainer:
    def __init__(self, mode):
        self.scaler = torch.cuda.amp.GradScaler(enabled=False)
        self.net = torch.nn.Linear(7, 3)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        if {made}:
            self.scaler = torch.cuda.amp.GradScaler()

    def anew(self, given):
        {anew}

    def fit(self, loader):
        for x, y in loader:
            self.opt.zero_grad()
            with torch.cuda.amp.autocast({asked}):
                loss = self.anew("Weighted")(self.net(x), y)
            self.scaler.scale(loss).backward()
            self.scaler.step(self.opt)
            self.scaler.update()


KINDS = {{"Weighted": Weighted, "Trainer": Trainer}}
KINDS["Trainer"]("train").fit([(torch.randn(6, 7), torch.randn(6, 3))])
"""


def _made(name: str, made: str, anew: str, asked: str, *edit: tuple[str, str]) -> Training:
    before = _MADE_BEFORE.format(made=made, anew=anew)
    after = _MADE_AFTER.format(made=made, anew=anew, asked=asked)
    return Training(name, {"train.py": before}, {"train.py": after}, {name: edit} if edit else {})


ASKED_EARLY += [
    _made(
        "a block makes objects of any class", 'mode == "train"', "return KINDS[given](2.0)", _ASKS
    ),
    _made(
        "a block has the constructor run again for its own object",
        "True",
        'Trainer.__init__(self, "train") if given == "Trainer" else None\n        return KINDS[given](2.0)',
        "",
        (_BLOCK, f"{_BLOCK}{_ASKS}"),
    ),
]
