"""Blocks inside networks that a training runs in fp32 as well: they may not cast there."""

from __future__ import annotations

from check.trainings.planted import Training, files

_NETWORK = """
    # file: networks.py
    import torch
    from torch import nn

    class Encoder(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.inner = nn.Linear(width, width)

        def forward(self, x):
            hidden = self.inner(x)
            return torch.matmul(hidden, hidden.t())
"""
_BEFORE = """
    # file: train.py
    import torch
    from apex import amp
    from networks import Encoder

    def train(args, loader):
        model = Encoder(8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        if args.half:
            model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
        for x in loader:
            optimizer.zero_grad()
            loss = model(x).pow(2).mean()
            if args.half:
                with amp.scale_loss(loss, optimizer) as scaled_loss:
                    scaled_loss.backward()
            else:
                loss.backward()
            optimizer.step()
"""
_AFTER = """
    # file: train.py
    import torch
    from networks import Encoder

    def train(args, loader):
        model = Encoder(8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.cuda.amp.GradScaler(enabled=args.half)
        for x in loader:
            optimizer.zero_grad()
            with torch.cuda.amp.autocast(enabled=args.half):
                loss = model(x).pow(2).mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
"""
_LAYER = "        hidden = self.inner(x)\n"
_PRODUCT = "        return torch.matmul(hidden, hidden.t())\n"
INSIDE = (
    Training(
        "a network of which a training in fp32 runs the forward",
        files(_NETWORK + _BEFORE),
        files(_NETWORK + _AFTER),
        {
            "a layer is cast": (
                (_LAYER, f"        with torch.cuda.amp.autocast():\n    {_LAYER}"),
            ),
            "a product is cast": (
                (_PRODUCT, f"        with torch.cuda.amp.autocast():\n    {_PRODUCT}"),
            ),
        },
    ),
)
