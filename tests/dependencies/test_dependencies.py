"""What asks for Apex outside of the code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shell_support import APEX_PROGRAM, amp_migrate

REQUIREMENTS = """\
torch>=1.6
# apex for mixed precision
apex
git+https://github.com/NVIDIA/apex@22.04-dev
-e git+https://github.com/NVIDIA/apex#egg=apex
apexcharts
"""
ENVIRONMENT = """\
name: x
dependencies:
  - python=3.10
  - conda-forge::nvidia-apex
  - pip:
    - git+https://github.com/NVIDIA/apex
"""
SETUP = """\
from setuptools import setup

setup(
    install_requires=[
        "torch",
        "apex @ git+https://github.com/NVIDIA/apex",
    ],
    extras_require={"fp16": ["apex"]},
)
"""
SETUP_CFG = "[options]\ninstall_requires =\n    torch\n    apex>=0.1\n"
PYPROJECT = """\
[project]
dependencies = [
  "torch",
  "apex",  # mixed precision
]
[tool.poetry.dependencies]
apex = {git = "https://github.com/NVIDIA/apex.git"}
"""
DOCKERFILE = (
    "FROM pytorch\nRUN git clone https://github.com/NVIDIA/apex && \\\n    pip install ./apex\n"
)


@pytest.fixture
def project(folder: Path) -> Path:
    """Return a folder with a program and everything that may ask for Apex around it."""
    (folder / "train.py").write_text(APEX_PROGRAM)
    (folder / "requirements.txt").write_text(REQUIREMENTS)
    (folder / "environment.yml").write_text(ENVIRONMENT)
    (folder / "setup.py").write_text(SETUP)
    (folder / "setup.cfg").write_text(SETUP_CFG)
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "docker").mkdir()
    (folder / "docker/Dockerfile").write_text(DOCKERFILE)
    return folder


def noted(*arguments: str) -> set[tuple[str, int]]:
    """Return the places that are named."""
    done = amp_migrate(".", "--check", "--output-format", "json", *arguments)
    found = json.loads(done.stdout)["findings"]
    notes = [item for item in found if item["code"] == "AMP309" and item["status"] == "note"]
    return {(item["path"], item["location"]["row"]) for item in notes}


def test_every_place_is_named(project: Path) -> None:
    assert noted() == {
        ("requirements.txt", 3),
        ("requirements.txt", 4),
        ("requirements.txt", 5),
        ("environment.yml", 4),
        ("environment.yml", 6),
        ("setup.py", 6),
        ("setup.py", 8),
        ("setup.cfg", 4),
        ("pyproject.toml", 4),
        ("pyproject.toml", 7),
        ("docker/Dockerfile", 2),
        ("docker/Dockerfile", 3),
    }


def test_places_are_listed_below_one_line(project: Path) -> None:
    report = amp_migrate(".", "--diff").stderr

    assert report.count("this installs Apex, which no code in the files given imports") == 2
    assert report.count("run again with --dependencies") == 2


def test_lines_of_their_own_go_and_others_keep_every_byte(project: Path) -> None:
    done = amp_migrate(".", "--dependencies")

    assert "rewrote 6 files" in done.stderr
    assert (project / "requirements.txt").read_text() == (
        "torch>=1.6\n# apex for mixed precision\napexcharts\n"
    )
    for name, before, line in (
        ("environment.yml", ENVIRONMENT, "  - conda-forge::nvidia-apex\n"),
        ("setup.py", SETUP, '        "apex @ git+https://github.com/NVIDIA/apex",\n'),
        ("setup.cfg", SETUP_CFG, "    apex>=0.1\n"),
    ):
        assert (project / name).read_text() == before.replace(line, "")
    assert "apex" not in (project / "pyproject.toml").read_text()
    assert (project / "docker/Dockerfile").read_text() == DOCKERFILE
    assert "rewrote" not in amp_migrate(".", "--dependencies").stderr


def test_an_option_changes_nothing_while_code_needs_apex(project: Path) -> None:
    (project / "train.py").write_text(
        APEX_PROGRAM + "from apex.optimizers import FusedAdam\nFusedAdam(model.parameters())\n"
    )

    amp_migrate(".", "--dependencies")

    assert (project / "requirements.txt").read_text() == REQUIREMENTS
    assert noted() == set()


def test_rule_can_be_switched_off(project: Path) -> None:
    assert noted("--ignore", "AMP309") == set()


def test_help_text_that_speaks_of_apex_is_named(folder: Path) -> None:
    (folder / "train.py").write_text(
        "import argparse\n"
        'argparse.ArgumentParser().add_argument("--fp16", help="use apex")\n' + APEX_PROGRAM
    )

    assert noted() == {("train.py", 2)}


def test_what_migrated_files_still_say_of_apex_is_named(folder: Path) -> None:
    said = "# as apex does\nprint('no apex', 1)\nprint('apexcharts')  # not of apexes\n"
    support = "from apex import amp\n"
    (folder / "train.py").write_text(said + APEX_PROGRAM)
    (folder / "support.py").write_text(support)
    (folder / "other.py").write_text(said)

    assert noted() == {("train.py", 1), ("train.py", 2), ("support.py", 1)}


def test_docstrings_that_speak_of_apex_are_named(folder: Path) -> None:
    """By the line that does; those of files that are not migrated say what they like."""
    said = '''class Trainer:
    """A loop.

    As the plain one, but with Apex's mixed precision.
    """

    def step(self):
        """Steps with apex."""
        return "apex"
'''
    (folder / "train.py").write_text(f'"""Trains (needs apex)."""\n{APEX_PROGRAM}\n\n{said}')
    (folder / "other.py").write_text(said)

    last = 1 + len(APEX_PROGRAM.splitlines()) + 2
    assert noted() == {("train.py", 1), ("train.py", last + 4), ("train.py", last + 8)}


def test_cell_that_installs_apex_is_named(folder: Path) -> None:
    source = ["!pip install git+https://github.com/NVIDIA/apex\n", *APEX_PROGRAM.splitlines(True)]
    cells = [{"cell_type": "code", "source": source}]
    (folder / "a.ipynb").write_text(json.dumps({"cells": cells}))

    assert noted() == {("a.ipynb", 1)}


def test_ignored_folders_are_left_alone(folder: Path) -> None:
    (folder / "venv").mkdir()
    (folder / "venv/requirements.txt").write_text("apex\n")

    assert noted() == set()


OPTIONS = """import argparse
import torch
import torch.nn.functional as F
from apex import amp
from settings import given

