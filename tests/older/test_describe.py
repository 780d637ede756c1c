"""Trainings of interfaces before `amp.initialize`, written as today's amp on the lines that they had."""

from __future__ import annotations

import ast

import pytest

from amp_migrate.facts.paths import same
from amp_migrate.facts.stand_ins import (
    ALIAS,
    NOTHING,
    SCALED,
    stands_for_nothing,
    stands_for_setting,
)
from amp_migrate.facts.tree import Tree
from amp_migrate.older.describe import OlderInterfaces
from amp_migrate.older.sheet import Sheet
from amp_migrate.older.words import FP16, HANDLE, MASTERS, in_words
from amp_migrate.older.wraps import named
from amp_migrate.plan.cannot import Unwritable
from amp_migrate.plan.model import Finding, Status
from amp_migrate.settings import Settings
from tests.project.helpers import Case

LOOP = "for x in data:\n    optimizer.zero_grad()\n    loss = model(x).sum()\n"
MODEL = "model = torch.nn.Linear(2, 2)\noptimizer = torch.optim.SGD(model.parameters(), 0.1)\n"


def _handle(
    init: str = "amp.init()", wrap: str = "handle.wrap_optimizer(optimizer)", more: str = ""
) -> str:
    return (
        f"import torch\nfrom apex import amp\nargs = parse()\nhandle = {init}\n{MODEL}optimizer = {wrap}\n{LOOP}"
        f"    with optimizer.scale_loss(loss) as scaled:\n        scaled.backward()\n    optimizer.step()\n{more}"
    )


def _fp16(options: str = "", body: str = "optimizer.backward(loss)\n", more: str = "") -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return (
        "import torch\nfrom apex.fp16_utils import FP16_Optimizer, network_to_half\nargs = parse()\n"
        f"{MODEL}model = network_to_half(model)\noptimizer = FP16_Optimizer(optimizer{options})\n{LOOP}{lines}    optimizer.step()\n{more}"
    )


def _written(text: str) -> tuple[list[str], list[str], list[str]]:
    """Return the lines that change with what stands there instead, and why what is kept stays."""
    tree = OlderInterfaces({"m.py": Tree("m.py", text)}, Settings()).trees()["m.py"]
    before, after = text.split("\n"), tree.text.split("\n")
    assert len(before) == len(after)
    short = {ALIAS: "AMP", NOTHING: "-", SCALED: "S"}
    changed = []
    for old, new in zip(before, after, strict=True):
        if old != new:
            for name, mark in short.items():
                new = new.replace(name, mark)
            changed.append(new.strip())
    said = [f"{s.span.line} {s.code}" for s in tree.older.said]
    return changed, said, [kept.message for kept in tree.older.kept.values()]


INIT = 'AMP.initialize(model, optimizer, opt_level="O1")'
O2 = 'AMP.initialize(model, optimizer, opt_level="O2", loss_scale={})'
SCALING = "with AMP.scale_loss(loss, optimizer) as scaled:"
BACKWARD = "with AMP.scale_loss(loss, optimizer) as S: S.backward()"

