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
_NAMED = """import torch
from torch import nn
from engines import Scorer

class Learner:
    def __init__(self, net):
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.net = net
        SET_UP
        self.scorer()

    def scorer(self):
        self.scorer = Scorer(self.net)

    def train(self, batches):
        for x in batches:
            self.optimizer.zero_grad()
            STEP

    @torch.no_grad()
    def best(self, batches):
        RUN

def main(batches):
    learner = Learner(nn.Linear(4, 2))
    learner.train(batches)
    print(learner.best(batches))

main([])
"""
_SET_UP = 'self.net, self.optimizer = amp.initialize(self.net, self.optimizer, opt_level="O1")'
_STEP = """loss = self.net(x).pow(2).mean()
            with amp.scale_loss(loss, self.optimizer) as scaled_loss:
                scaled_loss.backward()
            self.optimizer.step()"""
_CAST_STEP = """with torch.cuda.amp.autocast():
                loss = self.net(x).pow(2).mean()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()"""
_RUN = "return self.scorer.run(batches)"
_CAST_RUN = f"with torch.cuda.amp.autocast():\n            {_RUN}"
_SCALER = "self.scaler = torch.cuda.amp.GradScaler()"


def _named(set_up: str, step: str, run: str) -> str:
    return _NAMED.replace("SET_UP", set_up).replace("STEP", step).replace("RUN", run)


INSIDE = (
    Training(
        "a method that has the name of what it makes",
        {"train.py": "from apex import amp\n" + _named(_SET_UP, _STEP, _RUN)},
        {"train.py": _named(_SCALER, _CAST_STEP, _CAST_RUN)},
        {"what it makes runs in FP32": ((_CAST_RUN, _RUN),)},
    ),
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
