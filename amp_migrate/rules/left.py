"""What is left for a human: the reasons why a unit stays as it is."""

from __future__ import annotations

from amp_migrate.rules.base import Rule, Safety

_DOC = """{title}.

## What it does
Nothing. The finding names what stands in the way, and lists all Apex code that stays as it was because of it: the calls
of one training are migrated together or not at all, as half of them would train differently without a word.

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
        "Apex kept one loss scale for the whole process. A GradScaler is an object: every function that scales, steps,\n"
        "clips or saves has to be given it, by all who call it. Where a registry, a framework or a file that was not given\n"
        "calls such a function, nobody passes it.",
        "    framework.run(model, step=train_step)    # who calls train_step, and with what?",
        "    Give amp-migrate the files with the other calls too, or run it with --scaler module: the GradScaler is then\n"
        "    a variable of the file that initializes.",
    ),
    _left(
        "AMP902",
        "amp.scale_loss is used in a way that is not known",
        "Only `with amp.scale_loss(loss, optimizer) as scaled_loss:` with a backward in it has one meaning.",
        "    context = amp.scale_loss(loss, optimizer)",
        "    with amp.scale_loss(loss, optimizer) as scaled_loss:\n        scaled_loss.backward()",
    ),
    _left(
        "AMP903",
        "opt_level O3 is pure fp16 training",
        "GradScaler refuses gradients in fp16, and so works with fp32 weights alone.",
        '    amp.initialize(model, optimizer, opt_level="O3")',
        '    amp.initialize(model, optimizer, opt_level="O1")    # becomes autocast and GradScaler\n'
        "    or model.half() and fp16 inputs, without any AMP.",
    ),
    _left(
        "AMP904",
        "no forward pass is recognised",
        "Native AMP casts only what runs under autocast. Without it around the forward pass the program would train in\n"
        "fp32, and nobody would notice.",
        "    loss = engine.compute(batch)",
        "    with torch.cuda.amp.autocast():\n        loss = engine.compute(batch)",
    ),
    _left(
        "AMP905",
        "the optimizer steps cannot be placed",
        "A step that does not go through the GradScaler uses gradients 65536 times too large, and scaler.update() has to\n"
        "follow the last step of an iteration exactly once.",
        "    framework.step()",
        "    optimizer.step()    # in the function that runs the backward",
    ),
    _left(
        "AMP906",
        "optimizer.step() is given a closure",
        "GradScaler.step() raises where it is given a closure.",
        "    optimizer.step(closure)",
        "    closure()\n    optimizer.step()\n\n"
        "An optimizer that calls its closure several times, as LBFGS, has to train without AMP.",
    ),
    _left(
        "AMP907",
        "gradients are read where they cannot be unscaled",
        "Native gradients are scaled until scaler.unscale_(optimizer), which runs once per step and needs the optimizer.",
        "    norm = grad_norm(model)    # which optimizer has these gradients?",
        "    norm = grad_norm(model)    # in the function that steps, between the last backward and optimizer.step()",
    ),
    _left(
        "AMP908",
        "gradients are read on micro-batches that do not step",
        "Natively gradients are unscaled once per step, so a norm or a clip of every micro-batch has no counterpart.",
        "    norm = clip_grad_norm_(parameters, 1.0)\n    if (i + 1) % k == 0:\n        optimizer.step()\n    log(norm)",
        "    if (i + 1) % k == 0:\n        norm = clip_grad_norm_(parameters, 1.0)\n        optimizer.step()\n        log(norm)",
    ),
    _left(
        "AMP909",
        "a use of Apex that has no native counterpart",
        "It reaches into what is private to Apex, or passes amp on as a value. To replace it would be to guess.",
        "    amp._amp_state.handle",
        "    What the finding says.",
    ),
    _left(
        "AMP910",
        "the rewrite failed its own check",
        "Every result must parse, compile, define what it uses, and change no more in a second run.",
        "    (a fault of amp-migrate: please report it)",
        "    Migrate this code by hand.",
    ),
    _left(
        "AMP911",
        "a comment asks to leave a line that others need",
        "The calls of one training are migrated together or not at all.",
        "    scaled_loss.backward()  # amp-migrate: skip",
        "    Remove the comment, or migrate by hand what works with the line.",
    ),
    _left(
        "AMP912",
        "native AMP stands beside Apex, and no branch tells them apart",
        "Which of the two runs decides what may be deleted; where both ran, losses would be scaled twice.",
        "    if scaler is not None: scaler.scale(loss).backward()\n"
        "    with amp.scale_loss(loss, optimizer) as scaled_loss: ...",
        "    Delete one of the two, or put each under the test that chooses it; then run again.",
    ),
    _left(
        "AMP913",
        "the migrated training would go wrong on some path",
        "Before anything is written, the new text is read again as a native training: gradients are unscaled once before\n"
        "anything reads them, nothing steps on scaled ones, `update()` runs once between two steps, and no step,\n"
        "no binary cross entropy and no mix of passes with and without gradients lies under autocast. The finding\n"
        "shows the lines that lead to the breach.",
        "    for i, (x, y) in enumerate(loader):\n        if i: look_at(registry)\n        scaled_loss.backward()",
        "    Touch gradients between the last backward and the step, or migrate by hand and run `amp-migrate verify`.",
    ),
)
