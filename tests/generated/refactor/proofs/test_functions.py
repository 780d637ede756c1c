"""Refactorings of statements, expressions and arguments into functions and their relatives."""

from __future__ import annotations

from textwrap import dedent

import pytest

from generated.refactor.proofs.trial import flaws, forms
from generated.refactor.refactoring import catalogue

NAMES = sorted(name for name, r in catalogue().items() if r.family == "functions")
RUN = "a run of statements becomes a function"
METHOD = "a run of statements becomes a method"
CLOSURE = "a run of statements becomes a closure"
GLOBALS = "a run of statements becomes a function of global variables"
EXPRESSION = "an expression becomes a function"
LAMBDA = "an expression becomes a lambda"
PASSING = "a call goes through a helper that hands its keywords on"
KEYWORDS = "keywords of a call become a dictionary"
TUPLE = "arguments of a call become a tuple"
PARTIAL = "a call becomes a partial"
WITH = "a with statement goes through a context manager"
AROUND = "statements around others become a context manager"
GENERATOR = "the head of a loop becomes a generator"
KEYWORD_ONLY = "parameters are taken by keyword only"
NAMED = "arguments are named in every call"
OPTIONS = "parameters are read from a dictionary of keywords"
INLINE = "the body of a helper stands in the place of its call"
DEFAULT = "a constant becomes a parameter with a default"


def text(source: str) -> str:
    """Return a text as it stands in a file."""
    return dedent(source).lstrip("\n")


@pytest.mark.parametrize("name", NAMES)
def test_results_are_sound(name: str) -> None:
    """On bases drawn at random the result compiles, and pyflakes has nothing new to say."""
    found, wrong = flaws(name, 2)
    assert found and not wrong


def test_accumulator_passes_in_and_out() -> None:
    """What a run reads first is a parameter, what is read after it is returned."""
    before = """
        def train(model, loader):
            total = 0.0
            for x in loader:
                # the loss
                if x:
                    total += model(x)
            print(total)
    """
    after = """
        def helper(x, total, model):
            # the loss
            if x:
                total += model(x)
            return total


        def train(model, loader):
            total = 0.0
            for x in loader:
                total = helper(x, total, model)
            print(total)
    """
    assert text(after) in forms(RUN, before, 40, "helper")


def test_result_is_returned_directly() -> None:
    """The last assignment of a run becomes the return."""
    before = """
        def build(model, optimizer):
            model, optimizer = amp.initialize(model, optimizer)
            return model, optimizer
    """
    after = """
        def helper(model, optimizer):
            return amp.initialize(model, optimizer)


        def build(model, optimizer):
            model, optimizer = helper(model, optimizer)
            return model, optimizer
    """
    assert text(after) in forms(RUN, before, 40, "helper")


def test_several_results_come_in_many_ways() -> None:
    """A tuple, a dictionary, a named tuple and a data class carry the results."""
    before = "def f(x):\n    y = g(x)\n    z = h(x)\n    return y + z\n"
    found = "\n".join(forms(RUN, before, 150))
    ways = ("return y, z\n", 'return {"y": y, "z": z}', "namedtuple(", "@dataclass", "y, *")
    assert [way for way in ways if way not in found] == []


@pytest.mark.parametrize(
    "before",
    [
        "def f(c):\n    if c:\n        y = 1\n    if c:\n        g(y)\n",  # y may be unbound
        "def f(x):\n    return x\n",
        "def f(x):\n    global y\n    y = x\n",
        "def f(x):\n    yield x\n",
        "def f(x):\n    del x\n",
        "def f(x):\n    x = eval('x')\n",
    ],
)
def test_run_stays_where_something_is_uncertain(before: str) -> None:
    """No function is made of what may be unbound, leaves its function, or is changed from elsewhere."""
    assert not any("(y)" in one.partition("def f")[0] for one in forms(RUN, before, 40))
    assert "(c)" in before or not forms(RUN, before)


def test_run_returns_what_is_deleted_behind_it() -> None:
    """A `del` needs the variable, as a read does."""
    before = "def f(c):\n    y = g(c)\n    h(y)\n    del y\n"
    found = forms(RUN, before, 40)
    assert found and all("    y = " in one.partition("def f")[2] for one in found)


def test_run_of_a_captured_variable_stays() -> None:
    """A closure that is called inside of a run would not see what the run binds."""
    before = "def f(x):\n    show = lambda: print(x)\n    x = 2\n    show()\n"
    assert not any("x = 2" in one.partition("def f")[0] for one in forms(RUN, before, 40))


