"""Which statements of a training belong to its autocast region, and which stay outside."""

from __future__ import annotations

import ast

import pytest

from amp_migrate.autocast.evaluated.evaluation import evaluations
from amp_migrate.autocast.slicing.finished import runs_in_fp32
from amp_migrate.plan.cannot import Cannot
from amp_migrate.training.region import Region
from tests.placement.training import BACKWARD, FORWARD, PATH, Training, looped

LAST = f"{BACKWARD}optimizer.step()\n"
F = "loss = model(x).mean()"

CASES: dict[str, tuple[str, list[list[str]]]] = {
    "one statement": (f"{F}\n", [[F]]),
    "network and loss": ("y = model(x)\nloss = y.mean()\n", [["y = model(x)", "loss = y.mean()"]]),
    "what is between": (
        "y = model(x)\nz = y * 2\nloss = z.mean()\n", [["y = model(x)", "z = y * 2", "loss = z.mean()"]],
    ),
    "data before": ("x = x.cuda()\ny = x + 1\nloss = model(y).mean()\n", [["loss = model(y).mean()"]]),
    "cleared before": (f"optimizer.zero_grad()\n{F}\n", [[F]]),
    "printed behind": (f"{F}\nprint(loss)\n", [[F]]),
    "a walrus": ("print(y := model(x))\nloss = y.mean()\n", [["print(y := model(x))", "loss = y.mean()"]]),
    "added to": (f"{F}\nloss += model(x).sum()\n", [[F, "loss += model(x).sum()"]]),
    "an annotated assignment": ("loss: object = model(x).mean()\n", [["loss: object = model(x).mean()"]]),
    "in a tuple": ("loss, y = model(x).mean(), 1\n", [["loss, y = model(x).mean(), 1"]]),
    "by star": ("y, *z = model(x)\nloss = z[0].mean()\n", [["y, *z = model(x)", "loss = z[0].mean()"]]),
    "under a test": (
        f"if args.a:\n    {F}\nelse:\n    loss = model(x).sum()\n",
        [["if args.a:"]],
    ),
    "in a match": (
        f"match args.a:\n    case 1:\n        {F}\n    case _:\n        loss = model(x).sum()\n",
        [["match args.a:"]],
    ),
    "in a try": (f"try:\n    {F}\nexcept ValueError:\n    continue\n", [["try:"]]),
    "in a with": (f"with open(x) as f:\n    {F}\n", [["with open(x) as f:"]]),
    "a comprehension": (
        "ys = [model(z) for z in x]\nloss = sum(ys)\n", [["ys = [model(z) for z in x]", "loss = sum(ys)"]],
    ),
    "a loop over parts": (
        "loss = 0\nfor z in x:\n    loss = loss + model(z).mean()\n", [["for z in x:"]],
    ),
    "in a dictionary": (
        "losses = {}\nlosses['a'] = model(x).mean()\nloss = sum(losses.values())\n",
        [["losses['a'] = model(x).mean()", "loss = sum(losses.values())"]],
    ),
    "in a list": (
        "losses = []\nlosses.append(model(x).mean())\nloss = sum(losses)\n",
        [["losses.append(model(x).mean())", "loss = sum(losses)"]],
    ),
    "by an attribute": ("args.y = model(x)\nloss = args.y.mean()\n", [["args.y = model(x)", "loss = args.y.mean()"]]),
    "deleted": ("y = model(x)\nloss = y.mean()\ndel y\n", [["y = model(x)", "loss = y.mean()"]]),
    "another forward that feeds nothing": (
        f"{F}\nwith torch.no_grad():\n    seen = model(x)\n", [[F]],
    ),
    "overwritten": (f"loss = model(x).sum()\n{F}\n", [[F]]),
    "scaled down": (f"{F}\nloss = loss / 4\n", [[F, "loss = loss / 4"]]),
}  # fmt: skip


def _lines(training: Training, regions: list[Region], path: str = PATH) -> list[list[str]]:
    return [[training.first_line(stmt, r.module.path) for stmt in r.statements()] for r in regions]


@pytest.mark.parametrize(("body", "regions"), CASES.values(), ids=CASES)
def test_regions_of_a_backward(body: str, regions: list[list[str]]) -> None:
    """From the first forward that feeds the loss to the last statement that computes it."""
    training = Training(looped(body + LAST))
    assert _lines(training, training.unit.regions) == regions


def test_each_backward_has_its_own_region() -> None:
    """A step between two ends the first."""
    body = f"{F}\n{LAST}loss = model(x).sum()\n{LAST}"
    training = Training(looped(body))
    assert _lines(training, training.unit.regions) == [[F], ["loss = model(x).sum()"]]


