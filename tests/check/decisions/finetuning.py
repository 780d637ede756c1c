"""A text classifier in one script, evaluated while it trains and alone: decisions of a planner, each taken wrongly."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """
# file: finetune.py
import argparse
import logging
import torch
from torch.nn.utils import clip_grad_norm_

try:
    from apex import amp
except ImportError:
    amp = None

logger = logging.getLogger(__name__)


def evaluate(args, model, data):
    model.eval()
    losses = []
    for batch in data:
        batch = tuple(t.to(args.device) for t in batch)
        with torch.no_grad():
            loss, logits = model(*batch)
            losses.append(loss.mean().item())
    return sum(losses) / len(losses)


def train(args, model, data, held):
    decay = [p for n, p in model.named_parameters() if "bias" not in n]
    rest = [p for n, p in model.named_parameters() if "bias" in n]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.01}, {"params": rest, "weight_decay": 0.0}], lr=args.lr)
    warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(1.0, i / 10))
    if args.fp16:
        if amp is None:
            raise ImportError("Please install apex from https://www.github.com/nvidia/apex to use fp16 training.")
        model, optimizer = amp.initialize(model, optimizer, opt_level=args.fp16_opt_level)
    if args.n_gpu > 1:
        model = torch.nn.DataParallel(model)
    step = 0
    best = None
    model.zero_grad()
    for epoch in range(args.epochs):
        for i, batch in enumerate(data):
            model.train()
            batch = tuple(t.to(args.device) for t in batch)
            loss, _ = model(*batch)
            if args.n_gpu > 1:
                loss = loss.mean()
            if args.accumulate > 1:
                loss = loss / args.accumulate
            if args.fp16:
                with amp.scale_loss(loss, optimizer) as scaled_loss:
                    scaled_loss.backward()
            else:
                loss.backward()
            if (i + 1) % args.accumulate == 0:
                if args.fp16:
                    clip_grad_norm_(amp.master_params(optimizer), args.max_norm)
                else:
                    clip_grad_norm_(model.parameters(), args.max_norm)
                optimizer.step()
                warm.step()
                model.zero_grad()
                step += 1
                if step % args.log == 0:
                    result = evaluate(args, model, held)
                    logger.info("%s", result)
                    if best is None or result < best:
                        best = result
                        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, args.out)
            if 0 < args.max_steps < step:
                break
        if 0 < args.max_steps < step:
            break
    return step


class Head(torch.nn.Module):
    def __init__(self, width, labels):
        super().__init__()
        self.encode = torch.nn.Linear(width, width)
        self.classify = torch.nn.Linear(width, labels)

    def forward(self, x, y=None):
        logits = self.classify(torch.tanh(self.encode(x)))
        return torch.nn.functional.cross_entropy(logits, y), logits


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--fp16_opt_level", default="O1")
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--log", type=int, default=2)
    parser.add_argument("--max_norm", type=float, default=1.0)
    parser.add_argument("--max_steps", type=int, default=-1)
    parser.add_argument("--out", default="best.pt")
    parser.add_argument("--do_train", action="store_true")
    args = parser.parse_args()
    args.device = torch.device("cuda")
    args.n_gpu = torch.cuda.device_count()
    model = Head(8, 3).to(args.device)
    data = [(torch.randn(4, 8), torch.randint(3, (4,)))] * 6
    if args.do_train:
        train(args, model, data, data)
    print(evaluate(args, model, data))


if __name__ == "__main__":
    main()
"""
_AFTER = """
# file: finetune.py
import argparse
import logging
import torch
from torch.nn.utils import clip_grad_norm_

logger = logging.getLogger(__name__)


def evaluate(args, model, data):
    model.eval()
    losses = []
    for batch in data:
        batch = tuple(t.to(args.device) for t in batch)
        with torch.no_grad():
            with torch.cuda.amp.autocast(enabled=args.do_train and args.fp16 and args.fp16_opt_level != "O0"):
                loss, logits = model(*batch)
            losses.append(loss.mean().item())
    return sum(losses) / len(losses)


