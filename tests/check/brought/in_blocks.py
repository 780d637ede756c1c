"""Gradients that are read inside a `scale_loss` block, where Apex had them scaled."""

from __future__ import annotations

from check.trainings.planted import Training, files

_CLIP_BEFORE = """
# file: t.py
import torch
import torch.nn.functional as F
from apex import amp


def train(args, model, loader, log):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    model, opt = amp.initialize(model, opt, opt_level="O1")
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        with amp.scale_loss(loss, opt) as s:
            s.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
"""

_CLIP_MASTER_BEFORE = """
# file: t.py
import torch
import torch.nn.functional as F
from apex import amp


def train(args, model, loader, log):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    model, opt = amp.initialize(model, opt, opt_level="O1")
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        with amp.scale_loss(loss, opt) as s:
            s.backward()
            torch.nn.utils.clip_grad_norm_(amp.master_params(opt), 1.0)
        opt.step()
"""

_VALUE_BEFORE = """
# file: t.py
import torch
import torch.nn.functional as F
from apex import amp


def train(args, model, loader, log):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    model, opt = amp.initialize(model, opt, opt_level="O1")
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        with amp.scale_loss(loss, opt) as s:
            s.backward()
            torch.nn.utils.clip_grad_value_(model.parameters(), 1.0)
        opt.step()
"""

_LOG_BEFORE = """
# file: t.py
import torch
import torch.nn.functional as F
from apex import amp


def train(args, model, loader, log):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    model, opt = amp.initialize(model, opt, opt_level="O1")
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        with amp.scale_loss(loss, opt) as s:
            s.backward()
            log.append(model.weight.grad.norm().item())
        opt.step()
"""

_EDIT_BEFORE = """
# file: t.py
import torch
import torch.nn.functional as F
from apex import amp


def train(args, model, loader, log):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    model, opt = amp.initialize(model, opt, opt_level="O1")
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        with amp.scale_loss(loss, opt) as s:
            s.backward()
            model.weight.grad.clamp_(-1, 1)
        opt.step()
"""

_HELPER_BEFORE = """
# file: t.py
import torch
import torch.nn.functional as F
from apex import amp


def train(args, model, loader, log):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    model, opt = amp.initialize(model, opt, opt_level="O1")
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        with amp.scale_loss(loss, opt) as s:
            s.backward()
            log.grads(model)
        opt.step()
"""

_FUNCTION_BEFORE = """
# file: t.py
import torch
import torch.nn.functional as F
from apex import amp


def look(model, log):
    for p in model.parameters():
        log.append(p.grad.abs().max())


def train(args, model, loader, log):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    model, opt = amp.initialize(model, opt, opt_level="O1")
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        with amp.scale_loss(loss, opt) as s:
            s.backward()
            look(model, log)
        opt.step()
"""

