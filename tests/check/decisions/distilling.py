"""Distillation over two files, with accumulation, a clip, a schedule and checkpoints: decisions of a planner, each taken wrongly."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """
# file: engine.py
import math
import torch
from apex import amp


def train_one_epoch(model, criterion, loader, optimizer, schedule, epoch, args, writer=None):
    model.train()
    total = 0.0
    for step, batch in enumerate(loader):
        images, targets = (t.cuda(non_blocking=True) for t in batch)
        if args.mixup:
            images, targets = args.mixer(images, targets)
        outputs = model(images)
        loss = criterion(outputs, targets)
        if args.distill:
            with torch.no_grad():
                soft = args.teacher(images).softmax(-1)
            loss = loss + args.weight * torch.nn.functional.kl_div(outputs.log_softmax(-1), soft)
        value = loss.item()
        if not math.isfinite(value):
            print("Loss is", value)
            raise SystemExit(1)
        loss = loss / args.update_freq
        if args.amp:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        if (step + 1) % args.update_freq == 0:
            if args.clip:
                if args.amp:
                    norm = torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), args.clip)
                else:
                    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
                if writer is not None:
                    writer.add_scalar("norm", norm, step)
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
        total += value
    return total / len(loader)


@torch.no_grad()
def evaluate(model, criterion, loader):
    model.eval()
    right = seen = 0
    loss = 0.0
    for images, targets in loader:
        images, targets = images.cuda(), targets.cuda()
        outputs = model(images)
        loss += criterion(outputs, targets).item()
        right += (outputs.argmax(1) == targets).sum().item()
        seen += len(targets)
    return loss / len(loader), right / seen
# file: main.py
import argparse
import torch
from apex import amp
from engine import evaluate, train_one_epoch


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--distill", action="store_true")
    parser.add_argument("--eval", action="store_true")
    parser.add_argument("--resume", default="")
    parser.add_argument("--opt-level", default="O1")
    parser.add_argument("--update_freq", type=int, default=2)
    parser.add_argument("--clip", type=float, default=0.0)
    parser.add_argument("--mixup", action="store_true")
    parser.add_argument("--weight", type=float, default=0.5)
    return parser.parse_args()


def main():
    args = get_args()
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 10)).cuda()
    args.teacher = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 10)).cuda().eval()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    if args.amp:
        model, optimizer = amp.initialize(model, optimizer, opt_level=args.opt_level)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    criterion = torch.nn.CrossEntropyLoss()
    loader = [(torch.randn(4, 3, 4, 4), torch.randint(10, (4,)))] * 8
    if args.resume:
        state = torch.load(args.resume)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        if args.amp:
            amp.load_state_dict(state["amp"])
    if args.eval:
        print(evaluate(model, criterion, loader))
        return
    for epoch in range(3):
        train_one_epoch(model, criterion, loader, optimizer, schedule, epoch, args)
        print(evaluate(model, criterion, loader))
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        if args.amp:
            state["amp"] = amp.state_dict()
        torch.save(state, "last.pt")


if __name__ == "__main__":
    main()
"""
_AFTER = """
# file: engine.py
import math
import torch


def train_one_epoch(model, criterion, loader, optimizer, schedule, epoch, args, writer=None, scaler=None):
    model.train()
    total = 0.0
    for step, batch in enumerate(loader):
        images, targets = (t.cuda(non_blocking=True) for t in batch)
        if args.mixup:
            images, targets = args.mixer(images, targets)
        with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):
            outputs = model(images)
            loss = criterion(outputs, targets)
            if args.distill:
                with torch.no_grad():
                    soft = args.teacher(images).softmax(-1)
                loss = loss + args.weight * torch.nn.functional.kl_div(outputs.log_softmax(-1), soft)
            value = loss.item()
            if not math.isfinite(value):
                print("Loss is", value)
                raise SystemExit(1)
            loss = loss / args.update_freq
        scaler.scale(loss).backward()
        if (step + 1) % args.update_freq == 0:
            if args.clip:
                scaler.unscale_(optimizer)
                norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
                if writer is not None:
                    writer.add_scalar("norm", norm, step)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            schedule.step()
        total += value
    return total / len(loader)


