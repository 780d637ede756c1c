"""The reference Apex, installed for one test and removed with all its patches."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from amp_migrate.equivalence import reference


@pytest.fixture(autouse=True)
def _repeatable() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture
def amp() -> Iterator[Any]:
    """The module apex.amp."""
    reference.install("cpu", quiet=True)
    yield importlib.import_module("apex.amp")
    reference.uninstall()


@pytest.fixture
def talking_amp() -> Iterator[Any]:
    """The module apex.amp with its messages."""
    reference.install("cpu")
    yield importlib.import_module("apex.amp")
    reference.uninstall()
