"""Names that are handed on before they are looked up."""

from __future__ import annotations

import pytest

from tests.project.helpers import Case

DEPTH = 40


def handed_on(last: str) -> str:
    """Return a program whose functions each hand a name on to the next one twice, the last one to `last`."""
    steps = [
        f"def f{n}(net, name):\n    f{n + 1}(net, name)\n    f{n + 1}(net, name)\n"
        for n in range(DEPTH)
    ]
    end = f"def f{DEPTH}(net, name):\n    {last}\n"
    return (
        "class Net:\n    def run(self): ...\n    def stop(self): ...\n\n"
        + "".join(steps)
        + end
        + 'f0(Net(), "run")\n'
    )


@pytest.mark.parametrize(
    ("last", "found"),
    [
        ("getattr(net, name)()", {"Net.run"}),
        ("f0(net, name)\n    getattr(net, name)()", {"Net.run", "Net.stop"}),
        ("name = name + name\n    getattr(net, name)()", {"Net.run", "Net.stop"}),
    ],
    ids=["many calls", "a circle", "a name of itself"],
)
def test_names_are_worked_out_once(last: str, found: set[str]) -> None:
    """However many calls hand one on, and whatever is put together of itself."""
    case = Case({"main.py": handed_on(last)})
    assert case.callees("main.py", "getattr(net, name)()") == found
