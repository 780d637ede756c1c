"""A GradScaler is made by the flag that Apex asked for, at the time when it did."""

from __future__ import annotations

from check.trainings.planted import Training, files

_GUARD_BEFORE = """
# file: train.py
import argparse
import torch
import torch.nn.functional as F
from apex import amp


def main(args):
    model = torch.nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    start = 0
    if args.resume:
        state = torch.load(args.resume)
        args.fp16 = state["fp16"]
        start = state["epoch"]
    if args.fp16:
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for epoch in range(start, 9):
        x, y = torch.randn(3, 4).cuda(), torch.randint(2, (3,)).cuda()
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        if args.fp16:
            with amp.scale_loss(loss, optimizer) as scaled:
                scaled.backward()
        else:
            loss.backward()
        optimizer.step()
"""
_GUARD_AFTER = """
# file: train.py
import argparse
import torch
import torch.nn.functional as F


def main(args):
    model = torch.nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    start = 0
    if args.resume:
        state = torch.load(args.resume)
        args.fp16 = state["fp16"]
        start = state["epoch"]
    scaler = torch.cuda.amp.GradScaler(enabled=args.fp16)
    for epoch in range(start, 9):
        x, y = torch.randn(3, 4).cuda(), torch.randint(2, (3,)).cuda()
        with torch.cuda.amp.autocast(enabled=args.fp16):
            loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
"""
_OBJECT_BEFORE = """
# file: trainer.py
import argparse
import torch
import torch.nn.functional as F
from apex import amp


class Trainer:
    def __init__(self, model, half):
        self.model = model
        self.half = half
        self.optimizer = None

    def prepare(self):
        self.half = self.half and torch.cuda.is_available()
        self.optimizer = torch.optim.Adam(self.model.parameters())
        if self.half:
            self.model, self.optimizer = amp.initialize(self.model, self.optimizer, opt_level="O1")

    def learn(self, x, y):
        loss = F.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        if self.half:
            with amp.scale_loss(loss, self.optimizer) as scaled:
                scaled.backward()
        else:
            loss.backward()
        self.optimizer.step()

# file: main.py
import torch
from trainer import Trainer

trainer = Trainer(torch.nn.Linear(4, 2), True)
trainer.prepare()
for _ in range(5):
    trainer.learn(torch.randn(3, 4), torch.randint(2, (3,)))
"""
_OBJECT_AFTER = """
# file: trainer.py
import argparse
import torch
import torch.nn.functional as F


class Trainer:
    def __init__(self, model, half):
        self.model = model
        self.half = half
        self.optimizer = None

    def prepare(self):
        self.half = self.half and torch.cuda.is_available()
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.scaler = torch.cuda.amp.GradScaler(enabled=self.half)

    def learn(self, x, y):
        with torch.cuda.amp.autocast(enabled=self.half):
            loss = F.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()

# file: main.py
import torch
from trainer import Trainer

trainer = Trainer(torch.nn.Linear(4, 2), True)
trainer.prepare()
for _ in range(5):
    trainer.learn(torch.randn(3, 4), torch.randint(2, (3,)))
"""
_SCALE_BEFORE = """
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp


class Learner:
    def __init__(self, options, model):
        self.options = options
        self.scale = None
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        if options.half:
            self.scale = options.static or 128.0
            self.model, self.optimizer = amp.initialize(model, self.optimizer, opt_level="O1", loss_scale=self.scale)

    def learn(self, x, y):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        if self.options.half:
            with amp.scale_loss(loss, self.optimizer) as scaled:
                scaled.backward()
        else:
            loss.backward()
        self.optimizer.step()
"""
_MADE_FIRST = """
        if self.scale is None:
            self.scaler = torch.cuda.amp.GradScaler(enabled=options.half)
        else:
            self.scaler = torch.cuda.amp.GradScaler(
                init_scale=float(self.scale), growth_interval=2**31 - 1, backoff_factor=1 - 2**-30, enabled=options.half
            )
"""
_MADE_IN_GUARD = """
            self.scaler = torch.cuda.amp.GradScaler(
                init_scale=self.scale, growth_interval=2**31 - 1, backoff_factor=1 - 2**-30
            )
"""
_SCALE_AFTER = f"""
# file: train.py
import torch
import torch.nn.functional as F


class Learner:
    def __init__(self, options, model):
        self.scaler = torch.cuda.amp.GradScaler(enabled=False)
        self.options = options
        self.scale = None
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        if options.half:
            self.scale = options.static or 128.0{_MADE_IN_GUARD}
    def learn(self, x, y):
        self.optimizer.zero_grad()
        with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):
            loss = F.cross_entropy(self.model(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
"""
_BY_NAME = [
    (
        "            self.scale = options.static or 128.0",
        '            setattr(self, "scale", options.static or 128.0)',
    )
]
_BY_ANY_NAME = [
    (
        "            self.scale = options.static or 128.0",
        '            for name in ("scale", "level"):\n                setattr(self, name, options.static or 128.0)',
    )
]
_BY_MAPPING = [
    (
        "            self.scale = options.static or 128.0",
        '            self.__dict__["scale"] = options.static or 128.0',
    )
]
_BY_PROPERTY = [
    (
        "            self.scale = options.static or 128.0",
        "            self.static = options.static or 128.0",
    ),
    ("        self.scale = None\n", "        self.static = None\n"),
    (
        "    def learn(",
        "    @property\n    def scale(self):\n        return self.static\n\n    def learn(",
    ),
]
_BY_HELPER = [
    *_BY_PROPERTY[:2],
    (
        "    def learn(",
        "    def asked(self):\n        return self.static\n\n    def learn(",
    ),
    ("self.scale)", "self.asked())"),
    ("=self.scale,", "=self.asked(),"),
    ("self.scale is", "self.asked() is"),
]


