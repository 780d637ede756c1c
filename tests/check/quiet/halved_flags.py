"""Conditions of several parts: a GradScaler that goes by some of them is on where Apex was off, or the other way round."""

from __future__ import annotations

from check.trainings.planted import Training, files

_LEVEL_BEFORE = """\
# file: train.py
import argparse
import torch
import torch.nn.functional as F
from apex import amp

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--level", default="O1")
    args = parser.parse_args()
    net = torch.nn.Linear(4, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    if args.fp16:
        net, opt = amp.initialize(net, opt, opt_level=args.level)
    for x, y in [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]:
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        if args.fp16:
            with amp.scale_loss(loss, opt) as scaled:
                scaled.backward()
        else:
            loss.backward()
        opt.step()

main()
"""
_LEVEL_AFTER = """\
# file: train.py
import argparse
import torch
import torch.nn.functional as F

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--level", default="O1")
    args = parser.parse_args()
    net = torch.nn.Linear(4, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=args.fp16 and args.level != "O0")
    for x, y in [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]:
        opt.zero_grad()
        with torch.cuda.amp.autocast(enabled=args.fp16 and args.level != "O0"):
            loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()

main()
"""
_SWITCH_BEFORE = """\
# file: train.py
import argparse
import torch
import torch.nn.functional as F
from apex import amp

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--level", default="O1")
    args = parser.parse_args()
    net = torch.nn.Linear(4, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    net, opt = amp.initialize(net, opt, enabled=args.fp16 and args.cuda)
    for x, y in [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]:
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        if True:
            with amp.scale_loss(loss, opt) as scaled:
                scaled.backward()
        else:
            loss.backward()
        opt.step()

main()
"""
_SWITCH_AFTER = """\
# file: train.py
import argparse
import torch
import torch.nn.functional as F

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--level", default="O1")
    args = parser.parse_args()
    net = torch.nn.Linear(4, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=args.fp16 and args.cuda)
    for x, y in [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]:
        opt.zero_grad()
        with torch.cuda.amp.autocast(enabled=args.fp16 and args.cuda):
            loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()

main()
"""
_NESTED_BEFORE = """\
# file: train.py
import argparse
import torch
import torch.nn.functional as F
from apex import amp

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--level", default="O1")
    args = parser.parse_args()
    net = torch.nn.Linear(4, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    if args.cuda:
        net.cuda()
        if args.fp16:
            net, opt = amp.initialize(net, opt)
    for x, y in [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]:
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        if args.cuda and args.fp16:
            with amp.scale_loss(loss, opt) as scaled:
                scaled.backward()
        else:
            loss.backward()
        opt.step()

main()
"""
_NESTED_AFTER = """\
# file: train.py
import argparse
import torch
import torch.nn.functional as F

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--level", default="O1")
    args = parser.parse_args()
    net = torch.nn.Linear(4, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=args.cuda and args.fp16)
    for x, y in [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]:
        opt.zero_grad()
        with torch.cuda.amp.autocast(enabled=args.cuda and args.fp16):
            loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()

main()
"""
_COPY_BEFORE = """\
# file: train.py
import argparse
import torch
import torch.nn.functional as F
from apex import amp

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--level", default="O1")
    args = parser.parse_args()
    net = torch.nn.Linear(4, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    use = args.fp16 and args.cuda
    if use:
        net, opt = amp.initialize(net, opt)
    for x, y in [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]:
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        if use:
            with amp.scale_loss(loss, opt) as scaled:
                scaled.backward()
        else:
            loss.backward()
        opt.step()

main()
"""
_COPY_AFTER = """\
# file: train.py
import argparse
import torch
import torch.nn.functional as F

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--level", default="O1")
    args = parser.parse_args()
    net = torch.nn.Linear(4, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    use = args.fp16 and args.cuda
    scaler = torch.cuda.amp.GradScaler(enabled=use)
    for x, y in [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]:
        opt.zero_grad()
        with torch.cuda.amp.autocast(enabled=use):
            loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()

main()
"""
_EITHER_BEFORE = """\
# file: train.py
import argparse
import torch
import torch.nn.functional as F
from apex import amp

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--level", default="O1")
    args = parser.parse_args()
    net = torch.nn.Linear(4, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    if args.fp16 or args.cuda:
        net, opt = amp.initialize(net, opt)
    for x, y in [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]:
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        if args.fp16 or args.cuda:
            with amp.scale_loss(loss, opt) as scaled:
                scaled.backward()
        else:
            loss.backward()
        opt.step()

main()
"""
_EITHER_AFTER = """\
# file: train.py
import argparse
import torch
import torch.nn.functional as F

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--level", default="O1")
    args = parser.parse_args()
    net = torch.nn.Linear(4, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=args.fp16 or args.cuda)
    for x, y in [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]:
        opt.zero_grad()
        with torch.cuda.amp.autocast(enabled=args.fp16 or args.cuda):
            loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()

main()
"""

HALVED_FLAGS = (
    Training(
        "a flag and a level",
        files(_LEVEL_BEFORE),
        files(_LEVEL_AFTER),
        {
            "the flag alone": (
                (
                    'GradScaler(enabled=args.fp16 and args.level != "O0")',
                    "GradScaler(enabled=args.fp16)",
                ),
            ),
            "the level alone": (
                (
                    'GradScaler(enabled=args.fp16 and args.level != "O0")',
                    'GradScaler(enabled=args.level != "O0")',
                ),
            ),
            "the level turned round": (
                (
                    'GradScaler(enabled=args.fp16 and args.level != "O0")',
                    'GradScaler(enabled=args.fp16 and args.level == "O0")',
                ),
            ),
        },
    ),
    Training(
        "two flags that amp.initialize is given",
        files(_SWITCH_BEFORE),
        files(_SWITCH_AFTER),
        {
            "one of them": (
                ("GradScaler(enabled=args.fp16 and args.cuda)", "GradScaler(enabled=args.fp16)"),
            ),
            "the other one": (
                ("GradScaler(enabled=args.fp16 and args.cuda)", "GradScaler(enabled=args.cuda)"),
            ),
        },
    ),
    Training(
        "a flag under the test of another one",
        files(_NESTED_BEFORE),
        files(_NESTED_AFTER),
        {
            "the inner one alone": (
                ("GradScaler(enabled=args.cuda and args.fp16)", "GradScaler(enabled=args.fp16)"),
            ),
            "the outer one alone": (
                ("GradScaler(enabled=args.cuda and args.fp16)", "GradScaler(enabled=args.cuda)"),
            ),
        },
    ),
    Training(
        "a variable that two flags make",
        files(_COPY_BEFORE),
        files(_COPY_AFTER),
        {
            "one of them": (("GradScaler(enabled=use)", "GradScaler(enabled=args.fp16)"),),
            "the other one": (("GradScaler(enabled=use)", "GradScaler(enabled=args.cuda)"),),
            "the variable turned round": (
                ("GradScaler(enabled=use)", "GradScaler(enabled=not use)"),
            ),
        },
    ),
    Training(
        "either of two flags",
        files(_EITHER_BEFORE),
        files(_EITHER_AFTER),
        {
            "one of them": (
                ("GradScaler(enabled=args.fp16 or args.cuda)", "GradScaler(enabled=args.fp16)"),
            ),
            "both of them": (
                (
                    "GradScaler(enabled=args.fp16 or args.cuda)",
                    "GradScaler(enabled=args.fp16 and args.cuda)",
                ),
            ),
        },
    ),
)