def test_forward_in_a_helper_is_covered_where_it_is_called() -> None:
    """A region stands around the call; the helper has none."""
    program = looped(f"loss = compute(model, x)\n{LAST}") + (
        "\n\ndef compute(net, x):\n    y = net(x)\n    return y.mean()\n"
    )
    training = Training(program)
    assert _lines(training, training.unit.regions) == [["loss = compute(model, x)"]]


def test_forward_before_the_call_of_what_trains() -> None:
    """A loss that is an argument is computed by the callers."""
    program = looped(f"{FORWARD}train(loss, optimizer)\n") + (
        "\n\ndef train(value, opt):\n    with amp.scale_loss(value, opt) as scaled:\n"
        "        scaled.backward()\n    opt.step()\n"
    )
    training = Training(program)
    assert _lines(training, training.unit.regions) == [[F]]


def test_loss_computed_in_the_call_gets_a_statement() -> None:
    """The loss in the head of the block is computed before it, under a name that is free."""
    body = "with amp.scale_loss(model(x).mean(), optimizer) as scaled:\n    scaled.backward()\noptimizer.step()\n"
    context = Training(looped(body)).context
    assert [inline.name for inline in context.inlines] == ["loss"]
    context = Training(looped("loss = total_loss = 1\n" + body)).context
    assert [inline.name for inline in context.inlines] == ["loss_value"]


def test_loss_that_nothing_computes_is_refused() -> None:
    """What no network gives has no region; what is not known may run one."""
    with pytest.raises(Cannot) as caught:
        _ = Training(looped(f"loss = x.mean()\n{LAST}")).context
    assert caught.value.code == "AMP904"
    training = Training(looped(f"loss = load(x)\n{LAST}"))
    assert _lines(training, training.unit.regions) == [["loss = load(x)"]]


EVALUATED: dict[str, tuple[str, list[list[str]]]] = {
    "a forward": ("def check(model, x):\n    return model(x)\n", [["return model(x)"]]),
    "without gradients": (
        "def check(model, x):\n    with torch.no_grad():\n        y = model(x)\n    return y\n",
        [["y = model(x)"]],
    ),
    "in a loop": (
        "def check(model, x):\n    for z in x:\n        z = z.cuda()\n        y = model(z)\n        print(y)\n",
        [["y = model(z)"]],
    ),
    "by a decorator": (
        "@torch.no_grad()\ndef check(model, x):\n    y = model(x)\n    return y.argmax()\n",
        [["y = model(x)"]],
    ),
    "no network": ("def check(model, x):\n    model.eval()\n    return len(x)\n", []),
    "another's": ("def check(model, x):\n    y = str(x)\n    return y\n", []),
    "under an autocast of its own": (
        "def check(model, x):\n    with torch.cuda.amp.autocast():\n        return model(x)\n", [],
    ),
    "defined and not run": ("def check(model, x):\n    return lambda: 1\n", []),
}  # fmt: skip


@pytest.mark.parametrize(("function", "regions"), EVALUATED.values(), ids=EVALUATED)
def test_regions_of_an_evaluation(function: str, regions: list[list[str]]) -> None:
    """Apex cast the forwards of an initialized network wherever they ran."""
    program = looped(f"{F}\n{LAST}check(model, x)\n") + f"\n\n{function}\n\nmain(args, loader)\n"
    training = Training(program)
    found = [r for r in evaluations(training.unit) if r.function.name == "check"]
    assert _lines(training, found) == regions


