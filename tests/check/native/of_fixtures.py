"""Faults planted into what fixtures become whose objects are made anew, all by one flag."""

from __future__ import annotations

from pathlib import Path

from check.trainings.planted import Training

_FIXTURES = Path(__file__).parents[3] / "fixtures"
_CAST = "    @torch.cuda.amp.custom_bwd\n"
_DROPPED = "        torch.clear_autocast_cache()  # of weights cast without gradients\n"
_MADE = "self.scaler = torch.cuda.amp.GradScaler(enabled=self.half)"

_REPLACED = (
    'net.forward = torch.cuda.amp.autocast(enabled=level != "O0")(type(net).forward).__get__(net)'
)


def _texts(path: Path) -> dict[str, str]:
    """Return the texts of a fixture, which is a file or a folder, by path."""
    if path.is_dir():
        return {str(p.relative_to(path)): p.read_text("utf-8") for p in sorted(path.rglob("*.py"))}
    return {"before.py": path.with_suffix(".py").read_text("utf-8")}


def _of(case: str, *claims: tuple[str, str, int], **faults: list[tuple[str, str]]) -> Training:
    before, after = (_texts(_FIXTURES / case / side) for side in ("before", "after"))
    planted = {name.replace("_", " "): tuple(edits) for name, edits in faults.items()}
    return Training(f"the fixture {case}", before, after, planted, claims)


