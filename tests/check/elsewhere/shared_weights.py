"""Networks that share weights with one that trains: what autocast casts for them without gradients is the same copy."""

from __future__ import annotations

from check.trainings.planted import Training

_NETS = """import torch
import torch.nn as nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.out = nn.Linear(8, 2)

    def forward(self, x):
        return self.out(self.body(x).relu())

    def encode(self, x):
        return self.body(x)

    def count(self, x):
        return len(x)

class Wrapped(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x).tanh()

class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList()

    def take(self, layer):
        self.layers.append(layer)

    def attach(self, layer):
        self.take(layer)
        return self

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

class Features:
    def __init__(self, run):
        self.run = run

    def __call__(self, x):
        return self.run(x)

class Searcher(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.body = model.body
        self.out = model.out

    def forward(self, x):
        with torch.no_grad():
            return self.search(x)

    def search(self, x):
        return self.out(self.body(x))

class Frozen(nn.Module):
    def __init__(self, trained):
        super().__init__()
        self.body = Layer(4, 8, trained)
        self.out = nn.Linear(8, 2)

    def forward(self, x):
        return self.out(self.body(x).relu())

class Layer(nn.Module):
    def __init__(self, wide, high, trained):
        super().__init__()
        self.layer = nn.Linear(wide, high)
        self.trained = trained

    def forward(self, x):
        if self.trained:
            return self.layer(x)
        with torch.no_grad():
            return self.layer(x)

def unwrap(model):
    return unwrap(model.module) if hasattr(model, "module") else model

def share(target, source):
    target.body.weight = source.body.weight
    return target
"""
_TRAIN = """import torch
import torch.nn as nn
import torch.nn.functional as F
from apex import amp
from nets import Features, Frozen, Net, Searcher, Stack, Wrapped, share, unwrap

def main(batches, other):
    model = Net()
    {made}
    both = [*model.parameters(), *other.parameters()]
    optimizer = torch.optim.SGD(both, lr=0.1)
    {initialized}
    for x, y in batches:
        optimizer.zero_grad()
        {forwards}
        {backward}

main([], torch.nn.Linear(4, 2))
"""
_OLD = """first = other(x)
        with torch.no_grad():
            seen = {unseen}(x)
        loss = F.mse_loss({seen}(x), y) + first.mean() + seen.mean()"""
_NEW = """with torch.cuda.amp.autocast():
            first = other(x)
            with torch.no_grad():
                seen = {unseen}(x)
            torch.clear_autocast_cache()
            loss = F.mse_loss({seen}(x), y) + first.mean() + seen.mean()"""
_BACKWARD = """with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()"""
_SCALED = """scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()"""
_INITIALIZE = (
    '[model, other], optimizer = amp.initialize([model, other], optimizer, opt_level="O1")'
)
_CLEARED = "            torch.clear_autocast_cache()\n"


def _texts(made: str, unseen: str, seen: str, cleared: bool = True) -> list[dict[str, str]]:
    """Return the files before and after; one network runs without gradients in the block, then another one with them."""
    old = _TRAIN.format(
        made=made,
        initialized=_INITIALIZE,
        forwards=_OLD.format(unseen=unseen, seen=seen),
        backward=_BACKWARD,
    )
    new = _TRAIN.replace("from apex import amp\n", "").format(
        made=made,
        initialized="scaler = torch.cuda.amp.GradScaler()",
        forwards=_NEW.format(unseen=unseen, seen=seen),
        backward=_SCALED,
    )
    new = new if cleared else new.replace(_CLEARED, "")
    return [{"nets.py": _NETS, "main.py": text} for text in (old, new)]


def _shares(name: str, made: str, unseen: str = "twin", seen: str = "model") -> Training:
    fault = {f"the copies stay for {name}": ((_CLEARED, ""),)}
    return Training(name, *_texts(made, unseen, seen), fault)


def _within(name: str, made: str) -> Training:
    """Return a training whose twin runs without gradients by itself, before another network runs with them."""
    texts = _texts(made, "twin", "first", cleared=False)
    outside, inside = "with torch.no_grad():\n{0}    seen", "seen"
    spelt = [
        {
            path: text.replace(outside.format(indent), inside).replace("first(x)", "first")
            for path, text in files.items()
        }
        for files, indent in zip(texts, (" " * 8, " " * 12), strict=True)
    ]
    return Training(name, *spelt, {})


def _apart(name: str, made: str, unseen: str = "twin", seen: str = "model") -> Training:
    return Training(name, *_texts(made, unseen, seen, cleared=False), {})


