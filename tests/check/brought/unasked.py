"""A test is dropped, or always true, above a statement that reads otherwise for AMP."""

from __future__ import annotations

from check.trainings.planted import Training, files

_SCRIPT_BEFORE = """
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp
from torch.utils.tensorboard import SummaryWriter


def train(args, model, loader, ema):
    writer = SummaryWriter()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    sched = torch.optim.lr_scheduler.StepLR(opt, 1)
    model, opt = amp.initialize(model, opt, opt_level="O1")
    if args.resume:
        state = torch.load(args.resume)
        model.load_state_dict(state["model"])
        amp.load_state_dict(state["amp"])
    it = 0
    while it < args.iters:
        for x, y in loader:
            loss = F.mse_loss(model(x), y)
            if args.weighted:
                loss = loss * args.weight
            opt.zero_grad()
            with amp.scale_loss(loss, opt) as scaled_loss:
                scaled_loss.backward()
            if args.clip > 0:
                torch.nn.utils.clip_grad_norm_(amp.master_params(opt), args.clip)
            if it % args.every == 0:
                writer.add_scalar("loss", scaled_loss.item(), it)
            opt.step()
            if args.ema:
                ema.update(amp.master_params(opt))
            if it > 10:
                sched.step()
            it += 1
        if it % args.save == 0:
            torch.save({"model": model.state_dict(), "amp": amp.state_dict()}, args.out)
"""

_SCRIPT_AFTER = """
# file: train.py
import torch
import torch.nn.functional as F
from torch.utils.tensorboard import SummaryWriter


def train(args, model, loader, ema):
    writer = SummaryWriter()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    sched = torch.optim.lr_scheduler.StepLR(opt, 1)
    scaler = torch.cuda.amp.GradScaler()
    if args.resume:
        state = torch.load(args.resume)
        model.load_state_dict(state["model"])
        scaler.load_state_dict(state["amp"])
    it = 0
    while it < args.iters:
        for x, y in loader:
            with torch.cuda.amp.autocast():
                loss = F.mse_loss(model(x), y)
                if args.weighted:
                    loss = loss * args.weight
            opt.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(opt)
            if args.clip > 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            if it % args.every == 0:
                writer.add_scalar("loss", loss.item() * scaler.get_scale(), it)
            scaler.step(opt)
            scaler.update()
            if args.ema:
                ema.update(model.parameters())
            if it > 10:
                sched.step()
            it += 1
        if it % args.save == 0:
            torch.save({"model": model.state_dict(), "amp": scaler.state_dict()}, args.out)
"""

_GAN_BEFORE = """
# file: gan.py
import torch
from apex import amp


def step(args, gen, disc, g_opt, d_opt, real, z, i, hist):
    d_opt.zero_grad()
    fake = gen(z)
    d = disc(fake.detach()).mean() - disc(real).mean()
    with amp.scale_loss(d, d_opt, loss_id=0) as s:
        s.backward()
    d_opt.step()
    if args.clamp:
        for p in amp.master_params(d_opt):
            p.data.clamp_(-args.clamp, args.clamp)
    if i % 5 == 0:
        g_opt.zero_grad()
        g = -disc(gen(z)).mean()
        if args.penalty:
            g = g + args.penalty * sum(p.pow(2).sum() for p in amp.master_params(g_opt))
        with amp.scale_loss(g, g_opt, loss_id=1) as s:
            s.backward()
        g_opt.step()
    if hist is not None and i % 10 == 0:
        hist.append(sum(p.abs().sum().item() for p in amp.master_params(d_opt)))
    assert i >= 0
    if args.dry:
        return None
    return d.item()


def main(args, gen, disc, data):
    g_opt = torch.optim.Adam(gen.parameters())
    d_opt = torch.optim.Adam(disc.parameters())
    (gen, disc), (g_opt, d_opt) = amp.initialize([gen, disc], [g_opt, d_opt], opt_level="O1", num_losses=2)
    hist = []
    for i, (real, z) in enumerate(data):
        step(args, gen, disc, g_opt, d_opt, real, z, i, hist)
"""

_GAN_AFTER = """
# file: gan.py
import torch


def step(args, gen, disc, g_opt, d_opt, real, z, i, hist, scaler_d, scaler_g):
    d_opt.zero_grad()
    with torch.cuda.amp.autocast():
        fake = gen(z)
        d = disc(fake.detach()).mean() - disc(real).mean()
    scaler_d.scale(d).backward()
    scaler_d.step(d_opt)
    scaler_d.update()
    if args.clamp:
        for p in disc.parameters():
            p.data.clamp_(-args.clamp, args.clamp)
    if i % 5 == 0:
        g_opt.zero_grad()
        with torch.cuda.amp.autocast():
            g = -disc(gen(z)).mean()
            if args.penalty:
                g = g + args.penalty * sum(p.pow(2).sum() for p in gen.parameters())
        scaler_g.scale(g).backward()
        scaler_g.step(g_opt)
        scaler_g.update()
    if hist is not None and i % 10 == 0:
        hist.append(sum(p.abs().sum().item() for p in disc.parameters()))
    assert i >= 0
    if args.dry:
        return None
    return d.item()


def main(args, gen, disc, data):
    g_opt = torch.optim.Adam(gen.parameters())
    d_opt = torch.optim.Adam(disc.parameters())
    scaler_d = torch.cuda.amp.GradScaler()
    scaler_g = torch.cuda.amp.GradScaler()
    hist = []
    for i, (real, z) in enumerate(data):
        step(args, gen, disc, g_opt, d_opt, real, z, i, hist, scaler_d, scaler_g)
"""

UNASKED = (
    Training(
        "a script with statements under tests",
        files(_SCRIPT_BEFORE),
        files(_SCRIPT_AFTER),
        {
            "log dropped": (
                (
                    '            if it % args.every == 0:\n                writer.add_scalar("loss", loss.item() * scaler.get_scale(), it)\n',
                    '            writer.add_scalar("loss", loss.item() * scaler.get_scale(), it)\n',
                ),
            ),
            "log True": (("if it % args.every == 0:", "if True:"),),
            "ema dropped": (
                (
                    "            if args.ema:\n                ema.update(model.parameters())\n",
                    "            ema.update(model.parameters())\n",
                ),
            ),
            "ema True": (("if args.ema:", "if True:"),),
            "ema and": (("if args.ema:", "if args.ema and it > 10:"),),
        },
    ),
    Training(
        "two networks with statements under tests",
        files(_GAN_BEFORE),
        files(_GAN_AFTER),
        {
            "clamp dropped": (
                (
                    "    if args.clamp:\n        for p in disc.parameters():\n            p.data.clamp_(-args.clamp, args.clamp)\n",
                    "    for p in disc.parameters():\n        p.data.clamp_(-args.clamp, args.clamp)\n",
                ),
            ),
            "penalty True": (("if args.penalty:", "if True:"),),
            "penalty dropped": (
                (
                    "            if args.penalty:\n                g = g + args",
                    "            g = g + args",
                ),
            ),
            "hist part": (("if hist is not None and i % 10 == 0", "if hist is not None"),),
            "hist True": (("if hist is not None and i % 10 == 0:", "if True:"),),
        },
    ),
)
