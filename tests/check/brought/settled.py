"""What asks an object whether it has Apex asks the GradScaler still: it is no constant, where the object may have none."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """
# file: train.py
import torch
import torch.nn.functional as F


class Half:
    def __init__(self, fp16):
        {first}
        self.fp16 = fp16
        if not fp16:
            return
        from apex import amp

        self.amp = amp

    @property
    def mixed(self):
        return self.amp is not None

    def wrap(self, net, opt):
        if self.mixed:
            net, opt = self.amp.initialize(net, opt, opt_level="O1")
        return net, opt

    def backward(self, loss, opt):
        if self.mixed:
            with self.amp.scale_loss(loss, opt) as scaled:
                scaled.backward()
        else:
            loss.backward()


def train(half, net, loader):
    net, opt = half.wrap(net, torch.optim.SGD(net.parameters(), lr=0.1))
    for x, y in loader:
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        half.backward(loss, opt)
        opt.step()
    if half.mixed:
        print("mixed precision")
"""
_AFTER = """
# file: train.py
import torch
import torch.nn.functional as F


class Half:
    def __init__(self, fp16):
        {first}
        self.fp16 = fp16
        if not fp16:
            return

    @property
    def mixed(self):
        return self.scaler.is_enabled()

    def wrap(self, net, opt):
        self.scaler = torch.cuda.amp.GradScaler(enabled=self.fp16)
        return net, opt

    def backward(self, loss, opt):
        self.scaler.scale(loss).backward()


def train(half, net, loader):
    net, opt = half.wrap(net, torch.optim.SGD(net.parameters(), lr=0.1))
    for x, y in loader:
        opt.zero_grad()
        with torch.cuda.amp.autocast(enabled=half.scaler.is_enabled()):
            loss = F.mse_loss(net(x), y)
        half.backward(loss, opt)
        half.scaler.step(opt)
        half.scaler.update()
    if half.mixed:
        print("mixed precision")
"""
_OFF = "torch.cuda.amp.GradScaler(enabled=False)"
_WAYS = {
    "alone": ("self.amp = None", f"self.scaler = {_OFF}"),
    "with its type": ("self.amp: object = None", f"self.scaler = {_OFF}"),
    "beside a count": ("self.amp, self.count = None, 0", f"self.scaler, self.count = {_OFF}, 0"),
}
_SETTLED = ("        return self.scaler.is_enabled()\n", "        return True\n")

SETTLED = [
    Training(
        f"Apex or None on an object, set {way}",
        files(_BEFORE.replace("{first}", before)),
        files(_AFTER.replace("{first}", after)),
        {
            "it always has Apex": (_SETTLED,),
            "on whatever the flag": (
                _SETTLED,
                ("GradScaler(enabled=self.fp16)", "GradScaler(enabled=self.mixed)"),
            ),
            "on in any case": (("GradScaler(enabled=self.fp16)", "GradScaler()"),),
        },
    )
    for way, (before, after) in _WAYS.items()
]
