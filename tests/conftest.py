"""No test depends on the torch that is installed beside it; commands run in a working directory of their own."""

from __future__ import annotations

import gc
import itertools
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from shell_support import FakeEngine, Put

BETWEEN_LOOKS = 1500  # tests after which a worker frees what its migrations left: about half a GiB
LONGEST = {"generated", "test_breaches.py", "test_examples.py"}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests of a fixture case, or of a training, in one module come one after the other: they share what one run says.

    The longest come first, as one of them at the end leaves a core idle.
    """
    seen: dict[tuple[str, str], int] = {}
    items.sort(key=lambda item: seen.setdefault(_shared(item), len(seen)))
    items.sort(key=lambda item: not LONGEST & set(item.path.parts))


_ended = itertools.count(1)


def pytest_runtest_logfinish() -> None:
    """Bound what a worker holds; looking for it more often would take longer than the tests."""
    if next(_ended) % BETWEEN_LOOKS == 0:
        gc.collect()


def _shared(item: pytest.Item) -> tuple[str, str]:
    given = item.callspec.params if hasattr(item, "callspec") else {}
    return str(item.path), str(
        getattr(given.get("case", given.get("training")), "name", item.nodeid)
    )


@pytest.fixture(autouse=True)
def no_torch_in_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the default spelling be that of an environment without torch."""
    monkeypatch.setattr("amp_migrate.dependencies.torch_floor.installed_torch", lambda: None)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    here = tmp_path / "work"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    return here


@pytest.fixture
def heard() -> Iterator[None]:
    """Let Ctrl-C and the signals that end a program do so, here and in processes: who started the tests may ignore them."""
    usual = dict.fromkeys((signal.SIGTERM, signal.SIGHUP), signal.SIG_DFL)
    usual[signal.SIGINT] = signal.default_int_handler
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """Put the stand-in in place of the engine."""
    fake = FakeEngine()
    module = ModuleType("amp_migrate.engine")
    vars(module).update(migrate=fake.migrate)
    monkeypatch.setitem(sys.modules, "amp_migrate.engine", module)
    return fake


@pytest.fixture
def put(folder: Path) -> Put:
    """Write a file of the working directory; it imports Apex, so that it is read."""

    def write(name: str, text: str, encoding: str = "utf-8") -> Path:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(f"import apex\n{text}".encode(encoding))
        return file

    return write
