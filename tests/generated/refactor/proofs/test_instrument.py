"""The instrument itself: wrong refactorings are found invalid, wrong migrations are found wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from amp_migrate.check.judging.judge import Judge
from amp_migrate.check.judging.objections import Judgement
from generated.choices.features import draw
from generated.judging.execute import Side
from generated.judging.mutants import MUTANTS, Mutant
from generated.refactor.bases import base, names
from generated.refactor.judging.judge import FAILURES, Judged, judged, known, unlike
from generated.refactor.judging.migrated import Migrated, migrated
from generated.refactor.judging.shrink import shrunk
from generated.refactor.judging.variant import Variant, applied, drawn, rebuilt
from generated.refactor.project import Project

_EXTRACT = "a run of statements becomes a function"


@dataclass(frozen=True)
class Wrong:
    """A change that is no refactoring: what `pattern` finds becomes `text`."""

    name: str
    pattern: str
    text: str

    def apply(self, project: Project) -> Project | None:
        """Apply it to the first file where it fits."""
        for path, text in project.files.items():
            changed, count = re.subn(self.pattern, self.text, text, flags=re.MULTILINE)
            if count and changed != text:
                return project.changed(path, changed)
        return None


WRONG = (
    Wrong("zero_grad is lost", r"^( *)(\w+\.)*optimizer\.zero_grad\(\)$", r"\1pass"),
    Wrong("a step is lost", r"^( *)((self\.)?optimizer|optim)\.step\(\)$", r"\1pass"),
    Wrong("a step comes twice", r"^( *)((self\.)?optimizer\.step\(\))$", r"\1\2; \2"),
    Wrong("one epoch more", r"in range\(([\w.]*epochs)\)", r"in range(\1 + 1)"),
    Wrong("the window is shifted", r"\+ 1\) % ([\w.]+) == 0", r"+ 2) % \1 == 0"),
    Wrong("evaluation with dropout", r"^( *)((self\.)?model)\.eval\(\)$", r"\1\2.train()"),
    Wrong(
        "backward comes twice",
        r"^( *)(scaled_loss)\.backward\(\)$",
        r"\1\2.backward(retain_graph=True); \2.backward()",
    ),
    Wrong("another learning rate", r'("--lr", type=float, default=0\.0)5', r"\g<1>6"),
    Wrong("the loss is not divided", r"^( *loss = .*) / [\w.]*accum\w*$", r"\1"),
    Wrong("another norm", r'("--max_grad_norm", type=float, default=0\.0)5', r"\g<1>6"),
    Wrong("no casts", r'opt_level="O1"', 'opt_level="O0"'),
    Wrong("another seed", r"manual_seed\(7\)", "manual_seed(8)"),
    Wrong("a line is not printed", r'^( *)print\("loss".*\)$', r"\1pass"),
)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_a_wrong_refactoring_is_invalid(wrong: Wrong) -> None:
    """A change that trains otherwise never counts as a variant."""
    outcomes = [judged([variant])[0].outcome for variant in _spoilt(wrong)]
    assert outcomes
    assert "invalid" in outcomes
    assert set(outcomes) <= {"invalid", "same"}  # a lost last zero_grad changes nothing


def _spoilt(wrong: Wrong) -> Iterator[Variant]:
    found = 0
    for name in names():
        project = wrong.apply(base(name).project) if name.startswith("generated/") else None
        if project is not None and _plain(name):
            yield Variant(base(name), (("wrong", 0),), project)
            found += 1
            if found == 2:
                return


def _plain(name: str) -> bool:
    """Tell whether a base is migrated without a fix, which could make a change of no effect have one."""
    found = known(base(name))
    return not found.fault and not found.migrated.fixed


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_wrong_migration_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a broken rewriter, some variant that is the same otherwise crashes, is broken, or trains wrong.

    The check of the written text, which would refuse what is wrong, is out of force.
    """
    monkeypatch.setattr(Judge, "judged", lambda *_: Judgement([], []))
    unfixed = {"left"} if mutant.name.endswith("every micro-batch") else set()
    outcomes = list[str]()
    for variant in _variants(mutant):
        if judged([variant])[0].outcome in ("same", "ugly"):
            with monkeypatch.context() as broken:
                broken.setattr(mutant.rule, "decide", mutant.decide())
                outcomes += [judged([variant])[0].outcome]
        if outcomes and outcomes[-1] in {*FAILURES, *unfixed}:
            return
    pytest.fail(f"not found: {outcomes}")


