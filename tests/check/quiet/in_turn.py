"""One variable that stands for two optimizers in turn: what is done to it is done to the one that it holds then."""

from __future__ import annotations

from check.trainings.planted import Training, files, skipped_apart

_SCRIPT = """
    # file: train.py
    import torch
    import torch.nn.functional as F
    from apex import amp

    encoder, head = torch.nn.Linear(4, 5), torch.nn.Linear(5, 3)
    first = torch.optim.SGD(encoder.parameters(), lr=0.1)
    second = torch.optim.Adam(head.parameters(), lr=0.01)
    [encoder, head], [first, second] = amp.initialize([encoder, head], [first, second])
    for x, y in [(torch.randn(6, 4), torch.randn(6, 3))]:
        first.zero_grad()
        second.zero_grad()
        loss = F.mse_loss(head(encoder(x)), y)
        with amp.scale_loss(loss, [first, second]) as scaled_loss:
            scaled_loss.backward()
        optimizer = first
        optimizer.step()
        optimizer = second
        optimizer.step()
"""
_SCRIPT_AFTER = """
    # file: train.py
    import torch
    import torch.nn.functional as F

    encoder, head = torch.nn.Linear(4, 5), torch.nn.Linear(5, 3)
    first = torch.optim.SGD(encoder.parameters(), lr=0.1)
    second = torch.optim.Adam(head.parameters(), lr=0.01)
    scaler = torch.cuda.amp.GradScaler()
    for x, y in [(torch.randn(6, 4), torch.randn(6, 3))]:
        first.zero_grad()
        second.zero_grad()
        with torch.cuda.amp.autocast():
            loss = F.mse_loss(head(encoder(x)), y)
        scaler.scale(loss).backward()
        optimizer = first
        scaler.step(optimizer)
        optimizer = second
        scaler.step(optimizer)
        scaler.update()
"""
_CLASS = """
    # file: learner.py
    import torch
    from apex import amp

    class Learner:
        def __init__(self, net, policy, value):
            self.net = net
            self.policy, self.value = policy, value
            amp.initialize(self.net, [self.policy, self.value])

        def learn(self, loss):
            current = self.policy
            current.zero_grad()
            self.value.zero_grad()
            with amp.scale_loss(loss, [self.policy, self.value]) as scaled:
                scaled.backward()
            torch.nn.utils.clip_grad_norm_(amp.master_params(current), 1.0)
            current.step()
            current = self.value
            torch.nn.utils.clip_grad_norm_(amp.master_params(current), 1.0)
            current.step()
    # file: main.py
    import torch
    from learner import Learner

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)

        def forward(self, x):
            return self.head(self.body(x))

    net = Net()
    policy = torch.optim.SGD(net.body.parameters(), lr=0.1)
    value = torch.optim.SGD(net.head.parameters(), lr=0.1)
    learner = Learner(net, policy, value)
    for x in [torch.randn(3, 4)]:
        loss = net(x).mean()
        learner.learn(loss)
"""
_CLASS_AFTER = """
    # file: learner.py
    import torch

    class Learner:
        def __init__(self, net, policy, value):
            self.net = net
            self.policy, self.value = policy, value
            self.scaler = torch.cuda.amp.GradScaler()

        def learn(self, loss):
            current = self.policy
            current.zero_grad()
            self.value.zero_grad()
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(current)
            torch.nn.utils.clip_grad_norm_([p for g in current.param_groups for p in g["params"]], 1.0)
            self.scaler.step(current)
            current = self.value
            self.scaler.unscale_(current)
            torch.nn.utils.clip_grad_norm_([p for g in current.param_groups for p in g["params"]], 1.0)
            self.scaler.step(current)
            self.scaler.update()
    # file: main.py
    import torch
    from learner import Learner

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)

        def forward(self, x):
            return self.head(self.body(x))

    net = Net()
    policy = torch.optim.SGD(net.body.parameters(), lr=0.1)
    value = torch.optim.SGD(net.head.parameters(), lr=0.1)
    learner = Learner(net, policy, value)
    for x in [torch.randn(3, 4)]:
        with torch.cuda.amp.autocast():
            loss = net(x).mean()
        learner.learn(loss)
"""
_BETWEEN = "update() between the steps of two optimizers that one variable holds"

IN_TURN = tuple(
    map(
        skipped_apart,
        (
            Training(
                "one variable holds two optimizers of one loss",
                files(_SCRIPT),
                files(_SCRIPT_AFTER),
                {
                    _BETWEEN: (
                        (
                            "    optimizer = second\n",
                            "    scaler.update()\n    optimizer = second\n",
                        ),
                    ),
                    "the second one steps past the scaler": (
                        (
                            "optimizer = second\n    scaler.step(optimizer)",
                            "optimizer = second\n    optimizer.step()",
                        ),
                    ),
                },
            ),
            Training(
                "one variable of a method holds two optimizers of another file",
                files(_CLASS),
                files(_CLASS_AFTER),
                {
                    _BETWEEN: (
                        (
                            "        current = self.value\n",
                            "        self.scaler.update()\n        current = self.value\n",
                        ),
                    ),
                    "the second one is not unscaled before its clip": (
                        (
                            "current = self.value\n        self.scaler.unscale_(current)\n",
                            "current = self.value\n",
                        ),
                    ),
                },
            ),
        ),
    )
)
