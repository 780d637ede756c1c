"""Before which statement gradients are unscaled, of which optimizer, and where that cannot be."""

from __future__ import annotations

import pytest

from amp_migrate.plan.cannot import Cannot
from tests.placement.training import BACKWARD, FORWARD, Training, looped, stepped

CLIP = "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
STEP = "optimizer.step()\noptimizer.zero_grad()\n"
WINDOW = f"if (i + 1) % 4 == 0:\n    {CLIP}\n    optimizer.step()\n    optimizer.zero_grad()\n"


def unscaled(program: str) -> list[tuple[str, str]]:
    """Return the first line of what each `unscale_` precedes, and its optimizer."""
    training = Training(program)
    return [(training.first_line(u.before), u.optimizer) for u in training.context.unscales]


NEEDED: dict[str, tuple[str, str]] = {
    "a clip": (f"{CLIP}\n{STEP}", CLIP),
    "a clip whose norm is kept": (f"norm = {CLIP}\n{STEP}", f"norm = {CLIP}"),
    "a walrus": (
        f"if (norm := {CLIP}) > 9:\n    print(norm)\n{STEP}",
        f"if (norm := {CLIP}) > 9:",
    ),
    "a loop over parameters": (
        f"for p in model.parameters():\n    p.grad.clamp_(-1, 1)\n{STEP}",
        "for p in model.parameters():",
    ),
    "a loop over groups": (
        f"for g in optimizer.param_groups:\n    for p in g['params']:\n        p.grad.clamp_(0, 1)\n{STEP}",
        "for g in optimizer.param_groups:",
    ),
    "a comprehension": (
        f"norms = [p.grad.norm() for p in model.parameters()]\n{STEP}",
        "norms = [p.grad.norm() for p in model.parameters()]",
    ),
    "a generator in a call": (
        f"print(sum(p.grad.norm() for p in model.parameters()))\n{STEP}",
        "print(sum(p.grad.norm() for p in model.parameters()))",
    ),
    "the first of two reads": (
        f"print([p.grad.norm() for p in model.parameters()])\n{CLIP}\n{STEP}",
        "print([p.grad.norm() for p in model.parameters()])",
    ),
    "master parameters": (
        f"torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)\n{STEP}",
        "torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)",
    ),
    "within the boundary": (WINDOW, CLIP),
    "under a test": (f"if args.clip:\n    {CLIP}\n{STEP}", CLIP),
    "in a try": (f"try:\n    {CLIP}\nfinally:\n    pass\n{STEP}", CLIP),
    "in a with": (f"with torch.no_grad():\n    {CLIP}\n{STEP}", CLIP),
    "of a weight": (f"print(model.fc.weight.grad.norm())\n{STEP}", "print(model.fc.weight.grad.norm())"),
}  # fmt: skip

NOT_NEEDED: dict[str, str] = {
    "nothing read": STEP,
    "read behind the step": f"optimizer.step()\n{CLIP}\noptimizer.zero_grad()\n",
    "only asked for None": f"print([p for p in model.parameters() if p.grad is None])\n{STEP}",
    "weights alone": f"print([p.norm() for p in model.parameters()])\n{STEP}",
    "weights clipped": f"for p in model.parameters():\n    p.data.clamp_(-1, 1)\n{STEP}",
    "images clipped": f"x = torch.clip(x, 0, 1)\n{STEP}",
    "averaged over processes": (
        f"for p in model.parameters():\n    torch.distributed.all_reduce(p.grad)\n{STEP}"
    ),
    "groups for the rate": f"for g in optimizer.param_groups:\n    g['lr'] = 0.1\n{STEP}",
    "set to zero": f"model.fc.weight.grad[0] = 0\n{STEP}",
    "masked": f"for p in model.parameters():\n    p.grad.mul_(mask)\n{STEP}",
    "defined and not run": f"clip = lambda: {CLIP}\n{STEP}",
    "clipped while they are scaled, as the norm is used outside": (
        f"norm = {CLIP}\ntotal = total + norm\n"
        "if (i + 1) % 4 == 0:\n    optimizer.step()\n    optimizer.zero_grad()\n"
    ),
}

REFUSED: dict[str, str] = {
    "read on each micro-batch and changed": (
        "for p in model.parameters():\n    p.grad.clamp_(-1, 1)\n    seen.count += 1\n"
        "if (i + 1) % 4 == 0:\n    optimizer.step()\n    optimizer.zero_grad()\n"
    ),
    "skipped and kept": (
        f"{CLIP}\nif args.wait:\n    continue\noptimizer.step()\noptimizer.zero_grad()\n"
    ),
    "skipped and cleared at times": (
        f"{CLIP}\nif args.wait:\n    if i == 0:\n        optimizer.zero_grad()\n    continue\n"
        "optimizer.step()\noptimizer.zero_grad()\n"
    ),
    "a further backward adds": (
        f"{CLIP}\nloss = model(x).sum()\n{BACKWARD}optimizer.step()\noptimizer.zero_grad()\n"
    ),
}


