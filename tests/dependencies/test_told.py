"""Which torch a text for people names."""

from __future__ import annotations

import pytest

from amp_migrate.dependencies.told import named
from amp_migrate.source.file import Source


@pytest.mark.parametrize(
    ("text", "release", "later"),
    [
        ("Needs PyTorch 1.4.", (1, 4), False),
        ("- Pytorch 0.3+", (0, 3), True),
        ("- torch >= 1.2.0", (1, 2, 0), True),
        ("pip install torch==1.7.1+cu110 -f URL", (1, 7, 1), False),
        ("**PyTorch** (v1.5.1)", (1, 5, 1), False),
    ],
)
def test_a_version_and_whether_later_ones_are_meant(
    text: str, release: tuple[int, ...], later: bool
) -> None:
    found = list(named(Source.from_bytes("README.md", text.encode())))
    assert [(item[4], item[5]) for item in found] == [(release, later)]


@pytest.mark.parametrize("text", ["pytorch-lightning 1.0", "torchvision 0.4", "see pytorch/1.4"])
def test_what_is_not_torch(text: str) -> None:
    assert list(named(Source.from_bytes("README.md", text.encode()))) == []
