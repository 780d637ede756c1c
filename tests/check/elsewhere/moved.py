"""A clip that a rule moves to the step: it must come before every step that it came before, whoever takes that."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """import torch
from apex import amp
from torch import nn

ABOVE

def train(model, batches, half, boundary):
    MADE
    if half:
        model, OPTIMIZER = amp.initialize(model, OPTIMIZER, opt_level="O1")
    WITHIN
    for x in batches:
        OPTIMIZER.zero_grad()
        loss = model(x).mean()
        if half:
            with amp.scale_loss(loss, OPTIMIZER) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        nn.utils.clip_grad_norm_(amp.master_params(OPTIMIZER) if half else model.parameters(), 0.05)
        if boundary:
            OPTIMIZER.step()
        else:
            CALL
"""
_CLIP = "nn.utils.clip_grad_norm_(model.parameters(), 0.05)\n"
_AFTER = f"""import torch
from torch import nn

ABOVE

def train(model, batches, half, boundary):
    MADE
    scaler = torch.cuda.amp.GradScaler(enabled=half)
    WITHIN
    for x in batches:
        OPTIMIZER.zero_grad()
        with torch.cuda.amp.autocast(enabled=half):
            loss = model(x).mean()
        scaler.scale(loss).backward()
        scaler.unscale_(OPTIMIZER)
        {_CLIP}        if boundary:
            scaler.step(OPTIMIZER)
            scaler.update()
        else:
            CALL
"""
_PLACED = f"        scaler.unscale_(OPTIMIZER)\n        {_CLIP}        if boundary:\n"
_MOVED = f"        if boundary:\n            scaler.unscale_(OPTIMIZER)\n            {_CLIP}"
_MAKING = "optimizer = torch.optim.SGD(model.parameters(), lr=0.5)"


def _training(
    name: str, call: str, above: str = "", within: str = "", made: str = _MAKING
) -> Training:
    def filled(text: str, native: bool) -> str:
        parts = {"ABOVE": above, "WITHIN": within or "pass", "MADE": made, "CALL": call}
        for mark, part in parts.items():
            text = text.replace(mark, part)
        given, step = ("scaler", "scaler.step({})") if native else ("", "{}.step()")
        for taken in ("optimizer", 'run["optimizer"]', "each", "run.one", "run.held[0]"):
            text = text.replace(f"STEP<{taken}>", step.format(taken))
        text = text.replace("UPDATE", "scaler.update()" if native else "pass")
        text = text.replace(", SCALER", f", {given}" if given else "").replace("SCALER", given)
        return text.replace("OPTIMIZER", "optimizer")

    line = next(
        i for i, text in enumerate(filled(_BEFORE, False).splitlines(), 1) if "clip" in text
    )
    spoilt = tuple(text.replace("OPTIMIZER", "optimizer") for text in (_PLACED, _MOVED))
    return Training(
        name,
        {"train.py": filled(_BEFORE, False)},
        {"train.py": filled(_AFTER, True)},
        {"the clip is left out before the other step": ((spoilt[0], spoilt[1]),)},
        (("AMP208", "train.py", line),),
    )


def _helper(given: str, stepped: str) -> str:
    taking = f"{given}, SCALER" if given else "SCALER"
    return f"def advance({taking}):\n    STEP<{stepped}>\n    UPDATE\n"


MOVED = (
    _training("in a dictionary", "advance(run, SCALER)", _helper("run", 'run["optimizer"]'), 'run = {"optimizer": optimizer}'),
    _training("in an object", "advance(run, SCALER)", f"{_helper('run', 'run.one')}\n\nclass Run:\n    def __init__(self, one):\n        self.one = one\n", "run = Run(optimizer)"),
    _training("in a list of an object", "advance(run, SCALER)", f"{_helper('run', 'run.held[0]')}\n\nclass Run:\n    def __init__(self, one):\n        self.held = [one]\n", "run = Run(optimizer)"),
    _training("in a closure", "advance()", within="def advance():\n        STEP<optimizer>\n        UPDATE\n"),
    _training("of a global", "advance(SCALER)", f"optimizer = None\n\n{_helper('', 'optimizer')}", made=f"global optimizer\n    {_MAKING}"),
    _training("in a further call", "further(optimizer, SCALER)", f"{_helper('each', 'each')}\n\ndef further(each, SCALER):\n    advance(each, SCALER)\n"),
)  # fmt: skip
