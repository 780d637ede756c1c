"""The corpus script finds what a migration breaks: made-up checkouts, and tools that misbehave."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from corpus import main, summary
from corpus_run import TOOL, Output, Row, measure
from corpus_scan import scan

MAIN = """\
from apex import amp
from builder import build
from engine import train

model, optimizer = build()
model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
train(model, optimizer)
"""
BUILDER = """\
import torch


def build():
    model = torch.nn.Linear(1, 1)
    return model, torch.optim.SGD(model.parameters(), lr=0.1)
"""
ENGINE = """\
from apex import amp


def train(model, optimizer):
    for batch in range(3):
        optimizer.zero_grad()
        loss = model(batch)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
"""
MIGRATED_MAIN = """\
import torch
from builder import build
from engine import train

model, optimizer = build()
scaler = torch.cuda.amp.GradScaler()
train(model, optimizer, scaler)
"""
MIGRATED_ENGINE = """\
def train(model, optimizer, scaler):
    for batch in range(3):
        optimizer.zero_grad()
        loss = model(batch)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
"""
MIGRATED = {"status": "migrated", "code": "AMP101", "message": "removed"}
LEFT = {
    "status": "left",
    "code": "AMP901",
    "path": "checkout/main.py",
    "location": {"row": 4, "column": 1},
    "message": "no call is seen",
}
STUB = """\
import json, pathlib, sys
changes, findings, addition = json.loads({settings!r})
folder = pathlib.Path(sys.argv[-1])
for name, text in changes.items():
    (folder / name).write_text(text)
if addition:
    with open(folder / "main.py", "a") as file:
        file.write(addition)
problems = [{{"path": "checkout/old.py", "reason": "does not parse"}}]
print(json.dumps({{"findings": findings, "problems": problems}}))
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A project of two files, whose engine imports Apex on its own."""
    folder = tmp_path / "corpus" / "someone__project@1"
    folder.mkdir(parents=True)
    (folder / "main.py").write_text(MAIN)
    (folder / "engine.py").write_text(ENGINE)
    (folder / "builder.py").write_text(BUILDER)
    return folder


def tool(
    folder: Path,
    changes: dict[str, str],
    findings: list[dict[str, object]] | None = None,
    addition: str = "",
) -> list[str]:
    """Write a tool that puts `changes` in place, and appends to main.py on every run."""
    path = folder / "tool.py"
    path.write_text(STUB.format(settings=json.dumps([changes, findings or [], addition])))
    return [sys.executable, str(path)]


def test_whole_migration(checkout: Path, tmp_path: Path) -> None:
    """A migration without fault shows none, and the checkout itself stays as it was."""
    changes = {"main.py": MIGRATED_MAIN, "engine.py": MIGRATED_ENGINE}
    row = measure(checkout, Output(), tool(tmp_path, changes, [MIGRATED]))
    assert row.crash == ""
    assert row.whole
    assert row.scale_loss == (1, 0)
    assert row.uses == (4, 0)
    assert row.changed == ["engine.py", "main.py"]
    assert row.findings == {"migrated": {"AMP101": 1}}
    assert not any(row.troubles.values())
    assert (checkout / "main.py").read_text() == MAIN


def test_half_migration_is_seen(checkout: Path, tmp_path: Path) -> None:
    """A changed signature whose caller stayed is a broken link, and what stayed is listed."""
    row = measure(checkout, Output(), tool(tmp_path, {"engine.py": MIGRATED_ENGINE}, [LEFT]))
    assert not row.whole
    assert row.left == ["main.py:4: AMP901 no call is seen"]
    assert row.causes == {"AMP901 no call is seen": 1}
    assert row.problems == ["old.py: does not parse"]
    assert row.remaining == ["main.py:1: import", "main.py:6: initialize"]
    assert row.links == ["main.py: 7: the call of train lacks an argument"]


def test_calls_are_matched_to_their_own_function(checkout: Path, tmp_path: Path) -> None:
    """A changed function is not confused with its namesakes: a method, another file's function."""
    (checkout / "other.py").write_text("def train(net):\n    net.train()\n\n\ntrain(1)\n")
    changes = {"main.py": MIGRATED_MAIN, "engine.py": MIGRATED_ENGINE}
    (checkout / "unchanged.py").write_text("def train(net):\n    pass\n\n\ntrain(1)\n")
    changes["other.py"] = (checkout / "other.py").read_text() + "# changed\n"
    row = measure(checkout, Output(), tool(tmp_path, changes))
    assert row.links == []


def test_lost_name_is_a_broken_link(checkout: Path, tmp_path: Path) -> None:
    """A name that another file imports must not go with the Apex import."""
    (checkout / "main.py").write_text(MAIN.replace("from apex", "from engine"))
    row = measure(checkout, Output(), tool(tmp_path, {"engine.py": MIGRATED_ENGINE}))
    assert row.links[0] == "main.py: imports amp from engine, which no longer has it"


def test_star_import_hides_what_was_undefined_before(checkout: Path, tmp_path: Path) -> None:
    """A name that no import of Apex brings is no new undefined one; a name that one brought is."""
    text = "from apex.fp16_utils import *\n" + ENGINE + "print(Policy, network_to_half)\n"
    (checkout / "engine.py").write_text(text)
    changes = {"engine.py": MIGRATED_ENGINE + "print(Policy, network_to_half)\n"}
    row = measure(checkout, Output(), tool(tmp_path, changes))
    assert row.undefined == ["engine.py: F821 Undefined name `network_to_half`"]


def test_more_uses_of_a_starred_name_are_no_undefined_ones(checkout: Path, tmp_path: Path) -> None:
    """A name that another star import brings may be read more often than before."""
    text = "from names import *\n" + ENGINE + "print(torch)\n"
    (checkout / "engine.py").write_text(text)
    changes = {"engine.py": text + "print(torch, torch)\n"}
    row = measure(checkout, Output(), tool(tmp_path, changes))
    assert row.undefined == []