WRITTEN: dict[str, tuple[str, list[str]]] = {
    "a handle": (_handle(), ["-", INIT, SCALING]),
    "a handle by an option": (
        _handle("amp.init(enabled=args.fp16)"),
        ["-", 'AMP.initialize(model, optimizer, enabled=args.fp16, opt_level="O1")', SCALING],
    ),
    "a handle whose optimizer goes into a call": (
        _handle(more="keep([handle.wrap_optimizer(optimizer)])\n"),
        ["-", INIT, SCALING, INIT + "; keep([optimizer])"],
    ),
    "a handle of two losses": (
        _handle(wrap="handle.wrap_optimizer(optimizer, num_loss=2)"), ["-", INIT, SCALING],
    ),
    "a static scale": (
        _fp16(", static_loss_scale=128.0"), ["-", O2.format("128.0"), BACKWARD],
    ),
    "a static scale by position": (_fp16(", 64.0"), ["-", O2.format("64.0"), BACKWARD]),
    "no scale": (_fp16(), ["-", O2.format("1.0"), BACKWARD]),
    "a dynamic scale": (
        _fp16(", dynamic_loss_scale=True"), ["-", O2.format('"dynamic"'), BACKWARD],
    ),
    "a first scale": (
        _fp16(", dynamic_loss_scale=True, dynamic_loss_args={'init_scale': 4}"),
        ["-", O2.format('"dynamic"') + "; AMP._amp_state.loss_scalers[0]._loss_scale = 4", BACKWARD],
    ),
    "a clip": (
        _fp16("", "optimizer.backward(loss)\noptimizer.clip_master_grads(1.0)\n"),
        ["-", O2.format("1.0"), BACKWARD, "torch.nn.utils.clip_grad_norm_(AMP.master_params(optimizer), 1.0)"],
    ),
    "gradients copied later": (
        _fp16("", "optimizer.backward(loss, update_master_grads=False)\noptimizer.update_master_grads()\n"),
        ["-", O2.format("1.0"), BACKWARD, "-"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "lines"), WRITTEN.values(), ids=WRITTEN)
def test_trainings_that_are_written(text: str, lines: list[str]) -> None:
    """What wraps an optimizer becomes an initialize, a backward a block that scales, the rest goes."""
    changed, said, kept = _written(text)
    assert changed == lines
    assert kept == [] and said


KEPT: dict[str, tuple[str, str]] = {
    "a handle without an optimizer": (
        _handle().replace("optimizer = handle.wrap_optimizer(optimizer)\n", ""), "wraps no optimizer",
    ),
    "a handle as a value": (_handle(more="run(handle)\n"), "used as a value"),
    "a handle with a scale": (_handle("amp.init(loss_scale=128.0)"), "takes a loss scale"),
    "a handle with stars": (_handle("amp.init(*args)"), "cannot be read"),
    "options with stars": (_fp16(", **args"), "cannot be read"),
    "a class as a value": (_fp16(more="isinstance(optimizer, FP16_Optimizer)\n"), "used as a value"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "why"), KEPT.values(), ids=KEPT)
def test_trainings_that_stay(text: str, why: str) -> None:
    """Nothing of them changes, and each line says why."""
    changed, said, kept = _written(text)
    assert changed == [] and said == []
    assert kept and all(why in message for message in kept)


@pytest.mark.parametrize(
    "text",
    [
        "import torch\nx = 1\n",
        "from apex import amp\nm, o = amp.initialize(m, o)\n",
        "from other import FP16_Optimizer\noptimizer = FP16_Optimizer(o)\n",
        "from torch.cuda import amp\nhandle = amp.init()\n",
        "from apex.contrib.other import FP16_Optimizer\noptimizer = FP16_Optimizer(o)\n",
        "def init(amp):\n    return amp.init()\n",
    ],
)
def test_files_without_an_older_interface(text: str) -> None:
    """They stay as they are."""
    tree = Tree("m.py", text)
    assert OlderInterfaces({"m.py": tree}, Settings()).trees()["m.py"] is tree


def test_rules_that_are_switched_off() -> None:
    """Their trainings stay without a word."""
    for text, code in ((_handle(), "AMP102"), (_fp16(), "AMP306")):
        tree = Tree("m.py", text)
        settings = Settings(ignore=(code,))
        assert not settings.enabled(code)
        assert OlderInterfaces({"m.py": tree}, settings).trees()["m.py"] is tree


def test_training_that_a_plan_leaves_stays() -> None:
    """Its lines get the reason, and nothing is asked twice."""
    older = OlderInterfaces({"m.py": Tree("m.py", _fp16())}, Settings())
    tree = older.trees()["m.py"]
    call = next(c for c in tree.nodes(ast.Call) if ast.unparse(c.func).endswith("initialize"))
    finding = Finding("m.py", tree.span(call), "AMP905", Status.LEFT, "amp.initialize is odd", "do")
    assert not older.leave([], {"m.py": None})
    assert older.leave([finding], {"m.py": None})
    (kept,) = older.trees()["m.py"].older.kept.values()
    assert kept.message == "FP16_Optimizer is odd"
    assert older.trees()["m.py"].text == _fp16()


def test_trace_in_a_written_text_keeps_a_training() -> None:
    """No file may hold a name that stands for an older interface."""
    older = OlderInterfaces({"m.py": Tree("m.py", _fp16())}, Settings())
    older.trees()
    assert not older.leave([], {"m.py": "x = 1\n"})
    assert older.leave([], {"m.py": f"{SCALED}.backward()\n"})
    assert "cannot be followed" in next(iter(older.trees()["m.py"].older.kept.values())).message


def _sheet(text: str) -> Sheet:
    return Sheet(Case({"m.py": text}).project.modules["m.py"])


LINES: dict[str, tuple[str, str, str, str]] = {
    "an expression": ("x = f(a, b)\n", "a", "c", "x = f(c, b)\n"),
    "over two lines": ("f(a,\n  b)\ny\n", "f(a,\n  b)", "g()", "g(\n)\ny\n"),
    "over two lines, no call": ("x = (a +\n  b)\ny\n", "x = (a +\n  b)", "x = c", "x = (c\n)\ny\n"),
    "a statement": ("if x:\n    f(a)\n", "f(a)", "g()", "if x:\n    g()\n"),
}


@pytest.mark.parametrize(("text", "node", "instead", "written"), LINES.values(), ids=LINES)
def test_lines_stay_where_they_are(text: str, node: str, instead: str, written: str) -> None:
    """A text takes as many lines as what it stands for."""
    sheet = _sheet(text)
    found = [
        n for n in sheet.tree.parents
        if isinstance(n, ast.stmt | ast.expr) and sheet.tree.segment(n) == node
    ]  # fmt: skip
    sheet.put(found[0], instead)
    assert sheet.written().text == written


def test_texts_inside_others() -> None:
    """The outer one is made with the inner one, which does not stand twice."""
    sheet = _sheet("x = f(a.b, c)  # why\n")
    (stmt,) = sheet.tree.module.body
    assert isinstance(stmt, ast.Assign) and isinstance(stmt.value, ast.Call)
    sheet.put(stmt.value.args[0], "d")
    assert sheet.text(stmt.value) == "f(d, c)" and sheet.line(stmt) == "x = f(d, c)"
    sheet.put(stmt, "g(d)")
    assert sheet.written().text == "g(d)  # why\n"


def test_statements_that_share_their_lines() -> None:
    """Only one with lines of its own can be replaced whole."""
    for text, whole in (
        ("f()\n", True),
        ("f()  # why\n", True),
        ("f(); g()\n", False),
        ("if x: f()\n", False),
        ("if x:\n    f()\n", True),
    ):
        sheet = _sheet(text)
        call = next(c for c in sheet.tree.nodes(ast.Call) if ast.unparse(c) == "f()")
        assert sheet.tree.stands_alone(sheet.tree.statement(call)) is whole, text


def test_marks() -> None:
    """What stands for nothing and for a setting, and expressions spelt alike."""
    texts = [NOTHING, "f()", f"{ALIAS}._amp_state.x = 1", "x = 1", f"f({NOTHING})"]
    stmts = [ast.parse(text).body[0] for text in texts]
    assert [isinstance(s, ast.Expr) and stands_for_nothing(s) for s in stmts] == [
        True,
        False,
        False,
        False,
        False,
    ]
    assert [stands_for_setting(s) for s in stmts] == [False, False, True, False, False]
    read = ast.parse("a.b").body[0].value  # type: ignore[attr-defined]
    stored = ast.parse("a.b = 1").body[0].targets[0]  # type: ignore[attr-defined]
    assert same(read, stored) and not same(read, ast.parse("a.c").body[0].value)  # type: ignore[attr-defined]


GIVEN: dict[str, tuple[str, dict[str, str] | None]] = {
    "by position": ("f(1, 2)", {"a": "1", "b": "2"}),
    "by keyword": ("f(b=2)", {"b": "2"}),
    "both": ("f(1, b=2)", {"a": "1", "b": "2"}),
    "stars": ("f(*x)", None),
    "unpacked": ("f(**x)", None),
    "too many": ("f(1, 2, 3)", None),
    "another": ("f(c=1)", None),
}


@pytest.mark.parametrize(("text", "given"), GIVEN.values(), ids=GIVEN)
def test_arguments_by_name(text: str, given: dict[str, str] | None) -> None:
    """All must be known."""
    sheet = _sheet(text + "\n")
    call = next(iter(sheet.tree.nodes(ast.Call)))
    if given is None:
        with pytest.raises(Unwritable):
            named(sheet, call, ("a", "b"))
    else:
        found = named(sheet, call, ("a", "b"))
        assert {name: ast.unparse(node) for name, node in found.items()} == given


def test_words() -> None:
    """What is said of today's amp is said of the interface."""
    said = f"amp.initialize, amp.scale_loss(x) and {ALIAS}.scale_loss of {SCALED}"
    assert (
        in_words(said, FP16)
        == "FP16_Optimizer, optimizer.backward(x) and optimizer.backward of the scaled loss"
    )
    assert (
        in_words(said, HANDLE)
        == "wrap_optimizer, optimizer.scale_loss(x) and optimizer.scale_loss of the scaled loss"
    )
    assert in_words("amp.initialize stays", MASTERS) == "prep_param_lists stays"
    assert in_words("amp.master_params(optimizer)", FP16) == "clip_master_grads"
    assert in_words("nothing of it", FP16) == "nothing of it"
