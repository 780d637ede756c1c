"""Evaluations that run their network in roundabout ways: each must be seen to lose its casts."""

from __future__ import annotations

from check.trainings.planted import Training

IMPORTS = """import copy
from functools import partial, reduce
from itertools import starmap
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
"""
_CAST = "        with torch.cuda.amp.autocast():\n"
_BEFORE = """
def train(model, loader, kept):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept["network"] = model
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x in loader:
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
    with torch.no_grad():
"""
_AFTER = """
def train(model, loader, kept):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept["network"] = model
    scaler = torch.cuda.amp.GradScaler()
    for x in loader:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = model(x).pow(2).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    with torch.no_grad():
"""
CALL = """

train(nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1)), [torch.randn(8, 4)], {})
"""
_WAYS = {
    "an item of a dictionary": ('out = kept["network"](x)',),
    "a partial": ("go = partial(model, x)", "out = go()"),
    "a partial that is called at once": ("out = partial(model, x)()",),
    "its forward under another name": ("forward = model.forward", "out = forward(x)"),
    "a lambda": ("go = lambda: model(x)", "out = go()"),
    "a lambda in a dictionary": ('table = {"go": lambda a: model(a)}', 'out = table["go"](x)'),
    "a loop until its iterator is used up": (
        "rest = iter([x])",
        "while True:",
        "    try:",
        "        out = model(next(rest))",
        "    except StopIteration:",
        "        break",
        "out = model(out[:, :4].repeat(1, 4))",
    ),
    "a map": ("out = torch.cat(list(map(model, [x])))",),
    "a checkpoint": ("out = checkpoint(model, x)",),
    "data_parallel": ("out = nn.parallel.data_parallel(model, x)",),
    "a functional call": ("out = torch.func.functional_call(model, {}, (x,))",),
    "its layers, one by one": ("out = model[1](model[0](x))",),
    "its children, one after the other": (
        "out = x",
        "for layer in model.children():",
        "    out = layer(out)",
    ),
    "a fold over its layers": ("out = reduce(lambda h, layer: layer(h), model, x)",),
    "vmap": ("out = torch.vmap(model)(x)",),
    "an assignment in brackets": ("out = (network := model)(x)",),
    "one of two": ("out = (model if x.sum() > 0 else copy.deepcopy(model))(x)",),
}


def evaluated(name: str, lines: tuple[str, ...]) -> Training:
    """Return a training that evaluates by some lines, which a block of casts holds in what was written."""
    plain = "".join(f"        {line}\n" for line in lines)
    cast = _CAST + "".join(f"            {line}\n" for line in lines)
    printed = "        print(out.mean().item())\n"
    before = f"{IMPORTS}from apex import amp\n{_BEFORE}{plain}{printed}{CALL}"
    after = f"{IMPORTS}\n{_AFTER}{cast}{printed}{CALL}"
    fault = {"the casts are lost": ((cast, plain),)}
    return Training(f"evaluated by {name}", {"train.py": before}, {"train.py": after}, fault)


_HANDED = {
    "an engine": (
        "from ignite.engine import Engine",
        "engine, x",
        "Engine(answer).run(loader)",
    ),
    "the end of the program": ("import atexit", "x=None", "atexit.register(answer)"),
    "a signal": ("import signal", "x, frame", "signal.signal(signal.SIGUSR1, handler=answer)"),
}


def _handed(name: str, imported: str, parameters: str, handing: str) -> Training:
    """Return a training that hands an evaluation to a library, which runs it."""
    head = f"def answer({parameters}):\n    "
    run = "with torch.no_grad():\n        print(model(torch.as_tensor(x)))\n"
    cast = run.replace("no_grad()", "no_grad(), torch.cuda.amp.autocast()")
    texts = []
    for text, body in ((f"from apex import amp\n{_BEFORE}", run), (_AFTER, cast)):
        lines = text.replace("    with torch.no_grad():\n", "").splitlines()
        made = next(k for k, line in enumerate(lines) if "initialize" in line or "Scaler(" in line)
        inner = [f"    {line}" for line in (head + body).splitlines()] + [f"    {handing}"]
        texts.append(
            "\n".join([IMPORTS + imported, *lines[: made + 1], *inner, *lines[made + 1 :]]) + "\n"
        )
    fault = {"the casts are lost": ((", torch.cuda.amp.autocast()", ""),)}
    return Training(f"evaluated by {name}", {"train.py": texts[0]}, {"train.py": texts[1]}, fault)


def _given(name: str, method: str, handing: str) -> Training:
    """Return a training that gives a loader an object, which runs the network when the loader is gone through."""
    run = "        with torch.no_grad():\n            return self.model(x)\n"
    cast = run.replace("no_grad()", "no_grad(), torch.cuda.amp.autocast()")
    head = "class Encoded:\n    def __init__(self, model):\n        self.model = model\n\n"
    texts = []
    for text, body in ((f"from apex import amp\n{_BEFORE}", run), (_AFTER, cast)):
        own = f"{head}{method}{body}\n"
        ended = text.replace("    with torch.no_grad():\n", f"    {handing}\n")
        texts.append(f"{IMPORTS}from torch.utils.data import DataLoader\n{own}{ended}")
    fault = {"the casts are lost": ((", torch.cuda.amp.autocast()", ""),)}
    return Training(f"evaluated by {name}", {"train.py": texts[0]}, {"train.py": texts[1]}, fault)


