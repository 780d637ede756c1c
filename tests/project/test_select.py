"""Which files belong to the Apex code of a folder."""

from __future__ import annotations

from amp_migrate.modules.select import Selection, relevant

APEX = b"from apex import amp\n"


def test_only_connected_files() -> None:
    """A script beside unrelated files is alone; without Apex nothing is read further."""
    files = {"train.py": APEX, "other.py": b"import os\n", "more.py": b"from other import f\n"}
    assert relevant(files) == ["train.py"]
    assert relevant({"other.py": b"import os\n"}) == []


def test_importers_and_imported_files() -> None:
    """Importers at any distance, what they import, and what the Apex file imports, are all relevant."""
    files = {
        "run.py": b"import main\n",
        "main.py": b"from engine import train\nfrom trainer import T\n",
        "trainer.py": APEX + b"import nets.unet as u\n",
        "engine.py": b"from helpers import step\n",
        "helpers.py": b"",
        "nets/__init__.py": b"",
        "nets/unet.py": b"",
        "nets/resnet.py": b"",
        "alone.py": b"",
    }
    assert relevant(files) == [path for path in files if path not in {"nets/resnet.py", "alone.py"}]


def test_other_callers_of_a_touched_module() -> None:
    """A file that imports what the Apex program imports may call a function that changes."""
    files = {
        "main.py": APEX + b"from lib import engine\n",
        "lib/__init__.py": b"from .engine import train\n",
        "lib/engine.py": b"def train(): pass\n",
        "second.py": b"from lib import train\n",
        "third.py": b"import second\n",
    }
    assert relevant(files) == ["main.py", "lib/__init__.py", "lib/engine.py", "second.py"]
    files["second.py"] += b"import tools\n"
    files["tools.py"] = b"import more\n"
    assert relevant(files)[3:] == ["second.py", "tools.py"]


def test_callers_of_files_that_change_alone() -> None:
    """What only imports the same files is needed where one of those changes, or where it may import any."""
    files = {
        "main.py": APEX + b"from lib import engine, nets\n",
        "lib/__init__.py": b"from .engine import train\n",
        "lib/engine.py": b"def train(): pass\n",
        "lib/nets.py": b"",
        "second.py": b"from lib import train\nimport tools\n",
        "third.py": b"import lib.nets\n",
        "tools.py": b"",
    }
    needed = ["main.py", "lib/__init__.py", "lib/engine.py", "lib/nets.py"]
    selection = Selection(files)
    assert selection.needed == selection.with_callers(["main.py"]) == needed
    assert selection.with_callers(["lib/nets.py"]) == [*needed, "third.py"]
    assert selection.with_callers(["lib/engine.py"]) == [
        *needed,
        "second.py",
        "third.py",
        "tools.py",
    ]
    files["third.py"] += b"import importlib\nimportlib.import_module(name)\n"
    assert Selection(files).needed == [*needed, "third.py"]


def test_what_a_folder_of_plugins_registers_with() -> None:
    """Where what Apex code imports runs files by names that are values, all that import it are needed: it may run them."""
    files = {
        "main.py": APEX + b"import tasks\n",
        "tasks/__init__.py": b"def register(cls): pass\n",
        "tasks/ranking.py": b"from tasks import register\n",
    }
    assert Selection(files).needed == ["main.py", "tasks/__init__.py"]
    files["tasks/__init__.py"] += b"import importlib\nimportlib.import_module(name)\n"
    assert Selection(files).needed == [*files]


def test_forms_of_imports() -> None:
    """Relative, bracketed, continued, indented and several imports on a line are seen."""
    files = {
        "pkg/__init__.py": b"",
        "pkg/a.py": b"from . import (\n    b,  # one\n    c as d,\n)\n",
        "pkg/b.py": APEX,
        "pkg/c.py": b"def f():\n    import pkg.e, pkg.f as g\n",
        "pkg/e.py": b"from .h \\\n    import x\n",
        "pkg/f.py": b"from .. pkg import i\n",
        "pkg/h.py": b"",
        "pkg/i.py": b"",
        "pkg/z.py": b"",
    }
    found = relevant(files)
    assert {"pkg/a.py", "pkg/b.py", "pkg/c.py", "pkg/e.py", "pkg/f.py", "pkg/h.py"} <= set(found)
    assert "pkg/z.py" not in found


def test_search_path_reaches_far_modules() -> None:
    """A file that changes sys.path may import a module from anywhere."""
    files = {
        "run/main.py": APEX + b"import sys\nsys.path.insert(0, x)\nimport engine\n",
        "lib/one/engine.py": b"",
        "lib/two/engine.py": b"",
    }
    assert relevant(files) == list(files)


def test_search_path_does_not_hide_what_is_installed() -> None:
    """Names of the standard library and of torch mean those, wherever a file of that name lies."""
    files = {
        "run/main.py": APEX + b"import sys, re\nsys.path.insert(0, x)\nimport torch.functional\n",
        "lib/one/re.py": b"",
        "lib/two/functional.py": b"",
    }
    assert relevant(files) == ["run/main.py"]


def test_notebooks_import_too() -> None:
    """A code line of a notebook counts, and notebooks themselves are not imported."""
    files = {
        "a.ipynb": b'{"cells": [{"source": [\n  "import engine\\n",\n  "engine.run()"]}]}',
        "engine.py": APEX,
    }
    assert relevant(files) == ["a.ipynb", "engine.py"]


def test_contents_are_read_once() -> None:
    """A callable is asked once for the bytes of its file."""
    asked = []

    def read(path: str, data: bytes) -> bytes:
        asked.append(path)
        return data

    files = {"a.py": lambda: read("a.py", APEX), "b.py": lambda: read("b.py", b"import a\n")}
    assert relevant(files) == ["a.py", "b.py"]
    assert sorted(asked) == ["a.py", "b.py"]


def _package(*imports: str) -> dict[str, bytes]:
    lines = "".join(f"import {name}\n" for name in imports).encode()
    folders = {f"src/{name}__init__.py": b"" for name in ("", "nn/", "nn/gans/", "utils/")}
    modules = {f"src/{name}.py": b"" for name in ("nn/gans/base", "nn/net", "utils/io")}
    return folders | modules | {"src/nn/gans/base.py": APEX, "src/nn/gans/main.py": lines}


def test_a_package_of_another_name() -> None:
    """A folder whose files import several of its modules by one other name has that name too."""
    names = ["lib.nn.gans.base", "lib.nn.net", "lib.utils.io"]
    assert "src/nn/gans/main.py" in relevant(_package(*names))
    elsewhere = [f"lib.{name}" for name in ("core.a", "nn.heads", "optim.adam")]
    assert "src/nn/gans/main.py" not in relevant(_package(*names, *elsewhere))
    assert "src/nn/gans/main.py" not in relevant(_package(*names[:2]))
    assert "src/nn/gans/main.py" not in relevant(_package(*names) | {"lib/__init__.py": b""})
