"""Faults seeded into a correct migration, and how each must be found."""

from __future__ import annotations

from dataclasses import dataclass

from equivalence.programs import MODELS, replaced

CENSUS = "dtype census"
CRASH = "number of iterations"
ALL = tuple(MODELS)

_SCALED = "        scaler.scale(loss).backward()\n"
_UNSCALE_BODY = "    scaler.unscale_(opt_body)\n"
_UNSCALE_HEAD = "    scaler.unscale_(opt_head)\n"
_CLIP = "    torch.nn.utils.clip_grad_norm_(params, 0.1)\n"
_STEP_BODY = "    scaler.step(opt_body)\n"
_STEP_HEAD = "    scaler.step(opt_head)\n"
_UPDATE = "    scaler.update()\n"
_SCHEDULE = "    scheduler.step()\n"
_ZERO = "    opt_body.zero_grad()\n    opt_head.zero_grad()\n"
_FORWARD = "loss = F.cross_entropy(head(body(x)), y) / 2\n"
_AUTOCAST = "        with torch.cuda.amp.autocast():\n            " + _FORWARD
_MADE = "scaler = torch.cuda.amp.GradScaler()\n"


@dataclass(frozen=True)
class Fault:
    """`edits` turn the correct program into the wrong one.

    It must first show in `quantity` at `step` for every one of `models`; for the others it
    changes no bit.
    """

    name: str
    quantity: str
    step: int
    edits: tuple[tuple[str, str], ...]
    models: tuple[str, ...] = ALL

    def seed(self, source: str) -> str:
        """Return the faulty program."""
        for old, new in self.edits:
            source = replaced(source, old, new)
        return source


def _fault(
    name: str,
    quantity: str,
    step: int,
    *edits: tuple[str, str],
    models: tuple[str, ...] = ALL,
) -> Fault:
    return Fault(name, quantity, step, edits, models)


FAULTS = (
    _fault("no unscale before clip", "clip norm", 1, (_UNSCALE_BODY + _UNSCALE_HEAD, "")),
    _fault("unscale of one optimizer only", "clip norm", 1, (_UNSCALE_HEAD, "")),
    _fault("unscale twice", CRASH, 1, (_UNSCALE_HEAD, _UNSCALE_HEAD * 2)),
    _fault("zero_grad between backward and step", CRASH, 1, (_UNSCALE_BODY, _ZERO + _UNSCALE_BODY)),
    _fault("missing zero_grad", "gradients clean at start", 2, (_ZERO, "")),
    _fault(
        "zero_grad every micro-batch",
        "clip norm",
        1,
        (_SCALED, "        opt_body.zero_grad(); opt_head.zero_grad()\n" + _SCALED),
    ),
    _fault("missing update", CRASH, 2, (_UPDATE, "")),
    _fault("update every micro-batch", CRASH, 1, (_SCALED, _SCALED + "    " + _UPDATE)),
    _fault("loss not divided", "loss", 1, (_FORWARD, _FORWARD.replace(" / 2", ""))),
    _fault("loss divided twice", "loss", 1, (_FORWARD, _FORWARD.replace("/ 2", "/ 4"))),
    _fault(
        "step on scaled gradients",
        "clip norm",
        1,
        (_UNSCALE_HEAD, ""),
        (_STEP_HEAD, "    opt_head.step()\n"),
    ),
    _fault(
        "step without the check for inf", "skipped steps", 7, (_STEP_HEAD, "    opt_head.step()\n")
    ),
    _fault("backward without scale", CRASH, 1, (_SCALED, "        loss.backward()\n")),
    _fault(
        "scaled twice",
        "loss scale",
        1,
        (_SCALED, "        scaler.scale(scaler.scale(loss)).backward()\n"),
    ),
    _fault("no autocast", CENSUS, 0, (_AUTOCAST, "        " + _FORWARD)),
    _fault(
        "loss outside autocast",
        CENSUS,
        0,
        (
            _AUTOCAST,
            _AUTOCAST.split("loss")[0]
            + "out = head(body(x))\n        loss = F.cross_entropy(out, y) / 2\n",
        ),
    ),
    _fault("bf16 instead of fp16", CENSUS, 0, ("autocast():", "autocast(dtype=torch.bfloat16):")),
    _fault(
        "backward inside autocast",
        CENSUS,
        0,
        (_SCALED, "            scaler.scale(loss).backward()\n"),
        models=(),
    ),
    _fault(
        "autocast on the first micro-batch only",
        CENSUS,
        0,
        ("autocast():", "autocast(enabled=micro == 0):"),
    ),
    _fault("second optimizer never stepped", "optimizers stepped", 1, (_STEP_HEAD, "")),
    _fault(
        "wrong optimizer stepped",
        "optimizers stepped",
        1,
        (_STEP_HEAD, "    opt_wrong.step()\n"),
        (_MADE, _MADE + "opt_wrong = torch.optim.AdamW(body.parameters(), lr=1e-2)\n"),
    ),
    _fault(
        "step inside the accumulation",
        "number of backwards",
        1,
        (
            _SCALED,
            _SCALED + "        scaler.step(opt_body); scaler.step(opt_head); scaler.update()\n",
        ),
        (_UNSCALE_BODY + _UNSCALE_HEAD + _CLIP + _STEP_BODY + _STEP_HEAD + _UPDATE, ""),
    ),
    _fault(
        "clip after step",
        "order of backward, clip and step",
        1,
        (_CLIP + _STEP_BODY + _STEP_HEAD, _STEP_BODY + _STEP_HEAD + _CLIP),
    ),
    _fault("clip missing", "order of backward, clip and step", 1, (_CLIP, "")),
    _fault("another clip limit", "clip limit", 1, (_CLIP, _CLIP.replace("0.1", "0.2"))),
    _fault("scheduler missing", "learning rate", 6, (_SCHEDULE, "")),
    _fault("scheduler twice", "learning rate", 4, (_SCHEDULE, _SCHEDULE * 2)),
    _fault("scaler disabled", "loss scale", 1, (_MADE, _MADE.replace("()", "(enabled=False)"))),
    _fault("initial scale of one", "loss scale", 1, (_MADE, _MADE.replace("()", "(init_scale=1)"))),
    _fault(
        "growth four times later",
        "loss scale",
        20,
        (_MADE, _MADE.replace("()", "(growth_interval=8000)")),
    ),
    _fault(
        "scaler made anew every step",
        "loss scale",
        8,
        ("for step in range(40):\n", "for step in range(40):\n    " + _MADE),
    ),
    _fault("model.half() left in", CRASH, 1, (_MADE, _MADE + "body.half(); head.half()\n")),
    _fault(
        "eval mode left on",
        "loss",
        1,
        (_MADE, _MADE + "body.eval()\n"),
        models=("cnn", "transformer"),
    ),
    _fault(
        "learning rate doubled in a group",
        "learning rate",
        1,
        (_MADE, _MADE + "opt_body.param_groups[1]['lr'] *= 2; scheduler_base = None\n"),
    ),
    _fault(
        "micro-batches swapped",
        "loss",
        1,
        ("batches[(2 * step + micro) % 8]", "batches[(2 * step + 1 - micro) % 8]"),
    ),
    _fault(
        "update between the steps",
        "gradient norm",
        1,
        (_STEP_HEAD, _UPDATE + _STEP_HEAD),
    ),
)
