"""Which runnable fixtures `verify` compares, and what is known of them there."""

from __future__ import annotations

from zlib import crc32

from fixture_support import cases, with_library

# An injected overflow would part the two loss scales of Apex from the one of GradScaler, stop one optimizer of a
# list where Apex stops them all, stand in a gradient that the program zeroes before the step, hit a step that
# is not taken, where Apex then skips the next one, stay in a penalty, whose loss is not scaled natively, or in the
# step of a copy or a critic, which no GradScaler takes.
NOT_INJECTED = {
    "project/apex_behind_a_module",
    "clip/step_in_a_helper",
    "clip/gradients_zeroed_by_name",
    "clip/skipped_when_too_large",
    "several/penalty_behind_an_update",
    "several/critic_trained_in_a_helper",
    "several/steps_of_a_copy",
}
# Two set how the loss scale grows themselves, where verify lets it grow in its own way. One overflows at its first
# scale, which Apex halves at once and GradScaler at the end of a round. What one trains is not scaled, before or after.
# One trains in FP32 first, where the overflows that are put in stop nothing.
# tests/test_fixture_runs.py compares them.
NOT_FOLLOWED = {
    "internals/interval_of_growth",
    "internals/scale_tuned",
    "several/rounds_in_loops",
    "several/plain_training_before",
    "evaluate/classifier_on_an_encoder",
}
# The recurrent layer of one rounds in fp16 as the CPU does, on some further from fp32 than under Apex; the gradient of another's
# binary cross entropy is near the largest fp16 at the first scale; one has a product in fp16 that was in fp32, which a note
# names. Their cases run without casts.
WITHOUT_CASTS = {
    "layout/schedule_around_the_optimizer",
    "evaluate/bce_in_network_from_pretrained",
    "autocast/scores_beside_a_search_nothing_begins",
}
# It uses a name that nothing defines at the end of its epoch, before and after.
RAISING = "simple/residual_net_o1"
# What their first backward computes is thrown away, and an overflow in it natively as well.
THROWING_AWAY = {
    "accumulate/cleared_in_a_helper",
    "fixes/zero_grad_kept_without_fixes",
    "flags/attack_cleared_where_it_runs",
    "flags/attack_unscaled_without_half",
    "flags/attacks_after_the_flag_is_off",
    "flags/input_gradient_under_a_changed_flag",
    "internals/casts_disabled_for_a_shared_attack",
    "internals/function_of_its_own_without_casts",
    "project/attack_beside_training",
    "several/attack_in_a_helper",
    "several/attack_told_by_a_variable",
    "several/attack_without_an_optimizer",
    "several/saliency_of_the_input",
}
# Apex clips gradients that the program then throws away, natively nothing does, and every clip counts.
CLIPPING_IN_VAIN = "clip/update_skipped_at_times"
# Their own test leaves out the step of an overflow, or they clear what overflowed, and Apex leaves out the next step: a note says so.
SKIPPING_THE_NEXT = (
    "accumulate/cleared_by_a_helper",
    "project/attack_of_two_programs",
    "clip/infinite_norm_skips",
    "clip/infinite_norm_tested",
    "clip/infinite_norm_of_an_entry",
    "accumulate/cleared_around_a_callback_that_steps",
    "clip/skipped_before_a_helper_that_steps",
)
# One optimizer of a list overflows alone, at the first scale as well, where Apex stops them all: a note says so.
SKIPPING_ALONE = ("clip/optimizers_in_two_loops", "several/own_optimizers_in_a_loop")
# What holds an optimizer is skipped with it, where Apex skipped that alone: a note says so.
SKIPPING_AROUND = ("several/lookahead_under_a_flag", "several/lookahead_of_a_library")
# Objects that train beside each other have loss scales of their own, where Apex had one for all: a note says so.
SCALING_APART = "several/objects_beside"
DIFFERING = (
    CLIPPING_IN_VAIN,
    SCALING_APART,
    *SKIPPING_THE_NEXT,
    *SKIPPING_ALONE,
    *SKIPPING_AROUND,
)

# Model-only programs take no step, and verify says so. What drives a training by an interface before amp.initialize is not
# followed there: tests/test_fixture_runs.py compares it.
TRAINING = {
    case.name: with_library(case)
    for case in cases()
    if case.run
    and case.changed
    and any(".backward(" in text for text in case.before.values())
    and "inference" not in case.name
    and not case.name.startswith("older/")
    and case.name not in NOT_FOLLOWED
}

_SPECIAL = {*NOT_INJECTED, *WITHOUT_CASTS, *THROWING_AWAY, *DIFFERING, RAISING}
# To verify all takes minutes: one in twelve, chosen by the names alone. What the others train is compared by what they
# print, in tests/test_fixture_runs.py.
_SOME = {name for name in TRAINING if crc32(name.encode()) % 24 in (0, 6)}
VERIFIED = TRAINING.keys() & (_SOME | _SPECIAL)
STEP_BY_STEP = _SOME - _SPECIAL
"""Those that `verify` finds equal in every bit with casts off, an overflow included."""
