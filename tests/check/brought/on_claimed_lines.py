"""Other statements on the lines of clips that a rule moves."""

from __future__ import annotations

from check.trainings.planted import Training, files

_207_LINE_BEFORE = """
# file: t.py
import torch
import torch.nn.functional as F
from apex import amp


def train(args, model, head, loader, log):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    model, opt = amp.initialize(model, opt, opt_level="O1")
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        with amp.scale_loss(loss, opt) as s:
            s.backward()
            norm = torch.nn.utils.clip_grad_norm_(amp.master_params(opt), args.clip); log.append(norm)
        opt.step()
"""

_207_LINE_AFTER = """
# file: t.py
import torch
import torch.nn.functional as F


def train(args, model, head, loader, log):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for x, y in loader:
        with torch.cuda.amp.autocast():
            loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip); log.append(norm)
        scaler.step(opt)
        scaler.update()
"""

_208_LINE_BEFORE = """
# file: t.py
import torch
import torch.nn.functional as F
from apex import amp


def train(args, model, head, loader, log):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    model, opt = amp.initialize(model, opt, opt_level="O1")
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        with amp.scale_loss(loss, opt) as s:
            s.backward()
        norm = torch.nn.utils.clip_grad_norm_(amp.master_params(opt), args.clip); log.append(norm)
        opt.step()
"""

_208_LINE_AFTER = """
# file: t.py
import torch
import torch.nn.functional as F


def train(args, model, head, loader, log):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for x, y in loader:
        with torch.cuda.amp.autocast():
            loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip); log.append(norm)
        scaler.step(opt)
        scaler.update()
"""

_208_MOVED_BEFORE = """
# file: t.py
import torch
import torch.nn.functional as F
from apex import amp


class Run:
    def __init__(self, model, k):
        self.model = model
        self.k = k
        self.opt = torch.optim.SGD(model.parameters(), lr=0.1)
        self.model, self.opt = amp.initialize(self.model, self.opt, opt_level="O1")
        self.norms = []

    def go(self, loader):
        for i, x in enumerate(loader):
            loss = self.model(x).mean() / self.k
            with amp.scale_loss(loss, self.opt) as s:
                s.backward()
            self.norms.append(torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0).item() if self.k else 0)
            if (i + 1) % self.k == 0:
                self.opt.step()
                self.opt.zero_grad()
"""

_208_MOVED_AFTER = """
# file: t.py
import torch
import torch.nn.functional as F


class Run:
    def __init__(self, model, k):
        self.model = model
        self.k = k
        self.opt = torch.optim.SGD(model.parameters(), lr=0.1)
        self.scaler = torch.cuda.amp.GradScaler()
        self.norms = []

    def go(self, loader):
        for i, x in enumerate(loader):
            with torch.cuda.amp.autocast():
                loss = self.model(x).mean() / self.k
            self.scaler.scale(loss).backward()
            if (i + 1) % self.k == 0:
                self.scaler.unscale_(self.opt)
                self.norms.append(torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0).item() if self.k else 0)
                self.scaler.step(self.opt)
                self.scaler.update()
                self.opt.zero_grad()
"""

ON_CLAIMED_LINES = (
    Training(
        "a clip inside the block, logged",
        files(_207_LINE_BEFORE),
        files(_207_LINE_AFTER),
        {
            "log gone": (("; log.append(norm)", ""),),
            "log other": (("log.append(norm)", "log.append(loss)"),),
            "log scaled": (("log.append(norm)", "log.append(norm * 2)"),),
            "foreign": (("log.append(norm)", "model.half()"),),
            "foreign weights": (("log.append(norm)", "model.weight.data.zero_()"),),
            "norm set after": (("log.append(norm)", "norm = norm * 2; log.append(norm)"),),
        },
        (("AMP207", "t.py", 14, 14, True),),
    ),
    Training(
        "a clip on every micro-batch, logged",
        files(_208_LINE_BEFORE),
        files(_208_LINE_AFTER),
        {
            "log gone": (("; log.append(norm)", ""),),
            "log other": (("log.append(norm)", "log.append(loss)"),),
            "log scaled": (("log.append(norm)", "log.append(norm * 2)"),),
            "foreign": (("log.append(norm)", "model.half()"),),
            "foreign weights": (("log.append(norm)", "model.weight.data.zero_()"),),
            "norm set after": (("log.append(norm)", "norm = norm * 2; log.append(norm)"),),
        },
        (("AMP208", "t.py", 14, 14, True),),
    ),
    Training(
        "a clip that moves to the boundary, kept",
        files(_208_MOVED_BEFORE),
        files(_208_MOVED_AFTER),
        {
            "item gone": ((".item() if", ".item() * 2 if"),),
            "into other list": (("self.norms.append(torch", "print(torch"),),
            "foreign": (
                (
                    "self.norms.append(torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0).item() if self.k else 0)",
                    "torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0); self.model.half()",
                ),
            ),
            "else": (("if self.k else 0", "if self.k else 1"),),
        },
        (("AMP208", "t.py", 19, 19, True),),
    ),
)
