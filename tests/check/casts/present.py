"""Trainings whose functions get amp or None: what asked which of the two asks whether the scaler is on."""

from __future__ import annotations

from textwrap import dedent

from check.trainings.planted import Training

_BEFORE = """\
    import sys
    import torch
    from apex import amp as apex_amp

    def learn(network, optimizer, batch, amp):
        for _ in range(2 if amp is not None else 1):
            loss = network(batch).mean()
            optimizer.zero_grad()
            if amp is not None:
                with amp.scale_loss(loss, optimizer) as scaled_loss:
                    scaled_loss.backward()
            else:
                loss.backward()
            optimizer.step()
        if not amp:
            print("in full precision")

    def main(network, loader):
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        if "--half" in sys.argv:
            network, optimizer = apex_amp.initialize(network, optimizer, opt_level="O1")
            for batch in loader:
                learn(network, optimizer, batch, apex_amp)
        else:
            for batch in loader:
                learn(network, optimizer, batch, None)
    """
_AFTER = """\
    import sys
    import torch

    def learn(network, optimizer, batch, scaler):
        for _ in range(2 if scaler.is_enabled() else 1):
            with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):
                loss = network(batch).mean()
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        if not scaler.is_enabled():
            print("in full precision")

    def main(network, loader):
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        scaler = torch.cuda.amp.GradScaler(enabled="--half" in sys.argv)
        if "--half" in sys.argv:
            for batch in loader:
                learn(network, optimizer, batch, scaler)
        else:
            for batch in loader:
                learn(network, optimizer, batch, torch.cuda.amp.GradScaler(enabled=False))
    """


def _training() -> Training:
    faults = {
        "rounds by whether the scaler is there": (
            ("2 if scaler.is_enabled() else 1", "2 if scaler is not None else 1"),
        ),
        "a word by whether the scaler is there": (("if not scaler.is_enabled()", "if not scaler"),),
        "a test that can only fail": (("if not scaler.is_enabled()", "if scaler is None"),),
    }
    texts = {"train.py": dedent(_BEFORE)}, {"train.py": dedent(_AFTER)}
    return Training("amp or None of each caller", *texts, faults)


PRESENT = (_training(),)