parser = argparse.ArgumentParser()
parser.add_argument("--level", default="O1", help="how apex casts")
parser.add_argument("--keep-batchnorm-fp32", default=None, help="for apex")
parser.add_argument("-v", "--verbosity", dest="noise", type=int, default=0)
parser.add_argument("--scale-window", default=0)
parser.add_argument("--width", type=int, default=3)
args = parser.parse_args()
model = torch.nn.Linear(args.width, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = amp.initialize(
    model, optimizer, args.level != "O0", keep_batchnorm_fp32=args.keep_batchnorm_fp32, verbosity=args.noise
)
given(args, args.scale_window)
for x in torch.randn(4, 5, 3):
    loss = F.mse_loss(model(x), x[:, :2])
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    optimizer.step()
"""


def test_options_that_nothing_reads_any_more_are_named(folder: Path) -> None:
    """An option that another file reads by its name, in a text as well, is none of them."""
    (folder / "train.py").write_text(OPTIONS)
    (folder / "settings.py").write_text("def given(args, window):\n    print(args.width, window)\n")
    assert noted() == {("train.py", 8), ("train.py", 9), ("train.py", 10)}

    (folder / "settings.py").write_text(
        "def given(args, window):\n    print(vars(args)['noise'])\n"
    )
    assert noted() == {("train.py", 8), ("train.py", 9)}


def test_what_migrated_files_say_is_named_where_other_files_keep_apex(folder: Path) -> None:
    """Fused layers stay in Apex, and so does what installs it; a file that imports it no more still speaks of it."""
    said = "print('no apex', 1)\n"
    (folder / "train.py").write_text(said + APEX_PROGRAM)
    (folder / "layers.py").write_text(
        "from apex.normalization import FusedLayerNorm\n\n\ndef norm(width):\n    print('apex')\n"
        "    return FusedLayerNorm(width)\n"
    )
    (folder / "requirements.txt").write_text("git+https://github.com/NVIDIA/apex\n")

    assert noted() == {("train.py", 1)}
