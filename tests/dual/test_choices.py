"""Programs that choose between Apex and native AMP, by tests of every spelling."""

from __future__ import annotations

import pytest

from amp_migrate.engine import migrate
from amp_migrate.outcome import Result
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

START = """\
import torch
from apex import amp


def setup(args, model, optimizer):
    scaler = None
"""
NATIVE_SETUP = "scaler = torch.cuda.amp.GradScaler()"
APEX_SETUP = 'model, optimizer = amp.initialize(model, optimizer, opt_level="O1")'
MIDDLE = """\
    return model, optimizer, scaler


def step(args, model, optimizer, scaler, x):
    optimizer.zero_grad()
    with torch.cuda.amp.autocast(enabled=scaler is not None):
        loss = model(x).mean()
"""
NATIVE_STEP = "scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()"
APEX_STEP = (
    "with amp.scale_loss(loss, optimizer) as scaled_loss:\n"
    "            scaled_loss.backward()\n        optimizer.step()"
)
PLAIN_STEP = "loss.backward(); optimizer.step()"


def chain(*branches: tuple[str, str]) -> str:
    """Return an `if` chain of tests and statements, one level deep; the last test may be empty for an `else`."""
    lines = []
    for number, (test, body) in enumerate(branches):
        word = "else" if not test else f"elif {test}" if number else f"if {test}"
        lines += [f"    {word}:", *(f"        {line}" for line in body.split("; "))]
    return "\n".join(lines) + "\n"


def program(setup: str, step: str) -> str:
    """Return a program with its two chains."""
    return START + setup + MIDDLE + step


def migrated(text: str) -> Result:
    """Return what becomes of a program."""
    return migrate([Source.from_bytes("train.py", text.encode())], Settings())


CHOICES = {
    "by a string": ("args.amp == 'native'", "args.amp == 'apex'"),
    "the other way round": ("'native' == args.amp", "'apex' == args.amp"),
    "by one of several": ("args.amp in ('native', 'torch')", "args.amp in ('apex',)"),
    "by two flags": ("args.native_amp", "args.apex_amp"),
    "by a call": ("args.amp.startswith('native')", "args.amp.startswith('apex')"),
    "by a negated flag": ("not args.apex", "args.apex"),
    "with more asked": ("args.fp16 and args.amp == 'native'", "args.fp16 and args.amp == 'apex'"),
}


@pytest.mark.parametrize("native,apex", CHOICES.values(), ids=CHOICES.keys())
def test_choosing_apex_raises(native: str, apex: str) -> None:
    """The branches for Apex go, and a run that chooses Apex is told."""
    text = program(
        chain((native, NATIVE_SETUP), (apex, APEX_SETUP)),
        chain((native, NATIVE_STEP), (apex, APEX_STEP), ("", PLAIN_STEP)),
    )
    after = migrated(text).outcomes[0].after
    assert after is not None
    assert "apex import" not in after and "amp.initialize" not in after
    assert "scale_loss" not in after
    assert after.count("raise RuntimeError") == 1
    assert NATIVE_STEP.split("; ")[0] in after
    compile(after, "train.py", "exec")


@pytest.mark.parametrize(
    "setup,step",
    [
        (
            chain(("args.apex", APEX_SETUP), ("", NATIVE_SETUP)),
            chain(("args.apex", APEX_STEP), ("", NATIVE_STEP)),
        ),
        (
            chain(("args.native", NATIVE_SETUP), ("", APEX_SETUP)),
            chain(("args.native", NATIVE_STEP), ("", APEX_STEP)),
        ),
        (
            chain(("args.amp != 'apex'", NATIVE_SETUP), ("", APEX_SETUP)),
            chain(("args.amp == 'apex'", APEX_STEP), ("", NATIVE_STEP)),
        ),
        (
            chain(("not args.native", APEX_SETUP), ("", NATIVE_SETUP)),
            chain(("args.native", NATIVE_STEP), ("", APEX_STEP)),
        ),
    ],
)
def test_one_test_with_two_ways(setup: str, step: str) -> None:
    """The way through Apex may be either side of a test, and the same choice may be put otherwise elsewhere."""
    after = migrated(program(setup, step)).outcomes[0].after
    assert after is not None
    assert "scale_loss" not in after and "amp.initialize" not in after
    assert after.count("raise RuntimeError") == 1
    assert "scaler.scale(loss).backward()" in after


def test_a_choice_that_is_not_known_ends_in_the_error_that_stands_there() -> None:
    """A chain that ends in an error needs no other one."""
    unknown = "raise ValueError(args.amp)"
    text = program(
        chain(
            ("args.amp == 'native'", NATIVE_SETUP),
            ("args.amp == 'apex'", APEX_SETUP),
            ("", unknown),
        ),
        chain(("args.amp == 'native'", NATIVE_STEP), ("args.amp == 'apex'", APEX_STEP)),
    )
    after = migrated(text).outcomes[0].after
    assert after is not None
    assert "RuntimeError" not in after and unknown in after
    assert "apex" not in after


BESIDE = {
    "native AMP needs what chooses Apex": program(
        chain(("args.fp16", APEX_SETUP)),
        chain(("args.fp16 and args.native", NATIVE_STEP), ("args.fp16", APEX_STEP)),
    ),
    "no test at all": program(
        f"    {APEX_SETUP}\n",
        f"    {NATIVE_STEP}\n" + "    " + APEX_STEP.replace("\n    ", "\n") + "\n",
    ),
    "what Apex gives is needed": program(
        chain(("args.apex", APEX_SETUP + "; half = True"), ("", NATIVE_SETUP))
        + "    print(half)\n",
        chain(("args.apex", APEX_STEP), ("", NATIVE_STEP)),
    ),
}


@pytest.mark.parametrize("text", BESIDE.values(), ids=BESIDE.keys())
def test_both_ways_stay_where_no_test_chooses_for_certain(text: str) -> None:
    """What was Apex gets a GradScaler of its own, and a note says that there are two ways."""
    result = migrated(text)
    after = result.outcomes[0].after
    assert after is not None and "apex" not in after.replace("args.apex", "")
    assert "grad_scaler = torch" in after and "grad_scaler.scale(loss).backward()" in after
    assert NATIVE_STEP.split("; ")[0] in after
    assert "AMP124" in {f.code for f in result.outcomes[0].findings}


STRATEGIES = """\
import torch
from apex import amp


class Full:
    def prepare(self, model, optimizer):
        return model, optimizer

    def backward(self, loss, optimizer):
        loss.backward()


class Apex(Full):
    def __init__(self):
        self.level = "O1"

    def prepare(self, model, optimizer):
        return amp.initialize(model, optimizer, opt_level=self.level)

    def backward(self, loss, optimizer):
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()


KINDS = {"full": Full, "apex": Apex}


def train(name, model, optimizer, batches):
    MADE
    model, optimizer = strategy.prepare(model, optimizer)
    for x in batches:
        optimizer.zero_grad()
        loss = model(x).mean()
        strategy.backward(loss, optimizer)
        optimizer.step()
"""


@pytest.mark.parametrize(
    "made,left",
    [
        ("strategy = KINDS[name]()", False),
        ("strategy = [KINDS[n]() for n in KINDS][0]", True),
    ],
)
def test_strategies_that_one_call_makes(made: str, left: bool) -> None:
    """One call outside of a loop makes an object of one class; in a loop it may make all of them, which share the casts."""
    found = migrated(STRATEGIES.replace("MADE", made)).plan.findings()
    beside = [f for f in found if f.code == "AMP901" and "beside an object" in f.message]
    assert bool(beside) is left
