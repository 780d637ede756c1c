"""Losses that give gradients to an optimizer which their block does not name: a rule must say that those are unscaled now."""

from __future__ import annotations

from dataclasses import replace

from check.trainings.planted import Training

_HEAD = """\
import torch
import torch.nn.functional as F
{apex}

def train(one, two, opt_one, opt_two, loader{given}):
    for x, y in loader:
{steps}

def main(loader):
    one, two = torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)
    opt_one = torch.optim.SGD(one.parameters(), lr=0.1)
    opt_two = torch.optim.SGD(two.parameters(), lr=0.1)
{made}
    train(one, two, opt_one, opt_two, loader{given})
"""
_INITIALIZED = "    [one, two], [opt_one, opt_two] = amp.initialize([one, two], [opt_one, opt_two])"
_CLEARED = "        opt_one.zero_grad()\n        opt_two.zero_grad()\n"
_FORWARD = "        loss = F.mse_loss(two(one(x)), y)\n"
_AHEAD = "        ahead = F.mse_loss(two(x), y)\n"


def _loss(name: str, *optimizers: str) -> str:
    named = optimizers[0] if len(optimizers) == 1 else f"[{', '.join(optimizers)}]"
    return (
        f"        with amp.scale_loss({name}, {named}) as scaled:\n            scaled.backward()\n"
    )


def _stepped(optimizer: str) -> str:
    return f"        {optimizer}.step()\n"


_LEFT = {
    "a second optimizer steps on one loss": (
        _CLEARED + _FORWARD + _loss("loss", "opt_one") + _stepped("opt_one") + _stepped("opt_two")
    ),
    "the loss of a second network follows uncleared": (
        _CLEARED
        + _FORWARD
        + _loss("loss", "opt_one")
        + _stepped("opt_one")
        + _AHEAD
        + _loss("ahead", "opt_two")
        + _stepped("opt_two")
    ),
    "both losses come before both steps": (
        _CLEARED
        + _FORWARD
        + _AHEAD
        + _loss("loss", "opt_one")
        + _loss("ahead", "opt_two")
        + _stepped("opt_one")
        + _stepped("opt_two")
    ),
}
_WINDOWS = """\
import torch
import torch.nn.functional as F
{apex}

def train(net, optimizer, loader, every{given}):
    for i, (x, y) in enumerate(loader):
        loss = F.mse_loss(net(x), y)
{backward}
        if {full}:
{step}
            optimizer.zero_grad()

def main(loader):
    net = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
{made}
    train(net, optimizer, loader, 4{given})
"""
_DELAYED = {
    "the last window is short, and delay_unscale waits": (
        "(i + 1) % every != 0",
        "(i + 1) % every == 0 or i + 1 == len(loader)",
    ),
    "delay_unscale waits in all blocks": ("True", "(i + 1) % every == 0"),
    "delay_unscale asks another window": ("i % every != 0", "(i + 1) % every == 0"),
}
_WAITED = {"delay_unscale waits but for the last": ("(i + 1) % every", "(i + 1) % every == 0")}
_RIGHT = {
    "both optimizers are named": (
        _CLEARED
        + _FORWARD
        + _loss("loss", "opt_one", "opt_two")
        + _stepped("opt_one")
        + _stepped("opt_two")
    ),
    "the second network is cleared before its own loss": (
        _CLEARED
        + _FORWARD
        + _loss("loss", "opt_one")
        + _stepped("opt_one")
        + "        opt_two.zero_grad()\n"
        + _AHEAD
        + _loss("ahead", "opt_two")
        + _stepped("opt_two")
    ),
    "the second network is frozen for the first loss": (
        "        for p in two.parameters():\n            p.requires_grad = False\n"
        + _CLEARED
        + _FORWARD
        + _loss("loss", "opt_one")
        + _stepped("opt_one")
        + "        for p in two.parameters():\n            p.requires_grad = True\n"
        + _AHEAD
        + _loss("ahead", "opt_two")
        + _stepped("opt_two")
    ),
}


def _native(steps: str) -> str:
    lines: list[str] = []
    for line in steps.splitlines():
        if "scaled.backward()" in line or "scale_loss" in line:
            if "scale_loss" in line:
                loss = line.split("(")[1].split(",")[0]
                lines.append(f"        scaler.scale({loss}).backward()")
        elif "F.mse_loss" in line:
            lines += ["        with torch.cuda.amp.autocast():", f"    {line}"]
        elif line.endswith(".step()"):
            lines.append(f"        scaler.step({line.strip().removesuffix('.step()')})")
        else:
            lines.append(line)
    last = max(i for i, line in enumerate(lines) if "scaler.step" in line)
    lines.insert(last + 1, "        scaler.update()")
    return "\n".join(lines) + "\n"


