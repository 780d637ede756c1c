"""Which functions a call reaches, and which calls reach a function."""

from __future__ import annotations

import pytest

from tests.project.helpers import Case


@pytest.mark.parametrize(
    ("text", "call", "expected"),
    [
        ("def f(): pass\nf()", "f()", {"f"}),
        ("g = f = 1\ndef h(): pass\ng = h\ng()", "g()", {"h"}),
        ("class A:\n    def __init__(self): pass\nA()", "A()", {"A.__init__"}),
        ("class A:\n    def __init__(self): pass\nclass B(A): pass\nB()", "B()", {"A.__init__"}),
        ("class A:\n    def m(self): pass\na = A()\na.m()", "a.m()", {"A.m"}),
        ("class A:\n    def m(self): pass\nA().m()", "A().m()", {"A.m"}),
        ("class A:\n    def n(self):\n        self.m()\n    def m(self):\n        raise NotImplementedError\nclass B(A):\n    def m(self): pass", "self.m()", {"B.m"}),
        ("class A:\n    def n(self):\n        self.m()\n    def m(self): pass\nclass B(A):\n    def m(self): pass", "self.m()", {"A.m", "B.m"}),
        ("import abc\nclass A(abc.ABC):\n    def n(self):\n        self.m()\n    @abc.abstractmethod\n    def m(self): pass\nclass B(A):\n    def m(self): pass", "self.m()", {"B.m"}),
        ("import abc\nclass A:\n    def n(self):\n        self.m()\n    @abc.abstractmethod\n    def m(self): pass\nclass B(A):\n    def m(self): pass", "self.m()", {"A.m", "B.m"}),
        ("import abc\nclass A(metaclass=abc.ABCMeta):\n    @abc.abstractmethod\n    def m(self): pass\nclass B(A):\n    def m(self):\n        super().m()", "super().m()", {"A.m"}),
        ("class A:\n    def n(self):\n        self.m()\n    def m(self):\n        raise NotImplementedError", "self.m()", {"A.m"}),
        ("class A:\n    def m(self): pass\n    def n(self):\n        self.m()", "self.m()", {"A.m"}),
        ("class A:\n    @classmethod\n    def m(cls): pass\n    @classmethod\n    def n(cls):\n        cls.m()", "cls.m()", {"A.m"}),
        ("class A:\n    @staticmethod\n    def m(x): pass\nA.m(1)", "A.m(1)", {"A.m"}),
        ("class A:\n    def m(self): pass\nA.m(a)", "A.m(a)", {"A.m"}),
        ("class A:\n    def m(self): pass\ndef make():\n    return A()\nmake().m()", "make().m()", {"A.m"}),
        ("class A:\n    def m(self): pass\ndef make():\n    a = A()\n    return 1, a\n_, b = make()\nb.m()", "b.m()", {"A.m"}),
        ("class A:\n    def m(self): pass\ndef f(a):\n    a.m()\nf(A())", "a.m()", {"A.m"}),
        ("class A:\n    def m(self): pass\ndef f(a: 'A'):\n    a.m()", "a.m()", {"A.m"}),
        ("from typing import Optional\nclass A:\n    def m(self): pass\ndef f(a: Optional[A] = None):\n    a.m()", "a.m()", {"A.m"}),
        ("class A:\n    def __call__(self): pass\na = A()\na()", "a()", {"A.__call__"}),
        ("def f():\n    def g(): pass\n    g()", "g()", {"f.<locals>.g"}),
        ("def f(x): pass\ndef run(fn):\n    fn(1)\nrun(f)", "fn(1)", {"f"}),
        ("def f(x): pass\ntable = {'f': f}\ntable['f'](1)", "table['f'](1)", {"f"}),
        ("def f(x): pass\ntable = {}\ntable.setdefault(key, []).append(f)\nfor g in table.get(key, []):\n    g(1)", "g(1)", {"f"}),
        ("import functools\ndef f(x, y): pass\ng = functools.partial(f, 1)\ng(2)", "g(2)", {"f"}),
        ("class A:\n    def m(self): pass\n    def n(self):\n        step = self.m\n        step()", "step()", {"A.m"}),
        ("class A:\n    def m(self): pass\nfor a in [A()]:\n    a.m()", "a.m()", {"A.m"}),
    ],
)  # fmt: skip
def test_callees(text: str, call: str, expected: set[str]) -> None:
    """Calls by name, through objects, factories, parameters, annotations and containers are resolved."""
    case = Case({"m.py": text + "\n"})
    assert case.callees("m.py", call) == expected


