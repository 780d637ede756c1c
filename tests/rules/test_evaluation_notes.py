"""What the findings about evaluations out of reach say of the types there."""

from __future__ import annotations

from pathlib import Path

import pytest

from amp_migrate.engine import migrate
from amp_migrate.plan.model import Status
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

FIXTURES = Path(__file__).parents[2] / "fixtures"


def test_a_softmax_ran_in_fp32_under_apex_and_a_forward_in_fp16() -> None:
    """Each finding names the type that Apex used there, and the spelling of the written code."""
    text = (FIXTURES / "evaluate/softmax_where_weights_are_loaded/before.py").read_bytes()
    result = migrate([Source.from_bytes("a.py", text)], Settings(api="torch.amp"))
    forward, softmax = (f for f in result.plan.findings() if f.code == "AMP107" and f.advice)
    assert "ran in fp16 under Apex" in forward.message
    assert "computed in fp32 under Apex" in softmax.message
    assert all(
        '`with torch.amp.autocast("cuda", enabled=...):`' in f.advice for f in (forward, softmax)
    )


PREDICTED = """\
import torch
from apex.fp16_utils import FP16_Optimizer, network_to_half


def train(network, batches, held):
    network = network_to_half(network)
    optimizer = FP16_Optimizer(torch.optim.SGD(network.parameters(), lr=0.1), dynamic_loss_scale=True)
    for x, y in batches:
        loss = torch.nn.functional.mse_loss(network(x).float(), y)
        optimizer.zero_grad()
        optimizer.backward(loss)
        optimizer.step()
    with torch.no_grad():
        return [network(x).cpu() for x in held]
"""


def test_outputs_of_a_network_in_fp16_were_fp16_before() -> None:
    result = migrate([Source.from_bytes("a.py", PREDICTED.encode())], Settings())
    assert all(outcome.after is not None for outcome in result.outcomes)
    assert not [f for f in result.plan.findings() if f.code == "AMP107" and ".cpu()" in f.message]


VALIDATED = """\
import torch
import wandb
from apex import amp

from helpers import prepared, validated


def train(batches, held):
    model = prepared(torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    print(validated(model, held))
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x, y in batches:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
    print(validated(model, held))
    torch.save(model, "model.pt")
    wandb.watch(model)
"""


def test_a_function_out_of_sight_that_gets_the_network_is_named() -> None:
    """Not where Apex was not on yet, nothing of torch, and no logger."""
    result = migrate([Source.from_bytes("a.py", VALIDATED.encode())], Settings())
    notes = [f for f in result.plan.findings() if "is not found here" in f.message]
    assert [(f.span.line, f.message.split()[0]) for f in notes] == [(19, "validated()")]


def test_a_parameter_that_a_test_reads_which_stays_is_not_called_idle() -> None:
    """The backward moves before the test that counts, and the test stays."""
    text = (FIXTURES / "accumulate/helper_counts_for_all/before.py").read_bytes()
    result = migrate([Source.from_bytes("a.py", text)], Settings())
    assert all(outcome.after is not None for outcome in result.outcomes)
    assert not [f for f in result.plan.findings() if "any more" in f.message]


def test_a_network_that_is_initialized_before_it_is_evaluated_is_not_called_cast_without_apex() -> (
    None
):
    """It goes by its own flag, whatever the training before it goes by."""
    text = (FIXTURES / "older/fp16_network_read_back/before.py").read_bytes()
    result = migrate([Source.from_bytes("a.py", text)], Settings())
    assert all(outcome.after is not None for outcome in result.outcomes)
    assert not [f for f in result.plan.findings() if "Apex was never on" in f.message]


SCORED = """\
import torch
from apex.optimizers import FP16_Optimizer, FusedAdam


def main(args, batches, held):
    if args.do_train:
        network = torch.nn.Linear(3, 2)
        if args.fp16:
            network.half()
        network.cuda()
        optimizer = FusedAdam(network.parameters(), lr=0.1)
        if args.fp16:
            optimizer = FP16_Optimizer(optimizer, dynamic_loss_scale=True)
        for x, y in batches:
            loss = torch.nn.functional.mse_loss(network(x), y)
            if args.fp16:
                optimizer.backward(loss)
            else:
                loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        torch.save(network.state_dict(), "net.pt")
    network = torch.nn.Linear(3, 2)
    network.load_state_dict(torch.load("net.pt"))
    if args.fp16:
        network.half()
    network.cuda()
    with torch.no_grad():
        return [network(x) for x in held]
"""


def test_what_only_tests_in_fp16_has_no_loss_scale_to_speak_of() -> None:
    result = migrate([Source.from_bytes("a.py", SCORED.encode())], Settings())
    assert all(outcome.after is not None for outcome in result.outcomes)
    messages = [f.message for f in result.plan.findings() if f.code == "AMP102"]
    assert len([m for m in messages if m.startswith("growth_interval")]) == 1
    assert len([m for m in messages if "weights stay fp32" in m]) == 2


