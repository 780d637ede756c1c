"""Trainings whose migration is right in a way that the check must see through, each with a fault that it must not."""

from __future__ import annotations

from textwrap import dedent

from check.trainings.planted import Training, files


def _single(
    name: str,
    before: str,
    after: str,
    *claims: tuple[str, str, int, int, bool],
    **faults: tuple[str, str],
) -> Training:
    table = {fault.replace("_", " "): (edit,) for fault, edit in faults.items()}
    return Training(name, {"train.py": dedent(before)}, {"train.py": dedent(after)}, table, claims)


_OTHER_NAMES = _single(
    "functions of Apex under names of their own",
    """
    import torch
    from apex import amp
    from apex.amp import load_state_dict, scale_loss as scaled_by_apex

    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    load_state_dict(torch.load("state.pt")["amp"])
    for x in loader:
        optimizer.zero_grad()
        loss = model(x).mean()
        with scaled_by_apex(loss, optimizer) as big:
            big.backward()
        optimizer.step()
    """,
    """
    import torch

    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    scaler.load_state_dict(torch.load("state.pt")["scaler"])
    for x in loader:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = model(x).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    """,
    the_state_is_not_loaded=('scaler.load_state_dict(torch.load("state.pt")["scaler"])\n', ""),
    another_loss_is_scaled=("scaler.scale(loss)", "scaler.scale(x.mean())"),
)

_NAMED_LOSS = _single(
    "a loss that gets its name where it is handed over",
    """
    import torch
    from apex import amp

    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x in loader:
        optimizer.zero_grad()
        with amp.scale_loss((loss := model(x).mean()), optimizer) as scaled:
            scaled.backward()
        optimizer.step()
        print(loss.item())
    """,
    """
    import torch

    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for x in loader:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = model(x).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        print(loss.item())
    """,
    another_loss_is_scaled=("scaler.scale(loss)", "scaler.scale(x.mean())"),
    the_backward_is_lost=("scaler.scale(loss).backward()\n", "\n"),
)

_NORM_BEFORE = """
    import torch
    from apex import amp

    def norm_of(parameters):
        return sum(float(p.grad.norm()) for p in parameters if p.grad is not None)

    def train(args, model, optimizer, loader):
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
        optimizer.zero_grad()
        for i, x in enumerate(loader):
            loss = model(x).mean() / args.k
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            norm = norm_of(amp.master_params(optimizer))
            if (i + 1) % args.k == 0:
                optimizer.step()
                optimizer.zero_grad()
    """
_NORM_AFTER = """
    import torch

    def norm_of(parameters):
        return sum(float(p.grad.norm()) for p in parameters if p.grad is not None)

    def train(args, model, optimizer, loader):
        scaler = torch.cuda.amp.GradScaler()
        optimizer.zero_grad()
        for i, x in enumerate(loader):
            with torch.cuda.amp.autocast():
                loss = model(x).mean() / args.k
            scaler.scale(loss).backward()
            if (i + 1) % args.k == 0:
                scaler.unscale_(optimizer)
                norm = norm_of(model.parameters())
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
    """
_HELPER_READS = _single(
    "a helper that reads gradients is called once per step",
    _NORM_BEFORE,
    _NORM_AFTER,
    ("AMP208", "train.py", 15, 15, False),
    the_clear_is_lost=("            optimizer.zero_grad()\n", ""),
    the_helper_reads_before_it=(
        "            scaler.unscale_(optimizer)\n            norm = norm_of(model.parameters())\n",
        "            norm = norm_of(model.parameters())\n            scaler.unscale_(optimizer)\n",
    ),
)

_STATE_IN_A_HELPER = _single(
    "a helper loads the state of Apex",
    """
    import torch
    from apex import amp

    def load(checkpoint):
        amp.load_state_dict(checkpoint["amp"])

    def train(args, model, optimizer, loader):
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
        checkpoint = torch.load(args.resume)
        if "amp" in checkpoint:
            load(checkpoint)
        for x in loader:
            optimizer.zero_grad()
            loss = model(x).mean()
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            optimizer.step()
    """,
    """
    import torch

    def load(checkpoint, scaler):
        scaler.load_state_dict(checkpoint["scaler"])

    def train(args, model, optimizer, loader):
        scaler = torch.cuda.amp.GradScaler()
        checkpoint = torch.load(args.resume)
        if "scaler" in checkpoint:
            load(checkpoint, scaler)
        for x in loader:
            optimizer.zero_grad()
            with torch.cuda.amp.autocast():
                loss = model(x).mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    """,
    the_helper_loads_nothing=('scaler.load_state_dict(checkpoint["scaler"])', "pass"),
    it_steps_by_another_test=(
        "        scaler.step(optimizer)",
        "        if 'other' in checkpoint:\n            scaler.step(optimizer)",
    ),
)

