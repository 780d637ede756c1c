"""Which lines of a file ask for Apex, and which can go by themselves."""

from __future__ import annotations

import pytest

from amp_migrate.dependencies.files import BUILDS, ENVIRONMENTS, IMAGES, REQUIREMENTS, is_one
from amp_migrate.dependencies.lines import asking
from amp_migrate.source.file import Source

Asked = list[tuple[int, bool, bool]]
CASES: dict[str, tuple[str, str, Asked]] = {
    "by name": ("requirements.txt", "torch\napex\n", [(2, True, True)]),
    "with a version": ("requirements.txt", "apex>=0.1 ; python_version > '3'\n", [(1, True, True)]),
    "with a place": ("requirements.txt", "apex @ git+https://github.com/NVIDIA/apex\n", [(1, True, False)]),
    "by its own name": ("requirements.txt", "nvidia-apex==0.1\n", [(1, True, False)]),
    "in capitals": ("requirements.txt", "Apex\n", [(1, True, True)]),
    "editable": ("requirements.txt", "-e git+https://github.com/NVIDIA/apex#egg=apex\n", [(1, True, False)]),
    "over two lines": ("requirements.txt", "apex \\\n  --hash=1\n", [(1, False, True)]),
    "second of two lines": ("requirements.txt", "torch \\\napex\n", [(2, False, True)]),
    "a comment": ("requirements.txt", "# apex\n", []),
    "alike": ("requirements.txt", "apexcharts\napex-x\nmy-apex\n", []),
    "a folder alike": ("requirements.txt", "git+https://github.com/x/apexpy\n", []),
    "in a folder": ("requirements/dev.txt", "apex\n", [(1, True, True)]),
    "an environment": ("environment.yml", "dependencies:\n  - python\n  - nvidia-apex\n", [(3, True, False)]),
    "with a channel": ("environment.yml", "dependencies:\n  - conda-forge::nvidia-apex=0.1\n  - python\n", [(2, True, False)]),
    "the only one": ("environment.yml", "dependencies:\n  - nvidia-apex\nname: x\n", [(2, False, False)]),
    "quoted": ("environment.yml", "dependencies:\n  - 'apex'  # why\n  - python\n", [(2, True, True)]),
    "a setup": ("setup.py", "setup(install_requires=[\n    'torch',\n    'apex',\n])\n", [(3, True, True)]),
    "on a line with others": ("setup.py", "setup(install_requires=['torch', 'apex'])\n", [(1, False, True)]),
    "a name in a setup": ("setup.py", "setup(name='apex')\n", []),
    "a setup of Python 2": ("setup.py", "print 'apex'\n", []),
    "a configuration": ("setup.cfg", "[options]\ninstall_requires =\n    torch\n    apex\n", [(4, True, True)]),
    "a table": ("pyproject.toml", "[x]\napex = {git = 'https://x'}\n", [(2, True, False)]),
    "a list": ("pyproject.toml", "dependencies = [\n  'apex',\n]\n", [(2, True, True)]),
    "a comment in a list": ("pyproject.toml", "dependencies = [\n  # 'apex',\n]\n", []),
    "an image": ("Dockerfile", "RUN pip install ./apex\n# RUN pip install apex\n", [(1, False, False)]),
    "a folder in an image": ("Dockerfile", "ADD apex /apex/\nWORKDIR /apex/\nRUN pip install -v .\n", [(1, False, False), (3, False, False)]),
    "a folder copied": ("Dockerfile", "COPY --chown=me third/apex /opt/apex\nRUN ls\n", [(1, False, False)]),
    "a folder left": ("Dockerfile", "WORKDIR /apex\nWORKDIR /code\nRUN pip install .\nADD apex-plots /x\nCOPY data /apex/\n", []),
    "a shell": ("install.sh", "git clone https://github.com/NVIDIA/apex\ncd apex\n", [(1, False, False)]),
    "another file": ("notes.txt", "apex\n", []),
}  # fmt: skip


@pytest.mark.parametrize(("path", "text", "asked"), CASES.values(), ids=CASES)
def test_lines_that_ask_for_apex(path: str, text: str, asked: Asked) -> None:
    """Their numbers, whether they can go by themselves, and whether they name PyPI's package."""
    found = asking(Source.from_bytes(path, text.encode()))
    assert [(line.number, line.removable, line.plain) for line in found] == asked


@pytest.mark.parametrize(
    ("path", "patterns", "one"),
    [
        ("a/requirements-dev.txt", REQUIREMENTS, True),
        ("requirements/base.in", REQUIREMENTS, True),
        ("base.in", REQUIREMENTS, False),
        ("Environment.YML", ENVIRONMENTS, True),
        ("conda/x.yml", ENVIRONMENTS, False),
        ("deep/Pipfile", BUILDS, True),
        ("setup.py.bak", BUILDS, False),
        ("docker/Dockerfile.gpu", IMAGES, True),
        ("x.dockerfile", IMAGES, True),
        ("file.py", IMAGES, False),
    ],
)
def test_names_of_files(path: str, patterns: tuple[str, ...], one: bool) -> None:
    """Whatever their case, with their folder where a pattern has one."""
    assert is_one(path, patterns) is one
