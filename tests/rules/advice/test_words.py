"""What findings say about small programs, and where they say nothing."""

from __future__ import annotations

import re

import pytest

from amp_migrate.engine import migrate
from amp_migrate.plan.model import Finding
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

HEAD = """\
import argparse
import torch
from apex import amp

parser = argparse.ArgumentParser()
parser.add_argument("--opt-level", default="O1"{choices})
parser.add_argument("--half", action="store_true")
args = parser.parse_args()
model = torch.nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
LOOP = """\
for batch in range(10):
    loss = model(torch.randn(8, 4).cuda()).sum()
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    optimizer.step()
"""
ACCUMULATE = """\
import torch
from apex import amp

model = torch.nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
{start}
for epoch in range(3):
    {restart}
    for i in range(10):
        {loss}
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        {count}
        if {test}:
            optimizer.step()
            optimizer.zero_grad()
"""
DIVIDED = "loss = model(torch.randn(8, 4).cuda()).sum() / 4"


def findings(code: str, *files: str, **more: str) -> list[Finding]:
    """Return the findings of one rule, or of all for "", in one file or a few."""
    texts = {f"file{n}.py": text for n, text in enumerate(files)} | {
        f"{name}.py": text for name, text in more.items()
    }
    sources = [Source.from_bytes(name, text.encode()) for name, text in texts.items()]
    found = migrate(sources, Settings(api="torch.cuda.amp")).plan.findings()
    return [item for item in found if item.code.startswith(code)]


def accumulated(
    start: str = "", restart: str = "", loss: str = DIVIDED, count: str = "", test: str = ""
) -> str:
    text = ACCUMULATE.format(start=start, restart=restart, loss=loss, count=count, test=test)
    return re.sub(r"^ *\n", "", text, flags=re.M)


class TestOptLevel:
    @pytest.mark.parametrize(
        ("level", "choices", "told"),
        [
            ("args.opt_level", "", "O2 and O3"),
            ("args.opt_level", ', choices=["O0", "O1"]', None),
            ("args.opt_level", ', choices=["O0", "O1", "O2"]', "O2 becomes"),
            ('"O1" if args.half else "O0"', "", None),
            ('"O2" if args.half else "O0"', "", "O2 becomes"),
            ("level", "", None),
        ],
    )
    def test_only_the_levels_that_can_come_are_told(
        self, level: str, choices: str, told: str | None
    ) -> None:
        set_above = 'level = "O1" if args.half else "O0"\n'
        call = f"model, optimizer = amp.initialize(model, optimizer, opt_level={level})\n"

        found = findings("AMP102", HEAD.format(choices=choices) + set_above + call + LOOP)

        notes = [item.message for item in found if item.status.value == "note"]
        assert len(notes) == (told is not None)
        assert told is None or told in notes[0]


class TestAccumulation:
    def test_window_that_every_epoch_cuts_is_told(self) -> None:
        loop = accumulated(test="(i + 1) % 4 == 0")
        reset = accumulated(restart="n = 0", count="n += 1", test="n % 4 == 0")

        assert len(findings("AMP203", loop)) == len(findings("AMP203", reset)) == 1

    @pytest.mark.parametrize(
        ("restart", "behind", "told"),
        [
            ("", "", "part of the next epoch's first step"),
            ("", "    optimizer.zero_grad()", "cleared before the next backward"),
            ("", "    model.zero_grad()", "cleared before the next backward"),
            ("", "    for p in model.parameters():\n        p.grad = None", "cleared before"),
            ("optimizer.zero_grad()", "", "cleared before the next backward"),
            ("", "    if (i + 1) % 4:\n        optimizer.zero_grad()", "cleared before"),
            ("", "    if epoch > 0:\n        optimizer.zero_grad()", "part of the next epoch's"),
            ("", "    else:\n        optimizer.zero_grad()", "cleared before the next backward"),
            ("", "optimizer.zero_grad()", "part of the next epoch's first step"),
        ],
    )
    def test_what_becomes_of_a_window_that_is_cut(
        self, restart: str, behind: str, told: str
    ) -> None:
        program = accumulated(restart=restart, test="(i + 1) % 4 == 0")

        (found,) = findings("AMP203", f"{program}{behind}\n")

        assert told in found.message
        assert ("zero_grad()" in found.advice) is ("next epoch" in told)

    def test_one_epoch_has_no_next(self) -> None:
        program = accumulated(test="(i + 1) % 4 == 0").replace("for epoch in range(3)", "if True")

        (found,) = findings("AMP203", program)

        assert "no backward follows" in found.message

    @pytest.mark.parametrize(
        ("first", "told"),
        [
            ("if steps > 1:", "cleared before the next backward"),
            ("if steps != 1 or fresh:", "cleared before the next backward"),
            ("if steps > 4:", "part of the next epoch's first step"),
            ("if fresh:", "part of the next epoch's first step"),
            ("if steps > 1 and fresh:", "part of the next epoch's first step"),
        ],
    )
    def test_what_an_epoch_of_its_own_function_clears_first(self, first: str, told: str) -> None:
        program = accumulated(restart=f"{first}\n        optimizer.zero_grad()")
        program = program.replace("if :", "if (i + 1) % steps == 0:")
        epoch = "def train(model, optimizer, steps, fresh)"
        program = program.replace("for epoch in range(3)", epoch)
        calls = "for epoch in range(3):\n    train(model, optimizer, 4, epoch == 0)\n"

        (found,) = findings("AMP203", program + calls)

        assert told in found.message

    def test_count_over_all_epochs_cuts_no_window(self) -> None:
        program = accumulated(start="n = 0", count="n += 1", test="n % 4 == 0")

        assert findings("AMP203", program) == []

    def test_loss_that_nothing_divides_is_named(self) -> None:
        program = accumulated(loss=DIVIDED[:-4], test="(i + 1) % 4 == 0")

        (found,) = findings("AMP202", program)

        assert "`loss`" in found.message

    def test_division_in_a_helper_is_seen(self) -> None:
        helper = "def compute(x):\n    return model(x).sum() / 4\n"
        program = accumulated(
            start=helper, loss="loss = compute(torch.randn(8, 4).cuda())", test="(i + 1) % 4 == 0"
        )

        assert findings("AMP202", program) == []


class TestEvaluation:
    def test_program_that_never_had_apex_gets_no_note(self) -> None:
        train = HEAD.format(choices="") + (
            'model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n' + LOOP
        )
        demo = (
            "import torch\n\n"
            "def demo(model, image):\n"
            "    with torch.no_grad():\n"
            "        return model(image)\n\n"
            "print(demo(torch.nn.Linear(4, 2), torch.ones(1, 4)))\n"
        )

        assert [f for f in findings("AMP107", train=train, demo=demo) if f.path == "demo.py"] == []


class TestRest:
    def test_list_of_types_follows_the_class(self) -> None:
        program = (
            "import torch\n"
            "from apex.parallel import DistributedDataParallel as DDP\n\n"
            "def unwrapped(model):\n"
            "    model = DDP(model)\n"
            "    wrappers = list((torch.nn.DataParallel, DDP))\n"
            "    assert isinstance(model, tuple(wrappers))\n"
        )

        assert {f.status.value for f in findings("AMP301", program)} == {"migrated", "note"}

    def test_class_that_may_be_called_is_left(self) -> None:
        program = (
            "from apex.parallel import DistributedDataParallel as DDP\n\n"
            "def wrapped(model):\n"
            "    wrappers = [DDP]\n"
            "    return wrappers[0](model)\n"
        )

        assert "left" in {f.status.value for f in findings("AMP301", program)}

    @pytest.mark.parametrize("module", ["apex.fp16_utils", "apex.contrib.optimizers"])
    def test_fp16_optimizer_is_named_by_its_module(self, module: str) -> None:
        program = f"from {module} import FP16_Optimizer\n\noptimizer = FP16_Optimizer(object())\n"

        (found,) = findings("AMP306", program)

        assert module in found.message

    @pytest.mark.parametrize(("verb", "number"), [("half_function", 16), ("float_function", 32)])
    def test_casts_of_an_autograd_function_are_those_of_the_decorator(
        self, verb: str, number: int
    ) -> None:
        program = (
            "import torch\nfrom apex import amp\n\n"
            "class Op(torch.autograd.Function):\n"
            f"    @staticmethod\n    @amp.{verb}\n"
            "    def backward(ctx, x):\n        return x\n"
        )

        (found,) = findings("AMP113", program)

        assert f"torch.float{number})" in found.advice

    @pytest.mark.parametrize("verb", ["promote_function", "float_function"])
    def test_backward_beside_a_forward_that_is_left_is_left(self, verb: str) -> None:
        taken = "" if "promote" in verb else "def float_forward(x):\n    return x\n\n"
        program = (
            f"import torch\nfrom apex import amp\n\n{taken}"
            "class Op(torch.autograd.Function):\n"
            f"    @staticmethod\n    @amp.{verb}\n"
            "    def forward(ctx, x):\n        return x\n\n"
            "    @staticmethod\n    @amp.half_function\n"
            "    def backward(ctx, x):\n        return x\n"
        )

        assert [f.status.value for f in findings("AMP113", program)] == ["left", "left"]

    def test_initialize_without_optimizers_misses_no_step(self) -> None:
        program = (
            "import torch\nfrom apex import amp\n\n"
            "model = torch.nn.Linear(4, 2).cuda().eval()\n"
            'model = amp.initialize(model, [], opt_level="O1")\n'
            "with torch.no_grad():\n    print(model(torch.ones(1, 4).cuda()))\n"
        )

        assert findings("AMP9", program) == []

    def test_amp_in_a_dict_is_no_unknown_function(self) -> None:
        program = HEAD.format(choices="") + (
            'model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n'
            "kit = dict(amp=amp)\n" + LOOP
        )

        causes = [f for f in findings("AMP909", program) if f.cause is None]

        assert ["dict" in f.message for f in causes] == [True]
        assert "not in the files given" not in causes[0].message


class TestOverflowCheck:
    @pytest.mark.parametrize(
        ("check", "more", "told"),
        [
            ("True", "", "gradients of this loss and kept"),
            ("not last", "", "where `not last` holds"),
            ("late", "", None),
            ("False", "", None),
            ("True", ", loss_scale=1.0", None),
        ],
    )
    def test_skipped_steps_that_apex_took_are_told(
        self, check: str, more: str, told: str | None
    ) -> None:
        late = "late = False\n"
        last = "        last = i == 9\n        with amp.scale_loss"
        with_check = f"with amp.scale_loss(loss, optimizer, delay_overflow_check={check})"
        text = accumulated(start=late, test="(i + 1) % 4 == 0")
        text = text.replace("        with amp.scale_loss", last)
        text = text.replace("with amp.scale_loss(loss, optimizer)", with_check)

        found = findings("AMP103", text.replace('opt_level="O1"', f'opt_level="O1"{more}'))

        notes = [item.message for item in found if item.status.value == "note"]
        assert len(notes) == (told is not None)
        assert told is None or told in notes[0]