def _spelt(text: str, edits: list[tuple[str, str]]) -> str:
    for old, new in edits:
        text = text.replace(old, new)
    return text


_ONCE_BEFORE = """
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp


class Trainer:
    def __init__(self, net):
        self.net = net
        self.ready = False

    def ensure(self):
        if self.ready:
            return
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.net, self.opt = amp.initialize(self.net, self.opt, opt_level="O1")
        self.ready = True

    def fit(self):
        for _ in range(3):
            self.ensure()
            loss = F.mse_loss(self.net(torch.randn(3, 4)), torch.randn(3, 3))
            self.opt.zero_grad()
            with amp.scale_loss(loss, self.opt) as scaled_loss:
                scaled_loss.backward()
            self.opt.step()
            print(repr(loss.item()))


torch.manual_seed(1)
trainer = Trainer(torch.nn.Linear(4, 3))
trainer.fit()
"""
_ONCE_AFTER = """
# file: train.py
import torch
import torch.nn.functional as F


class Trainer:
    def __init__(self, net):
        self.scaler = torch.cuda.amp.GradScaler(enabled=False)
        self.net = net
        self.ready = False

    def ensure(self):
        if self.ready:
            return
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.scaler = torch.cuda.amp.GradScaler()
        self.ready = True

    def fit(self):
        for _ in range(3):
            self.ensure()
            with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):
                loss = F.mse_loss(self.net(torch.randn(3, 4)), torch.randn(3, 3))
            self.opt.zero_grad()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.opt)
            self.scaler.update()
            print(repr(loss.item()))


torch.manual_seed(1)
trainer = Trainer(torch.nn.Linear(4, 3))
trainer.fit()
"""
_ONCE_MADE = "        self.scaler = torch.cuda.amp.GradScaler()\n"
_OPTIONS_BEFORE = """
# file: options.py
HALF = False
LEVEL = "O1"

# file: engine.py
import torch
import torch.nn.functional as F
from apex import amp
import options


def build(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if options.HALF:
        model, optimizer = amp.initialize(model, optimizer, opt_level=options.LEVEL)
    return model, optimizer


def learn(model, optimizer, x, y):
    loss = F.mse_loss(model(x), y)
    optimizer.zero_grad()
    if options.HALF:
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
    else:
        loss.backward()
    optimizer.step()

# file: main.py
import sys
import torch
import options
import engine

options.HALF = "--half" in sys.argv
model, optimizer = engine.build(torch.nn.Linear(4, 4))
for _ in range(9):
    engine.learn(model, optimizer, torch.randn(2, 4), torch.randn(2, 4))
"""
_OPTIONS_AFTER = """
# file: options.py
HALF = False
LEVEL = "O1"

# file: engine.py
import torch
import torch.nn.functional as F
import options


def build(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=options.HALF and options.LEVEL != "O0")
    return model, optimizer, scaler


def learn(model, optimizer, x, y, scaler):
    with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):
        loss = F.mse_loss(model(x), y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()

# file: main.py
import sys
import torch
import options
import engine

options.HALF = "--half" in sys.argv
model, optimizer, scaler = engine.build(torch.nn.Linear(4, 4))
for _ in range(9):
    engine.learn(model, optimizer, torch.randn(2, 4), torch.randn(2, 4), scaler)
"""
_STAGES_BEFORE = """
# file: train.py
import argparse
import torch
import torch.nn.functional as F
from apex import amp


def train(model, loader, half):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for stage in ("warm", "main"):
        half = stage == "main" and half
        if half:
            model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            if half:
                with amp.scale_loss(loss, optimizer) as scaled:
                    scaled.backward()
            else:
                loss.backward()
            optimizer.step()
"""
_STAGES_AFTER = """
# file: train.py
import argparse
import torch
import torch.nn.functional as F


scaler = torch.cuda.amp.GradScaler(enabled=False)


def train(model, loader, half):
    global scaler
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for stage in ("warm", "main"):
        half = stage == "main" and half
        if half:
            scaler = torch.cuda.amp.GradScaler()
        for x, y in loader:
            optimizer.zero_grad()
            with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
"""
_LEVEL_BEFORE = """
# file: train.py
import argparse
import torch
import torch.nn.functional as F
from apex import amp


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--opt_level", default="O1")
    parser.add_argument("--cpu", action="store_true")
    args = parser.parse_args()
    model = torch.nn.Linear(4, 2)
    if args.cpu:
        args.opt_level = "O0"
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level=args.opt_level)
    for _ in range(9):
        loss = F.cross_entropy(model(torch.randn(3, 4)), torch.randint(2, (3,)))
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()


main()
"""
_LEVEL_AFTER = """
# file: train.py
import argparse
import torch
import torch.nn.functional as F


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--opt_level", default="O1")
    parser.add_argument("--cpu", action="store_true")
    args = parser.parse_args()
    model = torch.nn.Linear(4, 2)
    if args.cpu:
        args.opt_level = "O0"
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=args.opt_level != "O0")
    for _ in range(9):
        with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):
            loss = F.cross_entropy(model(torch.randn(3, 4)), torch.randint(2, (3,)))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


main()
"""
_HELPER_BEFORE = """
# file: flags.py
def settle(args):
    if args.local_rank == -1 and not args.cuda:
        args.fp16 = False
    return args

# file: train.py
import argparse
import torch
import torch.nn.functional as F
from apex import amp

from flags import settle


def main(args, model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    settle(args)
    if args.fp16:
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        if args.fp16:
            with amp.scale_loss(loss, optimizer) as scaled:
                scaled.backward()
        else:
            loss.backward()
        optimizer.step()
"""
_HELPER_AFTER = """
# file: flags.py
def settle(args):
    if args.local_rank == -1 and not args.cuda:
        args.fp16 = False
    return args

# file: train.py
import argparse
import torch
import torch.nn.functional as F

from flags import settle


def main(args, model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    settle(args)
    scaler = torch.cuda.amp.GradScaler(enabled=args.fp16)
    for x, y in loader:
        with torch.cuda.amp.autocast(enabled=args.fp16):
            loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
"""
_BASE_BEFORE = """
# file: train.py
import argparse
import torch
import torch.nn.functional as F
from apex import amp


class Base:
    def __init__(self, config):
        self.config = config
        self.use_amp = config.get("amp", False)


class Learner(Base):
    def __init__(self, config, model):
        super().__init__(config)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        if config["device"] == "cpu":
            self.use_amp = False
        if self.use_amp:
            model, self.optimizer = amp.initialize(model, self.optimizer, opt_level="O1")
        self.model = model

    def fit(self, loader):
        for x, y in loader:
            loss = F.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            if self.use_amp:
                with amp.scale_loss(loss, self.optimizer) as scaled:
                    scaled.backward()
            else:
                loss.backward()
            self.optimizer.step()
"""
_BASE_AFTER = """
# file: train.py
import argparse
import torch
import torch.nn.functional as F


class Base:
    def __init__(self, config):
        self.config = config
        self.use_amp = config.get("amp", False)


class Learner(Base):
    def __init__(self, config, model):
        super().__init__(config)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        if config["device"] == "cpu":
            self.use_amp = False
        self.scaler = torch.cuda.amp.GradScaler(enabled=self.use_amp)
        self.model = model

    def fit(self, loader):
        for x, y in loader:
            with torch.cuda.amp.autocast(enabled=self.use_amp):
                loss = F.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
"""

