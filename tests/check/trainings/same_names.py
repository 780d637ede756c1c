"""Trainings beside functions with variables of the same names, with faults planted into them."""

from __future__ import annotations

from check.trainings.planted import Training, files

_OPTIONS_BEFORE = """
    # file: train.py
    import torch
    from apex import amp

    def train(model, loader):
        options = dict(opt_level="O1", loss_scale=128.0)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model, optimizer = amp.initialize(model, optimizer, **options)
        for x, y in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            optimizer.step()

    def describe():
        options = dict(loss_scale=64.0)
        options["loss_scale"] = 32.0
        print(options)
"""
_OPTIONS_AFTER = """
    # file: train.py
    import torch

    def train(model, loader):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.cuda.amp.GradScaler(init_scale=128.0, growth_interval=10**9)
        for x, y in loader:
            optimizer.zero_grad()
            with torch.cuda.amp.autocast():
                loss = torch.nn.functional.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

    def describe():
        options = dict(loss_scale=64.0)
        options["loss_scale"] = 32.0
        print(options)
"""
SAME_NAMES = (
    Training(
        "options of the same name in a function that initializes nothing",
        files(_OPTIONS_BEFORE),
        files(_OPTIONS_AFTER),
        {
            "the scale that the other one is made with": (("init_scale=128.0", "init_scale=64.0"),),
            "the scale that the other one is given": (("init_scale=128.0", "init_scale=32.0"),),
        },
    ),
)
