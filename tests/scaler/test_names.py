"""The name of the GradScaler, and small questions about calls, constructors and slots."""

from __future__ import annotations

import pytest

from amp_migrate.apex.sites import Kind
from amp_migrate.plan.cannot import Cannot
from amp_migrate.scaler.naming import free_name
from amp_migrate.scaler.routes.places import (
    always_constructed,
    fills_all,
    is_docstring_only,
    kept_on_self,
    last_assignment,
    sometimes_called,
)
from amp_migrate.scaler.routes.slots import slot
from amp_migrate.scaler.spelling import Spelling
from tests.placement.training import Training
from tests.project.helpers import Case

NAMES: dict[str, tuple[str, str]] = {
    "free": ("x = 1", "scaler"),
    "a variable": ("scaler = StandardScaler()", "grad_scaler"),
    "an attribute": ("self.scaler = 1", "grad_scaler"),
    "a parameter": ("def f(scaler): pass", "grad_scaler"),
    "a parameter of a lambda": ("f = lambda scaler: 1", "grad_scaler"),
    "an import": ("import scaler", "grad_scaler"),
    "an import of a part": ("import scaler.x", "grad_scaler"),
    "an import by another name": ("from x import y as scaler", "grad_scaler"),
    "imported and renamed": ("from x import scaler as y", "scaler"),
    "a walrus": ("if (scaler := f()): pass", "grad_scaler"),
    "of a comprehension": ("[scaler for scaler in x]", "grad_scaler"),
    "two taken": ("scaler = grad_scaler = 1", "amp_scaler"),
    "three taken": ("scaler = grad_scaler = amp_scaler = 1", "native_scaler"),
    "all taken": ("scaler = grad_scaler = amp_scaler = native_scaler = 1", "apex_scaler"),
    "a word in a string": ("x = 'scaler'", "scaler"),
    "part of a name": ("my_scaler = scaler2 = 1", "scaler"),
    "read alone": ("print(scaler)", "grad_scaler"),
    "an except": ("try:\n    pass\nexcept E as scaler:\n    pass", "grad_scaler"),
    "a function": ("def scaler(): pass", "grad_scaler"),
    "a class": ("class scaler: pass", "grad_scaler"),
    "a match": ("match x:\n    case scaler:\n        pass", "grad_scaler"),
    "a starred match": ("match x:\n    case [*scaler]:\n        pass", "grad_scaler"),
    "the rest of a mapping": ("match x:\n    case {**scaler}:\n        pass", "grad_scaler"),
    "a global": ("def f():\n    global scaler", "grad_scaler"),
    "a keyword of a call": ("f(scaler=1)", "scaler"),
}


@pytest.mark.parametrize(("text", "name"), NAMES.values(), ids=NAMES)
def test_name_that_is_free(text: str, name: str) -> None:
    """Nothing that binds or reads a name is shadowed."""
    assert free_name(Case({"m.py": text}).project.modules.values()) == name


def test_name_is_free_in_every_file() -> None:
    """The scaler has one name wherever it goes."""
    case = Case({"a.py": "scaler = 1", "b.py": "grad_scaler = 1"})
    modules = list(case.project.modules.values())
    assert free_name(modules) == "amp_scaler"
    assert free_name(modules[1:]) == "scaler"
    assert free_name([]) == "scaler"


FILLED: dict[str, tuple[str, str, bool]] = {
    "all by position": ("def f(a, b): pass", "f(1, 2)", True),
    "a default left out": ("def f(a, b=1): pass", "f(1)", False),
    "a default given": ("def f(a, b=1): pass", "f(1, 2)", True),
    "by keyword": ("def f(a, b): pass", "f(1, b=2)", False),
    "unpacked": ("def f(a, b): pass", "f(*x)", False),
    "keyword only": ("def f(a, *, b=1): pass", "f(1)", False),
    "a further keyword": ("def f(a, **k): pass", "f(1, b=2)", False),
    "none": ("def f(): pass", "f()", True),
}


