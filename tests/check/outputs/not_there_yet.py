"""Names that hold no optimizer yet where gradients are read, and the faults of unscaling by them."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """
    # file: train.py
    import torch
    from apex import amp

    def train(model, optimizer, loader):
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
        due = None
        for x, y in loader:
            if due is not None:
                print("again")
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)
            due = optimizer
            due.step()
"""
_AFTER = """
    # file: train.py
    import torch

    def train(model, optimizer, loader):
        scaler = torch.cuda.amp.GradScaler()
        due = None
        for x, y in loader:
            if due is not None:
                print("again")
            optimizer.zero_grad()
            with torch.cuda.amp.autocast():
                loss = torch.nn.functional.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            due = optimizer
            scaler.step(due)
            scaler.update()
"""
_OBJECT_BEFORE = """
    # file: train.py
    import torch
    from apex import amp
    from types import SimpleNamespace

    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    turn = None
    while True:
        loss = model(torch.randn(4, 3)).pow(2).mean()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        if torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0) < 0.1:
            print("calm")
        turn = SimpleNamespace(trained=optimizer)
        turn.trained.step()
        turn.trained.zero_grad()
        turn = None
"""
_OBJECT_AFTER = """
    # file: train.py
    import torch
    from types import SimpleNamespace

    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    turn = None
    while True:
        with torch.cuda.amp.autocast():
            loss = model(torch.randn(4, 3)).pow(2).mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        if torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0) < 0.1:
            print("calm")
        turn = SimpleNamespace(trained=optimizer)
        scaler.step(turn.trained)
        scaler.update()
        turn.trained.zero_grad()
        turn = None
"""
NOT_THERE_YET = (
    Training(
        "a variable gets the optimizer behind the clip",
        files(_BEFORE),
        files(_AFTER),
        {"the variable unscales": (("unscale_(optimizer)", "unscale_(due)"),)},
    ),
    Training(
        "an object gets the optimizer behind the clip, and is left behind the step",
        files(_OBJECT_BEFORE),
        files(_OBJECT_AFTER),
        {"the object unscales": (("unscale_(optimizer)", "unscale_(turn.trained)"),)},
    ),
)
