"""Which names hold the same object."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.project.helpers import Case


def same(text: str, one: str, other: str) -> bool:
    """Tell whether the last occurrences of two expressions in one module may be the same object."""
    case = Case({"m.py": dedent(text)})
    places = []
    for wanted in (one, other):
        module = case.project.modules["m.py"]
        count = sum(
            module.tree.segment(n) == wanted for n in module.tree.parents if hasattr(n, "ctx")
        )
        places.append(case.at("m.py", wanted, count - 1 if count else 0))
    return case.project.values.same(*places[0], *places[1])


@pytest.mark.parametrize(
    ("text", "one", "other"),
    [
        ("b = a\nb, a", "a", "b"),
        ("b = c = a\nb, c", "c", "b"),
        ("b, c = a, d\nb, c", "a", "b"),
        ("b = DDP(a)\nb", "a", "b"),
        ("import torch.nn as nn\nb = nn.parallel.DistributedDataParallel(a, device_ids=[0])\nb", "a", "b"),
        ("from apex.parallel import convert_syncbn_model as c\nb = c(a)\nb", "a", "b"),
        ("b = a.cuda().to(device).half().eval()\nb", "a", "b"),
        ("b = a.module\nb", "a", "b"),
        ("import torch\nb = torch.compile(a)\nb", "a", "b"),
        ("from apex.parallel.LARC import LARC\nb = LARC(optimizer=a)\nb", "a", "b"),
        ("b = a if c else None\nb", "a", "b"),
        ("b = a if c else d\nb", "d", "b"),
        ("b = (c := a)\nb", "c", "a"),
        ("run = lambda x, *, y: y.step()\nrun(1, y=a)", "a", "y"),
        ("runs = [print, lambda b: b.c]\nruns[1](a)", "a", "b"),
        ("make = lambda b: b\nc = make(a)\nc", "a", "c"),
        ("def held(b):\n    yield b\nwith held(a) as c:\n    c", "a", "c"),
        ("def held(b):\n    yield b, 1\nfor c, d in held(a):\n    c", "a", "c"),
        ("from apex import amp\nb, c = amp.initialize(a, o)\nb, c", "b", "a"),
        ("from apex import amp\nb, c = amp.initialize(a, o)\nb, c", "c", "o"),
        ("from apex import amp\nb = amp.initialize(a, opt_level='O1')\nb", "b", "a"),
        ("from apex import amp\nb = amp.initialize(models=a, optimizers=None)\nb", "b", "a"),
        ("from apex import amp\n[b, c], o = amp.initialize([a, d], o)\nb, c", "c", "d"),
        ("from apex import amp\n(b, c), (p, q) = amp.initialize([a, d], [x, y])\np, q", "y", "q"),
        ("for b in [c, a]:\n    b", "b", "a"),
        ("for b in opts:\n    b", "b", "opts"),
        ("opts = [c, a]\nfor i, b in enumerate(opts):\n    b", "b", "a"),
        ("for b, d in zip([c, a], [e, f]):\n    b, d", "d", "f"),
        ("opts = {'G': a, 'D': c}\nopts['G']", "opts['G']", "a"),
        ("opts = {'G': a}\nfor k, b in opts.items():\n    b", "b", "a"),
        ("opts = dict(G=a, D=c)\nopts['G']", "opts['G']", "a"),
        ("opts = []\nopts.append(a)\nopts[0]", "opts[0]", "a"),
        ("setattr(args, 'opt', a)\nargs.opt", "args.opt", "a"),
        ("args.opt = a\nb = getattr(args, 'opt', None)\nb", "b", "a"),
        ("def f(x):\n    x\nf(a)", "x", "a"),
        ("def f(*, x):\n    x\nf(x=a)", "x", "a"),
        ("def f(*xs):\n    x, y = xs\n    x, y\nf(c, a)", "y", "a"),
        ("def f(**kw):\n    kw['x']\nf(x=a)", "kw['x']", "a"),
        ("def g(x):\n    x\ndef f(**kw):\n    g(**kw)\nf(x=a)", "x", "a"),
        ("def f():\n    a = Net()\n    return a\nb = f()\nb", "b", "a"),
        ("def f():\n    a, o = Net(), Opt()\n    return a, o\nb, p = f()\nb, p", "p", "o"),
        ("def f(x):\n    return x\nb = f(a)\nc = f(d)\nb", "b", "a"),
        ("def f():\n    global a\n    a = Net()\na", "a", "a"),
        ("def f():\n    a = Net()\n    def g():\n        return a\n    b = g()\n    b\nf()", "b", "a"),
        ("from functools import partial\ndef f(x, y):\n    x, y\ng = partial(f, a)\ng(c)", "y", "c"),
        ("from functools import partial\ndef f(x, y):\n    x, y\ng = partial(f, a)\ng(c)", "x", "a"),
        ("from types import SimpleNamespace\ns = SimpleNamespace(opt=a)\ns.opt", "s.opt", "a"),
        ("class T:\n    def __init__(self, m):\n        self.m = m\n    def f(self):\n        self.m\nT(a)", "self.m", "a"),
        ("class T:\n    pass\nt = T()\nt.scaler = a\nt.scaler", "t.scaler", "a"),
        ("class T:\n    def f(self):\n        self.scaler\nt = T()\nt.scaler = a", "self.scaler", "a"),
        ("class T:\n    def __init__(self, m):\n        self._m = m\n    @property\n    def m(self):\n        return self._m\nt = T(a)\nt.m", "t.m", "a"),
        ("from dataclasses import dataclass\n@dataclass\nclass S:\n    m: int\n    o: int\ns = S(c, o=a)\ns.o", "s.o", "a"),
        ("class T:\n    def f(self):\n        h.g(self)\n    def k(self):\n        self.o = a\nclass H:\n    def g(self, runner):\n        runner.o\nh = H()", "runner.o", "a"),
    ],
)  # fmt: skip
def test_same_object(text: str, one: str, other: str) -> None:
    """Assignments, wrappers, arguments, results, attributes and items are followed."""
    assert same(text, one, other)


@pytest.mark.parametrize(
    ("text", "one", "other"),
    [
        ("a, b", "a", "b"),
        ("b = f(a)\nb", "a", "b"),
        ("b = a + 1\nb", "a", "b"),
        ("a = None\nb = None\na, b", "a", "b"),
        ("import copy\nb = copy.deepcopy(a)\nb", "a", "b"),
        ("from apex import amp\nb, c = amp.initialize(a, o)\nb, c", "b", "o"),
        ("from apex import amp\n[b, c], o = amp.initialize([a, d], o)\nb, c", "c", "a"),
        ("for o in [a, b]:\n    o", "a", "b"),
        ("b = a if c else d\nb", "a", "d"),
        ("opts = {'G': a, 'D': c}\nopts['G']", "opts['G']", "c"),
        ("def set_lr(o):\n    o\nset_lr(a)\nset_lr(b)", "a", "b"),
        ("def make():\n    return Net()\na = make()\nb = make()\na, b", "a", "b"),
        ("def make():\n    n = Net()\n    return n\na, b = make(), make()\na, b", "a", "b"),
        ("class N:\n    def __init__(self, x):\n        self.x = x\na = N(1)\nb = N(2)\na, b", "a", "b"),
        ("class A:\n    def f(self):\n        self.m\nclass B:\n    def g(self):\n        self.o.m\na, b", "self.m", "self.o.m"),
        ("class P: pass\nclass A(P):\n    def f(self, x):\n        self.a = x\nclass B(P):\n    def g(self):\n        b = self.a\n        b", "x", "b"),
    ],
)  # fmt: skip
def test_different_objects(text: str, one: str, other: str) -> None:
    """Unknown calls, constants, copies, and objects that only share a function stay apart."""
    assert not same(text, one, other)


PROGRAM = {
    "main.py": """
        from apex import amp
        import engine
        from trainer import GanTrainer
        def main():
            args = parse()
            args.amp = amp
            model = Net()
            optimizer = Adam(model.parameters())
            model, optimizer = amp.initialize(model, optimizer)
            engine.train(args, DDP(model), optimizer)
            trainer = GanTrainer(amp=amp, model=model)
            trainer.fit(optimizer)
            engine.amp = amp
        main()
        """,
    "engine.py": """
        amp = None
        def train(args, net, opt):
            with args.amp.scale_loss(loss, opt) as scaled:
                scaled.backward()
            helper(amp)
        def helper(apex_amp):
            apex_amp.master_params(opt)
        """,
    "trainer.py": """
        class Trainer:
            def __init__(self, model, amp=None):
                self.net = model
                self.amp = amp
        class GanTrainer(Trainer):
            def __init__(self, **kwargs):
                super().__init__(**kwargs)
            def fit(self, opt):
                self.amp.scale_loss(self.net, opt)
        """,
}


def test_program_over_files() -> None:
    """Model and optimizer are one object from main through the engine to the trainer's base class."""
    case = Case(PROGRAM)
    assert case.same(("main.py", "model"), ("engine.py", "opt")) is False
    assert case.same(("main.py", "optimizer"), ("engine.py", "opt"))
    assert case.same(("main.py", "model"), ("trainer.py", "self.net"))
    assert case.same(("main.py", "optimizer"), ("trainer.py", "opt"))


