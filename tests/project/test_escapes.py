"""Where a function may be called by code that is not seen."""

from __future__ import annotations

import pytest

from tests.project.helpers import Case


@pytest.mark.parametrize(
    ("text", "qualname", "reason"),
    [
        ("def f(): pass\nengine = Engine(f)", "f", "passed to Engine"),
        ("def f(): pass\nrun(hook=f)", "f", "passed to run"),
        ("def f(): pass\nself.hook = f", "f", "stored in self.hook"),
        ("def f(): pass\nhooks = [f]", "f", "stored in a collection"),
        ("def f(): pass\nhooks = {'f': f}", "f", "stored in a collection"),
        ("def g():\n    def f(): pass\n    return f", "g.<locals>.f", "returned as a value"),
        ("@REG.register('f')\ndef f(): pass", "f", "decorated by REG.register"),
        ("@click.command()\ndef f(): pass\nf()", "f", "decorated by click.command"),
        ("import sys\ndef f(): pass\ngetattr(sys.modules['m'], 'f')()", "f", "looked up by name"),
        ("import importlib\ndef f(): pass\ngetattr(importlib.import_module(x), 'f')()", "f", "looked up by name"),
        ("def f(): pass\neval('f')()", "f", "looked up by name"),
        ("def f_a(): pass\neval('f_' + x)()", "f_a", "looked up by name"),
        ("def f_a(): pass\neval(f'f_{x}')()", "f_a", "looked up by name"),
        ("class A:\n    def f(self): pass\ndef g(a):\n    getattr(a, 'f')()", "A.f", "looked up by name"),
        ("class A:\n    def f_x(self): pass\n    def f_y(self): pass\n    def g(self, x):\n        getattr(self, 'f_%s' % x)()", "A.f_x", "looked up by name"),
        ("class A:\n    def f(self): pass\n    h = f\n    def g(self, x):\n        getattr(self, x)()\nA().g('h')", "A.f", "looked up by name"),
        ("class A:\n    def f_x(self): pass\n    def f_y(self): pass\n    def g(self, x):\n        getattr(self, 'f_%d%s' % x)()\nA().g('x')", "A.f_x", "looked up by name"),
        ("class A:\n    def __init__(self, name):\n        self.name = name\n    def f(self): pass\n    def h(self): pass\n    def g(self):\n        getattr(self, self.name)()\nA('h').g()\nA(input()).g()", "A.f", "looked up by name"),
        ("class A:\n    def __init__(self, name):\n        self.name = name\n    def f(self): pass\n    def h(self): pass\n    def g(self):\n        getattr(self, self.name)()\nclass B(A):\n    def __init__(self):\n        super().__init__('f')\nA('h').g()", "A.f", "looked up by name"),
        ("class A:\n    def __init__(self):\n        self.names = ['h']\n    def f(self): pass\n    def h(self): pass\n    def g(self):\n        for name in self.names:\n            getattr(self, name)()\n    def more(self, x):\n        self.names.append(x)\n", "A.f", "looked up by name"),
        ("class A:\n    def __init__(self):\n        self.names = ['h']\n    def f(self): pass\n    def h(self): pass\n    def g(self):\n        for name in self.names:\n            getattr(self, name)()\n    def more(self, x):\n        change(self.names)\n", "A.f", "looked up by name"),
        ("class A:\n    def __init__(self):\n        self.names = names()\n    def f(self): pass\n    def h(self): pass\n    def g(self):\n        for name in self.names:\n            getattr(self, name)()\n", "A.f", "looked up by name"),
        ("class A:\n    def f_x(self): pass\n    def g(self, x):\n        keep(getattr(self, f'f_{x}'))\n        getattr(self, x)()", "A.f_x", "looked up by name"),
        ("def f(): pass\nHOOKS = [f]\nfor each in HOOKS:\n    each()\nrun(HOOKS)", "f", "stored in a collection"),
        ("def f(): pass\nHOOKS = {'f': f}\nHOOKS['f']()\nrun(dict(HOOKS))", "f", "stored in a collection"),
        ("def f(): pass\nHOOKS = [f]\nHOOKS[0]()\nrun(sorted(HOOKS))", "f", "stored in a collection"),
        ("def f(): pass\nHOOKS = obtain()\nHOOKS.append(f)\nfor each in HOOKS:\n    each()", "f", "passed to HOOKS.append"),
        ("class A:\n    def __init__(self): pass\nglobals()[x]()", "A.__init__", "class A looked up in globals()"),
        ("class A:\n    def f(self): pass\nclass B:\n    def f(self): pass\ndef g(x):\n    x.f()", "A.f", "called on an object of unknown class"),
        ("def f(): pass\nglobals()[name]()", "f", "looked up in globals()"),
        ("class A:\n    def f(self): pass\n    def g(self):\n        run(self.f)", "A.f", "passed to run"),
        ("class A:\n    @property\n    def f(self): pass", "A.f", "read as a property"),
        ("import mmcv\nclass A(mmcv.Hook):\n    def f(self): pass", "A.f", "called by mmcv.Hook"),
        ("import pytorch_lightning as pl\nclass A(pl.LightningModule):\n    def f(self): pass", "A.f", "called by pytorch_lightning.LightningModule"),
        ("from torch import nn\nclass A(nn.Module):\n    pass\nclass B(A):\n    def forward(self): pass", "B.forward", "called by torch.nn.Module"),
        ("class A:\n    def __enter__(self): pass", "A.__enter__", "called by the language"),
        ("import zoo\ndef keep(fn):\n    zoo.add(fn)\n    return fn\n@keep\ndef f(): pass\nf()", "f", "decorated by keep"),
        ("def keep(fn):\n    KEPT.append(fn)\n    return fn\nKEPT = []\n@keep\ndef f(): pass\nf()\nrun(KEPT)", "f", "decorated by keep"),
        ("def keep(fn):\n    fn = wrap(fn)\n    return fn\n@keep\ndef f(): pass\nf()", "f", "decorated by keep"),
        ("def keep(fn):\n    if DEBUG:\n        return wrap(fn)\n    return fn\n@keep\ndef f(): pass\nf()", "f", "decorated by keep"),
        ("@REG.register\nclass A:\n    def __init__(self): pass", "A.__init__", "in class A, decorated by REG.register"),
        ("class A:\n    def __init__(self): pass\nrun(A)", "A.__init__", "passed to run"),
        ("class A:\n    def __init__(self): pass\ntable = {'a': A}", "A.__init__", "stored in a collection"),
        ("def f(): pass\nexecutor.submit(f, 1)", "f", "passed to executor.submit"),
        ("def f(x): pass\ndef run(fn):\n    keep.append(fn)\nrun(f)", "f", "passed to run"),
    ],
)  # fmt: skip
def test_escape(text: str, qualname: str, reason: str) -> None:
    """A function used as a value, by its name, by a decorator or a base outside escapes."""
    assert Case({"m.py": text + "\n"}).reasons("m.py", qualname) == [reason]


