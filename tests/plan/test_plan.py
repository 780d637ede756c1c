"""Edits and findings as data: who edits a place, what is left because of what, and which programs stay."""

from __future__ import annotations

import ast

import pytest

from amp_migrate.apex.sites import Kind
from amp_migrate.plan.cannot import Cannot
from amp_migrate.plan.model import (
    AddArgument,
    AddImport,
    AddParameter,
    Decision,
    Edit,
    Finding,
    Insert,
    Move,
    Place,
    Plan,
    Replace,
    Status,
    Wrap,
)
from amp_migrate.plan.native import applies
from amp_migrate.plan.parted import only_left, parted, programs
from amp_migrate.plan.planner import Planner, entangled
from amp_migrate.plan.refusal import (
    Refusal,
    edited_against_a_comment,
    edited_lines,
    refuse_skipped,
    refused_unit,
)
from amp_migrate.plan.staying import holding, left
from amp_migrate.plan.unit_summary import summary
from amp_migrate.protocol.faults import Place as Reached
from amp_migrate.protocol.faults import Trouble
from amp_migrate.settings import Settings
from amp_migrate.source.span import Span
from tests.placement.training import PATH, Training, looped, stepped

HERE, THERE = Span(2, 0, 3, 5), Span(7, 0, 7, 4)
PROGRAM = stepped("optimizer.step()\n")


def _decision(
    path: str, edit: Edit | None = None, span: Span = HERE, code: str = "AMP101"
) -> Decision:
    finding = Finding(path, span, code, Status.MIGRATED, "said")
    return Decision(finding, [(path, edit)] if edit is not None else [])


def test_plan_gives_each_edit_once() -> None:
    """In the order of the decisions, by file; findings by file and place."""
    first, second = Replace(HERE, "x"), Insert(THERE, "y", after=True)
    plan = Plan()
    plan.decisions += [
        _decision("b.py", first),
        _decision("a.py", second, THERE),
        _decision("b.py", first),
        _decision("a.py", first),
    ]
    assert list(plan.edits("b.py")) == [first] and list(plan.edits("a.py")) == [second, first]
    assert list(plan.edits("c.py")) == []
    assert plan.paths() == ["b.py", "a.py"]
    assert [(f.path, f.span.line) for f in plan.findings()] == [
        ("a.py", 2),
        ("a.py", 7),
        ("b.py", 2),
        ("b.py", 2),
    ]


EDITS: dict[str, tuple[Edit, list[int]]] = {
    "a statement": (Replace(HERE, "x"), [2, 3]),
    "statements under a header": (Wrap(HERE, THERE, "with x:"), [2, 3, 4, 5, 6, 7]),
    "a parameter": (AddParameter(THERE, "scaler", None, ""), [7]),
    "an argument": (AddArgument(HERE, "scaler", None), [2, 3]),
    "an import": (AddImport("import torch"), []),
}


@pytest.mark.parametrize(("edit", "lines"), EDITS.values(), ids=EDITS)
def test_lines_of_an_edit(edit: Edit, lines: list[int]) -> None:
    """Those that it changes."""
    assert list(edited_lines(edit)) == lines


def test_units_that_edit_one_place() -> None:
    """Parameters and unlike casts at one place make two units one; other edits do not, nor those of one unit."""
    same = AddParameter(HERE, "scaler", None, "")
    one, other = (
        [_decision("a.py", same)],
        [_decision("a.py", AddParameter(HERE, "scaler", None, ""))],
    )
    assert entangled([one, [_decision("a.py")], other]) == (0, 2)
    assert entangled([[*one, *other]]) is None
    assert entangled([one, [_decision("b.py", same)]]) is None
    assert entangled([one, [_decision("a.py", AddParameter(THERE, "scaler", None, ""))]]) is None
    plain = Replace(HERE, "x")
    assert entangled([[_decision("a.py", plain)], [_decision("a.py", plain)]]) is None
    wrap = Wrap(HERE, THERE, "with x:")
    assert entangled([[_decision("a.py", wrap)], [_decision("a.py", wrap)]]) is None
    unlike = Wrap(HERE, THERE, "with y:")
    assert entangled([[_decision("a.py", wrap)], [_decision("a.py", unlike)]]) == (0, 1)


