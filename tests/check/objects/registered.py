"""Trainings out of a registry: what one of them does with casts is no matter of the other one, which runs in its place."""

from __future__ import annotations

from check.trainings.planted import Training

_TOP = """import torch
import torch.nn.functional as F
"""
_APEX = "from apex import amp\n"
_BOOK = """

class Book:
    def __init__(self):
        self.pages = {}

    def enter(self, name):
        def keep(item):
            self.pages[name] = item
            return item
        return keep

    def find(self, name):
        if name not in self.pages:
            raise KeyError(name)
        return self.pages[name]

NETS = Book()
WAYS = BOOK

@NETS.enter("net")
def net():
    return torch.nn.Linear(4, 2)

@WAYS.enter("plain")
def plain(model, optimizer, batches):
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()

@WAYS.enter("mixed")
"""
_BEFORE = """def mixed(model, optimizer, batches):
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
"""
_AFTER = """def mixed(model, optimizer, batches):
    scaler = torch.cuda.amp.GradScaler()
    for x, y in batches:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
"""
_MAIN = """
def main(args, batches):
    model = NETS.find(args.net)()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    WAYS.find(args.way)(model, optimizer, batches)
"""
_PLAIN = """        loss = F.cross_entropy(model(x), y)
        loss.backward()
"""
_CAST = """        with torch.cuda.amp.autocast():
            loss = F.cross_entropy(model(x), y)
        loss.backward()
"""


def _training(name: str, ways: str, **faults: tuple[tuple[str, str], ...]) -> Training:
    book = _BOOK.replace("BOOK\n", f"{ways}\n")
    before = _TOP + _APEX + book + _BEFORE + _MAIN
    after = _TOP + book + _AFTER + _MAIN
    return Training(name, {"train.py": before}, {"train.py": after}, faults)


REGISTERED = (
    _training("trainings in a registry of their own", "Book()", cast=((_PLAIN, _CAST),)),
    _training("trainings in one registry with networks", "NETS"),
)
