"""Which gradients outlive a test or a backward, and what the test of an accumulation boundary counts."""

from __future__ import annotations

import ast

import pytest

from amp_migrate.placement.windows.counting import restarts
from amp_migrate.placement.windows.skipped import jumps, leaves_out
from amp_migrate.placement.windows.surviving import lost, stay, survive
from amp_migrate.plan.cannot import Cannot
from tests.placement.training import BACKWARD, FORWARD, HEAD, START, Training, looped, stepped

OUTLIVING: dict[str, str] = {
    "a window": "if (i + 1) % 4 == 0:\n    optimizer.step()\n    optimizer.zero_grad()\n",
    "a step left out": "if args.ok:\n    optimizer.step()\n    optimizer.zero_grad()\n",
    "the other way goes on": (
        "if args.ok:\n    optimizer.step()\nelse:\n    continue\noptimizer.zero_grad()\n"
    ),
    "cleared under another test": (
        "if args.ok:\n    optimizer.step()\nif args.other:\n    optimizer.zero_grad()\n"
    ),
    "another gradient cleared": (
        "if args.ok:\n    optimizer.step()\n    optimizer.zero_grad()\nx.gradient = None\n"
    ),
    "cleared in a function that is not called": (
        "if args.ok:\n    optimizer.step()\n    optimizer.zero_grad()\nf = lambda: optimizer.zero_grad()\n"
    ),
    "some weights cleared": (
        "if args.ok:\n    optimizer.step()\n"
        "for p in model.parameters():\n    if args.odd:\n        p.grad = None\n"
    ),
}
CLEARED: dict[str, str] = {
    "cleared behind": "if args.ok:\n    optimizer.step()\noptimizer.zero_grad()\n",
    "by the other way": (
        "if args.ok:\n    optimizer.step()\n    optimizer.zero_grad()\nelse:\n    model.zero_grad()\n"
    ),
    "before it goes on": (
        "if args.ok:\n    optimizer.step()\nelse:\n    optimizer.zero_grad()\n    continue\n"
        "optimizer.zero_grad()\n"
    ),
    "weight by weight": (
        "if args.ok:\n    optimizer.step()\nfor p in model.parameters():\n    p.grad = None\n"
    ),
    "weights that have one": (
        "if args.ok:\n    optimizer.step()\n"
        "for p in model.parameters():\n    if p.grad is not None:\n        p.grad.zero_()\n"
    ),
    "in a comprehension": (
        "if args.ok:\n    optimizer.step()\n[p.grad.zero_() for p in model.parameters()]\n"
    ),
    "in finally": (
        "try:\n    if args.ok:\n        optimizer.step()\nfinally:\n    optimizer.zero_grad()\n"
    ),
}
LEAVING = "if args.ok:\n    optimizer.step()\nbreak\n"


def _survives(body: str, calls: str = "") -> bool:
    training = Training(stepped(body) + calls)
    (step,) = training.unit.steps
    test = next(up for up in step.tree.ancestors(step.call) if isinstance(up, ast.If))
    return survive(training.unit, step.function, step.call, test)


@pytest.mark.parametrize("body", OUTLIVING.values(), ids=OUTLIVING)
def test_gradients_outlive_a_test(body: str) -> None:
    """Nothing clears what the test keeps from the step on some way round."""
    assert _survives(body)


@pytest.mark.parametrize("body", CLEARED.values(), ids=CLEARED)
def test_gradients_do_not_outlive_a_test(body: str) -> None:
    """They are cleared on every way to the next backward."""
    assert not _survives(body)


@pytest.mark.parametrize(
    ("calls", "outlive"),
    [
        ("main(args, loader)\n", False),
        ("main(args, loader)\nprint(1)\n", False),
        ("for n in range(3):\n    main(args, loader)\n", True),
        ("main(args, a)\nmain(args, b)\n", True),
        ("", True),
    ],
)
def test_gradients_outlive_a_function_that_is_called_again(calls: str, outlive: bool) -> None:
    """Where a function ends, its callers decide; nobody knows those of one that is not called here."""
    assert _survives(LEAVING, calls) is outlive


