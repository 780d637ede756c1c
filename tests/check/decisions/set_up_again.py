"""A trainer that is set up anew for each stage: its GradScaler is made where Apex initializes, and stays where it does not."""

from __future__ import annotations

from check.trainings.planted import Training, files

_HEAD = """
# file: train.py
import torch
import torch.nn.functional as F
{imports}

class Box:
    def __init__(self, config):
{made}        self.apex = None
        self.setup(config)

    def setup(self, config):
        self.net = torch.nn.Linear(4, 1)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.apex = False
        asked = config.get("apex", None)
        if asked is not None and asked.get("requires", False):
{initialized}
            self.apex = True

    def update(self, x, y):
        self.opt.zero_grad()
"""
_TAIL = """

class Stages(Box):
    def __init__(self, configs):
        super().__init__(configs[0])
        self.configs = configs
        self.number = 0

    def advance(self):
        self.number += 1
        self.setup(self.configs[self.number])


def main(configs):
    box = Stages(configs)
    for i in range(24):
        box.update(torch.randn(8, 4), torch.randn(8, 1))
        if i == 11:
            box.advance()


if __name__ == "__main__":
    main(torch.load("configs"))
"""
_BEFORE = (
    _HEAD.format(
        imports="from apex import amp\n",
        made="",
        initialized='            self.net, self.opt = amp.initialize(self.net, self.opt, opt_level=asked["level"])',
    )
    + """\
        loss = F.mse_loss(self.net(x), y)
        if self.apex:
            with amp.scale_loss(loss, self.opt) as scaled:
                scaled.backward()
        else:
            loss.backward()
        self.opt.step()
"""
    + _TAIL
)
_OFF = "self.scaler = torch.cuda.amp.GradScaler(enabled=False)"
_MADE = 'self.scaler = torch.cuda.amp.GradScaler(enabled=asked["level"] != "O0")'
_AFTER = (
    _HEAD.format(imports="", made=f"        {_OFF}\n", initialized=f"            {_MADE}")
    + """\
        with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):
            loss = F.mse_loss(self.net(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt)
        self.scaler.update()
"""
    + _TAIL
)
_GUARD = 'if asked is not None and asked.get("requires", False):'
_ALWAYS = (
    'self.scaler = torch.cuda.amp.GradScaler(enabled=asked is not None and asked.get("requires", False) '
    'and asked["level"] != "O0")'
)

_STAGES = """
# file: train.py
import torch
import torch.nn.functional as F
{imports}

def run(net, opt, batches{scaler}):
    for x, y in batches:
{loss}
        opt.zero_grad()
{update}

def main(batches):
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
    head = torch.optim.SGD(net[1].parameters(), lr=0.1)
{first}
    full = torch.optim.SGD(net.parameters(), lr=0.01)
{second}

main([])
"""
_AGAIN = "    scaler = torch.cuda.amp.GradScaler()\n    run(net, full"
_STAGED = (
    _STAGES.format(
        imports="from apex import amp\n",
        scaler="",
        loss="        loss = F.mse_loss(net(x), y)",
        update="        with amp.scale_loss(loss, opt) as scaled:\n            scaled.backward()\n        opt.step()\n",
        first='    net, head = amp.initialize(net, head, opt_level="O1")\n    run(net, head, batches)',
        second='    net, full = amp.initialize(net, full, opt_level="O1")\n    run(net, full, batches)',
    ),
    _STAGES.format(
        imports="",
        scaler=", scaler",
        loss="        with torch.cuda.amp.autocast():\n            loss = F.mse_loss(net(x), y)",
        update="        scaler.scale(loss).backward()\n        scaler.step(opt)\n        scaler.update()\n",
        first="    scaler = torch.cuda.amp.GradScaler()\n    run(net, head, batches, scaler)",
        second=f"{_AGAIN}, batches, scaler)",
    ),
)

SET_UP_AGAIN = [
    Training(
        "a second optimizer behind the training of the first",
        *map(files, _STAGED),
        {"the loss scale of the first goes on": ((_AGAIN, "    run(net, full"),)},
    ),
    Training(
        "a trainer that is set up anew for each stage",
        files(_BEFORE),
        files(_AFTER),
        {
            "a stage without AMP switches the GradScaler off": (
                (f"            {_MADE}\n", ""),
                (f"        {_GUARD}", f"        {_ALWAYS}\n        {_GUARD}"),
            ),
        },
        (("AMP116", "train.py", 30, 30, True),),
    ),
]