IN_BLOCKS = (
    Training(
        "clip inside the block",
        files(_CLIP_BEFORE),
        files(_CLIP_BEFORE),
        {
            "after": (
                (
                    'import torch\nimport torch.nn.functional as F\nfrom apex import amp\n\n\ndef train(args, model, loader, log):\n    opt = torch.optim.SGD(model.parameters(), lr=0.1)\n    model, opt = amp.initialize(model, opt, opt_level="O1")\n    for x, y in loader:\n        loss = F.mse_loss(model(x), y)\n        opt.zero_grad()\n        with amp.scale_loss(loss, opt) as s:\n            s.backward()\n            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n        opt.step()\n',
                    "import torch\nimport torch.nn.functional as F\n\n\ndef train(args, model, loader, log):\n    opt = torch.optim.SGD(model.parameters(), lr=0.1)\n    scaler = torch.cuda.amp.GradScaler()\n    for x, y in loader:\n        with torch.cuda.amp.autocast():\n            loss = F.mse_loss(model(x), y)\n        opt.zero_grad()\n        scaler.scale(loss).backward()\n        scaler.unscale_(opt)\n        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n        scaler.step(opt)\n        scaler.update()\n",
                ),
            ),
        },
    ),
    Training(
        "clip master inside the block",
        files(_CLIP_MASTER_BEFORE),
        files(_CLIP_MASTER_BEFORE),
        {
            "after": (
                (
                    'import torch\nimport torch.nn.functional as F\nfrom apex import amp\n\n\ndef train(args, model, loader, log):\n    opt = torch.optim.SGD(model.parameters(), lr=0.1)\n    model, opt = amp.initialize(model, opt, opt_level="O1")\n    for x, y in loader:\n        loss = F.mse_loss(model(x), y)\n        opt.zero_grad()\n        with amp.scale_loss(loss, opt) as s:\n            s.backward()\n            torch.nn.utils.clip_grad_norm_(amp.master_params(opt), 1.0)\n        opt.step()\n',
                    "import torch\nimport torch.nn.functional as F\n\n\ndef train(args, model, loader, log):\n    opt = torch.optim.SGD(model.parameters(), lr=0.1)\n    scaler = torch.cuda.amp.GradScaler()\n    for x, y in loader:\n        with torch.cuda.amp.autocast():\n            loss = F.mse_loss(model(x), y)\n        opt.zero_grad()\n        scaler.scale(loss).backward()\n        scaler.unscale_(opt)\n        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n        scaler.step(opt)\n        scaler.update()\n",
                ),
            ),
        },
    ),
    Training(
        "value inside the block",
        files(_VALUE_BEFORE),
        files(_VALUE_BEFORE),
        {
            "after": (
                (
                    'import torch\nimport torch.nn.functional as F\nfrom apex import amp\n\n\ndef train(args, model, loader, log):\n    opt = torch.optim.SGD(model.parameters(), lr=0.1)\n    model, opt = amp.initialize(model, opt, opt_level="O1")\n    for x, y in loader:\n        loss = F.mse_loss(model(x), y)\n        opt.zero_grad()\n        with amp.scale_loss(loss, opt) as s:\n            s.backward()\n            torch.nn.utils.clip_grad_value_(model.parameters(), 1.0)\n        opt.step()\n',
                    "import torch\nimport torch.nn.functional as F\n\n\ndef train(args, model, loader, log):\n    opt = torch.optim.SGD(model.parameters(), lr=0.1)\n    scaler = torch.cuda.amp.GradScaler()\n    for x, y in loader:\n        with torch.cuda.amp.autocast():\n            loss = F.mse_loss(model(x), y)\n        opt.zero_grad()\n        scaler.scale(loss).backward()\n        scaler.unscale_(opt)\n        torch.nn.utils.clip_grad_value_(model.parameters(), 1.0)\n        scaler.step(opt)\n        scaler.update()\n",
                ),
            ),
        },
    ),
    Training(
        "log inside the block",
        files(_LOG_BEFORE),
        files(_LOG_BEFORE),
        {
            "after": (
                (
                    'import torch\nimport torch.nn.functional as F\nfrom apex import amp\n\n\ndef train(args, model, loader, log):\n    opt = torch.optim.SGD(model.parameters(), lr=0.1)\n    model, opt = amp.initialize(model, opt, opt_level="O1")\n    for x, y in loader:\n        loss = F.mse_loss(model(x), y)\n        opt.zero_grad()\n        with amp.scale_loss(loss, opt) as s:\n            s.backward()\n            log.append(model.weight.grad.norm().item())\n        opt.step()\n',
                    "import torch\nimport torch.nn.functional as F\n\n\ndef train(args, model, loader, log):\n    opt = torch.optim.SGD(model.parameters(), lr=0.1)\n    scaler = torch.cuda.amp.GradScaler()\n    for x, y in loader:\n        with torch.cuda.amp.autocast():\n            loss = F.mse_loss(model(x), y)\n        opt.zero_grad()\n        scaler.scale(loss).backward()\n        scaler.unscale_(opt)\n        log.append(model.weight.grad.norm().item())\n        scaler.step(opt)\n        scaler.update()\n",
                ),
            ),
        },
    ),
    Training(
        "edit inside the block",
        files(_EDIT_BEFORE),
        files(_EDIT_BEFORE),
        {
            "after": (
                (
                    'import torch\nimport torch.nn.functional as F\nfrom apex import amp\n\n\ndef train(args, model, loader, log):\n    opt = torch.optim.SGD(model.parameters(), lr=0.1)\n    model, opt = amp.initialize(model, opt, opt_level="O1")\n    for x, y in loader:\n        loss = F.mse_loss(model(x), y)\n        opt.zero_grad()\n        with amp.scale_loss(loss, opt) as s:\n            s.backward()\n            model.weight.grad.clamp_(-1, 1)\n        opt.step()\n',
                    "import torch\nimport torch.nn.functional as F\n\n\ndef train(args, model, loader, log):\n    opt = torch.optim.SGD(model.parameters(), lr=0.1)\n    scaler = torch.cuda.amp.GradScaler()\n    for x, y in loader:\n        with torch.cuda.amp.autocast():\n            loss = F.mse_loss(model(x), y)\n        opt.zero_grad()\n        scaler.scale(loss).backward()\n        scaler.unscale_(opt)\n        model.weight.grad.clamp_(-1, 1)\n        scaler.step(opt)\n        scaler.update()\n",
                ),
            ),
        },
    ),
    Training(
        "helper inside the block",
        files(_HELPER_BEFORE),
        files(_HELPER_BEFORE),
        {
            "after": (
                (
                    'import torch\nimport torch.nn.functional as F\nfrom apex import amp\n\n\ndef train(args, model, loader, log):\n    opt = torch.optim.SGD(model.parameters(), lr=0.1)\n    model, opt = amp.initialize(model, opt, opt_level="O1")\n    for x, y in loader:\n        loss = F.mse_loss(model(x), y)\n        opt.zero_grad()\n        with amp.scale_loss(loss, opt) as s:\n            s.backward()\n            log.grads(model)\n        opt.step()\n',
                    "import torch\nimport torch.nn.functional as F\n\n\ndef train(args, model, loader, log):\n    opt = torch.optim.SGD(model.parameters(), lr=0.1)\n    scaler = torch.cuda.amp.GradScaler()\n    for x, y in loader:\n        with torch.cuda.amp.autocast():\n            loss = F.mse_loss(model(x), y)\n        opt.zero_grad()\n        scaler.scale(loss).backward()\n        scaler.unscale_(opt)\n        log.grads(model)\n        scaler.step(opt)\n        scaler.update()\n",
                ),
            ),
        },
    ),
    Training(
        "function inside the block",
        files(_FUNCTION_BEFORE),
        files(_FUNCTION_BEFORE),
        {
            "after": (
                (
                    'import torch\nimport torch.nn.functional as F\nfrom apex import amp\n\n\ndef look(model, log):\n    for p in model.parameters():\n        log.append(p.grad.abs().max())\n\n\ndef train(args, model, loader, log):\n    opt = torch.optim.SGD(model.parameters(), lr=0.1)\n    model, opt = amp.initialize(model, opt, opt_level="O1")\n    for x, y in loader:\n        loss = F.mse_loss(model(x), y)\n        opt.zero_grad()\n        with amp.scale_loss(loss, opt) as s:\n            s.backward()\n            look(model, log)\n        opt.step()\n',
                    "import torch\nimport torch.nn.functional as F\n\n\ndef look(model, log):\n    for p in model.parameters():\n        log.append(p.grad.abs().max())\n\n\ndef train(args, model, loader, log):\n    opt = torch.optim.SGD(model.parameters(), lr=0.1)\n    scaler = torch.cuda.amp.GradScaler()\n    for x, y in loader:\n        with torch.cuda.amp.autocast():\n            loss = F.mse_loss(model(x), y)\n        opt.zero_grad()\n        scaler.scale(loss).backward()\n        scaler.unscale_(opt)\n        look(model, log)\n        scaler.step(opt)\n        scaler.update()\n",
                ),
            ),
        },
    ),
)
