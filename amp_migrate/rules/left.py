"""What is left for a human: the reasons why a unit stays as it is."""

from __future__ import annotations

from amp_migrate.rules.base import Rule, Safety

_DOC = """{title}.

## What it does
Nothing. The whole unit stays as it was, and the finding names the place that stopped it.

## Why
{why}

## Example
{example}

## Use instead
{instead}

## Safety
Report only. What is left still imports Apex, and so fails loudly.
"""


def _left(code: str, title: str, why: str, example: str, instead: str) -> Rule:
    doc = _DOC.format(title=title[0].upper() + title[1:], why=why, example=example, instead=instead)
    return Rule(code, title, Safety.REPORT, doc)


RULES = (
    _left(
        "AMP901",
        "the GradScaler cannot be brought to where it is needed",
        "A function that scales, steps or saves must hold the GradScaler, and not all of its calls are in sight: a\n"
        "registry, a callback of a framework, a caller outside the files given.",
        "    @HOOKS.register()\n    def after_iteration(runner): ...",
        "    Pass the GradScaler there by hand, or try --scaler module.",
    ),
    _left(
        "AMP902",
        "amp.scale_loss is used in a shape that is not known",
        "Only `with amp.scale_loss(loss, optimizer) as scaled_loss:` with a backward in it has one meaning.",
        "    context = amp.scale_loss(loss, optimizer)",
        "    scaler.scale(loss).backward()",
    ),
    _left(
        "AMP903",
        "opt_level O3 is pure fp16 training",
        "GradScaler refuses fp16 gradients.",
        '    amp.initialize(model, optimizer, opt_level="O3")',
        "    O1, which becomes autocast and GradScaler; or model.half() by hand.",
    ),
    _left(
        "AMP904",
        "the forward pass is out of sight",
        "Without autocast around the forward the program would train in fp32, and nobody would notice.",
        "    loss = engine.compute(batch)",
        "    with torch.cuda.amp.autocast():\n        loss = engine.compute(batch)",
    ),
    _left(
        "AMP905",
        "the optimizer steps cannot be placed",
        "A step that is not rewritten trains on gradients 65536 times too large, and update() must follow the last\n"
        "step of an iteration.",
        "    framework.step()",
        "    scaler.step(optimizer)\n    scaler.update()",
    ),
    _left(
        "AMP906",
        "optimizer.step() is given a closure",
        "GradScaler does not support closures.",
        "    optimizer.step(closure)",
        "    Train this optimizer without AMP.",
    ),
    _left(
        "AMP907",
        "gradients are read where no optimizer is in sight",
        "They must be unscaled first, and only an optimizer's gradients can be.",
        "    norm = grad_norm(model)",
        "    scaler.unscale_(optimizer)\n    norm = grad_norm(model)",
    ),
    _left(
        "AMP908",
        "the norm of a clip on every micro-batch is used outside the step",
        "Natively gradients can be unscaled once per step, so the norm exists only there.",
        "    norm = clip_grad_norm_(parameters, 1.0)\n    if (i + 1) % k == 0: optimizer.step()\n    log(norm)",
        "    Clip and log inside the `if` that steps.",
    ),
    _left(
        "AMP909",
        "a use of Apex that has no native counterpart",
        "The tool would have to guess.",
        "    amp._amp_state.handle",
        "    What the finding says.",
    ),
    _left(
        "AMP910",
        "the rewrite failed its own check",
        "Every result must parse, compile, define what it uses and be stable under a second run.",
        "    (a fault of amp-migrate: please report it)",
        "    Migrate the unit by hand.",
    ),
    _left(
        "AMP911",
        "a comment asks to skip part of a unit",
        "A unit is migrated whole or not at all.",
        "    scaled_loss.backward()  # amp-migrate: skip",
        "    Remove the comment, or migrate the unit by hand.",
    ),
    _left(
        "AMP912",
        "native AMP stands beside Apex, and no branch tells them apart",
        "Rewriting Apex there would scale twice.",
        "    if scaler is not None: scaler.scale(loss).backward()",
        "    Remove one of the two by hand, then run again.",
    ),
)
