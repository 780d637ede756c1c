"""What tests amount to where Apex is installed, and which options and guards are about it."""

from __future__ import annotations

import ast

import pytest

from amp_migrate.apex.sites import Kind
from amp_migrate.availability.asked import entries
from amp_migrate.availability.availability import Availability
from amp_migrate.availability.choosing import announces, may_be_off
from amp_migrate.availability.dead import is_uncalled, is_unused
from amp_migrate.availability.flags import not_bools, numbers
from amp_migrate.availability.installed import flags, looks, tells_installed
from amp_migrate.availability.spent import is_spent
from amp_migrate.project.order import levels
from tests.placement.training import Training, looped, stepped
from tests.project.helpers import Case

TRIED = "try:\n    from apex import amp\n    HAVE = True\nexcept ImportError:\n    HAVE = False\n"
EMPTY = "try:\n    from apex import amp\nexcept ImportError:\n    amp = None\n"

KNOWN: dict[str, tuple[str, str, bool | None]] = {
    "a flag": (TRIED, "HAVE", True),
    "a flag compared": (TRIED, "HAVE == False", False),
    "a flag is True": (TRIED, "HAVE is True", True),
    "a flag is not True": (TRIED, "HAVE is not True", False),
    "a flag compared otherwise": (TRIED, "HAVE > False", None),
    "a flag set before": ("HAVE = False\n" + TRIED.partition("except")[0] + "except ImportError:\n    pass\n", "HAVE", True),
    "a flag with something else too": (TRIED + "HAVE = args.fp16\n", "HAVE", None),
    "a flag turned off elsewhere": (TRIED + "if args.cpu:\n    HAVE = False\n", "HAVE", None),
    "amp itself": (EMPTY, "amp is not None", True),
    "amp is None": (EMPTY, "amp is None", False),
    "amp compared": (EMPTY, "amp == None", None),
    "amp is true": (EMPTY, "amp", True),
    "a parameter of that name": (EMPTY + "def f(amp):\n    return (amp is not None)\n", "amp is not None", None),
    "another name": (TRIED, "other", None),
    "of another library": ("try:\n    import horovod\n    HAVE = True\nexcept ImportError:\n    HAVE = False\n", "HAVE", None),
    "looked up": ("import importlib.util\n", "importlib.util.find_spec('apex') is not None", True),
    "looked up and missing": ("import importlib.util\n", "importlib.util.find_spec('apex') is None", False),
    "looked up, another": ("import importlib.util\n", "importlib.util.find_spec('apexx') is not None", None),
    "kept": ("import importlib.util\nHAVE = importlib.util.find_spec('apex') is not None\n", "HAVE", True),
    "kept and set anew": ("import importlib.util\nHAVE = importlib.util.find_spec('apex') is not None\nHAVE = x\n", "HAVE", None),
    "a function of its own": (TRIED + "def ready():\n    return HAVE\n", "ready()", True),
    "a function that asks more": (TRIED + "def ready():\n    return HAVE and args.fp16\n", "ready()", None),
    "a function that imports": ("def ready():\n    try:\n        import apex\n        return True\n    except ImportError:\n        return False\n", "ready()", True),
    "a function that imports and returns the wrong way": ("def ready():\n    try:\n        import apex\n        return False\n    except ImportError:\n        return True\n", "ready()", None),
    "a function by name, out of sight": ("from utils import is_apex_available\n", "is_apex_available()", True),
    "a function by name, with arguments": ("from utils import is_apex_available\n", "is_apex_available(1)", None),
    "a name by import, out of sight": ("from utils import HAS_APEX\n", "HAS_APEX", True),
    "a name that says more": ("from utils import use_apex_amp_o2\n", "use_apex_amp_o2", None),
}  # fmt: skip


def _last(text: str, test: str) -> tuple[Availability, ast.expr]:
    case = Case({"m.py": f"{text}check(({test}))\n"})
    module = case.project.modules["m.py"]
    found = [
        n for n in module.tree.parents if isinstance(n, ast.expr) and module.tree.segment(n) == test
    ]
    chosen = min if "def f(amp)" in text else max
    node = chosen(found, key=lambda n: (n.lineno, n.col_offset))
    return Availability(case.project, module), node


