"""A decorator or class that several files need: where one is written and the others import it."""

from __future__ import annotations

import pytest

from amp_migrate.engine import migrate
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source


@pytest.mark.parametrize(
    ("imports", "other", "taken"),
    [
        ("from . import _C\n", "from . import _C\n", "from .nms import float_kernel"),
        ("from ops import _C\n", "from ops import _C\n", "from ops.nms import float_kernel"),
        ("from ops import _C\n", "from ops import _C\nprint(_C)\n", None),
        ("from ops import _C\n", "from ops import _C\nfrom ops import pool\n", None),
    ],
)
def test_files_of_a_package_import_what_the_first_one_has(
    imports: str, other: str, taken: str | None
) -> None:
    kernel = "from apex import amp\n{imports}{name} = amp.float_function(_C.{name})\n"
    files = {
        "ops/__init__.py": "",
        "ops/nms.py": kernel.format(imports=other, name="nms"),
        "ops/pool.py": kernel.format(imports=imports, name="pool"),
    }
    sources = [Source.from_bytes(path, text.encode()) for path, text in files.items()]
    outcomes = migrate(sources, Settings()).outcomes
    text = next(o.after or "" for o in outcomes if o.path == "ops/pool.py")
    assert (taken or "def float_kernel(function):") in text
    assert ("def float_kernel" in text) is (taken is None)
