"""Where `update()` follows the steps of a function, and what is asked about a step."""

from __future__ import annotations

import ast

import pytest

from amp_migrate.placement.steps.leaving import exits
from amp_migrate.placement.steps.stepping import name_for_result, refuse_within, returned
from amp_migrate.placement.steps.untrained import frozen_at_times, skipped_backward
from amp_migrate.placement.steps.updates import updates
from amp_migrate.plan.cannot import Cannot
from amp_migrate.training.steps import Step, boundary, outermost_anchor
from tests.placement.training import BACKWARD, FORWARD, Training, looped, stepped

BOTH = "with amp.scale_loss(loss, [optimizer, second]) as scaled:\n    scaled.backward()\n"
SECOND = """\
net = Net()
second = torch.optim.SGD(net.parameters(), lr=0.1)
net, second = amp.initialize(net, second)
"""


def _updated(body: str, before: str = "") -> list[str]:
    training = Training(looped(FORWARD + body, before))
    unit, main = training.unit, training.main
    top = training.statement(FORWARD.strip()).lineno
    found = updates(training.project, unit.steps_of(main), unit.backwards_of(main))
    return [f"{place.lineno - top} {training.first_line(place)}" for place in found]


ONE: dict[str, tuple[str, list[str]]] = {
    "one step": (f"{BACKWARD}optimizer.step()\nprint(1)\n", ["3 optimizer.step()"]),
    "under a test": (f"{BACKWARD}if i % 4 == 0:\n    optimizer.step()\n", ["4 optimizer.step()"]),
    "whichever way a test goes": (
        f"{BACKWARD}if args.a:\n    optimizer.step()\nelse:\n    optimizer.step(None)\n",
        ["4 optimizer.step()", "6 optimizer.step(None)"],
    ),
    "in try": (f"{BACKWARD}try:\n    optimizer.step()\nfinally:\n    print(1)\n", ["4 optimizer.step()"]),
    "what it gives is kept": (f"{BACKWARD}y = optimizer.step()\n", ["3 y = optimizer.step()"]),
    "twice after a backward each": (
        f"{BACKWARD}optimizer.step()\n{FORWARD}{BACKWARD}optimizer.step()\n",
        ["3 optimizer.step()", "7 optimizer.step()"],
    ),
    "in the arms of a match": (
        f"{BACKWARD}match args.a:\n    case 1:\n        optimizer.step()\n    case _:\n        optimizer.step(None)\n",
        ["5 optimizer.step()", "7 optimizer.step(None)"],
    ),
}  # fmt: skip
SEVERAL: dict[str, tuple[str, list[str]]] = {
    "behind the last": (f"{BOTH}optimizer.step()\nsecond.step()\n", ["4 second.step()"]),
    "statements between": (f"{BOTH}optimizer.step()\nprint(1)\nsecond.step()\nprint(2)\n", ["5 second.step()"]),
    "the last under a test": (
        f"{BOTH}optimizer.step()\nif args.a:\n    second.step()\n", ["4 if args.a:"],
    ),
    "under one test": (
        f"{BOTH}if args.a:\n    optimizer.step()\n    second.step()\n", ["5 second.step()"],
    ),
    "under the same test twice": (
        f"{BOTH}if args.a:\n    optimizer.step()\nif args.a:\n    second.step()\n", ["6 second.step()"],
    ),
    "a loop over them": (f"{BOTH}for o in [optimizer, second]:\n    o.step()\n", ["3 for o in [optimizer, second]:"]),
}  # fmt: skip


@pytest.mark.parametrize(("body", "places"), ONE.values(), ids=ONE)
def test_update_follows_each_step_of_one_optimizer(body: str, places: list[str]) -> None:
    """`update()` runs between two steps of an optimizer, on every way."""
    assert _updated(body) == places


@pytest.mark.parametrize(("body", "places"), SEVERAL.values(), ids=SEVERAL)
def test_one_update_follows_the_steps_of_several(body: str, places: list[str]) -> None:
    """What one backward feeds is stepped under one scale."""
    assert _updated(body, SECOND) == places


def test_steps_under_tests_of_their_own_are_refused() -> None:
    """One `update()` for both would run with one of them left out."""
    body = BOTH + ("if args.a:\n    optimizer.step()\nif args.b:\n    second.step()\n")
    with pytest.raises(Cannot) as caught:
        _updated(body, SECOND)
    assert caught.value.code == "AMP905"