@pytest.mark.parametrize(("text", "test", "answer"), KNOWN.values(), ids=KNOWN)
def test_what_apex_being_there_settles(text: str, test: str, answer: bool | None) -> None:
    """Flags, amp and look-ups are settled by Apex alone; without Apex they say the opposite."""
    availability, node = _last(text, test)
    assert availability.known(node) is answer
    absent = availability.without_apex().known(node)
    assert absent is (None if answer is None else not answer)
    assert availability.settles(node) is (answer is not None)


def test_calls_that_ask_may_be_left_out() -> None:
    """Probes stay as they are where other code needs them; flags do not."""
    for text, test in (
        ("import importlib.util\n", "importlib.util.find_spec('apex') is not None"),
        ("from utils import is_apex_available\n", "is_apex_available()"),
    ):
        availability, node = _last(text, test)
        assert availability.known(node) is True
        assert availability.without_probes().known(node) is None
    availability, node = _last(TRIED, "HAVE")
    assert availability.without_probes().known(node) is True


SETTLED: dict[str, tuple[str, bool, str, bool | None]] = {
    "with an option": ("HAVE and args.fp16", True, "args.fp16", None),
    "without it": ("not HAVE", True, "", False),
    "or an option": ("HAVE or args.fp16", True, "", True),
    "an option alone": ("args.fp16", False, "args.fp16", None),
    "turned round": ("not (HAVE and args.fp16)", True, "not args.fp16", None),
}


@pytest.mark.parametrize(("test", "settles", "text", "value"), SETTLED.values(), ids=SETTLED)
def test_tests_that_are_reduced(test: str, settles: bool, text: str, value: bool | None) -> None:
    """What Apex settles goes, the options stay."""
    availability, node = _last(TRIED, test)
    assert availability.settles(node) is settles
    found = availability.reduce(node)
    assert (found.text, found.value) == (text, value)
    assert availability.truth(node) is value


OPTIONAL = "if args.fp16:\n    from apex import amp\nelse:\n    amp = None\n"


@pytest.mark.parametrize(
    ("more", "test", "text"),
    [
        ("", "amp is not None", "args.fp16"),
        ("", "amp is None", "not args.fp16"),
        ("", "amp is not None and args.a", "args.fp16 and args.a"),
        ("if amp is None:\n    x = 1\n", "args.a", "args.a"),
    ],
)
def test_names_that_hold_amp_or_none(more: str, test: str, text: str) -> None:
    """They stand for the option that decides, where they are only asked."""
    case = Case({"m.py": f"{OPTIONAL}{more}if {test}:\n    y = 1\n"})
    module = case.project.modules["m.py"]
    last = module.tree.module.body[-1]
    assert isinstance(last, ast.If)
    availability = Availability(case.project, module)
    assert availability.reduce(last.test).text == text
    assert availability.settles(last.test) is ("amp is" in test)


def test_name_that_holds_amp_or_none_and_is_handed_on() -> None:
    """It is a switch of the program then, and says nothing of its option."""
    case = Case({"m.py": f"{OPTIONAL}run(amp)\nif amp is not None:\n    y = 1\n"})
    module = case.project.modules["m.py"]
    last = module.tree.module.body[-1]
    assert isinstance(last, ast.If)
    availability = Availability(case.project, module)
    assert availability.switched
    assert availability.reduce(last.test).text == "amp is not None"
    assert not availability.settles(last.test)


def test_flags_of_a_file() -> None:
    """A `try` sets them True, its handlers False."""
    for text, found in (
        (TRIED, {"HAVE"}),
        ("try:\n    import apex\nexcept ImportError:\n    A = False\nelse:\n    A = True\n", {"A"}),
        (
            "A = B = True\ntry:\n    import apex.amp\nexcept ImportError:\n    A = B = False\n",
            {"A", "B"},
        ),
        ("try:\n    import torch\n    A = True\nexcept ImportError:\n    A = False\n", set()),
        (
            "try:\n    from .apex import amp\n    A = True\nexcept ImportError:\n    A = False\n",
            set(),
        ),
        ("try:\n    import apex\n    A = 1\nexcept ImportError:\n    A = 0\n", set()),
        (
            "try:\n    if x:\n        import apex\n    A = True\nexcept ImportError:\n    A = False\n",
            {"A"},
        ),
    ):
        assert flags(Case({"m.py": text}).project.modules["m.py"]) == found, text