def test_undefined_and_unused_names(checkout: Path, tmp_path: Path) -> None:
    """A name that lost its import and an import that lost its use are told apart."""
    changes = {
        "engine.py": ENGINE.removeprefix("from apex import amp\n"),
        "main.py": "from apex import amp\n",
    }
    row = measure(checkout, Output(), tool(tmp_path, changes))
    assert row.undefined == ["engine.py: F821 Undefined name `amp`"]
    assert row.unused == ["main.py: F401 `apex.amp` imported but unused"]


def test_broken_file(checkout: Path, tmp_path: Path) -> None:
    """A file that no longer compiles is broken even where it parses."""
    changes = {"main.py": "def f(:\n", "engine.py": "return 1\n"}
    row = measure(checkout, Output(), tool(tmp_path, changes))
    assert row.broken == ["engine.py", "main.py"]
    assert not row.whole


def test_second_run_that_changes_is_unstable(checkout: Path, tmp_path: Path) -> None:
    """A tool that adds something on every run is not idempotent; the first result is kept."""
    output = Output(copies=tmp_path / "copies")
    row = measure(checkout, output, tool(tmp_path, {}, addition="# again\n"))
    assert row.unstable == ["main.py"]
    assert (tmp_path / "copies" / checkout.name / "main.py").read_text() == MAIN + "# again\n"


def test_crash_of_the_tool(checkout: Path) -> None:
    """A traceback is reported, and the sites it left still count."""
    row = measure(checkout, Output(), [sys.executable, "-c", "raise RuntimeError('no')"])
    assert "RuntimeError: no" in row.crash
    assert row.scale_loss == (1, 1)


def test_tool_that_does_not_end(checkout: Path) -> None:
    """A run is ended after its time, and the sites count as not migrated."""
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
    row = measure(checkout, Output(), sleeper, limit=0.2)
    assert row.crash == "ran longer than 0 s"
    assert row.scale_loss == (1, 1)


def test_unreadable_report_is_a_crash(checkout: Path) -> None:
    """A tool that prints no report has failed, whatever its exit code."""
    row = measure(checkout, Output(), [sys.executable, "-c", "print('all fine')"])
    assert "JSONDecodeError" in row.crash


def test_scan_tells_apex_from_other_amps(tmp_path: Path) -> None:
    """Native and MXNet code does not count; aliases, a passed `amp` and notebooks do."""
    (tmp_path / "native.py").write_text(
        "from torch.cuda import amp\namp.scale_loss(a, b)  # apex\n"
    )
    (tmp_path / "mx.py").write_text("from mxnet.contrib import amp\namp.scale_loss(a, b)\n")
    (tmp_path / "alias.py").write_text("import apex.amp as mixed\nmixed.scale_loss(a, b)\n")
    (tmp_path / "passed.py").write_text("def f(self):\n    self.amp.scale_loss(a, b)\n")
    (tmp_path / "python2.py").write_text("from apex import amp\nprint 'x'\n")
    cell = {"cell_type": "code", "source": ["!pip list\n", "import apex\n", "apex.amp.scale_loss"]}
    (tmp_path / "book.ipynb").write_text(json.dumps({"cells": [cell]}))
    found = scan(tmp_path)
    sites = [(use.path, use.line) for use in found.uses if use.kind == "scale_loss"]
    assert sites == [("alias.py", 2), ("book.ipynb", 3), ("passed.py", 2)]
    assert found.unparsed == ("python2.py",)


def test_patch_is_kept(checkout: Path, tmp_path: Path) -> None:
    """The patch names the files as in the repository."""
    output = Output(diffs=tmp_path / "diffs")
    measure(checkout, output, tool(tmp_path, {"main.py": MIGRATED_MAIN}))
    patch = (tmp_path / "diffs" / f"{checkout.name}.patch").read_text()
    assert patch.startswith("--- a/main.py\n+++ b/main.py\n")
    assert "+scaler = torch.cuda.amp.GradScaler()\n" in patch


def test_report_adds_up() -> None:
    """The totals count repositories that use Apex, sites, and the causes of what was left."""
    done = Row("a", scale_loss=(3, 0), uses=(9, 0), findings={"migrated": {"AMP101": 9}})
    part = Row("b", scale_loss=(1, 1), uses=(4, 4), findings={"left": {"AMP901": 2}})
    none = replace(done, name="c", scale_loss=(0, 0), uses=(0, 0), findings={})
    lines = list(summary([done, part, none]))
    assert "scale_loss sites migrated   3 of 4 (75.0 %)" in lines
    assert "repositories wholly         1 of 2 (50.0 %)" in lines
    assert "     2    1  AMP901" in lines


def test_folder_without_repositories(checkout: Path) -> None:
    """A name that fits no repository is a usage error."""
    result = CliRunner().invoke(main, [str(checkout.parent), "--only", "nothing"])
    assert result.exit_code == 2
    assert "no repository" in result.output


def test_command_line_runs_the_codemod(checkout: Path, tmp_path: Path) -> None:
    """The script runs the installed codemod on every repository and writes its report."""
    report = tmp_path / "report.json"
    arguments = [str(checkout.parent), "-j", "1", "--json", str(report)]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert "scale_loss sites migrated   1 of 1 (100.0 %)" in result.output
    assert result.output.splitlines()[1].split()[:3] == [checkout.name, "1/1", "4"]
    (row,) = json.loads(report.read_text())
    assert row["crash"] == ""
    assert row["uses"] == [4, 0]
    assert TOOL[1:] == ("-m", "amp_migrate")
