"""Functions in which casts change nothing, and evaluations that change weights."""

from __future__ import annotations

import pytest

from amp_migrate.autocast.reloads import reloads
from amp_migrate.training.forwards.indifferent import Indifferent
from tests.placement.training import Training, stepped
from tests.project.helpers import Case

SAME: dict[str, str] = {
    "nothing": "def f(x):\n    pass",
    "moved": "def f(x):\n    return x.cuda()",
    "reshaped": "def f(x):\n    return x.view(-1).detach()",
    "counted": "def f(x):\n    return len(x) + 1",
    "added": "def f(x, y):\n    return x + y",
    "printed": "def f(x):\n    print(x)",
    "by another": "def f(x):\n    return g(x)\ndef g(x):\n    return x.size(0)",
    "by each other": "def f(x):\n    return g(x)\ndef g(x):\n    return f(x)",
    "a record": "from collections import namedtuple\nR = namedtuple('R', 'a')\ndef f(x):\n    return R(x)",
    "of no tensors": "import os\ndef f(x):\n    os.makedirs(x)",
    "a class without a constructor": "class C: pass\ndef f(x):\n    return C()",
    "in a comprehension": "def f(xs):\n    return [x.cpu() for x in xs]",
    "weights handed out": "def f(net):\n    return list(net.parameters())",
}
CAST: dict[str, str] = {
    "a network": "def f(net, x):\n    return net(x)",
    "matrices": "def f(x, y):\n    return x @ y",
    "matrices in place": "def f(x, y):\n    x @= y",
    "powers": "def f(x):\n    return x ** 2",
    "a matrix product": "import torch\ndef f(x, y):\n    return torch.matmul(x, y)",
    "a layer": "import torch\ndef f(x):\n    return torch.nn.Linear(2, 2)(x)",
    "a loss": "import torch.nn.functional as F\ndef f(x, y):\n    return F.cross_entropy(x, y)",
    "what is given": "def f(x, g):\n    return g(x)",
    "an item": "def f(x, gs):\n    return gs[0](x)",
    "by another": "def f(net, x):\n    return g(net, x)\ndef g(net, x):\n    return net(x)",
    "by a far one": "def f(x):\n    return g(x)\ndef g(x):\n    return h(x)\ndef h(x):\n    return x @ x",
    "a property": "class C:\n    @property\n    def p(self):\n        return self.x @ self.x\ndef f(c):\n    return c.p",
    "what a property gives": (
        "class C:\n    @property\n    def net(self):\n        return self._net\n"
        "    def run(self, x):\n        return self.net(x)\ndef f(c, x):\n    return C.run(c, x)"
    ),
    "mapped": "def f(xs, g):\n    return list(map(g, xs))",
    "a builtin bound anew": "def f(x, print):\n    print(x)",
    "a lambda given": "def f(xs):\n    return sorted(xs, key=lambda x: x @ x)",
    "a function given": "def g(x):\n    return x @ x\ndef f(xs):\n    return run(g, xs)",
    "in a function inside": "def f(x):\n    def g():\n        return x @ x\n    return g",
    "in a default": "def f(x, y=A @ B):\n    return y",
    "by a coroutine": "async def f(net, x):\n    return await net(x)",
    "what is evaluated": "def f(x):\n    return eval(x)",
    "a sum of halves": "def f(x):\n    return x.sum()",
}


def _same(text: str) -> bool:
    case = Case({"m.py": text + "\n"})
    return Indifferent(case.project)(case.function("m.py", "f"))


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_casts_change_nothing(text: str) -> None:
    """No layer, matrix product or loss runs."""
    assert _same(text)


@pytest.mark.parametrize("text", CAST.values(), ids=CAST)
def test_casts_may_change_something(text: str) -> None:
    """Whatever is unknown may be cast."""
    assert not _same(text)


def test_answers_do_not_depend_on_their_order() -> None:
    """Functions that call each other are the same, whichever is asked for first."""
    text = "def a(x):\n    return b(x)\ndef b(x):\n    a(x)\n    return c(x)\ndef c(x):\n    return x @ x\ndef d(x):\n    return x.cuda()\n"
    case = Case({"m.py": text})
    for order in ("abcd", "cbad", "dabc", "bdca"):
        ask = Indifferent(case.project)
        found = {name: ask(case.function("m.py", name)) for name in order}
        assert found == {"a": False, "b": False, "c": False, "d": True}, order


def test_top_level_code_is_never_indifferent() -> None:
    """The code of a file is asked for by its parts alone."""
    case = Case({"m.py": "x = 1\ny = x @ x\n"})
    top = case.project.modules["m.py"].top
    ask = Indifferent(case.project)
    assert not ask(top)
    first, second = case.project.modules["m.py"].tree.module.body
    assert ask.part(top, first) and not ask.part(top, second)


RELOADS: dict[str, tuple[str, bool]] = {
    "weights loaded behind": ("model(x)\n    model.load_state_dict(w)", True),
    "loaded before": ("model.load_state_dict(w)\n    model(x)", False),
    "loaded in the next round": ("for y in x:\n        model.load_state_dict(w)\n        model(y)", True),
    "of an optimizer": ("model(x)\n    optimizer.load_state_dict(w)", False),
    "of a scheduler": ("model(x)\n    scheduler.load_state_dict(w)", False),
    "by a helper": ("model(x)\n    put(model, w)", True),
    "no forward": ("model.load_state_dict(w)", False),
    "either or": ("if w:\n        model(x)\n    else:\n        model.load_state_dict(w)", False),
    "shadow weights": ("model(x)\n    ema.apply_shadow()", True),
}  # fmt: skip


@pytest.mark.parametrize(("body", "found"), RELOADS.values(), ids=RELOADS)
def test_evaluations_that_change_weights(body: str, found: bool) -> None:
    """Autocast would go on with the copies that it made."""
    program = stepped("optimizer.step()\ncheck(model, optimizer, x)\n") + (
        f"\n\ndef check(model, optimizer, x, w=1):\n    {body}\n\n"
        "def put(net, w):\n    net.load_state_dict(w)\n"
    )
    training = Training(program)
    assert reloads(training.unit, training.function("train.py", "check")) is found