@torch.no_grad()
def evaluate(model, criterion, loader, scaler):
    model.eval()
    right = seen = 0
    loss = 0.0
    for images, targets in loader:
        images, targets = images.cuda(), targets.cuda()
        with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):
            outputs = model(images)
            loss += criterion(outputs, targets).item()
        right += (outputs.argmax(1) == targets).sum().item()
        seen += len(targets)
    return loss / len(loader), right / seen
# file: main.py
import argparse
import torch
from engine import evaluate, train_one_epoch


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--distill", action="store_true")
    parser.add_argument("--eval", action="store_true")
    parser.add_argument("--resume", default="")
    parser.add_argument("--opt-level", default="O1")
    parser.add_argument("--update_freq", type=int, default=2)
    parser.add_argument("--clip", type=float, default=0.0)
    parser.add_argument("--mixup", action="store_true")
    parser.add_argument("--weight", type=float, default=0.5)
    return parser.parse_args()


def main():
    args = get_args()
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 10)).cuda()
    args.teacher = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 10)).cuda().eval()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.cuda.amp.GradScaler(enabled=args.amp and args.opt_level != "O0")
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    criterion = torch.nn.CrossEntropyLoss()
    loader = [(torch.randn(4, 3, 4, 4), torch.randint(10, (4,)))] * 8
    if args.resume:
        state = torch.load(args.resume)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        if args.amp:
            scaler.load_state_dict(state["scaler"])
    if args.eval:
        print(evaluate(model, criterion, loader, scaler))
        return
    for epoch in range(3):
        train_one_epoch(model, criterion, loader, optimizer, schedule, epoch, args, scaler=scaler)
        print(evaluate(model, criterion, loader, scaler))
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        if args.amp:
            state["scaler"] = scaler.state_dict()
        torch.save(state, "last.pt")


if __name__ == "__main__":
    main()
