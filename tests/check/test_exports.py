"""Names that a rewrite takes away from files which import them."""

from __future__ import annotations

import pytest

from amp_migrate.check.exports import lost, unset
from amp_migrate.facts.tree import Tree
from amp_migrate.project import build

_PART = "def keep():\n    pass\n\n\ndef go():\n    pass\n"
_WITHOUT = "def keep():\n    pass\n"


@pytest.mark.parametrize(
    ("files", "after", "found"),
    [
        ({"train.py": "from part import go\n"}, {}, [("part.py", "go", "train.py", 1)]),
        ({"train.py": "from part import keep\n"}, {}, []),
        ({"train.py": "from part import go\n"}, {"train.py": "from part import keep\n"}, []),
        (
            {"train.py": "from part import go\n"},
            {"train.py": "x = 1\nfrom part import keep, go\n"},
            [("part.py", "go", "train.py", 1)],
        ),
        (
            {"train.py": "try:\n    from part import go\nexcept ImportError:\n    go = None\n"},
            {},
            [],
        ),
        ({"train.py": "from elsewhere import go\n"}, {}, []),
        (
            {"between.py": "from part import go as run\n", "train.py": "from between import run\n"},
            {"between.py": ""},
            [("between.py", "run", "train.py", 1), ("part.py", "go", "train.py", 1)],
        ),
        ({"train.py": "from part import go\n"}, {"part.py": "from other import *\n"}, []),
        (
            {"between.py": "from part import *\n", "train.py": "from between import *\ngo()\n"},
            {},
            [("part.py", "go", "train.py", 2)],
        ),
        ({"train.py": "from part import *\ngo()\n"}, {"train.py": "from part import *\n"}, []),
        ({"a.py": "go = 1\n", "train.py": "from part import *\nfrom a import *\ngo()\n"}, {}, []),
        ({"train.py": "import part as p\np.go()\n"}, {}, [("part.py", "go", "train.py", 2)]),
        ({"train.py": "import part as p\np.keep()\n"}, {}, []),
    ],
)
def test_a_name_that_another_file_imports_is_lost(
    files: dict[str, str], after: dict[str, str], found: list[tuple[str, str, str, int]]
) -> None:
    """It is told with the import; imports that go, may fail, or read another file are none."""
    texts = {"part.py": _PART, **files}
    project = build({path: Tree(path, text) for path, text in texts.items()})
    written = {"part.py": _WITHOUT, **after}
    told = lost(project, {path: Tree(path, text) for path, text in written.items()})
    assert sorted((n.path, n.name, n.importer, n.line) for n in told) == found


_KEPT = "import torch\n\n\nclass Run:\n    def __init__(self, on):\n        self.amp = on\n\n    def go(self):\n        return READ\n"


@pytest.mark.parametrize(
    ("read", "kept", "found"),
    [
        ("self.amp is not None", "", [("run.py", "amp", 9)]),
        ("self.amp is not None", "self.amp = None", []),
        ("torch.cuda.amp.autocast()", "", []),
        ("self.on", "", []),
    ],
)
def test_an_attribute_that_nothing_sets_any_more_is_lost(
    read: str, kept: str, found: list[tuple[str, str, int]]
) -> None:
    """It is told where the new text still reads it, not where a module of that name is meant."""
    before = _KEPT.replace("READ", read)
    after = before.replace("self.amp = on", kept or "pass")
    project = build({"run.py": Tree("run.py", before)})
    told = unset(project, {"run.py": Tree("run.py", after)})
    assert [(n.path, n.name, n.line) for n in told] == found
