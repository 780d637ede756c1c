"""Evaluations in generators: what they run, they run where somebody goes through them, and there casts must be on."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """
    # file: score.py
    import torch
    import torch.nn.functional as F
    from apex import amp

    def scores(net, batches):
        with torch.no_grad():
            for x, y in batches:
                yield F.cross_entropy(net(x), y).item()

    def main(batches):
        net = torch.nn.Linear(4, 2).cuda()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        {early}
        net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
        {made}
        for x, y in batches:
            loss = F.cross_entropy(net(x), y)
            optimizer.zero_grad()
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            optimizer.step()
        {used}
"""
_AFTER = """
    # file: score.py
    import torch
    import torch.nn.functional as F

    def scores(net, batches):
        with torch.no_grad():
            for x, y in batches:
                yield F.cross_entropy(net(x), y).item()

    def main(batches):
        net = torch.nn.Linear(4, 2).cuda()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        {early}
        scaler = torch.cuda.amp.GradScaler()
        {made}
        for x, y in batches:
            with torch.cuda.amp.autocast():
                loss = F.cross_entropy(net(x), y)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        with torch.cuda.amp.autocast():
            {used}
"""
_BLOCK = "    with torch.cuda.amp.autocast():\n        {}\n"


def _training(name: str, early: str, made: str, used: str) -> Training:
    parts = {"early": early, "made": made, "used": used}
    spoilt = (_BLOCK.format(used), f"    {used}\n")
    cast = (
        (f"    {made}\n", _BLOCK.format(made)) if made else (f"    {early}\n", _BLOCK.format(early))
    )
    faults = {"it is gone through without casts": (spoilt,)}
    if made:
        faults["it is only made with casts"] = (spoilt, cast)
    return Training(name, files(_BEFORE.format(**parts)), files(_AFTER.format(**parts)), faults)


LATER = (
    _training(
        "a generator that is made before the training, and asked behind it",
        "print(list(scores(net, batches)))",
        "pending = scores(net, batches)",
        "print(next(pending), next(pending))",
    ),
    _training(
        "a generator that is gone through by a loop",
        "",
        "pending = scores(net, batches)",
        "print(sum(v for v in pending))",
    ),
    _training(
        "a generator that is made before Apex is on",
        "pending = scores(net, batches)",
        "",
        "print(max(pending))",
    ),
)
