"""The torch version a project declares decides the spelling that is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from amp_migrate.dependencies.torch_floor import declared_torch, lowest_versions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torch>=2.4\n", [(2, 4)]),
        ("torch >= 2.4.1, < 3\n", [(2, 4)]),
        ("torch==2.5.1+cu121\n", [(2, 5)]),
        ("torch~=1.13\n", [(1, 13)]),
        ("torch[opt-einsum]>=2.6 ; python_version > '3.8'\n", [(2, 6)]),
        ("torch (>=2.4)\n", [(2, 4)]),
        ("torch>=1.6,>=2.0\n", [(2, 0)]),
        ("dependencies = ['torch>=2.4', \"numpy\"]\n", [(2, 4)]),
        ("install_requires=['torch>=1.4.0'],\n", [(1, 4)]),
        ("[tool.poetry.dependencies]\ntorch = '^2.4'\n", [(2, 4)]),
        ('torch = {version = ">=2.7", source = "x"}\n', [(2, 7)]),
        ("dependencies:\n  - pytorch=2.4.1=py3.11_cuda12\n  - pytorch-cuda=12.1\n", [(2, 4)]),
        ("  - pytorch::pytorch>=2.4\n", [(2, 4)]),
        ("torch\n", []),
        ("torch<2.4\n", []),
        ("torch!=2.4\n", []),
        ("# torch>=2.4\nx  # torch>=2.4\n", []),
        ("torchvision>=2.4\npytorch-lightning>=2.4\nmy-torch>=2.4\n", []),
        ("import torch\nif torch.__version__ >= '2.4': pass\n", []),
        ("torch = '*'\n", []),
    ],
)
def test_lowest_version_of_a_requirement(text: str, expected: list[tuple[int, int]]) -> None:
    assert lowest_versions(text) == expected


def test_lowest_of_several_files_counts(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text("setup(install_requires=['torch>=1.6'])")
    (tmp_path / "requirements-dev.txt").write_text("torch==2.5.0")

    floor = declared_torch(tmp_path)

    assert floor is not None
    assert (floor.version, floor.file.name) == ((1, 6), "setup.py")


def test_nearest_folder_that_declares_one_counts_up_to_the_repository_root(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch>=1.0")
    repository = tmp_path / "repository"
    inner = repository / "package" / "inner"
    inner.mkdir(parents=True)
    (repository / ".git").mkdir()

    assert declared_torch(inner) is None

    (repository / "pyproject.toml").write_text("[project]\ndependencies = ['torch>=2.4']\n")
    floor = declared_torch(inner)

    assert floor is not None
    assert floor.version == (2, 4)


def test_folder_outside_of_a_repository_does_not_look_above(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch>=2.4")
    (tmp_path / "inner").mkdir()

    assert declared_torch(tmp_path / "inner") is None
