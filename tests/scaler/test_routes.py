"""How each function that needs the GradScaler gets hold of it, and which way is preferred."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from amp_migrate.placement.making.at_hand import at_hand
from amp_migrate.plan.cannot import Cannot, OutOfReach
from amp_migrate.plan.model import AddArgument
from tests.placement.training import HEAD, PATH, Training

MAKE = "model = Net()\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nmodel, optimizer = amp.initialize(model, optimizer)\n"
TRAIN = "loss = model(x).mean()\nwith amp.scale_loss(loss, optimizer) as scaled:\n    scaled.backward()\noptimizer.step()\n"


def _indented(text: str, levels: int = 1) -> str:
    return "".join("    " * levels + line + "\n" for line in text.splitlines())


def _on_self(text: str) -> str:
    for name in ("model", "optimizer"):
        text = text.replace(name, f"self.{name}").replace(f"self.self.{name}", f"self.{name}")
    return text.replace("lr=0.1", "lr=0.1")


M1, T1, M2, T2 = _indented(MAKE), _indented(TRAIN), _indented(MAKE, 2), _indented(TRAIN, 2)
SM2, ST2 = _indented(_on_self(MAKE), 2), _indented(_on_self(TRAIN), 2)

CASES: dict[str, tuple[str, dict[str, str], list[str]]] = {
    "in the function itself": (f"def main(x):\n{M1}{T1}\nmain(1)\n", {"main": "scaler"}, []),
    "in the file": (f"{MAKE}{TRAIN}", {"": "scaler"}, []),
    "a global of the file": (
        f"{MAKE}\ndef train(x):\n{T1}\ntrain(1)\n", {"train": "scaler"}, [],
    ),
    "by closure": (
        f"def main(x):\n{M1}    def train():\n{T2}    train()\nmain(1)\n",
        {"main": "scaler", "main.<locals>.train": "scaler"}, [],
    ),
    "by a closure two deep": (
        f"def main(x):\n{M1}    def outer():\n        def train():\n{_indented(TRAIN, 3)}        train()\n    outer()\nmain(1)\n",
        {"main": "scaler", "main.<locals>.outer.<locals>.train": "scaler", "main.<locals>.outer": "scaler"}, [],
    ),
    "an attribute of the object": (
        f"class T:\n    def __init__(self):\n{SM2}    def train(self, x):\n{ST2}\nT().train(1)\n",
        {"T.train": "self.scaler"}, [],
    ),
    "an attribute made in another method": (
        f"class T:\n    def prepare(self):\n{SM2}    def train(self, x):\n        self.prepare()\n{ST2}\nT().train(1)\n",
        {"T.train": "self.scaler"}, [],
    ),
    "an attribute of a base class": (
        f"class B:\n    def __init__(self):\n{SM2}\nclass T(B):\n    def train(self, x):\n{ST2}\nT().train(1)\n",
        {"T.train": "self.scaler"}, [],
    ),
    "another name for the object": (
        f"class T:\n    def __init__(this):\n{SM2.replace('self', 'this')}    def train(me, x):\n{ST2.replace('self', 'me')}\nT().train(1)\n",
        {"T.train": "me.scaler"}, [],
    ),
    "a parameter": (
        f"def train(model, optimizer, x):\n{T1}\ndef main(x):\n{M1}    train(model, optimizer, x)\nmain(1)\n",
        {"main": "scaler", "train": "scaler"},
        ["train() takes the GradScaler as parameter `scaler` (1 call passes it)"],
    ),
    "a parameter of two calls": (
        f"def train(model, optimizer, x):\n{T1}\ndef main(x):\n{M1}    train(model, optimizer, x)\n    train(model, optimizer, x)\nmain(1)\n",
        {"main": "scaler", "train": "scaler"},
        ["train() takes the GradScaler as parameter `scaler` (2 calls pass it)"],
    ),
    "through a function between": (
        f"def train(model, optimizer, x):\n{T1}\ndef epoch(model, optimizer, x):\n    train(model, optimizer, x)\n"
        f"def main(x):\n{M1}    epoch(model, optimizer, x)\nmain(1)\n",
        {"main": "scaler", "epoch": "scaler", "train": "scaler"},
        [
            "epoch() takes the GradScaler as parameter `scaler` (1 call passes it)",
            "train() takes the GradScaler as parameter `scaler` (1 call passes it)",
        ],
    ),
    "in a coroutine": (
        f"async def train(model, optimizer, x):\n{T1}\nasync def main(x):\n{M1}    await train(model, optimizer, x)\n",
        {"main": "scaler", "train": "scaler"},
        ["train() takes the GradScaler as parameter `scaler` (1 call passes it)"],
    ),
    "a static method": (
        f"class T:\n    @staticmethod\n    def train(model, optimizer, x):\n{T2}\ndef main(x):\n{M1}    T.train(model, optimizer, x)\nmain(1)\n",
        {"main": "scaler", "T.train": "scaler"},
        ["T.train() takes the GradScaler as parameter `scaler` (1 call passes it)"],
    ),
    "returned": (
        f"def make():\n{M1}    return model, optimizer\ndef main(x):\n    model, optimizer = make()\n{T1}\nmain(1)\n",
        {"make": "scaler", "main": "scaler"}, ["make() returns the GradScaler too"],
    ),
    "a constructor that is given the optimizer": (
        f"class T:\n    def __init__(self, model, optimizer):\n        self.model = model\n        self.optimizer = optimizer\n    def train(self, x):\n{ST2}\n"
        f"def main(x):\n{M1}    T(model, optimizer).train(x)\nmain(1)\n",
        {"main": "scaler", "T.__init__": "scaler", "T.train": "self.scaler"},
        ["T.__init__() takes the GradScaler as parameter `scaler` (1 call passes it)"],
    ),
    "an object held by another": (
        f"class A:\n    def __init__(self):\n{SM2}    def go(self, x):\n{ST2}class B:\n    def __init__(self):\n        self.a = A()\n"
        f"    def train(self, x):\n{ST2.replace('self.', 'self.a.')}\nB().train(1)\nA().go(1)\n",
        {"A.go": "self.scaler", "B.train": "self.a.scaler"}, [],
    ),
    "a global that a parameter hides": (
        f"{MAKE}\ndef train(model, optimizer, x):\n{T1}\ntrain(model, optimizer, 1)\n",
        {"": "scaler", "train": "scaler"},
        ["train() takes the GradScaler as parameter `scaler` (1 call passes it)"],
    ),
    "a method that needs no attribute": (
        f"def train(model, optimizer, x):\n{T1}\nclass T:\n    def run(self, x):\n{M2}        train(model, optimizer, x)\nT().run(1)\n",
        {"T.run": "scaler", "train": "scaler"},
        ["train() takes the GradScaler as parameter `scaler` (1 call passes it)"],
    ),
    "two methods of a constructed object": (
        f"class T:\n    def __init__(self, model, optimizer):\n        self.model = model\n        self.optimizer = optimizer\n"
        f"    def train(self, x):\n{ST2}    def more(self, x):\n{ST2}"
        f"def main(x):\n{M1}    t = T(model, optimizer)\n    t.train(x)\n    t.more(x)\nmain(1)\n",
        {"main": "scaler", "T.__init__": "scaler", "T.train": "self.scaler", "T.more": "self.scaler"},
        ["T.__init__() takes the GradScaler as parameter `scaler` (1 call passes it)"],
    ),
    "returned at both ends": (
        f"def make(a):\n{M1}    if a:\n        return model, optimizer\n    return model, optimizer\ndef main(x):\n    model, optimizer = make(x)\n{T1}\nmain(1)\n",
        {"make": "scaler", "main": "scaler"}, ["make() returns the GradScaler too"],
    ),
    "a function of nobody": (
        f"def old(model, optimizer, x):\n{T1}\ndef main(x):\n{M1}{T1}\nmain(1)\n",
        {"old": "scaler", "main": "scaler"},
        ["old() takes the GradScaler as parameter `scaler` (0 calls pass it)"],
    ),
}  # fmt: skip


def _routes(training: Training) -> tuple[dict[str, str], list[str]]:
    home = training.unit.home
    found = {f.qualname if f.node is not None else "": text for f, text in home.resolved.items()}
    sentences = [thread.sentence for thread in home.threads.values()]
    sentences += [sentence for _, sentence, _ in home.returning.edits()]
    return found, sorted(sentences)


@pytest.mark.parametrize(("program", "reached", "told"), CASES.values(), ids=CASES)
def test_ways_of_the_scaler(program: str, reached: dict[str, str], told: list[str]) -> None:
    """What is nearest is used: the function, its closure, its object, a parameter, what a call returns."""
    assert _routes(Training(HEAD + program)) == (reached, told)


REFUSED: dict[str, str] = {
    "called from elsewhere": f"def train(model, optimizer, x):\n{T1}\ndef main(x):\n{M1}    run(train, model)\nmain(1)\n",
    "not called": f"def train(model, optimizer, x):\n{T1}\ndef main(x):\n{M1}    pass\nmain(1)\n\n__all__ = ['train']\nregister(train)\n",
    "before it is made": f"def main(x):\n    model = Net()\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n{T1}    model, optimizer = amp.initialize(model, optimizer)\nmain(1)\n",
    "called by whoever imports it": f"def train(model, optimizer, x):\n{T1}\ndef make():\n{M1}    return model, optimizer\n",
    "nothing makes it": f"def train(model, optimizer, x):\n{T1}\ntrain(1, 2, 3)\n",
    "returned at times": f"def make(a):\n{M1}    if a:\n        return\n    return model, optimizer\ndef main(x):\n    model, optimizer = make(x)\n{T1}\nmain(1)\n",
    "returned to one that takes two": f"def make():\n{M1}    return model, optimizer\ndef main(x):\n    both = make()\n    model, optimizer = make()\n{T1}\nmain(1)\n",
    "made in a loop and needed behind it": f"def main(x):\n    model = Net()\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    for i in x:\n        model, optimizer = amp.initialize(model, optimizer)\n{T2}{T1}\nmain(1)\n",
    "a parameter hides the object": f"class A:\n    def __init__(self):\n{SM2}    def go(self):\n        def train(self, x):\n{_indented(_on_self(TRAIN), 3)}        train(self, 1)\nA().go()\n",
}  # fmt: skip


@pytest.mark.parametrize("program", REFUSED.values(), ids=REFUSED)
def test_scaler_that_cannot_be_had(program: str) -> None:
    """Some call of the function is not seen, or nothing makes a scaler before."""
    with pytest.raises(Cannot) as caught:
        _ = Training(HEAD + program).context
    assert caught.value.code == "AMP901"


def test_way_that_a_module_s_variable_may_replace() -> None:
    """Where a scaler is made, only its way is missing; where none is, nothing can replace it."""
    with pytest.raises(OutOfReach):
        _ = Training(HEAD + REFUSED["called from elsewhere"]).context
    with pytest.raises(Cannot) as caught:
        _ = Training(HEAD + REFUSED["nothing makes it"]).context
    assert not isinstance(caught.value, OutOfReach)


FILES: Mapping[str, str] = {
    "engine.py": f"from apex import amp\n\ndef train(model, optimizer, x):\n{T1}",
    PATH: HEAD
    + f"from engine import train\n\ndef main(x):\n{M1}    train(model, optimizer, x)\nmain(1)\n",
}


def test_parameter_over_files() -> None:
    """A function of another file is given the scaler too."""
    reached, told = _routes(Training(FILES))
    assert reached == {"main": "scaler", "train": "scaler"}
    assert told == ["train() takes the GradScaler as parameter `scaler` (1 call passes it)"]


def test_evaluation_that_needs_none_is_given_none() -> None:
    """A function that neither scales nor steps is left alone."""
    program = f"def check(model, x):\n    return model(x)\ndef main(x):\n{M1}{T1}    check(model, x)\nmain(1)\n"
    reached, told = _routes(Training(HEAD + program))
    assert reached == {"main": "scaler"} and told == []


def test_message_of_a_use_before() -> None:
    """What runs before the initialize is told apart from what it may leave out."""
    with pytest.raises(OutOfReach) as caught:
        _ = Training(HEAD + REFUSED["before it is made"]).context
    assert "makes only later" in caught.value.message
    with pytest.raises(OutOfReach) as caught:
        _ = Training(HEAD + REFUSED["made in a loop and needed behind it"]).context
    assert "on every way" in caught.value.message


GIVEN: dict[str, tuple[str, str, str | None]] = {
    "by position": ("train(model, optimizer, x)", "model, optimizer, x", None),
    "by keyword behind keywords": ("train(model, optimizer, x=x)", "model, optimizer, x", "scaler"),
    "by keyword behind a default": ("train(model, optimizer, x)", "model, optimizer, x, y=1", "scaler"),
    "by keyword behind others": ("train(model, optimizer, x, y)", "model, optimizer, *x", "scaler"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "parameters", "keyword"), GIVEN.values(), ids=GIVEN)
def test_argument_that_calls_get(call: str, parameters: str, keyword: str | None) -> None:
    """By position where it is the next one, by keyword otherwise."""
    program = f"def train({parameters}):\n{T1}\ndef main(x, y):\n{M1}    {call}\nmain(1, 2)\n"
    home = Training(HEAD + program).unit.home
    edits = [edit for thread in home.threads.values() for _, edit in thread.edits]
    given = [(e.text, e.keyword) for e in edits if isinstance(e, AddArgument)]
    assert given == [("scaler", keyword)]


CHECK = "def check(model, x):\n    return model(x)\n"
AT_HAND: dict[str, tuple[str, str | None]] = {
    "called behind": (f"{CHECK}def main(x):\n{M1}{T1}    check(model, x)\nmain(1)\n", "scaler"),
    "called before": (
        f"{CHECK}def main(x):\n    check(Net(), x)\n{M1}{T1}    check(model, x)\nmain(1)\n", None,
    ),
    "called from another": (
        f"{CHECK}def other(x):\n    check(Net(), x)\ndef main(x):\n{M1}{T1}    check(model, x)\nmain(1)\nother(2)\n", None,
    ),
    "not called": (f"{CHECK}def main(x):\n{M1}{T1}\nmain(1)\n", None),
    "handed to others": (
        f"{CHECK}def main(x):\n{M1}{T1}    check(model, x)\n    run(check)\nmain(1)\n", None,
    ),
    "with defaults": (
        f"def check(model, x=1):\n    return model(x)\ndef main(x):\n{M1}{T1}    check(model, x)\nmain(1)\n", "scaler",
    ),
    "a method of another": (
        f"class C:\n    def check(self, model, x):\n        return model(x)\ndef main(x):\n{M1}{T1}    C().check(model, x)\nmain(1)\n", "scaler",
    ),
    "a method beside the constructor": (
        f"class T:\n    def __init__(self):\n{SM2}    def train(self, x):\n{ST2}    def check(self, x):\n        return self.model(x)\nT().train(1)\n",
        "self.scaler",
    ),
    "a method beside another that makes it": (
        f"class T:\n    def prepare(self):\n{SM2}    def train(self, x):\n        self.prepare()\n{ST2}    def check(self, x):\n        return self.model(x)\nT().train(1)\n",
        "self.scaler",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("program", "text"), AT_HAND.values(), ids=AT_HAND)
def test_scaler_that_an_evaluation_has_at_hand(program: str, text: str | None) -> None:
    """An evaluation may run without any training: what only training makes does not count, but where one that is off stands for it."""
    training = Training(HEAD + program)
    functions = training.project.modules[PATH].functions.values()
    check = next(f for f in functions if f.name == "check")
    assert check.node is not None
    context = training.context
    node = check.node.body[0]
    assert at_hand(context.unit.home, check, node, list(context.creations.values())) == text
