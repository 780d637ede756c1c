"""Settings of the loss scale in dictionaries, and GradScalers that are made with other ones."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """
    # file: train.py
    import torch
    from apex import amp

    CFG = {"least": 64.0, "other": 8.0}

    def train(model, optimizer, loader):
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1", min_loss_scale=CFG["least"])
        for x, y in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            optimizer.step()
"""
_AFTER = """
    # file: train.py
    import torch

    CFG = {"least": 64.0, "other": 8.0}

    def train(model, optimizer, loader):
        scaler = torch.cuda.amp.GradScaler()
        for x, y in loader:
            optimizer.zero_grad()
            with torch.cuda.amp.autocast():
                loss = torch.nn.functional.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            if scaler.get_scale() < 64.0:
                scaler.update(64.0)
"""
_FILES_BEFORE = """
    # file: settings.py
    MIXED = dict(scale=128.0, width=3)
    # file: train.py
    import torch
    from apex import amp
    import settings

    model = torch.nn.Linear(settings.MIXED["width"], 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1", loss_scale=settings.MIXED["scale"])
    for x in torch.randn(8, 4, 3):
        optimizer.zero_grad()
        with amp.scale_loss(model(x).pow(2).mean(), optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
"""
_FILES_AFTER = """
    # file: settings.py
    MIXED = dict(scale=128.0, width=3)
    # file: train.py
    import torch
    import settings

    model = torch.nn.Linear(settings.MIXED["width"], 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(init_scale=128.0)
    for x in torch.randn(8, 4, 3):
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = model(x).pow(2).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update(128.0)
"""
SCALES_IN_DICTS = (
    Training(
        "a lower bound in a dictionary that nothing changes",
        files(_BEFORE),
        files(_AFTER),
        {
            "another entry of it": (("64.0:", "8.0:"), ("update(64.0)", "update(8.0)")),
        },
    ),
    Training(
        "a scale in a dictionary of another file",
        files(_FILES_BEFORE),
        files(_FILES_AFTER),
        {
            "another number": (
                ("init_scale=128.0", "init_scale=3.0"),
                ("update(128.0)", "update(3.0)"),
            )
        },
    ),
)
_DEF = "def train("


def _with(text: str, line: str) -> dict[str, str]:
    return {"train.py": files(text)["train.py"].replace(_DEF, f"{line}\n\n{_DEF}")}


CHANGED_DICTS = tuple(
    Training(
        f"a lower bound of a dictionary as it is before {what}",
        _with(_BEFORE, line),
        _with(_AFTER, line),
        {},
    )
    for what, line in (
        ("an entry is set", 'CFG["least"] = 16.0'),
        ("it is updated", "CFG.update(least=16.0)"),
        ("it is handed on", "print(list(map(dict.clear, [CFG])))"),
    )
)