def test_phases_are_updated_by_themselves() -> None:
    """Steps under tests of their own, each with a backward of its own before it, are independent."""
    body = (
        f"{BACKWARD}if args.a:\n    optimizer.step()\n{FORWARD}"
        + BACKWARD.replace("optimizer", "second")
        + "if args.b:\n    second.step()\n"
    )
    assert _updated(body, SECOND) == ["4 optimizer.step()", "9 second.step()"]


LEAVING: dict[str, tuple[str, list[str]]] = {
    "return between step and update": ("STEP\nif args.a:\n    return 1\nPLACE\n", ["return 1"]),
    "continue between them": ("STEP\nif args.a:\n    continue\nPLACE\n", ["continue"]),
    "before the step": ("if args.a:\n    continue\nSTEP\nPLACE\n", []),
    "behind the update": ("STEP\nPLACE\nif args.a:\n    continue\n", []),
    "of an inner loop": ("STEP\nfor y in x:\n    break\nPLACE\n", []),
    "of a function inside": ("STEP\ndef f():\n    return 1\nPLACE\n", []),
    "a lambda": ("STEP\nf = lambda: 1\nPLACE\n", []),
    "in a with": ("STEP\nwith open(x):\n    if args.a:\n        break\nPLACE\n", ["break"]),
}


@pytest.mark.parametrize(("body", "expected"), LEAVING.values(), ids=LEAVING)
def test_ways_out_between_step_and_update(body: str, expected: list[str]) -> None:
    """An iteration that ends behind a step needs an update there too."""
    text = body.replace("STEP", "optimizer.step()").replace("PLACE", "last = 1")
    training = Training(stepped(text))
    step, place = training.statement("optimizer.step()"), training.statement("last = 1")
    found = exits(training.project, training.main, [step], [], [place])
    assert [training.first_line(node) for node in found] == expected


def test_way_out_behind_a_step_that_its_own_update_follows() -> None:
    """Nothing is open there."""
    training = Training(stepped("optimizer.step()\nif args.a:\n    continue\nlast = 1\n"))
    step, place = training.statement("optimizer.step()"), training.statement("last = 1")
    assert exits(training.project, training.main, [step], [], [step, place]) == []


def test_way_out_behind_a_step_that_may_not_have_run_is_refused() -> None:
    """An update without a step before it raises."""
    training = Training(
        stepped("if args.b:\n    optimizer.step()\nif args.a:\n    continue\nlast = 1\n")
    )
    step, place = training.statement("optimizer.step()"), training.statement("last = 1")
    with pytest.raises(Cannot):
        exits(training.project, training.main, [step], [], [place])


WITHIN: dict[str, tuple[str, bool]] = {
    "a statement": ("optimizer.step()", True),
    "assigned": ("y = optimizer.step()", True),
    "asserted": ("assert optimizer.step() is None", True),
    "returned": ("return optimizer.step()", True),
    "an argument": ("print(optimizer.step())", True),
    "first of an or": ("y = optimizer.step() or 1", True),
    "the test of a choice": ("y = 1 if optimizer.step() else 2", True),
    "a list comprehension": ("y = [o.step() for o in [optimizer]]", True),
    "second of an and": ("args.a and optimizer.step()", False),
    "chosen": ("y = optimizer.step() if args.a else 2", False),
    "in a test": ("if optimizer.step():\n    pass", False),
    "in the head of a with": ("with optimizer.step():\n    pass", False),
    "in a while": ("while optimizer.step():\n    break", False),
    "a walrus in a test": ("if (y := optimizer.step()):\n    pass", False),
    "a generator": ("y = (optimizer.step() for z in x)", False),
    "a lambda": ("y = lambda: optimizer.step()", False),
}


@pytest.mark.parametrize(("text", "fits"), WITHIN.values(), ids=WITHIN)
def test_steps_in_larger_statements(text: str, fits: bool) -> None:
    """`update()` can follow where the step runs whenever its statement does, and at that time."""
    case = Training(stepped(text + "\n"))
    steps = [s for s in _steps(case) if s.text in ("optimizer", "o")]
    if fits:
        for step in steps:
            refuse_within(step)
        assert steps
    else:
        with pytest.raises(Cannot):
            for step in steps:
                refuse_within(step)


