"""Which code only runs in programs that never initialize."""

from __future__ import annotations

import pytest

from amp_migrate.placement.finding.build import Index
from amp_migrate.scaler.routes.without import Without
from tests.project.helpers import Case

FILES = {
    "main.py": "from apex import amp\nimport engine\n\nnet, optimizer = amp.initialize(net, optimizer)\nengine.train(net)\n",
    "engine.py": "from tools import show\n\n\nclass Events:\n    def fire(self):\n        pass\n\n\nevents = Events()\n\n\ndef train(net):\n    events.fire()\n",
    "tools.py": "def show():\n    pass\n\n\ndef plot():\n    pass\n",
    "look.py": "from tools import plot\n\nplot()\n",
}


@pytest.mark.parametrize(
    ("path", "name", "never"),
    [
        ("look.py", "<module>", True),
        ("tools.py", "plot", True),
        ("engine.py", "<module>", False),
        ("engine.py", "train", False),
        ("main.py", "<module>", False),
    ],
)
def test_code_without_amp(path: str, name: str, never: bool) -> None:
    """What a file runs as it is imported belongs to every program that imports it."""
    case = Case(FILES)
    module = case.project.modules[path]
    function = module.top if name == "<module>" else case.function(path, name)
    assert (function in Without(case.project, Index(case.project).sites)) is never
