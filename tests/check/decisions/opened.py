"""Generators that a function picks and returns: their code runs where the loop or the `with` does that asked for them."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """
    # file: fit.py
    from contextlib import contextmanager
    import torch
    import torch.nn.functional as F
    from apex import amp

    @contextmanager
    def section(output, target, optimizer):
        loss = F.mse_loss(output, target)
        yield loss
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()

    def opened(kind, *given):
        kinds = {"section": section, "other": section}
        return kinds[kind](*given)

    def again(*given):
        return opened("section", *given)

    def main(batches):
        net = torch.nn.Linear(4, 2).cuda()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
        for x, y in batches:
            output = net(x)
            with {opened} as loss:
                optimizer.zero_grad()
            optimizer.step()
"""
_AFTER = """
    # file: fit.py
    from contextlib import contextmanager
    import torch
    import torch.nn.functional as F

    @contextmanager
    def section(output, target, optimizer, scaler):
        with torch.cuda.amp.autocast():
            loss = F.mse_loss(output, target)
        yield loss
        scaler.scale(loss).backward()

    def opened(kind, *given, scaler):
        kinds = {"section": section, "other": section}
        return kinds[kind](*given, scaler=scaler)

    def again(*given, scaler):
        return opened("section", *given, scaler=scaler)

    def main(batches):
        net = torch.nn.Linear(4, 2).cuda()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = torch.cuda.amp.GradScaler()
        for x, y in batches:
            with torch.cuda.amp.autocast():
                output = net(x)
            with {opened} as loss:
                optimizer.zero_grad()
            scaler.step(optimizer)
            scaler.update()
"""
_CLEARS = "            optimizer.zero_grad()\n"
_STEPS = "        scaler.step(optimizer)\n        scaler.update()\n"
_FAULTS = {
    "it unscales in the block": ((_CLEARS, f"            scaler.unscale_(optimizer)\n{_CLEARS}"),),
    "it unscales behind what it clears": (
        (_CLEARS, f"{_CLEARS}            scaler.unscale_(optimizer)\n"),
    ),
    "it steps past the scaler": ((_STEPS, "        optimizer.step()\n"),),
}


def _training(name: str, before: str, after: str) -> Training:
    texts = _BEFORE.replace("{opened}", before), _AFTER.replace("{opened}", after)
    return Training(name, *map(files, texts), _FAULTS)


OPENED = (
    _training(
        "a block that a function opens",
        'opened("section", output, y, optimizer)',
        'opened("section", output, y, optimizer, scaler=scaler)',
    ),
    _training(
        "a block that a function opens by another one",
        "again(output, y, optimizer)",
        "again(output, y, optimizer, scaler=scaler)",
    ),
)
