"""Refactorings that move variables, attributes and literals to other places."""

from __future__ import annotations

import ast

import pytest

from generated.refactor.code.source import source
from generated.refactor.code.variables import scopes
from generated.refactor.proofs.testing import program, reaches, seeds, sound
from generated.refactor.refactoring import catalogue

TRAIN = """
    def train(model, optimizer, batches):
        for x in batches:
            loss = model(x)
            loss.backward()
            optimizer.step()


    def main():
        model = make()
        optimizer = SGD(model.parameters(), lr=0.1)
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
        train(model, optimizer, [1, 2])


    main()
"""

TRAINER = """
    class Trainer:
        def __init__(self, model, optimizer):
            self.model = model
            self.optimizer = optimizer

        def step(self, loss):
            loss.backward()
            self.optimizer.step()


    Trainer(1, 2).step(3)
"""

EXACT = [
    (
        "final variables are read from a tuple",
        "def f(xs):\n    a = make()\n    b = a.tune()\n\n    for x in xs:\n        b.step(a, x)\n",
        "def f(xs):\n    a = make()\n    b = a.tune()\n    held = (a, b)\n\n"
        "    for x in xs:\n        held[1].step(held[0], x)\n",
    ),
    (
        "final variables are read from a tuple",
        "def f(xs):\n    a = make()\n    b = a.tune()\n\n    for x in xs:\n        b.step(a, x)\n    return a\n",
        "def f(xs):\n    a = make()\n    b = a.tune()\n    pair = (a, b)\n\n"
        "    for x in xs:\n        a, b = pair\n        b.step(a, x)\n    return pair[0]\n",
    ),
    (
        "final variables are read from a tuple",
        "a = make()\na, b = wrap(a)\n\n\ndef f(x):\n    b.step(a, x)\n\n\nf(b)\n",
        "a = make()\na, b = wrap(a)\nheld = (a, b)\n\n\ndef f(x):\n    a, b = held\n"
        "    b.step(a, x)\n\n\nf(held[1])\n",
    ),
    (
        "variables move into a dict",
        "def f():\n    a = make()\n    a.step()\n",
        'def f():\n    state = {}\n    state["a"] = make()\n    state["a"].step()\n',
    ),
    (
        "variables move into a list",
        "def f(a):\n    a.step()\n",
        "def f(a):\n    parts = [a]\n    parts[0].step()\n",
    ),
    (
        "variables move into a namespace",
        "import torch\n\n\ndef f(a):\n    b = a.step()\n    return lambda: b\n",
        "from types import SimpleNamespace\nimport torch\n\n\ndef f(a):\n"
        "    ctx = SimpleNamespace(a=a)\n    ctx.b = ctx.a.step()\n    return lambda: ctx.b\n",
    ),
    (
        "variables move into an object",
        "def f(a):\n    a, b = amp.initialize(a, 1)\n    b.step()\n",
        "class Holder:\n    pass\n\n\ndef f(a):\n    ctx = Holder()\n    ctx.a = a\n"
        "    ctx.a, ctx.b = amp.initialize(ctx.a, 1)\n    ctx.b.step()\n",
    ),
    (
        "locals become globals",
        "def f():\n    a = make()\n    a.step()\n",
        "def f():\n    global a\n    a = make()\n    a.step()\n",
    ),
    (
        "locals become class attributes",
        "def f():\n    a = make()\n    a.step()\n",
        "class State:\n    a = None\n\n\ndef f():\n    State.a = make()\n    State.a.step()\n",
    ),
    (
        "locals become attributes of self",
        "class T:\n    def f(self):\n        a = make()\n        a.step()\n",
        "class T:\n    def f(self):\n        self.a = make()\n        self.a.step()\n",
    ),
    (
        "attributes move into a dict of the object",
        "class T:\n    def __init__(self, a):\n        self.a = a\n\n    def f(self):\n        self.a.step()\n",
        "class T:\n    def __init__(self, a):\n        self.state = {}\n"
        '        self.state["a"] = a\n\n    def f(self):\n        self.state["a"].step()\n',
    ),
    (
        "attributes move into a list of the object",
        "class T:\n    def __init__(self, a):\n        self.a = a\n",
        "class T:\n    def __init__(self, a):\n        self.parts = [None]\n        self.parts[0] = a\n",
    ),
    (
        "attributes hide behind properties",
        "class T:\n    def __init__(self, a):\n        self.a = a\n\n    def f(self):\n        self.a.step()\n",
        "class T:\n    def __init__(self, a):\n        self._a = a\n\n    @property\n    def a(self):\n"
        "        return self._a\n\n    def f(self):\n        self.a.step()\n",
    ),
    (
        "literals become module constants",
        "import x\n\n\ndef f():\n    x.clip(1.5)\n",
        "import x\n\nAMOUNT = 1.5\n\n\ndef f():\n    x.clip(1.5)\n".replace(
            "clip(1.5)", "clip(AMOUNT)"
        ),
    ),
    (
        "a variable gets a second name",
        "def f(a):\n    a.step()\n    a.zero_grad()\n",
        "def f(a):\n    opt = a\n    opt.step()\n    opt.zero_grad()\n",
    ),
    (
        "an attribute gets a local name",
        "class T:\n    def __init__(self, a):\n        self.a = a\n\n    def f(self):\n"
        "        self.a.step()\n        self.a.zero_grad()\n",
        "class T:\n    def __init__(self, a):\n        self.a = a\n\n    def f(self):\n"
        "        a = self.a\n        a.step()\n        a.zero_grad()\n",
    ),
    (
        "parameters are handed over in a container",
        "def f(a, b):\n    a.step(b)\n\n\nf(x, 1)\n",
        "def f(ctx):\n    ctx[0].step(ctx[1])\n\n\nf((x, 1))\n",
    ),
    (
        "a function reads the variables of its caller from one container",
        "def f(a, b):\n    a.step(b)\n\n\ndef g(m, n):\n    f(m, b=n)\n",
        'def f(ctx):\n    ctx["m"].step(ctx["n"])\n\n\ndef g(m, n):\n'
        '    ctx = {"m": m, "n": n}\n    f(ctx)\n',
    ),
    (
        "a helper walks the groups of an optimizer",
        "def f(o):\n    clip(amp.master_params(o))\n    amp.done()\n",
        "def parameters_of(optimizer):\n    for group in optimizer.param_groups:\n"
        '        for p in group["params"]:\n            yield p\n\n\n'
        "def f(o):\n    clip(parameters_of(o))\n    amp.done()\n",
    ),
    (
        "parameters are kept from the start",
        "def f(m, xs):\n    for x in xs:\n        clip_grad_norm_(m.parameters(), x)\n",
        "def f(m, xs):\n    params = list(m.parameters())\n    for x in xs:\n"
        "        clip_grad_norm_(params, x)\n",
    ),
    (
        "a step asks whether amp has the optimizer",
        "def f(o, l):\n    with amp.scale_loss(l, o) as s:\n        s.backward()\n    o.step()\n",
        'def take_step(optimizer):\n    if hasattr(optimizer, "_amp_stash"):\n        optimizer.step()\n'
        "    else:\n        optimizer.step()\n\n\n"
        "def f(o, l):\n    with amp.scale_loss(l, o) as s:\n        s.backward()\n    take_step(o)\n",
    ),
    (
        "gradients are cleared by a walk over the groups",
        "def f(o, l):\n    with amp.scale_loss(l, o) as s:\n        s.backward()\n    o.zero_grad()\n",
        "def clear_gradients(optimizer):\n    for group in optimizer.param_groups:\n"
        '        for p in group["params"]:\n            p.grad = None\n\n\n'
        "def f(o, l):\n    with amp.scale_loss(l, o) as s:\n        s.backward()\n    clear_gradients(o)\n",
    ),
]


