"""The loops around the training step, evaluation included."""

from __future__ import annotations

from dataclasses import replace

from generated.choices.sets import ACCUMULATING, GANS, Features
from generated.written import gan, step
from generated.written.build import wants_loss
from generated.written.names import Names
from generated.written.setup import save_lines
from generated.written.text import Lines, block


def step_lines(f: Features, n: Names) -> Lines:
    """Return the statements of one iteration, all in place."""
    if f["losses"] in GANS:
        return gan.whole(f, n)
    if f["accumulation"] == "inner_loop":
        return step.inner(f, n)
    return step.whole(f, n)


def batches(f: Features, n: Names, body: Lines) -> Lines:
    """Return the loop over the batches of one epoch."""
    x, y, i, loader = n.x, n.y, n.index, n.loader
    if f["accumulation"] == "inner_loop":
        x, y = f"batch_{x}", f"batch_{y}"
    if f["clash"] == "scaler":
        body = [f"{x} = {x} * {'self.scaler' if loader.startswith('self.') else 'scaler'}", *body]
    if f["clash"] == "scaler_parameter":
        body = [f"{x} = {x} * scaler", *body]
    if f["stop"] == "yes":
        counted = f"{n.args}.max_steps > 0 and {i} + 1 >= {n.args}.max_steps"
        body = [*body, *block(f"if {counted}", ["break"])]
    if f["comments"] == "many":
        body = [f"{x}, {y} = {x}.to({n.args}.device), {y}.to({n.args}.device)", *body]
    shapes: dict[str, Lines] = {
        "enumerate": block(f"for {i}, ({x}, {y}) in enumerate({loader})", body),
        "plain": block(f"for {x}, {y} in {loader}", body),
        "zip": block(f"for ({x}, {y}), _ in zip({loader}, range(100))", body),
        "range": block(f"for {i} in range(len({loader}))", [f"{x}, {y} = {loader}[{i}]", *body]),
        "counter": [f"{i} = 0", *block(f"for {x}, {y} in {loader}", [*body, f"{i} += 1"])],
        "while_next": [
            f"iterator = iter({loader})",
            f"{i} = 0",
            *block(
                f"while {i} < len({loader})", [f"{x}, {y} = next(iterator)", *body, f"{i} += 1"]
            ),
        ],
    }
    lines = shapes[f["loop"]]
    if f["accumulation"] == "after_loop":
        rest = block(f"if ({i} + 1) % {n.args}.accum != 0", step.update(f, n))
        lines = [*lines, *step.note(f, "the rest of the batches"), *rest]
    return lines


def epoch_lines(f: Features, n: Names, body: Lines) -> Lines:
    """Return the statements of one epoch around the loop over its batches."""
    if f["phases"] == "yes":
        return _phases(f, n, body)
    models = [f"{n.model}_d", f"{n.model}_g"] if f["losses"] in GANS else [n.model]
    lines = [f"{model}.train()" for model in models]
    averages = f["logging"] == "average" and f["losses"] not in GANS
    if averages and f["accumulation"] != "delay_branches":
        return [
            *lines,
            "running_loss = 0.0",
            *batches(f, n, body),
            'print("average", running_loss)',
        ]
    if averages:
        return [*lines, "running_loss = 0.0", *batches(f, n, body), "print(running_loss)"]
    return [*lines, *batches(f, n, body)]


def _phases(f: Features, n: Names, body: Lines) -> Lines:
    """Return an epoch that trains and validates with the same lines."""
    val = "self.val_loader" if n.loader.startswith("self.") else "val_loader"
    either = replace(n, loader="loader")
    train = [f"{n.model}.train()", f"loader = {n.loader}"]
    return block(
        'for phase in ["train", "val"]',
        [
            *block('if phase == "train"', train),
            *block("else", [f"{n.model}.eval()", f"loader = {val}"]),
            "running_loss = 0.0",
            *batches(f, either, [*body, "running_loss += loss.item()"]),
            "print(phase, running_loss)",
        ],
    )


def first_zero(f: Features, n: Names) -> Lines:
    """Return the zero_grad before the loop, where gradients are zeroed after steps."""
    wanted = f["accumulation"] in ACCUMULATING or f["zero"] == "after_step"
    if not wanted or f["mistake"] in ("zero_every", "zero_missing"):
        return []
    return step.zero(f, n)


def epochs(f: Features, n: Names, one: Lines, evaluate: Lines) -> Lines:
    """Return the loop over epochs; `one` trains one, `evaluate` evaluates."""
    scheduled = [f"{n.scheduler}.step()"] if f["scheduler"] == "epoch" else []
    each = [] if f["evaluation"] == "last_only" else evaluate
    saved = save_lines(f, n)
    body = [*one, *scheduled, *each]
    if f["epochs"] == "several":
        if f["checkpoint"] in ("guarded", "function"):
            body += saved
            saved = []
        body = block(f"for epoch in range({n.args}.epochs)", body)
    if f["epochs"] == "while":
        body = ["epoch = 0", *block(f"while epoch < {n.args}.epochs", [*body, "epoch += 1"])]
    last = evaluate if f["evaluation"] == "last_only" else []
    counted = ["stepped = 0"] if f["step_in_branches"] == "yes" else []
    return [*counted, *first_zero(f, n), *body, *last, *saved]


def evaluation(f: Features, n: Names) -> Lines:
    """Return the statements that evaluate the model."""
    if f["evaluation"] == "none" or f["phases"] == "yes":
        return []
    scores = f"{n.output} = {step.outputs(f, n)}" + ("[0]" if wants_loss(f) else "")
    loss = f"F.cross_entropy({n.output}, {n.y})"
    if not wants_loss(f) and f["forward"] != "functional":
        loss = f"{n.criterion}({n.output}, {n.y})"
    val = "self.val_loader" if n.loader.startswith("self.") else "val_loader"
    loop = block(
        f"for {n.x}, {n.y} in {val}",
        [
            scores,
            f"total += {loss}.item()",
            f"correct += ({n.output}.argmax(dim=1) == {n.y}).sum().item()",
        ],
    )
    if f["evaluation"] != "decorator":
        loop = block("with torch.no_grad()", loop)
    return [
        f"{n.model}.eval()",
        "total, correct = 0.0, 0",
        *loop,
        'print("validation", total, correct)',
    ]


def in_place(f: Features, n: Names) -> Lines:
    """Return the whole training with evaluation written in the loop."""
    inline = {**f, "evaluation": "no_grad"} if f["evaluation"] == "decorator" else f
    one = epoch_lines(f, n, step_lines(f, n))
    return epochs(inline, n, one, evaluation(inline, n))


def renamed_flag(f: Features, n: Names) -> tuple[Lines, Names]:
    """Give the flag another name in a function, where the program does that."""
    if f["guard"] == "parameter":
        return [], replace(n, flag="use_fp16")
    if f["guard"] != "renamed_flag":
        return [], n
    return [f"mixed_precision = {n.flag}"], replace(n, flag="mixed_precision")
