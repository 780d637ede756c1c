"""Ways to break the rewriter: each spoils the decisions of one rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import ModuleType

from amp_migrate.plan.model import (
    Decision,
    Drop,
    Edit,
    Insert,
    Move,
    Replace,
    ReplaceExpression,
    Wrap,
)
from amp_migrate.rules.autocast import amp104_autocast, amp107_evaluation
from amp_migrate.rules.calls import (
    amp102_initialize,
    amp103_scale_loss,
    amp105_step,
    amp106_unscale,
    amp116_further_backward,
)
from amp_migrate.rules.carrying import amp108_checkpoint
from amp_migrate.rules.order import (
    amp201_zero_grad_every_micro_batch,
    amp208_clip_every_micro_batch,
    amp209_zero_grad_in_forward,
)

Spoil = Callable[[Edit], "Edit | None"]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A rule whose edits go through `spoil`; an edit that becomes None is not made.

    `wanted` are features of programs in which the fault can show.
    """

    name: str
    rule: ModuleType
    spoil: Spoil
    wanted: dict[str, set[str]]

    def decide(self) -> Callable[..., Iterator[Decision]]:
        """Return the spoiled `decide` of the rule."""
        original = self.rule.decide

        def decide(context: object) -> Iterator[Decision]:
            for made in original(context):
                edits = [(path, self.spoil(edit)) for path, edit in made.edits]
                kept = [(path, edit) for path, edit in edits if edit is not None]
                yield Decision(made.finding, kept)

        return decide


def _none(edit: Edit) -> Edit | None:
    return None


def _without(kind: type[Edit], word: str) -> Spoil:
    def spoil(edit: Edit) -> Edit | None:
        return None if isinstance(edit, kind) and word in str(edit) else edit

    return spoil


def _replaced(old: str, new: str) -> Spoil:
    def spoil(edit: Edit) -> Edit | None:
        if isinstance(edit, Insert | ReplaceExpression | Replace):
            return replace(edit, text=edit.text.replace(old, new))
        return edit

    return spoil


def _update_first(edit: Edit) -> Edit | None:
    return replace(edit, after=False) if isinstance(edit, Insert) else edit


def _always_enabled(edit: Edit) -> Edit | None:
    if (
        isinstance(edit, Insert | ReplaceExpression | Replace)
        and "GradScaler(enabled=" in edit.text
    ):
        head = edit.text.partition("GradScaler(")[0]
        return replace(edit, text=f"{head}GradScaler()")
    return edit


def _dropped(edit: Edit) -> Edit | None:
    return Drop(edit.span) if isinstance(edit, Move) else edit


MUTANTS = (
    Mutant(
        "no unscale_",
        amp106_unscale,
        _without(Insert, "unscale_"),
        {"clip": {"master", "flag_else"}},
    ),
    Mutant("update before step", amp105_step, _update_first, {}),
    Mutant("no update", amp105_step, _without(Insert, "update"), {}),
    Mutant("no autocast", amp104_autocast, _without(Wrap, ""), {}),
    Mutant("step unscaled", amp105_step, _without(ReplaceExpression, "step"), {}),
    Mutant("backward unscaled", amp103_scale_loss, _replaced(".scale(", ".get_scale() and ("), {}),
    Mutant(
        "second backward unscaled", amp116_further_backward, _none, {"losses": {"plain_second"}}
    ),
    Mutant(
        "another scaler", amp105_step, _replaced("scaler.step(", "scaler.__class__().step("), {}
    ),
    Mutant(
        "evaluation in fp32", amp107_evaluation, _none, {"evaluation": {"no_grad", "decorator"}}
    ),
    Mutant(
        "always enabled",
        amp102_initialize,
        _always_enabled,
        {"flag_run": {"off"}, "guard": {"flag"}, "overflow": {"1", "2", "3"}},
    ),
    Mutant(
        "scaler not restored",
        amp108_checkpoint,
        _replaced(".load_state_dict", ".state_dict().get"),
        {"resume": {"yes"}, "overflow": {"1", "2", "3"}},
    ),
    Mutant(
        "zero_grad on every micro-batch",
        amp201_zero_grad_every_micro_batch,
        _none,
        {"mistake": {"zero_every"}},
    ),
    Mutant(
        "clip on every micro-batch",
        amp208_clip_every_micro_batch,
        _none,
        {"mistake": {"clip_every"}},
    ),
    Mutant(
        "zero_grad lost", amp209_zero_grad_in_forward, _dropped, {"zero": {"between", "in_forward"}}
    ),
)
