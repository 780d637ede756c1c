"""Refactorings that move code between classes, objects and functions."""

from __future__ import annotations

import pytest

from generated.refactor.proofs.testing import program, reaches, seeds, sound
from generated.refactor.refactoring import catalogue

TRAINER = """\
import torch


class Trainer:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer

    def update(self, loss):
        loss.backward()
        torch.clip(self.model)
        self.optimizer.step()


trainer = Trainer(1, 2)
trainer.update(3)
"""

LOOP = """\
def train(model, optimizer, xs):
    for x in xs:
        loss = model(x)
        optimizer.step()


train(1, 2, 3)
"""

HELD = """\
class T:
    def __init__(self, a, c):
        self.a = a
        self.b = tune(a)
        self.c = c

    def one(self, x):
        self.a(x)
        self.b += 1

    def all(self):
        for x in self.c:
            self.one(x)
        return self.b


T(1, 2).all()
"""

EXACT = [
    (
        "methods move to a part that the object holds",
        HELD,
        "class Core:\n    def __init__(self, a):\n        self.a = a\n        self.b = tune(a)\n\n"
        "    def one(self, x):\n        self.a(x)\n        self.b += 1\n\n\n"
        "class T:\n    def __init__(self, a, c):\n        self.core = Core(a)\n        self.c = c\n\n"
        "    def all(self):\n        for x in self.c:\n            self.core.one(x)\n"
        "        return self.core.b\n\n\nT(1, 2).all()\n".replace("Core", "TParts"),
    ),
    (
        "methods move to a part that the object holds",
        HELD.replace("T(1, 2).all()", "T(1, 2).one(3)"),
        "class Parts:\n    def __init__(self, a):\n        self.a = a\n        self.b = tune(a)\n\n"
        "    def one(self, x):\n        self.a(x)\n        self.b += 1\n\n\n"
        "class T:\n    def __init__(self, a, c):\n        self.inner = Parts(a)\n        self.c = c\n\n"
        "    def one(self, x):\n        return self.inner.one(x)\n\n"
        "    def all(self):\n        for x in self.c:\n            self.inner.one(x)\n"
        "        return self.inner.b\n\n\nT(1, 2).one(3)\n",
    ),
    (
        "methods move to a base class",
        "class T:\n    def a(self):\n        pass\n\n    def b(self):\n        step()\n",
        "class TBase:\n    def b(self):\n        step()\n\n\nclass T(TBase):\n    def a(self):\n        pass\n",
    ),
    (
        "methods move to a mixin",
        "class T(B):\n    def a(self):\n        return super().a()\n\n    def b(self):\n        step()\n",
        "class TMixin:\n    def b(self):\n        step()\n\n\nclass T(TMixin, B):\n"
        "    def a(self):\n        return super().a()\n",
    ),
    (
        "a constructor is shared with a base class",
        "class T:\n    def __init__(self, a, b):\n        self.a = a\n        self.b = b\n",
        "class TBase:\n    def __init__(self, a):\n        self.a = a\n\n\nclass T(TBase):\n"
        "    def __init__(self, a, b):\n        super().__init__(a)\n        self.b = b\n",
    ),
    (
        "methods are left to a subclass",
        "class T:\n    def a(self):\n        self.b()\n\n    def b(self):\n        step()\n",
        "class TBase:\n    def a(self):\n        self.b()\n\n    def b(self):\n"
        "        raise NotImplementedError\n\n\nclass T(TBase):\n    def b(self):\n        step()\n",
    ),
    (
        "a method is continued in a subclass",
        "class T:\n    def a(self, x):\n        clip(x)\n        step(x)\n",
        "class TBase:\n    def a(self, x):\n        clip(x)\n\n\nclass T(TBase):\n"
        "    def a(self, x):\n        super().a(x)\n        step(x)\n",
    ),
    (
        "a run of a method becomes a hook of a subclass",
        "class T:\n    def a(self, x):\n        y = self.loss(x)\n        return y\n",
        "class TBase:\n    def a(self, x):\n        y = self.hook(x)\n        return y\n\n"
        "    def hook(self, x):\n        raise NotImplementedError\n\n\nclass T(TBase):\n"
        "    def hook(self, x):\n        y = self.loss(x)\n        return y\n",
    ),
    (
        "a call goes through a dict",
        "from torch import nn\n\nloss = nn.BCELoss()\n",
        'from torch import nn\n\nREGISTRY = {"bceloss": nn.BCELoss}\n\nloss = REGISTRY["bceloss"]()\n',
    ),
    (
        "a call goes through a registry",
        "def make():\n    pass\n\n\nmake()\n",
        "_REGISTRY = {}\n\n\ndef register(name):\n    def add(thing):\n        _REGISTRY[name] = thing\n"
        '        return thing\n\n    return add\n\n\n@register("make")\ndef make():\n    pass\n\n\n'
        '_REGISTRY["make"]()\n',
    ),
    (
        "a wrapper of an optimizer with methods",
        "def f(m, x):\n    o = torch.optim.SGD(m, lr=1)\n    with amp.scale_loss(x, o) as s:\n"
        "        s.backward()\n    o.step()\n",
        "class Stepper:\n    def __init__(self, optimizer):\n        self.inner = optimizer\n\n"
        "    def step(self, closure=None):\n        return self.inner.step(closure)\n\n\n"
        "def f(m, x):\n    o = torch.optim.SGD(m, lr=1)\n    o = Stepper(o)\n"
        "    with amp.scale_loss(x, o.inner) as s:\n        s.backward()\n    o.step()\n",
    ),
    (
        "a wrapper of an optimizer with getattr",
        "class T:\n    def __init__(self, m):\n        self.o = torch.optim.SGD(m, lr=1)\n\n"
        "    def f(self):\n        self.o.step()\n",
        "class Stepper:\n    def __init__(self, optimizer):\n        self.base = optimizer\n\n"
        "    def __getattr__(self, name):\n        return getattr(self.base, name)\n\n\n"
        "class T:\n    def __init__(self, m):\n        self.o = torch.optim.SGD(m, lr=1)\n"
        "        self.o = Stepper(self.o)\n\n    def f(self):\n        self.o.step()\n",
    ),
    (
        "a run in a loop becomes an object",
        LOOP,
        "class Stage:\n    def __init__(self, model):\n        self.model = model\n\n"
        "    def __call__(self, x):\n        loss = self.model(x)\n\n\n"
        "def train(model, optimizer, xs):\n    stage = Stage(model)\n    for x in xs:\n"
        "        stage(x)\n        optimizer.step()\n\n\ntrain(1, 2, 3)\n",
    ),
    (
        "a function becomes a method of a class",
        LOOP,
        "class Steps:\n    @classmethod\n    def train(cls, model, optimizer, xs):\n        for x in xs:\n"
        "            loss = model(x)\n            optimizer.step()\n\n\nSteps.train(1, 2, 3)\n",
    ),
    (
        "a function becomes a class with methods",
        LOOP,
        "class Trainer:\n    def __init__(self, model, optimizer, xs):\n        self.model = model\n"
        "        self.optimizer = optimizer\n        self.xs = xs\n\n    def fit(self):\n"
        "        for x in self.xs:\n            loss = self.model(x)\n            self.optimizer.step()\n\n\n"
        "Trainer(1, 2, 3).fit()\n",
    ),
    (
        "a run becomes a callback in a list",
        LOOP,
        "def callback(optimizer):\n    optimizer.step()\n\n\nHOOKS = [callback]\n\n\n"
        "def train(model, optimizer, xs):\n    for x in xs:\n        loss = model(x)\n"
        "        for each in HOOKS:\n            each(optimizer)\n\n\ntrain(1, 2, 3)\n",
    ),
    (
        "a class becomes a dataclass",
        TRAINER,
        TRAINER.replace("import torch\n", "from dataclasses import dataclass\nimport torch\n")
        .replace("class T", "@dataclass(eq=False)\nclass T")
        .replace(
            "    def __init__(self, model, optimizer):\n        self.model = model\n"
            "        self.optimizer = optimizer\n",
            "    model: object\n    optimizer: object\n",
        ),
    ),
    (
        "a class has slots",
        TRAINER,
        TRAINER.replace(
            "class Trainer:\n", 'class Trainer:\n    __slots__ = ("model", "optimizer")\n\n'
        ),
    ),
    (
        "a class becomes functions with a state",
        TRAINER,
        "from types import SimpleNamespace\nimport torch\n\n\n"
        "def make_trainer(model, optimizer):\n    state = SimpleNamespace()\n    state.model = model\n"
        "    state.optimizer = optimizer\n    return state\n\n\ndef update(state, loss):\n"
        "    loss.backward()\n    torch.clip(state.model)\n    state.optimizer.step()\n\n\n"
        "trainer = make_trainer(1, 2)\nupdate(trainer, 3)\n",
    ),
]


