"""Trainings in which a rule moves a zero_grad or a clip, or drops a way of Apex: nothing else changes by that."""

from __future__ import annotations

from textwrap import dedent

from check.trainings.planted import Training, skipped_apart


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
_LOGGED = _training(
    "a clip moves to the boundary and a report stays",
    ("AMP208", 17),
    """\
    import torch
    from apex import amp

    def told(model):
        print(model.weight.grad.norm().item())

    def train(model, loader):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
        for i, x in enumerate(loader):
            loss = model(x).mean()
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()

            print(model.bias.grad.norm().item())
            told(model)
            torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 0.1)
            if (i + 1) % 2 == 0:
                optimizer.step()
                optimizer.zero_grad()
    """,
    """\
    import torch

    def told(model, scaler):
        print((model.weight.grad / scaler.get_scale()).norm().item())

    def train(model, loader):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.cuda.amp.GradScaler()
        for i, x in enumerate(loader):
            with torch.cuda.amp.autocast():
                loss = model(x).mean()
            scaler.scale(loss).backward()

            print((model.bias.grad / scaler.get_scale()).norm().item())
            told(model, scaler)
            if (i + 1) % 2 == 0:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
    """,
    clips_what_is_scaled=("            scaler.unscale_(optimizer)\n", ""),
    the_report_goes=("        print((model.bias.grad / scaler.get_scale()).norm().item())\n", ""),
    the_report_waits_for_the_step=(
        "        print((model.bias.grad / scaler.get_scale()).norm().item())\n        told(model, scaler)\n        if (i + 1) % 2 == 0:\n",
        "        told(model, scaler)\n        if (i + 1) % 2 == 0:\n            print((model.bias.grad / scaler.get_scale()).norm().item())\n",
    ),
    the_report_of_a_helper_goes=("        told(model, scaler)\n", ""),
    the_report_of_a_helper_waits_for_the_step=(
        "        told(model, scaler)\n        if (i + 1) % 2 == 0:\n",
        "        if (i + 1) % 2 == 0:\n            told(model, scaler)\n",
    ),
)
_NAMED_LATE = _training(
    "the optimizer of a batch is named between the forward and what clears it",
    ("AMP209", 11),
    """\
    import torch
    from apex import amp

    def train(model, optimizer, spare, loader):
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
        opt = spare
        for x in loader:
            output = model(x)
            opt = optimizer

            opt.zero_grad()
            loss = output.mean()
            with amp.scale_loss(loss, opt) as scaled_loss:
                scaled_loss.backward()
            opt.step()
    """,
    """\
    import torch

    def train(model, optimizer, spare, loader):
        scaler = torch.cuda.amp.GradScaler()
        opt = spare
        for x in loader:
            with torch.cuda.amp.autocast():
                output = model(x)
                opt = optimizer

                opt.zero_grad()
                loss = output.mean()
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
    """,
    the_one_before_is_cleared=(
        "        with torch.cuda.amp.autocast():\n            output = model(x)\n            opt = optimizer\n\n            opt.zero_grad()\n",
        "        opt.zero_grad()\n        with torch.cuda.amp.autocast():\n            output = model(x)\n            opt = optimizer\n\n",
    ),
    nothing_is_cleared=("            opt.zero_grad()\n", ""),
)

