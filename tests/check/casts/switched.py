"""Flags that are set while AMP is on: Apex stays on, whatever they say then."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """import torch
import torch.nn.functional as F
from apex import amp
TOP

def evaluate(model, inputs, GIVEN):
    with torch.no_grad():
        return model(inputs)

def run(model, optimizer, batches, GIVEN):
    ABOVE
    if FLAG:
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for inputs, labels in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), labels)
        if FLAG:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        optimizer.step()
    BELOW
    print(evaluate(model, inputs, GIVEN))
"""
_AFTER = """import torch
import torch.nn.functional as F
TOP

def evaluate(model, inputs, GIVEN, scaler):
    with torch.no_grad(), torch.cuda.amp.autocast(enabled=scaler.is_enabled()):
        return model(inputs)

def run(model, optimizer, batches, GIVEN):
    ABOVE
    scaler = torch.cuda.amp.GradScaler(enabled=FLAG)
    for inputs, labels in batches:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):
            loss = F.cross_entropy(model(inputs), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    BELOW
    print(evaluate(model, inputs, GIVEN, scaler))
"""
_ASKED = "enabled=scaler.is_enabled()"


def _training(
    name: str, flag: str, given: str, below: str, above: str = "pass", top: str = ""
) -> Training:
    def filled(text: str) -> dict[str, str]:
        parts = {"FLAG": flag, "GIVEN": given, "BELOW": below, "ABOVE": above, "TOP": top}
        for mark, part in parts.items():
            text = text.replace(mark, part)
        return {"train.py": text}

    after, asking = filled(_AFTER), filled(_AFTER.replace(_ASKED, "enabled=FLAG"))
    if below == "pass":
        return Training(name, filled(_BEFORE), asking, {})
    evaluated = "torch.no_grad(), torch.cuda.amp.autocast"
    fault = ((f"{evaluated}({_ASKED})", f"{evaluated}(enabled={flag})"),)
    return Training(name, filled(_BEFORE), after, {"the evaluation asks the flag": fault})


_SETTING = "\n\ndef done():\n    global HALF\n    HALF = False\n"
SWITCHED = (
    _training("a variable set behind the training", "half", "half", "half = False"),
    _training("an attribute set behind the training", "args.half", "args", "args.half = False"),
    _training("an item set behind the training", "args['half']", "args", "args['half'] = False"),
    _training("a global set by a function", "HALF", "args", "done()", top=f"HALF = True{_SETTING}"),
    _training("a variable set before AMP", "half", "half", "pass", "half = half and len(batches) > 1"),
    _training("an attribute set before AMP", "args.half", "args", "pass", "args.half = bool(args.half)"),
    _training("a loop that sets another variable", "half", "half", "pass", "for part in (1, 2): print(part)"),
)  # fmt: skip

_LEVEL_BEFORE = """import torch
import torch.nn.functional as F
from apex import amp

def run(model, batches, LEVEL):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if level:
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for inputs, targets in batches:
        optimizer.zero_grad()
        loss = F.mse_loss(model(inputs), targets)
        if level:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        optimizer.step()

def main(model, batches):
    RUN

main(torch.nn.Linear(4, 2), [])
"""
_LEVEL_AFTER = """import torch
import torch.nn.functional as F

def run(model, batches, LEVEL):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=bool(level))
    for inputs, targets in batches:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast(enabled=bool(level)):
            loss = F.mse_loss(model(inputs), targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

def main(model, batches):
    RUN

main(torch.nn.Linear(4, 2), [])
"""


def _leveled(name: str, level: str, run: str) -> Training:
    texts = [t.replace("LEVEL", level).replace("RUN", run) for t in (_LEVEL_BEFORE, _LEVEL_AFTER)]
    before, after = ({"train.py": text} for text in texts)
    faults = {
        "the block is switched by a text": (
            ("autocast(enabled=bool(level))", "autocast(enabled=level)"),
        )
    }
    return Training(name, before, after, faults)


SWITCHED = (
    *SWITCHED,
    _leveled("a level that a call gives", "level", "run(model, batches, 'O1')"),
    _leveled("a level that a call leaves at None", "level=None", "run(model, batches)\n    run(model, batches, True)"),
    _leveled("a level of a variable", "level", "chosen = 'O1' if batches else ''\n    run(model, batches, chosen)"),
    _leveled("a number by its name", "level", "run(model, batches, level=2)"),
)  # fmt: skip