@pytest.mark.parametrize(("name", "before", "after"), EXACT, ids=[e[0] for e in EXACT])
def test_what_is_written(name: str, before: str, after: str) -> None:
    assert reaches(name, program(before), after)


NOWHERE = [
    ("final variables are read from a tuple", "def f(a):\n    b = 1\n    return b\n"),
    (
        "final variables are read from a tuple",
        "def f(a, b):\n    for x in a:\n        a, b = x(a, b)\n",
    ),
    (
        "final variables are read from a tuple",
        "def f(x):\n    if x:\n        a = b = 1\n    x = 2\n    return a, b\n",
    ),
    (
        "final variables are read from a tuple",
        "def f(a, b):\n    def g():\n        nonlocal a\n        a = b\n\n    g()\n    return a, b\n",
    ),
    (
        "final variables are read from a tuple",
        "def f(a, b):\n    print(locals())\n    return a, b\n",
    ),
    ("final variables are read from a tuple", 'def f(a, b):\n    return f"{a} {b}"\n'),
    ("variables move into a dict", "def f(a):\n    a = vars(a)\n"),
    ("variables move into a dict", "def f():\n    for a in xs:\n        a.step()\n"),
    ("variables move into a list", "def f():\n    a = 1\n    print(f'{a}')\n"),
    ("variables move into a namespace", "def f():\n    global a\n    a = 1\n"),
    ("locals become globals", "def f(n):\n    a = n\n    return f(a - 1)\n"),
    ("locals become globals", "a = 1\n\n\ndef f():\n    a = 2\n    return a\n"),
    ("locals become class attributes", "def f():\n    a = 1\n    yield a\n"),
    ("locals become attributes of self", "def f():\n    a = 1\n    return a\n"),
    (
        "attributes move into a dict of the object",
        "class T(nn.Module):\n    def __init__(self, a):\n        self.a = a\n",
    ),
    (
        "attributes move into a list of the object",
        "class T:\n    def __init__(self, a):\n        self.a = a\n\n\nprint(T(1).a)\n",
    ),
    (
        "attributes hide behind properties",
        "class T:\n    def __init__(self, a):\n        self.a = a\n\n\nt = T(1)\nt.a = 2\n",
    ),
    ("literals become module constants", "A = 1\n"),
    ("literals become attributes of their class", "def f():\n    return 1.5\n"),
    ("a variable gets a second name", "def f(a):\n    a = a.step()\n    return a\n"),
    (
        "an attribute gets a local name",
        "class T:\n    def __init__(self, a):\n        self.a = a\n\n    def f(self):\n"
        "        self.a.step()\n        self.a = 1\n",
    ),
    ("parameters are handed over in a container", "def f(a, b):\n    pass\n\n\nmap(f, xs, ys)\n"),
    ("parameters are handed over in a container", "def f(a, b):\n    pass\n\n\nf(g(), h())\n"),
    (
        "a function reads the variables of its caller from one container",
        "def f(a, b):\n    a = b\n\n\ndef g(m, n):\n    f(m, n)\n",
    ),
    ("a helper walks the groups of an optimizer", "clip(amp.master_params(o))\n"),
    (
        "parameters are kept from the start",
        "def f(m, xs):\n    for x in xs:\n        clip_grad_norm_(m.parameters(), x)\n        m = x\n",
    ),
    ("a step asks whether amp has the optimizer", "scheduler.step()\n"),
    (
        "gradients are cleared by a walk over the groups",
        'amp.initialize(m, o, opt_level="O2")\nwith amp.scale_loss(l, o) as s:\n    pass\no.zero_grad()\n',
    ),
]