def train(args, model, data, held):
    decay = [p for n, p in model.named_parameters() if "bias" not in n]
    rest = [p for n, p in model.named_parameters() if "bias" in n]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.01}, {"params": rest, "weight_decay": 0.0}], lr=args.lr)
    warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(1.0, i / 10))
    scaler = torch.cuda.amp.GradScaler(enabled=args.fp16 and args.fp16_opt_level != "O0")
    if args.n_gpu > 1:
        model = torch.nn.DataParallel(model)
    step = 0
    best = None
    model.zero_grad()
    for epoch in range(args.epochs):
        for i, batch in enumerate(data):
            model.train()
            batch = tuple(t.to(args.device) for t in batch)
            with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):
                loss, _ = model(*batch)
                if args.n_gpu > 1:
                    loss = loss.mean()
                if args.accumulate > 1:
                    loss = loss / args.accumulate
            scaler.scale(loss).backward()
            if (i + 1) % args.accumulate == 0:
                scaler.unscale_(optimizer)
                clip_grad_norm_(model.parameters(), args.max_norm)
                scaler.step(optimizer)
                scaler.update()
                warm.step()
                model.zero_grad()
                step += 1
                if step % args.log == 0:
                    result = evaluate(args, model, held)
                    logger.info("%s", result)
                    if best is None or result < best:
                        best = result
                        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, args.out)
            if 0 < args.max_steps < step:
                break
        if 0 < args.max_steps < step:
            break
    return step


class Head(torch.nn.Module):
    def __init__(self, width, labels):
        super().__init__()
        self.encode = torch.nn.Linear(width, width)
        self.classify = torch.nn.Linear(width, labels)

    def forward(self, x, y=None):
        logits = self.classify(torch.tanh(self.encode(x)))
        return torch.nn.functional.cross_entropy(logits, y), logits


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--fp16_opt_level", default="O1")
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--log", type=int, default=2)
    parser.add_argument("--max_norm", type=float, default=1.0)
    parser.add_argument("--max_steps", type=int, default=-1)
    parser.add_argument("--out", default="best.pt")
    parser.add_argument("--do_train", action="store_true")
    args = parser.parse_args()
    args.device = torch.device("cuda")
    args.n_gpu = torch.cuda.device_count()
    model = Head(8, 3).to(args.device)
    data = [(torch.randn(4, 8), torch.randint(3, (4,)))] * 6
    if args.do_train:
        train(args, model, data, data)
    print(evaluate(args, model, data))


if __name__ == "__main__":
    main()
"""
_WRONG = {
    'unscale at no clip': (
        ('                scaler.unscale_(optimizer)\n', ''),
    ),
    'clip every micro batch': (
        ('                scaler.unscale_(optimizer)\n                clip_grad_norm_(model.parameters(), args.max_norm)\n', ''),
        ('            if (i + 1) % args.accumulate == 0:\n', '            clip_grad_norm_(model.parameters(), args.max_norm)\n            if (i + 1) % args.accumulate == 0:\n'),
    ),
    'update at epoch end': (
        ('                scaler.update()\n', ''),
        ('        if 0 < args.max_steps < step:\n            break\n    return', '        scaler.update()\n        if 0 < args.max_steps < step:\n            break\n    return'),
    ),
    'step at log only': (
        ('                scaler.step(optimizer)\n                scaler.update()\n', '                if step % args.log == 0:\n                    scaler.step(optimizer)\n                    scaler.update()\n'),
    ),
    'autocast on head only': (
        ('                loss, _ = model(*batch)\n                if args.n_gpu', '                if args.n_gpu'),
        ('            with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):\n                if args.n', '            loss, _ = model(*batch)\n            with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):\n                if args.n'),
    ),
    'scaler in the loop': (
        ('        for i, batch in enumerate(data):\n            model.train()', '        scaler = torch.cuda.amp.GradScaler(enabled=args.fp16 and args.fp16_opt_level != "O0")\n        for i, batch in enumerate(data):\n            model.train()'),
    ),
    'scaler by n_gpu': (
        ('GradScaler(enabled=args.fp16 and args.fp16_opt_level != "O0")', 'GradScaler(enabled=args.n_gpu > 1)'),
    ),
    'evaluate in autocast of the loop': (
        ('                    result = evaluate(args, model, held)', '                    with torch.cuda.amp.autocast():\n                        result = evaluate(args, model, held)'),
    ),
    'max_steps test goes': (
        ('            if 0 < args.max_steps < step:\n                break\n        if', '        if'),
    ),
    'warm per micro': (
        ('                warm.step()\n', ''),
        ('            if 0 < args.max_steps < step:\n                break\n        if', '            warm.step()\n            if 0 < args.max_steps < step:\n                break\n        if'),
    ),
    'not cleared at begin': (
        ('    model.zero_grad()\n    for epoch', '    for epoch'),
    ),
}  # fmt: skip
FINETUNING = (
    Training(
        "a text classifier in one script",
        files(_BEFORE),
        files(_AFTER),
        _WRONG,
        (("AMP102", "finetune.py", 26, 26, True), ("AMP203", "finetune.py", 43, 43, True)),
    ),
)
