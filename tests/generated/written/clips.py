"""Branches of the flag, and the clips that stand in them."""

from __future__ import annotations

from generated.choices.sets import Features
from generated.written.names import Names
from generated.written.text import Lines, block

CLIP = "torch.nn.utils.clip_grad_norm_"


def guarded(f: Features, n: Names, amp: Lines, plain: Lines) -> Lines:
    """Return what runs under the flag and without it, or the former alone where there is no flag."""
    if not n.flag or amp == plain:
        return amp
    if not plain:
        return block(f"if {n.flag}", amp)
    first, second, test = amp, plain, n.flag
    if f["branch_order"] == "plain_first":
        first, second = plain, amp
        test = n.flag.replace(" is not None", " is None") if " is " in n.flag else f"not {n.flag}"
    return [*block(f"if {test}", first), *block("else", second)]


def clip_call(n: Names, parameters: str) -> str:
    """Return a clip of the norm."""
    return f"{CLIP}({parameters}, {n.args}.max_grad_norm)"


def clip(f: Features, n: Names) -> Lines:
    """Return the clip, as it stands before the step."""
    master, plain = f"{n.amp}.master_params({n.optimizer})", f"{n.model}.parameters()"
    by_flag = guarded(f, n, [clip_call(n, master)], [clip_call(n, plain)])
    if f["clip"] in ("none", "both_branches") or f["mistake"] == "clip_inside":
        return []
    if f["clip"] in ("flag_else", "master"):
        return by_flag
    if f["clip"] == "conditional":
        return block(f"if {n.args}.max_grad_norm > 0", by_flag)
    if f["clip"] == "model":
        return [clip_call(n, plain)]
    if f["clip"] == "value":
        return guarded(
            f,
            n,
            [f"torch.nn.utils.clip_grad_value_({master}, 0.01)"],
            [f"torch.nn.utils.clip_grad_value_({plain}, 0.01)"],
        )
    if f["clip"] == "logged":
        amp, other = f"grad_norm = {clip_call(n, master)}", f"grad_norm = {clip_call(n, plain)}"
        return [*guarded(f, n, [amp], [other]), 'print("norm", float(grad_norm))']
    if f["clip"] == "assigned":
        return [
            *guarded(f, n, [f"params = {master}"], [f"params = {plain}"]),
            clip_call(n, "params"),
        ]
    if f["clip"] == "edit":
        changed = block("if p.grad is not None", ["p.grad.add_(1e-4)"])
        return block(f"for p in {plain}", changed)
    return [
        "total_norm = 0.0",
        *block(
            f"for p in {master if not n.flag else plain}",
            block("if p.grad is not None", ["total_norm += p.grad.norm().item() ** 2"]),
        ),
        'print("norm", total_norm ** 0.5)',
    ]
