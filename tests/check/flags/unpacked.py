"""The level of a training comes out of a dictionary that is unpacked."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """
# file: train.py
import sys
import torch
import torch.nn.functional as F
from apex import amp


def main(loader, net):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    options = {"opt_level": "O0"}
    options["loss_scale"] = "dynamic"
    net, optimizer = amp.initialize(net, optimizer, **options)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()


main([(torch.randn(3, 4), torch.randn(3, 2))], torch.nn.Linear(4, 2))
"""
_AFTER = """
# file: train.py
import sys
import torch
import torch.nn.functional as F


def main(loader, net):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


main([(torch.randn(3, 4), torch.randn(3, 2))], torch.nn.Linear(4, 2))
"""
_DISPLAY = '{"opt_level": "O0"}\n'
UNPACKED = tuple(
    Training(
        f"a level without casts in a dictionary{how}",
        files(_BEFORE.replace(_DISPLAY, made)),
        files(_AFTER),
        {
            "cast": (
                (
                    "        loss = F.mse_loss(net(x), y)",
                    "        with torch.cuda.amp.autocast():\n            loss = F.mse_loss(net(x), y)",
                ),
            )
        },
    )
    for how, made in (
        ("", _DISPLAY),
        (" that is updated", '{}\n    options.update(opt_level="O0")\n'),
    )
)
_PUT = '    options["loss_scale"] = "dynamic"\n'
UNPACKED_OTHERWISE = tuple(
    Training(
        f"a level in a dictionary: {put.strip()}",
        files(_BEFORE.replace(_PUT, put)),
        files(_AFTER),
        {},
    )
    for put in (
        '    options["opt_level"] = "O1"\n',
        '    options.update(opt_level="O1")\n',
        '    if len(sys.argv) > 1:\n        options = {"opt_level": "O1"}\n',
        '    if len(sys.argv) > 1:\n        options.update(opt_level="O0")\n',
        "    options[sys.argv[1]] = sys.argv[2]\n",
        '    known = options\n    known["opt_level"] = "O1"\n',
    )
)

_ASKED = """
# file: train.py
import torch
import torch.nn.functional as F


def main(loader, net, {given}):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled={asked})
    for x, y in loader:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):
            loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


main([(torch.randn(3, 4), torch.randn(3, 2))], torch.nn.Linear(4, 2), load("options.yaml"))
"""
_GIVEN = (
    _BEFORE.replace('    options = {"opt_level": "O0"}\n', "")
    .replace(_PUT, "")
    .replace("import sys\n", "")
    .replace("(4, 2))\n", '(4, 2), load("options.yaml"))\n')
)


def _asked(given: str, options: str) -> Training:
    before = _GIVEN.replace("net):", f"net, {given}):").replace("**options", f"**{options}")
    level, enabled = f'{options}.get("opt_level", "O1")', f'{options}.get("enabled", True)'
    asked = f'{level} != "O0" and {enabled}'
    faults = {
        "of another level": f'{level} != "O1" and {enabled}',
        "of the other level": f'{level} != "O2" and {enabled}',
        "of another default": f'{options}.get("opt_level", "O0") != "O0" and {enabled}',
        "of another entry": f'{options}.get("level", "O1") != "O0" and {enabled}',
        "of another dictionary": f'net.get("opt_level", "O1") != "O0" and {enabled}',
        "turned round": f'{level} == "O0" and {enabled}',
        "whatever the level is": enabled,
        "whatever the switch is": f'{level} != "O0"',
        "of another switch": f'{level} != "O0" and {options}.get("cast_ops", True)',
        "of either": f'{level} != "O0" or {enabled}',
        "on": "True",
        "off": "False",
    }
    blocks = {
        "casts": "enabled=True",
        "casts whatever the level is": f"enabled={enabled}",
        "casts whatever the switch is": f'enabled={level} != "O0"',
    }
    return Training(
        f"the level of {options}, asked at run time",
        files(before),
        files(_ASKED.format(given=given, asked=asked)),
        {name: ((asked, fault),) for name, fault in faults.items()}
        | {name: (("enabled=scaler.is_enabled()", fault),) for name, fault in blocks.items()},
    )


ASKED_AT_RUN_TIME = (
    _asked("options", "options"),
    _asked("config", 'config["amp"]'),
    _asked("config", "config.amp.options"),
)