@pytest.mark.parametrize(("name", "text"), NOWHERE)
def test_no_place(name: str, text: str) -> None:
    assert seeds(name, program(text)) == []


def test_every_refactoring_has_both_kinds_of_tests() -> None:
    held = {r.name for r in catalogue().values() if r.family == "places"}
    assert {name for name, *_ in (*EXACT, *NOWHERE)} <= held
    assert all(
        seeds(name, program(TRAIN)) or seeds(name, program(TRAINER))
        for name in held
        - {
            "literals become attributes of their class",
            "a helper walks the groups of an optimizer",
            "parameters are kept from the start",
            "a step asks whether amp has the optimizer",
            "gradients are cleared by a walk over the groups",
        }
    )


def test_constants_go_to_their_class_or_a_file() -> None:
    project = program("class T:\n    def f(self):\n        return self.g(1.5)\n")
    after = "class T:\n    AMOUNT = 1.5\n\n    def f(self):\n        return self.g(self.AMOUNT)\n"
    assert reaches("literals become attributes of their class", project, after)
    assert reaches(
        "literals move into a module of settings", project, "AMOUNT = 1.5\n", "settings.py"
    )


def test_comments_stay_with_their_statements() -> None:
    project = program("def f():\n    # the network\n    a = make()  # here\n    return a\n")
    after = 'def f():\n    state = {}\n    # the network\n    state["a"] = make()  # here\n    return state["a"]\n'
    assert reaches("variables move into a dict", project, after)


def test_names_are_variables_of_their_scopes() -> None:
    src = source(
        "a = 1\ndef f(b):\n    global a\n    a = [b for b in range(a)]\n    def g():\n"
        "        nonlocal b\n        b = a\n    return lambda a: a\n"
    )
    every = scopes(src)
    module = every.module.variables
    function = next(s for s in every.all if getattr(s.node, "name", "") == "f")
    assert len(module["a"].names) == 1 and len(module["a"].inner) == 3
    assert [n.lineno for n in function.variables["b"].every] == [7]
    assert isinstance(function.variables["b"].parameter, ast.arg)


def test_random_bases_stay_sound() -> None:
    assert sound("places", seed=3, count=50) == []
