"""What goes together around the training step: layout, guards, arguments, checkpoints, overflows."""

from __future__ import annotations

from generated.choices.sets import CLASSES, SPREAD, STATIC, WITHOUT_ARGUMENTS, WITHOUT_FLAG, Wish

# Where the first part of a wish holds, the second is put in force; in this order.
LAYOUTS: tuple[Wish, ...] = (
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
        {
            "guard": {"flag", "renamed_flag", "parameter", "truthy_amp", "is_not_none"},
            "target": {"renamed"},
        },
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
        {
            "guard": {"truthy_amp", "is_not_none", "flag", "renamed_flag", "parameter"},
            "checkpoint": {"literal"},
        },
        {"checkpoint": "guarded"},
    ),
    ({"guard": WITHOUT_FLAG, "step_in_branches": {"yes"}}, {"step_in_branches": "no"}),
    ({"layout": SPREAD | {"deep"}}, {"step_in_branches": "no"}),
    ({"losses": {"two_optimizers"}}, {"step_in_branches": "no", "scheduler": "none"}),
    ({"clip": {"logged", "loop"}}, {"overflow": "none"}),
    ({"scale_argument": STATIC}, {"overflow": "none"}),
    ({"scale_argument": {"one"}, "level": {"variable"}}, {"overflow": "none"}),
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