MORE: dict[str, tuple[str, str, list[list[str]]]] = {
    "a method that leaves its result": (
        "class T:\n    def go(self, model, optimizer, x):\n        self.run(model, x)\n        self.learn(optimizer)\n"
        "    def run(self, model, x):\n        self.y = model(x)\n"
        "    def learn(self, optimizer):\n        loss = self.y.mean()\n        with amp.scale_loss(loss, optimizer) as s:\n"
        "            s.backward()\n        optimizer.step()\n",
        "T().go(model, optimizer, x)\n",
        [["self.run(model, x)"]],
    ),
    "a generator": (
        "def batches(model, xs):\n    for x in xs:\n        y = model(x)\n        yield y\n",
        f"for y in batches(model, x):\n    loss = y.mean()\n    {LAST.strip().replace(chr(10), chr(10) + '    ')}\n",
        [["y = model(x)"]],
    ),
    "a generator that computes what it hands out": (
        "def batches(model, xs):\n    for x in xs:\n        yield model(x)\n",
        f"for y in batches(model, x):\n    loss = y.mean()\n    {LAST.strip().replace(chr(10), chr(10) + '    ')}\n",
        [],
    ),
    "a teacher without gradients before": (
        "", f"with torch.no_grad():\n    t = model(x)\n{F}\nloss = loss + (t - 1).mean()\n{LAST}",
        [[F, "loss = loss + (t - 1).mean()"]],
    ),
    "under an autocast of its own": (
        "", f"with torch.cuda.amp.autocast():\n    y = model(x)\n    loss = y.mean()\n{LAST}", [],
    ),
    "a method that left its result before": (
        "class T:\n    def run(self, model, x):\n        self.y = model(x)\n"
        "    def learn(self, optimizer):\n        loss = self.y.mean()\n        with amp.scale_loss(loss, optimizer) as s:\n"
        "            s.backward()\n        optimizer.step()\n",
        "t = T()\nt.run(model, x)\nt.learn(optimizer)\n",
        [["t.run(model, x)"]],
    ),
    "with the backward under an autocast of its own": (
        "", f"with torch.cuda.amp.autocast():\n    {F}\n    {BACKWARD.replace(chr(10), chr(10) + '    ').strip()}\noptimizer.step()\n",
        [],
    ),
    "a generator with an autocast of its own": (
        "def batches(model, xs):\n    for x in xs:\n        with torch.cuda.amp.autocast():\n            y = model(x)\n        yield y\n",
        f"for y in batches(model, x):\n    loss = y.mean()\n    {LAST.strip().replace(chr(10), chr(10) + '    ')}\n",
        [],
    ),
    "control handed back between": (
        f"def train(model, optimizer, x):\n    y = model(x)\n    yield y\n    loss = model(y).mean()\n    {LAST.strip().replace(chr(10), chr(10) + '    ')}\n",
        "for _ in train(model, optimizer, x):\n    pass\n",
        [["loss = model(y).mean()"], ["y = model(x)"]],
    ),
    "a constructor between": (
        "def compute(model, x, out):\n    out.y = model(x)\n",
        f"compute(model, x, args)\nloss = args.y.mean()\n{LAST}",
        [["compute(model, x, args)"]],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("functions", "body", "regions"), MORE.values(), ids=MORE)
def test_regions_of_more_than_a_loop(functions: str, body: str, regions: list[list[str]]) -> None:
    """Methods, generators and helpers compute parts of a loss; what a mean gives of them needs no cast."""
    training = Training(looped(body) + f"\n\n{functions}\n\nmain(args, loader)\n")
    assert _lines(training, training.unit.regions) == regions
    assert bool(regions) != bool(training.context.inlines) or "torch.cuda" in body + functions


TAILS: dict[str, tuple[str, list[str]]] = {
    "a number is taken": (f"{F}\nvalue = loss.item()\n", [F]),
    "logged under a test": (f"{F}\nif i % 9 == 0:\n    print(loss)\n", [F]),
    "divided under a test": (f"{F}\nif args.k:\n    loss = loss / args.k\n", [F, "if args.k:"]),
    "logged and divided": (f"{F}\nprint(loss)\nloss = loss / 4\n", [F]),
    "divided and logged": (f"{F}\nloss = loss / 4\nprint(loss)\n", [F, "loss = loss / 4"]),
    "another forward behind": (f"{F}\nloss = loss + model(x).sum()\n", [F, "loss = loss + model(x).sum()"]),
}  # fmt: skip


@pytest.mark.parametrize(("body", "region"), TAILS.values(), ids=TAILS)
def test_ends_of_a_region(body: str, region: list[str]) -> None:
    """Logging and numbers behind the loss stay outside."""
    training = Training(looped(body + LAST))
    assert _lines(training, training.unit.regions) == [region]


def test_gradients_taken_in_a_region_part_it() -> None:
    """Apex ran no backward pass with casts, a penalty's neither."""
    body = (
        "y = model(x)\ng = torch.autograd.grad(y, x, create_graph=True)[0]\n"
        "loss = y.mean() + g.norm()\n" + LAST
    )
    training = Training(looped(body))
    assert _lines(training, training.unit.regions) == [
        ["y = model(x)"],
        ["loss = y.mean() + g.norm()"],
    ]


@pytest.mark.parametrize(
    ("text", "sums", "wide"),
    [
        ("z = y.norm()", True, True),
        ("z = y ** 2", True, True),
        ("z = F.softmax(y, 1)", True, True),
        ("z = torch.softmax(y, 1)", True, False),
        ("z = y.softmax(1)", True, False),
        ("z = torch.norm(y)", True, True),
        ("z = y.sum()", True, True),
        ("z = y.sum()", False, False),
        ("z = x.norm()", True, False),
        ("z = 2 ** y", True, False),
        ("z = y.mean()", True, False),
        ("z = F.cross_entropy(x, y)", True, True),
        ("z = norm(y)", True, False),
        ("f = lambda: y.norm()", True, False),
    ],
)
def test_what_runs_in_fp32(text: str, sums: bool, wide: bool) -> None:
    """O1 and autocast compute these in fp32, of what a network gave."""
    assert runs_in_fp32(ast.parse(text).body[0], {"y"}, sums) is wide
