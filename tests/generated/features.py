"""What a generated program is made of: options by feature, weighted as real programs choose them."""

from __future__ import annotations

import random

from generated.sets import Features
from generated.settle import settled

# The first option of each feature is the simplest: shrinking goes there.
OPTIONS: dict[str, dict[str, float]] = {
    "layout": {
        "main": 15,
        "module": 6,
        "train": 18,
        "trainer": 12,
        "methods": 9,
        "hierarchy": 6,
        "nested": 6,
        "helper_backward": 7,
        "helper_update": 6,
        "helper_clip": 6,
        "helper_forward": 5,
        "setup": 6,
        "amp_argument": 5,
        "args_amp": 4,
        "deep": 6,
        "global_scope": 4,
    },
    "files": {"one": 55, "two": 20, "many": 15, "package": 10},
    "imports": {
        "plain": 40,
        "raise": 25,
        "none": 8,
        "flag": 8,
        "local": 18,
        "local_raise": 10,
        "whole": 7,
        "alias": 4,
        "module_alias": 3,
    },
    "guard": {"none": 30, "flag": 50, "renamed_flag": 8, "truthy_amp": 3, "is_not_none": 4},
    "flag_run": {"on": 75, "off": 25},
    "level": {
        "O1": 35,
        "absent": 4,
        "args": 35,
        "variable": 8,
        "formatted": 4,
        "O2": 10,
        "O0": 3,
        "conditional": 3,
    },
    "level_run": {"O1": 75, "O0": 12, "O2": 13},
    "target": {
        "names": 60,
        "lists": 6,
        "optimizer_list": 5,
        "keyword": 6,
        "dropped": 8,
        "renamed": 8,
    },
    "scale_argument": {
        "none": 70,
        "dynamic": 10,
        "static": 6,
        "one": 3,
        "args": 4,
        "args_number": 3,
        "args_absent": 3,
        "args_float": 2,
        "args_zero": 2,
        "bounds": 6,
    },
    "other_arguments": {"none": 60, "verbosity": 15, "keep_batchnorm": 8, "enabled": 12},
    "loop": {"enumerate": 50, "plain": 12, "zip": 8, "while_next": 8, "range": 5, "counter": 12},
    "epochs": {"one": 35, "several": 65},
    "accumulation": {
        "none": 45,
        "every_k": 30,
        "every_k_zero": 8,
        "or_last": 6,
        "delay": 5,
        "delay_branches": 4,
        "after_loop": 4,
        "inner_loop": 4,
        "negated": 3,
    },
    "divide": {"always": 45, "if_more": 30, "no": 25},
    "forward": {
        "two_lines": 40,
        "one_line": 20,
        "functional": 12,
        "model_loss": 15,
        "metric_between": 8,
        "branches": 6,
        "gpu_mean": 10,
        "twice": 7,
    },
    "clip": {
        "none": 42,
        "flag_else": 25,
        "master": 14,
        "model": 10,
        "value": 4,
        "logged": 7,
        "assigned": 3,
        "loop": 4,
        "conditional": 6,
        "both_branches": 8,
        "edit": 3,
    },
    "zero": {
        "after_step": 40,
        "before_forward": 30,
        "between": 20,
        "before_backward": 15,
        "in_forward": 6,
    },
    "zero_on": {"optimizer": 60, "model": 35, "parameters": 5},
    "losses": {
        "one": 66,
        "sum": 8,
        "sum_in_call": 4,
        "two": 8,
        "plain_second": 5,
        "gan": 9,
        "gan_joint": 4,
        "two_optimizers": 6,
    },
    "loss_id": {"no": 70, "keyword": 22, "positional": 8},
    "retain": {"no": 85, "yes": 15},
    "branch_order": {"amp_first": 80, "plain_first": 20},
    "step_in_branches": {"no": 94, "yes": 6},
    "scheduler": {"none": 40, "after": 30, "before": 6, "epoch": 20},
    "checkpoint": {"none": 62, "literal": 10, "guarded": 14, "conditional": 8, "function": 8},
    "resume": {"no": 50, "yes": 50},
    "evaluation": {"none": 40, "no_grad": 40, "decorator": 12, "last_only": 8},
    "logging": {"loss": 40, "item_between": 15, "average": 25, "scale": 5},
    "network": {"mlp": 40, "conv": 30, "norm": 30},
    "optimizer": {"sgd": 50, "adam": 30, "adamw": 20},
    "mistake": {
        "none": 88,
        "clip_every": 4,
        "clip_inside": 2,
        "zero_every": 2,
        "plain_backward": 2,
        "scale_model": 1,
        "zero_before_step": 1,
        "zero_missing": 1,
    },
    "parallel": {"no": 85, "yes": 15},
    "skip_bad": {"no": 94, "yes": 6},
    "ema": {"no": 95, "yes": 5},
    "clash": {"none": 85, "scaler": 8, "autocast": 4, "scaler_parameter": 3},
    "words": {"first": 40, "second": 30, "third": 30},
    "comments": {"none": 30, "some": 50, "many": 20},
    "format": {
        "plain": 60,
        "crlf": 10,
        "tabs": 8,
        "two_spaces": 7,
        "bom": 4,
        "no_newline": 6,
        "latin": 3,
        "long_lines": 6,
    },
    "calls": {"positional": 75, "keyword": 25},
    "defaults": {"no": 80, "yes": 20},
    "teacher": {"no": 93, "yes": 7},
    "groups": {"no": 85, "yes": 15},
    "batches": {"list": 70, "loader": 30},
    "docstrings": {"no": 70, "yes": 30},
    "overflow": {"none": 30, "1": 15, "2": 20, "3": 20, "5": 15},
}


def draw(seed: int) -> Features:
    """Return the features of one program."""
    rng = random.Random(seed)
    picked = {
        name: rng.choices(list(options), list(options.values()))[0]
        for name, options in OPTIONS.items()
    }
    return settled(picked)


def simplest(name: str) -> str:
    """Return the simplest option of a feature."""
    return next(iter(OPTIONS[name]))
