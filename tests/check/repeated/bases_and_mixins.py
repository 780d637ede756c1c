"""What the objects of a class do is said by mixins and subclasses, whose bases no program makes."""

from __future__ import annotations

from check.trainings.planted import Training, files

_TRAINER = """
# file: base.py
import torch


class Trainer:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.prepare()

    def prepare(self):
        pass

    def backward(self, loss):
        loss.backward()

    def weights(self):
        return self.model.parameters()

    def clip(self):
        torch.nn.utils.clip_grad_norm_(self.weights(), 1.0)

    def fit(self, batches):
        for x, y in batches:
            loss = torch.nn.functional.mse_loss(self.model(x), y)
            self.backward(loss)
            self.clip()
            self.optimizer.step()
            self.optimizer.zero_grad()

# file: train.py
import torch
from apex import amp
from base import Trainer


class Mixed:
    def prepare(self):
        super().prepare()
        self.model, self.optimizer = amp.initialize(self.model, self.optimizer, opt_level="O1")

    def backward(self, loss):
        with amp.scale_loss(loss, self.optimizer) as scaled_loss:
            scaled_loss.backward()

    def weights(self):
        return amp.master_params(self.optimizer)


class MixedTrainer(Mixed, Trainer):
    pass


net = torch.nn.Linear(4, 2)
MixedTrainer(net, torch.optim.SGD(net.parameters(), lr=0.1)).fit([(torch.randn(3, 4), torch.randn(3, 2))] * 4)
"""
_PLAIN = """
# file: learners.py
import torch
from apex import amp


def fit_in_full(net, optimizer, batches):
    for x, y in batches:
        optimizer.zero_grad()
        error = torch.nn.functional.l1_loss(net(x), y)
        error.backward()
        optimizer.step()


class Learner:
    def __init__(self, net, optimizer):
        self.net, self.optimizer = net, optimizer

    def learn(self, x, y):
        loss = torch.nn.functional.mse_loss(self.net(x), y)
        self.optimizer.zero_grad()
        self.descend(loss)
        self.optimizer.step()

    def descend(self, loss):
        loss.backward()


class MixedLearner(Learner):
    def __init__(self, net, optimizer):
        net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
        super().__init__(net, optimizer)

    def learn(self, x, y):
        loss = torch.nn.functional.mse_loss(self.net(x), y)
        self.optimizer.zero_grad()
        with amp.scale_loss(loss, self.optimizer) as scaled_loss:
            scaled_loss.backward()
        self.optimizer.step()
"""
_BESIDE = """
# file: learners.py
import torch


def fit_in_full(net, optimizer, batches):
    for x, y in batches:
        optimizer.zero_grad()
        error = torch.nn.functional.l1_loss(net(x), y)
        error.backward()
        optimizer.step()


class Learner:
    def __init__(self, net, optimizer):
        self.net, self.optimizer = net, optimizer

    def learn(self, x, y):
        loss = torch.nn.functional.mse_loss(self.net(x), y)
        self.optimizer.zero_grad()
        self.descend(loss)
        self.optimizer.step()

    def descend(self, loss):
        loss.backward()


class MixedLearner(Learner):
    def __init__(self, net, optimizer):
        super().__init__(net, optimizer)
        self.scaler = torch.cuda.amp.GradScaler()

    def learn(self, x, y):
        with torch.cuda.amp.autocast():
            loss = torch.nn.functional.mse_loss(self.net(x), y)
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
"""
_OWN = "    def learn(self, x, y):\n        loss = torch.nn.functional.mse_loss(self.net(x), y)\n"
_TOOLS = """
# file: tools.py
import torch
from apex import amp


class Clipping:
    def prepare(self, optimizer):
        self.norm = torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)

    def finish(self, optimizer):
        optimizer.step()


class Plain:
    def prepare(self, optimizer):
        self.norm = None

    def finish(self, optimizer):
        torch.nn.utils.clip_grad_value_(amp.master_params(optimizer), 0.5)
        optimizer.step()


class State:
    def __init__(self, net, optimizer, tool):
        self.net, self.optimizer = amp.initialize(net, optimizer, opt_level="O1")
        self.tool = tool


def turn(state, x, y):
    state.optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(state.net(x), y)
    with amp.scale_loss(loss, state.optimizer) as scaled_loss:
        scaled_loss.backward()
    state.tool.prepare(state.optimizer)
    tool = state.tool
    tool.finish(state.optimizer)


def run(tool, batches):
    net = torch.nn.Linear(4, 2)
    state = State(net, torch.optim.SGD(net.parameters(), lr=0.1), tool)
    for x, y in batches:
        turn(state, x, y)


def main(batches, clips):
    run(Clipping() if clips else Plain(), batches)
"""
_TOOLS_NATIVE = """
# file: tools.py
import torch


class Clipping:
    def prepare(self, optimizer, scaler):
        scaler.unscale_(optimizer)
        self.norm = torch.nn.utils.clip_grad_norm_([p for g in optimizer.param_groups for p in g["params"]], 1.0)

    def finish(self, optimizer, scaler):
        scaler.step(optimizer)
        scaler.update()


class Plain:
    def prepare(self, optimizer, scaler):
        self.norm = None

    def finish(self, optimizer, scaler):
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_value_([p for g in optimizer.param_groups for p in g["params"]], 0.5)
        scaler.step(optimizer)
        scaler.update()


class State:
    def __init__(self, net, optimizer, tool):
        self.net, self.optimizer = net, optimizer
        self.scaler = torch.cuda.amp.GradScaler()
        self.tool = tool


def turn(state, x, y):
    state.optimizer.zero_grad()
    with torch.cuda.amp.autocast():
        loss = torch.nn.functional.mse_loss(state.net(x), y)
    state.scaler.scale(loss).backward()
    state.tool.prepare(state.optimizer, state.scaler)
    tool = state.tool
    tool.finish(state.optimizer, state.scaler)


def run(tool, batches):
    net = torch.nn.Linear(4, 2)
    state = State(net, torch.optim.SGD(net.parameters(), lr=0.1), tool)
    for x, y in batches:
        turn(state, x, y)


def main(batches, clips):
    run(Clipping() if clips else Plain(), batches)
"""
_CAST = "with torch.cuda.amp.autocast():\n                loss ="
_MIGRATED = (
    _TRAINER.replace("from apex import amp\n", "")
    .replace("loss = torch", "with torch.cuda.amp.autocast():\n                loss = torch")
    .replace(
        "            self.clip()",
        "            self.scaler.unscale_(self.optimizer)\n            self.clip()",
    )
    .replace(
        "self.optimizer.step()",
        "self.scaler.step(self.optimizer)\n            self.scaler.update()",
    )
    .replace(
        'self.model, self.optimizer = amp.initialize(self.model, self.optimizer, opt_level="O1")',
        "self.scaler = torch.cuda.amp.GradScaler()",
    )
    .replace(
        "with amp.scale_loss(loss, self.optimizer) as scaled_loss:\n            scaled_loss.backward()",
        "self.scaler.scale(loss).backward()",
    )
    .replace("amp.master_params(self.optimizer)", "self.model.parameters()")
)
_BUILT = """
# file: train.py
import torch
from apex import amp


def build(width):
    net = torch.nn.Linear(4, width)
    return net, torch.optim.SGD(net.parameters(), lr=0.1)


def set_up(net, optimizer):
    net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
    return net, optimizer


class Trainer:
    def __init__(self):
        net, optimizer = build(2)
        net, optimizer = set_up(net, optimizer)
        self.net, self.optimizer = net, optimizer

    def train(self, batches):
        for x, y in batches:
            self.optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(self.net(x), y)
            with amp.scale_loss(loss, self.optimizer) as scaled_loss:
                scaled_loss.backward()
            self.optimizer.step()


Trainer().train([(torch.randn(3, 4), torch.randn(3, 2))] * 4)
"""
_SET_UP = (
    _BUILT.replace("from apex import amp\n", "")
    .replace(
        'net, optimizer = amp.initialize(net, optimizer, opt_level="O1")\n    return net, optimizer',
        "scaler = torch.cuda.amp.GradScaler()\n    return net, optimizer, scaler",
    )
    .replace("net, optimizer = set_up(", "net, optimizer, self.scaler = set_up(")
    .replace("loss = torch", "with torch.cuda.amp.autocast():\n                loss = torch")
    .replace(
        "with amp.scale_loss(loss, self.optimizer) as scaled_loss:\n                scaled_loss.backward()",
        "self.scaler.scale(loss).backward()",
    )
    .replace(
        "self.optimizer.step()",
        "self.scaler.step(self.optimizer)\n            self.scaler.update()",
    )
)
_UNCALLED = """
# file: train.py
import torch
from apex import amp


def describe(net, optimizer, batches):
    for x, y in batches:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()


def build():
    net = torch.nn.Linear(4, 2)
    return amp.initialize(net, torch.optim.SGD(net.parameters(), lr=0.1), opt_level="O1")


net, optimizer = build()
"""
_TAKES = (
    _UNCALLED.replace("from apex import amp\n", "")
    .replace("(net, optimizer, batches)", "(net, optimizer, batches, scaler)")
    .replace("loss = torch", "with torch.cuda.amp.autocast():\n            loss = torch")
    .replace(
        "with amp.scale_loss(loss, optimizer) as scaled_loss:\n            scaled_loss.backward()",
        "scaler.scale(loss).backward()",
    )
    .replace("optimizer.step()", "scaler.step(optimizer)\n        scaler.update()")
    .replace(
        'return amp.initialize(net, torch.optim.SGD(net.parameters(), lr=0.1), opt_level="O1")',
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "    return net, optimizer, torch.cuda.amp.GradScaler()",
    )
    .replace("net, optimizer = build()", "net, optimizer, scaler = build()")
)
BASES_AND_MIXINS = (
    Training(
        "a mixin before the base whose backward and weights it says otherwise",
        files(_TRAINER),
        files(_MIGRATED),
        {
            "unscaled once more by the mixin": (
                (
                    "        return self.model.parameters()\n\n\nclass MixedTrainer",
                    "        self.scaler.unscale_(self.optimizer)\n        return self.model.parameters()\n\n\nclass MixedTrainer",
                ),
            ),
            "clipped on scaled gradients": (
                ("            self.scaler.unscale_(self.optimizer)\n", ""),
            ),
            "a plain loss": (("self.scaler.scale(loss).backward()", "loss.backward()"),),
            "not cast": ((_CAST, "if True:\n                loss ="),),
        },
    ),
    Training(
        "a network and its optimizer unpacked again of what sets up AMP",
        files(_BUILT),
        files(_SET_UP),
        {
            "built again": (
                ("self.scaler = set_up(net, optimizer)", "self.scaler = (*build(2), None)"),
            ),
            "of another width": (("build(2)", "build(3)"),),
        },
    ),
    Training(
        "a function that nothing calls takes the scaler",
        files(_UNCALLED),
        files(_TAKES),
        {
            "never updated": (("        scaler.update()\n", ""),),
            "saved on the way": (
                ("        scaler.update()\n", "        scaler.update()\n        scaler.save()\n"),
            ),
        },
    ),
    Training(
        "what trains without Apex, and nothing in sight calls",
        files(_PLAIN),
        files(_BESIDE),
        {
            "the base is cast": (
                (
                    _OWN,
                    _OWN.replace(
                        "        loss", "        with torch.cuda.amp.autocast():\n            loss"
                    ),
                ),
            ),
            "the function is cast": (
                (
                    "        error = torch",
                    "        with torch.cuda.amp.autocast():\n            error = torch",
                ),
            ),
        },
    ),
    Training(
        "an object by its path and by a variable",
        files(_TOOLS),
        files(_TOOLS_NATIVE),
        {
            "unscaled by both methods of one": (
                (
                    "        self.norm = None",
                    "        scaler.unscale_(optimizer)\n        self.norm = None",
                ),
            ),
            "unscaled by neither of one": (
                ("        scaler.unscale_(optimizer)\n        self.norm", "        self.norm"),
            ),
        },
    ),
)