SHARED_WEIGHTS = (
    _shares("a layer stored in a twin", "twin = Net()\n    twin.body = model.body"),
    _shares("weights tied in another file", "twin = share(Net(), model)"),
    _shares("weights tied by hand", "twin = Net()\n    twin.out.weight = model.out.weight"),
    _shares("a sequence of its layers", "twin = nn.Sequential(model.body, nn.ReLU())"),
    _shares("a sequence of its children", "twin = nn.Sequential(*list(model.children())[:-1])"),
    _shares("a wrapper of a layer", "twin = Wrapped(model.body)"),
    _shares("a stack that takes a layer", "twin = Stack()\n    twin.take(model.body)"),
    _shares(
        "layers stored by name",
        'twin = Net()\n    for name in ("body", "out"):\n        setattr(twin, name, getattr(model, name))',
    ),
    _shares("a layer given to the network that trains", "twin = Net()\n    model.body = twin.body"),
    _shares("the twin trains", "twin = Wrapped(model.body)", unseen="model", seen="twin"),
    _shares("a layer of its own", "twin = model", unseen="model.body"),
    _shares("a layer trains", "twin = model", unseen="model", seen="model.body"),
    _shares("one layer twice", "twin = model", unseen="model.body", seen="model.body"),
    _shares("a method that runs a layer", "twin = model", unseen="model.encode"),
    _shares("an item", 'parts = {"a": model.body, "b": model.out}', unseen='parts["a"]'),
    _shares("what get gives", 'parts = {"a": model.body, "b": model.out}', unseen='parts.get("a")'),
    _shares("a layer by its name", "twin = model", unseen='getattr(model, "body")'),
    _shares("what a helper unwraps", "twin = model", unseen="unwrap(model).encode"),
    _shares("the name of what a helper unwraps", "twin = unwrap(model)", unseen="twin.encode"),
    _shares(
        "what a library unwraps",
        "from accelerate import Accelerator\n    accelerator = Accelerator()",
        unseen="accelerator.unwrap_model(model)",
    ),
    _shares("an object that calls a layer", "twin = Features(model.body)"),
    _shares("an object that calls a forward", "twin = Features(model.forward)"),
    _shares(
        "a method that takes a layer and gives its object", "twin = Stack().attach(model.body)"
    ),
    _shares(
        "an item of a module",
        'twins = nn.ModuleDict()\n    twins["a"] = model.body',
        unseen='twins["a"]',
    ),
    _shares(
        "items of a module",
        'twins = nn.ModuleDict()\n    twins.update({"a": model.body})',
        unseen='twins["a"]',
    ),
    _shares(
        "weights tied in pairs",
        "twin = Net()\n    for own, its in zip(twin.modules(), model.modules()):\n"
        "        if isinstance(own, nn.Linear):\n            own.weight = its.weight",
    ),
    _shares(
        "weights given to a function",
        "twin = model",
        unseen="(lambda x: F.linear(x, model.body.weight, model.body.bias))",
    ),
    _shares("what searches with its layers", "twin = Searcher(model)"),
    _shares("a layer of what searches", "twin = Searcher(model)", "model.body", "twin.search"),
    _shares(
        "wrappers of one layer",
        "twin = Wrapped(model.body)\n    second = Wrapped(model.body)",
        seen="second",
    ),
    _shares("a layer of a wrapper", "twin = Wrapped(model.body)", "model.body", "twin"),
    _shares(
        "all layers of a sequence", "twin = nn.Sequential(model.body, model.out)", seen="model.out"
    ),
    _apart("two layers of what searches", "twin = Searcher(model)", "model.body", "model.out"),
    _apart("two layers of a wrapper", "twin = Wrapped(model.body)", "model.body", "model.out"),
    _apart(
        "two layers of a sequence",
        "twin = nn.Sequential(model.body, model.out)",
        "model.body",
        "model.out",
    ),
    _apart(
        "two layers tied elsewhere",
        "twin = Net()\n    twin.body.weight = model.body.weight\n    twin.out.weight = model.out.weight",
        "model.body",
        "model.out",
    ),
    _within("what searches without gradients by itself", "twin = Searcher(model)"),
    _within("a frozen layer", "twin = Frozen(False)\n    held = Wrapped(twin.body.layer)"),
    _within("a frozen layer of a twin", "twin = Frozen(False)\n    model.body = twin.body.layer"),
    _within(
        "a frozen layer that trains",
        "model = Frozen(False)\n    twin = model\n    held = Wrapped(model.body.layer)",
    ),
    _within(
        "a frozen layer of a wrapper",
        "model = Frozen(False)\n    twin = Wrapped(model)\n    held = Wrapped(model.body.layer)",
    ),
    _apart("two layers of its own", "twin = model", unseen="model.body", seen="model.out"),
    _apart("a method that runs no layer", "twin = model", unseen="model.count"),
    _apart(
        "a copy of a layer",
        "import copy\n    twin = Net()\n    twin.body = copy.deepcopy(model.body)",
    ),
    _apart(
        "another of its class", "twin = Net()\n    print(model.body, model.encode)", "twin.encode"
    ),
    _apart("a layer of another", "twin = Net()\n    print(model.body)", "twin.body"),
    _apart("another that a helper unwraps", "twin = Net()\n    print(model.body)", "unwrap(twin)"),
    _apart("another item", 'nets = {"a": model, "b": Net()}', 'nets["b"]'),
    _apart("weights loaded", "twin = Net()\n    twin.load_state_dict(model.state_dict())"),
    _apart("wrappers of two networks", "twin = Wrapped(Net())\n    model = Wrapped(model)"),
    _apart(
        "the data of weights", "twin = Net()\n    twin.body.weight.data = model.body.weight.data"
    ),
)
