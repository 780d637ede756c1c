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


_ROUND_BEFORE = """import torch
from apex import amp
from torch import nn
from torch_xla.core import xla_model as xm


def train(model, batches, options, devices):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1", enabled=options.half)
    for i, x in enumerate(batches):
        loss = model(x).mean() / 2
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.05)
        if BOUNDARY:
            optimizer.step()
            model.zero_grad()
        ELSEWHERE
"""
_AT_ONCE = "nn.utils.clip_grad_norm_(model.parameters(), 0.05 * scaler.get_scale())"
_ROUND_AFTER = f"""import torch
from torch import nn
from torch_xla.core import xla_model as xm


def train(model, batches, options, devices):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    scaler = torch.cuda.amp.GradScaler(enabled=options.half)
    for i, x in enumerate(batches):
        with torch.cuda.amp.autocast(enabled=options.half):
            loss = model(x).mean() / 2
        scaler.scale(loss).backward()
        {_AT_ONCE}
        if BOUNDARY:
            scaler.step(optimizer)
            scaler.update()
            model.zero_grad()
        ELSEWHERE
"""


def _given_away(name: str, boundary: str, elsewhere: str) -> Training:
    before, after = (
        text.replace("BOUNDARY", boundary).replace("ELSEWHERE", elsewhere)
        for text in (_ROUND_BEFORE, _ROUND_AFTER)
    )
    stands = f"        {_AT_ONCE}\n        if {boundary}:\n"
    moved = f"        if {boundary}:\n            scaler.unscale_(optimizer)\n            {_CLIP}"
    return Training(
        name,
        {"train.py": before},
        {"train.py": after},
        {"the clip is left out before a library": ((stands, moved),)},
        (("AMP208", "train.py", 14),),
    )


GIVEN_AWAY = (
    _given_away(
        "the optimizer goes to a library in rounds of its own",
        "(i + 1) % 2 == 0 and not options.tpu",
        "if options.tpu:\n            xm.optimizer_step(optimizer)\n            model.zero_grad()",
    ),
    _given_away(
        "the optimizer goes to a library in the other branch",
        "i % 2 and not options.tpu",
        "else:\n            xm.advance(optimizer, devices)",
    ),
)