_CLEARED_BEFORE = """
# file: run.py
import torch
import torch.nn.functional as F
from apex import amp


class Run:
    def __init__(self, settings):
        self.settings = settings
        self.model = torch.nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        if settings["half"]:
            self.model, self.optimizer = amp.initialize(self.model, self.optimizer, opt_level="O1")
        self.half = settings["half"]
        settings["half"] = False
        self.batches = list(settings["batches"])

    def go(self):
        for x, y in self.batches:
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.model(x), y)
            if self.half:
                with amp.scale_loss(loss, self.optimizer) as scaled_loss:
                    scaled_loss.backward()
            else:
                loss.backward()
            self.optimizer.step()
"""
_CLEARED_AFTER = """
# file: run.py
import torch
import torch.nn.functional as F


class Run:
    def __init__(self, settings):
        self.settings = settings
        self.model = torch.nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.scaler = torch.cuda.amp.GradScaler(enabled=settings["half"])
        self.half = settings["half"]
        settings["half"] = False
        self.batches = list(settings["batches"])

    def go(self):
        for x, y in self.batches:
            self.optimizer.zero_grad()
            with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):
                loss = F.cross_entropy(self.model(x), y)
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
"""


def _training(name: str, before: str, after: str, **faults: list[tuple[str, str]]) -> Training:
    table = {fault.replace("_", " "): tuple(edits) for fault, edits in faults.items()}
    return Training(name, files(before), files(after), table)


