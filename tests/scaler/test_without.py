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


LOADER = "from importlib import util\n\n\ndef load(path):\n    spec = util.spec_from_file_location('file', path)\n    module = util.module_from_spec(spec)\n    spec.loader.exec_module(module)\n    return module\n"
MIXED = "from apex import amp\nimport engine\n\n\ndef main():\n    net, optimizer = amp.initialize(net, optimizer)\n    engine.train(net)\n\n\n"
PLAIN = "import engine\n\n\ndef run(net):\n    engine.train(net)\n\n\nif __name__ == '__main__':\n    run('net.py')\n"
ENGINE = "def train(net):\n    pass\n"
AS_PROGRAM = "if __name__ == '__main__':\n    main()\n"


def with_line(text: str) -> str:
    """Return the plain program with another line at its head."""
    return f"{text}\n{PLAIN}"


@pytest.mark.parametrize(
    ("mixed", "plain", "never"),
    [
        (MIXED + AS_PROGRAM, PLAIN, True),
        (MIXED + "main()\n", PLAIN, True),
        (MIXED + AS_PROGRAM, with_line("import mixed"), True),
        (MIXED + AS_PROGRAM, with_line("from mixed import main"), True),
        (MIXED + AS_PROGRAM, with_line("import mixed\nmixed.main()"), False),
        (MIXED + "main()\n", with_line("import mixed"), False),
        (MIXED + AS_PROGRAM.replace("==", "!="), with_line("import mixed"), False),
        (MIXED + AS_PROGRAM, with_line("from loading import load\nload('mixed.py').main()"), False),
        (MIXED + AS_PROGRAM, with_line("import loading"), False),
        (MIXED + "handlers = [main]\n" + AS_PROGRAM, with_line("import mixed"), False),
        (MIXED + AS_PROGRAM, PLAIN.replace("if __name__ == '__main__':\n    ", ""), False),
    ],
)
def test_a_loader_of_files_runs_no_program(mixed: str, plain: str, never: bool) -> None:
    """What a file keeps for a program of its own does not run where it is imported, or loaded by its path."""
    files = {"loading.py": LOADER, "mixed.py": mixed, "plain.py": plain, "engine.py": ENGINE}
    case = Case(files)
    function = case.function("plain.py", "run")
    assert (function in Without(case.project, Index(case.project).sites)) is never
