"""The rules of `amp-migrate enable`, as `explain` and the reports show them."""

from __future__ import annotations

from amp_migrate.rules.base import Rule, Safety
from amp_migrate.words import indented

_DOC = """{title}.

## What it does
{does}

## Why
{why}

## Example
{example}

## Use instead
{instead}

## Safety
{safety}
"""
_ALIKE = "Faithful in all but precision: the same steps on the same batches, in 16 bits where autocast deems it safe."
_STAYS = "Report only. What is left trains in FP32, as it did."


def _rule(
    code: str, title: str, does: str, why: str, example: str, instead: str, safety: Safety
) -> Rule:
    doc = _DOC.format(
        title=title[0].upper() + title[1:],
        does=does,
        why=why,
        example=indented(example),
        instead=indented(instead),
        safety=_ALIKE if safety is Safety.CHANGES else _STAYS,
    )
    return Rule(code, title, safety, doc)


def _adds(code: str, title: str, does: str, why: str, example: str, instead: str) -> Rule:
    return _rule(code, title, does, why, example, instead, Safety.CHANGES)


def says(code: str, title: str, does: str, why: str, example: str, instead: str) -> Rule:
    """Return a rule that only reports."""
    return _rule(code, title, does, why, example, instead, Safety.REPORT)


RULES = (
    _adds(
        "AMP501",
        "a training in FP32 gets native AMP",
        "`amp-migrate enable` makes a GradScaler where the optimizer is made. With `--dtype bfloat16` there is none.",
        "Gradients in fp16 may become zero. The GradScaler multiplies the loss, divides the gradients, and skips steps that "
        "overflow.",
        """
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        """,
        """
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.cuda.amp.GradScaler()
        """,
    ),
    _adds(
        "AMP502",
        "forward pass and loss run under autocast",
        "Puts what computes a loss, from the first forward pass to the last statement, under one autocast.",
        "Only what runs under autocast is faster. The backward pass stays outside: it uses the types of the forward pass.",
        """
        output = model(images)
        loss = criterion(output, labels)
        """,
        """
        with torch.cuda.amp.autocast():
            output = model(images)
            loss = criterion(output, labels)
        """,
    ),
    _adds(
        "AMP503",
        "evaluation runs under autocast",
        "Puts forward passes of the same networks that train nothing under autocast, too.",
        "Evaluation in FP32 takes longer, and measures another network than the one that is used.",
        """
        with torch.no_grad():
            for images, labels in loader:
                correct += (model(images).argmax(1) == labels).sum().item()
        """,
        """
        with torch.no_grad():
            for images, labels in loader:
                with torch.cuda.amp.autocast():
                    correct += (model(images).argmax(1) == labels).sum().item()
        """,
    ),
    _adds(
        "AMP504",
        "the loss is scaled for the backward pass",
        "Runs every backward pass that feeds the optimizer on the scaled loss.",
        "Scaled and plain gradients must never meet in one sum.",
        """
        loss.backward()
        """,
        """
        scaler.scale(loss).backward()
        """,
    ),
    _adds(
        "AMP505",
        "the optimizer steps through the GradScaler",
        "`scaler.step(optimizer)` in place of `optimizer.step()`, and one `scaler.update()` behind the last step of an iteration.",
        "The GradScaler divides the gradients by its scale, and leaves out a step whose gradients overflowed.",
        """
        optimizer.step()
        """,
        """
        scaler.step(optimizer)
        scaler.update()
        """,
    ),
    _adds(
        "AMP506",
        "gradients are unscaled before anything reads them",
        "Puts `scaler.unscale_(optimizer)` before the first clip, norm or change of gradients, once for each step.",
        "A norm of scaled gradients is 65536 times too large.",
        """
        clip_grad_norm_(model.parameters(), 1.0)
        """,
        """
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), 1.0)
        """,
    ),
    _adds(
        "AMP507",
        "functions are given the GradScaler",
        "Gives functions that scale, step, evaluate or save a parameter, and all their calls the argument.",
        "One GradScaler serves a whole training; every place that needs it has to get the same one.",
        """
        def train_step(model, optimizer, images):
        """,
        """
        def train_step(model, optimizer, images, scaler):
        """,
    ),
    _adds(
        "AMP508",
        "checkpoints have the state of the GradScaler",
        "Saves the state of the GradScaler where that of the optimizer is saved, and loads it where there is one.",
        "A resumed training otherwise starts at a scale of 65536 again, and skips steps until it has come down. Checkpoints "
        "of the FP32 training load as before.",
        """
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")
        checkpoint = torch.load("last.pt")
        optimizer.load_state_dict(checkpoint["optimizer"])
        """,
        """
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scaler": scaler.state_dict()}, "last.pt")
        checkpoint = torch.load("last.pt")
        optimizer.load_state_dict(checkpoint["optimizer"])
        if checkpoint.get("scaler"):
            scaler.load_state_dict(checkpoint["scaler"])
        """,
    ),
    _adds(
        "AMP509",
        "an option of the command line switches AMP",
        "Gives the parser `--amp/--no-amp`, which is on by default. `--flag NAME` names it, `--always` leaves it out.",
        "With the option off the training is the FP32 training again: autocast and GradScaler pass everything through.",
        """
        parser.add_argument("--epochs", type=int, default=2)
        args = parser.parse_args()
        """,
        """
        parser.add_argument("--epochs", type=int, default=2)
        parser.add_argument("--amp", action=argparse.BooleanOptionalAction, default=True, help="mixed precision")
        args = parser.parse_args()
        """,
    ),
    _adds(
        "AMP510",
        "an operation that 16 bits break gets FP32",
        "Puts `.float()` before a `masked_fill` with a value beyond 65504, and behind the probabilities that binary cross entropy "
        "is given. Runs products with sparse matrices, and of features with themselves, under an autocast that is off, in FP32. "
        "In FP32 all of it does nothing.",
        "What autocast gives in fp16 cannot hold -1e9, and torch raises; softmax runs in FP32 under autocast anyway. Binary cross "
        "entropy takes no fp16 probabilities beside FP32 targets. A GPU has no products with sparse matrices in 16 bits.",
        """
        scores = scores.masked_fill(mask == 0, -1e9)
        """,
        """
        scores = scores.float().masked_fill(mask == 0, -1e9)
        """,
    ),
)