def test_looking_for_apex() -> None:
    """A bool of where modules are found, for Apex alone."""
    for text, found in (
        ("find_spec('apex') is not None", True),
        ("bool(find_spec('apex'))", True),
        ("bool(util.find_loader('apex.amp'))", True),
        ("find_spec('apex')", False),
        ("find_spec('apex') is None", False),
        ("find_spec(name) is not None", False),
        ("bool(find('apex'))", False),
        ("bool()", False),
    ):
        assert looks(ast.parse(text, mode="eval").body) is found, text


def test_functions_that_tell() -> None:
    """Every return says it, and at least one there is."""
    for body, found in (
        ("return HAVE", True),
        ("if x:\n        return HAVE\n    return HAVE", True),
        ("if x:\n        return False\n    return HAVE", False),
        ("return", False),
        ("pass", False),
        ("return lambda: HAVE", False),
    ):
        case = Case({"m.py": f"{TRIED}def f(x):\n    {body}\n"})
        assert tells_installed(case.function("m.py", "f")) is found, body


OPTIONS = """\
p.add_argument("--fp16", action="store_true")
p.add_argument("--level", type=str, default="O1")
p.add_argument("--loss-scale", type=float, default=128.0)
p.add_argument("-n", "--number", type=int)
p.add_argument("--amp", type=bool, default=False)
p.add_argument("--on", default=True)
p.add_argument("--mode", dest="kind")
p.add_argument("plain")
level = args.level
copied = level
args.made = copied
unrelated = other
found = config.get("amp")
sure = config.get("amp", False)
"""


def test_options_that_are_no_bools() -> None:
    """Strings, numbers, settings that may be missing, and their copies."""
    project = Case({"m.py": OPTIONS}).project
    assert not_bools(project, project.modules.values()) == {
        "level", "loss_scale", "number", "kind", "plain", "copied", "made", "found", "config",
    }  # fmt: skip
    assert numbers(project.modules.values()) == {"loss_scale": True, "number": False}
    both = Case({"a.py": OPTIONS, "b.py": 'p.add_argument("--number", type=str)\n'}).project
    assert numbers(both.modules.values()) == {"loss_scale": True}


DEAD: dict[str, tuple[str, bool, bool]] = {
    "nothing uses them": ("", True, True),
    "called": ("f()\nC()\n", False, False),
    "handed on": ("run(f, C)\n", False, False),
    "read by another name": ("m.f, m.C\n", False, False),
    "said in a string": ("x = 'm:f'\n", False, True),
    "derived": ("class D(C): pass\n", True, False),
}


@pytest.mark.parametrize(("more", "uncalled", "unused"), DEAD.values(), ids=DEAD)
def test_dead_code(more: str, uncalled: bool, unused: bool) -> None:
    """No file calls, imports, extends or mentions it."""
    case = Case({"m.py": f"def f(): pass\nclass C: pass\n{more}"})
    module = case.project.modules["m.py"]
    owner = next(c for c in module.classes.values() if c.name == "C")
    assert is_uncalled(case.project, case.function("m.py", "f")) is uncalled
    assert is_unused(case.project, owner) is unused


def test_code_that_is_not_dead_by_its_form() -> None:
    """Main, methods, closures and what is decorated or imported."""
    text = "def main(): pass\n@hook\ndef f(): pass\ndef g():\n    def h(): pass\nclass C:\n    def k(self): pass\n@hook\nclass D: pass\n"
    case = Case({"m.py": text, "n.py": "from m import g, C\n"})
    for name in ("main", "f", "g", "g.<locals>.h", "C.k"):
        assert not is_uncalled(case.project, case.function("m.py", name)), name
    for owner in case.project.modules["m.py"].classes.values():
        assert not is_unused(case.project, owner), owner.name


OFF: dict[str, tuple[str, bool]] = {
    "always": ("m, o = amp.initialize(m, o, opt_level='O1')", False),
    "an option": ("m, o = amp.initialize(m, o, enabled=args.fp16)", True),
    "on": ("m, o = amp.initialize(m, o, enabled=True)", False),
    "off": ("m, o = amp.initialize(m, o, enabled=False)", True),
    "a level from elsewhere": ("m, o = amp.initialize(m, o, opt_level=args.level)", True),
    "a level from elsewhere, asked for": ("if args.use_apex:\n    m, o = amp.initialize(m, o, opt_level=args.level)", False),
    "unpacked": ("m, o = amp.initialize(m, o, **options)", True),
}  # fmt: skip


