"""The decision rules on hand-made records: scales, census, anchor, envelope, coverage, verdicts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from amp_migrate.equivalence.comparison.anchor import against_anchor, largest_deviation
from amp_migrate.equivalence.comparison.census import compare_census, in_words
from amp_migrate.equivalence.comparison.coverage import coverage_of
from amp_migrate.equivalence.comparison.envelope import bands, equivalence
from amp_migrate.equivalence.comparison.hints import explain
from amp_migrate.equivalence.comparison.scales import ScaleRule, rule_for
from amp_migrate.equivalence.comparison.steps import Difference, compare
from amp_migrate.equivalence.comparison.verdict import Verdict
from amp_migrate.equivalence.options import Options
from amp_migrate.equivalence.result import Level, Result
from amp_migrate.equivalence.runs.records import Attempt, Clip, Process, Run, Step


def step(
    index: int, loss: float = 1.0, scale: float = 4.0, skipped: bool = False, **more: object
) -> Step:
    """One iteration of one backward and one optimizer."""
    attempt = Attempt(0, skipped, (0.1,), None if skipped else 1.0, 0.5, 2.0, "p", {"step": "s"})
    held = Step(index, "B(S^", True, (loss,), (scale,), (Clip(2.0, 1.0),), (attempt,), False)
    return replace(held, **more)  # type: ignore[arg-type]


def run(*steps: Step, **notes: object) -> Run:
    """One process's run."""
    return Run("run", (Process(0, {}, steps, None, None, None, {}, "steps"),), dict(notes))


APEX = {"enabled": True, "dynamic": True, "num_losses": 1, "initialized": [1]}
SAME = ScaleRule(exact=True)


def test_scales_must_be_equal_where_backwards_and_updates_agree() -> None:
    """One backward per update: Apex's sequence is GradScaler's."""
    before = run(step(1), step(2, scale=8.0), apex_amp=APEX)
    assert rule_for(before, before, 10).exact
    after = run(step(1), step(2, scale=4.0))
    found = compare(before, after, rule_for(before, after, 10)).first
    assert found is not None and (found.quantity, found.step) == ("loss scale", 2)


def test_scales_follow_the_native_schedule_under_accumulation() -> None:
    """Two backwards per update: growth after two updates or after one is right, never is wrong."""
    twice = {"losses": (1.0, 1.0), "scales": (4.0, 4.0)}
    before = run(*(step(n, **twice) for n in (1, 2, 3, 4)), apex_amp=APEX)
    for scales, wrong in (((4, 4, 8, 8), None), ((4, 8, 16, 32), None), ((4, 4, 4, 4), 3)):
        after = run(
            *(step(n, **{**twice, "scales": (scale, scale)}) for n, scale in enumerate(scales, 1))
        )
        rule = rule_for(before, after, 2)
        assert not rule.exact
        assert rule.first_disagreement(before.steps, after.steps) == wrong


def test_scales_may_start_anew_where_apex_initializes_again() -> None:
    """A fold's new GradScaler starts at Apex's first scale there, and nowhere else."""
    twice = {"losses": (1.0, 1.0), "scales": (4.0, 4.0)}
    apex = {**APEX, "initialized": [1, 3]}
    before = run(*(step(n, **twice) for n in (1, 2, 3, 4)), apex_amp=apex)
    for scales, wrong in (((4, 8, 4, 8), None), ((4, 8, 16, 32), None), ((4, 8, 16, 4), 4)):
        after = run(
            *(step(n, **{**twice, "scales": (scale, scale)}) for n, scale in enumerate(scales, 1))
        )
        rule = rule_for(before, after, 1)
        assert rule.first_disagreement(before.steps, after.steps) == wrong


def test_plain_backwards_have_no_part_in_the_loss_scale() -> None:
    """A backward that nothing scales, before the scaled one, neither counts nor starts the schedule."""
    twice = {"losses": (1.0, 1.0), "scales": (1.0, 4.0)}
    before = run(*(step(n, **twice) for n in (1, 2)), apex_amp=APEX)
    assert rule_for(before, before, 10).exact
    assert [one.scale for one in before.steps] == [4.0, 4.0]


