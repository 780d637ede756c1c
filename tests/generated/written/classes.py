"""Layouts of classes: a trainer, its methods apart, a base class in another file."""

from __future__ import annotations

from dataclasses import replace

from generated.choices.sets import GANS, Features
from generated.written import step
from generated.written.build import build_lines
from generated.written.functions import Part, own_import
from generated.written.loop import epoch_lines, epochs, evaluation, step_lines
from generated.written.names import Names
from generated.written.setup import (
    availability_lines,
    initialize,
    parser_lines,
    resume_lines,
    save_lines,
    scheduler_lines,
)
from generated.written.text import Lines, block, call, define, mentions


def trainer(f: Features, n: Names) -> list[Part]:
    """A trainer class; forward, backward and update are methods of their own where the layout says so."""
    apart = f["layout"] in ("methods", "hierarchy")
    held = n.of_self()
    inside = replace(held, flag="self.mixed_precision") if f["guard"] == "renamed_flag" else held
    methods = [_init(f, n, held)]
    steps: Lines = step_lines(f, inside)
    if apart:
        steps = _apart(f, inside, methods)
    evaluate: Lines = []
    if evaluation(f, inside):
        decorator = "@torch.no_grad()" if f["evaluation"] == "decorator" else ""
        methods.append(_method(f, inside, "validate", evaluation(f, inside), decorator=decorator))
        evaluate = ["self.validate()"]
    saved: Lines = []
    if f["checkpoint"] == "function":
        methods.append(_method(f, inside, "save_checkpoint", save_lines(f, inside)))
        saved = ["self.save_checkpoint()"]
    one = epoch_lines(f, inside, steps)
    trained = epochs({**f, "checkpoint": "none"} if saved else f, inside, one, evaluate)
    methods.append(_method(f, inside, "train", [*trained, *saved]))
    parts = _classes(f, methods)
    entry = [
        *parser_lines(f, n),
        "torch.manual_seed(7)",
        *availability_lines(f, n),
        *build_lines(f, n),
        f"trainer = {_last(parts)}({', '.join(_given(f, n))})",
        "trainer.train()",
    ]
    return [*parts, Part("main", define("main", [], entry), "entry")]


def _last(parts: list[Part]) -> str:
    return parts[-1].name


def _given(f: Features, n: Names) -> Lines:
    models = [f"{n.model}_d", f"{n.model}_g"] if f["losses"] in GANS else [n.model]
    built = build_lines(f, n)
    names = [n.args, *models, *n.optimizers, n.loader, "val_loader", n.criterion, n.ema, n.teacher]
    names.append(n.head)
    return [name for name in names if name == n.args or any(_binds(line, name) for line in built)]


def _binds(line: str, name: str) -> bool:
    return name in [part.strip() for part in line.partition(" = ")[0].split(",")]


def _init(f: Features, n: Names, held: Names) -> Lines:
    given = _given(f, n)
    started, _ = initialize(f, held)
    flag = [f"self.mixed_precision = {n.flag}"] if f["guard"] == "renamed_flag" else []
    body = [
        *[f"self.{name} = {name}" for name in given],
        *flag,
        *(["self.scaler = 2.0"] if f["clash"] == "scaler" else []),
        *started,
        *scheduler_lines(f, held),
        *resume_lines(f, held),
    ]
    return define("__init__", given, body, receiver="self")


def _method(
    f: Features, n: Names, name: str, body: Lines, given: Lines | None = None, decorator: str = ""
) -> Lines:
    doc = f"{name.replace('_', ' ').capitalize()}." if f["docstrings"] == "yes" else ""
    return define(
        name, given or [], own_import(f, n, body), receiver="self", doc=doc, decorator=decorator
    )


def _apart(f: Features, n: Names, methods: list[Lines]) -> Lines:
    inputs = [n.x, n.y]
    forward = _method(f, n, "compute_loss", [*step.forward(f, n), "return loss"], inputs)
    backward = _method(f, n, "backward", step.backward(f, n), ["loss", n.index])
    update = _method(f, n, "update", step.update(f, n))
    methods += [forward, backward, update]
    arguments = [name for name in ("loss", n.index) if mentions(backward[1:], name)]
    calls = [call("self.backward", arguments)]
    lines = [
        f"loss = {call('self.compute_loss', inputs)}",
        *step.finish(f, n, calls, ["self.update()"]),
    ]
    return [*step.zero(f, n), *lines] if f["zero"] == "before_forward" else lines


def _classes(f: Features, methods: list[Lines]) -> list[Part]:
    if f["layout"] != "hierarchy":
        return [Part("Trainer", _class("Trainer", methods), "engine")]
    own = [m for m in methods if "def compute_loss" in m[0]]
    base = [m for m in methods if m not in own]
    hook = block("def compute_loss(self, inputs, targets)", ["raise NotImplementedError"])
    return [
        Part("BaseTrainer", _class("BaseTrainer", [*base, hook]), "utils"),
        Part("ClassifierTrainer", _class("ClassifierTrainer(BaseTrainer)", own), "engine"),
    ]


def _class(head: str, methods: list[Lines]) -> Lines:
    body: Lines = []
    for method in methods:
        body += [*([""] if body else []), *method]
    return block(f"class {head}", body)
