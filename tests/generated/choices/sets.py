"""Options that belong together, by what they have in common."""

from __future__ import annotations

Features = dict[str, str]
Wish = tuple[dict[str, set[str]], dict[str, str]]

CLASSES = {"trainer", "methods", "hierarchy"}
SPREAD = {
    "helper_backward",
    "helper_update",
    "helper_forward",
    "helper_clip",
    "methods",
    "hierarchy",
    "nested",
}
ACCUMULATING = {
    "every_k",
    "every_k_zero",
    "or_last",
    "delay",
    "delay_branches",
    "after_loop",
    "inner_loop",
    "negated",
}
BY_INDEX = ACCUMULATING - {"inner_loop"}
GANS = {"gan", "gan_joint"}
STATIC = {"static", "args_number", "args_float"}
AT_RUN_TIME = {"args", "args_number", "args_absent", "args_float", "args_zero"}
WITHOUT_ARGUMENTS = {
    "train",
    "helper_backward",
    "helper_update",
    "helper_clip",
    "helper_forward",
    "setup",
    "amp_argument",
    "args_amp",
    "deep",
    "global_scope",
}
WITHOUT_FLAG = {"none", "truthy_amp", "is_not_none"}
WINDOW_MISTAKES = {"clip_every", "zero_every"}
LOSS_IN_MODEL = {"model_loss", "gpu_mean", "loss_dict", "batch_dict"}