def test_optimizers_without_a_scaler_say_nothing_of_the_loss_scale() -> None:
    """Steps on gradients that neither side scales stand among those of a GradScaler, and before them."""
    apart = {"events": "BS", "scales": (1.0,)}
    apex = {**APEX, "num_losses": 2}
    before = run(step(1, **apart), *(step(n) for n in (2, 3)), step(4, **apart), apex_amp=apex)
    for last, wrong in ((apart, None), ({"scales": (4.0,)}, None), ({"scales": (8.0,)}, 4)):
        after = run(step(1, **apart), *(step(n) for n in (2, 3)), step(4, **last))
        rule = rule_for(before, after, 10)
        assert not rule.exact
        assert rule.first_disagreement(before.steps, after.steps) == wrong


def test_first_difference_is_causal() -> None:
    """Of one iteration the earliest cause is named, of several the earliest iteration."""
    changed = step(2).attempts[0]
    late = step(2, losses=(1.5,), attempts=(replace(changed, params="q"),), clean=False)
    found = compare(run(step(1), step(2)), run(step(1), late), SAME)
    assert [one.quantity for one in found.differences] == [
        "gradients clean at start",
        "loss",
        "parameters",
    ]


def test_clip_norm_counts_only_where_someone_reads_it() -> None:
    """Both skipped: Apex leaves gradients half unscaled, and nobody uses them."""
    ours = step(1, skipped=True, clips=(Clip(7.0, 1.0),))
    assert compare(run(ours), run(step(1, skipped=True)), SAME).exact
    assert not compare(run(replace(ours, attempts=step(1).attempts)), run(step(1)), SAME).exact


def test_state_is_compared_on_shared_keys() -> None:
    """A fused optimizer's stand-in may keep more state."""
    attempt = replace(step(1).attempts[0], state={"step": "s", "extra": "x"})
    assert compare(run(step(1, attempts=(attempt,))), run(step(1)), SAME).exact
    attempt = replace(attempt, state={"step": "t"})
    assert not compare(run(step(1, attempts=(attempt,))), run(step(1)), SAME).exact


def test_nothing_compared_is_not_exact() -> None:
    """Zero iterations never agree, and a missing process is a difference."""
    assert not compare(Run("a"), Run("b"), SAME).exact
    both = Run("two", run(step(1)).processes * 2)
    assert not compare(both, run(step(1)), SAME).exact


@pytest.mark.parametrize(
    ("before", "after", "level", "kinds"),
    [
        ({("gelu", "float32", "forward"): 2}, {("gelu", "float16", "forward"): 2}, "O1", ["policy"]),
        ({("gelu", "float16", "forward"): 2}, {("gelu", "float32", "forward"): 2}, "O1", ["fault"]),
        ({("mm", "float16", "forward"): 2}, {("mm", "float32", "forward"): 2}, "O1", ["fault"]),
        ({("mm", "float16", "forward"): 2}, {("mm", "bfloat16", "forward"): 2}, "O2", ["fault"]),
        ({("_softmax", "float16", "forward"): 1}, {("_softmax", "float32", "forward"): 1}, "O2", ["policy"]),
        ({("mm", "float16", "forward"): 2}, {("mm", "float16", "forward"): 2}, "O1", []),
        ({("einsum", "float32", "forward"): 2, ("bmm", "float32", "backward"): 4},
         {("einsum", "float16", "forward"): 2, ("bmm", "float16", "backward"): 4}, "O1", ["policy"] * 2),
        ({("einsum", "float32", "forward"): 1, ("bmm", "float32", "backward"): 4},
         {("einsum", "float16", "forward"): 1, ("bmm", "float16", "backward"): 4}, "O1", ["fault", "policy"]),
        ({("einsum", "float16", "forward"): 1}, {("einsum", "float32", "forward"): 1}, "O1", ["fault"]),
        ({("cross_entropy", "float32", "forward"): 1}, {("cross_entropy", "float16", "forward"): 1}, "O1", ["policy"]),
        ({("_log_softmax", "float32", "forward"): 1}, {("_log_softmax", "float16", "forward"): 1}, "O1", ["fault"]),
        ({("cross_entropy", "float32", "forward"): 1, ("nll_loss_forward", "float32", "forward"): 1},
         {("cross_entropy", "float16", "forward"): 1, ("nll_loss_forward", "float16", "forward"): 1}, "O1",
         ["policy", "fault"]),
        ({("gelu", "float32", "forward"): 1, ("bmm", "float16", "forward"): 1, ("mm", "float16", "forward"): 2},
         {("gelu", "float16", "forward"): 1, ("mm", "float16", "forward"): 3}, "O1", ["policy"] * 3),
        ({("gelu", "float32", "forward"): 1, ("bmm", "float16", "forward"): 1, ("mm", "float16", "forward"): 2},
         {("gelu", "float16", "forward"): 1, ("mm", "float32", "forward"): 3}, "O1", ["fault", "policy", "fault"]),
        ({("bmm", "float16", "forward"): 1}, {("mm", "float16", "forward"): 1}, "O1", ["fault"] * 2),
    ],
)  # fmt: skip
def test_census_tells_faults_from_policy(
    before: dict, after: dict, level: str, kinds: list[str]
) -> None:
    """Only the listed differences, in the listed direction, are the cast lists' doing."""
    assert [row.kind for row in compare_census(before, after, level)] == kinds