COMMENTS: dict[str, tuple[str, str, int | None]] = {
    "another line": ("a\nb  # amp-migrate: skip\nc\n", "a\nb  # amp-migrate: skip\nd\n", None),
    "changed": ("a\nb  # amp-migrate: skip\nc\n", "a\nd\nc\n", 2),
    "removed": ("a\nb  # amp-migrate: skip\nc\n", "a\nc\n", 2),
    "indented": ("a\nb  # amp-migrate: skip\n", "a\n    b  # amp-migrate: skip\n", 2),
    "a line before it": ("a\nb  # amp-migrate: skip\n", "a\nx\nb  # amp-migrate: skip\n", None),
    "the first of two": ("b  # amp-migrate: skip\nc  # amp-migrate: skip\n", "x\n", 1),
    "no comment": ("a\nb\n", "c\n", None),
}


@pytest.mark.parametrize(("before", "after", "line"), COMMENTS.values(), ids=COMMENTS)
def test_lines_that_ask_to_be_skipped(before: str, after: str, line: int | None) -> None:
    """A rewrite may not change, move or remove them."""
    assert edited_against_a_comment(before, after, []) == line


def test_moved_line_that_asks_to_be_skipped() -> None:
    """A move to where it was counts too."""
    text = "a\nb  # amp-migrate: skip\nc\n"
    assert edited_against_a_comment(text, text, [Move(HERE, THERE, after=True)]) == 2
    assert edited_against_a_comment(text, text, [Move(THERE, HERE, after=True)]) is None


def test_unit_with_a_comment_is_left_whole() -> None:
    """A use of Apex that is to be skipped keeps all of it."""
    case = Training(PROGRAM)
    found = [s for s in case.index.sites if s.kind is not Kind.IMPORT]
    refuse_skipped(found)
    case = Training(PROGRAM.replace(" as scaled:", " as scaled:  # amp-migrate: skip"))
    found = [s for s in case.index.sites if s.kind is not Kind.IMPORT]
    with pytest.raises(Cannot) as caught:
        refuse_skipped(found)
    assert caught.value.code == "AMP911" and caught.value.node is found[1].node


def test_rules_of_refusals() -> None:
    """A comment, a text that fails its check, and a training that would go wrong."""
    line = Training(PROGRAM).statement("optimizer.step()").lineno
    reached = Reached(PATH, line)
    for refusal, code in (
        (Refusal(PATH, "why"), "AMP910"),
        (Refusal(PATH, "why", line=12), "AMP911"),
        (Refusal(PATH, "why", place=reached, trouble=Trouble.CASTS_MISSING), "AMP913"),
    ):
        assert refusal.code == code
        case = Training(PROGRAM)
        found = [s for s in case.index.sites if s.kind is not Kind.IMPORT]
        cause = refused_unit(found, refusal, case.project)
        assert cause.code == code and "why" in cause.message
        if code == "AMP913":
            assert cause.node is case.statement("optimizer.step()")


def test_places_that_are_left_name_their_cause() -> None:
    """The cause once, the others by reference to it."""
    case = Training(PROGRAM)
    found = [s for s in case.index.sites if s.kind is not Kind.IMPORT]
    cause = Cannot("AMP905", found[1].module, found[1].node, "no step", "do it")
    decisions = list(left(found, cause))
    assert [d.finding.status for d in decisions] == [Status.LEFT, Status.LEFT]
    assert [d.finding.cause for d in decisions] == [found[1].place, None]
    assert str(found[1].place) in decisions[0].finding.message
    assert holding(decisions) == {found[0].place: found[1].place, found[1].place: found[1].place}
    elsewhere = Cannot("AMP905", found[1].module, case.statement("optimizer.step()"), "no", "do")
    decisions = list(left(found, elsewhere))
    assert [d.finding.status for d in decisions] == [Status.LEFT, Status.LEFT, Status.NOTE]
    assert len(holding(decisions)) == 2


SHARED = {
    "shared.py": "from apex import amp\ndef train(l, o):\n    with amp.scale_loss(l, o) as s: s.backward()\n    o.step()\n",
    "one.py": "from apex import amp\nfrom shared import train\nm, o = amp.initialize(m, o)\ntrain(l, o)\n",
    "two.py": "from apex import amp\nfrom shared import train\nm, o = amp.initialize(m, o)\ntrain(l, o)\nodd(amp)\n",
    "three.py": "import os\n",
}


