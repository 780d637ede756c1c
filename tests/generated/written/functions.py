"""Layouts of functions: main and what it calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from generated.choices.sets import GANS, Features
from generated.written import step
from generated.written.build import build_lines
from generated.written.loop import (
    epoch_lines,
    epochs,
    evaluation,
    in_place,
    renamed_flag,
    step_lines,
)
from generated.written.names import Names, names
from generated.written.setup import (
    availability_lines,
    import_lines,
    initialize,
    is_local,
    parser_lines,
    resume_lines,
    save_lines,
    scheduler_lines,
)
from generated.written.text import Lines, block, call, define, mentions, parameters


@dataclass(frozen=True, slots=True)
class Part:
    """A top-level piece of the program: what it defines, its text, and the kind of file it is for."""

    name: str
    lines: Lines
    kind: str


def candidates(f: Features, n: Names) -> Lines:
    """Return everything a function may have to be given, in the order of parameters."""
    models = [f"{n.model}_d", f"{n.model}_g"] if f["losses"] in GANS else [n.model]
    first = [] if f["layout"] == "global_scope" else [n.args]
    last = ["amp"] if f["layout"] == "amp_argument" else []
    return [
        *first,
        *models,
        n.loader,
        "val_loader",
        n.criterion,
        *n.optimizers,
        n.scheduler,
        n.ema,
        n.teacher,
        n.head,
        n.x,
        n.y,
        "loss",
        n.index,
        *(["scaler"] if f["clash"] == "scaler_parameter" else []),
        *last,
        "mixed_precision",
        "use_fp16",
        "epoch",
    ]


def arguments(f: Features, given: Lines, renamed: Mapping[str, str] | None = None) -> Lines:
    """Return the arguments of a call in the style of the program."""
    values = [(renamed or {}).get(name, name) for name in given]
    if f["calls"] == "positional":
        return values
    keywords = [f"{name}={value}" for name, value in zip(given, values, strict=True)]
    return [*values[:1], *keywords[1:]]


def own_import(f: Features, n: Names, body: Lines) -> Lines:
    """Put the import of Apex at the head of a function that uses it, where imports are local."""
    if not is_local(f) or not mentions(body, "amp") or any("import" in line for line in body):
        return body
    lines = import_lines(f)
    if body[0] == f"{n.flag} = {names(f).flag}":
        return [body[0], *block(f"if {n.flag}", lines), *body[1:]]
    return [*(block(f"if {n.flag}", lines) if n.flag else lines), *body]


def function(
    f: Features,
    n: Names,
    name: str,
    body: Lines,
    kind: str,
    doc: str,
    known: Lines,
    decorator: str = "",
    defaults: tuple[str, ...] = (),
) -> tuple[Part, Lines]:
    """Return a function as a part, and the arguments to call it with."""
    body = own_import(f, n, body)
    doc = doc if f["docstrings"] == "yes" else ""
    return Part(name, define(name, known, body, "", doc, decorator, defaults), kind), parameters(
        known, body
    )


def preparation(f: Features, n: Names) -> tuple[Lines, Names]:
    """Return the statements from the seed to the resumed checkpoint, and the names after them."""
    started, after = initialize(f, n)
    lines = [
        "torch.manual_seed(7)",
        *availability_lines(f, n),
        *build_lines(f, n),
        *(["scaler = 2.0"] if f["clash"] == "scaler_parameter" else []),
        "",
        *step.note(f, "mixed precision"),
        *started,
        *(["args.amp = amp"] if f["layout"] == "args_amp" else []),
    ]
    if f["layout"] == "args_amp":
        after = replace(after, amp="args.amp")
    return [*lines, *scheduler_lines(f, after), *resume_lines(f, after), ""], after


def module(f: Features, n: Names) -> list[Part]:
    """Everything at module level."""
    prepared, after = preparation(f, n)
    return [Part("", [*parser_lines(f, n), *prepared, *clash(f), *in_place(f, after)], "entry")]


def main_only(f: Features, n: Names) -> list[Part]:
    """Everything in main()."""
    prepared, after = preparation(f, n)
    flag, inside = renamed_flag(f, after)
    body = [*parser_lines(f, n), *prepared, *clash(f), *flag, *in_place(f, inside)]
    return [Part("main", define("main", [], body), "entry")]


def clash(f: Features) -> Lines:
    """Return a variable that has the name the GradScaler would get."""
    return ["scaler = 2.0"] if f["clash"] == "scaler" else []


def nested(f: Features, n: Names) -> list[Part]:
    """A training step as a closure of main()."""
    prepared, after = preparation(f, n)
    body = step_lines(f, after)
    given = parameters([after.index, after.x, after.y], body)
    shown = f["logging"] == "average"
    inside = [line for line in body if line.strip() != "running_loss += loss.item()"]
    closure = define("train_step", given, [*inside, "return loss"])
    loop = [f"loss = {call('train_step', given)}"]
    if shown:
        loop.append("running_loss += loss.item()")
    one = epoch_lines(f, after, loop)
    inline = {**f, "evaluation": "no_grad"} if f["evaluation"] == "decorator" else f
    rest = epochs(inline, after, one, evaluation(inline, after))
    body = [*parser_lines(f, n), *prepared, *clash(f), *closure, "", *rest]
    return [Part("main", define("main", [], body), "entry")]


def split(f: Features, n: Names) -> list[Part]:
    """main() prepares, train() trains; helpers, evaluation and checkpoints by themselves."""
    prepared, after = preparation(f, n)
    known = candidates(f, n)
    parts: list[Part] = []
    flag, inside = renamed_flag(f, replace(n, amp=after.amp))
    evaluate = _evaluate(f, inside, known, parts)
    body = _steps(f, inside, known, parts)
    one = epoch_lines(f, inside, body)
    if f["layout"] == "deep":
        part, given = function(f, inside, "train_epoch", one, "engine", "Train one epoch.", known)
        parts.append(part)
        one = [call("train_epoch", arguments(f, given))]
    saved = _save(f, inside, known, parts)
    trained = epochs({**f, "checkpoint": "none"} if saved else f, inside, one, evaluate)
    tagged = f["defaults"] == "yes"
    part, given = function(
        f,
        inside,
        "train",
        [*flag, *(["print(tag)"] if tagged else []), *clash(f), *trained, *saved],
        "engine",
        "Train the model.",
        known,
        defaults=('tag="training"',) if tagged else (),
    )
    parts.append(part)
    renamed = {n.model: after.model, n.optimizer: after.optimizer, "use_fp16": n.flag}
    start = [call("train", arguments(f, given, renamed))]
    if f["layout"] == "setup":
        prepared, made = _setup(f, n, prepared, given)
        parts.append(made)
    entry = [*parser_lines(f, n), *prepared, *start]
    if f["layout"] == "global_scope":
        parts.insert(0, Part("", parser_lines(f, n), "data"))
        entry = [*prepared, *start]
    return [*parts, Part("main", define("main", [], entry), "entry")]


def _setup(f: Features, n: Names, prepared: Lines, given: Lines) -> tuple[Lines, Part]:
    """Move the preparation into a function that returns what training needs."""
    made = [name for name in given if name != n.args and name != "epoch"]
    result = ", ".join(made)
    body = [line for line in prepared if line] + [f"return {result}"]
    home = "entry" if f["files"] == "two" else "utils"
    part = Part("build", define("build", [n.args], body), home)
    return [f"{result} = build(args)"], part


def _evaluate(f: Features, n: Names, known: Lines, parts: list[Part]) -> Lines:
    if not evaluation(f, n):
        return []
    decorator = "@torch.no_grad()" if f["evaluation"] == "decorator" else ""
    body = evaluation(f, n)
    part, given = function(
        f, n, "validate", body, "engine", "Evaluate the model.", known, decorator
    )
    parts.append(part)
    return [call("validate", arguments(f, given))]


def _save(f: Features, n: Names, known: Lines, parts: list[Part]) -> Lines:
    if f["checkpoint"] != "function":
        return []
    body = save_lines(f, n)
    part, given = function(f, n, "save_checkpoint", body, "utils", "Write a checkpoint.", known)
    parts.append(part)
    return [call("save_checkpoint", arguments(f, given))]


def _steps(f: Features, n: Names, known: Lines, parts: list[Part]) -> Lines:
    """Return the body of the loop, with a part of it in a function where the layout says so."""
    layout = f["layout"]
    if layout == "helper_backward":
        part, given = function(
            f,
            n,
            "backward",
            step.backward(f, n),
            "utils",
            "Backward pass with loss scaling.",
            known,
        )
        parts.append(part)
        return _with_zero(
            f, n, [*step.forward(f, n), *step.finish(f, n, [call("backward", arguments(f, given))])]
        )
    if layout == "helper_clip":
        part, given = function(
            f, n, "clip_gradients", step.clip(f, n), "utils", "Clip gradients.", known
        )
        parts.append(part)
        updates = step.update(f, n, [call("clip_gradients", arguments(f, given))])
        finish = step.finish(f, n, step.backward(f, n), updates)
        return _with_zero(f, n, [*step.forward(f, n), *finish])
    if layout == "helper_update":
        part, given = function(
            f, n, "update", step.update(f, n), "utils", "One optimizer step.", known
        )
        parts.append(part)
        finish = step.finish(f, n, step.backward(f, n), [call("update", arguments(f, given))])
        return _with_zero(f, n, [*step.forward(f, n), *finish])
    if layout == "helper_forward":
        wanted = ["loss", "aux_loss"] if f["losses"] == "two" else ["loss"]
        body = [*step.forward(f, n), f"return {', '.join(wanted)}"]
        inputs = [name for name in known if name != "loss"]
        part, given = function(f, n, "compute_loss", body, "engine", "The training loss.", inputs)
        parts.append(part)
        forward = [f"{', '.join(wanted)} = {call('compute_loss', arguments(f, given))}"]
        return _with_zero(f, n, [*forward, *step.finish(f, n, step.backward(f, n))])
    return step_lines(f, n)


def _with_zero(f: Features, n: Names, lines: Lines) -> Lines:
    return [*step.zero(f, n), *lines] if f["zero"] == "before_forward" else lines
