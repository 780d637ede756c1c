"""What is read in place of a use of Apex under another name, and where it stays as it is."""

from __future__ import annotations

import textwrap

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.placement.finding.build import Index
from amp_migrate.plain.spell import spelt_out
from amp_migrate.project import build

SPELT = {
    "a local name": (
        "scope = amp.scale_loss\nwith scope(loss, opt) as s:\n    s.backward()",
        "scope = None\nwith amp.scale_loss(loss, opt) as s:\n    s.backward()",
    ),
    "arguments that are deleted again": (
        "given = [loss, opt]\nwith amp.scale_loss(*given) as s:\n    s.backward()\ndel given",
        "given = None\nwith amp.scale_loss(loss, opt) as s:\n    s.backward()\nNone",
    ),
    "a local name that is deleted with another": (
        "held = 1\nscope = amp.scale_loss\nwith scope(loss, opt) as s:\n    s.backward()\ndel scope, held",
        "held = 1\nscope = None\nwith amp.scale_loss(loss, opt) as s:\n    s.backward()\ndel scope, held",
    ),
    "a name in both arms of one flag": (
        "if on:\n    init = amp.initialize\nif on:\n    model, opt = init(model, opt)",
        "if on:\n    init = None\nif on:\n    model, opt = amp.initialize(model, opt)",
    ),
    "a partial": (
        "init = functools.partial(amp.initialize, model, opt_level='O1')\nmodel, opt = init(opt, verbosity=0)",
        "init = None\nmodel, opt = amp.initialize(model, opt, opt_level='O1', verbosity=0)",
    ),
    "a partial of a partial, over lines": (
        "a = functools.partial(\n    amp.initialize,\n    model,\n)\nb = functools.partial(a, opt)\nb()",
        "a = (None\n\n\n)\nb = None\namp.initialize(model, opt)",
    ),
    "a partial whose keyword is given again": (
        "init = functools.partial(amp.initialize, opt_level='O1')\ninit(model, opt, opt_level='O2')",
        "init = None\namp.initialize(model, opt, opt_level='O2')",
    ),
    "a partial that is called where it is made": (
        "functools.partial(amp.initialize, make())(opt)",
        "amp.initialize(make(), opt)",
    ),
    "an entry of a dictionary": (
        "tools = {'scale': amp.scale_loss, 'lr': 0.1}\nwith tools['scale'](loss, opt) as s:\n    s.backward()",
        "tools = None\nwith amp.scale_loss(loss, opt) as s:\n    s.backward()",
    ),
    "an entry of a dictionary with others": (
        "tools = {'scale': amp.scale_loss, 'lr': 0.1}\ntools['scale'](loss, opt)\nprint(tools['lr'])",
        "tools = {'lr': 0.1}\namp.scale_loss(loss, opt)\nprint(tools['lr'])",
    ),
    "amp in a namespace with others": (
        "box = types.SimpleNamespace(lr=0.1, amp=amp)\nbox.amp.initialize(model, opt)\nprint(box.lr)",
        "box = types.SimpleNamespace(lr=0.1)\namp.initialize(model, opt)\nprint(box.lr)",
    ),
    "an item of a tuple with others": (
        "tools = (amp.initialize, make())\ntools[0](model, opt)",
        "tools = (None, make())\namp.initialize(model, opt)",
    ),
    "an item that is stored": (
        "state['f'] = amp.scale_loss\nwith state['f'](loss, opt) as s:\n    s.backward()",
        "state['f'] = None\nwith amp.scale_loss(loss, opt) as s:\n    s.backward()",
    ),
    "an item of a tuple": (
        "tools = (amp.initialize, amp.scale_loss)\ntools[0](model, opt)\ntools[1](loss, opt)",
        "tools = None\namp.initialize(model, opt)\namp.scale_loss(loss, opt)",
    ),
    "amp in a namespace": (
        "box = types.SimpleNamespace(amp=amp, lr=0.1)\nbox.amp.initialize(model, opt)",
        "box = None\namp.initialize(model, opt)",
    ),
    "amp under a name of its own": (
        "half = apex.amp\nhalf.initialize(model, opt)\ndef f():\n    return half.state_dict()",
        "half = None\napex.amp.initialize(model, opt)\ndef f():\n    return apex.amp.state_dict()",
    ),
    "a tuple of arguments": (
        "parts = (model, opt)\namp.initialize(*parts, opt_level='O1')",
        "parts = None\namp.initialize(model, opt, opt_level='O1')",
    ),
    "a list that is read elsewhere too": (
        "parts = [loss, opt]\nwith amp.scale_loss(*parts) as s:\n    s.backward()\nprint(parts[0])",
        "parts = [loss, opt]\nwith amp.scale_loss(loss, opt) as s:\n    s.backward()\nprint(parts[0])",
    ),
    "a tuple that a function returns": (
        "def make():\n    return model, opt\nparts = make()\namp.initialize(*parts)",
        "def make():\n    return model, opt\nparts = make()\namp.initialize(parts[0], parts[1])",
    ),
    "a tuple of what is computed": (
        "parts = (loss.mean(), opt)\nwith amp.scale_loss(*parts) as s:\n    s.backward()",
        "parts = (loss.mean(), opt)\nwith amp.scale_loss(parts[0], parts[1]) as s:\n    s.backward()",
    ),
    "keywords": (
        "options = dict(models=model, optimizers=opt)\namp.initialize(**options)",
        "options = None\namp.initialize(models=model, optimizers=opt)",
    ),
    "a second name of the keywords of a function": (
        "def f(*a, **k):\n    print(a)\n    parts = [k]\n    return amp.initialize(*a, **parts[0])",
        "def f(*a, **k):\n    print(a)\n    parts = None\n    return amp.initialize(*a, **k)",
    ),
    "a name that travels": (
        "f = amp.scale_loss\nuse(f)\nf(loss, opt)",
        "from apex.amp import scale_loss as f\nuse(f)\nf(loss, opt)",
    ),
    "a name that is None elsewhere": (
        "if on:\n    half = apex.amp\nelse:\n    half = None\nif half is not None:\n    half.scale_loss(loss, opt)",
        "if on:\n    from apex import amp as half\nelse:\n    half = None\n"
        "if half is not None:\n    half.scale_loss(loss, opt)",
    ),
    "arguments in a part of an object": (
        "kept = types.SimpleNamespace(table={})\nkept.table['given'] = [loss, opt]\namp.scale_loss(*kept.table['given'])",
        "kept = types.SimpleNamespace(table={})\nkept.table['given'] = None\namp.scale_loss(loss, opt)",
    ),
    "options under two names": (
        "options = {}\noptions['loss_id'] = 1\nother = options\namp.scale_loss(loss, opt, **other)",
        "options = None\noptions['loss_id'] = None\nother = None\namp.scale_loss(loss, opt, loss_id=1)",
    ),
    "a context manager that computes the loss": (
        "@contextlib.contextmanager\ndef both(a, b):\n    with amp.scale_loss(a + b, opt) as s:\n        yield s\n"
        "with both(loss, on) as s:\n    s.backward()",
        "(None\n\n\n)\nwith amp.scale_loss(loss + on, opt) as s:\n    s.backward()",
    ),
    "a function that returns it": (
        "def scaled(loss):\n    return amp.scale_loss(loss, opt)\nwith scaled(loss / 2) as s:\n    s.backward()",
        "(None\n)\nwith amp.scale_loss(loss / 2, opt) as s:\n    s.backward()",
    ),
    "a function that is given amp": (
        "def scaled(amp, loss, *more):\n    '''Scale.'''\n    return amp.scale_loss(loss, *more)\nscaled(amp, loss, opt)",
        "(None\n\n)\namp.scale_loss(loss, opt)",
    ),
    "a function that calls what it is given": (
        "def call(f, *args, **named):\n    return f(*args, **named)\ncall(amp.scale_loss, loss, opt, loss_id=1)",
        "(None\n)\namp.scale_loss(loss, opt, loss_id=1)",
    ),
    "a lambda that returns it": (
        "scaled = lambda l: amp.scale_loss(l, opt)\nwith scaled(loss / 2) as s:\n    s.backward()",
        "scaled = None\nwith amp.scale_loss(loss / 2, opt) as s:\n    s.backward()",
    ),
    "a lambda under a flag, beside one that does nothing": (
        "if on:\n    f = lambda l: amp.scale_loss(l, opt)\nelse:\n    f = lambda l: contextlib.nullcontext(l)\n"
        "with f(loss) as s:\n    s.backward()",
        "if on:\n    f = None\nelse:\n    f = None\nwith amp.scale_loss(loss, opt) as s:\n    s.backward()",
    ),
    "a function that returns it under a flag": (
        "def f(l, o, on):\n    if on:\n        return amp.scale_loss(l, o)\n    return contextlib.nullcontext(l)\n"
        "with f(loss, opt, on=1) as s:\n    s.backward()",
        "(None\n\n\n)\nwith amp.scale_loss(loss, opt) as s:\n    s.backward()",
    ),
    "a method that returns it": (
        "class T:\n    def fit(self):\n        with self.f(loss) as s:\n            s.backward()\n"
        "    def f(self, l):\n        return amp.scale_loss(l, self.opt)\nT().fit()",
        "class T:\n    def fit(self):\n        with amp.scale_loss(loss, self.opt) as s:\n            s.backward()\n"
        "    (None\n)\nT().fit()",
    ),
    "a function that chooses in an expression": (
        "def f(l, on):\n    return amp.scale_loss(l, opt) if on else contextlib.nullcontext(l)\n"
        "with f(loss, 1) as s:\n    s.backward()",
        "(None\n)\nwith amp.scale_loss(loss, opt) as s:\n    s.backward()",
    ),
    "a lambda that steps": (
        "go = lambda: opt.step()\ngo()",
        "def go(): return opt.step()\ngo()",
    ),
    "a lambda with a default that clips over lines": (
        "def f(o):\n    go = lambda m, *r, c={1: 2}: (torch.nn.utils.clip_grad_norm_(\n        m, c))  # now\n    go(o)",
        "def f(o):\n    def go(m, *r, c={1: 2}): return (torch.nn.utils.clip_grad_norm_(\n        m, c))  # now\n    go(o)",
    ),
    "a test for Apex with the same arms": (
        "if hasattr(opt, '_amp_stash'):\n    opt.step()\nelse:\n    opt.step()\n    # behind",
        "(None\n\n)\nopt.step()\n    # behind",
    ),
    "a test for Apex before the same return": (
        "def f(o):\n    if not getattr(o, '_amp_stash', None):\n        return o.step()\n    return o.step()",
        "def f(o):\n    (None\n)\n    return o.step()",
    ),
    "a test for Apex in an expression": (
        "a = opt.step() if '_amp_stash' in vars(opt) else opt.step()",
        "a = opt.step()",
    ),
}