def test_method() -> None:
    """The run of a method becomes a method beside it."""
    before = """
        class Trainer:
            def step(self, loss):
                if loss:
                    self.optimizer.step()
    """
    after = """
        class Trainer:
            def helper(self):
                self.optimizer.step()

            def step(self, loss):
                if loss:
                    self.helper()
    """
    assert text(after) in forms(METHOD, before, called="helper")
    assert not forms(METHOD, "class A:\n    @staticmethod\n    def f(x):\n        g(x)\n")
    assert not forms(METHOD, "class A:\n    def f(self):\n        super().f()\n")


def test_closure() -> None:
    """A closure declares nonlocal what it binds and does not return."""
    before = """
        def train(loader):
            total = 0.0
            for x in loader:
                total += x
            return total
    """
    after = """
        def train(loader):
            total = 0.0
            for x in loader:
                def helper():
                    nonlocal total
                    total += x

                helper()
            return total
    """
    assert text(after) in forms(CLOSURE, before, 30, "helper")
    assert not forms(CLOSURE, "def f():\n    global x\n    x = 1\n")


def test_function_of_globals() -> None:
    """A run of a script becomes a function that declares global what the rest reads."""
    before = "loss = 0.0\nif flag:\n    loss += 1.0\nprint(loss)\n"
    after = """
        def helper():
            global loss
            loss = 0.0
            if flag:
                loss += 1.0


        helper()
        print(loss)
    """
    assert text(after) in forms(GLOBALS, before, 40, "helper")
    assert not forms(GLOBALS, 'if __name__ == "__main__":\n    main()\n'.replace("main()", "pass"))


def test_expression_becomes_a_function() -> None:
    """The call of initialize is returned by a helper."""
    before = """
        def build(model, optimizer):
            model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
            return model, optimizer
    """
    after = """
        def helper(model, optimizer):
            return amp.initialize(model, optimizer, opt_level="O1")


        def build(model, optimizer):
            model, optimizer = helper(model, optimizer)
            return model, optimizer
    """
    assert text(after) in forms(EXPRESSION, before, called="helper")
    assert not forms(EXPRESSION, "def f(c):\n    if c:\n        x = 1\n    return x.y()\n")


def test_expression_becomes_a_lambda() -> None:
    """A lambda may stand above the loop whose variables it reads."""
    before = "def train(model, loader):\n    for x in loader:\n        loss = model(x)\n"
    after = """
        def train(model, loader):
            helper = lambda model: model(x)
            for x in loader:
                loss = helper(model)
    """
    assert text(after) in forms(LAMBDA, before, 40, "helper")
    assert not forms(LAMBDA, "class A:\n    x = f()\n")


def test_keywords_are_handed_on() -> None:
    """A helper of **kwargs stands between a call and what it calls, unless that is a variable."""
    before = "def build(model, optimizer):\n    return amp.initialize(model, optimizer, loss_scale=128.0)\n"
    after = """
        def helper(model, optimizer, **kwargs):
            return amp.initialize(model, optimizer, **kwargs)


        def build(model, optimizer):
            return helper(model, optimizer, loss_scale=128.0)
    """
    assert text(after) in forms(PASSING, before, called="helper")
    assert not forms(PASSING, "def build(make):\n    return make(loss_scale=128.0)\n")


def test_keywords_become_a_dictionary() -> None:
    """The dictionary is a literal, made by dict, or filled in steps."""
    found = forms(
        KEYWORDS, 'model = amp.initialize(model, opt_level="O1", loss_scale=128.0)\n', 60, "options"
    )
    call = "model = amp.initialize(model, **options)\n"
    assert 'options = {"opt_level": "O1", "loss_scale": 128.0}\n' + call in found
    assert 'options = dict(opt_level="O1", loss_scale=128.0)\n' + call in found
    assert 'options = {"opt_level": "O1"}\noptions["loss_scale"] = 128.0\n' + call in found
    assert not forms(KEYWORDS, "f(x, y=g())\n") and not forms(KEYWORDS, "f(g(), y=x)\n")


def test_arguments_become_a_tuple() -> None:
    """Positional arguments are unpacked from a tuple or a list."""
    found = forms(TUPLE, "f(model, optimizer, k=1)\n", called="parts")
    assert "parts = (model, optimizer)\nf(*parts, k=1)\n" in found
    assert "parts = [model, optimizer]\nf(*parts, k=1)\n" in found
    assert not forms(TUPLE, "f(g(), x)\n") and not forms(TUPLE, "f(x)\n")


def test_partial() -> None:
    """A partial that holds nothing of the loop may stand above it."""
    before = "import torch\n\nfor x in loader:\n    clip(x, norm=1.0)\n"
    after = """
        import functools
        import torch

        helper = functools.partial(clip, norm=1.0)
        for x in loader:
            helper(x)
    """
    found = forms(PARTIAL, before, 40, "helper")
    assert text(after) in found
    assert not any("clip, x" in one.partition("for x")[0] for one in found)
    assert not forms(PARTIAL, "f(g())\n") and not forms(PARTIAL, "f()\n")