def test_amp_passed_along() -> None:
    """`args.amp`, `self.amp`, a parameter and a module's global all mean Apex."""
    case = Case(PROGRAM)
    assert case.external("engine.py", "args.amp.scale_loss") == "apex.amp.scale_loss"
    assert case.external("trainer.py", "self.amp.scale_loss") == "apex.amp.scale_loss"
    assert case.external("engine.py", "apex_amp.master_params") == "apex.amp.master_params"
    assert case.external("engine.py", "amp") == "apex.amp"
    assert case.external("engine.py", "args") is None
    assert case.external("engine.py", "opt") is None


def test_amp_in_a_dictionary_does_not_name_the_dictionary() -> None:
    """Only the item means Apex, not what holds it."""
    case = Case({"m.py": "from apex import amp\nc = {}\nc['amp'] = amp\nc['amp'].scale_loss\nc\n"})
    assert case.external("m.py", "c['amp'].scale_loss") == "apex.amp.scale_loss"
    assert case.external("m.py", "c") is None


def test_groups() -> None:
    """A group has a representative, the same for all names of an object."""
    case = Case(PROGRAM)
    values = case.project.values
    place = case.at("main.py", "optimizer")
    group = values.group(*place)
    assert group is not None
    assert group in values.groups(*place)
    module, constant = Case({"m.py": "f(1)\n"}).at("m.py", "1")
    assert values.group(module, constant) is None