OF_FIXTURES = (
    _of(
        "evaluate/sizes_of_what_was_predicted",
        ranked_without_casts=[
            (
                "        with torch.cuda.amp.autocast():\n            scores = net.rank(items)\n",
                "        scores = net.rank(items)\n",
            )
        ],
    ),
    _of(
        "simple/scale_that_no_call_gives",
        scale_of_the_other_kind=[("if loss_scale in (None", "if loss_scale not in (None")],
    ),
    _of(
        "project/static_scale_by_default",
        scale_that_grows=[("growth_interval=2**31 - 1", "growth_interval=2000")],
        scale_of_the_other_kind=[("if scale in (None", "if scale not in (None")],
    ),
    _of(
        "flags/level_by_another_name",
        level_of_another_number=[("hparams.level", "hparams.seed")],
    ),
    _of(
        "flags/learner_for_each_fold",
        scaled_in_the_first_fold_alone=[
            (_MADE, _MADE.replace("self.half", "self.half and self.fold == 0"))
        ],
        scaled_by_what_no_fold_is_told=[
            (_MADE, _MADE.replace("self.half", "self.options.cautious"))
        ],
    ),
    _of(
        "dual/schedule_that_steps_for_either",
        unscaled_for_the_other_way_too=[
            (
                "            else:\n                scaler.unscale_(self.optimizer)\n",
                "            scaler.unscale_(self.optimizer)\n",
            )
        ],
        update_for_the_other_way_alone=[
            (
                "            scaler.step(self.optimizer)\n            scaler.update()\n        else",
                "            scaler.step(self.optimizer)\n        else",
            )
        ],
        scaled_by_no_test=[('enabled=self.backend == "apex"', "")],
    ),
    _of(
        "several/learner_class_by_a_flag",
        lacked_by_the_other_class=[
            ("    scaler = torch.cuda.amp.GradScaler(enabled=False)\n\n", "")
        ],
    ),
    _of(
        "clip/callbacks_behind_getattribute",
        scaled_for_callbacks=[("        self.scaler.unscale_(self.opt)\n", "")],
    ),
    _of(
        "autocast/backward_of_its_own",
        not_cast_where_it_adds_up=[
            (
                f"{_CAST}    def backward(ctx, grad):\n        x, weight",
                "    def backward(ctx, grad):\n        x, weight",
            )
        ],
        not_cast_where_it_runs_a_block_again=[
            (
                f"{_CAST}    def backward(ctx, grad):\n        inputs",
                "    def backward(ctx, grad):\n        inputs",
            )
        ],
        gradients_taken_under_casts=[
            (
                "        with torch.cuda.amp.autocast(enabled=False):\n            grads",
                "        grads",
            )
        ],
    ),
    _of(
        "autocast/backward_of_a_function_made_for_a_factor",
        not_cast_behind_what_makes_it=[("        @torch.cuda.amp.custom_bwd\n", "")],
    ),
    _of(
        "several/sum_of_losses_returned_behind_an_attack",
        sum_behind_the_casts=[
            (
                "            return F.cross_entropy(clean, y) + self.weight",
                "        return F.cross_entropy(clean, y) + self.weight",
            )
        ],
    ),
    _of(
        "evaluate/lengths_collected_where_they_are_computed",
        peaks_behind_the_casts=[("            peaks.append", "        peaks.append")],
    ),
    _of(
        "flags/early_return_with_nothing_behind",
        on_where_a_method_ends_early=[
            ("enabled=self.level is not None and self.level", "enabled=self.level")
        ],
    ),
    _of(
        "simple/scale_always_a_number",
        scale_that_grows=[("    growth_interval=2**31 - 1,\n", "")],
    ),
    _of(
        "autocast/backwards_beside_one_forward",
        one_of_them_not_cast=[
            (
                f"class Half(Kept):\n    @staticmethod\n{_CAST}",
                "class Half(Kept):\n    @staticmethod\n",
            )
        ],
    ),
    _of(
        "autocast/method_that_takes_the_gradients",
        what_it_casts_is_kept=[(_DROPPED, "")],
        dropped_too_early=[
            (_DROPPED, ""),
            ("        weights = self", f"{_DROPPED}        weights = self"),
        ],
        dropped_too_late=[
            (_DROPPED, ""),
            ("        return (errors", f"{_DROPPED}        return (errors"),
        ],
    ),
    _of("autocast/teacher_set_from_outside", copies_stay=[(_DROPPED, "")]),
    _of(
        "evaluate/sums_of_a_network_handed_back",
        added_up_in_fp16=[
            (
                "            total += output.sum().item()\n",
                "        total += output.sum().item()\n",
            )
        ],
    ),
    _of(
        "project/mmcv_processor_sets_the_mode",
        cast_for_a_layer_alone=[
            (_REPLACED, _REPLACED.replace("net.", "net.encode.").replace("(net)", "(net.encode)"))
        ],
        cast_nowhere=[(f"        {_REPLACED}\n", "        pass\n")],
    ),
    _of(
        "dual/amp_or_none_handed_on",
        *(("AMP114", "ladder.py", line) for line in (16, 17, 20, 22, 49, 50)),
        *(("AMP114", "shelf.py", line) for line in (10, 11, 18, 19)),
        scaled_for_nobody=[
            ("            scaler.scale(loss).backward()", "            loss.backward()")
        ],
        stepped_without_the_scaler=[
            ("            scaler.step(optimizer)\n", "            optimizer.step()\n")
        ],
    ),
    _of(
        "evaluate/predicts_with_a_network_made_anew",
        the_new_network_cast_too=[
            ("with torch.no_grad():", "with torch.no_grad(), torch.cuda.amp.autocast():")
        ],
        the_first_network_not_cast=[
            ("        with torch.cuda.amp.autocast():\n            loss = ", "        loss = ")
        ],
    ),
    _of(
        "evaluate/wrapped_as_the_training_wraps",
        cast_at_every_level=[('args.level == "O1"', 'args.level != "O0"')],
        never_cast=[('args.fit and args.fp16 and args.level == "O1"', "False")],
        cast_without_the_training=[("args.fit and ", "")],
    ),
    _of(
        "clip/tables_left_out_of_the_optimizer",
        gradients_of_no_optimizer_clipped_too=[
            (
                '[p for group in optimizer.param_groups for p in group["params"]]',
                "model.parameters()",
            )
        ],
    ),
    _of(
        "simple/arguments_by_keyword",
        a_loss_that_is_not_scaled=[("[self.scaler.scale(critic_loss)]", "[critic_loss]")],
        clip_of_scaled_gradients=[("        self.scaler.unscale_(self.critic_optimizer)\n", "")],
        loss_of_the_other=[
            ("[self.scaler.scale(critic_loss)]", "[self.scaler.scale(value.mean())]")
        ],
    ),
    _of(
        "clip/some_parameters_by_keyword",
        gradients_of_no_optimizer_clipped_too=[
            (
                '[p for group in optimizer.param_groups for p in group["params"]]',
                "net.parameters()",
            )
        ],
        true_gradients_stepped_on_scaled=[("        scaler.unscale_(optimizer)\n", "")],
    ),
    _of(
        "clip/groups_of_a_generator_that_is_used_up",
        gradients_of_no_optimizer_clipped_too=[
            (
                '[p for group in optimizer.param_groups for p in group["params"]]',
                "model.parameters()",
            )
        ],
    ),
    _of(
        "autocast/critic_of_means_by_a_partial",
        the_loss_of_one_network_in_fp16=[("(made).float().mean()", "(made).mean()")],
        the_loss_of_the_other_in_fp16=[
            ("found.float()", "found"),
            ("invented.float()", "invented"),
        ],
    ),
    _of(
        "autocast/products_of_unpacked_outputs_at_o2",
        product_of_what_a_tuple_held_in_fp16=[
            (
                "    with torch.cuda.amp.autocast(enabled=False):\n        scores",
                "    if True:\n        scores",
            )
        ],
        product_of_what_the_rest_collects_in_fp16=[
            (
                "    with torch.cuda.amp.autocast(enabled=False):\n        mixed",
                "    if True:\n        mixed",
            )
        ],
        product_of_what_a_dictionary_held_in_fp16=[
            (
                "    with torch.cuda.amp.autocast(enabled=False):\n        return",
                "    if True:\n        return",
            )
        ],
    ),
)