_GUARD_MADE = "    scaler = torch.cuda.amp.GradScaler(enabled=args.fp16)\n"
_ABOVE_RESUME = "    start = 0\n"
_MADE = "        self.scaler = torch.cuda.amp.GradScaler(enabled=self.half)\n"
_HALF = "        self.half = half\n"
_TAKES = '        self.use_amp = config.get("amp", False)\n'
_OF_BASE = "        self.scaler = torch.cuda.amp.GradScaler(enabled=self.use_amp)\n"
_OF_ITEM = '        self.scaler = torch.cuda.amp.GradScaler(enabled=settings["half"])\n'
_BATCHES = '        self.batches = list(settings["batches"])\n'

ANEW = (
    _training(
        "a flag of a checkpoint",
        _GUARD_BEFORE,
        _GUARD_AFTER,
        made_above_the_checkpoint=[(_GUARD_MADE, ""), (_ABOVE_RESUME, _ABOVE_RESUME + _GUARD_MADE)],
    ),
    _training(
        "a flag that a method narrows",
        _OBJECT_BEFORE,
        _OBJECT_AFTER,
        made_by_the_parameter_of_the_constructor=[
            (_MADE, ""),
            (_HALF, _HALF + _MADE.replace("self.half", "half")),
        ],
        made_by_the_attribute_in_the_constructor=[(_MADE, ""), (_HALF, _HALF + _MADE)],
    ),
    _training(
        "a switch of a module of options",
        _OPTIONS_BEFORE,
        _OPTIONS_AFTER,
        made_where_the_file_is_imported=[
            ("    scaler = torch", "    unused = torch"),
            (
                "import options\n\n\ndef build",
                "import options\n\nscaler = torch.cuda.amp.GradScaler(enabled=options.HALF)\n\n\ndef build",
            ),
        ],
    ),
    _training(
        "a flag of each stage",
        _STAGES_BEFORE,
        _STAGES_AFTER,
        made_above_the_stages=[
            ("    global scaler\n", "    scaler = torch.cuda.amp.GradScaler(enabled=half)\n"),
            ("        if half:\n            scaler = torch.cuda.amp.GradScaler()\n", ""),
        ],
    ),
    _training(
        "a level that an option lowers",
        _LEVEL_BEFORE,
        _LEVEL_AFTER,
        made_by_the_level_before=[
            ('    scaler = torch.cuda.amp.GradScaler(enabled=args.opt_level != "O0")\n', ""),
            (
                "    if args.cpu:\n",
                '    scaler = torch.cuda.amp.GradScaler(enabled=args.opt_level != "O0")\n    if args.cpu:\n',
            ),
        ],
    ),
    _training(
        "a loss scale that is set under the test around the initialize",
        _SCALE_BEFORE,
        _SCALE_AFTER,
        made_in_front_of_the_test=[
            (_MADE_IN_GUARD, "\n"),
            ("        if options.half:\n", _MADE_FIRST[1:] + "        if options.half:\n"),
        ],
    ),
    *(
        _training(
            f"a loss scale that is {how} under the test around the initialize",
            _spelt(_SCALE_BEFORE, edits),
            _spelt(_SCALE_AFTER, edits),
            made_in_front_of_the_test=[
                (_spelt(_MADE_IN_GUARD, edits), "\n"),
                (
                    "        if options.half:\n",
                    _spelt(_MADE_FIRST[1:], edits) + "        if options.half:\n",
                ),
            ],
        )
        for how, edits in (
            ("set by its name", _BY_NAME),
            ("set by a name of several", _BY_ANY_NAME),
            ("put into the attributes", _BY_MAPPING),
            ("behind a property and set", _BY_PROPERTY),
            ("given by a method and set", _BY_HELPER),
        )
    ),
    _training(
        "a method that returns where it initialized before",
        _ONCE_BEFORE,
        _ONCE_AFTER,
        made_in_front_of_the_return=[
            (_ONCE_MADE, ""),
            (
                "        if self.ready:\n",
                "        self.scaler = torch.cuda.amp.GradScaler(enabled=not self.ready)\n        if self.ready:\n",
            ),
        ],
    ),
    _training(
        "a helper of another file that clears the flag",
        _HELPER_BEFORE,
        _HELPER_AFTER,
        made_above_the_helper=[
            (_GUARD_MADE, ""),
            ("    settle(args)\n", _GUARD_MADE + "    settle(args)\n"),
        ],
    ),
    _training(
        "an item that is cleared once Apex asked for it",
        _CLEARED_BEFORE,
        _CLEARED_AFTER,
        made_below=[(_OF_ITEM, ""), (_BATCHES, _OF_ITEM + _BATCHES)],
    ),
    _training(
        "a flag that a subclass clears",
        _BASE_BEFORE,
        _BASE_AFTER,
        made_by_the_base=[(_OF_BASE, ""), (_TAKES, _TAKES + _OF_BASE)],
        made_above_the_test=[
            (_OF_BASE, ""),
            ("        if config[", _OF_BASE + "        if config["),
        ],
    ),
)
