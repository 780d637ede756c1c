"""A program that cannot run is shown where it ended, with what to do; what decides nothing names a command."""

from __future__ import annotations

import ast
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import click
import pytest

from amp_migrate import equivalence
from amp_migrate.equivalence.cli import main
from amp_migrate.equivalence.cli import verify as command
from amp_migrate.equivalence.options import Options
from amp_migrate.equivalence.runs.advice import advice
from amp_migrate.equivalence.runs.records import EVENTS, Crash, Run, run_from_json, run_to_json
from equivalence.forked import forked_launches  # noqa: F401
from equivalence.test_verify import ACCUMULATING, FAST, tree

PACKAGE = Path(equivalence.__file__).parent


def crash(error: str = "", missing: str = "", *modules: str) -> Crash:
    """Return a crash as the recording leaves it."""
    return Crash(error, "train.py", 3, "x", missing, modules, "/opt/py thon/bin/python", "3.11.0")


def options(project: Path) -> Options:
    """Return the options of a plain verification."""
    return Options(command=("python", "train.py"), project=project)


def printed(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    python: str = "python",
) -> str:
    """Verify a project and return what the terminal shows, and write the page beside it."""
    monkeypatch.chdir(project)
    main(
        [
            *FAST,
            "--no-casts",
            "--html",
            "out.html",
            "--json",
            "out.json",
            "--",
            python,
            "train.py",
        ]
    )
    return capsys.readouterr().out


