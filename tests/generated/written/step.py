"""The training step: forward, backward, clip, update."""

from __future__ import annotations

from generated.choices.sets import ACCUMULATING, Features
from generated.written.clips import clip, clip_call, guarded
from generated.written.names import Names
from generated.written.text import Lines, block


def forward(f: Features, n: Names) -> Lines:
    """Return the statements from the forward to the loss."""
    o, m, c, x, y = n.output, n.model, n.criterion, n.x, n.y
    run = outputs(f, n)
    between = zero(f, n) if f["zero"] == "in_forward" else []
    shapes: dict[str, Lines] = {
        "two_lines": [f"{o} = {run}", *between, f"loss = {c}({o}, {y})"],
        "twice": [
            f"{o} = {run}",
            *between,
            f"flipped = {run.replace(x, f'{x}.flip(0)')}",
            f"loss = {c}({o}, {y}) + {c}(flipped, {y}.flip(0))",
        ],
        "one_line": [*between, f"loss = {c}({run}, {y})"],
        "functional": [f"{o} = {run}", *between, f"loss = F.cross_entropy({o}, {y})"],
        "model_loss": [f"result = {m}({x}, {y})", "loss = result[0]"],
        "metric_between": [
            f"{o} = {run}",
            f"accuracy = ({o}.argmax(dim=1) == {y}).float().mean().item()",
            *between,
            f"loss = {c}({o}, {y})",
            'print("accuracy", accuracy)',
        ],
        "branches": [
            *block(
                f"if {n.args}.mixup > 0",
                [
                    f"mixed = {n.args}.mixup * {x} + (1 - {n.args}.mixup) * {x}.flip(0)",
                    f"{o} = {m}(mixed)",
                    f"loss = {c}({o}, {y})",
                ],
            ),
            *block("else", [f"{o} = {m}({x})", f"loss = {c}({o}, {y})"]),
        ],
        "loss_dict": [
            f"losses = {m}({x}, {y})",
            "loss = sum(value for value in losses.values())",
        ],
        "batch_dict": [
            f'batch = {{"x": {x}, "labels": {y}}}',
            f"result = {m}(**batch)",
            "loss = result[0]",
        ],
        "gpu_mean": [
            f"result = {m}({x}, {y})",
            "loss = result[0]  # model returns loss and scores",
            *block(f"if {n.args}.n_gpu > 1", ["loss = loss.mean()"]),
        ],
    }
    lines = shapes[f["forward"]]
    if f["losses"] == "sum":
        lines = [*lines, f"aux_loss = {c}({o} * 0.5, {y})", "loss = loss + 0.4 * aux_loss"]
    if f["losses"] in ("sum_in_call", "two"):
        lines = [*lines, f"aux_loss = {c}({o} * 0.5, {y})"]
    if f["teacher"] == "yes":
        guide = block("with torch.no_grad()", [f"soft_targets = {n.teacher}({x})"])
        lines = [*guide, *lines, f"loss = loss + 0.1 * F.mse_loss({o}, soft_targets)"]
    return [*lines, *divide(f, n)]


def outputs(f: Features, n: Names) -> str:
    """Return the expression of a forward pass."""
    run = f"{n.model}({n.x})"
    return f"{n.head}({run})" if f["head"] == "yes" else run


def divide(f: Features, n: Names) -> Lines:
    """Return the division of the loss by the number of micro-batches."""
    if f["accumulation"] == "none" or f["divide"] == "no":
        return []
    line = f"loss = loss / {n.args}.accum"
    if f["divide"] == "always":
        return [line]
    return block(f"if {n.args}.accum > 1", [line])


def zero(f: Features, n: Names) -> Lines:
    """Return the statements that zero gradients."""
    if f["zero_on"] == "model":
        return [f"{n.model}.zero_grad()"]
    if f["zero_on"] == "parameters":
        return block(f"for p in {n.model}.parameters()", ["p.grad = None"])
    given = "set_to_none=True" if f["zero_on"] == "set_to_none" else ""
    return [f"{name}.zero_grad({given})" for name in n.optimizers]


