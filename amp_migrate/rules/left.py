"""What is left for a human: the reasons why a unit stays as it is."""

from __future__ import annotations

from amp_migrate.rules.base import Rule, Safety
from amp_migrate.words import indented

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


def _left(code: str, title: str, why: str, example: str, instead: str, more: str = "") -> Rule:
    """Return a rule of this family; `instead` is code that migrates, and `more` says what else there is to do."""
    doc = _DOC.format(
        title=_sentence(title),
        why=why,
        example=indented(example),
        instead=indented(instead) + (f"\n\n{more}" if more else ""),
    )
    return Rule(code, title, Safety.REPORT, doc)


def _sentence(title: str) -> str:
    """Return a title with a capital; a name of the code that it starts with becomes code."""
    first, _, rest = title.partition(" ")
    return f"`{first}` {rest}" if "." in first or "_" in first else title[0].upper() + title[1:]


RULES = (
    _left(
        "AMP901",
        "the GradScaler cannot be brought to where it is needed",
        "Apex kept one loss scale for the whole process. A GradScaler is an object: every function that scales, steps,\n"
        "clips or saves has to be given it, by all who call it. Where a registry or a framework calls such a function, the\n"
        "GradScaler becomes a variable of the file that initializes. That ends where another file needs it, where `amp`\n"
        "itself is passed on, where nothing in the files given initializes, and where two programs in one do so each in\n"
        "its own way.",
        """
        def prepare(model, level):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            return amp.initialize(model, optimizer, opt_level=level)

        teacher, teacher_optimizer = prepare(teacher, "O0")
        model, optimizer = prepare(model, "O1")
        """,
        """
        def prepare(model):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            return amp.initialize(model, optimizer, opt_level="O1")

        teacher_optimizer = torch.optim.SGD(teacher.parameters(), lr=0.1)
        model, optimizer = prepare(model)
        """,
        "Or give amp-migrate the files with the other calls too, or take the other program out of the file.",
    ),
    _left(
        "AMP902",
        "amp.scale_loss is used in a way that is not known",
        "Only `with amp.scale_loss(loss, optimizer) as scaled_loss:` with a backward in it has one meaning.",
        """
        context = amp.scale_loss(loss, optimizer)
        scaled_loss = context.__enter__()
        scaled_loss.backward()
        context.__exit__(None, None, None)
        """,
        """
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        """,
    ),
    _left(
        "AMP903",
        "opt_level O3 is pure fp16 training",
        "GradScaler refuses gradients in fp16, and so works with fp32 weights alone. A network that nothing trains becomes\n"
        "autocast, unless it may be initialized behind a training, whose loss scale Apex set to 1 there.",
        """
        model, optimizer = amp.initialize(model, optimizer, opt_level="O3")
        """,
        """
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
        """,
        "This becomes autocast and GradScaler. Or delete what uses Apex, and train with `model.half()` and fp16 inputs.",
    ),
    _left(
        "AMP904",
        "no forward pass is recognised",
        "Native AMP casts only what runs under autocast. Without it around the forward pass the program would train in\n"
        "fp32, and nobody would notice.",
        """
        loss = engine.compute(images, labels)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        """,
        """
        with torch.cuda.amp.autocast():
            loss = engine.compute(images, labels)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        """,
        "The next run keeps this autocast and migrates the rest.",
    ),
    _left(
        "AMP905",
        "the optimizer steps cannot be placed",
        "A step that does not go through the GradScaler uses gradients 65536 times too large, and `scaler.update()` has to\n"
        "follow the last step of an iteration exactly once.",
        """
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        framework.step()  # what does it step?
        """,
        """
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
        """,
    ),
    _left(
        "AMP906",
        "optimizer.step() is given a closure",
        "`GradScaler.step()` raises where it is given a closure.",
        """
        optimizer.step(closure)
        """,
        """
        closure()
        optimizer.step()
        """,
        "An optimizer that calls its closure several times, as LBFGS, has to train without AMP.",
    ),
    _left(
        "AMP907",
        "gradients are read where they cannot be unscaled",
        "Native gradients stay multiplied by the loss scale until `scaler.unscale_(optimizer)`, which runs once per step\n"
        "and needs the optimizer. A backward behind it would add scaled gradients to unscaled ones.",
        """
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        norm = clip_grad_norm_(model.parameters(), 1.0)
        with amp.scale_loss(penalty, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
        """,
        """
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        with amp.scale_loss(penalty, optimizer) as scaled_loss:
            scaled_loss.backward()
        norm = clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        """,
        "Gradients are read, clipped or changed in the function that steps, between its last backward and `optimizer.step()`.",
    ),
    _left(
        "AMP908",
        "gradients are read on micro-batches that do not step",
        "Native gradients are unscaled once per step. What was read, and so unscaled, and is then neither stepped nor\n"
        "zeroed, would meet the scaled gradients of the next backward.",
        """
        norm = sum(p.grad.norm() for p in model.parameters())
        if norm < 10:
            optimizer.step()
            optimizer.zero_grad()
        """,
        """
        norm = sum(p.grad.norm() for p in model.parameters())
        if norm < 10:
            optimizer.step()
        optimizer.zero_grad()
        """,
    ),
    _left(
        "AMP909",
        "a use of Apex that has no native counterpart",
        "It reaches into what is private to Apex, or passes amp on as a value. To replace it would be to guess; the finding\n"
        "says what to do about the use that it names.",
        """
        if hasattr(optimizer, "_amp_stash"):
            print("AMP is on")
        """,
        """
        if args.fp16:
            print("AMP is on")
        """,
    ),
    _left(
        "AMP910",
        "the rewrite failed its own check",
        "Before a file is written, its new text must parse, compile, define every name that it uses, and change no more in\n"
        "a second run. Where it does not, amp-migrate has made a mistake, and everything stays as it was.",
        """
        (No program is known that gets this finding: it is a fault of amp-migrate. Please report it.)
        """,
        """
        (Migrate this code by hand; `amp-migrate verify` compares it with what it was.)
        """,
    ),
    _left(
        "AMP911",
        "a comment asks to leave a line that others need",
        "`# amp-migrate: skip` counts on every line that would be changed, moved or removed, whether or not it names amp.\n"
        "What is migrated together with this line stays as it is too.",
        """
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()  # amp-migrate: skip
        """,
        """
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
        """,
        "Or keep the comment, and migrate by hand what works together with the line.",
    ),
    _left(
        "AMP912",
        "native AMP stands beside Apex, and no branch tells them apart",
        "Which of the two runs decides what may be deleted; where both run, losses are scaled twice.",
        """
        scaler = torch.cuda.amp.GradScaler()
        with amp.scale_loss(scaler.scale(loss), optimizer) as scaled_loss:
            scaled_loss.backward()
        scaler.step(optimizer)
        """,
        """
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
        """,
        "Delete one of the two, or put each under the test that chooses it; then run again.",
    ),
    _left(
        "AMP913",
        "the migrated training would go wrong on some path",
        "Before anything is written, the new text is read again as a native training: gradients are unscaled once before\n"
        "anything reads them, nothing steps on scaled ones, `update()` runs once between two steps, and no step,\n"
        "no binary cross entropy and no mix of passes with and without gradients lies under autocast. It is held\n"
        "against the old text, too: the same passes, steps, clears and reads of gradients in the same order, casts where Apex\n"
        "had them, the same loss scale. The finding shows the lines that lead to the place where one of these breaks.",
        """
        for images, labels in loader:
            optimizer.zero_grad()
            try:
                loss = criterion(model(images), labels)
                with amp.scale_loss(loss, optimizer) as scaled_loss:
                    scaled_loss.backward()
            except RuntimeError:
                print("out of memory")
            optimizer.step()
        """,
        """
        for images, labels in loader:
            optimizer.zero_grad()
            try:
                loss = criterion(model(images), labels)
                with amp.scale_loss(loss, optimizer) as scaled_loss:
                    scaled_loss.backward()
            except RuntimeError:
                continue
            optimizer.step()
        """,
        "A batch that failed takes no step: `GradScaler` raises where there are no gradients. Or migrate by hand and run\n`amp-migrate verify`.",
    ),
)