def test_polymorphic_parameter_is_each_of_its_arguments() -> None:
    """A helper called with two optimizers may hold either; they stay apart."""
    case = Case({"m.py": "def lr(o):\n    o.x\ng = Adam()\nd = SGD()\nlr(g)\nlr(d)\n"})
    assert case.same(("m.py", "o"), ("m.py", "g"))
    assert case.same(("m.py", "o"), ("m.py", "d"))
    assert not case.same(("m.py", "g"), ("m.py", "d"))


def test_two_programs_share_an_engine() -> None:
    """The engine's optimizer may be that of either program."""
    case = Case(
        {
            "engine.py": "def train(opt):\n    opt\n",
            "a.py": "from engine import train\nopt_a = Adam()\ntrain(opt_a)\n",
            "b.py": "from engine import train\nopt_b = Adam()\ntrain(opt_b)\n",
        }
    )
    assert case.same(("engine.py", "opt"), ("a.py", "opt_a"))
    assert case.same(("engine.py", "opt"), ("b.py", "opt_b"))
    assert not case.same(("a.py", "opt_a"), ("b.py", "opt_b"))


def test_what_made_an_object() -> None:
    """The outside callee that made an object is known where the object arrives."""
    case = Case(
        {
            "main.py": "import torch\nfrom e import f\nf(torch.optim.Adam(p))\n",
            "e.py": "def f(opt):\n    opt\n",
        }
    )
    assert case.project.values.made_by(*case.at("e.py", "opt")) == ["torch.optim.Adam"]


def test_amp_given_to_a_forward() -> None:
    """A forward that must be given Apex is called by the project alone; one that need not is called by torch too."""
    case = Case(
        {
            "main.py": """
            from apex import amp
            from loss import Loss, Other
            criterion = Loss().cuda()
            criterion(x, amp, torch.optim.Adam(p))
            criterion(x)
            other = Other().cuda()
            other(x, amp)
            """,
            "loss.py": """
            from torch import nn
            class Loss(nn.Module):
                def forward(self, x, amp, optimizer):
                    amp.scale_loss(x, optimizer)
            class Other(nn.Module):
                def forward(self, x, amp=None):
                    amp.master_params(x)
            """,
        }
    )
    assert case.external("loss.py", "amp.scale_loss") == "apex.amp.scale_loss"
    assert case.callees("main.py", "criterion(x, amp, torch.optim.Adam(p))") == {"Loss.forward"}
    assert case.callees("main.py", "criterion(x)") == set()
    assert case.external("loss.py", "amp.master_params") == "apex.amp.master_params"
    assert case.callees("main.py", "other(x, amp)") == set()


def test_amp_in_an_object_s_initialize() -> None:
    """`self.amp.initialize(...)` gives back its arguments, as the plain call does."""
    case = Case(
        {
            "m.py": """
            from apex import amp
            class T:
                def __init__(self):
                    self.amp = amp
                    net, opt = make()
                    self.net, self.opt = self.amp.initialize(net, opt)
            """
        }
    )
    assert case.same(("m.py", "self.opt"), ("m.py", "opt"))
    assert not case.same(("m.py", "self.opt"), ("m.py", "net"))


def test_deep_code_is_survived() -> None:
    """Long chains of calls, aliases and conditions are cut, not recursed into without end."""
    chain = "x" + ".f()" * 1000 + "\nz" + ".g" * 1500
    aliases = "\n".join(f"a{i + 1} = a{i}" for i in range(1500))
    branches = "y = " + "1 if c else " * 1500 + "x"
    case = Case({"m.py": f"import apex\na0 = apex\n{aliases}\n{chain}\n{branches}\na1\na1500\n"})
    assert case.project.values.calls.reached == {}
    assert case.external("m.py", "a1") == "apex"
    assert case.external("m.py", "a1500") in {"apex", None}


def test_values_of_a_dictionary_taken_apart() -> None:
    """The values of a dictionary that is written out come in the order of its keys, also through a call."""
    case = Case(
        {
            "m.py": """
            from apex import amp
            def use(tools):
                first, second = tools.values()
                first.scale_loss(x, y)
                second.master_params(z)
            use({"amp": amp, "other": make()})
            """
        }
    )
    assert case.external("m.py", "first.scale_loss") == "apex.amp.scale_loss"
    assert case.external("m.py", "second.master_params") is None