def _steps(case: Training) -> list[Step]:
    module = case.project.modules["train.py"]
    found = []
    for call in module.tree.nodes(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "step":
            function = case.project.function_of(module, call)
            found.append(Step(module, function, call, call.func.value, module.tree.statement(call)))
    return found


def test_what_a_step_gives_is_returned() -> None:
    """A `return` around a step is found, with a name for the result that the function does not use."""
    case = Training(stepped("return optimizer.step()\n"))
    (step,) = _steps(case)
    assert returned(step) is case.statement("return optimizer.step()")
    assert name_for_result(case.main) == "result"
    case = Training(stepped("result = stepped = 1\noptimizer.step()\n"))
    (step,) = _steps(case)
    assert returned(step) is None
    assert name_for_result(case.main) == "step_result"
    case = Training(stepped("result = stepped = step_result = 1\noptimizer.step()\n"))
    assert name_for_result(case.main) == "returned_by_step"


UNFED: dict[str, tuple[str, bool]] = {
    "under a test": ("if args.a:\n    BACK\noptimizer.step()\n", True),
    "in every arm": ("if args.a:\n    BACK\nelse:\n    BACK\noptimizer.step()\n", False),
    "the other arm leaves": ("if args.a:\n    BACK\nelse:\n    continue\noptimizer.step()\n", False),
    "the step too": ("if args.a:\n    BACK\n    optimizer.step()\n", False),
    "another always": ("if args.a:\n    BACK\nBACK\noptimizer.step()\n", False),
    "the other arm does something else": ("if args.a:\n    BACK\nelse:\n    print(1)\noptimizer.step()\n", True),
    "under a test by else": ("if args.a:\n    print(1)\nelse:\n    BACK\noptimizer.step()\n", True),
}  # fmt: skip


@pytest.mark.parametrize(("body", "skipped"), UNFED.values(), ids=UNFED)
def test_tests_that_leave_out_every_backward(body: str, skipped: bool) -> None:
    """A GradScaler refuses a step that no backward fed."""
    lines = []
    for number, line in enumerate(body.splitlines()):
        space = line[: len(line) - len(line.lstrip())]
        text = FORWARD.replace("mean()", f"mean() * {number}") + BACKWARD
        lines += [space + part for part in text.splitlines()] if "BACK" in line else [line]
    training = Training(looped("\n".join(lines) + "\n"))
    (step,) = training.unit.steps
    found = skipped_backward(training.unit, step, training.unit.backwards)
    assert (found is not None) is skipped


BOUNDARIES: dict[str, tuple[str, str | None]] = {
    "a test": ("if i % 4 == 0:\n    optimizer.step()\n", "if i % 4 == 0:"),
    "the outer of two": ("if a:\n    if b:\n        optimizer.step()\n", "if a:"),
    "none": ("optimizer.step()\n", None),
    "a test in a loop of its own": (
        "for _ in range(2):\n    if a:\n        optimizer.step()\n",
        None,
    ),
    "a loop in a test": ("if a:\n    for _ in range(2):\n        optimizer.step()\n", None),
    "the else of a test": ("if a:\n    pass\nelse:\n    optimizer.step()\n", "if a:"),
    "a test in a with": ("with x:\n    if a:\n        optimizer.step()\n", "if a:"),
    "a test in a try": ("try:\n    if a:\n        optimizer.step()\nfinally:\n    pass\n", "if a:"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "test"), BOUNDARIES.values(), ids=BOUNDARIES)
def test_test_around_a_step(body: str, test: str | None) -> None:
    """The outermost test that the backward does not share."""
    training = Training(stepped(body))
    (step,) = training.unit.steps
    (backward,) = training.unit.backwards
    found = boundary(step, backward.node)
    assert (None if found is None else training.first_line(found)) == test
    assert outermost_anchor(step) is step.anchor


def test_a_test_that_steps_either_way_is_no_boundary() -> None:
    """Whichever way it goes, the optimizer steps: the whole test steps."""
    training = Training(stepped("if a:\n    optimizer.step()\nelse:\n    optimizer.step(None)\n"))
    (backward,) = training.unit.backwards
    for step in training.unit.steps:
        assert boundary(step, backward.node) is None
        assert outermost_anchor(step) is training.statement("if a:")


FROZEN: dict[str, tuple[str, bool]] = {
    "decided at run time": ("torch.set_grad_enabled(args.train)\noptimizer.step()\nsecond.step()\n", True),
    "written": ("torch.set_grad_enabled(True)\noptimizer.step()\nsecond.step()\n", False),
    "one optimizer": ("torch.set_grad_enabled(args.train)\noptimizer.step()\n", False),
    "nothing": ("optimizer.step()\nsecond.step()\n", False),
}  # fmt: skip


@pytest.mark.parametrize(("body", "found"), FROZEN.values(), ids=FROZEN)
def test_gradients_turned_off_at_times(body: str, found: bool) -> None:
    """One of several optimizers may have no gradient then."""
    training = Training(looped(FORWARD + BOTH + body, SECOND))
    assert bool(list(frozen_at_times(training.unit, training.unit.steps))) is found
