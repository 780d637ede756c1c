"""No test depends on the torch that is installed beside it."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_torch_in_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the default spelling be that of an environment without torch."""
    monkeypatch.setattr("amp_migrate.torch_floor.installed_torch", lambda: None)