_TRAINER = """\
import os
import sys
import torch
from apex import amp


class Trainer:
    def __init__(self, fp16):
        self.fp16 = fp16
        self.net = torch.nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def train(self, batches):
        if self.fp16:
            self.net, self.optimizer = amp.initialize(self.net, self.optimizer, opt_level="O1")
        for x, y in batches:
            loss = torch.nn.functional.mse_loss(self.net(x), y)
            self.optimizer.zero_grad()
            with amp.scale_loss(loss, self.optimizer) as scaled_loss:
                scaled_loss.backward()
            self.optimizer.step()
        self.evaluate(batches)

    def evaluate(self, batches):
        self.net.eval()
        with torch.no_grad():
            return [self.net(x) for x, _ in batches]


def main(batches, fp16):
    Trainer(fp16).train(batches)


"""
_LAUNCHED = {
    "by a worker or in place": """\
def launch(count, run, args):
    if count > 1:
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            run(*args)
            sys.exit()
        os.execv(sys.executable, sys.argv)
    else:
        run(*args)


launch(torch.cuda.device_count(), main, ([], "--fp16" in sys.argv))
""",
    "under a profiler or without": """\
if "--profile" in sys.argv:
    if torch.cuda.is_available():
        with torch.autograd.profiler.profile():
            main([], "--fp16" in sys.argv)
else:
    main([], "--fp16" in sys.argv)
""",
    "by one of two commands": """\
def resumed(path):
    if os.path.exists(path):
        main(torch.load(path), "--fp16" in sys.argv)


def begun():
    main([], "--fp16" in sys.argv)


{"resume": lambda: resumed("state.pt"), "begin": begun}[sys.argv[1]]()
""",
}


@pytest.mark.parametrize("launch", _LAUNCHED.values(), ids=_LAUNCHED)
def test_what_is_asked_above_the_training_and_its_evaluation_is_asked_for_both(launch: str) -> None:
    result = migrate([Source.from_bytes("a.py", (_TRAINER + launch).encode())], Settings())
    assert all(outcome.after is not None for outcome in result.outcomes)
    assert not [f for f in result.plan.findings() if "leave out what" in f.message]


_ALSO_ALONE = """\
import os
import torch
from apex import amp


def train(net, batches):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
    for x, y in batches:
        loss = torch.nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()


def evaluate(net, batches):
    net.eval()
    with torch.no_grad():
        return [net(x) for x, _ in batches]


net = torch.nn.Linear(4, 2)
if os.environ.get("TRAIN"):
    train(net, [])
evaluate(net, [])
"""


def test_an_evaluation_that_a_run_without_training_comes_to_is_told_of() -> None:
    result = migrate([Source.from_bytes("a.py", _ALSO_ALONE.encode())], Settings())
    assert [f for f in result.plan.findings() if "leave out what" in f.message]


_PAINTING = """\
import torch
from apex import amp


class Pair(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.up = torch.nn.Linear(4, 2), torch.nn.Linear(2, 4)

    def decode(self, codes):
        return self.up(codes)


def decoded(pair, codes):
    return pair.decode(codes)


class Painting:
    def __init__(self, flags):
        self.pair = Pair()
        self.optimizer = torch.optim.SGD(self.pair.parameters(), lr=0.1)
        self.half = flags["half"]
        if self.half:
            self.pair, self.optimizer = amp.initialize(self.pair, self.optimizer, opt_level="O1")

    def learn(self, x):
        loss = torch.nn.functional.mse_loss(self.pair.decode(self.pair.down(x)), x)
        self.optimizer.zero_grad()
        if self.half:
            with amp.scale_loss(loss, self.optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        self.optimizer.step()


"""
_ALWAYS = {
    "        if self.half:\n            self.pair": "        self.pair",
    "        if self.half:\n            with": "        with",
    "    scaled_loss.backward()\n        else:\n            loss.backward()": "scaled_loss.backward()",
}
_DRAWN = {
    "by a method that is kept": """\
def run(flags, batches):
    kept = {"only": Painting(flags)}
    painting = kept["only"]
    for x in batches:
        painting.learn(x)
    decode = painting.pair.decode
    with torch.no_grad():
        for _ in range(3):
            drawn = decode(torch.randn(1, 2))
            print(drawn[0].cpu().numpy())
""",
    "by a helper, in a list": """\
def run(flags, batches):
    kept = {"only": Painting(flags)}
    painting = kept["only"]
    for x in batches:
        painting.learn(x)
    with torch.no_grad():
        rows = [decoded(painting.pair, torch.randn(1, 2))[0] for _ in range(3)]
    print(torch.stack(rows).cpu().numpy())
""",
    "in another function": """\
def drawn(pair):
    with torch.no_grad():
        return pair.decode(torch.randn(1, 2)).squeeze()


def run(flags, batches):
    kept = {"only": Painting(flags)}
    painting = kept["only"]
    for x in batches:
        painting.learn(x)
    print(drawn(painting.pair).cpu().numpy())
""",
}