@pytest.mark.parametrize(
    ("text", "qualname"),
    [
        ("def f(): pass\nf()", "f"),
        ("def f(): pass\nif __name__ == '__main__':\n    f()", "f"),
        ("__all__ = ['f']\ndef f(): pass\nf()", "f"),
        ("def f(): pass\ng = f\ng()", "f"),
        ("class A:\n    def __init__(self):\n        self.names = ['h', 'f']\n    def f(self): pass\n    def h(self): pass\n    def g(self):\n        for name in self.names:\n            getattr(self, name)()\n", "A.f"),
        ("class A:\n    def __init__(self):\n        self.names = ['h']\n    def f(self): pass\n    def h(self): pass\n    def g(self):\n        for name in self.names:\n            getattr(self, name)()\nclass B(A):\n    def __init__(self):\n        self.names = ['f']\n", "A.f"),
        ("class A:\n    def __init__(self):\n        self.names = ['h']\n    def f(self): pass\n    def h(self): pass\n    def g(self):\n        for name in self.names:\n            getattr(self, name)()\n", "A.f"),
        ("class A:\n    def __init__(self):\n        self.names = ('h', 'k')\n    def f(self): pass\n    def h(self): pass\n    def g(self):\n        for name in self.names:\n            getattr(self, name)()\n", "A.f"),
        ("class A:\n    def __init__(self):\n        self.names = ['h']\n    def f(self): pass\n    def h(self): pass\n    def g(self):\n        for name in self.names:\n            getattr(self, name)()\n    def more(self, x):\n        return len(self.names), self.names[0], list(zip(self.names, x))\n", "A.f"),
        ("class A:\n    def __init__(self):\n        self.names = ['h']\n    def f(self): pass\n    def h(self): pass\n    def g(self):\n        return [getattr(self, name)() for name in self.names]\n", "A.f"),
        ("class A:\n    def __init__(self):\n        self.names = ['h']\n    def f(self): pass\n    def h(self): pass\n    def g(self):\n        for name in self.names:\n            getattr(self, name)()\nclass B(A):\n    def __init__(self):\n        self.names = ['k']\n", "A.f"),
        ("import torch\n@torch.no_grad()\ndef f(): pass\nf()", "f"),
        ("import functools\ndef f(x): pass\ng = functools.partial(f, 1)\ng()", "f"),
        ("def deco(fn):\n    def inner(*a, **k):\n        return fn(*a, **k)\n    return inner\n@deco\ndef f(): pass\nf()", "f"),
        ("def f(x): pass\ndef run(fn):\n    fn(1)\nrun(f)", "f"),
        ("def f(x): pass\ndef run(fn=None):\n    fn(1)\nrun(fn=f)", "f"),
        ("def f(): pass\nf()\ngetattr(args, 'f')", "f"),
        ("import sys\ndef f(): pass\ngetattr(sys.modules[__name__], 'f')()", "f"),
        ("def f(): pass\nf()\nglobals()['f'] = f\nglobals()['g']()\neval('[1, 2]')", "f"),
        ("class A:\n    def f(self): pass\n    def g(self, x):\n        return getattr(self, 'f%d' % x), getattr(self, 'g_' + x)()", "A.f"),
        ("class A:\n    def f(self): pass\nclass B:\n    def f(self): pass\ndef g(x, y):\n    x.f(1)\n    B().f()", "A.f"),
        ("def f(): pass\nHOOKS = [f]\nfor each in HOOKS:\n    each()", "f"),
        ("def f(): pass\ndef g(): pass\nHOOKS = [f, g]\nfor each in HOOKS:\n    each()", "f"),
        ("def f(): pass\ndef g(): pass\nHOOKS = {'f': f, 'g': g}\nargue(sorted(HOOKS), [name for name in HOOKS])\nHOOKS[x]()", "f"),
        ("def f(x): pass\nTABLE = {'a': f}\ndef g(name):\n    return TABLE[name](1) if name in TABLE else TABLE.get('a')(2)", "f"),
        ("class Bus:\n    def __init__(self):\n        self.kept = {}\n    def on(self, e, f):\n        self.kept.setdefault(e, []).append(f)\n    def fire(self, e, *args):\n        for one in self.kept.get(e, []):\n            one(*args)\ndef f(x): pass\nbus = Bus()\nbus.on('a', f)\nbus.fire('a', 1)", "f"),
        ("def tag(fn):\n    fn.tag = 'kept'\n    return fn\n@tag\ndef f(): pass\nf()", "f"),
        ("KEPT = {}\ndef named(name):\n    def add(fn):\n        KEPT[name] = fn\n        return fn\n    return add\n@named('f')\ndef f(): pass\nKEPT['f']()", "f"),
        ("KEPT = []\ndef keep(fn):\n    KEPT.append(fn)\n    print(fn.__name__)\n    return fn\n@keep\ndef f(): pass\nfor one in KEPT:\n    one()", "f"),
        ("class Bus:\n    def __init__(self):\n        self.kept = []\n    def on(self, fn):\n        self.kept.append(fn)\n        return fn\n    def fire(self):\n        for one in self.kept:\n            one()\nbus = Bus()\n@bus.on\ndef f(): pass\nbus.fire()", "f"),
        ("class A:\n    @staticmethod\n    def mark(fn):\n        fn.mark = 1\n        return fn\n@A.mark\ndef f(): pass\nf()", "f"),
        ("def tag(cls):\n    cls.tag = 'kept'\n    return cls\n@tag\nclass A:\n    def __init__(self): pass\nA()", "A.__init__"),
        ("class A:\n    def f_x(self): pass\n    def g(self, x):\n        getattr(self, 'f_%s' % x)()", "A.f_x"),
        ("class A:\n    def f_x(self): pass\n    def f_y(self): pass\n    def g(self, x):\n        getattr(self, 'f_%s' % x)()\nA().g('x')\nA().g('y')", "A.f_x"),
        ("class A:\n    def f_x(self): pass\n    def f_y(self): pass\n    def g(self, x):\n        getattr(self, 'f_{}'.format(x))()\nA().g('x')", "A.f_y"),
        ("class A:\n    def __init__(self, name):\n        self.name = name\n    def f(self): pass\n    def h(self): pass\n    def g(self):\n        getattr(self, self.name)()\nA('h').g()", "A.f"),
        ("class A:\n    def f_x(self): pass\n    def g(self, x):\n        getattr(self, 'f_{}'.format(x))()", "A.f_x"),
        ("def f(): pass\nf.calls = 1\nassert f is not None", "f"),
        ("class A:\n    def f(self): pass\n    def g(self):\n        self.f()", "A.f"),
        ("import mmcv\nclass A(mmcv.Hook):\n    def f(self): pass\na = A()\na.f()", "A.f"),
        ("class A:\n    def __init__(self): pass\na = A()\nisinstance(a, A)\ndef g(x: A) -> A: pass", "A.__init__"),
        ("class A:\n    def __init__(self): pass\nclass B(A): pass\nB()", "A.__init__"),
        ("from dataclasses import dataclass\n@dataclass\nclass A:\n    def f(self): pass\nA().f()", "A.f"),
    ],
)  # fmt: skip
def test_no_escape(text: str, qualname: str) -> None:
    """Calls that are seen, aliases, partials and harmless decorators do not let a function escape."""
    assert Case({"m.py": text + "\n"}).reasons("m.py", qualname) == []