KEPT = {
    "a method that another class overrides": (
        "class T:\n    def fit(self):\n        with self.f(loss) as s:\n            s.backward()\n"
        "    def f(self, l):\n        return amp.scale_loss(l, self.opt)\n"
        "class U(T):\n    def f(self, l):\n        return contextlib.nullcontext(l)"
    ),
    "a method that is also found by its name": (
        "class T:\n    def fit(self):\n        with self.f(loss) as s:\n            s.backward()\n"
        "    def f(self, l):\n        return amp.scale_loss(l, self.opt)\nuse(getattr(T(), 'f'))"
    ),
    "a lambda beside one that enters another loss": (
        "if on:\n    f = lambda l: amp.scale_loss(l, opt)\nelse:\n    f = lambda l: contextlib.nullcontext(l / 2)\n"
        "with f(loss) as s:\n    s.backward()"
    ),
    "a lambda that is also given to a function": (
        "f = lambda l: amp.scale_loss(l, opt)\nwith f(loss) as s:\n    s.backward()\nuse(f)"
    ),
    "a function under a flag that a test computes": (
        "def f(l):\n    if ask():\n        return amp.scale_loss(l, opt)\n    return contextlib.nullcontext(l)\n"
        "with f(loss) as s:\n    s.backward()"
    ),
    "a function with an argument of another parameter missing": (
        "def f(l, o, on):\n    if on:\n        return amp.scale_loss(l, o)\n    return contextlib.nullcontext(l)\n"
        "with f(loss, opt) as s:\n    s.backward()"
    ),
    "a function that does more": "def f(x):\n    print(x)\n    return amp.scale_loss(x, opt)\nf(loss)",
    "a function that also travels": "def f(x):\n    return amp.scale_loss(x, opt)\nf(loss)\nuse(f)",
    "an argument that is evaluated twice": "def f(x):\n    return amp.initialize(x, x)\nf(make())",
    "a function whose name means another there": (
        "def f(x):\n    return amp.scale_loss(x, opt)\ndef g(opt):\n    f(loss)"
    ),
    "a lambda that steps beside another statement": "go = lambda: opt.step(); go()",
    "a lambda that steps under a test in its line": "if on: go = lambda: opt.step()",
    "a lambda that steps, in brackets": "go = (lambda: opt.step())",
    "a lambda that steps, in a class": "class T:\n    go = lambda self: self.opt.step()",
    "a lambda that steps, of an object": "self.go = lambda: opt.step()",
    "a lambda that steps, by two names": "go = on = lambda: opt.step()",
    "a lambda that does not train": "go = lambda: print(opt)",
    "a test for Apex with other arms": "if hasattr(opt, '_amp_stash'):\n    opt.step()\nelse:\n    step(opt)",
    "a test for Apex that does more": "if hasattr(make(), '_amp_stash'):\n    opt.step()\nelse:\n    opt.step()",
    "a test for Apex whose arm goes on": "if hasattr(opt, '_amp_stash'):\n    opt.step()\nopt.step()",
    "a test for Apex in an elif": (
        "if on:\n    pass\nelif hasattr(opt, '_amp_stash'):\n    opt.step()\nelse:\n    opt.step()"
    ),
    "a name that is bound again": "f = amp.scale_loss\nf = other\nf(loss, opt)",
    "a name that may be another function": "f = amp.scale_loss\nif on:\n    f = other\nf(loss, opt)",
    "an argument that is bound again": "f = functools.partial(amp.scale_loss, loss)\nloss = loss / 2\nf(opt)",
    "an attribute that a call may set": (
        "f = functools.partial(amp.scale_loss, self.loss)\nself.halve()\nf(opt)"
    ),
    "an argument with an effect": "f = functools.partial(amp.initialize, make())\nother()\nf(opt)",
    "tuples of two lengths that a function returns": (
        "def make():\n    if on:\n        return model, opt\n    return (model,)\nparts = make()\namp.initialize(*parts)"
    ),
    "a generator of what a function yields": (
        "def make():\n    yield model\n    return model, opt\nparts = make()\namp.initialize(*parts)"
    ),
    "a list that grows": "parts = [model]\nparts.append(opt)\namp.initialize(*parts)",
    "a list with a second name": "parts = [model, opt]\nmore = parts\nchange(more)\namp.initialize(*parts)",
    "an entry that is set in between": "p = [model, opt]\np[0] = other\namp.initialize(*p)",
    "a dictionary of which a key is computed": "t = {'f': amp.scale_loss}\nt[key] = other\nt['f'](loss, opt)",
    "a name that another function sets": (
        "f = amp.scale_loss\ndef g():\n    global f\n    f = other\ng()\nf(loss, opt)"
    ),
    "a star of unknown length": "amp.initialize(*make())",
}

