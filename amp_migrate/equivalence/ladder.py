"""Climb from exact logic to numerics until the question is answered."""

from __future__ import annotations

import dataclasses

from amp_migrate.equivalence.capture.config import CaptureConfig
from amp_migrate.equivalence.comparison import gains
from amp_migrate.equivalence.comparison.beside import beside_fp32, ended
from amp_migrate.equivalence.comparison.census import compare_census, in_words
from amp_migrate.equivalence.comparison.complete import OUTPUT, incomplete, without_updates
from amp_migrate.equivalence.comparison.coverage import coverage_of
from amp_migrate.equivalence.comparison.hints import explain
from amp_migrate.equivalence.comparison.numeric import (
    anchored,
    begun_at,
    calmly,
    enveloped,
    from_settled_scale,
)
from amp_migrate.equivalence.comparison.scales import PLAIN, ScaleRule, rule_for
from amp_migrate.equivalence.comparison.steps import Comparison, compare
from amp_migrate.equivalence.comparison.verdict import (
    CANNOT_RUN,
    DIFFERENT,
    EXACT,
    Verdict,
    inconclusive,
)
from amp_migrate.equivalence.result import Level, Result
from amp_migrate.equivalence.runs import timing
from amp_migrate.equivalence.runs.fixcheck import check_fix
from amp_migrate.equivalence.runs.records import Run
from amp_migrate.equivalence.runs.runner import LOGIC, NUMERIC, SETTLED, Runner

_SAME = ScaleRule(exact=True)