def scaled(
    f: Features,
    n: Names,
    loss: str,
    loss_id: int = 0,
    retain: bool = False,
    more: str = "",
    tail: Lines | None = None,
) -> Lines:
    """Return one scale_loss block."""
    optimizers = n.optimizer if len(n.optimizers) == 1 else f"[{', '.join(n.optimizers)}]"
    arguments = [loss, optimizers]
    if f["loss_id"] != "no" and f["losses"] in ("two", "gan", "gan_joint"):
        arguments.append(f"loss_id={loss_id}" if f["loss_id"] == "keyword" else str(loss_id))
    if more:
        arguments.append(more)
    backward = f"{n.scaled}.backward({'retain_graph=True' if retain else ''})"
    head = f"with {n.amp}.scale_loss({', '.join(arguments)}) as {n.scaled}"
    return block(head, [backward, *(tail or [])])


def backward(f: Features, n: Names, clipped: bool = True) -> Lines:
    """Return the backward passes of one micro-batch; `clipped` where a clip stands in their branches."""
    if f["mistake"] == "plain_backward":
        return ["loss.backward()"]
    more = (
        f"delay_unscale=({n.index} + 1) % {n.args}.accum != 0"
        if f["accumulation"] == "delay"
        else ""
    )
    loss = "loss + 0.4 * aux_loss" if f["losses"] == "sum_in_call" else "loss"
    two = f["losses"] == "two"
    retain = two or (f["retain"] == "yes" and f["losses"] == "one")
    plain = [
        f"{loss if loss == 'loss' else f'({loss})'}.backward({'retain_graph=True' if retain else ''})"
    ]
    tail = [clip_call(n, f"{n.model}.parameters()")] if f["mistake"] == "clip_inside" else []
    if f["in_block"] == "yes":
        tail = ['print("scaled backward", loss.item())']
    amp = scaled(f, n, loss, retain=retain, more=more, tail=tail)
    plain = [*plain, *tail]
    if clipped and f["clip"] == "both_branches":
        amp = [*amp, clip_call(n, f"{n.amp}.master_params({n.optimizer})")]
        plain = [*plain, clip_call(n, f"{n.model}.parameters()")]
    lines = guarded(f, n, amp, plain)
    if two:
        lines += guarded(f, n, scaled(f, n, "aux_loss", loss_id=1), ["aux_loss.backward()"])
    if f["losses"] == "plain_second":
        lines += [
            f"penalty = 1e-3 * sum((p * p).sum() for p in {n.model}.parameters())",
            "penalty.backward()",
        ]
    return lines


def update(f: Features, n: Names, clips: Lines | None = None) -> Lines:
    """Return the statements of an optimizer step; `clips` stand in place of the clip."""
    steps = [f"{name}.step()" for name in n.optimizers]
    if f["visits"] == "yes" and len(steps) > 1:
        steps = block(f"for each in ({', '.join(n.optimizers)})", ["each.step()"])
    if f["step_in_branches"] == "yes":
        steps = guarded(f, n, [*steps, "stepped += 1"], steps)
    scheduled = [f"{n.scheduler}.step()"]
    after = f["accumulation"] in ACCUMULATING or f["zero"] == "after_step"
    zeroed = (
        zero(f, n)
        if after and f["mistake"] not in ("zero_every", "zero_missing", "zero_before_step")
        else []
    )
    before = zero(f, n) if f["mistake"] == "zero_before_step" else []
    return [
        *(scheduled if f["scheduler"] == "before" else []),
        *(clip(f, n) if clips is None else clips),
        *before,
        *steps,
        *(scheduled if f["scheduler"] == "after" else []),
        *averaged(f, n),
        *zeroed,
    ]


def averaged(f: Features, n: Names) -> Lines:
    """Return the update of the moving average of the weights."""
    if f["ema"] == "no":
        return []
    pair = f"for e, p in zip({n.ema}.parameters(), {n.model}.parameters())"
    return block("with torch.no_grad()", block(pair, ["e.mul_(0.9).add_(p, alpha=0.1)"]))


