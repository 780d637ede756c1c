"""Evaluations by code of the project: callbacks, predictors, contexts, methods of the network. Each must be seen to lose its casts."""

from __future__ import annotations

from check.casts.forwards import CALL, IMPORTS, evaluated
from check.trainings.planted import Training

_OF_THE_PROJECT = {
    "a callback that is looked up": (
        "class Hooks:\n    def ended(self, model, x):\n        return model(x)\n",
        "return model(x)",
        ("for moment in ('ended',):", "    out = getattr(Hooks(), moment)(model, x)"),
    ),
    "a lambda, where a function may run as well": (
        "def twice(model, x):\n    return model(x) + model(x)\n\ndef ask(predict, model, x):\n    return predict(model, x)\n",
        "return predict(model, x)",
        ("out = ask(lambda m, a: m(a), model, x)", "out = out + ask(twice, model, x)"),
    ),
    "what a context hands out": (
        "class Held:\n    def __init__(self, model):\n        self.model = model\n\n    def __enter__(self):\n        return self.model\n\n"
        "    def __exit__(self, *error):\n        pass\n\ndef ask(model, x):\n    with Held(model) as net:\n        return net(x)\n",
        "return net(x)",
        ("out = ask(model, x)",),
    ),
}


def _of_the_project(name: str, code: str, run: str, lines: tuple[str, ...]) -> Training:
    """Return a training whose evaluation casts in a helper of the project."""
    sound = evaluated(name, lines)
    plain, lost = next(edits[0] for edits in sound.faults.values())
    before, after = (
        {n: t.replace(IMPORTS, IMPORTS + code) for n, t in each.items()}
        for each in (sound.before, sound.after)
    )
    indent = " " * (code.index(run) - code.rindex("\n", 0, code.index(run)) - 1)
    cast = f"{indent}with torch.cuda.amp.autocast():\n{indent}    {run}"
    for n, text in after.items():
        after[n] = text.replace(plain, lost).replace(f"{indent}{run}", cast)
    return Training(sound.name, before, after, {"the casts are lost": ((cast, f"{indent}{run}"),)})


def _by_parts() -> Training:
    """Return a training whose evaluation runs a method of the network that its forward runs as well."""
    parts = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.out = nn.Linear(4, 2)\n\n"
        "    def step(self, x):\n        return self.out(x), 1\n\n"
        "    def forward(self, x):\n        return self.step(x)[0]\n"
    )
    sound = evaluated("a method of its own", ("out, _ = model.step(x)",))
    call = CALL.replace("nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1))", "Net()")
    texts = (
        {
            name: text.replace(IMPORTS, IMPORTS + parts).replace(CALL, call)
            for name, text in each.items()
        }
        for each in (sound.before, sound.after)
    )
    return Training(sound.name, *texts, sound.faults)


_ASKED_BEFORE = """import sys
import torch
from apex import amp

def train(args, model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if args.half:
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x in loader:
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        if args.half:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        optimizer.step()

def score(args, model, loader):
    with torch.no_grad():
        return [model(x).sum().item() for x in loader]

def main(args, model, loader):
    if args.train:
        train(args, model, loader)
    print(score(args, model, loader))
"""
_ASKED_AFTER = """import sys
import torch

def train(args, model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=args.half)
    for x in loader:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast(enabled=args.half):
            loss = model(x).pow(2).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

def score(args, model, loader):
    with torch.no_grad(), torch.cuda.amp.autocast(enabled=args.train and args.half):
        return [model(x).sum().item() for x in loader]

def main(args, model, loader):
    if args.train:
        train(args, model, loader)
    print(score(args, model, loader))
"""
_ASKED = Training(
    "evaluated in runs that need not have trained",
    {"train.py": _ASKED_BEFORE},
    {"train.py": _ASKED_AFTER},
    {
        "cast without a training": (("enabled=args.train and args.half", "enabled=args.half"),),
        "not cast behind a training": (
            (", torch.cuda.amp.autocast(enabled=args.train and args.half)", ""),
        ),
    },
)

_WRITTEN_BEFORE = """import torch
from apex import amp

class Writer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.out = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.out(x)

    def write(self, x):
        for _ in range(3):
            x = self.forward(x)
        return x

class Trainer:
    def __init__(self, args):
        self.args = args
        self.model = Writer()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        if args.level >= 0:
            self.prepare()

    def prepare(self):
        self.model, self.optimizer = amp.initialize(
            self.model, self.optimizer, opt_level="O%d" % self.args.level
        )

    def step(self, x):
        with torch.no_grad():
            y = self.model.write(x)
        self.optimizer.zero_grad()
        loss = (self.model(y) - x).pow(2).mean()
        if self.args.level == -1:
            loss.backward()
        else:
            with amp.scale_loss(loss, self.optimizer) as scaled:
                scaled.backward()
        self.optimizer.step()

class Judge:
    def __init__(self, trainer):
        self.model = trainer.model

    def judge(self, x):
        with torch.no_grad():
            return self.model.write(x)

def main(args, loader):
    trainer = Trainer(args)
    judge = Judge(trainer)
    for x in loader:
        trainer.step(x)
        print(judge.judge(x))

"""
_WRITTEN_AFTER = """import torch

class Writer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.out = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.out(x)

    def write(self, x):
        for _ in range(3):
            x = self.forward(x)
        return x

class Trainer:
    def __init__(self, args):
        self.scaler = torch.cuda.amp.GradScaler(enabled=False)
        self.args = args
        self.model = Writer()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        if args.level >= 0:
            self.prepare()

    def prepare(self):
        self.scaler = torch.cuda.amp.GradScaler(enabled=("O%d" % self.args.level) != "O0")

    def step(self, x):
        with torch.no_grad(), torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):
            y = self.model.write(x)
        self.optimizer.zero_grad()
        with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):
            loss = (self.model(y) - x).pow(2).mean()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()

class Judge:
    def __init__(self, trainer):
        self.model = trainer.model

    def judge(self, x):
        with torch.no_grad():
            return self.model.write(x)

def main(args, loader):
    trainer = Trainer(args)
    judge = Judge(trainer)
    for x in loader:
        trainer.step(x)
        print(judge.judge(x))

"""
# The evaluation is not cast, which a rule says; what it shares with the training is cast there alone.
_WRITTEN = Training(
    "a method of the network for a training and for an evaluation that a rule leaves",
    {"train.py": _WRITTEN_BEFORE},
    {"train.py": _WRITTEN_AFTER},
    {
        "not cast in the training": (
            (
                "torch.no_grad(), torch.cuda.amp.autocast(enabled=self.scaler.is_enabled())",
                "torch.no_grad()",
            ),
        ),
        "cast off in the training": (
            (
                "torch.no_grad(), torch.cuda.amp.autocast(enabled=self.scaler.is_enabled())",
                "torch.no_grad(), torch.cuda.amp.autocast(enabled=False)",
            ),
        ),
    },
    (("AMP107", "train.py", 48, 48, True),),
)

ROUNDABOUT = (
    _ASKED,
    _by_parts(),
    _WRITTEN,
    *(_of_the_project(name, *item) for name, item in _OF_THE_PROJECT.items()),
)