def test_anchor_allows_the_error_of_before_and_no_more() -> None:
    """Errors of the size of before's pass; ten times that do not."""
    truth = tuple(step(n, loss=1.0) for n in range(1, 9))
    before = tuple(step(n, loss=1.001) for n in range(1, 9))
    fine = tuple(step(n, loss=0.999) for n in range(1, 9))
    wrong = tuple(step(n, loss=1.0 if n < 5 else 1.01) for n in range(1, 9))
    assert [errors.alarm for errors in against_anchor(truth, before, fine)] == [None] * 3
    assert against_anchor(truth, before, wrong)[0].alarm == 5


@pytest.mark.parametrize(
    ("losses", "alarm"),
    [
        ({8: 1.004}, None),  # one batch of many, by less than twice what before allows
        ({8: 1.007}, 8),
        ({4: 1.004, 8: 1.004}, 8),  # as where each second step is that of another network
        ({3: 1.004, 10: 1.004}, None),
    ],
)
def test_one_step_alone_must_be_far_from_fp32(losses: dict[int, float], alarm: int | None) -> None:
    """The loss of one batch may be far off by chance; a fault stays, or comes back soon."""
    truth = tuple(step(n) for n in range(1, 13))
    before = tuple(step(n, loss=1.001) for n in range(1, 13))
    after = tuple(step(n, loss=losses.get(n, 1.001)) for n in range(1, 13))
    assert against_anchor(truth, before, after)[0].alarm == alarm


def test_what_is_not_finite_before_allows_nothing_after() -> None:
    """A loss that is NaN on both sides is left out, and one that is NaN after alone is an alarm."""
    nan = float("nan")

    def curve(loss: float, seventh: float) -> tuple[Step, ...]:
        return tuple(step(n, loss=seventh if n == 7 else loss) for n in range(1, 9))

    before, after = curve(1.001, nan), curve(0.999, nan)
    loss = against_anchor(curve(1.0, 1.0), before, after)[0]
    assert loss.alarm is None and loss.limit[6] is None and loss.limit[5] < 1
    assert largest_deviation(before, after) < 1
    worse = tuple(step(n, loss=1.1) for n in range(1, 9))
    assert against_anchor(curve(1.0, 1.0), before, worse)[0].alarm == 1
    assert against_anchor(curve(1.0, nan), before, curve(0.999, nan))[0].alarm is None
    assert against_anchor(curve(1.0, 1.0), curve(1.001, 1.001), after)[0].alarm == 7


