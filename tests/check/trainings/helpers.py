"""Helpers that scale losses, called by nobody in sight or with flags of their own, with faults planted into them."""

from __future__ import annotations

from textwrap import dedent

from check.trainings.planted import Training

_LIBRARY_BEFORE = """
    import torch
    from apex import amp

    def start(network, lr):
        optimizer = torch.optim.SGD(network.parameters(), lr=lr)
        return amp.initialize(network, optimizer, opt_level="O1")

    class Runner:
        def __init__(self, network, optimizer, measure):
            self.network = network
            self.optimizer = optimizer
            self.measure = measure

        def learn(self, x, y):
            self.optimizer.zero_grad()
            loss = self.measure(self.network(x), y)
            with amp.scale_loss(loss, self.optimizer) as scaled_loss:
                scaled_loss.backward()
            self.optimizer.step()
            return loss.item()
"""
_LIBRARY_AFTER = """
    import torch

    def start(network, lr):
        optimizer = torch.optim.SGD(network.parameters(), lr=lr)
        scaler = torch.cuda.amp.GradScaler()
        return network, optimizer, scaler

    class Runner:
        def __init__(self, network, optimizer, measure, scaler):
            self.network = network
            self.optimizer = optimizer
            self.measure = measure
            self.scaler = scaler

        def learn(self, x, y):
            self.optimizer.zero_grad()
            with torch.cuda.amp.autocast():
                loss = self.measure(self.network(x), y)
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            return loss.item()
"""
_FLAG_BEFORE = """
    import argparse
    import torch
    from apex import amp

    def learn(model, optimizer, x, mixed):
        optimizer.zero_grad()
        loss = model(x).mean()
        if mixed:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        optimizer.step()

    def main(loader):
        parser = argparse.ArgumentParser()
        parser.add_argument("--half", action="store_true")
        args = parser.parse_args()
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        if args.half:
            model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
        for x in loader:
            learn(model, optimizer, x, args.half)

    main([torch.randn(2, 4)])
"""
_FLAG_AFTER = """
    import argparse
    import torch

    def learn(model, optimizer, x, mixed, scaler):
        optimizer.zero_grad()
        with torch.cuda.amp.autocast(enabled=mixed):
            loss = model(x).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    def main(loader):
        parser = argparse.ArgumentParser()
        parser.add_argument("--half", action="store_true")
        args = parser.parse_args()
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.cuda.amp.GradScaler(enabled=args.half)
        for x in loader:
            learn(model, optimizer, x, args.half, scaler)

    main([torch.randn(2, 4)])
"""
_PART_BEFORE = """
    import torch
    import networks
    from apex import amp

    def train(loader):
        model = networks.captioner()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
        for image, words in loader:
            optimizer.zero_grad()
            said = model.write(image, words)
            loss = -said.mean()
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            optimizer.step()
"""
_PART_AFTER = """
    import torch
    import networks

    def train(loader):
        model = networks.captioner()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.cuda.amp.GradScaler()
        for image, words in loader:
            optimizer.zero_grad()
            with torch.cuda.amp.autocast():
                said = model.write(image, words)
                loss = -said.mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
"""
_TRUE_BEFORE = """
    import torch
    from apex import amp

    def train(model, optimizer, loader, penalty):
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
        for x in loader:
            optimizer.zero_grad()
            loss = model(x).mean()
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            extra = sum(p.pow(2).sum() for p in model.parameters())
            with amp.scale_loss(extra, optimizer) as scaled_extra:
                scaled_extra.backward()
            optimizer.step()
"""
_TRUE_AFTER = """
    import torch

    def train(model, optimizer, loader, penalty):
        scaler = torch.cuda.amp.GradScaler()
        for x in loader:
            optimizer.zero_grad()
            with torch.cuda.amp.autocast():
                loss = model(x).mean()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            extra = sum(p.pow(2).sum() for p in model.parameters())
            extra.backward()
            scaler.step(optimizer)
            scaler.update()
"""

