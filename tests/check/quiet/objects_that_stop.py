"""Objects that loops go through train as they give their items: an iteration may end between `unscale_` and the step."""

from __future__ import annotations

from check.trainings.planted import Training, files

_NEXT = """
    # file: rounds.py
    import torch
    import torch.nn.functional as F
    from apex import amp

    class Rounds:
        def __init__(self, net, opt, batches):
            self.net, self.opt, self.batches = net, opt, batches

        def __iter__(self):
            self.left = list(self.batches)
            return self

        def __next__(self):
            if not self.left:
                raise StopIteration
            x, y = self.left.pop()
            self.opt.zero_grad()
            loss = F.mse_loss(self.net(x), y)
            with amp.scale_loss(loss, self.opt) as scaled:
                scaled.backward()
            norm = torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
            if norm > 5:
                raise StopIteration
            self.opt.step()
            return norm
    # file: main.py
    import torch
    from apex import amp
    from rounds import Rounds

    net = torch.nn.Linear(4, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    net, opt = amp.initialize(net, opt)
    for epoch in range(3):
        for norm in Rounds(net, opt, [(torch.randn(6, 4), torch.randn(6, 3))]):
            print(norm)
"""
_NEXT_AFTER = """
    # file: rounds.py
    import torch
    import torch.nn.functional as F

    class Rounds:
        def __init__(self, net, opt, batches, scaler):
            self.net, self.opt, self.batches = net, opt, batches
            self.scaler = scaler

        def __iter__(self):
            self.left = list(self.batches)
            return self

        def __next__(self):
            if not self.left:
                raise StopIteration
            x, y = self.left.pop()
            self.opt.zero_grad()
            with torch.cuda.amp.autocast():
                loss = F.mse_loss(self.net(x), y)
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(self.opt)
            norm = torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
            if norm > 5:
                self.scaler.update()
                raise StopIteration
            self.scaler.step(self.opt)
            self.scaler.update()
            return norm
    # file: main.py
    import torch
    from rounds import Rounds

    net = torch.nn.Linear(4, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for epoch in range(3):
        for norm in Rounds(net, opt, [(torch.randn(6, 4), torch.randn(6, 3))], scaler):
            print(norm)
"""
_SCRIPT = """
    # file: train.py
    import torch
    import torch.nn.functional as F
    from apex import amp

    class Steps:
        def __init__(self, net, batches):
            self.net, self.batches, self.number = net, batches, 0
            self.opt = torch.optim.SGD(net.parameters(), lr=0.3)
            self.net, self.opt = amp.initialize(self.net, self.opt)

        def __iter__(self):
            return self

        def __next__(self):
            if self.number == len(self.batches):
                self.number = 0
                raise StopIteration()
            x, y = self.batches[self.number]
            self.number += 1
            loss = F.mse_loss(self.net(x), y)
            self.opt.zero_grad()
            with amp.scale_loss(loss, self.opt) as scaled:
                scaled.backward()
            norm = sum(p.grad.norm() for p in self.net.parameters())
            if norm < 0.01:
                raise StopIteration()
            self.opt.step()
            return loss.item()

    def main():
        batches = [(torch.randn(8, 4), torch.randn(8, 3)) for _ in range(4)]
        steps = Steps(torch.nn.Linear(4, 3), batches)
        for epoch in range(6):
            print(sum([loss for loss in steps]))

    main()
"""
_SCRIPT_AFTER = """
    # file: train.py
    import torch
    import torch.nn.functional as F

    class Steps:
        def __init__(self, net, batches):
            self.net, self.batches, self.number = net, batches, 0
            self.opt = torch.optim.SGD(net.parameters(), lr=0.3)
            self.scaler = torch.cuda.amp.GradScaler()

        def __iter__(self):
            return self

        def __next__(self):
            if self.number == len(self.batches):
                self.number = 0
                raise StopIteration()
            x, y = self.batches[self.number]
            self.number += 1
            with torch.cuda.amp.autocast():
                loss = F.mse_loss(self.net(x), y)
            self.opt.zero_grad()
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(self.opt)
            norm = sum(p.grad.norm() for p in self.net.parameters())
            if norm < 0.01:
                self.scaler.update()
                raise StopIteration()
            self.scaler.step(self.opt)
            self.scaler.update()
            return loss.item()

    def main():
        batches = [(torch.randn(8, 4), torch.randn(8, 3)) for _ in range(4)]
        steps = Steps(torch.nn.Linear(4, 3), batches)
        for epoch in range(6):
            print(sum([loss for loss in steps]))

    main()
"""

OBJECTS_THAT_STOP = (
    Training(
        "an object trains in `__next__`, and ends behind a clip",
        files(_NEXT),
        files(_NEXT_AFTER),
        {
            "no update before it ends": (
                (
                    "            self.scaler.update()\n            raise",
                    "            raise",
                ),
            ),
            "no update behind the step": (
                ("        self.scaler.update()\n        return", "        return"),
            ),
        },
        (("AMP105", "rounds.py", 23, 23, True),),
    ),
    Training(
        "a list takes what an object trains, which ends behind a norm",
        files(_SCRIPT),
        files(_SCRIPT_AFTER),
        {
            "no update before it ends": (
                ("            self.scaler.update()\n            raise", "            raise"),
            ),
        },
        (("AMP105", "train.py", 27, 27, True),),
    ),
)