def test_envelope_and_equivalence() -> None:
    """A run inside the spread passes and one outside is found at its step."""

    def curve(*, offset: float, bump: float = 0.0) -> tuple[Step, ...]:
        return tuple(step(n, loss=1 + offset + (bump if n == 6 else 0)) for n in range(1, 9))

    ours = [curve(offset=value) for value in (-1e-4, 0.0, 1e-4)]
    assert bands(ours, curve(offset=5e-5))[0].alarm is None
    assert bands(ours, curve(offset=0.0, bump=0.01))[0].alarm == 6
    tested = equivalence(ours, [curve(offset=v) for v in (-1e-4, 0.0, 2e-4)], 0.005)
    assert tested.answer == "EQUIVALENT" and tested.low < tested.difference < tested.high
    assert (
        equivalence(ours, [curve(offset=v + 0.1) for v in (0, 1e-4)], 0.005).answer == "DIFFERENT"
    )
    assert (
        equivalence(ours, [curve(offset=v) for v in (-0.02, 0.02)], 0.005).answer == "INCONCLUSIVE"
    )


@pytest.mark.parametrize(
    ("after", "quantity", "said"),
    [
        ({"events": "BBS^"}, "gradient norm", "optimizer.step() instead of scaler.step(optimizer)"),
        ({"scales": (4.0, 1.0)}, "gradient norm", "backward 2 of 2 is not scaled"),
        ({"scales": (1.0, 4.0)}, "parameters", "backward 1 of 2 is not scaled"),
        ({}, "gradient norm", "the optimizer steps on other gradients"),
        ({"events": "BBS^"}, "loss", "the forward, the data or the division"),
    ],
)
def test_a_difference_is_explained(after: dict[str, object], quantity: str, said: str) -> None:
    """A step or a backward that goes without the GradScaler is named where gradients differ."""
    twice = {"losses": (1.0, 1.0), "scales": (4.0, 4.0), "events": "BBS"}
    ours = run(step(1, **twice))
    theirs = run(step(1, **{**twice, "events": "BB(S^", **after}))
    result = Result(Options(("python", "train.py"), Path()))
    result.logic = Level("logic", ours, theirs, compare(ours, theirs, SAME))
    assert said in explain(Difference(0, 1, quantity, "1.0", "1.1"), result)


def test_faults_of_the_census_are_explained() -> None:
    """What left fp16 was outside autocast; of many operators three are named."""
    ours = {("mm", "float16", "forward"): 2, ("addmm", "float16", "forward"): 2}
    theirs = {("mm", "float32", "forward"): 2, ("addmm", "float32", "forward"): 2}
    lost, found = (list(compare_census(*pair, "O1")) for pair in ((ours, theirs), (theirs, ours)))
    assert in_words(lost).endswith("2 x float32: a forward, or a part of it, is outside autocast")
    assert in_words(found).endswith("autocast is on where Apex cast nothing")
    assert in_words(lost * 2).count("mm (forward)") == 3 and "and 1 more" in in_words(lost * 2)


def test_coverage_counts_what_happened() -> None:
    """The coverage line counts skips, active clips, growths and learning rates."""
    dull = step(3, clips=(Clip(0.5, 1.0),), scales=(8.0,))
    covered = coverage_of(run(step(1), step(2, skipped=True), dull), asked=5)
    assert (covered.steps, covered.skipped, covered.clips_active, covered.growths) == (3, 1, 2, 1)
    assert str(covered).startswith("3 of 5 steps, 1 optimizer, 1 backward a step, 1 skipped")


def test_exit_codes() -> None:
    """The five answers and what the shell sees."""
    words = ("EXACT", "EQUIVALENT", "DIFFERENT", "INCONCLUSIVE", "CANNOT_RUN")
    assert [Verdict(word).exit_code for word in words] == [0, 0, 1, 2, 3]
    assert str(Verdict("EQUIVALENT", delta=0.00123)) == "EQUIVALENT(0.0012)"
    assert str(Verdict("INCONCLUSIVE", "too short")) == "INCONCLUSIVE(too short)"
