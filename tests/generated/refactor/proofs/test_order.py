"""Refactorings of the order in a file."""

from __future__ import annotations

import pytest

from generated.refactor.proofs.test_functions import text
from generated.refactor.proofs.trial import flaws, forms
from generated.refactor.refactoring import catalogue

NAMES = sorted(name for name, r in catalogue().items() if r.family == "order")
MOVES = "a definition moves"
DOWN = "definitions stand right above their first use"
CALLERS = "callers stand above what they call"
INTO = "the code of a script becomes a main function"
OUT = "a main function becomes the code of its script"
ROUNDS = "a helper finishes a round at the head of the next"
ABOVE = "a closure stands above what it reads"

SCRIPT = """
    import torch


    def helper(x):
        return x


    def main():
        print(helper(1))


    main()
"""


@pytest.mark.parametrize("name", NAMES)
def test_results_are_sound(name: str) -> None:
    """On bases drawn at random the result compiles, and pyflakes has nothing new to say."""
    found, wrong = flaws(name)
    assert found and not wrong


@pytest.mark.parametrize("name", [MOVES, DOWN, CALLERS])
def test_helpers_below_their_use(name: str) -> None:
    """A helper may stand below the function that calls it, above the statement that runs both."""
    after = """
        import torch


        def main():
            print(helper(1))


        def helper(x):
            return x


        main()
    """
    assert forms(name, SCRIPT) == {text(after)}


@pytest.mark.parametrize("name", [MOVES, DOWN, CALLERS])
def test_definitions_stay_above_what_runs_them(name: str) -> None:
    """What a decorator, a base class, a default or a statement between needs is defined above it."""
    used = "def f():\n    return 1\n\n\ndef g(x=f()):\n    return x\n\n\ng()\n"
    assert not forms(name, used)
    assert not forms(name, "class A:\n    pass\n\n\nclass B(A):\n    pass\n\n\nB()\n")
    assert not forms(name, "def f():\n    pass\n\n\nf()\n\n\ndef g():\n    f()\n\n\ng()\n") - {
        "def f():\n    pass\n\n\ndef g():\n    f()\n\n\nf()\n\n\ng()\n",
        "def g():\n    f()\n\n\ndef f():\n    pass\n\n\nf()\n\n\ng()\n",
    }


def test_class_after_its_use() -> None:
    """A class may stand below the function that makes an object of it."""
    before = "class A:\n    pass\n\n\ndef main():\n    A()\n\n\nmain()\n"
    after = "def main():\n    A()\n\n\nclass A:\n    pass\n\n\nmain()\n"
    assert forms(DOWN, before) == {after}


def test_script_becomes_main() -> None:
    """The statements of a script move; what functions read of them is declared global."""
    before = """
        import torch


        def show():
            print(rate)


        # how fast
        rate = 0.1
        x = rate
        show()
    """
    after = """
        import torch


        def show():
            print(rate)


        def main():
            global rate
            # how fast
            rate = 0.1
            x = rate
            show()


        if __name__ == "__main__":
            main()
    """
    assert text(after) in forms(INTO, before)
    assert not forms(INTO, "x = 1\nprint(x)\n")
    assert not forms(INTO, "x = 1\ny = 2\nprint(globals())\n")


def test_main_becomes_script() -> None:
    """The body of main stands at the level of the module, under its guard or without."""
    before = """
        import torch


        def main():
            x = torch.ones(1)
            print(x)


        if __name__ == "__main__":
            main()
    """
    plain = "import torch\n\n\nx = torch.ones(1)\nprint(x)\n"
    guarded = 'import torch\n\n\nif __name__ == "__main__":\n    x = torch.ones(1)\n    print(x)\n'
    assert forms(OUT, before) == {plain, guarded}
    assert not forms(OUT, before.replace("print(x)", "return x"))
    assert not forms(OUT, before.replace("import torch", "from torch import x"))
    read_elsewhere = "def f():\n    return y\n\n\ndef main():\n    y = 1\n    f()\n\n\nmain()\n"
    assert not forms(OUT, read_elsewhere) and forms(OUT, read_elsewhere.replace("y = 1", "z = 1"))


def test_closure_above_initialize() -> None:
    """A closure at the top of its function reads what is bound below."""
    before = '''
        def train(model, optimizer):
            """Train."""
            model, optimizer = amp.initialize(model, optimizer)
            if model:
                optimizer.step()
    '''
    after = '''
        def train(model, optimizer):
            """Train."""

            def helper():
                optimizer.step()

            model, optimizer = amp.initialize(model, optimizer)
            if model:
                helper()
    '''
    assert text(after) in forms(ABOVE, before, 40, "helper")
    assert not forms(ABOVE, "print(1)\n")


def test_round_is_finished_at_the_head_of_the_next() -> None:
    """The step stands above the backward pass, but not where it needs what the next round rebinds."""
    before = """
        def train(model, optimizer, loader):
            for x in loader:
                model(x).backward()
                optimizer.step()
    """
    after = """
        def finish(optimizer):
            optimizer.step()


        def train(model, optimizer, loader):
            pending = False
            for x in loader:
                if pending:
                    finish(optimizer)
                model(x).backward()
                pending = True
            if pending:
                finish(optimizer)
    """
    assert text(after) in forms(ROUNDS, before, 40)
    assert not forms(ROUNDS, before.replace("step()", "step(x)"))
    assert not forms(ROUNDS, before.replace("model(x).backward()", "if x: continue"))
    assert not forms(ROUNDS, before.replace("in loader", "in fetch(loader)"))


def test_what_a_registry_calls_stays_above_the_call() -> None:
    """A function that is called by its key needs what stands above the call."""
    script = """
        KNOWN = {}


        def known(name):
            def add(thing):
                KNOWN[name] = thing
                return thing

            return add


        class Net:
            pass


        @known("main")
        def main():
            print(Net())


        KNOWN["main"]()
    """
    for name in (DOWN, MOVES):
        for found in forms(name, text(script)):
            assert found.index("class Net") < found.index('KNOWN["main"]()')


def test_classes_stay_in_order_that_enter_themselves() -> None:
    """A base that is told of its classes sees their order."""
    script = """
        class Base:
            known = []

            def __init_subclass__(cls):
                Base.known.append(cls)


        class First(Base):
            pass


        class Second(Base):
            pass


        print(Base.known)
    """
    assert all(not forms(name, text(script)) for name in (DOWN, MOVES, CALLERS))
