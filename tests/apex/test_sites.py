"""Where a program uses Apex, and what kind of use it is."""

from __future__ import annotations

import pytest

from amp_migrate.apex.passthrough import is_passthrough
from amp_migrate.apex.sites import is_apex
from amp_migrate.apex.strangers import strangers
from tests.placement.training import Training
from tests.project.helpers import Case

AMP = "from apex import amp\n"
CASES: dict[str, tuple[str, list[str]]] = {
    "initialize": (AMP + "m, o = amp.initialize(m, o)", ["INITIALIZE amp.initialize(m, o)"]),
    "by the whole name": ("import apex\napex.amp.initialize(m)", ["INITIALIZE apex.amp.initialize(m)"]),
    "by another name": ("import apex.amp as a\na.initialize(m)", ["INITIALIZE a.initialize(m)"]),
    "imported itself": ("from apex.amp import initialize as init\ninit(m)", ["INITIALIZE init(m)"]),
    "by an alias": (AMP + "a = amp\na.initialize(m)", ["VALUE amp", "INITIALIZE a.initialize(m)"]),
    "a block": (AMP + "with amp.scale_loss(l, o) as s:\n    s.backward()", ["SCALE_LOSS amp.scale_loss(l, o)"]),
    "master parameters": (AMP + "f(amp.master_params(o))", ["MASTER_PARAMS amp.master_params(o)"]),
    "its state": (AMP + "s = {'amp': amp.state_dict()}\namp.load_state_dict(s['amp'])", ["STATE_DICT amp.state_dict()", "LOAD_STATE_DICT amp.load_state_dict(s['amp'])"]),
    "a decorator": (AMP + "@amp.float_function\ndef f(x): pass", ["DECORATOR amp.float_function"]),
    "registered": (AMP + "amp.register_half_function(m, 'f')", ["REGISTER amp.register_half_function(m, 'f')"]),
    "without casts": (AMP + "with amp.disable_casts(): pass", ["DISABLE_CASTS amp.disable_casts()"]),
    "a function not called": (AMP + "f = amp.initialize", ["OTHER_AMP amp.initialize"]),
    "a value": (AMP + "run(amp)", ["VALUE amp"]),
    "its loss scale": (AMP + "x = amp._amp_state.loss_scalers[0].loss_scale()", ["LOSS_SCALE amp._amp_state.loss_scalers[0].loss_scale()"]),
    "another part of amp": (AMP + "amp.lists.x", ["OTHER_AMP amp.lists.x"]),
    "another part of Apex": ("from apex.optimizers import FusedAdam\nFusedAdam(p)", ["OTHER FusedAdam"]),
    "torch's amp": ("from torch.cuda import amp\namp.initialize(m)", []),
    "a parameter of that name": ("def f(amp):\n    amp.initialize(m)", []),
    "bound anew": (AMP + "def f():\n    amp = make()\n    amp.initialize(m)", []),
    "a comprehension": (AMP + "[amp.initialize(m) for m in ms]", ["INITIALIZE amp.initialize(m)"]),
    "a comprehension of that name": (AMP + "[amp.initialize(m) for amp in ms]", []),
    "in a lambda": (AMP + "f = lambda m: amp.initialize(m)", ["INITIALIZE amp.initialize(m)"]),
    "a walrus": (AMP + "if (r := amp.initialize(m)): pass", ["INITIALIZE amp.initialize(m)"]),
    "awaited": (AMP + "async def f():\n    await amp.initialize(m)", ["INITIALIZE amp.initialize(m)"]),
    "a global": ("def f():\n    global amp\n    from apex import amp\ndef g():\n    amp.initialize(m)", ["INITIALIZE amp.initialize(m)"]),
    "in a class body": ("class C:\n    from apex import amp\n    x = amp.initialize(m)", ["INITIALIZE amp.initialize(m)"]),
    "in a match": (AMP + "match m:\n    case 1:\n        amp.initialize(m)", ["INITIALIZE amp.initialize(m)"]),
    "in finally": (AMP + "try:\n    pass\nfinally:\n    amp.initialize(m)", ["INITIALIZE amp.initialize(m)"]),
    "visited by a loop": (AMP + "for v in [amp, x]:\n    v.initialize(m)", ["VALUE amp"]),
    "deleted": (AMP + "del amp", []),
    "with stars": (AMP + "amp.initialize(*args, **kwargs)", ["INITIALIZE amp.initialize(*args, **kwargs)"]),
    "a library that starts alike": ("from apexpy import amp\namp.initialize(m)", []),
    "relative": ("from .apex import amp\namp.initialize(m)", []),
}  # fmt: skip


