"""What keeps torch at a version that has no native AMP yet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shell_support import APEX_PROGRAM, amp_migrate

from amp_migrate.dependencies.torch_limit import admitting, limits
from amp_migrate.source.file import Source

KEPT = [
    ("requirements.txt", "torch==1.3.1", "`torch==1.3.1`"),
    ("requirements.txt", "torch == 1.0  # as measured", "`torch == 1.0`"),
    ("requirements.txt", "numpy\ntorch>=1.1,<1.6", "`torch>=1.1,<1.6`"),
    ("requirements.txt", "torch<=1.5.1", "`torch<=1.5.1`"),
    ("requirements.txt", "torch~=1.4.0", "`torch~=1.4.0`"),
    ("requirements.txt", "torch==1.5.*", "`torch==1.5.*`"),
    ("requirements.txt", "torch==1.5.1+cu101", "`torch==1.5.1+cu101`"),
    ("requirements.txt", "torch<1.6.0", "`torch<1.6.0`"),
    ("environment.yml", "dependencies:\n  - pytorch=1.4", "`pytorch=1.4`"),
    ("setup.py", "setup(install_requires=['torch==1.2.0'])", "`torch==1.2.0`"),
    ("pyproject.toml", 'dependencies = ["torch>=1.0,<1.5"]', "`torch>=1.0,<1.5`"),
    ("pyproject.toml", 'torch = "1.4.0"', '`torch = "1.4.0"`'),
    ("Dockerfile", "FROM pytorch/pytorch:1.4-cuda10.1-cudnn7-devel", "torch 1.4"),
    ("Dockerfile", "FROM nvcr.io/nvidia/pytorch:19.10-py3", "the torch of 19.10"),
    ("tools/make_conda.py", 'PINNED = {"torch": "pytorch==1.4.0"}', "`pytorch==1.4.0`"),
    ("README.md", "Tested with PyTorch 1.3 and 8 GPUs", "`PyTorch 1.3`"),
    ("README.md", "conda install pytorch=1.1.0 cudatoolkit=9.0", "`pytorch=1.1.0`"),
    ("INSTALL.md", "* torch (1.5.1)", "`torch 1.5.1`"),
    ("install.sh", "pip install torch==1.5.0 torchvision==0.6.0", "`torch==1.5.0`"),
]
ADMITTED = [
    ("requirements.txt", "torch"),
    ("requirements.txt", "torch>=1.0"),
    ("requirements.txt", "torch==1.6.0"),
    ("requirements.txt", "torch==1.10.1"),
    ("requirements.txt", "torch<1.7"),
    ("requirements.txt", "torch<=1.6"),
    ("requirements.txt", "torch<2"),
    ("requirements.txt", "torch~=1.4"),
    ("requirements.txt", "torch==1.*"),
    ("requirements.txt", "torch!=1.5"),
    ("requirements.txt", "# torch==1.3"),
    ("requirements.txt", "torchvision==0.5.0"),
    ("requirements.txt", "my-torch==1.0"),
    ("environment.yml", "dependencies:\n  - pytorch=1.6"),
    ("environment.yml", "dependencies:\n  - pytorch=1"),
    ("pyproject.toml", 'torch = "^1.4"'),
    ("Dockerfile", "FROM pytorch/pytorch:1.13.1-cuda11.6-cudnn8-runtime"),
    ("Dockerfile", "FROM nvcr.io/nvidia/pytorch:20.12-py3"),
    ("README.md", "PyTorch 1.3 or, from our second version on, PyTorch 1.8"),
    ("README.md", "PyTorch >= 1.3"),
    ("README.md", "see pytorch-lightning 0.9 and torchvision 0.5"),
    ("docs/history.md", "PyTorch 1.3"),
]


@pytest.mark.parametrize(("name", "text", "said"), KEPT)
def test_what_admits_no_native_amp_is_found(name: str, text: str, said: str) -> None:
    source = Source.from_bytes(name, text.encode())

    found = list(limits(source, (1, 6)))

    assert [limit.said for limit in found] == [said]
    assert found[0].line == text.count("\n") + 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("torch>=1.0", ["`torch>=1.0`"]),
        ("torch >= 1.5", ["`torch >= 1.5`"]),
        ("torch>=1.4,<2", ["`torch>=1.4,<2`"]),
        ("torch~=1.4", ["`torch~=1.4`"]),
        ("torch", []),
        ("torch>=1.6", []),
        ("torch>1.6", []),
        ("torch==1.3.1", []),
        ("torch<2", []),
        ("torch>=1.0,>=1.7", []),
        ("torchvision>=0.5", []),
    ],
)
def test_what_admits_torch_without_native_amp_beside_others(text: str, said: list[str]) -> None:
    """Only what says where it begins, and is not told of as what admits none."""
    source = Source.from_bytes("requirements.txt", text.encode())

    assert [limit.said for limit in admitting(source, (1, 6))] == said


@pytest.mark.parametrize(
    ("container", "first"), [("19.10", (1, 6)), ("20.07", (1, 7)), ("24.04", (2, 4))]
)
def test_containers_hold_torch_below_what_the_next_ones_have(
    container: str, first: tuple[int, int]
) -> None:
    text = f"FROM nvcr.io/nvidia/pytorch:{container}-py3"
    source = Source.from_bytes("Dockerfile", text.encode())

    assert [limit.said for limit in limits(source, first)] == [f"the torch of {container}"]


def test_a_text_that_asks_for_a_first_version_admits_it() -> None:
    source = Source.from_bytes("README.md", b"Needs PyTorch >= 1.0.0, or 1.2+ for teams")

    assert [limit.said for limit in admitting(source, (1, 6))] == ["`PyTorch >= 1.0.0`"]


@pytest.mark.parametrize(("name", "text"), ADMITTED)
def test_what_admits_it_is_not(name: str, text: str) -> None:
    assert not list(limits(Source.from_bytes(name, text.encode()), (1, 6)))


def _noted(*arguments: str) -> dict[tuple[str, int], str]:
    done = amp_migrate(".", "--check", "--output-format", "json", *arguments)
    found = json.loads(done.stdout)["findings"]
    return {(f["path"], f["location"]["row"]): f["message"] for f in found if f["code"] == "AMP310"}


def test_note_names_the_spelling_that_is_written(folder: Path) -> None:
    (folder / "train.py").write_text(APEX_PROGRAM)
    (folder / "requirements.txt").write_text("numpy\ntorch==1.13.1\n")

    assert _noted("--api", "torch.cuda.amp") == {}
    assert _noted("--api", "torch.amp") == {
        ("requirements.txt", 2): "`torch==1.13.1` has no torch.amp.GradScaler, which is there from torch 2.3 on"
    }  # fmt: skip


def test_nothing_is_noted_where_nothing_is_written(folder: Path) -> None:
    (folder / "requirements.txt").write_text("torch==1.3.1\n")
    (folder / "train.py").write_text("from apex import amp\nvars(amp)['x'] = amp.initialize\n")
    assert _noted() == {}

    (folder / "train.py").write_text(APEX_PROGRAM)
    assert list(_noted()) == [("requirements.txt", 1)]
    assert _noted("--ignore", "AMP310") == {}


def test_replicas_need_the_torch_that_casts_in_them(folder: Path) -> None:
    (folder / "requirements.txt").write_text("torch==1.6.0\n")
    (folder / "train.py").write_text(APEX_PROGRAM)
    assert _noted("--api", "torch.cuda.amp") == {}

    (folder / "train.py").write_text(APEX_PROGRAM + "\nreplicas = torch.nn.DataParallel\n")
    assert _noted("--api", "torch.cuda.amp") == {}

    (folder / "train.py").write_text(APEX_PROGRAM + "\ntorch.nn.DataParallel(torch.nn.Module())\n")
    assert _noted("--api", "torch.cuda.amp") == {
        (
            "requirements.txt",
            1,
        ): "`torch==1.6.0` has no autocast in the replicas of DataParallel, where it comes from torch 1.7 on"
    }