@pytest.mark.parametrize("run", _DRAWN.values(), ids=_DRAWN)
def test_what_runs_in_fp32_now_gives_no_fp16_to_copy(run: str) -> None:
    """Only the training runs the same functions under autocast."""
    result = migrate([Source.from_bytes("a.py", (_PAINTING + run).encode())], Settings())
    assert all(outcome.after is not None for outcome in result.outcomes)
    notes = [f.message for f in result.plan.findings() if f.code == "AMP107" and f.advice]
    assert any("runs in fp32 now" in message for message in notes)
    assert not [f for f in result.plan.findings() if ".cpu()" in f.message]


@pytest.mark.parametrize("run", _DRAWN.values(), ids=_DRAWN)
def test_what_is_cast_gives_fp16_to_copy(run: str) -> None:
    """The same, where AMP is always on."""
    text = _PAINTING + run
    for old, new in _ALWAYS.items():
        text = text.replace(old, new)
    result = migrate([Source.from_bytes("a.py", text.encode())], Settings())
    assert all(outcome.after is not None for outcome in result.outcomes)
    assert [f for f in result.plan.findings() if "`.cpu()`" in f.message]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("chances_of_the_evaluation_mode", []),
        ("losses_copied_of_a_network_that_computes_them", []),
        ("pictures_blurred_where_they_are_loaded", ["AMP123"]),
        ("method_of_a_plain_base_runs_the_network", ["AMP123"]),
    ],
)
def test_what_was_fp32_before_and_still_is_goes_without_a_word(name: str, told: list[str]) -> None:
    """No finding speaks of fp16 that nothing gives, or of casts that nothing had."""
    folder = FIXTURES / "evaluate" / name
    files = [folder / "before.py"] if (folder / "before.py").exists() else folder.glob("before/*")
    sources = [Source.from_bytes(file.name, file.read_bytes()) for file in sorted(files)]
    result = migrate(sources, Settings(api="torch.cuda.amp"))
    notes = [f for f in result.plan.findings() if f.status is Status.NOTE]
    assert [f.code for f in notes if f.code in ("AMP107", "AMP123")] == told


_HALVED = {
    "nothing": ("self.speller(letters)", None),
    "an output": ("self.speller(letters).half()", "self.speller(letters).half()"),
    "an input of another name": (
        "self.speller.next(kept)",
        "kept",
    ),
}


@pytest.mark.parametrize(("scores", "named"), _HALVED.values(), ids=_HALVED)
def test_what_a_program_makes_fp16_itself_is_named_where_nothing_casts(
    scores: str, named: str | None
) -> None:
    """Layers in fp32 raise for it, where those that Apex cast took it."""
    folder = FIXTURES / "evaluate/spelt_where_the_flag_is_not_known/before"
    files = {path.name: path.read_text() for path in sorted(folder.glob("*.py"))}
    kept = "        kept = self.speller.letters(letters).half()\n        with torch.no_grad():\n"
    files["judge.py"] = files["judge.py"].replace("        with torch.no_grad():\n", kept)
    files["judge.py"] = files["judge.py"].replace("self.speller(letters)", scores)
    sources = [Source.from_bytes(name, text.encode()) for name, text in files.items()]
    result = migrate(sources, Settings())
    notes = [f.message for f in result.plan.findings() if "runs in fp32 now" in f.message]
    assert any(f"`{named}` is fp16 there" in note for note in notes) == (named is not None)


TAUGHT = """\
import argparse

import torch
from apex import amp
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--half", action="store_true")
parser.add_argument("--level", default="O1")


def network(width):
    return nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 2))


def prepared(expert, batches):
    optimizer = torch.optim.SGD(expert.parameters(), lr=0.1)
    for x in batches:
        optimizer.zero_grad()
        expert(x).sum().backward()
        optimizer.step()


def main(args, batches):
    expert = network(8)
    prepared(expert, batches)
    pupil = network(4)
    optimizer = torch.optim.SGD(pupil.parameters(), lr=0.1)
    if args.half:
        pupil, optimizer = amp.initialize(pupil, optimizer, opt_level=args.level)
    for x in batches:
        with torch.no_grad():
            hints = expert(x)
        guesses = pupil(x)
        loss = nn.functional.mse_loss(guesses, hints)
        optimizer.zero_grad()
        if args.half:
            with amp.scale_loss(loss, optimizer) as scaled:
                scaled.backward()
        else:
            loss.backward()
        optimizer.step()


main(parser.parse_args(), [])
"""


def test_what_ran_without_apex_too_is_cast_where_both_its_guard_and_its_level_say_so() -> None:
    """A level has its default in runs without Apex as well, which cast nothing."""
    result = migrate([Source.from_bytes("a.py", TAUGHT.encode())], Settings())
    (told,) = (f for f in result.plan.findings() if f.code == "AMP123")
    assert told.message.startswith("where `args.level` is O2 or O3, Apex left this in fp32")
    assert 'args.half and args.level == "O1"' in (told.advice or "")