class Answered(Exception):
    """The verdict is known; no higher level is needed."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(str(verdict))
        self.verdict = verdict


class Ladder:
    """The levels in order; `result` holds what each found."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.options = runner.options
        self.result = Result(
            options=runner.options,
            fixes=runner.trees.fixes,
            fixes_differ=runner.trees.fixes_differ,
            changed=runner.trees.changed,
            notes=list(runner.trees.notes),
        )

    def climb(self) -> Result:
        """Run every level that is needed and return what was found."""
        try:
            self._logic()
            self._fix()
            self._numeric()
        except Answered as answer:
            self.result.verdict = answer.verdict
        asked = self.options.timing or self.options.enables
        if asked and self.result.verdict.word != CANNOT_RUN:
            self._timing()
        return self.result

    def _logic(self) -> None:
        """Casts off: every recorded quantity must agree in every bit."""
        result, options = self.result, self.options
        config = self.runner.config(casts=False, growth=options.growth)
        before = self._before(LOGIC, config)
        self._label(before)
        result.coverage = coverage_of(before, options.steps)
        apex = before.notes.get("apex_amp")
        if apex is not None and apex["enabled"] and not apex["dynamic"]:
            config = dataclasses.replace(config, inject=())
            result.notes.append(
                f"loss_scale={apex['loss_scale']} is static: Apex never checks it for overflow, "
                "so none was injected"
            )
        again = self.runner.before(
            "logic again", self.runner.config(casts=False, growth=options.growth)
        )
        if again is not None:
            result.repeat = compare(before, again, _SAME)
        after = self.runner.after(LOGIC, config)
        self._label_after(after)
        rule = PLAIN if options.enables else rule_for(before, after, options.growth)
        if rule.reason:
            result.notes.append(rule.reason)
        comparison = compare(before, after, rule)
        result.crash = before.crash or after.crash
        result.logic = Level(LOGIC, before, after, comparison)
        result.held_to = "casts off: every bit"
        if not comparison.exact:
            self._differs(comparison)
        self._complete(before, after)

    def _differs(self, comparison: Comparison) -> None:
        """Answer for a difference with casts off, unless before does not even agree with itself."""
        repeat = self.result.repeat
        first = comparison.first
        if repeat is not None and not repeat.exact and self.options.runs < 2:
            raise Answered(inconclusive(_not_reproducible(repeat), "verify --runs 5"))
        if repeat is not None and not repeat.exact:
            self.result.notes.append(_not_reproducible(repeat))
            return
        if self.runner.trees.fixes_differ:
            self._fix()
        if first is None:
            raise Answered(inconclusive("no iteration could be compared", OUTPUT))
        raise Answered(Verdict(DIFFERENT, explain(first, self.result)))

    def _complete(self, before: Run, after: Run) -> None:
        """Refuse to conclude from runs that did not exercise what they have."""
        missing = incomplete(self.result, before, after)
        if missing is not None:
            raise Answered(missing)

    def _fix(self) -> None:
        """Check what the fixes promise: the gradient of the large batch."""
        if not self.result.fixes or self.result.fix_check is not None:
            return
        self.result.fix_check = check_fix(self.runner)
        if self.result.fix_check.get("agrees") is False:
            raise Answered(
                Verdict(
                    DIFFERENT,
                    "the accumulated gradient is not the gradient of the large batch "
                    f"(relative error {self.result.fix_check['error']:.2g})",
                )
            )

    def _numeric(self) -> None:
        """Casts on: first the dtypes, then the bits, then what an fp32 run allows."""
        result, options = self.result, self.options
        if not options.casts:
            raise Answered(Verdict(EXACT, "casts off only, as asked"))
        config = self.runner.config(casts=True, census=not options.enables)
        before = self._before(NUMERIC, config)
        apex = before.notes.get("apex_amp", {})
        if apex.get("enabled") and not apex.get("dynamic"):
            config = dataclasses.replace(config, inject=())
        config = dataclasses.replace(config, products=options.enables)
        after = self.runner.after(NUMERIC, config)
        rule = PLAIN if options.enables else rule_for(before, after, None)
        own = Level(NUMERIC, before, after, compare(before, after, rule))
        level = from_settled_scale(self.runner, own, rule, config)
        result.numeric = level
        before, after, comparison = level.before, level.after, level.comparison
        if level.first_scale is not None:
            result.notes.append(begun_at(level.first_scale, own))
        if options.enables:
            self._enabled(before, after, comparison)
        self._census(before, after)
        if comparison.exact:
            result.held_to = "casts on: every bit"
            result.notes += without_updates(before)
            if options.anchor:
                anchored(self.runner, self.result, before, after)
            if options.runs >= 2:
                enveloped(self.runner, self.result, before, after)
            raise Answered(Verdict(EXACT))
        self._inexact(before, after, comparison)

    def _enabled(self, before: Run, after: Run, comparison: Comparison) -> None:
        """Casts on, and before in FP32: the same passes and steps, and losses that stay together."""
        result = self.result
        if after.failure:
            raise Answered(ended(self.runner, result, after))
        differs = (d for d in comparison.differences if d.quantity in STRUCTURE - _SCALED)
        structural = next(differs, None)
        if structural is not None:
            raise Answered(Verdict(DIFFERENT, explain(structural, result)))
        raise Answered(beside_fp32(self.runner, result, before, after))

    def _census(self, before: Run, after: Run) -> None:
        one = before.processes[0].census if before.processes else None
        other = after.processes[0].census if after.processes else None
        if one is None or other is None:
            self.result.notes.append("too few steps for a census of dtypes")
            return
        level = str(before.notes.get("apex_amp", {}).get("opt_level", "O1"))
        rows = compare_census(one, other, level)
        self.result.census = rows
        faults = [row for row in rows if row.kind == "fault"]
        if faults:
            self.result.held_to = "casts on: the dtypes of operators"
            raise Answered(Verdict(DIFFERENT, "dtype census: " + in_words(faults)))

    def _inexact(self, before: Run, after: Run, comparison: Comparison) -> None:
        """Casts on and not equal in every bit: repeat, anchor, and the envelope on request."""
        settled = self.result.numeric.first_scale if self.result.numeric else None
        again = self.runner.before(
            f"{SETTLED if settled else NUMERIC} again", self.runner.config(**calmly(settled))
        )
        reproducible = True
        if again is not None:
            self.result.numeric_repeat = compare(before, again, _SAME)
            reproducible = self.result.numeric_repeat.exact
        structural = next((d for d in comparison.differences if d.quantity in STRUCTURE), None)
        if structural is not None:
            self.result.held_to = "casts on: the order of steps, skips and scales"
            raise Answered(Verdict(DIFFERENT, explain(structural, self.result)))
        if self.options.runs >= 2:
            raise Answered(enveloped(self.runner, self.result, before, after))
        if not reproducible and self.result.numeric_repeat is not None:
            reason = _not_reproducible(self.result.numeric_repeat)
            raise Answered(inconclusive(reason, "verify --runs 5"))
        raise Answered(anchored(self.runner, self.result, before, after))

    def _timing(self) -> None:
        """Light runs; nothing of the above is switched on in them."""
        result = self.result
        if not self.options.enables:
            label = "Apex" if "Apex" in result.before_label else "before"
            result.timing = timing.migrated(self.runner, label)
            return
        products = result.numeric.after.notes.get("products") if result.numeric else None
        if self.options.device != "cuda":
            result.notes += [gains.NO_GPU, *gains.uneven(products)]
        elif self.options.timing:
            result.timing, said = timing.enabled(self.runner)
            result.notes += said
            result.gain = gains.gain(result.timing, products)

    def _before(self, purpose: str, config: CaptureConfig) -> Run:
        """Run before and insist that it trains."""
        run = self.runner.before(purpose, config)
        if run is None:
            reason = f"the import holds no {purpose} run"
            raise Answered(inconclusive(reason, "verify --export before.json"))
        if run.steps:
            return run
        if run.failure:
            self.result.crash = run.crash
            raise Answered(Verdict(CANNOT_RUN, f"before: {run.failure}", explain=OUTPUT))
        raise Answered(inconclusive("no optimizer step was recorded", OUTPUT))

    def _label(self, before: Run) -> None:
        apex = before.notes.get("apex")
        self.result.before_label = str(apex) if apex else "no Apex"
        if self.options.enables:
            self.result.before_label = "FP32"
        if before.notes.get("compiles"):
            self.result.notes.append(
                "torch.compile is switched off in the compared runs, as kernels of its own choice prove nothing"
            )
        if "apex_unrelated" in before.notes:
            self.result.notes.append(
                f"the installed `apex` ({before.notes['apex_unrelated']}) is another project of "
                "that name and has no apex.amp"
            )

    def _label_after(self, after: Run) -> None:
        scaler = after.notes.get("grad_scaler")
        self.result.after_label = "native AMP" if scaler else "no loss scaling"
        if self.options.enables and not scaler:
            self.result.after_label = "autocast without a GradScaler"


STRUCTURE = frozenset(
    (
        "number of backwards",
        "gradients clean at start",
        "loss scale",
        "clip limit",
        "order of backward, clip and step",
        "optimizers stepped",
        "skipped steps",
        "learning rate",
        "number of iterations",
        "training processes",
    )
)

_SCALED = frozenset(("loss scale", "skipped steps"))  # what FP32 does not have


def _not_reproducible(repeat: Comparison) -> str:
    first = repeat.first
    where = f" in {first.quantity} at step {first.step}" if first is not None else ""
    return (
        f"two runs of the same program differ{where}; try --seed, --workers 0, "
        "or --runs 5 for a noise envelope"
    )