def test_a_missing_package_is_shown_where_it_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """File, line and source line of the project, the Python of the command, and the command that installs it."""
    project = tree(tmp_path / "a", f"import settings\n{ACCUMULATING}")
    (project / "settings.py").write_text("LR = 0.1\nfrom nowhere.config import CfgNode\n")
    shown = printed(project, monkeypatch, capsys, sys.executable)
    report = json.loads((project / "out.json").read_text(encoding="utf-8"))

    assert shown.startswith("CANNOT_RUN(before: ModuleNotFoundError: No module named 'nowhere')\n")
    assert re.search(r"raised at +settings\.py:2\n +from nowhere\.config import CfgNode\n", shown)
    assert re.search(rf"python +{re.escape(sys.executable)} \({sys.version.split()[0]}\)", shown)
    assert re.search(
        rf"what to do +{re.escape(sys.executable)} -m pip install nowhere; or --stub", shown
    )
    assert (report["crash"]["file"], report["crash"]["line"]) == ("settings.py", 2)
    assert "from nowhere.config import CfgNode" in (project / "out.html").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize(
    ("source", "place", "line"),
    [
        (
            "def f():\n    open('data/train.csv')\nimport torch\nf()\n",
            "train.py:2",
            "open('data/train.csv')",
        ),
        ("import broken\n", "broken.py:2", "def ("),
        ("import json\njson.loads('{')\n", "train.py:2", "json.loads('{')"),
    ],
)
def test_the_last_line_of_the_project_is_shown(
    source: str, place: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Also where a library raises, where torch is not imported yet, and where a file does not compile."""
    project = tree(tmp_path / "a", source)
    (project / "broken.py").write_text("x = 1\ndef (\n")
    (project / "apex_part.py").write_text(ACCUMULATING)
    shown = printed(project, monkeypatch, capsys)

    assert re.search(rf"raised at +{place}\n +{re.escape(line)}\n", shown)


def test_a_file_of_an_older_python_is_told_from_one_that_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the rewrite says of a file that it cannot read is what to do about it."""
    project = tree(tmp_path / "a", f"import old\n{ACCUMULATING}")
    (project / "old.py").write_text(
        "from apex import amp\n\ndef f(x):\n    return x.cuda(async=True)\n"
    )
    shown = re.sub(r"\s+", " ", printed(project, monkeypatch, capsys))

    assert "raised at old.py:4" in shown
    assert re.search(r"what to do line 4: `async` is a keyword .*non_blocking", shown)


def test_an_exception_of_a_loading_process_is_shown_where_it_was_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The main process raises it again in the main process, with the first traceback as its text."""
    source = f"""
from torch.utils.data import DataLoader, Dataset

class Pictures(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        raise KeyError(index)

{ACCUMULATING}
""".replace("import torch\n", "import torch\nfrom torch.utils.data import DataLoader, Dataset\n", 1)
    lines = source.splitlines()
    first = "next(iter(DataLoader(Pictures(), num_workers=1)))"
    after = next(n for n, line in enumerate(lines) if line.startswith("import torch")) + 1
    project = tree(tmp_path / "a", "\n".join([*lines[:after], *lines[1:10], first, *lines[after:]]))
    shown = printed(project, monkeypatch, capsys)

    assert shown.startswith("CANNOT_RUN(before: KeyError: 0)\n")
    assert re.search(r"raised at +train\.py:\d+\n +raise KeyError\(index\)\n", shown)


@pytest.mark.parametrize(
    ("old", "new", "reason", "todo"),
    [
        ("    scaler.update()\n", "", "has already been called", "scaler.update() is missing"),
        ("scaler.step(optimizer)", "optimizer.step()", "gradient norm at step 1: an optimizer steps by itself", "steps by itself"),
        ("scaler.scale(loss)", "loss", "_scale is None", "no loss was scaled before"),
        ("outputs = model", "outputs = models", "NameError: name 'models'", "it is what was written that raises"),
    ],
)  # fmt: skip
def test_a_migrated_program_that_raises_is_shown_with_what_is_wrong(
    old: str, new: str, reason: str, todo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program before runs, so advice about packages and data would be beside the point."""
    native = """
import torch, torch.nn as nn
torch.manual_seed(0)
model = nn.Linear(16, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler()
for i in range(10):
    inputs, labels = torch.randn(8, 16).cuda(), torch.randint(0, 4, (8,)).cuda()
    with torch.cuda.amp.autocast():
        outputs = model(inputs)
        loss = nn.functional.mse_loss(outputs, inputs[:, :4])
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""
    assert native.count(old) == 1
    before = tree(tmp_path / "a", native)
    after = tree(tmp_path / "b", native.replace(old, new))
    main(
        [
            *FAST,
            "--no-casts",
            "--before",
            str(before),
            "--after",
            str(after),
            "--",
            "python",
            "train.py",
        ]
    )
    shown = re.sub(r"\s+", " ", capsys.readouterr().out)

    assert shown.startswith("DIFFERENT") and reason in shown
    assert todo in shown[shown.index("what to do") :] and "--stub" not in shown
    assert "raised Assertion" in shown or "steps by itself" not in todo
    assert ". Δ:" not in shown or "B backward" in shown


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--shim", "json=stand.py:loads"), "is not MODULE:ATTR=FILE:OBJECT"),
        (("--shim", "json:loads=nowhere.py:loads"), "nowhere.py is no file"),
        (("--stub", "torch.optim"), "--stub torch.optim: the comparison needs it"),
    ],
)
def test_stand_ins_that_cannot_be_are_refused_at_once(
    given: tuple[str, str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Before anything runs."""
    monkeypatch.chdir(tree(tmp_path / "a", ACCUMULATING))
    assert main([*FAST, *given, "--", "python", "train.py"]) == 3
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_stand_in_without_the_name_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the program imports the module; the machinery of imports is no file of the project."""
    project = tree(tmp_path / "a", f"import nowhere\n{ACCUMULATING}")
    (project / "stand.py").write_text("")
    monkeypatch.chdir(project)
    main([*FAST, "--shim", "nowhere:log=stand.py:log", "--", "python", "train.py"])
    shown = capsys.readouterr().out
    assert re.match(
        r"CANNOT_RUN\(before: ImportError: --shim nowhere:log: .*stand\.py has no log\)", shown
    )
    assert re.search(r"raised at +train\.py:1\n +import nowhere\n", shown)


def test_advice_for_missing_modules(tmp_path: Path) -> None:
    """Other names on PyPI, torch by its CPU index, modules of the project, and never PyPI's apex."""
    (tmp_path / "src" / "nets").mkdir(parents=True)
    (tmp_path / "src" / "nets" / "__init__.py").write_text("")
    asked = options(tmp_path)
    python = "'/opt/py thon/bin/python' -m pip install"

    assert advice(crash(missing="cv2"), asked).startswith(f"{python} opencv-python-headless;")
    assert advice(crash(missing="yacs.config"), asked).startswith(f"{python} yacs; or --stub yacs,")
    assert advice(crash(missing="torchvision"), asked).endswith("whl/cpu")
    writer = crash("", "tensorboard", "/opt/site-packages/torch/utils/tensorboard")
    assert "tensorboard; or --stub torch.utils.tensorboard, if" in advice(writer, asked)
    assert advice(crash(missing="nets.blocks"), asked).startswith(
        "nets.blocks is in src of the project"
    )
    assert "pip install" not in advice(crash(missing="apex.contrib.nowhere"), asked)


@pytest.mark.usefixtures("forked_launches")
@pytest.mark.parametrize(
    ("source", "absent"),
    [
        ("import fractions\nfractions.gcd(2, 3)\n", "fractions:gcd"),
        ("from json import parsed\n", "json:parsed"),
        ("import settings\nsettings.RATE\n", ""),
        ("from settings import RATE\n", ""),
    ],
)
def test_a_name_that_another_release_had(
    source: str, absent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """It can be stood in for; what lacks a name in the project itself is for the program to mend."""
    project = tree(tmp_path / "a", source)
    (project / "settings.py").write_text(ACCUMULATING)
    shown = re.sub(r"\s+", " ", printed(project, monkeypatch, capsys))

    assert (f"--shim {absent}=FILE:OBJECT" in shown) == bool(absent)


def test_advice_for_missing_data(tmp_path: Path) -> None:
    """Data sets of torchvision have stand-ins; other files may be linked."""
    asked = options(tmp_path)
    site = "/opt/lib/site-packages/torchvision/datasets"

    assert "--synthetic-data" in advice(crash("RuntimeError: Dataset not found", "", site), asked)
    again = advice(crash("URLError: offline", "", site), replace(asked, synthetic_data=True))
    assert "no stand-in for this data set" in again
    assert "--shim" in advice(crash("FileNotFoundError: 'x'"), asked)
    (tmp_path / "data").mkdir()
    nowhere = "FileNotFoundError: [Errno 2] No such file or directory: "
    assert advice(crash(f"{nowhere}'./model/run'"), asked).startswith("model is no folder of")
    for given in ("data/train.csv", "train.csv", "/elsewhere/train.csv"):
        assert "no folder" not in advice(crash(f"{nowhere}'{given}'"), asked)
    # Where CUDA is redirected, the program need not run by itself.
    assert "--show-output" in advice(crash("ValueError: 1"), asked)
    on_a_gpu = replace(asked, device="cuda")
    assert "`python train.py`" in advice(crash("ValueError: 1"), on_a_gpu)


def test_advice_for_an_option_that_chose_apex(tmp_path: Path) -> None:
    """What the migration writes there is told from an error of the program."""
    gone = "RuntimeError: NVIDIA Apex AMP no longer exists: choose native AMP"
    assert "AMP114" in advice(crash(gone), options(tmp_path))


def test_a_crash_travels_with_an_export() -> None:
    """What is written and read again is the same run."""
    run = Run("before", failure="E", crash=crash("E", "", "a", "b"))

    assert run_from_json(json.loads(json.dumps(run_to_json(run)))) == run


def test_every_open_question_names_a_command() -> None:
    """No INCONCLUSIVE is made without the command that explains it, and its options exist."""
    explained, bare = [], []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                words = [ast.unparse(value) for value in node.args]
                if (
                    node.func.id == "Verdict"
                    and words[0].strip("'\"") == "INCONCLUSIVE"
                    and path.name != "verdict.py"
                ):
                    bare.append(path.name)
                if node.func.id == "inconclusive":
                    explained.append(words[1])
    known = {name for option in command.params for name in option.opts}

    assert (bare, len(explained) > 10) == ([], True)
    assert {
        name for text in explained for name in re.findall(r"(?<=verify )--[a-z-]+", text)
    } <= known | {"--help"}


@pytest.mark.usefixtures("forked_launches")
def test_a_file_of_python_2_stops_no_other_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot be read is named in a note, and the program that was migrated is compared."""
    source = ACCUMULATING.replace("    optimizer.zero_grad()\n", "", 1)
    source = source.replace(
        "optimizer.step()\n", "optimizer.step()\n        optimizer.zero_grad()\n"
    )
    project = tree(tmp_path / "a", source)
    (project / "old.py").write_text('from apex import amp\nprint "old"\n')
    shown = printed(project, monkeypatch, capsys)

    assert shown.startswith("EXACT")
    assert re.search(r"note +not migrated: old\.py: line 2: not Python 3", shown)


def test_a_codemod_that_fails_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong option of --codemod is shown as the codemod says it."""
    monkeypatch.chdir(tree(tmp_path / "a", ACCUMULATING))

    assert main(["--codemod", "--nonsense", "--", "python", "train.py"]) == 3
    assert "--nonsense" in capsys.readouterr().out


def test_the_command_that_explains_can_be_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It repeats what was asked: typing it runs."""
    project = tree(
        tmp_path / "a", f"import apex_part\n{ACCUMULATING}".replace("optimizer.step()", "pass")
    )
    (project / "apex_part.py").write_text(ACCUMULATING)
    (project / "train.py").write_text("print('does not train')\n")
    shown = printed(project, monkeypatch, capsys)
    found = re.search(
        r"explained by +amp-migrate verify (.+) -- python\s+train.py\n",
        " ".join(shown.split("\n      ")),
    )

    assert shown.startswith("INCONCLUSIVE(no optimizer step was recorded)")
    assert found is not None and found[1].split()[:3] == ["--show-output", "--steps", "4"]
    assert click.unstyle(shown) == shown


@pytest.mark.usefixtures("forked_launches")
def test_letters_are_explained_below_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every letter that occurs, what the columns mean, and what the answer was held to."""
    source = ACCUMULATING.replace("    optimizer.zero_grad()\n", "", 1)
    source = source.replace(
        "optimizer.step()\n", "optimizer.step()\n        optimizer.zero_grad()\n"
    )
    shown = printed(tree(tmp_path / "a", source), monkeypatch, capsys)
    letters = set("".join(re.findall(r"^ +\d+  (\S+) +(\S+)", shown, re.M)[0]))

    assert letters and all(f"{letter} {EVENTS[letter]}" in shown for letter in letters)
    for word in ("gradient norm (grad)", "held to", "before twice"):
        assert word in shown
    assert not re.search(r"\btier\b|\bT[0-3]:|A/A|TOST", shown)
