"""Names and noise: what each refactoring makes of a small text, where it finds no place, and that results are whole."""

from __future__ import annotations

from random import Random
from textwrap import dedent

import pytest

from generated.refactor.bases import base, names
from generated.refactor.judging.migrated import messages
from generated.refactor.project import Project
from generated.refactor.refactoring import catalogue

OWN = [r.name for r in catalogue().values() if r.family == "noise"]


def results(name: str, before: str, seeds: int = 40, **others: str) -> set[str]:
    """Return what a refactoring makes of a file, by many seeds."""
    files = {
        "main.py": dedent(before).lstrip(),
        **{f"{k}.py": dedent(v).lstrip() for k, v in others.items()},
    }
    found = set()
    for seed in range(seeds):
        changed = catalogue()[name].apply(Project(files, "main.py"), Random(seed))
        if changed is not None and changed.files != files:
            found.add("".join(changed.files.values()))
    return found


EXACT = {
    "locals neutral": (
        "def f(x):\n    y = x\n    return y\n",
        "def f(x):\n    a1 = x\n    return a1\n",
    ),
    "parameters neutral": (
        "def f(x):\n    return x\n\n\nf(1)\n",
        "def f(p1):\n    return p1\n\n\nf(1)\n",
    ),
    "attributes neutral": (
        "class A:\n    def __init__(self):\n        self.kept = 1\n\n    def show(self):\n        return f'{self.kept}'\n",
        "class A:\n    def __init__(self):\n        self.m1 = 1\n\n    def m2(self):\n        return f'{self.m1}'\n",
    ),
    "a statement stands under a switch": (
        "def f(opt):\n    opt.step()\n",
        "def f(opt, dry_run=False):\n    if not dry_run:\n        opt.step()\n",
    ),
    "methods neutral": (
        "class A:\n    def train(self, m):\n        m.train()\n\n\na = A()\na.train(1)\n",
        "class A:\n    def do_1(self, m):\n        m.train()\n\n\na = A()\na.do_1(1)\n",
    ),
    "definitions neutral": (
        "def work():\n    pass\n\n\nwork()\n",
        "def fn_1():\n    pass\n\n\nfn_1()\n",
    ),
    "options neutral": (
        'parser.add_argument("--fp16", action="store_true")\nargs = parser.parse_args()\nprint(args.fp16)\n',
        'parser.add_argument("--fp16", dest="flag_1", action="store_true")\n'
        "args = parser.parse_args()\nprint(args.flag_1)\n",
    ),
    "a logger hears of a statement": (
        "import logging\n\nlog = logging.getLogger(__name__)\n\n\ndef f(loss):\n    loss.backward()\n",
        "import logging\n\nlog = logging.getLogger(__name__)\n\n\ndef f(loss):\n"
        '    log.info("now 7 %s", loss)\n    loss.backward()\n',
    ),
    "statements are timed": (
        "import logging\nimport time\n\nlog = logging.getLogger(__name__)\n\n\ndef f(loss):\n    loss.backward()\n",
        "import logging\nimport time\n\nlog = logging.getLogger(__name__)\n\n\ndef f(loss):\n"
        "    tic = time.time()\n    loss.backward()\n"
        '    log.debug("%.3f s", time.time() - tic)\n',
    ),
    "an object is asserted to be there": (
        "def f(opt):\n    # now\n    opt.step()\n",
        "def f(opt):\n    assert opt is not None\n    # now\n    opt.step()\n",
    ),
    "a branch that is never taken": (
        "def f(opt):\n    opt.step()\n",
        "def f(opt):\n    opt.step()\n    if False:\n        opt.step()\n",
    ),
    "a temporary is deleted": (
        "def f(m, x):\n    y = m(x)\n    m.loss(y)\n    print(1)\n",
        "def f(m, x):\n    y = m(x)\n    m.loss(y)\n    del y\n    print(1)\n",
    ),
    "comments go": ("def f():  # one\n    # two\n    return '#'\n", "def f():\n    return '#'\n"),
    "functions get docstrings": (
        "def f():\n    return 1\n",
        'def f():\n    """Do one thing."""\n    return 1\n',
    ),
    "a decorator that passes everything on": (
        "import torch\n\n\ndef f(loss):\n    loss.backward()\n",
        "import torch\n\n\ndef timed(function):\n    function.tag = 'kept'\n    return function\n\n\n"
        "@timed\ndef f(loss):\n    loss.backward()\n",
    ),
    "parameters get types": (
        "import torch\n\n\ndef f(loss, n=1):\n    loss.backward()\n",
        "import torch\nfrom typing import Any\n\n\ndef f(loss: torch.Tensor, n: Any = 1) -> None:\n    loss.backward()\n",
    ),
    "a variable gets a type": (
        "import torch\n\n\ndef f(x):\n    loss = x.sum()\n    return loss\n",
        "import torch\n\n\ndef f(x):\n    loss: torch.Tensor = x.sum()\n    return loss\n",
    ),
    "an assignment goes into the next expression": (
        "def f(m, x):\n    loss = m(x)\n    m.show(loss)\n    loss.backward()\n",
        "def f(m, x):\n    m.show(loss := m(x))\n    loss.backward()\n",
    ),
    "statements share a line": (
        "def f(opt):\n    opt.step()\n    opt.zero_grad()\n",
        "def f(opt):\n    opt.step(); opt.zero_grad()\n",
    ),
    "a body stands beside its head": (
        "def f(opt, c):\n    if c:\n        opt.step()\n",
        "def f(opt, c):\n    if c: opt.step()\n",
    ),
    "a call is split over lines": (
        "def f(a, b):\n    return a(b, k=1)\n",
        "def f(a, b):\n    return a(\n        b,\n        k=1,\n    )\n",
    ),
    "a statement is joined to one line": (
        "def f(a, b):\n    return a(\n        b,\n        k=1,\n    )\n",
        "def f(a, b):\n    return a(b, k=1)\n",
    ),
    "a value is wrapped": (
        "def f(a, b):\n    return a(b)\n",
        "def f(a, b):\n    return (\n        a(b)\n    )\n",
    ),
    "Apex under another name": (
        "from apex import amp\n\namp.initialize(m, o)\n",
        "import apex\nmixed = apex.amp\n\nmixed.initialize(m, o)\n",
    ),
    "a function of Apex under another name": (
        "from apex import amp\n\namp.initialize(m, o)\n",
        "from apex.amp import initialize\n\ninitialize(m, o)\n",
    ),
    "a function of Apex under a local name": (
        "from apex import amp\n\namp.initialize(m, o)\n",
        "from apex import amp\n\ncall = amp.initialize\ncall(m, o)\n",
    ),
    "PyTorch under another name": (
        "import torch\n\nprint(torch.zeros(1))\ntorch.nn.utils.clip_grad_norm_(p, 1.0)\n",
        "import torch\nfrom torch.nn.utils import clip_grad_norm_ as cgn\n\nprint(torch.zeros(1))\ncgn(p, 1.0)\n",
    ),
}