_PRECISIONS_BEFORE = """
    import torch
    from apex import amp

    class Full:
        def connect(self, model, optimizer):
            return model, optimizer

        def backward(self, loss, optimizer):
            loss.backward()

    class Mixed(Full):
        def connect(self, model, optimizer):
            return amp.initialize(model, optimizer, opt_level="O1")

        def backward(self, loss, optimizer):
            with amp.scale_loss(loss, optimizer) as scaled:
                scaled.backward()

    def train(name, loader):
        precision = {"32": Full, "16": Mixed}[name]()
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
        model, optimizer = precision.connect(model, optimizer)
        for x in loader:
            optimizer.zero_grad()
            precision.backward(model(x).mean(), optimizer)
            optimizer.step()
"""
_PRECISIONS_AFTER = """
    import torch

    class Full:
        scaler = torch.cuda.amp.GradScaler(enabled=False)

        def connect(self, model, optimizer):
            return model, optimizer

        def backward(self, loss, optimizer):
            loss.backward()

    class Mixed(Full):
        def connect(self, model, optimizer):
            self.scaler = torch.cuda.amp.GradScaler()
            return model, optimizer

        def backward(self, loss, optimizer):
            self.scaler.scale(loss).backward()

    def train(name, loader):
        precision = {"32": Full, "16": Mixed}[name]()
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
        model, optimizer = precision.connect(model, optimizer)
        for x in loader:
            optimizer.zero_grad()
            with torch.cuda.amp.autocast(enabled=precision.scaler.is_enabled()):
                loss = model(x).mean()
            precision.backward(loss, optimizer)
            precision.scaler.step(optimizer)
            precision.scaler.update()
"""


def _training(name: str, before: str, after: str, faults: dict[str, tuple[str, str]]) -> Training:
    table = {fault: (edit,) for fault, edit in faults.items()}
    return Training(name, {"train.py": dedent(before)}, {"train.py": dedent(after)}, table)


_BLOCK = "with torch.cuda.amp.autocast():"
HELPERS = (
    _training(
        "one class of two that initializes",
        _PRECISIONS_BEFORE,
        _PRECISIONS_AFTER,
        {
            "its GradScaler is off": (
                "self.scaler = torch.cuda.amp.GradScaler()",
                "self.scaler = torch.cuda.amp.GradScaler(enabled=False)",
            ),
            "its loss is not scaled": ("self.scaler.scale(loss).backward()", "loss.backward()"),
            "nothing updates": ("        precision.scaler.update()\n", ""),
        },
    ),
    _training(
        "a library whose trainer nobody in sight makes",
        _LIBRARY_BEFORE,
        _LIBRARY_AFTER,
        {
            "nothing is cast": (_BLOCK, "if True:"),
            "casts are to another type": (_BLOCK, _BLOCK.replace("()", "(dtype=torch.bfloat16)")),
            "the loss is not scaled": ("self.scaler.scale(loss).backward()", "loss.backward()"),
            "the step goes past the GradScaler": (
                "self.scaler.step(self.optimizer)",
                "self.optimizer.step()",
            ),
            "nothing updates": ("        self.scaler.update()\n", ""),
        },
    ),
    _training(
        "a flag by another name in a helper",
        _FLAG_BEFORE,
        _FLAG_AFTER,
        {
            "the flag is the wrong way round": ("enabled=mixed)", "enabled=not mixed)"),
            "the flag is lost": ("autocast(enabled=mixed)", "autocast()"),
            "the state of the GradScaler is the wrong way round": (
                "enabled=mixed)",
                "enabled=not scaler.is_enabled())",
            ),
            "the block is of another type": (
                "enabled=mixed)",
                "enabled=mixed, dtype=torch.bfloat16)",
            ),
        },
    ),
    _training(
        "a method of a network out of sight",
        _PART_BEFORE,
        _PART_AFTER,
        {
            "it is not cast": (_BLOCK, "if True:"),
            "the part alone is not cast": (
                f"{_BLOCK}\n            said = model.write(image, words)\n            loss",
                f"said = model.write(image, words)\n        {_BLOCK}\n            loss",
            ),
        },
    ),
    _training(
        "a second loss behind the clip, where gradients are true",
        _TRUE_BEFORE,
        _TRUE_AFTER,
        {
            "the first loss is not scaled": ("scaler.scale(loss)", "loss"),
        },
    ),
)