RESTARTING: dict[str, str] = {
    "the counter of the loop": "for i, x in enumerate(loader):\n    HERE((i + 1) % 4 == 0)\n",
    "nothing counted": "for x in loader:\n    HERE(x.last)\n",
    "a parameter": "for x in loader:\n    HERE(args % 4 == 0)\n",
    "set with every epoch": (
        "for epoch in range(9):\n    n = 0\n    for x in loader:\n        n += 1\n        HERE(n % 4 == 0)\n"
    ),
    "set where the function starts": (
        "n = 0\nfor x in loader:\n    n += 1\n    HERE(n % 4 == 0)\n"
    ),
}
GROWING: dict[str, str] = {
    "over all epochs": (
        "n = 0\nfor epoch in range(9):\n    for x in loader:\n        n += 1\n        HERE(n % 4 == 0)\n"
    ),
    "from itself": (
        "n = 0\nfor epoch in range(9):\n    n = n + 1\n    for x in loader:\n        HERE(n % 4 == 0)\n"
    ),
    "asked through a variable": (
        "n = 0\nfor epoch in range(9):\n    for x in loader:\n        n += 1\n        full = n % 4 == 0\n        HERE(full)\n"
    ),
    "an attribute": (
        "for epoch in range(9):\n    for x in loader:\n        args.n += 1\n        HERE(args.n % 4 == 0)\n"
    ),
    "set by the boundary itself": (
        "n = 0\nfor epoch in range(9):\n    for x in loader:\n        HERE(n % 4 == 0)\n        n = 0\n"
    ),
}


def _restarts(loop: str) -> bool:
    lines = []
    for line in loop.splitlines():
        space = line[: len(line) - len(line.lstrip())]
        if "HERE(" in line:
            test = line.strip()[len("HERE(") : -1]
            body = [*(FORWARD + BACKWARD).splitlines(), f"if {test}:", "    optimizer.step()"]
            lines += [space + part for part in body]
        else:
            lines.append(line)
    body = "".join(f"    {line}\n" for line in [*START.splitlines(), *lines])
    training = Training(HEAD + "def main(args, loader):\n" + body)
    (step,) = training.unit.steps
    test = step.tree.holder(step.anchor)
    assert isinstance(test, ast.If)
    return restarts(training.unit, training.main, test)


@pytest.mark.parametrize("loop", RESTARTING.values(), ids=RESTARTING)
def test_count_starts_anew(loop: str) -> None:
    """A window may be cut short where its count begins again."""
    assert _restarts(loop)


@pytest.mark.parametrize("loop", GROWING.values(), ids=GROWING)
def test_count_grows(loop: str) -> None:
    """A count that only grows cuts no window short."""
    assert not _restarts(loop)


LATER: dict[str, tuple[str, bool, bool]] = {
    "stepped and cleared": ("optimizer.zero_grad()\nBACK\noptimizer.step()\n", False, False),
    "stepped and not cleared": ("BACK\noptimizer.step()\n", False, False),
    "kept for the next": ("BACK\nif i % 4 == 0:\n    optimizer.step()\n", True, False),
    "cleared each time": (
        "optimizer.zero_grad()\nBACK\nif i % 4 == 0:\n    optimizer.step()\n", False, True,
    ),
    "cleared behind a step alone": (
        "BACK\nif i % 4 == 0:\n    optimizer.step()\n    optimizer.zero_grad()\n", True, False,
    ),
    "cleared at times": (
        "if args.a:\n    optimizer.zero_grad()\nBACK\nif i % 4 == 0:\n    optimizer.step()\n", True, False,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "stays", "is_lost"), LATER.values(), ids=LATER)
def test_what_becomes_of_the_gradients_of_a_backward(body: str, stays: bool, is_lost: bool) -> None:
    """They wait for a later backward, or each further one clears what no step took, or neither."""
    training = Training(looped(body.replace("BACK\n", FORWARD + BACKWARD)))
    (backward,) = training.unit.backwards
    assert stay(training.unit, backward) is stays
    calls = [s.call for s in training.unit.steps]
    assert lost(training.unit, backward.function, backward.node, calls) is is_lost