def _training(name: str, steps: str, *, told: bool) -> Training:
    given = {"given": "", "apex": "from apex import amp\n", "made": _INITIALIZED}
    before = _HEAD.format(steps=steps, **given)
    scaler = "    scaler = torch.cuda.amp.GradScaler()"
    given = {"given": ", scaler", "apex": "", "made": scaler}
    after = _HEAD.format(steps=_native(steps), **given)
    line = before.splitlines().index("            scaled.backward()") + 1
    several = name == "both optimizers are named"
    claims = ((("AMP214", "train.py", line),) if told else ()) + (
        (("AMP105", "train.py", line - 1, line - 1, True),) if several else ()
    )
    return Training(name, {"train.py": before}, {"train.py": after}, {}, claims)


def _delayed(name: str, waits: str, full: str, *, told: bool) -> Training:
    before = _WINDOWS.format(
        apex="from apex import amp\n",
        given="",
        full=full,
        backward=f"        with amp.scale_loss(loss, optimizer, delay_unscale={waits}) as scaled:\n"
        "            scaled.backward()",
        step="            optimizer.step()",
        made="    net, optimizer = amp.initialize(net, optimizer)",
    )
    after = _WINDOWS.format(
        apex="",
        given=", scaler",
        full=full,
        backward="        scaler.scale(loss).backward()",
        step="            scaler.step(optimizer)\n            scaler.update()",
        made="    scaler = torch.cuda.amp.GradScaler()",
    ).replace("        loss =", "        with torch.cuda.amp.autocast():\n            loss =")
    line = before.splitlines().index("            optimizer.step()") + 1
    claims = (("AMP214", "train.py", line),) if told else ()
    return Training(name, {"train.py": before}, {"train.py": after}, {}, claims)


_HELPED = """\
import torch
import torch.nn.functional as F
from apex import amp

nets = {"one": torch.nn.Linear(4, 4), "two": torch.nn.Linear(4, 2)}
opt_one = torch.optim.SGD(nets["one"].parameters(), lr=0.1)
opt_two = torch.optim.SGD(nets["two"].parameters(), lr=0.1)
opts = {"one": opt_one, "two": opt_two}
amp.initialize([nets["one"], nets["two"]], [opt_one, opt_two])

def descend(NAME, loss):
    OPT.zero_grad()
    with amp.scale_loss(loss, OPT) as scaled:
        scaled.backward()

for x, y in []:
    middle = nets["one"](x)
    loss = F.mse_loss(nets["two"](middle), y)
    ahead = F.mse_loss(nets["two"](middle.detach()), y)
CALLS
    opts["one"].step()
    opts["two"].step()
"""
_WAYS = {
    "an optimizer that a helper is given": ("opt", "opt", 'opts["{}"]'),
    "the optimizer of a key that a helper is given": ("name", "opts[name]", '"{}"'),
}
_ORDERS = {
    "reaches another one behind its own loss": (("two", "ahead"), ("one", "loss")),
    "reaches another one before that is cleared": (("one", "loss"), ("two", "ahead")),
}


def _helped(way: str, order: str, *, told: bool) -> Training:
    name, opt, given = _WAYS[way]
    calls = [f"    descend({given.format(key)}, {loss})" for key, loss in _ORDERS[order]]
    texts = (("NAME", name), ("OPT", opt), ("CALLS", "\n".join(calls)))
    before = _HELPED
    for old, new in texts:
        before = before.replace(old, new)
    after = before
    for old, new in (
        ("from apex import amp\n", ""),
        (
            'amp.initialize([nets["one"], nets["two"]], [opt_one, opt_two])',
            "scaler = torch.cuda.amp.GradScaler()",
        ),
        (
            f"    with amp.scale_loss(loss, {opt}) as scaled:\n        scaled.backward()",
            "    scaler.scale(loss).backward()",
        ),
        ("    middle", "    with torch.cuda.amp.autocast():\n        middle"),
        ("    loss =", "        loss ="),
        ("    ahead =", "        ahead ="),
        (
            '    opts["one"].step()\n    opts["two"].step()\n',
            '    scaler.step(opts["one"])\n    scaler.step(opts["two"])\n    scaler.update()\n',
        ),
    ):
        assert old in after
        after = after.replace(old, new)
    line = before.splitlines().index("        scaled.backward()") + 1
    claims = (("AMP214", "train.py", line),) if told else ()
    return Training(f"{way} {order}", {"train.py": before}, {"train.py": after}, {}, claims)


LEFT_SCALED = [
    *(_delayed(name, *tests, told=True) for name, tests in _DELAYED.items()),
    *(_training(name, steps, told=True) for name, steps in _LEFT.items()),
    *(_helped(way, next(iter(_ORDERS)), told=True) for way in _WAYS),
    *(_helped(way, list(_ORDERS)[1], told=False) for way in _WAYS),
    *(_training(name, steps, told=False) for name, steps in _RIGHT.items()),
    *(_delayed(name, *tests, told=False) for name, tests in _WAITED.items()),
]
LEFT_UNTOLD = [
    replace(training, claims=())
    for training in LEFT_SCALED[: len(_DELAYED) + len(_LEFT) + len(_WAYS)]
]
