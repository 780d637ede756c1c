"""The examples that `explain` prints are what the tool does, or where the finding comes."""

from __future__ import annotations

import re
import textwrap

import pytest

from amp_migrate.engine import Result, migrate
from amp_migrate.rules import RULES
from amp_migrate.settings import Settings
from amp_migrate.source import Source

HEAD = """\
import argparse
import torch
import torch.nn.functional as F
from torch.nn.utils import clip_grad_norm_
"""
PARTS = """\
parser = argparse.ArgumentParser()
parser.add_argument("--fp16", action="store_true")
args = parser.parse_args()
model = torch.nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
criterion = torch.nn.MSELoss()
accumulation_steps = 2
loader = [(torch.randn(8, 4).cuda(), torch.randn(8, 2).cuda()) for _ in range(4)]
"""
IMPORT = "from apex import amp\n"
INIT = 'model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n'
LOOP = "for i, (images, labels) in enumerate(loader):\n"
FORWARD = "    output = model(images)\n    loss = criterion(output, labels)\n"
ZERO = "    optimizer.zero_grad()\n"
BACKWARD = (
    "    with amp.scale_loss(loss, optimizer) as scaled_loss:\n        scaled_loss.backward()\n"
)
STEP = "    optimizer.step()\n"
START = HEAD + IMPORT + PARTS + INIT
WHOLE = START + LOOP + FORWARD + ZERO + BACKWARD + STEP
NATIVE = HEAD + PARTS + "scaler = torch.cuda.amp.GradScaler()\n"
NATIVE_FORWARD = "    with torch.cuda.amp.autocast():\n        output = model(images)\n        loss = criterion(output, labels)\n"
EXAMPLE = "<example>"
IN_LOOP = f"    {EXAMPLE}"

# Where the example of a rule stands: at the place of <example>, with its indentation.
PROGRAMS = {
    "AMP101": WHOLE.replace(IMPORT, f"{EXAMPLE}\n"),
    "AMP102": WHOLE.replace(INIT, f"{EXAMPLE}\n"),
    "AMP103": WHOLE.replace(BACKWARD, f"{IN_LOOP}\n"),
    "AMP104": WHOLE.replace(FORWARD, f"{IN_LOOP}\n"),
    "AMP105": WHOLE.replace(STEP, f"{IN_LOOP}\n"),
    "AMP106": WHOLE.replace(STEP, f"{IN_LOOP}\n{STEP}"),
    "AMP107": WHOLE
    + f"def evaluate(images):\n    {EXAMPLE}\n    return output\nevaluate(loader[0][0])\n",
    "AMP108": WHOLE + f"{EXAMPLE}\ntorch.save(checkpoint, 'a.pt')\n",
    "AMP110": START.replace(INIT, f"if args.fp16:\n    {INIT}")
    + f"{LOOP}{FORWARD}{ZERO}{IN_LOOP}\n{STEP}",
    "AMP111": WHOLE.replace(INIT, f"{INIT}{EXAMPLE}\n"),
    "AMP115": WHOLE.replace(FORWARD, f"{IN_LOOP}\n"),
    "AMP116": WHOLE.replace(
        BACKWARD, f"    penalty = model(images).pow(2).sum()\n{BACKWARD}{IN_LOOP}\n"
    ),
    "AMP112": WHOLE.replace(
        FORWARD, f"    x, layer = images, model\n{IN_LOOP}\n    loss = y.sum()\n"
    ),
    "AMP201": START + f"{LOOP}{FORWARD}{IN_LOOP}\n",
    "AMP202": START + f"{LOOP}{FORWARD}{IN_LOOP}\n        optimizer.zero_grad()\n",
    "AMP204": START + f"{LOOP}{FORWARD}{IN_LOOP}\n",
    "AMP206": HEAD + IMPORT + PARTS + f"images, labels = loader[0]\n{EXAMPLE}\noptimizer.step()\n",
    "AMP208": START
    + LOOP.replace("i,", "step,")
    + f"{FORWARD}{IN_LOOP}\n        optimizer.zero_grad()\n",
    "AMP211": HEAD
    + IMPORT
    + "from torch.nn.parallel import DistributedDataParallel\n"
    + f"{PARTS}{EXAMPLE}\n{LOOP}{FORWARD}{ZERO}{BACKWARD}{STEP}",
    "AMP302": f"import torch\nimport apex\nmodel = torch.nn.Linear(4, 2)\n{EXAMPLE}\n",
    "AMP305": "import torch\nfrom apex.normalization import FusedRMSNorm\n"
    f"class Block(torch.nn.Module):\n    def __init__(self, dim):\n        super().__init__()\n        {EXAMPLE}\n",
    "AMP307": "import torch\nfrom apex.contrib.xentropy import SoftmaxCrossEntropyLoss\n"
    f"def loss(logits, labels):\n    {EXAMPLE}\n    return losses\n",
    "AMP404": f"{NATIVE}{LOOP}{ZERO}{NATIVE_FORWARD}    penalty = model(images).pow(2).sum()\n{IN_LOOP}\n    scaler.update()\n",
    "AMP405": f"{HEAD}{PARTS}epochs = 2\n{EXAMPLE}\n        scaler.update()\n",
    "AMP406": f"{NATIVE}{EXAMPLE}\n",
    "AMP902": WHOLE.replace(
        BACKWARD, f"{IN_LOOP}\n    with context as scaled_loss:\n        scaled_loss.backward()\n"
    ),
    "AMP203": WHOLE.replace(STEP, f"{IN_LOOP}\n        optimizer.zero_grad()\n")
    .replace(ZERO, "", 1)
    .replace("(output, labels)", "(output, labels) / accumulation_steps"),
    "AMP207": WHOLE.replace(BACKWARD, f"{IN_LOOP}\n"),
    "AMP209": WHOLE.replace(FORWARD + ZERO, f"{IN_LOOP}\n"),
    "AMP210": WHOLE.replace(STEP, f"{IN_LOOP}\n"),
    "AMP212": WHOLE.replace(BACKWARD + STEP, f"{IN_LOOP}\n"),
    "AMP301": f"import torch\nmodel = torch.nn.Linear(4, 2)\n{EXAMPLE}\n",
    "AMP304": f"from apex.optimizers import FusedAdam\nimport torch\nmodel = torch.nn.Linear(4, 2)\n{EXAMPLE}\n",
    "AMP402": f"{NATIVE}{LOOP}{ZERO}{NATIVE_FORWARD}{IN_LOOP}\n    scaler.update()\n",
    "AMP403": f"{NATIVE}{LOOP}{ZERO}{NATIVE_FORWARD}{IN_LOOP}\n",
    "AMP903": WHOLE.replace(INIT, f"{EXAMPLE}\n"),
    "AMP906": WHOLE.replace(STEP, f"    closure = lambda: loss\n{IN_LOOP}\n"),
    "AMP909": WHOLE + f"{EXAMPLE}\n",
    "AMP911": WHOLE.replace("        scaled_loss.backward()\n", f"        {EXAMPLE}\n"),
}
DOCS = {
    rule.code: dict(zip(parts[1::2], parts[2::2], strict=True))
    for rule in RULES
    for parts in [re.split(r"^## (.+)$", rule.doc, flags=re.M)]
}