@pytest.mark.parametrize(("function", "call", "filled"), FILLED.values(), ids=FILLED)
def test_calls_that_one_more_argument_may_follow(function: str, call: str, filled: bool) -> None:
    """Every positional parameter is given by position."""
    case = Case({"m.py": f"{function}\n{call}\n"})
    (site,) = case.project.callers(case.function("m.py", "f"))
    assert fills_all(site, case.function("m.py", "f")) is filled


def test_method_s_own_object_counts() -> None:
    """`self` is given by the call."""
    case = Case({"m.py": "class C:\n    def f(self, a): pass\nc = C()\nc.f(1)\n"})
    function = case.function("m.py", "C.f")
    (site,) = case.project.callers(function)
    assert fills_all(site, function)


ASSIGNED: dict[str, tuple[str, str]] = {
    "the last of the first": ("self.a = a\nself.b = b\nself.c = 1\nself.d = a", "self.b = b"),
    "behind others": ("x = 1\nself.a = a\nprint(1)\nself.b = b", "self.a = a"),
    "super": ("super().__init__()\nself.c = 1", "super().__init__()"),
    "neither": ("self.c = 1\nself.d = 2", "self.c = 1"),
    "a docstring": ('"""Text."""', '"""Text."""'),
}


@pytest.mark.parametrize(("body", "last"), ASSIGNED.values(), ids=ASSIGNED)
def test_place_in_a_constructor(body: str, last: str) -> None:
    """The scaler joins the parameters that are kept."""
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    case = Case({"m.py": f"class C:\n    def __init__(self, a, b):\n{lines}"})
    init = case.function("m.py", "C.__init__")
    assert init.module.tree.segment(last_assignment(init)) == last
    assert is_docstring_only(init) is (body == '"""Text."""')


KEPT: dict[str, tuple[str, bool]] = {
    "both": ("self.m, self.o = amp.initialize(self.m, self.o)", True),
    "the optimizer": ("m, self.o = amp.initialize(m, o)", True),
    "the network": ("self.m, o = amp.initialize(self.m, o)", False),
    "neither": ("m, o = amp.initialize(self.m, self.o)", False),
    "dropped": ("amp.initialize(self.m, self.o)", True),
    "dropped by keyword": ("amp.initialize(models=m, optimizers=self.o)", True),
    "dropped, of others": ("amp.initialize(self.m, o)", False),
    "in one": ("self.pair = amp.initialize(m, o)", True),
    "of another object": ("m, other.o = amp.initialize(m, o)", False),
    "in a list": ("m, self.os[0] = amp.initialize(m, o)", True),
}


@pytest.mark.parametrize(("text", "kept"), KEPT.values(), ids=KEPT)
def test_initialize_whose_optimizer_is_kept(text: str, kept: bool) -> None:
    """An optimizer on the object is trained by its methods."""
    case = Training(
        f"from apex import amp\nclass T:\n    def f(self, m, o, other):\n        {text}\n"
    )
    (site,) = [s for s in case.index.sites if s.kind is Kind.INITIALIZE]
    assert kept_on_self(site, "self") is kept


CONSTRUCTED: dict[str, tuple[str, bool, bool]] = {
    "by the constructor": ("def __init__(self): self.f()\n    def f(self): pass", True, False),
    "under a test": ("def __init__(self, a):\n        if a: self.f()\n    def f(self): pass", False, True),
    "in a loop": ("def __init__(self, a):\n        for b in a: self.f()\n    def f(self): pass", False, True),
    "in a try": ("def __init__(self, a):\n        try: self.f()\n        except E: pass\n    def f(self): pass", False, True),
    "by another method": ("def __init__(self): pass\n    def g(self): self.f()\n    def f(self): pass", False, False),
    "by none": ("def __init__(self): pass\n    def f(self): pass", False, True),
}  # fmt: skip


@pytest.mark.parametrize(("body", "always", "sometimes"), CONSTRUCTED.values(), ids=CONSTRUCTED)
def test_methods_that_the_constructor_runs(body: str, always: bool, sometimes: bool) -> None:
    """A call under a test, in a loop or a try may be left out."""
    case = Case({"m.py": f"class C:\n    {body}\nC(1)\n"})
    function = case.function("m.py", "C.f")
    assert always_constructed(case.project, function) is always
    assert sometimes_called(case.project, function) is sometimes


