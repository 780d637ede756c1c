"""Networks that `amp.initialize` was never given: O1 cast them too, O2 did not."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """import torch
import torch.nn as nn
import torch.nn.functional as F
from apex import amp

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 2))

    def forward(self, x):
        return self.body(x)

def hints(teacher, x):
    with torch.no_grad():
        return teacher(x)

def main(batches):
    student, teacher = Net(4), Net(16)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    student, optimizer = amp.initialize(student, optimizer, opt_level="O1")
    for x, y in batches:
        hint = hints(teacher, x)
        optimizer.zero_grad()
        loss = F.mse_loss(student(x).float(), hint.float())
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()

main([])
"""
_AFTER = """import torch
import torch.nn as nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 2))

    def forward(self, x):
        return self.body(x)

def hints(teacher, x):
    with torch.no_grad(), torch.cuda.amp.autocast():
        return teacher(x)

def main(batches):
    student, teacher = Net(4), Net(16)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for x, y in batches:
        hint = hints(teacher, x)
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = F.mse_loss(student(x).float(), hint.float())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

main([])
"""
_AVERAGE = """import copy
import torch
import torch.nn as nn
import torch.nn.functional as F
from apex import amp

class Average:
    def __init__(self, network):
        self.module = copy.deepcopy(network)

def hits(network, x):
    with torch.no_grad():
        return network(x).argmax(1)

def keep(network, x):
    F.cross_entropy(network(x), torch.zeros(len(x)).long()).backward()
    return [p.grad ** 2 for p in network.parameters()]

def main(batches):
    student = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    student, optimizer = amp.initialize(student, optimizer, opt_level="O1")
    average = Average(student)
    for x, y in batches:
        print(hits(average.module, x))
        keep(student, x)
        optimizer.zero_grad()
        loss = F.cross_entropy(student(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()

main([])
"""
_AVERAGE_AFTER = """import copy
import torch
import torch.nn as nn
import torch.nn.functional as F

class Average:
    def __init__(self, network):
        self.module = copy.deepcopy(network)

def hits(network, x):
    with torch.no_grad(), torch.cuda.amp.autocast():
        return network(x).argmax(1)

def keep(network, x):
    with torch.cuda.amp.autocast():
        loss = F.cross_entropy(network(x), torch.zeros(len(x)).long())
    loss.backward()
    return [p.grad ** 2 for p in network.parameters()]

def main(batches):
    student = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    average = Average(student)
    for x, y in batches:
        print(hits(average.module, x))
        keep(student, x)
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = F.cross_entropy(student(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

main([])
"""
_KEPT = """    with torch.cuda.amp.autocast():
        loss = F.cross_entropy(network(x), torch.zeros(len(x)).long())
"""
_PARTIAL = """        self.module = copy.deepcopy(network)
"""
_PARTIAL_MADE = """        make = functools.partial(copy.deepcopy, network)
        self.module = make()
"""
_CAST = "torch.no_grad(), torch.cuda.amp.autocast():"
TEACHERS = (
    Training(
        "a teacher of O1",
        {"main.py": _BEFORE},
        {"main.py": _AFTER},
        {"the teacher runs in FP32": ((_CAST, "torch.no_grad():"),)},
    ),
    Training(
        "a teacher of O2",
        {"main.py": _BEFORE.replace('"O1"', '"O2"')},
        {"main.py": _AFTER.replace(_CAST, "torch.no_grad():")},
        {},
    ),
    Training(
        "an average that is kept as `module`, and losses run backward for their gradients alone",
        {"main.py": _AVERAGE},
        {"main.py": _AVERAGE_AFTER},
        {
            "the average runs in FP32": ((_CAST, "torch.no_grad():"),),
            "the losses are computed in FP32": (
                (_KEPT, _KEPT.partition("\n")[2].replace("        loss", "    loss")),
            ),
            "their gradients are scaled": (
                ("def keep(network, x):", "def keep(network, x, scaler):"),
                ("keep(student, x)", "keep(student, x, scaler)"),
                ("    loss.backward()", "    scaler.scale(loss).backward()"),
            ),
        },
    ),
    Training(
        "an average that a partial object makes",
        {"main.py": "import functools\n" + _AVERAGE.replace(_PARTIAL, _PARTIAL_MADE)},
        {"main.py": "import functools\n" + _AVERAGE_AFTER.replace(_PARTIAL, _PARTIAL_MADE)},
        {"the average runs in FP32": ((_CAST, "torch.no_grad():"),)},
    ),
)