@pytest.mark.parametrize(("text", "off"), OFF.values(), ids=OFF)
def test_initialize_that_may_be_off(text: str, off: bool) -> None:
    """A level or `enabled=` from elsewhere may choose FP32."""
    case = Training(f"from apex import amp\n{text}\n")
    (site,) = (s for s in case.index.sites if s.kind is Kind.INITIALIZE)
    assert may_be_off(site) is off


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("try:\n    import apex\n    print('apex')\nexcept ImportError:\n    pass\n", True),
        ("try:\n    import apex\nexcept ImportError:\n    pass\n", False),
        ("try:\n    import apex\n    A = True\nexcept ImportError:\n    A = False\n", False),
        ("try:\n    import apex\n    print('apex')\nexcept ImportError:\n    raise\n", False),
        (
            "try:\n    import apex\n    print('apex')\nexcept ImportError:\n    pass\nelse:\n    x = 1\n",
            False,
        ),
        ("try:\n    import torch\n    print('torch')\nexcept ImportError:\n    pass\n", False),
    ],
)
def test_imports_that_are_announced(text: str, found: bool) -> None:
    """The `try` says that Apex is there, and goes on without it."""
    (node,) = ast.parse(text).body
    assert isinstance(node, ast.Try)
    assert announces(node) is found


SPENT: dict[str, tuple[str, bool]] = {
    "the first epoch": ("if i == 0:\n    INIT", True),
    "an option": ("if args.fp16:\n    INIT", False),
    "an attribute that it sets": ("if args.done is None:\n    INIT\n    args.done = 1", True),
    "what the initialize gives": ("if model is None:\n    INIT", False),
    "what the loop sets": ("if flag:\n    INIT\nflag = x", True),
}


@pytest.mark.parametrize(("body", "spent"), SPENT.values(), ids=SPENT)
def test_guards_that_hold_once(body: str, spent: bool) -> None:
    """What the test reads changes behind the initialize, while the training goes on."""
    init = "model, optimizer = amp.initialize(model, optimizer)"
    training = Training(looped(body.replace("INIT", init) + "\nread = 1\n"))
    site = [s for s in training.index.sites if s.kind is Kind.INITIALIZE][-1]
    holder = next(up for up in levels(site.module.tree, site.node) if isinstance(up, ast.If))
    assert is_spent(training.project, site, holder, [training.statement("read = 1")]) is spent


ENTRY = """\
from apex import amp
class Engine:
    def __init__(self, model, fp16=False):
        self.fp16 = fp16
    def step(self, loss, optimizer):
        if self.fp16:
            with amp.scale_loss(loss, optimizer) as s:
                s.backward()
        else:
            loss.backward()
"""
ENTRIES: dict[str, tuple[str, bool]] = {
    "left off": ("Engine(1)\n", True),
    "given as off": ("Engine(1, fp16=False)\n", True),
    "turned on": ("Engine(1, fp16=True)\n", False),
    "from elsewhere": ("Engine(1, fp16=args.x)\n", False),
    "unpacked": ("Engine(1, **args)\n", False),
    "not made": ("", False),
    "set elsewhere": ("e = Engine(1)\ne.fp16 = 2\n", False),
    "one of two on": ("Engine(1)\nEngine(1, True)\n", False),
}


@pytest.mark.parametrize(("calls", "found"), ENTRIES.values(), ids=ENTRIES)
def test_flags_that_those_who_call_turn_on(calls: str, found: bool) -> None:
    """Off by default, and by every call in sight, of which there is one."""
    case = Training(ENTRY + calls)
    result = entries(case.project, case.index.sites)
    assert bool(result) is found
    for entry in result.values():
        assert (entry.function.qualname, entry.flag, entry.keeps) == (
            "Engine.__init__",
            "fp16",
            True,
        )


def test_program_of_these_tests_trains() -> None:
    """A plain loop has neither flags nor options."""
    training = Training(stepped("optimizer.step()\n"))
    assert not training.unit.not_bools and not flags(training.project.modules["train.py"])