def test_programs_are_parted() -> None:
    """What only the refused program runs stays, the rest goes."""
    case = Training(SHARED)
    modules = case.project.modules
    found = [s for s in case.index.sites if s.kind is not Kind.IMPORT]
    assert [m.path for m in programs(case.project, [modules["shared.py"]])] == ["one.py", "two.py"]
    cause = Cannot("AMP909", modules["two.py"], modules["two.py"].tree.module.body[-1], "odd", "")
    apart = parted(case.project, found, cause)
    assert apart is not None and apart.files == {"two.py"}
    assert {s.module.path for s in apart.stay} == {"two.py"}
    assert {s.module.path for s in apart.go} == {"shared.py", "one.py"}
    shared = Cannot("AMP909", modules["shared.py"], modules["shared.py"].tree.module, "odd", "")
    assert parted(case.project, found, shared) is None


def test_files_that_only_left_programs_run() -> None:
    """A shared file goes with those that are migrated."""
    case = Training(SHARED)
    modules = case.project.modules
    assert only_left(case.project, [modules["two.py"]], ["one.py", "shared.py"]) == {"two.py"}
    everything = [modules["one.py"], modules["two.py"], modules["shared.py"]]
    assert only_left(case.project, everything, []) == {"one.py", "two.py", "shared.py"}
    assert only_left(case.project, [], ["one.py"]) == set()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("torch.cuda.amp.GradScaler()", True),
        ("from torch.cuda import amp", True),
        ("from torch import amp", True),
        ("from torch.cuda.amp import autocast", True),
        ("from apex import amp", False),
        ("torch.cuda.ampere", False),
        ("x = 'amp'", False),
    ],
)
def test_texts_that_may_use_native_amp(text: str, found: bool) -> None:
    """As far as a line can show."""
    assert applies(text) is found


def test_summary_of_a_unit() -> None:
    """Its files, its sites with their roles, and what was decided."""
    case = Training(PROGRAM)
    found = [s for s in case.index.sites if s.kind is not Kind.IMPORT]
    told = summary(found, [_decision("other.py", Replace(HERE, "x"))], "why")
    assert told.files == [PATH, "other.py"]
    assert [(r.function, r.role) for r in told.roles] == [
        ("main", "amp.initialize"),
        ("main", "amp.scale_loss"),
    ]
    assert [(c.file, c.line, c.code) for c in told.decisions] == [("other.py", 2, "AMP101")]
    described = told.describe()
    assert described["refused"] == "why" and isinstance(described["roles"], tuple | list)


def _planned(program: str, **settings: object) -> Plan:
    case = Training(program)
    trees = {path: module.tree for path, module in case.project.modules.items()}
    return Planner(trees, Settings(**settings)).plan({})[0]  # type: ignore[arg-type]


def test_plan_of_a_training() -> None:
    """Every site is spoken of once; asked again, the planner answers the same."""
    plan = _planned(PROGRAM)
    codes = {f.code for f in plan.findings()}
    assert {"AMP101", "AMP102", "AMP103", "AMP104", "AMP105"} <= codes
    assert not any(f.status is Status.LEFT for f in plan.findings())
    again = _planned(PROGRAM)
    assert list(plan.edits(PATH)) == list(again.edits(PATH))


def test_refused_units_are_left_on_the_next_try() -> None:
    """With the reason of the check, and no edit."""
    case = Training(PROGRAM)
    planner = Planner({PATH: case.project.modules[PATH].tree}, Settings())
    refused: dict[object, Refusal] = {}
    assert list(planner.plan(refused)[0].edits(PATH))
    planner.refuse([Refusal(PATH, "no good")], refused)
    plan, (told,) = planner.plan(refused)
    assert not list(plan.edits(PATH)) and "no good" in told.refused
    assert {f.code for f in plan.findings() if f.cause is None and f.status is Status.LEFT} >= {
        "AMP910"
    }


def test_files_without_units_are_refused_by_themselves() -> None:
    """Their own rules stay silent then."""
    text = "from apex.parallel import DistributedDataParallel as DDP\nm = DDP(m)\n"
    case = Training(text)
    planner = Planner({PATH: case.project.modules[PATH].tree}, Settings())
    refused: dict[object, Refusal] = {}
    assert list(planner.plan(refused)[0].edits(PATH))
    planner.refuse([Refusal(PATH, "no good")], refused)
    assert set(refused) == {PATH}
    plan = planner.plan(refused)[0]
    assert not list(plan.edits(PATH))
    assert {f.status for f in plan.findings()} == {Status.LEFT}


def test_places_are_written_with_their_file() -> None:
    """As file and line."""
    assert str(Place("a.py", HERE)) == "a.py:2"
    assert isinstance(ast.parse(looped("pass\n")), ast.Module)
