"""The examples that `explain` prints for the rules of `enable` are what the command does, or where the finding comes."""

from __future__ import annotations

import re
import textwrap

import pytest

from amp_migrate.enable.enabling import Choices
from amp_migrate.enable.run import run_texts
from amp_migrate.plan.model import Status
from amp_migrate.report import Report
from amp_migrate.rules import enabling, unenabled
from amp_migrate.rules.base import Safety
from amp_migrate.settings import Settings

RULES = (*enabling.RULES, *unenabled.RULES)
EXAMPLE = "@@"
HEAD = """\
import argparse
import torch
from torch.nn.utils import clip_grad_norm_
model = torch.nn.Linear(4, 2).cuda()
criterion = torch.nn.CrossEntropyLoss()
accumulation_steps = 2
loader = [(torch.randn(8, 4).cuda(), torch.randint(0, 2, (8,)).cuda()) for _ in range(4)]
"""
OPTIMIZER = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
LOOP = "for images, labels in loader:\n    optimizer.zero_grad()\n"
FORWARD = "    output = model(images)\n    loss = criterion(output, labels)\n"
BACKWARD = "    loss.backward()\n"
STEP = "    optimizer.step()\n"
HERE = f"{EXAMPLE}\n"
INSIDE = f"    {EXAMPLE}\n"
START = HEAD + OPTIMIZER
WHOLE = LOOP + FORWARD + BACKWARD + STEP
TRAIN_STEP = """\
    loss = criterion(model(images[0]), images[1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
PROGRAMS = {
    "AMP501": HEAD + HERE + WHOLE,
    "AMP502": START + LOOP + INSIDE + BACKWARD + STEP,
    "AMP503": START + WHOLE + "correct = 0\n" + HERE,
    "AMP504": START + LOOP + FORWARD + INSIDE + STEP,
    "AMP505": START + LOOP + FORWARD + BACKWARD + INSIDE,
    "AMP506": START + LOOP + FORWARD + BACKWARD + INSIDE + STEP,
    "AMP507": START
    + HERE
    + TRAIN_STEP
    + "for batch in loader:\n    train_step(model, optimizer, batch)\n",
    "AMP508": START + WHOLE + HERE,
    "AMP509": HEAD + "parser = argparse.ArgumentParser()\n" + HERE + OPTIMIZER + WHOLE,
    "AMP510": HEAD.replace("torch.nn.Linear(4, 2)", "Net()").replace(
        "model = ",
        "class Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.fc = torch.nn.Linear(4, 2)\n    def forward(self, x):\n"
        f"        scores, mask = self.fc(x), x[:, :2]\n        {EXAMPLE}\n        return scores\nmodel = ",
        1,
    )
    + OPTIMIZER
    + WHOLE,
    "AMP511": START
    + "def train(index):\n    optimizer.zero_grad()\n    output = model(loader[0][0])\n"
    + INSIDE
    + "    loss = criterion(total, loader[0][1])\n    loss.backward()\n    optimizer.step()\n",
    "AMP512": HEAD + HERE + OPTIMIZER + WHOLE,
    "AMP513": START
    + "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)\n"
    + LOOP
    + FORWARD
    + BACKWARD
    + INSIDE,
    "AMP590": "from framework import Trainer\n" + HEAD + "images, labels = loader[0]\n" + HERE,
    "AMP591": START + "images, labels = loader[0]\n" + HERE,
    "AMP592": START + HERE,
    "AMP593": HERE + START + WHOLE,
    "AMP594": HEAD + HERE + WHOLE,
    "AMP596": START + LOOP + FORWARD + BACKWARD + INSIDE,
    "AMP597": HEAD + HERE + OPTIMIZER + WHOLE,
}
DTYPES = {"AMP512": "bfloat16"}
ADDS = [rule.code for rule in RULES if rule.safety is Safety.CHANGES]
LEFT = [code for code in PROGRAMS if code.startswith("AMP59") and code not in ("AMP593", "AMP594")]
LEFT.append("AMP512")


def _code(rule: str, heading: str) -> str:
    doc = next(r.doc for r in RULES if r.code == rule)
    parts = re.split(r"^## (.+)$", doc, flags=re.M)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    return textwrap.dedent(sections[heading].strip("\n")).strip("\n")


def _placed(rule: str, heading: str) -> str:
    line = next(x for x in PROGRAMS[rule].splitlines() if EXAMPLE in x)
    text = textwrap.indent(_code(rule, heading), line.removesuffix(EXAMPLE))
    return PROGRAMS[rule].replace(line, text)


def _report(program: str, rule: str = "") -> Report:
    compile(program, "train.py", "exec")
    return run_texts(
        {"train.py": program.encode()},
        Settings(api="torch.cuda.amp"),
        Choices(DTYPES.get(rule, "float16")),
    )


@pytest.mark.parametrize("rule", ADDS)
def test_example_becomes_what_the_page_says(rule: str) -> None:
    report = _report(_placed(rule, "Example"), rule)
    assert rule in {finding.code for finding in report.findings}
    lines = [line.strip() for line in _code(rule, "Use instead").splitlines()]
    pattern = r"\n\s*".join(map(re.escape, lines))
    assert re.search(pattern, report.changes[0].text), report.changes[0].text


@pytest.mark.parametrize("rule", [code for code in PROGRAMS if code not in ADDS])
def test_finding_of_the_page_comes_at_its_example(rule: str) -> None:
    report = _report(_placed(rule, "Example"), rule)
    first = next(n for n, x in enumerate(PROGRAMS[rule].splitlines(), 1) if EXAMPLE in x)
    lines = range(first, first + len(_code(rule, "Example").splitlines()))
    found = [finding for finding in report.findings if finding.code == rule]
    assert [f for f in found if f.span.line in lines], report.findings
    assert bool(report.changes) == (rule in ("AMP511", "AMP513"))


@pytest.mark.parametrize("rule", LEFT)
def test_what_is_left_is_enabled_as_the_page_says(rule: str) -> None:
    report = _report(_placed(rule, "Use instead"), rule)
    assert [f for f in report.findings if f.status is Status.LEFT] == []
    assert report.changes


def test_every_rule_has_an_example() -> None:
    assert {rule.code for rule in RULES} - {"AMP595"} == set(PROGRAMS)
