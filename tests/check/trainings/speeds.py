"""Two optimizers behind one loss: each steps in every round, on gradients of that round, or they part."""

from __future__ import annotations

from check.trainings.planted import Training, files, skipped_apart

_EMBEDDING_BEFORE = """
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp


def train(loader, rounds):
    model = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Linear(4, 2))
    of_embedding = torch.optim.SGD(model[0].parameters(), lr=0.1)
    of_head = torch.optim.Adam(model[1].parameters())
    model, [of_embedding, of_head] = amp.initialize(
        model, [of_embedding, of_head], opt_level="O1"
    )
    for number, (x, y) in enumerate(loader, 1):
        loss = F.cross_entropy(model(x), y)
        with amp.scale_loss(loss, [of_embedding, of_head]) as scaled_loss:
            scaled_loss.backward()
        of_head.step()
        of_head.zero_grad()
        if number % rounds == 0:
            of_embedding.step()
            of_embedding.zero_grad()
"""
_EMBEDDING_AFTER = """
# file: train.py
import torch
import torch.nn.functional as F


def train(loader, rounds):
    model = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Linear(4, 2))
    of_embedding = torch.optim.SGD(model[0].parameters(), lr=0.1)
    of_head = torch.optim.Adam(model[1].parameters())
    scaler = torch.cuda.amp.GradScaler()
    for number, (x, y) in enumerate(loader, 1):
        with torch.cuda.amp.autocast():
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(of_head)
        of_head.zero_grad()
        if number % rounds == 0:
            scaler.step(of_embedding)
            of_embedding.zero_grad()
        scaler.update()
"""
_EPOCHS_BEFORE = """
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(8, 8)
        self.head = torch.nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.body(x).relu())


def main(loader, epochs):
    net = Net().cuda()
    slow = torch.optim.SGD(net.body.parameters(), lr=0.1)
    fast = torch.optim.SGD(net.head.parameters(), lr=0.1)
    net, (slow, fast) = amp.initialize(net, [slow, fast], opt_level="O1")
    for epoch in range(epochs):
        for x, y in loader:
            loss = F.cross_entropy(net(x), y)
            with amp.scale_loss(loss, [slow, fast]) as scaled:
                scaled.backward()
            fast.step()
            fast.zero_grad()
        slow.step()
        slow.zero_grad()
"""
_EPOCHS_AFTER = """
# file: train.py
import torch
import torch.nn.functional as F


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(8, 8)
        self.head = torch.nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.body(x).relu())


def main(loader, epochs):
    net = Net().cuda()
    slow = torch.optim.SGD(net.body.parameters(), lr=0.1)
    fast = torch.optim.SGD(net.head.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for epoch in range(epochs):
        for x, y in loader:
            with torch.cuda.amp.autocast():
                loss = F.cross_entropy(net(x), y)
            scaler.scale(loss).backward()
            scaler.step(fast)
            scaler.update()
            fast.zero_grad()
        scaler.step(slow)
        scaler.update()
        slow.zero_grad()
"""
_HELPERS_BEFORE = """
# file: steps.py
def slowly(optimizer, number, rounds):
    if number % rounds == 0:
        optimizer.step()
        optimizer.zero_grad()


def at_once(optimizer):
    optimizer.step()
    optimizer.zero_grad()

# file: train.py
import torch
import torch.nn.functional as F
from apex import amp
from steps import at_once, slowly


def main(model, loader):
    words = torch.optim.SGD(model.words.parameters(), lr=1.0)
    rest = torch.optim.Adam(model.rest.parameters())
    model, opts = amp.initialize(model, [words, rest], opt_level="O1")
    words, rest = opts
    number = 0
    for x, y in loader:
        number += 1
        loss = F.cross_entropy(model(x), y)
        with amp.scale_loss(loss, opts) as scaled_loss:
            scaled_loss.backward()
        at_once(rest)
        slowly(words, number, 4)
"""
_HELPERS_AFTER = """
# file: steps.py
def slowly(optimizer, number, rounds, scaler):
    if number % rounds == 0:
        scaler.step(optimizer)
        optimizer.zero_grad()


def at_once(optimizer, scaler):
    scaler.step(optimizer)
    optimizer.zero_grad()

# file: train.py
import torch
import torch.nn.functional as F
from steps import at_once, slowly


def main(model, loader):
    words = torch.optim.SGD(model.words.parameters(), lr=1.0)
    rest = torch.optim.Adam(model.rest.parameters())
    opts = [words, rest]
    scaler = torch.cuda.amp.GradScaler()
    words, rest = opts
    number = 0
    for x, y in loader:
        number += 1
        with torch.cuda.amp.autocast():
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        at_once(rest, scaler)
        slowly(words, number, 4, scaler)
        scaler.update()
"""
_TABLE_BEFORE = """
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp


def train(args, model, loader):
    table = torch.optim.SparseAdam(model.table.parameters())
    dense = torch.optim.AdamW(model.dense.parameters(), lr=args.lr)
    if args.fp16:
        model, [table, dense] = amp.initialize(model, [table, dense], opt_level=args.level)
    for step, batch in enumerate(loader):
        loss = model(**batch)[0]
        if args.fp16:
            with amp.scale_loss(loss, [table, dense]) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        dense.step()
        model.dense.zero_grad()
        if (step + 1) % args.accumulate == 0:
            table.step()
            model.table.zero_grad()
"""
_TABLE_AFTER = """
# file: train.py
import torch
import torch.nn.functional as F


def train(args, model, loader):
    table = torch.optim.SparseAdam(model.table.parameters())
    dense = torch.optim.AdamW(model.dense.parameters(), lr=args.lr)
    scaler = torch.cuda.amp.GradScaler(enabled=args.fp16 and args.level != "O0")
    for step, batch in enumerate(loader):
        with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):
            loss = model(**batch)[0]
        scaler.scale(loss).backward()
        scaler.step(dense)
        model.dense.zero_grad()
        if (step + 1) % args.accumulate == 0:
            scaler.step(table)
            model.table.zero_grad()
        scaler.update()
"""
_SPLIT_BEFORE = """
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp


class Trainer:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader
        slow = [p for n, p in model.named_parameters() if "embed" in n]
        rest = [p for n, p in model.named_parameters() if "embed" not in n]
        self.slow, self.fast = torch.optim.SGD(slow, lr=0.1), torch.optim.Adam(rest)
        self.model, [self.slow, self.fast] = amp.initialize(self.model, [self.slow, self.fast], opt_level="O1")

    def run(self):
        for x, y in self.loader:
            self.learn(x, y)
        self.slow.step()
        self.slow.zero_grad()

    def learn(self, x, y):
        loss = F.cross_entropy(self.model(x), y)
        with amp.scale_loss(loss, [self.slow, self.fast]) as scaled_loss:
            scaled_loss.backward()
        self.fast.step()
        self.fast.zero_grad()
"""
_SPLIT_AFTER = """
# file: train.py
import torch
import torch.nn.functional as F


class Trainer:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader
        slow = [p for n, p in model.named_parameters() if "embed" in n]
        rest = [p for n, p in model.named_parameters() if "embed" not in n]
        self.slow, self.fast = torch.optim.SGD(slow, lr=0.1), torch.optim.Adam(rest)
        self.scaler = torch.cuda.amp.GradScaler()

    def run(self):
        for x, y in self.loader:
            self.scaler.unscale_(self.slow)
            self.learn(x, y)
        self.scaler.step(self.slow)
        self.scaler.update()
        self.slow.zero_grad()

    def learn(self, x, y):
        with torch.cuda.amp.autocast():
            loss = F.cross_entropy(self.model(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.fast)
        self.scaler.update()
        self.fast.zero_grad()
"""
_ALTERNATING_BEFORE = """
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp


def main(model, loader):
    a = torch.optim.SGD(model.a.parameters(), lr=0.1)
    b = torch.optim.SGD(model.b.parameters(), lr=0.1)
    model, [a, b] = amp.initialize(model, [a, b], opt_level="O1")
    for i, (x, y) in enumerate(loader):
        a.zero_grad()
        b.zero_grad()
        loss = F.cross_entropy(model(x), y)
        with amp.scale_loss(loss, [a, b]) as scaled_loss:
            scaled_loss.backward()
        if i % 2:
            a.step()
        else:
            b.step()
"""
_ALTERNATING_AFTER = """
# file: train.py
import torch
import torch.nn.functional as F


def main(model, loader):
    a = torch.optim.SGD(model.a.parameters(), lr=0.1)
    b = torch.optim.SGD(model.b.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for i, (x, y) in enumerate(loader):
        a.zero_grad()
        b.zero_grad()
        with torch.cuda.amp.autocast():
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        if i % 2:
            scaler.step(a)
            scaler.update()
        else:
            scaler.step(b)
            scaler.update()
"""
_EVERY_BEFORE = """
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp


def main(model, loader, warm):
    body = torch.optim.SGD(model.body.parameters(), lr=0.1)
    head = torch.optim.SGD(model.head.parameters(), lr=0.1)
    model, [body, head] = amp.initialize(model, [body, head], opt_level="O1")
    for i, (x, y) in enumerate(loader):
        body.zero_grad()
        head.zero_grad()
        loss = F.cross_entropy(model(x), y)
        with amp.scale_loss(loss, [body, head]) as scaled_loss:
            scaled_loss.backward()
        head.step()
        if (i + 1) % 5 == 0:
            body.step()
"""
_EVERY_AFTER = """
# file: train.py
import torch
import torch.nn.functional as F


def main(model, loader, warm):
    body = torch.optim.SGD(model.body.parameters(), lr=0.1)
    head = torch.optim.SGD(model.head.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for i, (x, y) in enumerate(loader):
        body.zero_grad()
        head.zero_grad()
        with torch.cuda.amp.autocast():
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(head)
        if (i + 1) % 5 == 0:
            scaler.step(body)
        scaler.update()
"""
_FROZEN_BEFORE = """
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp


def main(model, loader, warm):
    body = torch.optim.SGD(model.body.parameters(), lr=0.1)
    head = torch.optim.SGD(model.head.parameters(), lr=0.1)
    model, [body, head] = amp.initialize(model, [body, head], opt_level="O1")
    for epoch in range(9):
        for x, y in loader:
            body.zero_grad()
            head.zero_grad()
            loss = F.cross_entropy(model(x), y)
            with amp.scale_loss(loss, [body, head]) as scaled_loss:
                scaled_loss.backward()
            head.step()
            if epoch >= warm:
                body.step()
"""
_FROZEN_AFTER = """
# file: train.py
import torch
import torch.nn.functional as F


def main(model, loader, warm):
    body = torch.optim.SGD(model.body.parameters(), lr=0.1)
    head = torch.optim.SGD(model.head.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for epoch in range(9):
        for x, y in loader:
            body.zero_grad()
            head.zero_grad()
            with torch.cuda.amp.autocast():
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(head)
            if epoch >= warm:
                scaler.step(body)
            scaler.update()
"""

