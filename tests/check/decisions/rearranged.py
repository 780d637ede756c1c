"""Trainings beside whose Apex other things are done: what goes, changes or moves of them is no matter of AMP."""

from __future__ import annotations

from check.trainings.planted import Training, files

_DETECTOR_BEFORE = """
    # file: detect.py
    import torch
    import torch.nn.functional as F
    from apex import amp
    from tools import Meter

    class Trainer:
        def __init__(self, net, optimizer, meter):
            self.net, self.optimizer, self.meter = net, optimizer, meter

        def step(self, images, boxes):
            losses = self.net(images, boxes)
            total = sum(losses.values())
            self.optimizer.zero_grad()
            with amp.scale_loss(total, self.optimizer) as scaled:
                scaled.backward()
            self.optimizer.step()
            self.meter.seen += len(images)
            return total.item()

    def main(args, loader):
        torch.manual_seed(3)
        net = torch.nn.Linear(4, 2).cuda()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
        if args.deep:
            torch.set_num_threads(2)
        trainer = Trainer(net, optimizer, Meter())
        shown = 0
        for images, boxes in loader:
            last = trainer.step(images, boxes)
            shown = shown + 1
            print("loss", last)
        print("parameters", sum(p.sum().item() for p in net.parameters()))
        return shown
"""
_DETECTOR_AFTER = """
    # file: detect.py
    import torch
    import torch.nn.functional as F
    from tools import Meter

    class Trainer:
        def __init__(self, net, optimizer, meter, scaler):
            self.net, self.optimizer, self.meter = net, optimizer, meter
            self.scaler = scaler

        def step(self, images, boxes):
            with torch.cuda.amp.autocast():
                losses = self.net(images, boxes)
                total = sum(losses.values())
            self.optimizer.zero_grad()
            self.scaler.scale(total).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.meter.seen += len(images)
            return total.item()

    def main(args, loader):
        torch.manual_seed(3)
        net = torch.nn.Linear(4, 2).cuda()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = torch.cuda.amp.GradScaler()
        if args.deep:
            torch.set_num_threads(2)
        trainer = Trainer(net, optimizer, Meter(), scaler)
        shown = 0
        for images, boxes in loader:
            last = trainer.step(images, boxes)
            shown = shown + 1
            print("loss", last)
        print("parameters", sum(p.sum().item() for p in net.parameters()))
        return shown
"""
_SHOWN = '    print("parameters", sum(p.sum().item() for p in net.parameters()))\n'
_SEED = "    torch.manual_seed(3)\n"
_NET = "    net = torch.nn.Linear(4, 2).cuda()\n"

_STATES_BEFORE = """
    # file: agent.py
    import torch
    import torch.nn.functional as F
    from apex import amp

    def update(policy, optimizer, batch):
        loss = F.mse_loss(policy(batch[0]), batch[1])
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()

    def save(policy, optimizer, path):
        state = {"policy": policy.state_dict(), "optimizer": optimizer.state_dict()}
        state["amp"] = amp.state_dict()
        torch.save(state, path)

    def resume(policy, optimizer, path):
        state = torch.load(path)
        policy.load_state_dict(state["policy"])
        optimizer.load_state_dict(state["optimizer"])
        if "amp" in state:
            amp.load_state_dict(state["amp"])

    def main(path, batches):
        policy = torch.nn.Linear(4, 2).cuda()
        optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
        policy, optimizer = amp.initialize(policy, optimizer, opt_level="O1")
        resume(policy, optimizer, path)
        for batch in batches:
            update(policy, optimizer, batch)
        save(policy, optimizer, path)
"""
_STATES_AFTER = """
    # file: agent.py
    import torch
    import torch.nn.functional as F

    def update(policy, optimizer, batch, scaler):
        with torch.cuda.amp.autocast():
            loss = F.mse_loss(policy(batch[0]), batch[1])
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    def save(policy, optimizer, path, scaler):
        state = {"policy": policy.state_dict(), "optimizer": optimizer.state_dict()}
        state["scaler"] = scaler.state_dict()
        torch.save(state, path)

    def resume(policy, optimizer, path, scaler):
        state = torch.load(path)
        policy.load_state_dict(state["policy"])
        optimizer.load_state_dict(state["optimizer"])
        if "scaler" in state:
            scaler.load_state_dict(state["scaler"])

    def main(path, batches):
        policy = torch.nn.Linear(4, 2).cuda()
        optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
        scaler = torch.cuda.amp.GradScaler()
        resume(policy, optimizer, path, scaler)
        for batch in batches:
            update(policy, optimizer, batch, scaler)
        save(policy, optimizer, path, scaler)
"""