def code(rule: str, heading: str) -> str:
    """Return the code below a heading of a rule's page."""
    return textwrap.dedent(DOCS[rule][heading]).strip("\n")


def placed(rule: str) -> str:
    """Return the program of a rule with its example in place."""
    text = PROGRAMS[rule]
    line = next(line for line in text.splitlines() if EXAMPLE in line)
    margin = line[: len(line) - len(line.lstrip())]
    return text.replace(line, textwrap.indent(code(rule, "Example"), margin))


def migrated(program: str) -> Result:
    """Return what the engine says about a program beside one that uses Apex."""
    sources = [
        Source.from_bytes("a.py", program.encode()),
        Source.from_bytes("b.py", WHOLE.encode()),
    ]
    return migrate(sources, Settings(api="torch.cuda.amp", unsafe=True))


def squeezed(text: str) -> str:
    """Return a text without indentation and blank lines."""
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


REWRITES = sorted(
    rule.code for rule in RULES if rule.code in PROGRAMS and rule.safety.value != "report only"
)
REPORTS = sorted(
    rule.code for rule in RULES if rule.code in PROGRAMS and rule.safety.value == "report only"
)


@pytest.mark.parametrize("rule", REWRITES)
def test_example_becomes_what_the_page_says(rule: str) -> None:
    program = placed(rule)
    compile(program, rule, "exec")
    result = migrated(program)

    assert rule in {item.code for item in result.plan.findings() if item.path == "a.py"}
    after = result.outcomes[0].after
    assert after is not None
    assert "apex" not in after
    instead = code(rule, "Use instead")
    if not instead.startswith("("):
        assert squeezed(instead) in squeezed(after)
    else:
        assert squeezed(code(rule, "Example")) not in squeezed(after)


@pytest.mark.parametrize("rule", REPORTS)
def test_finding_of_the_page_comes_at_its_example(rule: str) -> None:
    program = placed(rule)
    compile(program, rule, "exec")
    result = migrated(program)

    first = next(n for n, line in enumerate(PROGRAMS[rule].splitlines(), 1) if EXAMPLE in line)
    lines = range(first, first + len(code(rule, "Example").splitlines()))
    found = [
        (f.code, f.span.line) for f in result.plan.findings() if f.code == rule and f.path == "a.py"
    ]
    assert any(line in lines for _, line in found), result.plan.findings()
