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
_LOADED_BEFORE = """
    # file: train.py
    import torch
    from apex import amp

    def resume(path, net):
        state = torch.load(path)
        net.load_state_dict(state["net"])
        amp.load_state_dict(state["amp"])

    def train(net, optimizer, loader, path):
        net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
        if path is not None:
            resume(path, net)
        amp._amp_state.loss_scalers[0]._loss_scale = 2.0**12
        for x in loader:
            optimizer.zero_grad()
            loss = net(x).pow(2).mean()
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            optimizer.step()
"""
_LOADED_AFTER = """
    # file: train.py
    import torch

    def resume(path, net, scaler):
        state = torch.load(path)
        net.load_state_dict(state["net"])
        scaler.load_state_dict(state["amp"])

    def train(net, optimizer, loader, path):
        scaler = torch.cuda.amp.GradScaler()
        if path is not None:
            resume(path, net, scaler)
        scaler.load_state_dict({**scaler.state_dict(), "scale": float(2.0**12)})
        for x in loader:
            optimizer.zero_grad()
            with torch.cuda.amp.autocast():
                loss = net(x).pow(2).mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
"""
_SET = '    scaler.load_state_dict({**scaler.state_dict(), "scale": float(2.0**12)})\n'
_TWICE_BEFORE = """
    # file: train.py
    import torch
    from apex import amp

    def fit(net, optimizer, loader):
        for x in loader:
            optimizer.zero_grad()
            loss = net(x).pow(2).mean()
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            optimizer.step()

    def train(net, optimizer, loader):
        net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
        fit(net, optimizer, loader)
        amp._amp_state.loss_scalers[0]._loss_scale = 2.0**10
        fit(net, optimizer, loader)
"""
_TWICE_AFTER = """
    # file: train.py
    import torch

    def fit(net, optimizer, loader, scaler):
        for x in loader:
            optimizer.zero_grad()
            with torch.cuda.amp.autocast():
                loss = net(x).pow(2).mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

    def train(net, optimizer, loader):
        scaler = torch.cuda.amp.GradScaler()
        fit(net, optimizer, loader, scaler)
        scaler.update(float(2.0**10))
        fit(net, optimizer, loader, scaler)
"""
_IN_STATE = """import torch
{imports}

def train(net, optimizer, loader, path, first=256.0):
    {made}
    state = {amp}.state_dict()
    state{key} = first
    {amp}.load_state_dict(state)
    for x in loader:
        optimizer.zero_grad()
        {loss}
        {step}
"""
_STATE_BEFORE = {
    "imports": "from apex import amp\n",
    "made": 'net, optimizer = amp.initialize(net, optimizer, opt_level="O1")',
    "amp": "amp",
    "key": '["loss_scaler0"]["loss_scale"]',
    "loss": "loss = net(x).pow(2).mean()",
    "step": "with amp.scale_loss(loss, optimizer) as scaled:\n            scaled.backward()\n        optimizer.step()",
}
_STATE_AFTER = {
    "imports": "",
    "made": "scaler = torch.cuda.amp.GradScaler()",
    "amp": "scaler",
    "key": '["scale"]',
    "loss": "with torch.cuda.amp.autocast():\n            loss = net(x).pow(2).mean()",
    "step": "scaler.scale(loss).backward()\n        scaler.step(optimizer)\n        scaler.update()",
}
_PUT = '    state["scale"] = first\n'
SCALES_IN_DICTS = (
    Training(
        "a scale that is set behind what is loaded",
        files(_LOADED_BEFORE),
        files(_LOADED_AFTER),
        {"from the start": ((_SET, ""), ("GradScaler()", "GradScaler(init_scale=2.0**12)"))},
    ),
    Training(
        "a scale that is set between two trainings",
        files(_TWICE_BEFORE),
        files(_TWICE_AFTER),
        {
            "from the start": (
                ("    scaler.update(float(2.0**10))\n", ""),
                ("GradScaler()", "GradScaler(init_scale=2.0**10)"),
            )
        },
    ),
    Training(
        "a scale that is set in the state",
        {"train.py": _IN_STATE.format(**_STATE_BEFORE)},
        {"train.py": _IN_STATE.format(**_STATE_AFTER)},
        {
            "left out": ((_PUT, ""),),
            "another one": ((_PUT, _PUT.replace("first", "2.0")),),
            "another state": (("load_state_dict(state)", "load_state_dict(torch.load(path))"),),
        },
        claims=(("AMP108", "train.py", 8),),
    ),
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