@pytest.mark.parametrize(("text", "sites"), CASES.values(), ids=CASES)
def test_uses_of_apex(text: str, sites: list[str]) -> None:
    """By their meaning, whatever they are called."""
    case = Training(text + "\n")
    found = [s for s in case.index.sites if s.kind.name != "IMPORT"]
    assert [f"{s.kind.name} {s.module.tree.segment(s.node)}" for s in found] == sites


IMPORTS: dict[str, tuple[str, list[str]]] = {
    "plain": ("import os, apex", ["apex"]),
    "from": ("from apex.parallel import DistributedDataParallel", ["apex.parallel"]),
    "star": ("from apex.amp import *", ["apex.amp"]),
    "in a function": ("def f():\n    import apex.amp", ["apex.amp"]),
    "relative": ("from .apex import amp", []),
    "alike": ("import apexpy", []),
}


@pytest.mark.parametrize(("text", "names"), IMPORTS.values(), ids=IMPORTS)
def test_imports_of_apex(text: str, names: list[str]) -> None:
    """Statements that import it, wherever they stand."""
    case = Training(text + "\n")
    assert [s.name for s in case.index.sites if s.kind.name == "IMPORT"] == names


def test_import_that_is_handed_on() -> None:
    """A file that imports amp from another one of the project imports Apex."""
    case = Training(
        {
            "a.py": AMP,
            "b.py": "from a import amp\namp.initialize(m)\n",
            "c.py": "from a import amp\n",
        }
    )
    kinds = [(s.module.path, s.kind.name) for s in case.index.sites]
    assert kinds == [("a.py", "IMPORT"), ("b.py", "IMPORT"), ("b.py", "INITIALIZE")]


def test_names_of_apex() -> None:
    """The package and what is in it."""
    assert is_apex("apex") and is_apex("apex.amp")
    assert not is_apex("apexpy") and not is_apex("x.apex") and not is_apex("")


THROUGH: dict[str, tuple[str, bool]] = {
    "all of them": ("def f(m, o):\n    return amp.initialize(m, o)", True),
    "where Apex is there": ("def f(m, o):\n    if amp is not None:\n        return amp.initialize(m, o)\n    return m, o", True),
    "another order": ("def f(m, o):\n    return amp.initialize(o, m)", False),
    "one less": ("def f(m, o):\n    return amp.initialize(m)", False),
    "one more": ("def f(m):\n    return amp.initialize(m, None)", False),
    "something before": ("def f(m, o):\n    print(m)\n    return amp.initialize(m, o)", False),
    "something else": ("def f(m, o):\n    return other(m, o)", False),
}  # fmt: skip


@pytest.mark.parametrize(("text", "through"), THROUGH.values(), ids=THROUGH)
def test_functions_that_only_call_apex(text: str, through: bool) -> None:
    """A function that hands its parameters on is the function of Apex that it calls."""
    head = "try:\n    from apex import amp\nexcept ImportError:\n    amp = None\n"
    case = Case({"m.py": f"{head}{text}\n"})
    assert is_passthrough(case.project, case.function("m.py", "f")) is through


STRANGE: dict[str, tuple[str, list[str]]] = {
    "unbound": ("with amp.scale_loss(l, o) as s:\n    s.backward()", ["amp.scale_loss"]),
    "of a parameter": ("def f(self, h):\n    with h.amp.scale_loss(l, o) as s:\n        s.backward()", ["h.amp.scale_loss"]),
    "of Apex": (AMP + "with amp.scale_loss(l, o) as s:\n    s.backward()", []),
    "of torch": ("from torch.cuda import amp\namp.scale_loss(l, o)", []),
    "of a class of the project": ("class A:\n    def scale_loss(self, l, o): pass\nA().scale_loss(l, o)", []),
    "another name": ("amp.scale(l)", []),
}  # fmt: skip


@pytest.mark.parametrize(("text", "calls"), STRANGE.values(), ids=STRANGE)
def test_calls_that_look_like_apex(text: str, calls: list[str]) -> None:
    """Nothing ties them to Apex, and nothing says that they are something else."""
    case = Training(text + "\n")
    found = strangers(case.project, case.index.sites)
    assert [f"{s.receiver}.{s.name}" for s in found] == calls