@pytest.mark.parametrize("name", sorted(EXACT))
def test_exact(name: str) -> None:
    """One of the texts that a refactoring makes is this one."""
    before, after = EXACT[name]
    assert after in results(name, before, seeds=150)


NOWHERE = {
    "locals neutral": "import os\n\n\ndef f(x):\n    return os.path.join(x)\n",
    "parameters neutral": "def f(x):\n    return x\n\n\nf(x=1)\n",
    "attributes neutral": "class A:\n    def run(self):\n        self.kept = 1\n        return getattr(self, 'kept')\n\n    run.x = setattr\n",
    "a statement stands under a switch": "def f(a):\n    b = a()\n    return b\n",
    "methods neutral": "class A:\n    def train(self):\n        pass\n\n\nprint(A())\n",
    "definitions neutral": "from os import work\n\n\ndef f():\n    return globals()['f']\n",
    "options neutral": 'parser.add_argument("--half")\nprint(vars(parser.parse_args()))\n',
    "an object is asserted to be there": "def f(a):\n    return [a.x for a in range(2)]\n",
    "statements are timed": "def f(x):\n    return x\n",
    "a temporary is deleted": "def f(x):\n    for y in x:\n        if y:\n            z = 1\n    return z\n",
    "comments go": "def f():\n    return '# no'\n",
    "functions get docstrings": 'def f():\n    """Is one."""\n',
    "a decorator that passes everything on": "def f():\n    yield 1\n",
    "an assignment goes into the next expression": "def f(m, x):\n    loss = m(x)\n    m.show(m.first(), loss)\n    return loss\n",
    "statements share a line": "def f(a):\n    a()  # first\n    a()\n",
    "a body stands beside its head": "def f(a):\n    if a:\n        a()\n    else:\n        a(1)\n",
    "a call is split over lines": "def f(a):\n    return a()\n",
    "a statement is joined to one line": "def f(a):\n    return a(\n        1,  # one\n    )\n",
    "Apex under another name": "from torch.cuda import amp\n\namp.autocast()\n",
    "a function of Apex under another name": "from apex import amp\n\nf(amp)\n",
    "a function of Apex under a local name": "from apex import amp\n\nf(amp)\n",
    "PyTorch under another name": "import torch.nn.functional as F\n\nF.relu(x)\n",
}


@pytest.mark.parametrize("name", sorted(NOWHERE))
def test_nowhere(name: str) -> None:
    """Where its precondition does not hold, a refactoring leaves a program alone."""
    assert results(name, NOWHERE[name]) == set()


def test_names_go_through_files() -> None:
    """A function of another file is renamed with its imports and the attribute of its module."""
    found = results(
        "definitions neutral",
        "import tools\nfrom tools import work as w\n\nw()\ntools.work()\n",
        tools="def work():\n    pass\n",
    )
    assert (
        "import tools\nfrom tools import fn_1 as w\n\nw()\ntools.fn_1()\ndef fn_1():\n    pass\n"
        in found
    )


def test_every_refactoring_is_named_here() -> None:
    """Those that draw from lists, and so have no one text, are the only ones without an exact example."""
    assert set(OWN) - set(EXACT) == {
        "every name neutral",
        "every name half neutral",
        "a flag gets a word that says something else",
        "comments and blank lines",
        "an import that nothing uses",
        "a function that nobody calls",
    }


def test_results_are_whole() -> None:
    """Whatever the base and the draw: what a refactoring returns compiles, and names nothing unknown."""
    rng = Random(11)
    for _ in range(2 * len(OWN)):
        project, name = base(rng.choice(names())).project, rng.choice(OWN)
        changed = catalogue()[name].apply(project, rng)
        for path, source in changed.files.items() if changed else ():
            compile(source, path, "exec", dont_inherit=True)
            if source != project.files[path] and name != "an import that nothing uses":
                new = messages(path, source.encode()) - messages(path, project.files[path].encode())
                assert not [m for m in new if "assigned to but never" not in m], (name, path)
