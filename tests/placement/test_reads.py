"""What reads gradients, what clears them, and what throws them away."""

from __future__ import annotations

import ast

import pytest

from amp_migrate.placement.reads.clearing import Clearing, clears
from amp_migrate.placement.reads.early import before_step
from amp_migrate.placement.reads.gradients import clips_by_name
from amp_migrate.placement.reads.zeroing import (
    every_micro_batch,
    leaves_first,
    lost_windows,
)
from amp_migrate.placement.windows.counting import counts
from amp_migrate.training.gradients.used import Gradients
from tests.placement.training import BACKWARD, FORWARD, HEAD, START, Training, looped, stepped
from tests.project.helpers import Case

CLEARING: dict[str, tuple[str, bool]] = {
    "of an optimizer": ("optimizer.zero_grad()", True),
    "to None": ("p.grad = None", True),
    "to zeros": ("p.grad = torch.zeros_like(p)", True),
    "in place": ("p.grad.zero_()", True),
    "its data in place": ("p.grad.data.zero_()", True),
    "detached in place": ("p.grad.detach_().zero_()", True),
    "deleted": ("del p.grad", True),
    "one of several targets": ("x = p.grad = None", True),
    "of an older interface": ("optimizer.zero_none_grad()", True),
    "another value": ("p.grad = g", False),
    "weights": ("p.data.zero_()", False),
    "another attribute": ("p.gradient = None", False),
    "not called": ("optimizer.zero_grad", False),
    "a function of that name": ("zero_grad()", False),
    "an item": ("del grads['p']", False),
    "added": ("p.grad += 0", False),
}


@pytest.mark.parametrize(("text", "found"), CLEARING.values(), ids=CLEARING)
def test_what_clears_a_gradient(text: str, found: bool) -> None:
    """Calls, assignments and deletions of gradients clear them, those of anything else do not."""
    assert any(clears(node) for node in ast.walk(ast.parse(text))) is found


HELPERS: dict[str, tuple[str, bool]] = {
    "straight": ("def f(o):\n    o.zero_grad()", True),
    "either way": ("def f(o, a):\n    if a:\n        o.zero_grad()\n    else:\n        o.zero_grad()", True),
    "sometimes": ("def f(o, a):\n    if a:\n        o.zero_grad()", False),
    "returns before": ("def f(o, a):\n    if a:\n        return\n    o.zero_grad()", False),
    "in finally": ("def f(o, a):\n    try:\n        if a:\n            return\n    finally:\n        o.zero_grad()", True),
    "by another": ("def f(o):\n    g(o)\ndef g(o):\n    o.zero_grad()", True),
    "by another sometimes": ("def f(o):\n    g(o)\ndef g(o):\n    if o:\n        o.zero_grad()", False),
    "over weights": ("def f(m):\n    for p in m.parameters():\n        p.grad = None", True),
    "over odd weights": ("def f(m):\n    for p in m.parameters():\n        if p.odd:\n            p.grad = None", False),
    "over groups": ("def f(o):\n    for g in o.param_groups:\n        for p in g['params']:\n            p.grad = None", True),
    "over batches": ("def f(o, xs):\n    for x in xs:\n        o.zero_grad()", False),
    "in a function inside": ("def f(o):\n    def g():\n        o.zero_grad()", False),
    "a short circuit": ("def f(o, a):\n    a and o.zero_grad()", False),
    "in itself": ("def f(o):\n    f(o)", False),
    "in a match of two": ("def f(o):\n    match o:\n        case 1:\n            o.zero_grad()\n        case _:\n            o.zero_grad()", True),
    "in a match of one": ("def f(o):\n    match o:\n        case 1:\n            o.zero_grad()", False),
    "async": ("async def f(o):\n    o.zero_grad()", True),
    "in a with": ("def f(o):\n    with o:\n        o.zero_grad()", True),
}  # fmt: skip


@pytest.mark.parametrize(("text", "always"), HELPERS.values(), ids=HELPERS)
def test_functions_that_always_clear(text: str, always: bool) -> None:
    """Every run of them does: a test may leave it out, a loop over weights may not."""
    case = Case({"m.py": text + "\n"})
    assert Clearing(case.project).always(case.function("m.py", "f")) is always