UNTOLD = (
    Training(
        "two optimizers step in turns", files(_ALTERNATING_BEFORE), files(_ALTERNATING_AFTER), {}
    ),
    Training(
        "one of two optimizers steps in every fifth round",
        files(_EVERY_BEFORE),
        files(_EVERY_AFTER),
        {},
    ),
    Training(
        "one of two optimizers begins to step later",
        files(_FROZEN_BEFORE),
        files(_FROZEN_AFTER),
        {},
    ),
)
SPEEDS = tuple(map(skipped_apart, UNTOLD))
_WRONG = (
    Training(
        "one optimizer accumulates beside another",
        files(_EMBEDDING_BEFORE),
        files(_EMBEDDING_AFTER),
        {},
    ),
    Training(
        "one of two optimizers steps after each epoch",
        files(_EPOCHS_BEFORE),
        files(_EPOCHS_AFTER),
        {},
    ),
    Training(
        "helpers of another file step at two speeds",
        files(_HELPERS_BEFORE),
        files(_HELPERS_AFTER),
        {},
    ),
    Training(
        "parts are cleared through their networks", files(_TABLE_BEFORE), files(_TABLE_AFTER), {}
    ),
    Training("two methods step at two speeds", files(_SPLIT_BEFORE), files(_SPLIT_AFTER), {}),
)
SPEEDS_WRONG = tuple(map(skipped_apart, _WRONG))