_LATER = {
    "a lambda": _WAYS["a lambda"],
    "a generator expression": ("later = (model(a) for a in [x])", "out = sum(later)"),
    "a map": ("later = map(model, [x])", "out = torch.cat(list(later))"),
    "a starmap": ("later = starmap(model, [(x,)])", "out = torch.cat(tuple(later))"),
    "a map of a lambda": ("later = map(lambda a: model(a), [x])", "out = next(later)"),
    "iterators in one another": ("later = enumerate(zip([0], map(model, [x])))", "out = [*later][0][1][1]"),
    "a filter of two names": ("later = other = iter(model(a) for a in [x])", "out = next(other)"),
}  # fmt: skip


def _made_aside(name: str, made: str, used: str) -> Training:
    """Return a training whose evaluation is made under autocast, and runs outside of it."""
    sound = evaluated(f"{name} made aside", (made, used))
    cast = next(edits[0][0] for edits in sound.faults.values())
    aside = f"{_CAST}            {made}\n        {used}\n"
    faults = {"the casts are where it is made": ((cast, aside),)}
    return Training(sound.name, sound.before, sound.after, faults)


def _twice() -> Training:
    """Return a training that evaluates by one function, before it initializes and behind it."""
    head = "def score(model, x):\n    with torch.no_grad():\n        return model(x).sum()\n"
    texts = []
    for text, cast in ((_BEFORE, ""), (_AFTER, "with torch.cuda.amp.autocast():\n            ")):
        body = text.replace("    with torch.no_grad():\n", f"    {cast}print(score(model, x))\n")
        body = body.replace("            print", "        print")
        made = "    model, optimizer = amp" if text is _BEFORE else "    scaler ="
        body = body.replace(made, f"    print(score(model, loader[0]))\n{made}")
        head_of = "from apex import amp\n" if text is _BEFORE else ""
        texts.append(f"{IMPORTS}{head_of}\n{head}{body}{CALL}")
    cast_inside = (
        (
            "        return model(x).sum()",
            "        with torch.cuda.amp.autocast():\n            return model(x).sum()",
        ),
    )
    lost = (("    with torch.cuda.amp.autocast():\n        print(score", "    print(score"),)
    faults = {"the first one is cast too": cast_inside, "the casts are lost": lost}
    return Training(
        "evaluated before and behind it", {"train.py": texts[0]}, {"train.py": texts[1]}, faults
    )


_LIBRARY = """class Trainer:
    def __init__(self, network):
        self.network = network
        self.optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        self.{keeps} = False
{property}
    def begin(self):
        self.network, self.optimizer = amp.initialize(self.network, self.optimizer, opt_level="O1")

    def fit(self, loader):
        if self.mixed:
            self.begin()
        for x in loader:
            out = self.run(x)
            loss = out.pow(2).mean()
            self.optimizer.zero_grad()
            with amp.scale_loss(loss, self.optimizer) as scaled_loss:
                scaled_loss.backward()
            self.optimizer.step()

    def run(self, x):
        return self.network(x)
"""
_NATIVE = (
    ("from apex import amp\n", ""),
    (
        '        self.network, self.optimizer = amp.initialize(self.network, self.optimizer, opt_level="O1")\n',
        "        self.scaler = torch.cuda.amp.GradScaler()\n",
    ),
    (
        "        self.network = network\n",
        "        self.network = network\n        self.scaler = torch.cuda.amp.GradScaler(enabled=False)\n",
    ),
    (
        "            out = self.run(x)\n            loss = out.pow(2).mean()\n",
        "            with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):\n"
        "                out = self.run(x)\n                loss = out.pow(2).mean()\n",
    ),
    (
        "            with amp.scale_loss(loss, self.optimizer) as scaled_loss:\n                scaled_loss.backward()\n"
        "            self.optimizer.step()\n",
        "            self.scaler.scale(loss).backward()\n            self.scaler.step(self.optimizer)\n            self.scaler.update()\n",
    ),
)


def _library(name: str, keeps: str, made: str) -> Training:
    """Return a trainer whose user turns AMP on, in a method that is called under a flag that no file sets."""
    before = "import torch\nfrom apex import amp\n" + _LIBRARY.format(keeps=keeps, property=made)
    after = before
    for old, new in _NATIVE:
        assert old in after
        after = after.replace(old, new)
    narrow = (
        "            with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):\n                out = self.run(x)\n",
        "            out = self.run(x)\n            with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):\n",
    )
    fault = {"the network is not cast": (narrow,)}
    return Training(name, {"train.py": before}, {"train.py": after}, fault)


_PROPERTY = """
    @property
    def mixed(self):
        return self._mixed

    @mixed.setter
    def mixed(self, value):
        self._mixed = value
"""

EVALUATIONS = (
    _given(
        "a dataset",
        "    def __len__(self):\n        return 2\n\n    def __getitem__(self, k):\n        x = torch.ones(4)\n",
        "print(sum(DataLoader(Encoded(model))).mean())",
    ),
    _given(
        "what a loader calls",
        "    def __call__(self, items):\n        x = torch.stack(items)\n",
        "print(sum(DataLoader(list(torch.ones(2, 4)), collate_fn=Encoded(model))).mean())",
    ),
    *(_made_aside(name, *lines) for name, lines in _LATER.items()),
    _twice(),
    *(evaluated(name, lines) for name, lines in _WAYS.items()),
    *(_handed(name, *words) for name, words in _HANDED.items()),
    _library("turned on by a flag of its user", "mixed", ""),
    _library("turned on by a property of its user", "_mixed", _PROPERTY),
)
