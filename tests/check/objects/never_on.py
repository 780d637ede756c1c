"""Objects of a subclass that never initializes, over a method that scales: their GradScaler is off, if it is that of the class."""

from __future__ import annotations

from check.trainings.planted import Training

_TOP = "import torch\nimport torch.nn.functional as F\n"
_BEFORE = """from apex import amp

class Tutor:
    def __init__(self, options, pupil):
        self.options = options
        self.pupil = pupil

    def lesson(self, x, y, optimizer):
        loss = F.cross_entropy(self.pupil(x), y)
        if self.options.half:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()

    def teach(self, lessons):
        optimizer = torch.optim.SGD(self.pupil.parameters(), lr=0.1)
        if self.options.half:
            self.pupil, optimizer = amp.initialize(
                self.pupil, optimizer, opt_level=self.options.level
            )
        for x, y in lessons:
            optimizer.zero_grad()
            self.lesson(x, y, optimizer)
            optimizer.step()
"""
_OFF = "    scaler = torch.cuda.amp.GradScaler(enabled=False)\n\n"
_GIVEN = "        self.pupil = pupil\n"
_ON = 'torch.cuda.amp.GradScaler(\n            enabled=self.options.half and self.options.level != "O0"\n        )'
_AFTER = f"""
class Tutor:
{_OFF}    def __init__(self, options, pupil):
        self.options = options
{_GIVEN}
    def lesson(self, x, y, optimizer):
        with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):
            loss = F.cross_entropy(self.pupil(x), y)
        self.scaler.scale(loss).backward()

    def teach(self, lessons):
        optimizer = torch.optim.SGD(self.pupil.parameters(), lr=0.1)
        self.scaler = {_ON}
        for x, y in lessons:
            optimizer.zero_grad()
            self.lesson(x, y, optimizer)
            self.scaler.step(optimizer)
            self.scaler.update()
"""
_SCHOOL = """from pupils import lessons, options, pupil
from tutor import Tutor

Tutor(options, pupil).teach(lessons)
"""
_OWN = "        optimizer = torch.optim.Adam(self.pupil.parameters(), lr=0.1)\n"
_HOME = f"""import torch
from pupils import lessons, options, pupil
from tutor import Tutor

class Parent(Tutor):
    def teach(self, lessons):
{_OWN}        for x, y in lessons:
            self.lesson(x, y, optimizer)
            optimizer.step()
            optimizer.zero_grad()

Parent(options, pupil).teach(lessons)
"""
_MADE = f"        self.scaler = {_ON}\n"
_FAULTS = {
    "the class has one that is on": ((_OFF, _OFF.replace("enabled=False", "")),),
    "the constructor makes it": ((_OFF, ""), (_GIVEN, _GIVEN + _MADE)),
    "the subclass makes one": ((_OWN, _OWN + _MADE),),
    "the base trains first": ((_OWN, "        Tutor.teach(self, lessons)\n" + _OWN),),
}

NEVER_ON = (
    Training(
        "a subclass that trains by itself",
        {"tutor.py": _TOP + _BEFORE, "school.py": _SCHOOL, "home.py": _HOME},
        {"tutor.py": _TOP + _AFTER, "school.py": _SCHOOL, "home.py": _HOME},
        _FAULTS,
    ),
)
