"""Flags that are set while Apex stays on, without an assignment to what is asked: casts that go by them are lost."""

from __future__ import annotations

from check.trainings.planted import Training

_HEAD = """import torch
{imported}

class Finishing:
    def finish(self):
        {off}


class Trainer(Finishing):
    def __init__(self, network, half):
        self.options = {{"half": half}}
        self._half = half
        self.network = network
        self.optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
"""
_TAIL = """

trainer = Trainer(torch.nn.Linear(7, 3), True)
trainer.train([torch.randn(6, 7)])
print(trainer.evaluate(torch.randn(4, 7)))
"""
_BEFORE = """        if {flag}:
            self.network, self.optimizer = amp.initialize(self.network, self.optimizer, opt_level="O1")

{asked}    def train(self, loader):
        for x in loader:
            self.optimizer.zero_grad()
            loss = self.network(x).pow(2).mean()
            if {flag}:
                with amp.scale_loss(loss, self.optimizer) as scaled_loss:
                    scaled_loss.backward()
            else:
                loss.backward()
            self.optimizer.step()
        self.finish()

    def evaluate(self, x):
        with torch.no_grad():
            return self.network(x)
"""
_AFTER = """        self.scaler = torch.cuda.amp.GradScaler(enabled={flag})

{asked}    def train(self, loader):
        for x in loader:
            self.optimizer.zero_grad()
            with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):
                loss = self.network(x).pow(2).mean()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        self.finish()

    def evaluate(self, x):
        with torch.no_grad(), torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):
            return self.network(x)
"""
_PROPERTY = "    @property\n    def half(self):\n        return {}\n\n"
_METHOD = "    def is_half(self):\n        return self._half\n\n"
_WAYS = {
    "a property": ("self._half = False", "self.half", _PROPERTY.format("self._half")),
    "a property of an item": (
        'self.options["half"] = False',
        "self.half",
        _PROPERTY.format('self.options["half"]'),
    ),
    "a method": ("self._half = False", "self.is_half()", _METHOD),
    "setattr": ('setattr(self, "_half", False)', "self._half", ""),
    "the dict of an object": ("vars(self).update(_half=False)", "self._half", ""),
    "an update": ("self.options.update(half=False)", 'self.options["half"]', ""),
    "a pop": ('self.options.pop("half")', 'self.options.get("half")', ""),
    "what is in a dict": ("self.options.clear()", '"half" in self.options', ""),
}


def _training(name: str) -> Training:
    """Return a training that sets its flag before it evaluates."""
    off, flag, asked = _WAYS[name]
    texts = [
        (_HEAD + body).format(imported=imported, off=off, flag=flag, asked=asked) + _TAIL
        for imported, body in (("from apex import amp\n", _BEFORE), ("", _AFTER))
    ]
    asks = "torch.no_grad(), torch.cuda.amp.autocast(enabled="
    fault = {"the flag is asked": ((f"{asks}self.scaler.is_enabled()", f"{asks}{flag}"),)}
    return Training(f"set by {name}", {"train.py": texts[0]}, {"train.py": texts[1]}, fault)


SET_LATER = tuple(map(_training, _WAYS))