HIERARCHY = {
    "base.py": """
        class Base:
            def __init__(self, model):
                self.model = model
            def fit(self, loader):
                for batch in loader:
                    self.step(batch)
            def step(self, batch):
                raise ValueError
        """,
    "gan.py": """
        from base import Base
        class Gan(Base):
            def __init__(self, model, extra):
                super().__init__(model)
            def step(self, batch):
                super().step(batch)
        """,
    "main.py": """
        from gan import Gan
        from base import Base
        class App:
            def __init__(self):
                self.trainer = Gan(net, 1)
            def run(self):
                self.trainer.fit(loader)
                self.trainer.step(one)
        """,
}


def test_calls_through_a_hierarchy_over_files() -> None:
    """A call on self reaches what objects that are made have; one on a known object reaches its class's own."""
    case = Case(HIERARCHY)
    assert case.callees("base.py", "self.step(batch)") == {"Gan.step"}
    assert case.callees("main.py", "self.trainer.step(one)") == {"Gan.step"}
    assert case.callees("main.py", "self.trainer.fit(loader)") == {"Base.fit"}
    assert case.callees("gan.py", "super().step(batch)") == {"Base.step"}
    assert case.callees("gan.py", "super().__init__(model)") == {"Base.__init__"}


def test_calls_on_self_where_objects_of_the_base_are_made_as_well() -> None:
    """A call on self reaches overriding methods and those of the base, also where a table may make it."""
    for made in ("Base(net)", "KINDS = {'base': Base}", "getattr(base, kind)(net)"):
        more = f"import base\nfrom base import Base\n{made}\n"
        case = Case({**HIERARCHY, "more.py": more})
        assert case.callees("base.py", "self.step(batch)") == {"Base.step", "Gan.step"}


def test_family_and_its_callers() -> None:
    """Overridden and overriding methods share their callers; constructors do not."""
    case = Case(HIERARCHY)
    family = case.project.family(case.function("base.py", "Base.step"))
    assert {item.qualname for item in family} == {"Base.step", "Gan.step"}
    expected = {"self.step(batch)", "self.trainer.step(one)", "super().step(batch)"}
    assert case.callers("base.py", "Base.step") == expected
    assert case.callers("gan.py", "Gan.step") == expected
    assert case.callers("base.py", "Base.__init__") == {"super().__init__(model)"}
    assert case.callers("gan.py", "Gan.__init__") == {"Gan(net, 1)"}


def test_mixins_are_one_family() -> None:
    """Methods that meet in one class are one family, and super() goes to the other mixin."""
    case = Case(
        {
            "m.py": """
            class Log:
                def step(self, batch):
                    super().step(batch)
            class Train:
                def step(self, batch): pass
            class Both(Log, Train): pass
            """
        }
    )
    assert case.callees("m.py", "super().step(batch)") == {"Train.step"}
    family = case.project.family(case.function("m.py", "Log.step"))
    assert {item.qualname for item in family} == {"Log.step", "Train.step"}