def test_context_manager_of_a_with() -> None:
    """The block of scale_loss is entered by a generator."""
    before = """
        def train(loss, optimizer):
            with amp.scale_loss(loss, optimizer) as scaled:
                scaled.backward()
    """
    after = """
        import contextlib


        @contextlib.contextmanager
        def helper(loss, optimizer):
            with amp.scale_loss(loss, optimizer) as scaled:
                yield scaled


        def train(loss, optimizer):
            with helper(loss, optimizer) as scaled:
                scaled.backward()
    """
    assert text(after) in forms(WITH, before, 40, "helper")
    assert not forms(WITH, "def f(a):\n    with a:\n        pass\n")


def test_context_manager_around_statements() -> None:
    """What stands above and below is above and below the yield; nothing of it reads what the middle binds."""
    before = """
        import contextlib


        def train(model, optimizer):
            optimizer.zero_grad()
            model()
            optimizer.step()
    """
    after = """
        import contextlib


        @contextlib.contextmanager
        def helper(optimizer):
            optimizer.zero_grad()
            yield
            optimizer.step()


        def train(model, optimizer):
            with helper(optimizer):
                model()
    """
    assert text(after) in forms(AROUND, before, 40, "helper")
    assert not forms(AROUND, "def f(x):\n    y = x()\n    print(y)\n", 40)
    assert not forms(AROUND, "def f(x):\n    if x:\n        return\n    print(x)\n", 40)


def test_generator() -> None:
    """The forward pass moves into a generator, but not where the rest changes what it reads."""
    before = """
        def train(model, loader):
            for x in loader:
                loss = model(x)
                loss.backward()
    """
    after = """
        def helper(loader, model):
            for x in loader:
                loss = model(x)
                yield loss


        def train(model, loader):
            for loss in helper(loader, model):
                loss.backward()
    """
    assert text(after) in forms(GENERATOR, before, called="helper")
    assert not forms(GENERATOR, "def f(l, m):\n    for x in l:\n        m(x)\n        m = g(m)\n")
    assert not forms(
        GENERATOR, "def f(l):\n    for x in l:\n        if x:\n            break\n        g(x)\n"
    )


def test_arguments_by_keyword() -> None:
    """Every call names what the function only takes by keyword; a function that is handed on stays."""
    before = "def f(a, b):\n    g(a, b)\n\n\nf(1, 2)\n"
    assert "def f(a, *, b):\n    g(a, b)\n\n\nf(1, b=2)\n" in forms(KEYWORD_ONLY, before)
    assert "def f(a, b):\n    g(a, b)\n\n\nf(1, b=2)\n" in forms(NAMED, before)
    assert not forms(KEYWORD_ONLY, before + "h(f)\n") and not forms(NAMED, before + "h(f)\n")


def test_parameters_from_options() -> None:
    """The function begins by reading its keywords."""
    before = "def f(a, b):\n    g(a, b)\n\n\nf(1, 2)\n"
    after = 'def f(a, **options):\n    b = options["b"]\n    g(a, b)\n\n\nf(1, b=2)\n'
    assert after in forms(OPTIONS, before, 30, "options")
    assert not forms(OPTIONS, before.replace("b):", "b=0):"))


def test_constant_becomes_a_default() -> None:
    """A number in a call is the default of a new parameter."""
    before = "def clip(p):\n    norm(p, 1.0)\n"
    assert "def clip(p, limit=1.0):\n    norm(p, limit)\n" in forms(DEFAULT, before, called="limit")
    assert not forms(DEFAULT, before.replace("(p)", "(*p)")) and not forms(DEFAULT, "norm(1.0)\n")


def test_helper_is_inlined() -> None:
    """Arguments stand for parameters, names that meet others are changed, and the helper goes."""
    before = """
        import torch


        def clip(params, norm=1.0):
            total = torch.norm(params)
            return total / norm


        def train(model):
            total = 0
            size = clip(model)
            return total + size
    """
    after = """
        import torch


        def train(model):
            total = 0
            norm = 1.0
            {total} = torch.norm(model)
            size = {total} / norm
            return total + size
    """
    wanted = {text(after).format(total=name) for name in ("inner_total", "total_here")}
    assert forms(INLINE, before) == wanted
    assert not forms(INLINE, "def f(x):\n    if x:\n        return 1\n    return 2\n\n\ny = f(3)\n")
    assert not forms(INLINE, "def f():\n    return g\n\n\ndef h(g):\n    return f()\n")