CLIPS: dict[str, tuple[str, bool]] = {
    "of torch": ("clip_grad_norm_(p, 1)", True),
    "gradients by name": ("clip_gradients(model)", True),
    "a method": ("self.clip_grads()", True),
    "of a model": ("clip(model, 1)", True),
    "of parameters": ("clip(self.net.parameters(), 1)", True),
    "logged": ("log_grad_norms(model)", True),
    "images": ("clip(images, 0, 1)", False),
    "numbers": ("np.clip(x, 0, 1)", False),
    "nothing given": ("clip_gradients()", False),
    "another thing": ("grade(model)", False),
}


@pytest.mark.parametrize(("text", "found"), CLIPS.values(), ids=CLIPS)
def test_helpers_that_clip_by_their_names(text: str, found: bool) -> None:
    """Gradients are named, or what is clipped belongs to a network or optimizer."""
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
    assert clips_by_name(call, name) is found


def _reads(text: str) -> bool:
    """Tell whether the values of a gradient matter in a text, at any scale."""
    project = Case({"m.py": text + "\n"}).project
    module = project.modules["m.py"]
    found = [n for n in module.tree.nodes(ast.Attribute) if n.attr == "grad"]
    return any(Gradients(project).use(module.top, node) == "read" for node in found)


NORMED: dict[str, tuple[str, bool]] = {
    "divided by their norm": ("for p in ps:\n    n = torch.norm(p.grad)\n    p.data.add_(e * p.grad / n)", True),
    "asked whether it is zero": ("for p in ps:\n    n = p.grad.norm()\n    if n != 0:\n        r = p.grad / n", True),
    "asked whether it is finite": ("for p in ps:\n    n = torch.norm(p.grad)\n    if not torch.isnan(n):\n        r = p.grad / n", True),
    "asked for None too": ("for p in ps:\n    if p.grad is not None:\n        n = p.grad.norm()\n        r = p.grad / n", True),
    "asked how large": ("for p in ps:\n    n = p.grad.norm()\n    if n > 1:\n        r = p.grad / n", False),
    "divided itself": (
        "for p in ps:\n    n = p.grad.norm()\n    r = p.grad / n\n    y = n / 2",
        False,
    ),
    "also multiplied": ("for p in ps:\n    n = p.grad.norm()\n    r = p.grad / n * n", False),
    "divides the norm": ("for p in ps:\n    n = p.grad.norm()\n    r = n / p.grad", True),
    "read once more": ("for p in ps:\n    n = p.grad.norm()\n    r = p.grad / n + p.grad", False),
    "no norm": ("for p in ps:\n    r = p.grad / 2", False),
    "printed": ("for p in ps:\n    n = p.grad.norm()\n    print(n)", False),
}  # fmt: skip


@pytest.mark.parametrize(("text", "found"), NORMED.values(), ids=NORMED)
def test_reads_from_which_the_scale_cancels(text: str, found: bool) -> None:
    """What is divided by its own norm is the same at every scale."""
    assert _reads(text) is not found


AVERAGED: dict[str, tuple[str, bool]] = {
    "all reduced": ("for p in ps:\n    dist.all_reduce(p.grad)", True),
    "collected for it": ("grads = [p.grad for p in ps]\nall_reduce(grads)\ngrads = [p.grad for p in ps]", True),
    "collected for more": ("all_reduce(grads)\nprint(grads)\ngrads = [p.grad for p in ps]", False),
    "collected for nothing": ("grads = [p.grad for p in ps]", False),
    "clamped": ("for p in ps:\n    p.grad.clamp_(0, 1)", False),
}  # fmt: skip


@pytest.mark.parametrize(("text", "found"), AVERAGED.values(), ids=AVERAGED)
def test_reads_that_only_average(text: str, found: bool) -> None:
    """An average over processes keeps the scale."""
    assert _reads(text) is not found


def test_gradients_that_are_asked_for_or_added_to() -> None:
    """A test for None reads no value; what is added in place must have the scale."""
    for text, found in (
        ("p.grad is None", False),
        ("p.grad is not None", False),
        ("p.grad == 1", True),
        ("p.grad += p", True),
        ("p.grad -= p", True),
        ("p.grad *= 2", False),
        ("q += p.grad", True),
    ):
        assert _reads(text) is found, text


