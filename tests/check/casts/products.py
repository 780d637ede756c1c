"""Products that `@=` makes of what an initialized network gave: O1 made the factors fp16."""

from __future__ import annotations

from check.trainings.planted import Training

_TRAINING_BEFORE = """import torch
import torch.nn.functional as F
from apex import amp

def main(model, loader, mix):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()
"""
_TRAINING_AFTER = """import torch
import torch.nn.functional as F

def main(model, loader, mix):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for x, y in loader:
        with torch.cuda.amp.autocast():
            loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
"""
_PRODUCT = "                z @= mix\n"
_APART = "            z @= mix\n"
_IN_ROUNDS = "                for _ in range(3):\n                    z @= z\n"
_ROUNDS_APART = "            for _ in range(3):\n                z @= z\n"


def _training(name: str, inside: str, apart: str) -> Training:
    begun = "    with torch.no_grad():\n        for x, _ in loader:\n"
    before = (
        f"{_TRAINING_BEFORE}{begun}            z = model(x).float()\n{apart}            print(z)\n"
    )
    cast = f"            with torch.cuda.amp.autocast():\n                z = model(x).float()\n{inside}"
    after = f"{_TRAINING_AFTER}{begun}{cast}            print(z)\n"
    faults = {"the product is not cast": ((inside, apart),)}
    return Training(name, {"main.py": before}, {"main.py": after}, faults)


_ATTRIBUTE = "                loader.z = z\n                loader.z @= mix\n"
_ATTRIBUTE_APART = "            loader.z = z\n            loader.z @= mix\n"

PRODUCTS = (
    _training("a product in place of an attribute", _ATTRIBUTE, _ATTRIBUTE_APART),
    _training("a product in place", _PRODUCT, _APART),
    _training("products in place in a loop", _IN_ROUNDS, _ROUNDS_APART),
)
