"""Files are one program where imports or calls connect them, and programs beside each other are checked apart."""

from __future__ import annotations

import pytest
from fixture_support import cases

from amp_migrate.engine import migrate
from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

SETTINGS = Settings(api="torch.cuda.amp")
ALONE = {
    case.name: case.before["before.py"]
    for case in cases()
    if case.name.startswith("accumulate/") and list(case.before) == ["before.py"]
}

ONLY_THERE = "class B:\n    def only_there(self): 1\n"
WORKED_OUT = "import importlib\nimportlib.import_module"
ASKS = f"{WORKED_OUT}(name)\ndef f(x):\n    x.only_there()\n"


@pytest.mark.parametrize(
    ("files", "groups"),
    [
        ({"a.py": "x = 1\n", "b.py": "x = 1\n"}, 2),
        ({"a.py": "import b\n", "b.py": "x = 1\n"}, 1),
        ({"a.py": "from lib import b\n", "lib/b.py": "x = 1\n", "lib/c.py": "x = 1\n"}, 2),
        ({"a.py": "import lib.b\n", "lib/__init__.py": "", "lib/b.py": "x = 1\n"}, 1),
        ({"__init__.py": "", "a.py": "x = 1\n"}, 1),
        ({"a/__init__.py": "", "a/b/__init__.py": "", "a/b/c.py": "x = 1\n"}, 1),
        ({"a.py": "import lib\n", "lib/b.py": "x = 1\n", "c.py": "x = 1\n"}, 2),
        ({"a.py": "from b import *\n", "b.py": "from c import f\n", "c.py": "def f(): 1\n"}, 1),
        ({"a.py": "import importlib\nimportlib.import_module('b')\n", "b.py": "x = 1\n"}, 1),
        ({"a.py": "def f(x):\n    x.only_there()\n", "b.py": ONLY_THERE}, 2),
        ({"a.py": f"{WORKED_OUT}(name)\ndef f(x):\n    x.only_there()\n", "b.py": ONLY_THERE}, 1),
        ({"a.py": "import pkgutil\ndef g(x, found):\n    found.load_module(x)\ndef f(x):\n    x.only_there()\n", "b.py": ONLY_THERE}, 1),
        ({"a.py": "def g(x, found):\n    found.load_module(x)\ndef f(x):\n    x.only_there()\n", "b.py": ONLY_THERE}, 2),
        ({"a.py": f"{WORKED_OUT}(f'lib.{{name}}')\ndef f(x):\n    x.only_there()\n", "lib/b.py": ONLY_THERE}, 1),
        ({"a.py": f"{WORKED_OUT}('lib.' + name)\ndef f(x):\n    x.only_there()\n", "b.py": ONLY_THERE}, 2),
        ({"one/a.py": f"import h\n{ASKS}", "one/h.py": "", "two/b.py": ONLY_THERE}, 2),
        ({"one/a.py": f"import h\n{ASKS}", "one/h.py": "", "one/b.py": ONLY_THERE}, 1),
        ({"one/a.py": ASKS, "two/b.py": ONLY_THERE}, 1),
        ({"one/a.py": f"import torch\n{ASKS}", "two/b.py": ONLY_THERE}, 1),
        ({"one/lib/a.py": f"import lib.h\n{ASKS}", "one/lib/h.py": "", "one/b.py": ONLY_THERE}, 1),
        ({"one/lib/a.py": f"import lib.h\n{ASKS}", "one/lib/h.py": "", "two/b.py": ONLY_THERE}, 2),
        ({"one/__init__.py": "", "one/a.py": f"from . import h\n{ASKS}", "one/h.py": "", "b.py": ONLY_THERE}, 1),
        ({"on/one/__init__.py": "", "on/one/a.py": f"from . import h\n{ASKS}", "on/one/h.py": "", "b.py": ONLY_THERE}, 2),
        ({"one/a.py": "import m\ndef f(x):\n    x.only_there()\n", "two/m.py": "", "three/m.py": ONLY_THERE}, 2),
        ({"a.py": "def f(x):\n    x.run()\n", "b.py": "class B:\n    def run(self): 1\n"}, 2),
    ],
)  # fmt: skip
def test_imports_and_calls_connect(files: dict[str, str], groups: int) -> None:
    """By any spelling, at any distance; a method by its name alone where its objects may come, and no other class has it."""
    found = build({path: Tree(path, text) for path, text in files.items()}).programs
    assert found.keys() == files.keys()
    assert len(set(found.values())) == groups


def test_programs_together_are_migrated_as_each_alone() -> None:
    """The same bytes, whether they are given one by one or side by side."""
    sources = {f"program_{n}.py": text.encode() for n, text in enumerate(ALONE.values()) if n < 6}
    together = migrate([Source.from_bytes(*item) for item in sources.items()], SETTINGS)
    after = {outcome.path: outcome.after for outcome in together.outcomes}
    assert len(after) == 6 and all(after.values())
    for item in sources.items():
        (outcome,) = migrate([Source.from_bytes(*item)], SETTINGS).outcomes
        assert outcome.after == after[outcome.path]


def test_files_that_never_meet_are_apart() -> None:
    """Programs in folders of their own, one of which imports by a name that it works out; a name that two may mean joins."""
    files = {
        "one/a.py": f"import h\n{ASKS}",
        "one/h.py": "",
        "one/lone.py": "",
        "two/b.py": "import h\nimport far\n",
        "two/h.py": "",
        "three/far.py": "",
        "four/far.py": "",
        "five/c.py": "",
    }
    project = build({path: Tree(path, text) for path, text in files.items()})
    groups = {frozenset(group) for group in project.calls.meeting.apart()}
    assert groups == {
        frozenset({"one/a.py", "one/h.py", "one/lone.py"}),
        frozenset({"two/b.py", "two/h.py", "three/far.py", "four/far.py"}),
        frozenset({"five/c.py"}),
    }
