"""Steps behind which a rule of the run clears gradients, in a loop that they were cleared before alone, and faults."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """
    # file: train.py
    import torch
    from apex import amp

    def train(model, optimizer, loader):
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
        optimizer.zero_grad()
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x), y)
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            optimizer.step()
"""
_AFTER = """
    # file: train.py
    import torch

    def train(model, optimizer, loader):
        scaler = torch.cuda.amp.GradScaler()
        optimizer.zero_grad()
        for x, y in loader:
            with torch.cuda.amp.autocast():
                loss = torch.nn.functional.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
"""
_TESTED_BEFORE = """
    # file: train.py
    import torch
    from apex import amp

    model = torch.nn.Linear(3, 2)
    adam = torch.optim.Adam(model.parameters())
    model, adam = amp.initialize(model, adam, opt_level="O1")
    model.zero_grad()
    for i, x in enumerate(torch.randn(8, 4, 3)):
        with amp.scale_loss(model(x).pow(2).mean(), adam) as scaled_loss:
            scaled_loss.backward()
        if i % 2 == 1:
            adam.step()
"""
_TESTED_AFTER = """
    # file: train.py
    import torch

    model = torch.nn.Linear(3, 2)
    adam = torch.optim.Adam(model.parameters())
    scaler = torch.cuda.amp.GradScaler()
    model.zero_grad()
    for i, x in enumerate(torch.randn(8, 4, 3)):
        with torch.cuda.amp.autocast():
            loss = model(x).pow(2).mean()
        scaler.scale(loss).backward()
        if i % 2 == 1:
            scaler.step(adam)
            scaler.update()
            adam.zero_grad()
"""
_HANDED_BEFORE = """
    # file: train.py
    import torch
    from apex import amp

    def losses(model, adam, loader):
        for x in loader:
            loss = model(x).pow(2).mean()
            with amp.scale_loss(loss, adam) as scaled_loss:
                scaled_loss.backward()
            yield loss

    model = torch.nn.Linear(3, 2)
    adam = torch.optim.Adam(model.parameters())
    model, adam = amp.initialize(model, adam, opt_level="O1")
    adam.zero_grad()
    for epoch in range(2):
        for loss in losses(model, adam, torch.randn(8, 4, 3)):
            adam.step()
            adam.zero_grad()
        for name in ("a", "b"):
            print(name)
"""
_HANDED_AFTER = """
    # file: train.py
    import torch

    def losses(model, adam, loader, scaler):
        for x in loader:
            with torch.cuda.amp.autocast():
                loss = model(x).pow(2).mean()
            scaler.scale(loss).backward()
            yield loss

    model = torch.nn.Linear(3, 2)
    adam = torch.optim.Adam(model.parameters())
    scaler = torch.cuda.amp.GradScaler()
    adam.zero_grad()
    for epoch in range(2):
        for loss in losses(model, adam, torch.randn(8, 4, 3), scaler):
            scaler.step(adam)
            scaler.update()
            adam.zero_grad()
        for name in ("a", "b"):
            print(name)
"""
CLEARED_BEHIND = (
    Training(
        "gradients pile up nowhere: a loop over a generator that is handed the GradScaler clears them, as does what stands above",
        files(_HANDED_BEFORE),
        files(_HANDED_AFTER),
        {
            "in a loop beside": (
                ("        scaler.update()\n        adam.zero_grad()", "        scaler.update()"),
                ("        print(name)", "        adam.zero_grad()\n        print(name)"),
            ),
            "under a test": (
                (
                    "        scaler.update()\n        adam.zero_grad()",
                    "        scaler.update()\n        if scaler.get_scale() > 2:\n            adam.zero_grad()",
                ),
            ),
        },
    ),
    Training(
        "gradients pile up in a loop, and a rule clears them behind its step",
        files(_BEFORE),
        files(_AFTER),
        {
            "under a test of its own": (
                (
                    "        scaler.update()\n        optimizer.zero_grad()",
                    "        scaler.update()\n        if x.sum() > 0:\n            optimizer.zero_grad()",
                ),
            ),
            "before the backward": (
                (
                    "        scaler.update()\n        optimizer.zero_grad()",
                    "        scaler.update()",
                ),
                (
                    "        scaler.step(optimizer)",
                    "        optimizer.zero_grad()\n        scaler.step(optimizer)",
                ),
            ),
        },
        claims=(("AMP204", "train.py", 11),),
    ),
    Training(
        "gradients pile up behind every second batch, and a rule clears them there",
        files(_TESTED_BEFORE),
        files(_TESTED_AFTER),
        {
            "in the other rounds": (
                (
                    "        scaler.update()\n        adam.zero_grad()",
                    "        scaler.update()\n    else:\n        adam.zero_grad()",
                ),
            ),
        },
        claims=(("AMP204", "train.py", 12),),
    ),
)