COUNTED = """
def due(i):
    ready = not i % 4
    return ready


def named(i):
    return "batch %d" % i


class Window:
    length = 4

    @property
    def full(self):
        return self.seen % self.length == 0


"""


@pytest.mark.parametrize(
    ("test", "counting"),
    [
        ("(i + 1) % 4 == 0", True),
        ("not i % 4", True),
        ("i % 4 == 0 or last", True),
        ("i == last", False),
        ("args.step", False),
        ("(n := i % 4) == 0", True),
        ("divmod(i, 4)[1] == 0", False),
        ("due(i) or last", True),
        ("named(i)", False),
        ("Window().full", True),
        ("Window().length == i", False),
    ],
)
def test_tests_that_count(test: str, counting: bool) -> None:
    """A remainder counts, also one that a variable, a function or a property stands for."""
    program = f"x = loader\n{FORWARD}{BACKWARD}asked = {test}\noptimizer.step()"
    body = "".join(f"    {line}\n" for line in [*START.splitlines(), *program.splitlines()])
    training = Training(HEAD + COUNTED + "def main(args, loader, i, last):\n" + body)
    asked = next(
        a
        for a in training.main.module.tree.nodes(ast.Assign)
        if ast.unparse(a.targets[0]) == "asked"
    )
    assert counts(training.unit, training.main, asked.value) is counting


FIRST: dict[str, bool] = {
    "i > 0": True,
    "i >= 1": True,
    "i != 0": True,
    "i > 1": False,
    "i >= 0": False,
    "j > 0": False,
    "0 < i < 9": False,
    "i > 0 < 9": False,
    "args.i > 0": False,
    "i": False,
}


@pytest.mark.parametrize(("test", "spares"), FIRST.items(), ids=FIRST)
def test_tests_that_spare_the_first_iteration(test: str, spares: bool) -> None:
    """Only the counter of the loop tells which iteration is the first."""
    training = Training(stepped(f"optimizer.step()\nif {test}:\n    optimizer.zero_grad()\n"))
    (step,) = training.unit.steps
    limit = training.statement(f"if {test}:")
    assert isinstance(limit, ast.If)
    assert leaves_first(step, limit) is spares


ZEROED: dict[str, tuple[str, list[str], list[str], int]] = {
    "behind the step": ("BACK\noptimizer.step()\noptimizer.zero_grad()\n", [], [], 0),
    "before the forward": ("optimizer.zero_grad()\nBACK\noptimizer.step()\n", [], [], 0),
    "between backward and step": (
        "BACK\noptimizer.zero_grad()\noptimizer.step()\n", [], ["optimizer.zero_grad()"], 0,
    ),
    "between two backward passes": (
        "BACK\noptimizer.zero_grad()\nBACK\noptimizer.step()\n", [], [], 0,
    ),
    "on every micro-batch": (
        "optimizer.zero_grad()\nBACK\nif i % 4 == 0:\n    optimizer.step()\n",
        ["optimizer.zero_grad()"], [], 1,
    ),
    "in the window": (
        "BACK\nif i % 4 == 0:\n    optimizer.step()\n    optimizer.zero_grad()\n", [], [], 0,
    ),
    "in another loop": (
        "for y in x:\n    optimizer.zero_grad()\nBACK\nif i % 4 == 0:\n    optimizer.step()\n", [], [], 0,
    ),
    "under a test that counts nothing": (
        "optimizer.zero_grad()\nBACK\nif args.ok:\n    optimizer.step()\n", [], [], 0,
    ),
    "by each weight": (
        "for p in model.parameters():\n    p.grad = None\nBACK\nif i % 4 == 0:\n    optimizer.step()\n",
        [], [], 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "often", "early", "lost"), ZEROED.values(), ids=ZEROED)
def test_where_gradients_are_zeroed(
    body: str, often: list[str], early: list[str], lost: int
) -> None:
    """On every micro-batch of a window, between backward and step, or in such a way that only the last micro-batch counts."""
    training = Training(looped(body.replace("BACK\n", FORWARD + BACKWARD)))
    unit = training.unit
    found = [training.first_line(z.statement) for z in every_micro_batch(unit)]
    assert found == often
    assert [training.first_line(z.statement) for z in before_step(unit)] == early
    assert len(lost_windows(unit, mended=False)) == lost
    assert len(lost_windows(unit, mended=True)) == (0 if often else lost)