CLEARED: dict[str, str] = {
    "before it goes on": f"{CLIP}\nif args.wait:\n    optimizer.zero_grad()\n    continue\n{STEP}",
    "before it leaves": f"{CLIP}\nif args.wait:\n    optimizer.zero_grad()\n    return\n{STEP}",
}


@pytest.mark.parametrize("body", CLEARED.values(), ids=CLEARED)
def test_steps_that_are_left_out_with_their_gradients_cleared(body: str) -> None:
    """Nothing that is unscaled is there at the next backward."""
    assert unscaled(stepped(body)) == [(CLIP, "optimizer")]


def test_steps_that_are_left_out_before_gradients_are_cleared_anew() -> None:
    """What clears in front of every backward clears what is left too, but not where it is left out at times."""
    body = f"{FORWARD}{BACKWARD}{CLIP}\nif args.wait:\n    continue\noptimizer.step()\n"
    assert unscaled(looped("optimizer.zero_grad()\n" + body)) == [(CLIP, "optimizer")]
    with pytest.raises(Cannot) as caught:
        unscaled(looped("if i % 9 == 0:\n    optimizer.zero_grad()\n" + body))
    assert caught.value.code == "AMP908"


@pytest.mark.parametrize(("body", "before"), NEEDED.values(), ids=NEEDED)
def test_unscaled_before_the_first_read(body: str, before: str) -> None:
    """Gradients are true where they are first read behind their last backward."""
    assert unscaled(stepped(body)) == [(before, "optimizer")]


@pytest.mark.parametrize("body", NOT_NEEDED.values(), ids=NOT_NEEDED)
def test_not_unscaled(body: str) -> None:
    """`step()` unscales by itself where nothing reads the values of gradients before it."""
    assert unscaled(stepped(body)) == []


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_refused(body: str) -> None:
    """Gradients can be unscaled only once per step."""
    with pytest.raises(Cannot) as caught:
        unscaled(stepped(body))
    assert caught.value.code in ("AMP907", "AMP908")


def test_clip_of_every_micro_batch_moves_to_the_step() -> None:
    """A clip before the accumulation boundary goes into it."""
    body = f"{CLIP}\nif (i + 1) % 4 == 0:\n    optimizer.step()\n    optimizer.zero_grad()\n"
    training = Training(stepped(body))
    (unscale,) = training.context.unscales
    assert training.first_line(unscale.before) == "optimizer.step()"
    assert [training.first_line(stmt) for stmt in unscale.moved] == [CLIP]
    assert unscale.accumulates
    assert unscale.limit is None and unscale.pending == () and unscale.guarded == []


@pytest.mark.parametrize(
    ("boundary", "also", "moves"),
    [
        ("i % 2 and not args.tpu", "if args.tpu:\n    xm.optimizer_step(optimizer)\n", False),
        ("i % 2", "else:\n    args.engine.step(optimizer)\n", False),
        ("i % 2", "if args.tpu:\n    advance(optimizer)\n", False),
        ("i % 2", "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)\n", True),
        ("i % 2", "scheduler.step(i)\n", True),
    ],
)
def test_clip_stays_where_code_out_of_sight_may_step_elsewhere(
    boundary: str, also: str, moves: bool
) -> None:
    """It stays before whatever is given the optimizer outside of the test around the step."""
    body = f"{CLIP}\nif {boundary}:\n    optimizer.step()\n    optimizer.zero_grad()\n{also}"
    above = "import torch_xla.core.xla_model as xm\ndef advance(one):\n    xm.optimizer_step(one)\n"
    unit = Training(above + stepped(body)).context.unit
    assert bool(unit.scaled_clips) is not moves


def test_norm_that_is_logged_goes_along() -> None:
    """What only reports the norm between the clip and the boundary moves with it."""
    body = (
        f"norm = {CLIP}\nprint(norm)\nprint(i)\n"
        "if (i + 1) % 4 == 0:\n    optimizer.step()\n    optimizer.zero_grad()\n"
    )
    training = Training(stepped(body))
    (unscale,) = training.context.unscales
    assert [training.first_line(s) for s in unscale.moved] == [f"norm = {CLIP}", "print(norm)"]
    assert [training.first_line(s) for s in unscale.reports] == ["print(norm)"]