"""
_WRONG = {
    'autocast starts behind the forward': (
        ('        with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):\n            outputs = model(images)\n            loss = criterion', '        outputs = model(images)\n        with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):\n            loss = criterion'),
    ),
    'enabled by the flag alone': (
        ('with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):', 'with torch.cuda.amp.autocast(enabled=args.amp):'),
    ),
    'enabled not at all': (
        ('        with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):\n            outputs = model(images)\n            loss = criterion', '        with torch.cuda.amp.autocast():\n            outputs = model(images)\n            loss = criterion'),
    ),
    'scaler by flag alone': (
        ('enabled=args.amp and args.opt_level != "O0"', 'enabled=args.amp'),
    ),
    'scaler always on': (
        ('GradScaler(enabled=args.amp and args.opt_level != "O0")', 'GradScaler()'),
    ),
    'scaler by other flag': (
        ('enabled=args.amp and args.opt_level != "O0"', 'enabled=args.eval and args.opt_level != "O0"'),
    ),
    'scaler by wrong level': (
        ('args.opt_level != "O0"', 'args.opt_level == "O0"'),
    ),
    'scaler by wrong level 2': (
        ('args.opt_level != "O0"', 'args.opt_level == "O2"'),
    ),
    'unscale behind the clip': (
        ('                scaler.unscale_(optimizer)\n                norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)\n', '                norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)\n                scaler.unscale_(optimizer)\n'),
    ),
    'unscale on every micro batch': (
        ('                scaler.unscale_(optimizer)\n', ''),
        ('        scaler.scale(loss).backward()\n', '        scaler.scale(loss).backward()\n        scaler.unscale_(optimizer)\n'),
    ),
    'update on every micro batch': (
        ('            scaler.update()\n', ''),
        ('        total += value', '        scaler.update()\n        total += value'),
    ),
    'update only with clip': (
        ('            scaler.update()\n', ''),
        ('                if writer is not None:\n', '                scaler.update()\n                if writer is not None:\n'),
    ),
    'update missing': (
        ('            scaler.update()\n', ''),
    ),
    'clip under another test': (
        ('            if args.clip:\n', '            if args.clip and scaler.is_enabled():\n'),
    ),
    'clip by another limit': (
        ('clip_grad_norm_(model.parameters(), args.clip)', 'clip_grad_norm_(model.parameters(), 1.0)'),
    ),
    'evaluate without casts': (
        ('        with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):\n            outputs = model(images)\n            loss += criterion(outputs, targets).item()\n', '        outputs = model(images)\n        loss += criterion(outputs, targets).item()\n'),
    ),
    'evaluate always cast': (
        ('        with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):\n            outputs = model(images)\n            loss +=', '        with torch.cuda.amp.autocast():\n            outputs = model(images)\n            loss +='),
    ),
    'new scaler each epoch': (
        ('        train_one_epoch(', '        scaler = torch.cuda.amp.GradScaler(enabled=args.amp and args.opt_level != "O0")\n        train_one_epoch('),
    ),
    'train without scaler given': (
        ('args, scaler=scaler)', 'args, scaler=torch.cuda.amp.GradScaler(enabled=False))'),
    ),
    'scaler made in the epoch function': (
        ('    total = 0.0\n', '    total = 0.0\n    scaler = torch.cuda.amp.GradScaler(enabled=args.amp and args.opt_level != "O0")\n'),
    ),
    'resume under another test': (
        ('        if args.amp:\n            scaler.load', '        if args.eval:\n            scaler.load'),
    ),
    'saves without amp too': (
        ('        if args.amp:\n            state["scaler"] = scaler.state_dict()\n', '        state["scaler"] = scaler.state_dict()\n'),
    ),
    'saves never': (
        ('        if args.amp:\n            state["scaler"] = scaler.state_dict()\n', ''),
    ),
    'scales before dividing': (
        ('            loss = loss / args.update_freq\n        scaler.scale(loss).backward()', '        scaler.scale(loss).backward()'),
    ),
    'divides twice': (
        ('scaler.scale(loss).backward()', 'scaler.scale(loss / args.update_freq).backward()'),
    ),
    'scales value': (
        ('value = loss.item()', 'value = scaler.scale(loss).item()'),
    ),
    'distill always': (
        ('            if args.distill:\n                with torch.no_grad():', '            if True:\n                with torch.no_grad():'),
    ),
    'teacher uncast': (
        ('                with torch.no_grad():\n                    soft', '                with torch.no_grad(), torch.cuda.amp.autocast(enabled=False):\n                    soft'),
    ),
    'backward in autocast': (
        ('        scaler.scale(loss).backward()', '            scaler.scale(loss).backward()'),
    ),
    'step plainly': (
        ('scaler.step(optimizer)', 'optimizer.step()'),
    ),
    'dtype bf16': (
        ('autocast(enabled=scaler.is_enabled()):\n            outputs = model(images)\n            loss = cr', 'autocast(enabled=scaler.is_enabled(), dtype=torch.bfloat16):\n            outputs = model(images)\n            loss = cr'),
    ),
    'growth': (
        ('GradScaler(enabled', 'GradScaler(growth_interval=1, enabled'),
    ),
    'init scale': (
        ('GradScaler(enabled', 'GradScaler(init_scale=1.0, enabled'),
    ),
    'schedule before': (
        ('            scaler.step(optimizer)\n            scaler.update()\n            optimizer.zero_grad()\n            schedule.step()\n', '            schedule.step()\n            scaler.step(optimizer)\n            scaler.update()\n            optimizer.zero_grad()\n'),
    ),
}  # fmt: skip
DISTILLING = (
    Training(
        "distillation over two files",
        files(_BEFORE),
        files(_AFTER),
        _WRONG,
        (
            ("AMP203", "engine.py", 25, 25, True),
            ("AMP102", "main.py", 25, 25, True),
            ("AMP108", "main.py", 34, 34, True),
            ("AMP123", "engine.py", 17, 17, True),
        ),
    ),
)