def test_constructor_of_a_subclass_may_leave_a_method_out() -> None:
    """Every object of the class counts; its constructor always runs."""
    text = "class C:\n    def __init__(self): self.f()\n    def f(self): pass\nclass D(C):\n    def __init__(self): pass\n"
    case = Case({"m.py": text})
    assert not always_constructed(case.project, case.function("m.py", "C.f"))
    own = Case({"m.py": text.partition("class D")[0]})
    init = own.function("m.py", "C.__init__")
    assert always_constructed(own.project, init) and not sometimes_called(own.project, init)


SLOTS: dict[str, tuple[str, str | None]] = {
    "a tuple": ("class C:\n    __slots__ = ('a', 'b')", "('a', 'b', 'scaler')"),
    "a list": ('class C:\n    __slots__ = ["a"]', '["a", "scaler"]'),
    "a set": ("class C:\n    __slots__ = {'a'}", "{'a', 'scaler'}"),
    "one name": ("class C:\n    __slots__ = 'a'", "('a', 'scaler')"),
    "none yet": ("class C:\n    __slots__ = ()", '("scaler",)'),
    "no list yet": ("class C:\n    __slots__ = []", '["scaler"]'),
    "annotated": ("class C:\n    __slots__: tuple = ('a',)", "('a', 'scaler',)"),
    "no slots": ("class C:\n    pass", None),
    "the name is there": ("class C:\n    __slots__ = ('scaler',)", None),
    "a dictionary is there": ("class C:\n    __slots__ = ('a', '__dict__')", None),
    "a base without": ("class B: pass\nclass C(B):\n    __slots__ = ('a',)", None),
    "a base with": ("class B:\n    __slots__ = ('z',)\nclass C(B):\n    __slots__ = ('a',)", "('a', 'scaler',)"),
    "a base with the name": ("class B:\n    __slots__ = ('scaler',)\nclass C(B):\n    __slots__ = ('a',)", None),
    "a base from elsewhere": ("import x\nclass C(x.Y):\n    __slots__ = ('a',)", None),
    "the base of all": ("class C(object):\n    __slots__ = ('a',)", "('a', 'scaler',)"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "longer"), SLOTS.values(), ids=SLOTS)
def test_slots_that_grow(text: str, longer: str | None) -> None:
    """Objects without a dictionary need a slot for the scaler."""
    case = Case({"m.py": text})
    cls = case.project.modules["m.py"].classes
    owner = next(c for c in cls.values() if c.qualname == "C")
    found = slot(owner, "scaler")
    assert (None if found is None else found[1]) == longer


@pytest.mark.parametrize(
    "text",
    [
        "class C:\n    __slots__ = names()",
        "class B:\n    __slots__ = ('z',)\nclass C(B):\n    __slots__ = B.__slots__ + ('a',)",
        "class C:\n    __slots__ = [n for n in names]",
        "from dataclasses import dataclass\n@dataclass(slots=True)\nclass C:\n    a: int",
    ],
)
def test_slots_that_cannot_grow(text: str) -> None:
    """No name can be added to what is computed."""
    case = Case({"m.py": text})
    owner = next(c for c in case.project.modules["m.py"].classes.values() if c.qualname == "C")
    with pytest.raises(Cannot):
        slot(owner, "scaler")


def test_spelling() -> None:
    """`torch.cuda.amp` needs no device; a type is said where it is not float16, but not where casts are off."""
    old, new = Spelling(), Spelling(torch_amp=True, dtype="bfloat16")
    assert old.autocast() == "torch.cuda.amp.autocast()"
    assert old.autocast("args.fp16") == "torch.cuda.amp.autocast(enabled=args.fp16)"
    assert old.scaler([]) == "torch.cuda.amp.GradScaler()"
    assert new.autocast() == 'torch.amp.autocast("cuda", dtype=torch.bfloat16)'
    assert new.autocast("False") == 'torch.amp.autocast("cuda", enabled=False)'
    assert new.scaler(["enabled=x"]) == 'torch.amp.GradScaler("cuda", enabled=x)'
    assert Spelling(remembers=True).scaler(["a=1"]) == "OverflowGradScaler(a=1)"
    assert Spelling(remembers=True).plain_class == "torch.cuda.amp.GradScaler"