@pytest.mark.parametrize(("name", "before", "after"), EXACT, ids=[e[0] for e in EXACT])
def test_what_is_written(name: str, before: str, after: str) -> None:
    assert reaches(name, program(before), after)


@pytest.mark.parametrize("kind", ["base class", "mixin"])
def test_another_file_gets_what_it_needs(kind: str) -> None:
    name = f"methods move to a {kind} of another file"
    found = [f for f in seeds(name, program(TRAINER)) if "backward" not in f.files["main.py"]]
    assert found and all(len(f.files) == 2 for f in found)
    for project in found:
        (other,) = (text for path, text in project.files.items() if path != "main.py")
        assert other.startswith("import torch\n\n\nclass ")
        assert "import torch" not in project.files["main.py"]


CALLED = (
    "a run becomes a handler of an event",
    "a run becomes a hook with a method",
    "a run becomes a callback in a list",
    "a run is dispatched by its key",
    "a run in a loop becomes an object",
)


@pytest.mark.parametrize("name", CALLED)
def test_what_is_called_runs_as_before(name: str) -> None:
    found = seeds(name, program(LOOP), 12)
    for project in found:
        calls: list[str] = []
        held: dict[str, object] = {}
        exec(project.files["main.py"].replace("train(1, 2, 3)", ""), held)

        class Optimizer:
            def step(self, calls: list[str] = calls) -> None:
                calls.append("step")

        held["train"](calls.append, Optimizer(), ["a", "b"])  # type: ignore[operator]
        assert calls == ["a", "step", "b", "step"]
    assert found