_REPORTED = _single(
    "an evaluation of which a note says that it runs in fp32",
    """
    import torch
    from apex import amp

    def evaluate(model, x):
        with torch.no_grad():
            return model(x)

    def train(args, model, optimizer, loader):
        model, optimizer = amp.initialize(
            model, optimizer, opt_level="O1", max_loss_scale=args.limit
        )
        for x in loader:
            optimizer.zero_grad()
            loss = model(x).mean()
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            optimizer.step()
        evaluate(model, x)

    net = torch.nn.Linear(2, 2)
    train(args, net, torch.optim.SGD(net.parameters(), lr=0.1), loader)
    """,
    """
    import torch

    def evaluate(model, x):
        with torch.no_grad():
            return model(x)

    def train(args, model, optimizer, loader):
        scaler = torch.cuda.amp.GradScaler()
        for x in loader:
            optimizer.zero_grad()
            with torch.cuda.amp.autocast():
                loss = model(x).mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        evaluate(model, x)

    net = torch.nn.Linear(2, 2)
    train(args, net, torch.optim.SGD(net.parameters(), lr=0.1), loader)
    """,
    ("AMP107", "train.py", 7, 7, True),
    ("AMP102", "train.py", 10, 12, True),
    the_training_is_not_cast=("with torch.cuda.amp.autocast():", "if True:"),
)

_NEW_NETWORK = _single(
    "a network is made and loaded behind a training that ends within a window",
    """
    import torch
    from apex import amp
    from weights import load_weights

    class Net(torch.nn.Module):
        @classmethod
        def made(cls, args):
            model = cls()
            model = load_weights(model, args.weights)
            load_weights(model, args.weights)
            return model

    def train(args, loader):
        model = Net.made(args)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
        for i, x in enumerate(loader):
            loss = model(x).mean()
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            if i % 2:
                optimizer.step()
                optimizer.zero_grad()

    train(first, first_loader)
    train(second, second_loader)
    """,
    """
    import torch
    from weights import load_weights

    class Net(torch.nn.Module):
        @classmethod
        def made(cls, args):
            model = cls()
            model = load_weights(model, args.weights)
            load_weights(model, args.weights)
            return model

    def train(args, loader):
        model = Net.made(args)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.cuda.amp.GradScaler()
        for i, x in enumerate(loader):
            with torch.cuda.amp.autocast():
                loss = model(x).mean()
            scaler.scale(loss).backward()
            if i % 2:
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()

    train(first, first_loader)
    train(second, second_loader)
    """,
    it_is_loaded_from_behind_a_backward=(
        "        if i % 2:",
        "        load_weights(model, args.weights)\n        if i % 2:",
    ),
)

_SHARED_BEFORE = """
    # file: steps.py
    import torch
    from apex import amp

    def train(net, optimizer, loader):
        for i, x in enumerate(loader):
            loss, parts = net(x)
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            if i % 2:
                torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()

    # file: one.py
    import torch
    from apex import amp
    from steps import train

    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    train(model, optimizer, loader)

    # file: both.py
    import one
    import torch
    from apex import amp
    from steps import train

    model = torch.nn.Linear(3, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    train(model, optimizer, loader)
    """
_SHARED_AFTER = """
    # file: steps.py
    import torch

    def train(net, optimizer, loader, scaler):
        for i, x in enumerate(loader):
            with torch.cuda.amp.autocast():
                loss, parts = net(x)
            scaler.scale(loss).backward()
            if i % 2:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()

    # file: one.py
    import torch
    from steps import train

    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    train(model, optimizer, loader, scaler)

    # file: both.py
    import one
    import torch
    from steps import train

    model = torch.nn.Linear(3, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    train(model, optimizer, loader, scaler)
    """
_SHARED = Training(
    "two trainings of two networks by one function",
    files(_SHARED_BEFORE),
    files(_SHARED_AFTER),
    {
        "the gradients are clipped scaled": (("            scaler.unscale_(optimizer)\n", ""),),
    },
)

ACCEPTED = (
    _NEW_NETWORK,
    _SHARED,
    _OTHER_NAMES,
    _NAMED_LOSS,
    _HELPER_READS,
    _STATE_IN_A_HELPER,
    _REPORTED,
)
