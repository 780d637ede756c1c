"""Parts of networks that run apart: blocks that a training in fp32 runs as well, and layers beside an embedding."""

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
_PARTS = """
    # file: train.py
    import torch
    import torch.nn.functional as F
    from torch import nn

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(9, 4)
            self.inner = nn.Linear(4, 4)

        def forward(self, embedded):
            return self.inner(embedded)

"""
_PARTS_BEFORE = """
    def train(loader):
        model = Tagger()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
        for ids, y in loader:
            embedded = model.words(ids)
            weights = model.inner(embedded)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(embedded * weights).mean(1), y)
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            optimizer.step()
"""
_PARTS_AFTER = """
    def train(loader):
        model = Tagger()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.cuda.amp.GradScaler()
        for ids, y in loader:
            embedded = model.words(ids)
            with torch.cuda.amp.autocast():
                weights = model.inner(embedded)
            optimizer.zero_grad()
            with torch.cuda.amp.autocast():
                loss = F.cross_entropy(model(embedded * weights).mean(1), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
"""
_PART = "    weights = model.inner(embedded)\n"
_LAYER = "        hidden = self.inner(x)\n"
_PRODUCT = "        return torch.matmul(hidden, hidden.t())\n"
INSIDE = (
    Training(
        "an embedding and a layer that run apart",
        files(
            _PARTS.replace("import nn\n", "import nn\n    from apex import amp\n") + _PARTS_BEFORE
        ),
        files(_PARTS + _PARTS_AFTER),
        {
            "the layer runs in FP32": (
                (f"        with torch.cuda.amp.autocast():\n        {_PART}", f"    {_PART}"),
            ),
        },
    ),
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