_SKIPS = _training(
    "one that skips a batch is cleared on every batch",
    ("AMP201", 8),
    """\
    import torch
    from apex import amp

    def fit(args, net, data):
        optimizer = torch.optim.Adam(net.parameters(), lr=args.lr)
        net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
        for step, (x, y) in enumerate(data):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(x), y) / args.accumulate
            if not torch.isfinite(loss):
                optimizer.zero_grad()
                continue
            with amp.scale_loss(loss, optimizer) as scaled:
                scaled.backward()
            if (step + 1) % args.accumulate == 0:
                optimizer.step()
    """,
    """\
    import torch

    def fit(args, net, data):
        optimizer = torch.optim.Adam(net.parameters(), lr=args.lr)
        scaler = torch.cuda.amp.GradScaler()
        for step, (x, y) in enumerate(data):
            with torch.cuda.amp.autocast():
                loss = torch.nn.functional.cross_entropy(net(x), y) / args.accumulate
            if not torch.isfinite(loss):
                optimizer.zero_grad()
                continue
            scaler.scale(loss).backward()
            if (step + 1) % args.accumulate == 0:
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
    """,
    it_is_cleared_before_the_step=(
        "            scaler.step(optimizer)\n            scaler.update()\n            optimizer.zero_grad()\n",
        "            optimizer.zero_grad()\n            scaler.step(optimizer)\n            scaler.update()\n",
    ),
    it_is_cleared_on_every_batch_still=(
        "        with torch.cuda.amp.autocast",
        "        optimizer.zero_grad()\n        with torch.cuda.amp.autocast",
    ),
    it_is_cleared_behind_every_batch=(
        "            scaler.update()\n            optimizer.zero_grad()\n",
        "            scaler.update()\n        optimizer.zero_grad()\n",
    ),
    a_batch_that_is_skipped_keeps_what_was_there=(
        "            optimizer.zero_grad()\n            continue",
        "            continue",
    ),
    it_is_cleared_now_and_then=(
        "            scaler.update()\n            optimizer.zero_grad()\n",
        "            scaler.update()\n            if step % 8 == 0:\n                optimizer.zero_grad()\n",
    ),
)
_ADDED = _training(
    "what nothing cleared",
    ("AMP204", 14),
    """\
    import torch
    from apex import amp

    class Fit:
        def __init__(self, net):
            self.opt = torch.optim.Adam(net.parameters())
            self.net, self.opt = amp.initialize(net, self.opt, opt_level="O1")

        def epoch(self, data):
            for x, y in data:
                loss = torch.nn.functional.cross_entropy(self.net(x), y)
                with amp.scale_loss(loss, self.opt) as scaled:
                    scaled.backward()
                self.opt.step()
    """,
    """\
    import torch

    class Fit:
        def __init__(self, net):
            self.opt = torch.optim.Adam(net.parameters())
            self.net = net
            self.scaler = torch.cuda.amp.GradScaler()

        def epoch(self, data):
            for x, y in data:
                with torch.cuda.amp.autocast():
                    loss = torch.nn.functional.cross_entropy(self.net(x), y)
                self.scaler.scale(loss).backward()
                self.scaler.step(self.opt)
                self.opt.zero_grad()
                self.scaler.update()
    """,
    it_is_cleared_before_the_step=(
        "            self.scaler.step(self.opt)\n            self.opt.zero_grad()\n",
        "            self.opt.zero_grad()\n            self.scaler.step(self.opt)\n",
    ),
    it_is_cleared_once=(
        "            self.opt.zero_grad()\n            self.scaler.update()\n",
        "            self.scaler.update()\n        self.opt.zero_grad()\n",
    ),
    nothing_clears_it=("            self.opt.zero_grad()\n", ""),
)
_REPORTED = _training(
    "a schedule on every batch is reported",
    ("AMP210", 15),
    """\
    import torch
    from apex import amp

    def fit(args, net, data):
        optimizer = torch.optim.Adam(net.parameters(), lr=args.lr)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
        net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
        for step, x in enumerate(data):
            loss = net(x).mean()
            with amp.scale_loss(loss, optimizer) as scaled:
                scaled.backward()
            if (step + 1) % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()
            schedule.step()
    """,
    """\
    import torch

    def fit(args, net, data):
        optimizer = torch.optim.Adam(net.parameters(), lr=args.lr)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
        scaler = torch.cuda.amp.GradScaler()
        for step, x in enumerate(data):
            with torch.cuda.amp.autocast():
                loss = net(x).mean()
            scaler.scale(loss).backward()
            if (step + 1) % 4 == 0:
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
            schedule.step()
    """,
    it_goes=("        schedule.step()\n", ""),
    it_waits_for_the_optimizer=("        schedule.step()\n", "            schedule.step()\n"),
    the_optimizer_does_not_wait=(
        "            scaler.step(optimizer)\n            scaler.update()\n",
        "            pass\n        scaler.step(optimizer)\n        scaler.update()\n        if (step + 1) % 4 == 0:\n",
    ),
)

CLAIMED = (
    *map(skipped_apart, (_NEVER, _EVERY, _NETWORK)), _BESIDE, _LIMITED, _LOGGED, _NAMED_LATE, _SKIPS, _ADDED, _REPORTED
)  # fmt: skip
