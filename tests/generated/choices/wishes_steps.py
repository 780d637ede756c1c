"""What goes together in a training step: losses, accumulation, clipping, known mistakes."""

from __future__ import annotations

from generated.choices.sets import (
    ACCUMULATING,
    AT_RUN_TIME,
    BY_INDEX,
    CLASSES,
    GANS,
    SPREAD,
    WINDOW_MISTAKES,
    WITHOUT_ARGUMENTS,
    Wish,
)

# Where the first part of a wish holds, the second is put in force; in this order.
STEPS: tuple[Wish, ...] = (
    ({"layout": {"args_amp"}, "settings": {"mapping"}}, {"settings": "namespace"}),
    ({"level": {"formatted"}, "settings": {"mapping"}}, {"settings": "namespace"}),
    ({"target": {"renamed"}, "settings": {"opt"}}, {"settings": "namespace"}),
    (
        {"layout": CLASSES | {"module", "main", "nested", "setup"}, "guard": {"parameter"}},
        {"guard": "flag"},
    ),
    ({"layout": SPREAD | {"deep"}}, {"phases": "no"}),
    (
        {"losses": GANS | {"two_optimizers"}},
        {"phases": "no", "head": "no", "stop": "no", "in_block": "no"},
    ),
    ({"losses": GANS}, {"warmup": "no"}),
    (
        {"phases": {"yes"}},
        {
            "evaluation": "no_grad",
            "loop": "enumerate",
            "accumulation": "none",
            "losses": "one",
            "zero": "before_forward",
            "skip_bad": "no",
            "clash": "none",
            "logging": "loss",
            "mistake": "none",
            "batches": "list",
            "teacher": "no",
            "stop": "no",
            "step_in_branches": "no",
        },
    ),
    (
        {"forward": {"loss_dict", "batch_dict"}},
        {"losses": "one", "teacher": "no", "head": "no"},
    ),
    (
        {"forward": {"loss_dict", "batch_dict"}, "zero": {"between", "in_forward"}},
        {"zero": "before_backward"},
    ),
    (
        {"forward": {"one_line", "branches", "model_loss", "gpu_mean"}, "head": {"yes"}},
        {"forward": "two_lines"},
    ),
    (
        {"head": {"yes"}},
        {"groups": "no", "teacher": "no", "zero_on": "optimizer", "target": "lists"},
    ),
    (
        {
            "head": {"yes"},
            "clip": {
                "flag_else",
                "master",
                "logged",
                "assigned",
                "conditional",
                "both_branches",
                "value",
            },
        },
        {"clip": "model"},
    ),
    ({"stop": {"yes"}, "accumulation": ACCUMULATING}, {"overflow": "none"}),
    ({"stop": {"yes"}, "loop": {"plain", "zip"}}, {"loop": "enumerate"}),
    (
        {"in_block": {"yes"}, "layout": {"helper_backward", "methods", "hierarchy"}},
        {"in_block": "no"},
    ),
    ({"in_block": {"yes"}, "mistake": {"clip_inside", "plain_backward"}}, {"in_block": "no"}),
    ({"in_block": {"yes"}, "losses": {"two", "plain_second", "sum_in_call"}}, {"in_block": "no"}),
    ({"layout": {"helper_clip"}, "clip": {"none", "both_branches"}}, {"clip": "flag_else"}),
    ({"losses": GANS}, {"teacher": "no", "groups": "no", "batches": "list"}),
    ({"batches": {"loader"}, "loop": {"range"}}, {"loop": "enumerate"}),
    (
        {"teacher": {"yes"}, "forward": {"one_line", "model_loss", "gpu_mean"}},
        {"forward": "two_lines"},
    ),
    (
        {"level": {"args", "formatted"}, "level_run": {"O0"}, "layout": WITHOUT_ARGUMENTS},
        {"scale_argument": "none"},
    ),
    (
        {"level": {"args", "formatted"}, "level_run": {"O0"}, "scale_argument": AT_RUN_TIME},
        {"scale_argument": "none"},
    ),
    ({"level": {"O0", "conditional"}, "scale_argument": AT_RUN_TIME}, {"scale_argument": "none"}),
    (
        {"level": {"conditional"}, "flag_run": {"off"}, "layout": WITHOUT_ARGUMENTS},
        {"scale_argument": "none"},
    ),
    ({"mistake": {"clip_every"}, "clip": {"none", "both_branches", "loop"}}, {"clip": "flag_else"}),
    ({"mistake": {"clip_inside"}}, {"clip": "model", "accumulation": "none", "losses": "one"}),
    ({"mistake": {"clip_inside"}, "layout": SPREAD}, {"layout": "train"}),
    ({"mistake": {"plain_backward"}}, {"accumulation": "none", "losses": "one", "guard": "none"}),
    ({"mistake": {"plain_backward"}, "clip": {"both_branches"}}, {"clip": "master"}),
    ({"mistake": {"scale_model"}}, {"target": "names", "guard": "none", "losses": "one"}),
    ({"mistake": {"scale_model"}, "layout": CLASSES}, {"layout": "train"}),
    (
        {"mistake": {"zero_before_step", "zero_missing"}},
        {"accumulation": "none", "losses": "one", "zero": "after_step", "skip_bad": "no"},
    ),
    ({"mistake": {"zero_before_step", "zero_missing"}, "layout": SPREAD}, {"layout": "train"}),
    (
        {"mistake": {"zero_every", "zero_before_step"}, "zero_on": {"parameters"}},
        {"zero_on": "optimizer"},
    ),
    ({"mistake": WINDOW_MISTAKES, "layout": SPREAD}, {"layout": "train"}),
    ({"mistake": WINDOW_MISTAKES}, {"losses": "one"}),
    (
        {
            "mistake": WINDOW_MISTAKES,
            "accumulation": {
                "none",
                "inner_loop",
                "delay",
                "delay_branches",
                "after_loop",
                "negated",
            },
        },
        {"accumulation": "every_k"},
    ),
    ({"losses": GANS, "layout": SPREAD | {"deep", "setup", "args_amp"}}, {"layout": "train"}),
    (
        {"losses": GANS},
        {
            "accumulation": "none",
            "clip": "none",
            "zero": "before_forward",
            "zero_on": "optimizer",
            "forward": "two_lines",
            "target": "lists",
            "checkpoint": "none",
            "skip_bad": "no",
            "ema": "no",
            "evaluation": "none",
            "scheduler": "none",
            "step_in_branches": "no",
            "parallel": "no",
            "mistake": "none",
        },
    ),
    (
        {"losses": {"two_optimizers"}, "layout": {"helper_backward", "helper_update", "setup"}},
        {"layout": "train"},
    ),
    (
        {"losses": {"two_optimizers"}},
        {"target": "optimizer_list", "zero_on": "model", "mistake": "none"},
    ),
    (
        {
            "losses": {"two_optimizers"},
            "clip": {
                "master",
                "flag_else",
                "conditional",
                "logged",
                "assigned",
                "loop",
                "value",
                "both_branches",
            },
        },
        {"clip": "model"},
    ),
    (
        {"losses": {"two", "plain_second"}, "layout": {"helper_backward", "methods", "hierarchy"}},
        {"layout": "train"},
    ),
    ({"losses": {"two", "plain_second"}, "clip": {"both_branches"}}, {"clip": "flag_else"}),
    ({"losses": {"two"}, "accumulation": {"delay", "delay_branches"}}, {"accumulation": "every_k"}),
    (
        {"losses": {"plain_second"}, "accumulation": {"delay", "delay_branches"}},
        {"accumulation": "every_k"},
    ),
    (
        {
            "losses": {"sum_in_call"},
            "layout": {"helper_backward", "helper_forward", "methods", "hierarchy"},
        },
        {"losses": "sum"},
    ),
    ({"losses": {"sum_in_call"}, "accumulation": ACCUMULATING}, {"losses": "sum"}),
    (
        {
            "losses": {"sum", "sum_in_call", "two"},
            "forward": {"one_line", "branches", "model_loss", "gpu_mean", "twice"},
        },
        {"forward": "two_lines"},
    ),
    (
        {"accumulation": {"delay", "delay_branches", "negated", "inner_loop"}, "layout": SPREAD},
        {"accumulation": "every_k"},
    ),
    (
        {"accumulation": {"delay_branches"}},
        {"clip": "none", "guard": "none", "step_in_branches": "no", "logging": "loss"},
    ),
    (
        {"accumulation": ACCUMULATING, "clip": {"both_branches"}},
        {"clip": "flag_else"},
    ),
    ({"accumulation": ACCUMULATING}, {"zero": "after_step", "skip_bad": "no"}),
    ({"accumulation": BY_INDEX, "loop": {"plain", "zip"}}, {"loop": "enumerate"}),
    ({"accumulation": {"after_loop"}, "loop": {"counter", "while_next"}}, {"loop": "enumerate"}),
    ({"accumulation": {"negated"}, "loop": {"counter", "while_next"}}, {"loop": "enumerate"}),
)
