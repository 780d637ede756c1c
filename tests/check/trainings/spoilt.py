"""Fixtures and what a wrong decision would make of them: gradients of inputs, attributes left unset, scalers that outlast a loop."""

from __future__ import annotations

from check.trainings.planted import Training
from fixture_support import ROOT


def _training(case: str, **faults: list[tuple[str, str]]) -> Training:
    before, after = (
        (ROOT / case / name).read_text(encoding="utf-8") for name in ("before.py", "after.py")
    )
    spoilt = {fault.replace("_", " "): tuple(edits) for fault, edits in faults.items()}
    return Training(case, {"before.py": before}, {"before.py": after}, spoilt)


SPOILT = (
    _training(
        "clip/one_of_several_by_flag",
        the_whole_network_for_one=[
            ('[p for group in optimizer.param_groups for p in group["params"]] if self.use_amp else ', "")
        ],
    ),
    _training(
        "several/attack_told_by_a_variable",
        one_branch_for_both=[
            (
                "        if training:\n            scaler.scale(loss).backward()\n"
                "        else:\n            loss.backward()\n",
                "        scaler.scale(loss).backward()\n",
            )
        ],
    ),
    _training(
        "several/gradient_kept_for_a_perturbation",
        scaled=[("        loss.backward()\n", "        scaler.scale(loss).backward()\n")],
    ),
    _training(
        "layout/setup_that_returns_early",
        made_behind_the_return_of_a_dataclass=[
            (
                "        self.scaler = torch.cuda.amp.GradScaler(enabled=self.args.amp)\n",
                "        if not self.args.amp:\n            return\n        self.scaler = torch.cuda.amp.GradScaler()\n",
            ),
        ],
    ),
    _training(
        "layout/training_again_in_each_fold",
        made_before_the_loop=[
            ("    scaler = torch.cuda.amp.GradScaler(enabled=args.half)\n", ""),
            ("for fold in", "scaler = torch.cuda.amp.GradScaler(enabled=args.half)\nfor fold in"),
        ],
    ),
)  # fmt: skip
