"""Mistakes in native code are named where they are certain, and nowhere else."""

from __future__ import annotations

import pytest
from rules.native.support import decisions, remarked

_HEAD = """\
import torch
from torch.nn.utils import clip_grad_norm_


def train(model, optimizer, loader, criterion, args):
    scaler = torch.cuda.amp.GradScaler()
    for i, (x, y) in enumerate(loader):
        with torch.cuda.amp.autocast():
            loss = criterion(model(x), y)
"""


def _loop(*lines: str) -> list[tuple[int, str]]:
    """Return the remarks on a loop with some last lines, the first of which is line 10."""
    return remarked(_HEAD + "".join(f"        {line}\n" for line in lines))


def test_correct_loop_has_no_remarks() -> None:
    """The textbook loop, with accumulation and a clip."""
    assert not _loop(
        "scaler.scale(loss).backward()",
        "if i % 4 == 3:",
        "    scaler.unscale_(optimizer)",
        "    clip_grad_norm_(model.parameters(), 1.0)",
        "    scaler.step(optimizer)",
        "    scaler.update()",
        "    optimizer.zero_grad()",
    )


def test_clip_of_scaled_gradients() -> None:
    """A clip without unscale_ is named, also at an accumulation boundary."""
    lines = (
        "scaler.scale(loss).backward()",
        "if i % 4 == 3:",
        "    clip_grad_norm_(model.parameters(), 1.0)",
    )
    rest = ("    scaler.step(optimizer)", "    scaler.update()")
    assert _loop(*lines, *rest) == [(12, "AMP402")]


@pytest.mark.parametrize(
    "lines",
    [
        ("prepare(scaler, optimizer)", "clip_grad_norm_(model.parameters(), 1.0)"),
        ("scaler.unscale_(optimizer)", "clip_grad_norm_(model.parameters(), 1.0)"),
    ],
)
def test_clips_that_may_be_right(lines: tuple[str, ...]) -> None:
    """A clip after a helper that has the scaler, or after unscale_."""
    assert not _loop(
        "scaler.scale(loss).backward()", *lines, "scaler.step(optimizer)", "scaler.update()"
    )


def test_clip_for_full_precision() -> None:
    """What switches the scaler off too clips what was never scaled; a scaler that is always on has no such switch."""
    lines = (
        "scaler.scale(loss).backward()",
        "if not args.amp:",
        "    clip_grad_norm_(model.parameters(), 1.0)",
        "scaler.step(optimizer)",
        "scaler.update()",
    )
    switched = _HEAD.replace("GradScaler()", "GradScaler(enabled=args.amp)")
    assert not remarked(switched + "".join(f"        {line}\n" for line in lines))
    assert _loop(*lines) == [(12, "AMP402")]


def test_clip_in_the_other_branch() -> None:
    """The branch without AMP clips what was never scaled."""
    assert not _loop(
        "if args.full:",
        "    loss.backward()",
        "    clip_grad_norm_(model.parameters(), 1.0)",
        "    optimizer.step()",
        "else:",
        "    scaler.scale(loss).backward()",
        "    scaler.step(optimizer)",
        "    scaler.update()",
    )


def test_update_missing() -> None:
    """A scaler that only steps."""
    assert _loop("scaler.scale(loss).backward()", "scaler.step(optimizer)") == [(11, "AMP403")]


def test_update_may_be_elsewhere() -> None:
    """A scaler that is handed on may be updated there."""
    lines = ("scaler.scale(loss).backward()", "scaler.step(optimizer)", "finish(scaler)")
    assert not _loop(*lines)


def test_plain_backward_beside_a_scaled_one() -> None:
    """The penalty is divided by the scale that it never had."""
    assert _loop(
        "scaler.scale(loss).backward()",
        "penalty = model.penalty()",
        "penalty.backward()",
        "scaler.step(optimizer)",
        "scaler.update()",
    ) == [(12, "AMP404")]


@pytest.mark.parametrize(
    "lines",
    [
        ("penalty = scaler.scale(model.penalty())", "penalty.backward()"),
        ("penalty = model.penalty()", "penalty.backward()", "optimizer.zero_grad()"),
        ("penalty = model.penalty()", "penalty.backward()", "args.other.step()"),
    ],
)
def test_plain_backwards_that_may_be_right(lines: tuple[str, ...]) -> None:
    """A scaled loss by a name, gradients that are thrown away, or another optimizer."""
    assert not _loop(
        *lines, "scaler.scale(loss).backward()", "scaler.step(optimizer)", "scaler.update()"
    )


def _per_epoch(made: str) -> list[tuple[int, str]]:
    return remarked(
        f"""
        from torch.amp import GradScaler, autocast

        def train(model, optimizer, loader, epochs):
            for epoch in range(epochs):
                {made}
                scaler = GradScaler("cuda")
                for x in loader:
                    with autocast("cuda"):
                        loss = model(x)
                    scaler.scale(loss).backward()
                    scaler.step(optimizer)
                    scaler.update()
        """
    )


def test_scaler_made_in_the_loop() -> None:
    """It is shorter-lived than its optimizer, unless that is made there as well."""
    assert _per_epoch("model.train()") == [(6, "AMP405")]
    assert not _per_epoch("optimizer = make(model)")


def test_autocast_over_the_step() -> None:
    """One block around the loop freezes the weights; it is the with statement that is named."""
    text = """
        import torch

        def train(model, optimizer, loader):
            scaler = torch.amp.GradScaler("cuda")
            with torch.{autocast}:
                for x in loader:
                    loss = model(x)
                    scaler.scale(loss).backward()
                    scaler.step(optimizer)
                    scaler.update()
        """
    assert remarked(text.format(autocast='autocast("cuda")')) == [(5, "AMP406")]
    assert not remarked(text.format(autocast="no_grad()"))
    assert not remarked(text.format(autocast='autocast("cuda", enabled=False)'))


def test_other_files_are_not_read() -> None:
    """A name that is no GradScaler of torch's has no remarks."""
    assert not remarked("scaler = make()\nfor x in y:\n    scaler.step(x)\n")


def test_a_clip_that_unscale_precedes_on_some_ways() -> None:
    """A second unscale_ would raise on those: the advice names the first, and asks for none before the clip."""
    lines = (
        "scaler.scale(loss).backward()",
        "if args.clip > 0:",
        "    scaler.unscale_(optimizer)",
        "clip_grad_norm_(model.parameters(), 1.0)",
        "scaler.step(optimizer)",
        "scaler.update()",
    )
    (found,) = decisions(_HEAD + "".join(f"        {line}\n" for line in lines))
    assert found.finding.span.line == 13
    assert found.finding.message.endswith("on the ways past the unscale_ above")
    assert (found.finding.advice or "").startswith("let scaler.unscale_(optimizer) at ")


def test_a_clip_that_no_unscale_precedes() -> None:
    """One behind the clip, or of the round before, is none above it."""
    lines = ("scaler.scale(loss).backward()", "clip_grad_norm_(model.parameters(), 1.0)")
    rest = ("scaler.unscale_(optimizer)", "scaler.step(optimizer)", "scaler.update()")
    text = _HEAD + "".join(f"        {line}\n" for line in (*lines, *rest))
    assert [d.finding.advice for d in decisions(text)] == [
        "call scaler.unscale_(optimizer) once before it"
    ]