NOWHERE = [
    (
        "methods move to a part that the object holds",
        "class T:\n    def __init__(self, a):\n        self.a = a\n\n    def f(self):\n        g(self)\n",
    ),
    (
        "methods move to a part that the object holds",
        "class T:\n    def __init__(self, a):\n        self.a = a\n\n    def f(self):\n        return self.a\n\n\nprint(T(1).a)\n",
    ),
    (
        "methods move to a part that the object holds",
        "class T:\n    def __init__(self, a):\n        self.a = a\n\n    def f(self):\n        return super().f(self.a)\n",
    ),
    (
        "methods move to a part that the object holds",
        "class T:\n    def __init__(self, a):\n        self.a = a\n\n    def f(self):\n        return self.a\n\n\nclass S(T):\n    pass\n",
    ),
    (
        "methods move to a part that the object holds",
        "class T(Module):\n    def __init__(self, a):\n        self.a = a\n\n    def f(self):\n        return self.a\n",
    ),
    (
        "methods move to a part that the object holds",
        'class T:\n    def __init__(self, a):\n        self.a = a\n\n    def f(self):\n        return self.a\n\n\ngetattr(T(1), "a")\n',
    ),
    (
        "methods move to a part that the object holds",
        "class T:\n    def __init__(self, a):\n        self.a = a\n\n    def f(self):\n        return self.c\n",
    ),
    (
        "methods move to a part that the object holds",
        "class T:\n    a = 1\n\n    def __init__(self, a):\n        self.a = a\n\n    def f(self):\n        return self.a\n",
    ),
    (
        "methods move to a part that the object holds",
        "class T:\n    def __init__(self, a):\n        g(self)\n        self.a = a\n\n    def f(self):\n        return self.a\n",
    ),
    (
        "methods move to a part that the object holds",
        "class T:\n    def __init__(self, a):\n        if a:\n            return\n        self.a = self.g(a)\n\n    def f(self):\n        return self.a\n",
    ),
    ("methods move to a base class", "class T:\n    def a(self):\n        return super().a()\n"),
    ("methods move to a mixin", "class T:\n    __slots__ = ()\n\n    def a(self):\n        pass\n"),
    (
        "methods move to a base class of another file",
        "X = 1\n\n\nclass T:\n    def a(self):\n        return X\n",
    ),
    (
        "methods move to a mixin of another file",
        "def f():\n    pass\n\n\nclass T:\n    def a(self):\n        return f()\n",
    ),
    (
        "a constructor is shared with a base class",
        "class T:\n    def __init__(self, a):\n        b = a\n        self.b = b\n",
    ),
    (
        "methods are left to a subclass",
        "class T:\n    def a(self):\n        return T.b()\n",
    ),
    (
        "a method is continued in a subclass",
        "class T:\n    def a(self):\n        x = 1\n        return x\n",
    ),
    (
        "a run of a method becomes a hook of a subclass",
        "class T(nn.Module):\n    def a(self, x):\n        y = self.loss(x)\n        return y\n",
    ),
    ("a call goes through a dict", "from torch.nn import functional as F\n\nF.relu(1)\n"),
    ("a call goes through a registry", "from a import make\n\nmake()\n"),
    (
        "a wrapper of an optimizer with methods",
        "def f(m):\n    for x in m:\n        o = torch.optim.SGD(m, lr=1)\n        o.step()\n",
    ),
    (
        "a wrapper of an optimizer with getattr",
        "def f(m):\n    o = torch.optim.SGD(m, lr=1)\n    o.step()\n    isinstance(o, int)\n",
    ),
    ("a run in a loop becomes an object", "def f(x):\n    while x:\n        x = step(x)\n"),
    ("a function becomes a method of a class", "def f():\n    return 1\n\n\nmap(f, [])\n"),
    (
        "a function becomes a class with methods",
        "def f(x):\n    if x:\n        return 1\n    g()\n\n\nf(1)\n",
    ),
    ("a run becomes a callback in a list", "def f(xs):\n    for x in xs:\n        return x\n"),
    (
        "a class becomes a dataclass",
        "class T:\n    def __init__(self, a):\n        self.b = a\n",
    ),
    (
        "a class has slots",
        "class T:\n    def __init__(self, a):\n        self.a = a\n\n\nt = T(1)\nt.b = 2\n",
    ),
    (
        "a class becomes functions with a state",
        "class T:\n    def __init__(self, a):\n        self.a = a\n\n\nt = T(1)\nprint(t)\n",
    ),
]


@pytest.mark.parametrize(("name", "text"), NOWHERE)
def test_no_place(name: str, text: str) -> None:
    assert seeds(name, program(text)) == []


def test_every_refactoring_is_tested() -> None:
    held = {r.name for r in catalogue().values() if r.family == "classes"}
    assert held == {name for name, *_ in (*EXACT, *NOWHERE)} | set(CALLED)


def test_random_bases_stay_sound() -> None:
    assert sound("classes", seed=4, count=44) == []