def boundary(f: Features, n: Names) -> str:
    """Return the test of the accumulation boundary."""
    k = f"{n.args}.accum"
    if f["accumulation"] == "every_k_zero":
        return f"{n.index} % {k} == 0"
    test = f"({n.index} + 1) % {k} == 0"
    if f["accumulation"] == "or_last":
        return f"{test} or {n.index} + 1 == len({n.loader})"
    return test


def note(f: Features, text: str) -> Lines:
    """Return a comment line, where the program has comments."""
    return [] if f["comments"] == "none" else [f"# {text}"]


def logged(f: Features, n: Names) -> Lines:
    """Return the logging after a micro-batch."""
    if f["logging"] == "average":
        return ["running_loss += loss.item()"]
    if f["logging"] == "scale":
        read = f'print("scale", {n.amp}._amp_state.loss_scalers[0].loss_scale())'
        return ['print("loss", loss.item())', *guarded(f, n, [read], [])]
    if f["logging"] == "item_between":
        return []
    return ['print("loss", loss.item())']


def whole(f: Features, n: Names) -> Lines:
    """Return the statements of one micro-batch, all in place."""
    lines: Lines = []
    if f["warmup"] == "yes":
        lines += block(f"for group in {n.optimizer}.param_groups", ['group["lr"] *= 0.95'])
    if f["phases"] == "yes":
        return [*lines, *_phased(f, n)]
    if f["zero"] == "before_forward":
        lines += zero(f, n)
    lines += note(f, "forward pass")
    lines += _with_between(f, n)
    if f["skip_bad"] == "yes":
        lines += block(
            "if not torch.isfinite(loss)", ['print("skipped a batch")', *zero(f, n), "continue"]
        )
    if f["logging"] == "item_between":
        lines.append('print("loss", loss.item())')
    if f["zero"] == "before_backward":
        lines += zero(f, n)
    return [*lines, *finish(f, n, backward(f, n))]


def _phased(f: Features, n: Names) -> Lines:
    """Return the lines that train and validate, with gradients where they train."""
    trained = block('if phase == "train"', finish(f, n, backward(f, n)))
    inside = [*forward(f, n), *trained]
    return [*zero(f, n), *block('with torch.set_grad_enabled(phase == "train")', inside)]


def _with_between(f: Features, n: Names) -> Lines:
    lines = forward(f, n)
    if f["zero"] != "between":
        return lines
    first = next(k for k, line in enumerate(lines) if line.startswith(n.output)) + 1
    return [*lines[:first], "", *zero(f, n), *lines[first:]]


def finish(f: Features, n: Names, backwards: Lines, call: Lines | None = None) -> Lines:
    """Return backward, logging and update, at the boundary where gradients accumulate."""
    if f["accumulation"] == "delay_branches":
        done = [*scaled(f, n, "loss"), *update(f, n)]
        waiting = scaled(f, n, "loss", more="delay_unscale=True")
        return [*block(f"if {boundary(f, n)}", done), *block("else", waiting), *logged(f, n)]
    lines = [*note(f, "backward pass"), *backwards, *logged(f, n)]
    every = f["mistake"] == "clip_every"
    updated = call if call is not None else update(f, n, clips=[] if every else None)
    if every:
        lines += clip(f, n)
    if f["mistake"] == "zero_every":
        lines = [*zero(f, n), *lines]
    if f["accumulation"] in ("none", "inner_loop"):
        return [*lines, *note(f, "update the weights"), *updated]
    if f["accumulation"] == "negated":
        k = f"{n.args}.accum"
        return [*lines, *block(f"if ({n.index} + 1) % {k} != 0", ["continue"]), *updated]
    return [*lines, *block(f"if {boundary(f, n)}", [*note(f, "update the weights"), *updated])]


def inner(f: Features, n: Names) -> Lines:
    """Return the step of a loop over the chunks of a batch."""
    chunk = f"for {n.x}, {n.y} in zip(batch_{n.x}.chunk({n.args}.accum), batch_{n.y}.chunk({n.args}.accum))"
    passes = [*forward(f, n), *backward(f, n), *logged(f, n)]
    return [*block(chunk, passes), *update(f, n)]
