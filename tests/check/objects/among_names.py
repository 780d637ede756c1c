"""Names that a file looks for among its own: what asks for Apex there is settled, and what asks for more stays."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """\
import torch
import torch.nn.functional as F
try:
    from apex import amp
except ImportError:
    pass


class Session:
    def __init__(self, net, options):
        self.net, self.options = net, options
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        if self.halves:
            self.net, self.optimizer = amp.initialize(self.net, self.optimizer, opt_level="O1")

    @property
    def halves(self):
        return {asked} and self.options.rounds > 0 and self.options.half

    def learn(self, x, y):
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.net(x), y)
        if self.halves:
            with amp.scale_loss(loss, self.optimizer) as scaled:
                scaled.backward()
        else:
            loss.backward()
        self.optimizer.step()
"""
_AFTER = """\
import torch
import torch.nn.functional as F


class Session:
    def __init__(self, net, options):
        self.net, self.options = net, options
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.scaler = torch.cuda.amp.GradScaler(enabled=self.halves)

    @property
    def halves(self):
        return self.options.rounds > 0 and self.options.half

    def learn(self, x, y):
        self.optimizer.zero_grad()
        with torch.cuda.amp.autocast(enabled=self.halves):
            loss = F.mse_loss(self.net(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
"""
_KEPT = "self.options.rounds > 0 and self.options.half"
AMONG_NAMES = tuple(
    Training(
        f"`{asked}` is asked of half precision",
        {"session.py": _BEFORE.format(asked=asked)},
        {"session.py": _AFTER},
        {
            "a part of the test goes along": ((_KEPT, "self.options.half"),),
            "the test is turned around": ((_KEPT, f"not ({_KEPT})"),),
            "nothing is left of it": ((_KEPT, "True"),),
        },
    )
    for asked in ('"amp" in globals()', 'globals().get("amp") is not None')
)