IMPORTS = "import contextlib, functools, types\nimport apex\nfrom apex import amp\nfrom data import model, opt, loss\n"


def _spelt(text: str) -> str:
    index = Index(build({"train.py": Tree("train.py", IMPORTS + text)}))
    found = spelt_out(index.project, index.sites, ())
    return found["train.py"].text.removeprefix(IMPORTS) if found else text


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n")]


@pytest.mark.parametrize("case", SPELT)
@pytest.mark.parametrize("inside", [False, True])
def test_spelt_out(case: str, inside: bool) -> None:
    before, after = SPELT[case]
    if inside:
        head = "def run(model, opt, loss, on, state):\n"
        before, after = (head + textwrap.indent(text, "    ") for text in (before, after))
    assert _lines(_spelt(before)) == _lines(after)


@pytest.mark.parametrize("case", KEPT)
def test_kept(case: str) -> None:
    assert _spelt(KEPT[case]) == KEPT[case]


def test_uses_that_are_left_keep_their_spelling() -> None:
    text = SPELT["a local name"][0]
    index = Index(build({"train.py": Tree("train.py", IMPORTS + text)}))
    assert spelt_out(index.project, index.sites, {("train.py", 5, 0), ("train.py", 6, 5)}) == {}


def test_places_before_and_after() -> None:
    text = IMPORTS + "f = amp.scale_loss; f(*[loss, opt]); f(loss, opt)"
    index = Index(build({"train.py": Tree("train.py", text)}))
    tree = spelt_out(index.project, index.sites, ())["train.py"]
    for respelt in tree.respelt:
        calls = [n for n in tree.module.body if tree.span(n)[:2] == respelt.place]
        assert len(calls) == 1
        assert tree.segment(calls[0]) == "amp.scale_loss(loss, opt)"
        assert text.split("\n")[respelt.before[0] - 1][respelt.before[1] :].startswith("f(")
        assert [tree.lines[s.line - 1][s.column : s.end_column] for s in respelt.unused] == [
            "f = None"
        ]
