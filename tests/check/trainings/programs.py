"""Programs with several initializes, and helpers that programs without Apex share, with faults planted into them."""

from __future__ import annotations

from textwrap import dedent

from check.trainings.planted import Training

_PREDICT_BEFORE = """
    import torch
    from apex import amp

    def get_model(args, training):
        model = torch.nn.Linear(4, 1)
        if training:
            optimizer = torch.optim.Adam(model.parameters())
            if args.apex:
                model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
            return model, optimizer
        if args.apex:
            model = amp.initialize(model, opt_level="O1")
        return model, None

    def train(args, loader):
        model, optimizer = get_model(args, True)
        for x in loader:
            optimizer.zero_grad()
            loss = model(x).mean()
            if args.apex:
                with amp.scale_loss(loss, optimizer) as scaled_loss:
                    scaled_loss.backward()
            else:
                loss.backward()
            optimizer.step()

    def predict(args, loader):
        model, _ = get_model(args, False)
        with torch.no_grad():
            for x in loader:
                print(model(x).mean().item())

    def main(args, loader):
        if args.mode == "train":
            train(args, loader)
        else:
            predict(args, loader)
"""
_PREDICT_AFTER = """
    import torch

    def get_model(args, training):
        model = torch.nn.Linear(4, 1)
        scaler = torch.cuda.amp.GradScaler(enabled=args.apex)
        if training:
            optimizer = torch.optim.Adam(model.parameters())
            return model, optimizer, scaler
        return model, None, scaler

    def train(args, loader):
        model, optimizer, scaler = get_model(args, True)
        for x in loader:
            optimizer.zero_grad()
            with torch.cuda.amp.autocast(enabled=args.apex):
                loss = model(x).mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

    def predict(args, loader):
        model, _, scaler = get_model(args, False)
        with torch.no_grad():
            for x in loader:
                with torch.cuda.amp.autocast(enabled=args.apex):
                    print(model(x).mean().item())

    def main(args, loader):
        if args.mode == "train":
            train(args, loader)
        else:
            predict(args, loader)
"""
_LAST_CASTS = (
    "                with torch.cuda.amp.autocast(enabled=args.apex):\n                    print("
)
_TURNS_BEFORE = """
    import torch
    from apex import amp

    def predict(model, loader):
        with torch.no_grad():
            for x in loader:
                print(model(x))

    def main(args, model, loader):
        if args.do_train:
            optimizer = torch.optim.Adam(model.parameters())
            if args.fp16:
                model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
            for x in loader:
                optimizer.zero_grad()
                loss = model(x).sum()
                if args.fp16:
                    with amp.scale_loss(loss, optimizer) as scaled_loss:
                        scaled_loss.backward()
                else:
                    loss.backward()
                optimizer.step()
        elif args.fp16:
            model = amp.initialize(model, opt_level="O1")
        predict(model, loader)
"""
_TURNS_AFTER = """
    import torch

    def predict(model, loader, half):
        with torch.no_grad():
            for x in loader:
                with torch.cuda.amp.autocast(enabled=half):
                    print(model(x))

    def main(args, model, loader):
        scaler = torch.cuda.amp.GradScaler(enabled=args.do_train and args.fp16)
        if args.do_train:
            optimizer = torch.optim.Adam(model.parameters())
            for x in loader:
                optimizer.zero_grad()
                with torch.cuda.amp.autocast(enabled=args.fp16):
                    loss = model(x).sum()
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
        predict(model, loader, args.fp16)
"""
_HALF = ("autocast(enabled=half)", "autocast(enabled=scaler.is_enabled())")

_SHARED_BEFORE = """
    # file: common.py
    import torch

    def scores(options, network, loader):
        with torch.no_grad():
            return [network(x) for x in loader]

    def report(options, network, loader):
        return scores(options, network, loader)

    # file: fit.py
    import argparse
    import torch
    from apex import amp
    from common import report

    parser = argparse.ArgumentParser()
    parser.add_argument("--half", action="store_true")
    options = parser.parse_args()
    network = torch.nn.Linear(4, 3)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    if options.half:
        network, optimizer = amp.initialize(network, optimizer, opt_level="O1")
    for x in [torch.randn(3, 4)]:
        optimizer.zero_grad()
        loss = network(x).mean()
        if options.half:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        optimizer.step()
    print(report(options, network, [torch.randn(3, 4)]))

    # file: score.py
    import argparse
    import torch
    from common import report

    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--weights")
        options = parser.parse_args()
        print(report(options, torch.nn.Linear(4, 3), [torch.randn(3, 4)]))
"""
_SHARED_AFTER = """
    # file: common.py
    import torch

    def scores(options, network, loader, half=False):
        with torch.no_grad(), torch.cuda.amp.autocast(enabled=half):
            return [network(x) for x in loader]

    def report(options, network, loader, half=False, scaler=None):
        return scores(options, network, loader, half)

    # file: fit.py
    import argparse
    import torch
    from common import report

    parser = argparse.ArgumentParser()
    parser.add_argument("--half", action="store_true")
    options = parser.parse_args()
    network = torch.nn.Linear(4, 3)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=options.half)
    for x in [torch.randn(3, 4)]:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast(enabled=options.half):
            loss = network(x).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    print(report(options, network, [torch.randn(3, 4)], options.half, scaler))

    # file: score.py
    import argparse
    import torch
    from common import report

    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--weights")
        options = parser.parse_args()
        print(report(options, torch.nn.Linear(4, 3), [torch.randn(3, 4)]))
"""


def _training(
    name: str, before: str, after: str, **faults: tuple[tuple[str, str], ...]
) -> Training:
    table = {fault.replace("_", " "): edits for fault, edits in faults.items()}
    return Training(name, _files(before), _files(after), table)


def _files(text: str) -> dict[str, str]:
    """Split a text into files at lines ``# file: name``; it is ``train.py`` where there is none."""
    first, *others = dedent(text).split("# file: ")
    named = (part.partition("\n") for part in others)
    return {name: body for name, _, body in named} or {"train.py": first}


def _flat(*pairs: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((old.replace("\n    ", "\n")[4:], new) for old, new in pairs)


PROGRAMS = (
    _training(
        "a model that is initialized to train or to predict",
        _PREDICT_BEFORE,
        _PREDICT_AFTER,
        the_prediction_loses_its_casts=_flat(
            (_LAST_CASTS, "            if True:\n                print(")
        ),
        the_training_loses_its_casts=(
            ("enabled=args.apex):\n            loss", "enabled=False):\n            loss"),
        ),
    ),
    _training(
        "a second initialize for predictions alone",
        _TURNS_BEFORE,
        _TURNS_AFTER,
        predictions_are_cast_after_a_training_alone=(
            _HALF,
            ("loader, half)", "loader, scaler)"),
            ("loader, args.fp16)", "loader, scaler)"),
        ),
        no_training_is_scaled=(("enabled=args.do_train and args.fp16", "enabled=False"),),
    ),
    _training(
        "a helper that a program without Apex shares",
        _SHARED_BEFORE,
        _SHARED_AFTER,
        a_flag_of_the_other_program_is_read=(("enabled=half", "enabled=options.half"),),
        a_scaler_is_used_that_the_other_program_does_not_pass=(
            (
                "    return scores(options, network, loader, half)",
                "    return scores(options, network, loader, scaler.is_enabled())",
            ),
        ),
    ),
)