JUMPS: dict[str, tuple[str, list[str]]] = {
    "continue": ("if args.bad:\n    continue\n", ["continue"]),
    "return and break": ("if args.bad:\n    return\nif args.worse:\n    break\n", ["break", "return"]),
    "of an inner loop": ("for y in x:\n    if y:\n        break\n", []),
    "return in an inner loop": ("for y in x:\n    if y:\n        return\n", ["return"]),
    "behind the step": ("optimizer.step()\nif args.bad:\n    continue\n", []),
    "of a function inside": ("def f():\n    return 1\n", []),
    "a raise": ("if args.bad:\n    raise ValueError\n", []),
}  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), JUMPS.values(), ids=JUMPS)
def test_ways_out_before_the_step(body: str, expected: list[str]) -> None:
    """Jumps that leave out the step of an iteration count, those of inner loops and functions do not."""
    after = "" if "step()" in body else "optimizer.step()\n"
    training = Training(looped(FORWARD + BACKWARD + "mark = 1\n" + body + after))
    (step,) = training.unit.steps
    found = jumps(training.project, step, training.statement("mark = 1"))
    assert sorted(training.first_line(node) for node in found) == expected


def test_step_that_a_test_leaves_out_within_a_boundary() -> None:
    """The outermost test behind the reads counts; one that holds them leaves nothing unscaled, nor does one that steps either way."""
    body = (
        "if i % 4 == 0:\n    read = 1\n    if args.finite:\n        if args.more:\n"
        "            optimizer.step()\n"
    )
    training = Training(stepped(body))
    (step,) = training.unit.steps
    limit, read = training.statement("if i % 4 == 0:"), training.statement("read = 1")
    assert isinstance(limit, ast.If)
    found = leaves_out(step, limit, [read], [step])
    assert found is training.statement("if args.finite:")
    inner = training.statement("if args.more:")
    assert leaves_out(step, limit, [inner], [step]) is None

    either = "if i % 4 == 0:\n    if args.a:\n        optimizer.step()\n    else:\n        optimizer.step(x)\n"
    training = Training(stepped(either))
    limit = training.statement("if i % 4 == 0:")
    assert isinstance(limit, ast.If)
    steps = training.unit.steps
    assert [leaves_out(step, limit, [], steps) for step in steps] == [None, None]


APART = """\
def first(args, model, optimizer, x, i):
    loss = model(x).mean()
    with amp.scale_loss(loss, optimizer) as scaled:
        scaled.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()


def second(args, net, other, x, i):
    CLEAR
    loss = net(x).sum()
    with amp.scale_loss(loss, other) as scaled:
        scaled.backward()
    if (i + 1) % 4 == 0:
        other.step()
        other.zero_grad()
"""
BEFORE = """\
net = Net()
other = torch.optim.SGD(net.parameters(), lr=0.1)
net, other = amp.initialize(net, other)
"""


@pytest.mark.parametrize(
    ("calls", "clear", "refused"),
    [
        ("first(args, model, optimizer, x, i)\nsecond(args, net, other, x, i)\n", "pass", True),
        ("first(args, model, optimizer, x, i)\nsecond(args, net, other, x, i)\n", "other.zero_grad()", False),
        ("first(args, model, optimizer, x, i)\nsecond(args, model, optimizer, x, i)\n", "pass", False),
        ("first(args, model, optimizer, x, i)\nfor j, y in x:\n    second(args, net, other, y, j)\n", "pass", False),
    ],
    ids=["side by side", "one is cleared each time", "of one optimizer", "in loops of their own"],
)  # fmt: skip
def test_windows_of_two_functions(calls: str, clear: str, refused: bool) -> None:
    """The step of one would change the scale under the gradients of the other."""
    program = looped(calls, BEFORE) + "\n\n" + APART.replace("CLEAR", clear)
    training = Training(program)
    if refused:
        with pytest.raises(Cannot) as caught:
            _ = training.context
        assert caught.value.code == "AMP905"
    else:
        assert len(training.unit.steps) == 2
