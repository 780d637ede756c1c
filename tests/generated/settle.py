"""Makes the features of a program agree with each other."""

from __future__ import annotations

from generated.sets import (
    ACCUMULATING,
    AT_RUN_TIME,
    BY_INDEX,
    CLASSES,
    GANS,
    SPREAD,
    STATIC,
    WINDOW_MISTAKES,
    WITHOUT_ARGUMENTS,
    WITHOUT_FLAG,
    Features,
)

Wish = tuple[dict[str, set[str]], dict[str, str]]

# Where the first part of a wish holds, the second is put in force; in this order.
_RULES: tuple[Wish, ...] = (
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
    ({"skip_bad": {"yes"}, "layout": SPREAD}, {"skip_bad": "no"}),
    ({"skip_bad": {"yes"}, "loop": {"counter", "while_next"}}, {"loop": "enumerate"}),
    (
        {"layout": {"nested"}, "zero": {"between", "in_forward", "before_backward"}},
        {"zero": "before_forward"},
    ),
    (
        {
            "layout": {
                "methods",
                "hierarchy",
                "helper_forward",
                "helper_backward",
                "helper_clip",
                "helper_update",
            },
            "zero": {"between", "in_forward", "before_backward"},
        },
        {"zero": "after_step"},
    ),
    (
        {"layout": {"helper_backward", "methods", "hierarchy"}, "clip": {"both_branches"}},
        {"clip": "flag_else"},
    ),
    (
        {"forward": {"one_line", "model_loss", "gpu_mean", "branches"}, "zero": {"between"}},
        {"zero": "before_backward"},
    ),
    (
        {"forward": {"model_loss", "gpu_mean", "branches"}, "zero": {"in_forward"}},
        {"zero": "before_backward"},
    ),
    (
        {"guard": {"truthy_amp", "is_not_none"}},
        {"imports": "none", "level": "O1", "scale_argument": "none"},
    ),
    (
        {
            "guard": {"renamed_flag"},
            "layout": {"hierarchy", "amp_argument", "args_amp", "deep", "module"},
        },
        {"guard": "flag"},
    ),
    (
        {"layout": {"amp_argument", "args_amp"}, "guard": {"truthy_amp", "is_not_none"}},
        {"guard": "none"},
    ),
    ({"layout": {"amp_argument", "args_amp"}}, {"imports": "plain", "losses": "one"}),
    (
        {"layout": {"module"}, "imports": {"local", "local_raise"}, "guard": {"none"}},
        {"imports": "plain"},
    ),
    (
        {"imports": {"local", "local_raise"}, "layout": CLASSES, "guard": {"none"}},
        {"imports": "plain"},
    ),
    ({"layout": {"global_scope", "module", "main", "nested"}}, {"files": "one"}),
    ({"layout": CLASSES | {"nested"}, "target": {"renamed"}}, {"target": "names"}),
    (
        {"layout": {"module", "setup", "amp_argument", "args_amp"}, "target": {"renamed"}},
        {"target": "names"},
    ),
    (
        {"guard": {"flag", "renamed_flag", "truthy_amp", "is_not_none"}, "target": {"renamed"}},
        {"target": "names"},
    ),
    ({"target": {"optimizer_list", "lists"}, "layout": {"setup"}}, {"target": "names"}),
    ({"level": {"conditional"}}, {"guard": "none", "other_arguments": "none"}),
    ({"other_arguments": {"enabled"}}, {"guard": "none", "checkpoint": "none"}),
    (
        {"other_arguments": {"enabled"}, "imports": {"none", "local", "local_raise"}},
        {"imports": "plain"},
    ),
    ({"other_arguments": {"enabled"}, "logging": {"scale"}}, {"logging": "loss"}),
    ({"level": {"O0", "O2"}, "other_arguments": {"keep_batchnorm"}}, {"other_arguments": "none"}),
    ({"guard": WITHOUT_FLAG, "checkpoint": {"conditional"}}, {"checkpoint": "literal"}),
    (
        {"guard": {"truthy_amp", "is_not_none", "flag", "renamed_flag"}, "checkpoint": {"literal"}},
        {"checkpoint": "guarded"},
    ),
    ({"guard": WITHOUT_FLAG, "step_in_branches": {"yes"}}, {"step_in_branches": "no"}),
    ({"layout": SPREAD | {"deep"}}, {"step_in_branches": "no"}),
    ({"losses": {"two_optimizers"}}, {"step_in_branches": "no", "scheduler": "none"}),
    ({"clip": {"logged", "loop"}}, {"overflow": "none"}),
    ({"scale_argument": STATIC}, {"overflow": "none"}),
    ({"scale_argument": {"one"}, "layout": WITHOUT_ARGUMENTS}, {"overflow": "none"}),
    ({"logging": {"scale"}}, {"overflow": "none"}),
    ({"layout": {"deep"}, "clash": {"scaler"}}, {"clash": "scaler_parameter"}),
    ({"accumulation": {"after_loop"}, "overflow": {"3", "5"}}, {"overflow": "2"}),
    ({"losses": {"plain_second"}, "overflow": {"2"}}, {"overflow": "3"}),
    ({"checkpoint": {"none"}}, {"resume": "no"}),
    ({"losses": {"two_optimizers"}}, {"groups": "no"}),
    (
        {
            "groups": {"yes"},
            "clip": {
                "flag_else",
                "master",
                "logged",
                "assigned",
                "loop",
                "conditional",
                "both_branches",
            },
        },
        {"groups": "no"},
    ),
    (
        {"clash": {"scaler_parameter"}, "layout": CLASSES | {"module", "main", "nested"}},
        {"clash": "scaler"},
    ),
)


def settled(picked: Features) -> Features:
    """Return the features with those changed that do not go together."""
    result = dict(picked)
    for _ in range(2):
        for conditions, forced in _RULES:
            if all(result[name] in options for name, options in conditions.items()):
                result |= forced
    return result