def test_call_site_kinds() -> None:
    """A site tells whether the first parameter is taken, and whether it is a partial or a constructor."""
    case = Case(
        {
            "m.py": """
            import functools
            class A:
                def __init__(self, x): pass
                def m(self, y): pass
            def f(x, y): pass
            a = A(1)
            a.m(2)
            A.m(a, 3)
            g = functools.partial(f, 4)
            g(5)
            """
        }
    )

    def kinds(qualname: str) -> list[tuple[bool, bool, bool]]:
        sites = case.project.callers(case.function("m.py", qualname))
        sites.sort(key=lambda site: site.call.lineno)
        return [(site.bound, site.partial, site.constructor) for site in sites]

    assert kinds("A.__init__") == [(True, False, True)]
    assert kinds("A.m") == [(True, False, False), (False, False, False)]
    assert kinds("f") == [(False, True, False)]


def test_module_level_calls_belong_to_the_module() -> None:
    """The caller of a top-level call is the pseudo function of the module."""
    case = Case({"m.py": "def f(): pass\nif __name__ == '__main__':\n    f()\n"})
    (site,) = case.project.callers(case.function("m.py", "f"))
    assert site.function.name == "<module>"
    assert site.function is case.project.modules["m.py"].top


def test_decorators_and_defaults_are_outside() -> None:
    """A decorator or default is evaluated around the function, its body inside."""
    case = Case({"m.py": "def outer():\n    @deco(1)\n    def f(x=make(2)):\n        inner(3)\n"})
    for text, expected in (
        ("deco(1)", "outer"),
        ("make(2)", "outer"),
        ("inner(3)", "outer.<locals>.f"),
    ):
        assert case.project.function_of(*case.at("m.py", text)).qualname == expected


def test_unknown_object_with_a_method_of_one_family() -> None:
    """A method name that only one family has is enough; a common name is not."""
    case = Case(
        {
            "m.py": """
            class A:
                def train_one_epoch(self, x): pass
                def step(self): pass
            def run(a, b):
                a.train_one_epoch(1)
                a.train_one_epoch(1, 2, 3)
                b.step()
            """
        }
    )
    assert case.callees("m.py", "a.train_one_epoch(1)") == {"A.train_one_epoch"}
    assert case.callees("m.py", "a.train_one_epoch(1, 2, 3)") == set()
    assert case.callees("m.py", "b.step()") == set()


def test_wrapped_model_keeps_its_class() -> None:
    """Methods are found through DataParallel, `.module` and `.cuda()`."""
    case = Case(
        {
            "m.py": """
            import torch.nn as nn
            class Net(nn.Module):
                def loss(self, x): pass
            model = nn.DataParallel(Net()).cuda()
            model.module.loss(1)
            """
        }
    )
    assert case.callees("m.py", "model.module.loss(1)") == {"Net.loss"}
    assert [c.name for c in case.project.instance_classes(*case.at("m.py", "model"))] == ["Net"]


def test_launched_functions_get_their_arguments() -> None:
    """What mp.spawn passes on reaches the parameters after the process index."""
    case = Case(
        {
            "m.py": """
            import torch.multiprocessing as mp
            class Options:
                def show(self): pass
            def worker(rank, options):
                options.show()
            mp.spawn(worker, nprocs=2, args=(Options(),))
            """
        }
    )
    assert case.callees("m.py", "options.show()") == {"Options.show"}


def test_odd_code_is_survived() -> None:
    """Classes that inherit from themselves, recursion and calls of anything do not raise."""
    case = Case(
        {
            "m.py": """
            class A(A): pass
            class B(C): pass
            class C(B):
                def f(self):
                    return self.f().f()
            def f(): return f
            f()()()
            (lambda x: x)(1)
            [g for g in f](2)
            "".join(x)()
            x = x.x = x[x] = x(x)
            def g(*, a, **k): return g(**k)
            super().f()
            async def h(): await h(*h)
            """
        }
    )
    assert case.callees("m.py", "f()") == {"f"}
    assert case.callees("m.py", "g(**k)") == {"g"}
    for function in case.project.functions():
        case.project.callers(function)
        case.project.escapes(function)
