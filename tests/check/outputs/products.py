"""Products of what an initialized network gave, and those that a penalty is made of: O1 made the factors fp16."""

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

_PENALTIES = """
def spread(model):
    total = 0.0
    for weight in model.parameters():
        total = total + {product}.abs().sum()
    return total
"""


def _penalty(name: str, product: str) -> Training:
    """Return a training whose loss has a penalty of the weights, which its caller computes."""
    helper = _PENALTIES.format(product=product)
    step = """
def step(model, optimizer, x, y, penalty{more}):
    {cast}
    optimizer.zero_grad()
    {backward}
"""
    loss = "loss = F.cross_entropy(model(x), y) + penalty"
    apex = "with amp.scale_loss(loss, optimizer) as scaled:\n        scaled.backward()\n    optimizer.step()"
    native = "scaler.scale(loss).backward()\n    scaler.step(optimizer)\n    scaler.update()"
    block = "with torch.cuda.amp.autocast():\n        "
    steps = [
        step.format(more="", cast=loss, backward=apex),
        step.format(more=", scaler", cast=block + loss, backward=native),
    ]
    heads = [text.partition("    for x, y")[0] for text in (_TRAINING_BEFORE, _TRAINING_AFTER)]
    run = "            penalty = spread(model)\n"
    cast = f"            with torch.cuda.amp.autocast():\n    {run}"
    texts = []
    for head, own, inside, more in zip(heads, steps, (run, cast), ("", ", scaler"), strict=True):
        first, _, rest = head.partition("\ndef main")
        turn = f"    for x, y in loader:\n        if len(x):\n{inside}"
        call = f"            step(model, optimizer, x, y, penalty{more})\n"
        texts.append(f"{first}{helper}{own}\ndef main{rest}{turn}{call}")
    faults = {"the penalty is not cast": ((cast, run),)}
    return Training(name, {"main.py": texts[0]}, {"main.py": texts[1]}, faults)


def _in_a_lambda(name: str, lambdas: str, called: str) -> Training:
    """Return a training behind which a lambda multiplies what the network gave."""
    before = _TRAINING_BEFORE.replace("\ndef main", f"\n{lambdas}\ndef main")
    after = _TRAINING_AFTER.replace("\ndef main", f"\n{lambdas}\ndef main")
    begun = "    with torch.no_grad():\n        for x, _ in loader:\n"
    apart = f"            near = {called}\n"
    inside = f"                near = {called}\n"
    before += f"{begun}            z = model(x).float()\n{apart}            print(near)\n"
    cast = "            with torch.cuda.amp.autocast():\n                z = model(x).float()\n"
    after += f"{begun}{cast}{inside}            print(near)\n"
    faults = {"the product is not cast": ((inside, apart),)}
    return Training(name, {"main.py": before}, {"main.py": after}, faults)


def _early(name: str, product: str) -> Training:
    """Return a training whose data is multiplied before Apex is initialized."""
    helper = f"\ndef mixed(loader, mix):\n    return [({product}, y) for x, y in loader]\n"
    made = "    loader = mixed(loader, mix)\n"
    start = "def main(model, loader, mix):\n"
    before, after = (
        text.replace("\ndef main", f"{helper}\ndef main").replace(start, start + made)
        for text in (_TRAINING_BEFORE, _TRAINING_AFTER)
    )
    cast = f"    with torch.cuda.amp.autocast():\n    {made}"
    faults = {"the data is made under autocast": ((made, cast),)}
    return Training(name, {"main.py": before}, {"main.py": after}, faults)


PRODUCTS = (
    _early("data multiplied early, by an operator", "x @ mix"),
    _early("data multiplied early, by a function", "torch.matmul(x, mix)"),
    _early("data multiplied early, by a method", "x.mm(mix)"),
    _in_a_lambda("a product of a lambda", "alike = lambda a, b: a @ b\n", "alike(z, mix)"),
    _in_a_lambda(
        "a product of a lambda in a table",
        'table = {"a": lambda a, b: a @ b}\n',
        'table["a"](z, mix)',
    ),
    _penalty("a penalty by a function", "torch.mm(weight, weight.t())"),
    _penalty("a penalty by a method", "weight.matmul(weight.t())"),
    _penalty("a penalty by an operator", "(weight @ weight.t())"),
    _training("a product in place of an attribute", _ATTRIBUTE, _ATTRIBUTE_APART),
    _training("a product in place", _PRODUCT, _APART),
    _training("products in place in a loop", _IN_ROUNDS, _ROUNDS_APART),
)