def test_escape_in_another_file() -> None:
    """The escape names the function and the expression where it happens."""
    case = Case(
        {
            "steps.py": "def train_step(engine, batch): pass\n",
            "main.py": "from steps import train_step as step\ndef main():\n    Engine(step)\n",
        }
    )
    ((holder, node, reason),) = case.project.escapes(case.function("steps.py", "train_step"))
    assert (holder.qualname, holder.module.path) == ("main", "main.py")
    assert case.project.modules["main.py"].tree.segment(node) == "step"
    assert reason == "passed to Engine"


def test_names_alike_do_not_escape() -> None:
    """A variable or attribute with the name of a function is not that function."""
    case = Case(
        {"m.py": "def step(): pass\nstep()\n", "n.py": "step = 1\nrun(step)\nrun(x.step)\n"}
    )
    assert case.reasons("m.py", "step") == []


def test_lookup_in_another_module() -> None:
    """A getattr on a module finds its functions, and its classes' constructors, by a computed name too."""
    case = Case(
        {
            "models.py": "def resnet(): pass\nclass Net:\n    def __init__(self): pass\n",
            "main.py": "import models\nnet = getattr(models, args.arch)()\n",
        }
    )
    assert case.reasons("models.py", "resnet") == ["looked up by name"]
    assert case.reasons("models.py", "Net.__init__") == ["class Net looked up by name"]


def test_a_name_that_an_object_hands_to_one_of_its_class() -> None:
    """Asking what the constructor is given comes to an end: copies get the name of the object that makes them."""
    text = "class A:\n    def __init__(self, name):\n        self.name = name\n    def f_x(self): pass\n    def run(self):\n        getattr(self, self.name)()\n        return A(self.name)\n"
    for made, reasons in (("A('f_x')\n", []), ("A(option)\n", [])):
        assert Case({"m.py": text + made}).reasons("m.py", "A.f_x") == reasons
