"""Reports for programs: JSON as documented, SARIF 2.1.0, annotations of GitHub."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from shell_support import APEX_PROGRAM, FakeEngine, Put, amp_migrate

ROOT = Path(__file__).resolve().parents[2]


def loaded(*arguments: str) -> Any:
    return json.loads(amp_migrate(*arguments).stdout)


def keys(value: object, above: str = "") -> set[str]:
    """Return the keys of a document, with a dot between those of nested objects."""
    if not isinstance(value, dict):
        return set()
    named = {f"{above}{name}": item for name, item in value.items()}
    return {*named, *(key for name, item in named.items() for key in keys(item, f"{name}."))}


class TestJson:
    def test_every_key_is_documented(self, folder: Path) -> None:
        (folder / "train.py").write_text(APEX_PROGRAM)
        (folder / "old.py").write_text("from apex import amp\nprint 'a'\n")
        documented = set(re.findall(r"^\| `([\w.]+)`", (ROOT / "docs/json.md").read_text(), re.M))

        report = loaded(".", "--output-format", "json", "--check")

        top = keys(report) - {"tool.name", "tool.version", "summary", "exit"}
        assert top | set(report["findings"][0]) == documented
        assert set(report["problems"][0]) == {"path", "reason"}
        assert set(report["findings"][0]["location"]) == {"row", "column"}

    def test_content(self, put: Put, engine: FakeEngine) -> None:
        put("a.py", "old()\n  stays()\n")

        report = loaded(".", "--output-format", "json", "--check")

        assert report["summary"] == {
            "found": 2,
            "migrated": 1,
            "fixed": 0,
            "left": 1,
            "files_changed": 1,
            "written": False,
        }
        assert report["exit"] == {
            "code": 1,
            "reason": "1 file would change and 1 place left for a human",
        }
        assert report["files"] == [{"path": "a.py"}]
        assert report["findings"][1] == {
            "path": "a.py",
            "cell": None,
            "location": {"row": 3, "column": 3},
            "end_location": {"row": 3, "column": 10},
            "code": "AMP901",
            "status": "left",
            "message": "about stays()",
            "advice": "do this\nor that",
            "cause": None,
        }

    def test_written_report_has_the_places_of_the_new_file(
        self, put: Put, engine: FakeEngine
    ) -> None:
        put("a.py", "old()\nstays()\n")

        report = loaded(".", "--output-format", "json")

        assert report["summary"]["written"] is True
        assert report["findings"][1]["location"]["row"] == 4

    def test_summary_for_people_goes_to_stderr(self, put: Put, engine: FakeEngine) -> None:
        put("a.py", "old()\n")

        done = amp_migrate(".", "--output-format", "json")

        assert json.loads(done.stdout)["version"] == 1
        assert "found 1 use of Apex" in done.stderr

    def test_empty_run_is_a_document_too(self, folder: Path) -> None:
        report = loaded(".", "--output-format", "json")

        assert (report["findings"], report["summary"]["found"]) == ([], 0)

    def test_plan(self, put: Put, engine: FakeEngine) -> None:
        put("a.py", "old()\n")
        engine.units = [["a.py"]]

        plan = loaded(".", "--show-plan", "--output-format", "json")

        assert plan == {"version": 1, "units": [{"files": ["a.py"], "roles": []}], "compared": []}

    def test_plan_of_a_real_program_is_plain_data(self, folder: Path) -> None:
        (folder / "train.py").write_text(APEX_PROGRAM)

        units = loaded(".", "--show-plan", "--output-format", "json")["units"]

        assert [unit["files"] for unit in units] == [["train.py"]]
        scaled = {"file": "train.py", "line": 11, "function": "<module>", "role": "amp.scale_loss"}
        assert scaled in units[0]["roles"]

    def test_plan_for_people_goes_line_by_line(self, folder: Path) -> None:
        (folder / "train.py").write_text(APEX_PROGRAM)

        lines = amp_migrate(".", "--show-plan").stdout.splitlines()

        assert lines[:2] == ["group 1: 2 uses of Apex in 1 file", "  train.py"]
        at = lines.index("     11  amp.scale_loss in <module>")
        assert lines[at + 1].startswith("         AMP103  ")
        shown = lines.index("what happens: lines before -> after")
        assert lines[shown + 1] == "  train.py  <module>"
        assert any(re.fullmatch(r" +12 -> \d+ +backward loss", line) for line in lines)

    def test_report_holds_the_events_that_were_compared(self, folder: Path) -> None:
        (folder / "train.py").write_text(APEX_PROGRAM)

        (found,) = loaded(".", "--check", "--output-format", "json")["compared"]

        assert (found["path"], found["function"]) == ("train.py", "<module>")
        assert all(event["before"] and event["after"] for event in found["events"])
        assert {event["what"] for event in found["events"]} >= {"backward loss", "step optimizer"}


class TestSarif:
    def test_log_has_what_code_scanning_needs(self, put: Put, engine: FakeEngine) -> None:
        put("a b/é.py", "old()\nremark()\nstays()\nmistake()\n")

        log = loaded(".", "--check", "--output-format", "sarif")

        assert log["version"] == "2.1.0"
        assert log["$schema"].endswith("sarif-2.1.0.json")
        (run,) = log["runs"]
        assert [result["level"] for result in run["results"]] == [
            "warning",
            "note",
            "error",
            "warning",
        ]
        first = run["results"][0]["locations"][0]["physicalLocation"]
        assert first["artifactLocation"] == {"uri": "a%20b/%C3%A9.py", "uriBaseId": "%SRCROOT%"}
        assert first["region"] == {"startLine": 2, "startColumn": 1, "endLine": 2, "endColumn": 6}

    def test_rules_carry_their_documentation(self, put: Put, engine: FakeEngine) -> None:
        put("a.py", "old()\nmistake()\n")

        driver = loaded(".", "--check", "--output-format", "sarif")["runs"][0]["tool"]["driver"]

        assert [rule["id"] for rule in driver["rules"]] == ["AMP101", "AMP201"]
        for rule in driver["rules"]:
            assert rule["shortDescription"]["text"]
            assert "\n" not in rule["fullDescription"]["text"]
            assert "## What it does" in rule["help"]["markdown"]
        assert driver["rules"][1]["properties"]["tags"] == ["AMP2", "changes behaviour"]

    def test_fingerprints_stay_when_lines_move_and_tell_equal_lines_apart(
        self, put: Put, engine: FakeEngine
    ) -> None:
        def prints() -> list[str]:
            results = loaded(".", "--check", "--output-format", "sarif")["runs"][0]["results"]
            return [result["partialFingerprints"]["primaryLocationLineHash"] for result in results]

        put("a.py", "stays()\nstays()\n")
        before = prints()
        put("a.py", "\n\nx = 1\nstays()\n    stays()\n")

        assert prints() == before
        assert len(set(before)) == 2

    def test_written_changes_are_no_results(self, put: Put, engine: FakeEngine) -> None:
        put("a.py", "old()\nmistake()\nstays()\n")

        results = loaded(".", "--output-format", "sarif")["runs"][0]["results"]

        assert [result["ruleId"] for result in results] == ["AMP901"]

    def test_message_and_advice_stand_apart(self, put: Put, engine: FakeEngine) -> None:
        put("a.py", "stays()\n")

        (result,) = loaded(".", "--output-format", "sarif")["runs"][0]["results"]

        assert result["message"]["text"] == "About stays().\n\nDo this\nor that."
        assert result["properties"] == {"status": "left", "advice": "do this\nor that"}

    def test_what_is_kept_relates_to_its_cause(self, folder: Path) -> None:
        (folder / "a.py").write_text(APEX_PROGRAM.replace("r.step()", "r.step(lambda: loss)"))

        results = loaded(".", "--check", "--output-format", "sarif")["runs"][0]["results"]

        kept = [result for result in results if "relatedLocations" in result]
        lines = {
            result["locations"][0]["physicalLocation"]["region"]["startLine"] for result in kept
        }
        assert lines == {2, 7, 11}
        for result in kept:
            (related,) = result["relatedLocations"]
            assert related["physicalLocation"]["region"]["startLine"] == 13

    @pytest.mark.parametrize("layout", [None, 1])
    def test_lines_of_a_notebook_are_those_of_the_file(
        self, folder: Path, engine: FakeEngine, layout: int | None
    ) -> None:
        source = ["import apex\n", "stays()\n", "x = stays()"]
        cells = [{"cell_type": "code", "source": "1"}, {"cell_type": "code", "source": source}]
        (folder / "a.ipynb").write_text(json.dumps({"cells": cells}, indent=layout))

        results = loaded(".", "--check", "--output-format", "sarif")["runs"][0]["results"]

        lines = (folder / "a.ipynb").read_text().splitlines()
        regions = [result["locations"][0]["physicalLocation"]["region"] for result in results]
        assert [set(region) for region in regions] == [{"startLine", "endLine"}] * 2
        first, second = (lines[region["startLine"] - 1] for region in regions)
        assert json.dumps(source[1]) in first
        assert json.dumps(source[2]) in second
        assert (first is second) == (layout is None)

    def test_problem_is_a_notification(self, folder: Path) -> None:
        (folder / "a.py").write_text("from apex import amp\nprint 'a'\n")

        (invocation,) = loaded(".", "--output-format", "sarif")["runs"][0]["invocations"]

        assert invocation["executionSuccessful"] is False
        (notification,) = invocation["toolExecutionNotifications"]
        assert "not Python 3" in notification["message"]["text"]


class TestGithub:
    def test_annotations(self, put: Put, engine: FakeEngine) -> None:
        put("a,b:c.py", "stays()\nremark()\nold()\n")

        lines = amp_migrate(".", "--check", "--output-format", "github").stdout.splitlines()

        assert lines[0] == (
            "::error title=amp-migrate (AMP901),file=a%2Cb%3Ac.py,"
            "line=2,endLine=2,col=1,endColumn=8::About stays().%0ADo this%0Aor that."
        )
        assert lines[2].endswith(
            "::amp-migrate would migrate this: about old().%0ADo this%0Aor that."
        )
        assert [line.split()[0] for line in lines] == ["::error", "::notice", "::warning"]

    def test_annotation_is_a_whole_sentence(self, folder: Path) -> None:
        (folder / "a.py").write_text(APEX_PROGRAM)

        done = amp_migrate(".", "--check", "--api", "torch.cuda.amp", "--output-format", "github")

        texts = [line.rpartition("::")[2] for line in done.stdout.splitlines()]
        assert (
            "amp-migrate would migrate this: it becomes `scaler.scale(loss).backward()`." in texts
        )

    def test_problem_is_an_error(self, folder: Path) -> None:
        (folder / "a.py").write_text("from apex import amp\nprint '100%'\n")

        done = amp_migrate(".", "--output-format", "github")

        assert done.stdout.startswith(
            "::error title=amp-migrate,file=a.py::This file cannot be migrated: line 2: not Python 3"
        )

    def test_place_in_a_notebook_is_the_file(self, folder: Path, engine: FakeEngine) -> None:
        (folder / "a.ipynb").write_text(
            '{"cells": [{"cell_type": "code", "source": "import apex\\nstays()"}]}'
        )

        done = amp_migrate(".", "--output-format", "github")

        assert done.stdout.startswith(
            "::error title=amp-migrate (AMP901),file=a.ipynb,line=1,endLine=1::About"
        )


@pytest.mark.parametrize("form", ["json", "sarif", "github"])
def test_machine_formats_have_no_colour(
    put: Put, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    put("a.py", "stays()\n")
    monkeypatch.setenv("FORCE_COLOR", "1")

    assert "\033" not in amp_migrate(".", "--output-format", form, "--color").stdout
