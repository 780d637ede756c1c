"""Two objects of one class, of which one turns AMP on: behind that Apex casts what the other one runs, too."""

from __future__ import annotations

from check.trainings.planted import Training

_TOP = """import torch
import torch.nn.functional as F
"""
_APEX = "from apex import amp\n"
_GIVEN = """
class Runner:
    def __init__(self, model, optimizer, mixed=False):
        self.model = model
        self.optimizer = optimizer
        self.mixed = mixed
        INIT
"""
_LATER = """
class Runner:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer
        self.mixed = False

    def setup(self, mixed):
        self.mixed = mixed
        INIT
"""
_INIT = """if mixed:
            self.model, self.optimizer = amp.initialize(
                self.model, self.optimizer, opt_level="O1"
            )"""
_SCALER = "self.scaler = torch.cuda.amp.GradScaler(enabled=mixed)"
_STEP = """
    def step(self, x, y):
        loss = F.mse_loss(self.model(x), y)
        self.optimizer.zero_grad()
        if self.mixed:
            with amp.scale_loss(loss, self.optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        self.optimizer.step()
"""
_WRITTEN = """
    def step(self, x, y):
        with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):
            loss = F.mse_loss(self.model(x), y)
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
"""
_MAIN = """
def main(batches):
    one, two = torch.nn.Linear(4, 2), torch.nn.Linear(4, 2)
    first = MAKE_FIRST
    second = MAKE_SECOND
    RUN
"""
_FIRST = "Runner(one, torch.optim.SGD(one.parameters(), lr=0.1)"
_SECOND = "Runner(two, torch.optim.SGD(two.parameters(), lr=0.1)"
_BEHIND = """first.setup(True)
    second.setup(False)
    for x, y in batches:
        first.step(x, y)
        second.step(x, y)"""
_BOTH = """for x, y in batches:
        first.step(x, y)
        second.step(x, y)"""


def _training(name: str, runner: str, first: str, second: str, run: str) -> Training:
    main = _MAIN.replace("MAKE_FIRST", _FIRST + first).replace("MAKE_SECOND", _SECOND + second)
    main = main.replace("RUN", run)
    before = _TOP + _APEX + runner.replace("INIT", _INIT) + _STEP + main
    after = _TOP + runner.replace("INIT", _SCALER) + _WRITTEN + main
    return Training(name, {"train.py": before}, {"train.py": after}, {})


_DONE = f"""
def main(batches):
    one, two = torch.nn.Linear(4, 2), torch.nn.Linear(4, 2)
    second = {_SECOND})
    for x, y in batches:
        second.step(x, y)
    first = {_FIRST}, mixed=True)
    for x, y in batches:
        first.step(x, y)
"""
_CAST = "        with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):\n"
_ANEW = "        self.scaler = torch.cuda.amp.GradScaler(enabled=self.mixed)\n"
_FAULTS = {
    "made for each step": ((_CAST, _ANEW + _CAST),),
    "the loss of the other one is scaled by no GradScaler": (
        ("self.scaler.step(self.optimizer)", "self.optimizer.step()"),
    ),
}

OTHER_OBJECTS = (
    Training(
        "an object that is done before another one turns AMP on",
        {"train.py": _TOP + _APEX + _GIVEN.replace("INIT", _INIT) + _STEP + _DONE},
        {"train.py": _TOP + _GIVEN.replace("INIT", _SCALER) + _WRITTEN + _DONE},
        _FAULTS,
    ),
)
_SHARED = """
def main(batches):
    one = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(one.parameters(), lr=0.1)
    second = Runner(one, optimizer, True)
    for x, y in batches:
        second.step(x, y)
    first = Runner(one, optimizer, True)
    for x, y in batches:
        first.step(x, y)
"""
_AGAIN = """
def main(batches):
    one = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(one.parameters(), lr=0.1)
    for part in batches:
        runner = Runner(one, optimizer, True)
        for x, y in part:
            runner.step(x, y)
"""


def _remade(name: str, main: str) -> Training:
    before = _TOP + _APEX + _GIVEN.replace("INIT", _INIT) + _STEP + main
    after = _TOP + _GIVEN.replace("INIT", _SCALER) + _WRITTEN + main
    return Training(name, {"train.py": before}, {"train.py": after}, {})


OTHER_OBJECTS_BEHIND = (
    _remade("another object with the same optimizer", _SHARED),
    _remade("another object for each round, with one optimizer", _AGAIN),
    _training("an object that runs behind another one's setup", _LATER, ")", ")", _BEHIND),
    _training("an object made without AMP", _GIVEN, ", mixed=True)", ")", _BOTH),
    _training("an object made with the flag off", _GIVEN, ", True)", ", False)", _BOTH),
)