def test_what_trains_as_apex_is_right() -> None:
    """A migrated variant may do in each mode what Apex did there, as well as what its migrated base does."""
    start = replace(base("clip/update_skipped_at_times"), modes=("logic", "casts"))
    apex: Side = {"logic": [("printed", "1.5")], "casts": [("printed", "1.25")]}
    known_after: Side = {"logic": [("printed", "1.501")], "casts": [("printed", "1.251")]}
    assert not unlike(start, apex, known_after, {**apex})
    assert not unlike(start, apex, known_after, {**known_after, "logic": apex["logic"]})
    assert unlike(start, apex, known_after, {**apex, "casts": [("printed", "1.252")]})


def test_a_fix_that_goes_by_a_name_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A codemod that claims a fix where a flag of a script has another word is told from one that does not."""
    start = base("clip/update_skipped_at_times")
    steps = [("a flag gets a word that says something else", seed) for seed in range(10)]
    variants = [variant for step in steps if (variant := rebuilt(start, [step]))]
    renamed = ["skip_update" not in variant.project.text for variant in variants]
    assert {True, False} == set(renamed)
    assert {verdict.outcome for verdict in judged(variants)} == {"same"}

    def by_name(project: Project) -> Migrated:
        fixed = () if "skip_update" in project.text else ("AMP208",)
        return replace(migrated(project), fixed=fixed)

    monkeypatch.setattr("generated.refactor.judging.judge.migrated", by_name)
    found = [verdict.outcome for verdict in judged(variants)]
    assert found == ["claimed" if new else "same" for new in renamed]


def _variants(mutant: Mutant) -> Iterator[Variant]:
    """Yield a few variants of bases in which the fault can show."""
    found = 0
    for seed in range(400):
        features = draw(seed)
        if all(features[name] in options for name, options in mutant.wanted.items()):
            variant = rebuilt(base(f"generated/{seed}"), [(_EXTRACT, seed)])
            found += variant is not None
            if variant is not None:
                yield variant
        if found == 6:
            break


def test_a_seed_is_always_the_same_variant() -> None:
    """Drawing twice, and building from the steps, give the same text."""
    for seed in range(20):
        first, second = drawn(seed), drawn(seed)
        assert first == second
        again = rebuilt(first.base, first.steps)
        assert again is not None
        assert again.project == first.project


def test_a_refactoring_without_a_place_changes_nothing() -> None:
    """Where no run of statements stands in a function, there is nothing to extract."""
    assert applied(Project({"a.py": "import os\n"}, "a.py"), (_EXTRACT, 0)) is None


def test_a_failure_is_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the refactoring and the statements that a failure needs remain."""

    def verdicts(variants: list[Variant]) -> list[Judged]:
        fails = [len(v.steps) >= 1 and "optimizer.step()" in v.project.text for v in variants]
        return [Judged("wrong" if f else "same", "no reason" if f else "") for f in fails]

    monkeypatch.setattr("generated.refactor.judging.shrink.judged", verdicts)
    many = (v for v in map(drawn, range(1000)) if len(v.steps) > 2)
    start = next(v for v in many if "optimizer.step()" in v.project.text)
    small = shrunk(start, Judged("wrong", "no reason"), tries=400)
    assert len(small.steps) == 1
    assert len(small.project.text) < len(start.project.text) / 2
    assert "optimizer.step()" in small.project.text
