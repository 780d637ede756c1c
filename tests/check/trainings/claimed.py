"""Trainings in which a rule moves a zero_grad or a clip, or drops a way of Apex: nothing else changes by that."""

from __future__ import annotations

from textwrap import dedent

from check.trainings.planted import Training


def _training(
    name: str, claim: tuple[str, int], before: str, after: str, **faults: tuple[str, str]
) -> Training:
    table = {fault.replace("_", " "): (edit,) for fault, edit in faults.items()}
    texts = {"train.py": dedent(before)}, {"train.py": dedent(after)}
    code, line = claim
    return Training(name, *texts, table, ((code, "train.py", line),))


_NEVER = _training(
    "one of two optimizers is never cleared",
    ("AMP204", 15),
    """\
    import torch
    from apex import amp

    def train(encoder, head, loader):
        slow = torch.optim.SGD(encoder.parameters(), lr=0.01)
        fast = torch.optim.SGD(head.parameters(), lr=0.1)
        [encoder, head], [slow, fast] = amp.initialize(
            [encoder, head], [slow, fast], opt_level="O1"
        )
        for x in loader:
            fast.zero_grad()
            loss = head(encoder(x)).mean()
            with amp.scale_loss(loss, [slow, fast]) as scaled_loss:
                scaled_loss.backward()
            slow.step()
            fast.step()
    """,
    """\
    import torch

    def train(encoder, head, loader):
        slow = torch.optim.SGD(encoder.parameters(), lr=0.01)
        fast = torch.optim.SGD(head.parameters(), lr=0.1)
        scaler = torch.cuda.amp.GradScaler()
        for x in loader:
            fast.zero_grad()
            with torch.cuda.amp.autocast():
                loss = head(encoder(x)).mean()
            scaler.scale(loss).backward()
            scaler.step(slow)
            slow.zero_grad()
            scaler.step(fast)
            scaler.update()
    """,
    the_other_is_cleared_no_longer=("        fast.zero_grad()\n", ""),
    the_other_is_cleared_twice=(
        "slow.zero_grad()\n",
        "slow.zero_grad()\n        fast.zero_grad()\n",
    ),
)
_EVERY = _training(
    "the one that accumulates is cleared on every batch",
    ("AMP201", 11),
    """\
    import torch
    from apex import amp

    class Adversaries:
        def __init__(self, generator, critic):
            self.generator, self.critic = generator, critic
            self.opt_g = torch.optim.Adam(generator.parameters())
            self.opt_c = torch.optim.Adam(critic.parameters())
            [self.generator, self.critic], [self.opt_g, self.opt_c] = amp.initialize([generator, critic], [self.opt_g, self.opt_c], opt_level="O1")
        def turn(self, i, noise):
            self.opt_g.zero_grad()
            self.opt_c.zero_grad()
            loss = self.critic(self.generator(noise)).mean()
            with amp.scale_loss(loss, [self.opt_g, self.opt_c]) as scaled_loss:
                scaled_loss.backward()
            self.opt_c.step()
            if i % 4 == 3:
                self.opt_g.step()
    """,
    """\
    import torch

    class Adversaries:
        def __init__(self, generator, critic):
            self.generator, self.critic = generator, critic
            self.opt_g = torch.optim.Adam(generator.parameters())
            self.opt_c = torch.optim.Adam(critic.parameters())
            self.scaler = torch.cuda.amp.GradScaler()
        def turn(self, i, noise):
            self.opt_c.zero_grad()
            with torch.cuda.amp.autocast():
                loss = self.critic(self.generator(noise)).mean()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.opt_c)
            if i % 4 == 3:
                self.scaler.step(self.opt_g)
                self.opt_g.zero_grad()
            self.scaler.update()
    """,
    both_accumulate=("        self.opt_c.zero_grad()\n", ""),
)
_NETWORK = _training(
    "a network is cleared between its backward and the step",
    ("AMP204", 12),
    """\
    import torch
    from apex import amp

    def train(student, probe, loader):
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
        other = torch.optim.SGD(probe.parameters(), lr=0.1)
        [student, probe], [optimizer, other] = amp.initialize([student, probe], [optimizer, other], opt_level="O1")
        for x in loader:
            loss = probe(student(x)).mean()
            with amp.scale_loss(loss, [optimizer, other]) as scaled_loss:
                scaled_loss.backward()
            student.zero_grad()
            optimizer.step()
            other.step()
            probe.zero_grad()
    """,
    """\
    import torch

    def train(student, probe, loader):
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
        other = torch.optim.SGD(probe.parameters(), lr=0.1)
        scaler = torch.cuda.amp.GradScaler()
        for x in loader:
            student.zero_grad()
            with torch.cuda.amp.autocast():
                loss = probe(student(x)).mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.step(other)
            scaler.update()
            probe.zero_grad()
    """,
    the_other_is_cleared_no_longer=("        probe.zero_grad()\n", ""),
    the_other_is_cleared_too=(
        "        student.zero_grad()\n",
        "        student.zero_grad()\n        probe.zero_grad()\n",
    ),
)
_BESIDE = _training(
    "the way of Apex goes",
    ("AMP114", 13),
    """\
    import torch
    import apex.amp

    class Plain:
        def step(self, loss, optimizer):
            loss.backward()
            optimizer.step()

    def train(way, network, loader):
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        scaler = torch.cuda.amp.GradScaler(enabled=way == "torch")
        if way == "apex":
            network, optimizer = apex.amp.initialize(network, optimizer)
        for x in loader:
            optimizer.zero_grad()
            with torch.cuda.amp.autocast(enabled=way == "torch"):
                loss = network(x).mean()
            if way == "apex":
                with apex.amp.scale_loss(loss, optimizer) as scaled_loss:
                    scaled_loss.backward()
                optimizer.step()
            else:
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()

    def warm(network, loader):
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        way = Plain()
        for x in loader:
            way.step(network(x).mean(), optimizer)
    """,
    """\
    import torch

    class Plain:
        def step(self, loss, optimizer):
            loss.backward()
            optimizer.step()

    def train(way, network, loader):
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cuda", enabled=way == "torch")
        if way == "apex":
            raise RuntimeError("choose native AMP")
        for x in loader:
            optimizer.zero_grad()
            with torch.cuda.amp.autocast(enabled=way == "torch"):
                loss = network(x).mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

    def warm(network, loader):
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        way = Plain()
        for x in loader:
            way.step(network(x).mean(), optimizer)
    """,
    the_step_goes_as_well=("        scaler.step(optimizer)\n        scaler.update()\n", ""),
    a_program_without_apex_goes=(
        "    for x in loader:\n        way.step(network(x).mean(), optimizer)\n",
        "    return optimizer, way\n",
    ),
    casts_go_as_well=(
        '        with torch.cuda.amp.autocast(enabled=way == "torch"):\n            loss',
        "        loss",
    ),
    casts_are_always_on=('autocast(enabled=way == "torch")', "autocast()"),
    the_scaler_is_always_on=('GradScaler("cuda", enabled=way == "torch")', 'GradScaler("cuda")'),
    a_function_without_apex_goes=("def warm", "def cool"),
)
_LIMITED = _training(
    "a clip by an object's method called step moves to the boundary",
    ("AMP208", 21),
    """\
    import torch
    from apex import amp

    class Limiter:
        def __init__(self, limit):
            self.limit = limit

        def step(self, parameters):
            for p in parameters:
                p.grad.clamp_(-self.limit, self.limit)

    def train(model, loader):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        limiter = Limiter(0.1)
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
        for i, x in enumerate(loader):
            loss = model(x).mean()
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()

            limiter.step(amp.master_params(optimizer))
            if (i + 1) % 2 == 0:
                optimizer.step()
                optimizer.zero_grad()
    """,
    """\
    import torch

    class Limiter:
        def __init__(self, limit):
            self.limit = limit

        def step(self, parameters):
            for p in parameters:
                p.grad.clamp_(-self.limit, self.limit)

    def train(model, loader):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        limiter = Limiter(0.1)
        scaler = torch.cuda.amp.GradScaler()
        for i, x in enumerate(loader):
            with torch.cuda.amp.autocast():
                loss = model(x).mean()
            scaler.scale(loss).backward()
            if (i + 1) % 2 == 0:
                scaler.unscale_(optimizer)
                limiter.step(model.parameters())
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
    """,
    clips_what_is_scaled=("            scaler.unscale_(optimizer)\n", ""),
    steps_past_the_scaler=("scaler.step(optimizer)", "optimizer.step()"),
)

CLAIMED = (_NEVER, _EVERY, _NETWORK, _BESIDE, _LIMITED)