_HELPER_BEFORE = """
    # file: distill.py
    import torch
    import torch.nn.functional as F
    from apex import amp

    def distance(student, batches):
        total = 0
        with torch.no_grad():
            for x, y in batches:
                total += F.mse_loss(student(x), y).item()
        return total

    def main(batches):
        student = torch.nn.Linear(4, 2).cuda()
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
        print("fp32", distance(student, batches))
        student, optimizer = amp.initialize(student, optimizer, opt_level="O1")
        for x, y in batches:
            loss = F.mse_loss(student(x), y)
            optimizer.zero_grad()
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            optimizer.step()
        print("fp16", distance(student, batches))
"""
_HELPER_AFTER = """
    # file: distill.py
    import torch
    import torch.nn.functional as F

    def distance(student, batches):
        total = 0
        with torch.no_grad():
            for x, y in batches:
                total += F.mse_loss(student(x), y).item()
        return total

    def main(batches):
        student = torch.nn.Linear(4, 2).cuda()
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
        print("fp32", distance(student, batches))
        scaler = torch.cuda.amp.GradScaler()
        for x, y in batches:
            with torch.cuda.amp.autocast():
                loss = F.mse_loss(student(x), y)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        with torch.cuda.amp.autocast():
            print("fp16", distance(student, batches))
"""
_BEHIND = """\
    with torch.cuda.amp.autocast():
        print("fp16", distance(student, batches))
"""

REARRANGED = (
    Training(
        "a detector that counts and prints beside its training",
        files(_DETECTOR_BEFORE),
        files(_DETECTOR_AFTER),
        {
            "what is printed of the parameters goes": ((_SHOWN, ""),),
            "what a step returns goes": (("        return total.item()\n", ""),),
            "a counter goes": (("        self.meter.seen += len(images)\n", ""),),
            "a first value goes": (("    shown = 0\n", ""),),
            "a network is made before the seed is set": ((_SEED + _NET, _NET + _SEED),),
            "a counter counts before its step": (
                (
                    "        last = trainer.step(images, boxes)\n        shown = shown + 1\n",
                    "        shown = shown + 1\n        last = trainer.step(images, boxes)\n",
                ),
            ),
            "a test becomes true": (("    if args.deep:\n", "    if True:\n"),),
            "a text changes": (('print("loss", last)', 'print("scaler", last)'),),
            "a network prints what it is not": (('"parameters"', '"scaler"'),),
            "a GradScaler is printed for a loss": (
                ('print("loss", last)', 'print("loss", scaler)'),
            ),
        },
    ),
    Training(
        "an agent that saves and loads the state by its key",
        files(_STATES_BEFORE),
        files(_STATES_AFTER),
        {
            "the state is loaded from another key": (
                ('load_state_dict(state["scaler"])', 'load_state_dict(state["optimizer"])'),
            ),
            "the state is loaded from a key that nothing saves": (
                ('load_state_dict(state["scaler"])', 'load_state_dict(state["grad_scaler"])'),
            ),
            "the state is saved by a key that nothing loads": (
                ('state["scaler"] = ', 'state["grad_scaler"] = '),
            ),
            "the state of another object is loaded": (
                (
                    'scaler.load_state_dict(state["scaler"])',
                    "scaler.load_state_dict(policy.state_dict())",
                ),
            ),
            "another object is saved by another key": (
                ('"optimizer": optimizer.state_dict()', '"scaler": optimizer.state_dict()'),
            ),
        },
    ),
    Training(
        "a helper that measures before Apex and behind it",
        files(_HELPER_BEFORE),
        files(_HELPER_AFTER),
        {
            "what is measured behind is not cast": (
                (_BEHIND, '    print("fp16", distance(student, batches))\n'),
            ),
            "casts are off there": (
                (
                    _BEHIND,
                    _BEHIND.replace("autocast()", "autocast(enabled=False)"),
                ),
            ),
            "what is measured before is cast": (
                (
                    '    print("fp32", distance(student, batches))\n',
                    '    with torch.cuda.amp.autocast():\n        print("fp32", distance(student, batches))\n',
                ),
            ),
            "one of both is gone": (('    print("fp32", distance(student, batches))\n', ""),),
        },
    ),
)