def test_norm_that_is_logged_behind_the_boundary_is_asked_for() -> None:
    """Behind the boundary the norm is None on micro-batches that do not step."""
    body = (
        f"norm = {CLIP}\nif (i + 1) % 4 == 0:\n    optimizer.step()\n    optimizer.zero_grad()\n"
        "print(norm)\n"
    )
    training = Training(stepped(body))
    (unscale,) = training.context.unscales
    assert unscale.pending == ("norm",)
    assert [training.first_line(stmt) for stmt in unscale.guarded] == ["print(norm)"]
    assert unscale.limit is not None


def test_each_alternative_with_a_backward_is_unscaled_by_itself() -> None:
    """Branches that each run a backward and a clip need one `unscale_` each; without one of their own they share it."""
    branch = "    " + (FORWARD + BACKWARD + CLIP + "\n").replace("\n", "\n    ").rstrip() + "\n"
    other = branch.replace("mean", "sum")
    body = f"if args.a:\n{branch}else:\n{other}{STEP}"
    assert unscaled(looped(body)) == [(CLIP, "optimizer"), (CLIP, "optimizer")]


def test_optimizers_of_a_list_are_unscaled_in_a_loop() -> None:
    """Where a loop steps each optimizer, another one unscales each."""
    before = "optimizers = [optimizer]\n"
    body = f"{CLIP}\nfor opt in optimizers:\n    opt.step()\noptimizer.zero_grad()\n"
    training = Training(stepped(body, before))
    assert [u.loop for u in training.context.unscales] == ["opt in optimizers"]


def test_norm_that_decides_about_the_step_stays_outside() -> None:
    """A clip whose norm the test around the step reads is unscaled where it stands."""
    body = f"norm = {CLIP}\nif norm < 10:\n    optimizer.step()\noptimizer.zero_grad()\n"
    training = Training(stepped(body))
    (unscale,) = training.context.unscales
    assert training.first_line(unscale.before) == f"norm = {CLIP}"
    assert unscale.moved == []
    assert unscale.outside is training.statement("if norm < 10:")


HELPED: dict[str, tuple[str, str, str | None]] = {
    "the helper steps": ("opt.step()", f"{CLIP}\nfinish(optimizer)\noptimizer.zero_grad()\n", CLIP),
    "it is given the norm": (
        "if norm < 9:\n        opt.step()",
        f"norm = {CLIP}\nfinish(optimizer, norm)\noptimizer.zero_grad()\n",
        f"norm = {CLIP}",
    ),
    "it may not step": (
        "if opt.ready:\n        opt.step()",
        f"{CLIP}\nfinish(optimizer)\noptimizer.zero_grad()\n",
        None,
    ),
    "it may return before": (
        "if opt.done:\n        return\n    opt.step()",
        f"{CLIP}\nfinish(optimizer)\noptimizer.zero_grad()\n",
        None,
    ),
    "it steps in a loop": (
        "for _ in range(2):\n        opt.step()",
        f"{CLIP}\nfinish(optimizer)\noptimizer.zero_grad()\n",
        None,
    ),
}


@pytest.mark.parametrize(("helper", "body", "before"), HELPED.values(), ids=HELPED)
def test_reads_before_the_call_of_a_helper_that_steps(
    helper: str, body: str, before: str | None
) -> None:
    """Gradients are unscaled in front of the call where it always steps, or the norm alone decides."""
    program = stepped(body) + f"\n\ndef finish(opt, norm=0):\n    {helper}\n"
    if before is not None:
        assert unscaled(program) == [(before, "optimizer")]
    else:
        with pytest.raises(Cannot) as caught:
            unscaled(program)
        assert caught.value.code == "AMP908"


def test_clip_before_a_test_around_the_call_of_a_helper_that_steps_moves_into_it() -> None:
    """The call is a step with a boundary of its own."""
    body = f"{CLIP}\nif args.a:\n    finish(optimizer)\n    optimizer.zero_grad()\n"
    training = Training(stepped(body) + "\n\ndef finish(opt):\n    opt.step()\n")
    (unscale,) = training.context.unscales
    assert training.first_line(unscale.before) == "finish(optimizer)"
    assert [training.first_line(stmt) for stmt in unscale.moved] == [CLIP]


_TOTAL = """

def total(net):
    found = 0.0
    for p in net.parameters():
        found += p.grad.norm().item()
    print(found)
"""


@pytest.mark.parametrize(("read", "clips"), [(CLIP, True), ("total(model)", False)])
def test_what_moves_and_clips_nothing_is_told_apart(read: str, clips: bool) -> None:
    window = "if (i + 1) % 4 == 0:\n    optimizer.step()\n    optimizer.zero_grad()\n"
    training = Training(stepped(f"{read}\n{window}") + _TOTAL)
    (unscale,) = training.context.unscales
    assert [training.first_line(stmt) for stmt in unscale.moved] == [read]
    assert [training.first_line(stmt) for stmt in unscale.read] == ([] if clips else [read])
