"""What names mean across the files of a project."""

from __future__ import annotations

import ast

import pytest

from amp_migrate.project import Class, Function, Module
from tests.project.helpers import Case

TRAIN = "def train(model):\n    return model\n"


@pytest.mark.parametrize(
    ("files", "path"),
    [
        ({"engine.py": TRAIN, "main.py": "from engine import train\ntrain\n"}, "main.py"),
        ({"engine.py": TRAIN, "main.py": "import engine\nengine.train\n"}, "main.py"),
        ({"engine.py": TRAIN, "main.py": "import engine as e\ne.train\n"}, "main.py"),
        ({"engine.py": TRAIN, "main.py": "from engine import *\ntrain\n"}, "main.py"),
        (
            {"tools/main.py": "from lib.engine import train\ntrain\n", "lib/engine.py": TRAIN},
            "tools/main.py",
        ),
        (
            {
                "src/pkg/__init__.py": "",
                "src/pkg/engine.py": TRAIN,
                "scripts/main.py": "from pkg.engine import train\ntrain\n",
            },
            "scripts/main.py",
        ),
        (
            {
                "pkg/__init__.py": "from .engine import train\n",
                "pkg/engine.py": TRAIN,
                "main.py": "import pkg\npkg.train\n",
            },
            "main.py",
        ),
        (
            {
                "pkg/__init__.py": "from .engine import *\n",
                "pkg/engine.py": TRAIN,
                "main.py": "from pkg import train\ntrain\n",
            },
            "main.py",
        ),
        (
            {
                "pkg/__init__.py": "",
                "pkg/engine.py": TRAIN,
                "pkg/sub/__init__.py": "",
                "pkg/sub/main.py": "from ..engine import train\ntrain\n",
            },
            "pkg/sub/main.py",
        ),
        (
            {
                "pkg/__init__.py": "",
                "pkg/engine.py": TRAIN,
                "pkg/main.py": "from . import engine\nengine.train\n",
            },
            "pkg/main.py",
        ),
        (
            {
                "lib/deep/engine.py": TRAIN,
                "run/main.py": "import sys\nsys.path.insert(0, '../lib/deep')\nfrom engine import train\ntrain\n",
            },
            "run/main.py",
        ),
        ({"a/b/engine.py": TRAIN, "main.py": "import a.b.engine\na.b.engine.train\n"}, "main.py"),
        (
            {"engine.py": TRAIN, "main.py": "def f():\n    import engine\n    engine.train\n"},
            "main.py",
        ),
        (
            {
                "engine.py": TRAIN,
                "main.py": "import importlib\ne = importlib.import_module('engine')\ne.train\n",
            },
            "main.py",
        ),
        ({"engine.py": TRAIN, "main.py": "import engine\nstep = engine.train\nstep\n"}, "main.py"),
    ],
)
def test_function_is_found(files: dict[str, str], path: str) -> None:
    """The last expression of the file means the function `train`, however it was imported."""
    case = Case(files)
    last = files[path].strip().splitlines()[-1].strip()
    module = case.project.modules[path]
    found = [
        node.value
        for node in module.tree.parents
        if isinstance(node, ast.Expr) and module.tree.segment(node) == last
    ]
    meaning = case.project.resolve(module, found[0])
    assert isinstance(meaning, Function)
    assert meaning.qualname == "train"


def test_nearest_module_wins() -> None:
    """Two programs side by side each have their own `utils`."""
    case = Case(
        {
            "a/utils.py": "def f(): pass\n",
            "a/main.py": "from utils import f\nf()\n",
            "b/utils.py": "def f(): pass\n",
            "b/main.py": "from utils import f\nf()\n",
        }
    )
    for folder in "ab":
        callees = case.project.callees(case.call(f"{folder}/main.py", "f()"))
        assert [item.module.path for item in callees] == [f"{folder}/utils.py"]


def test_a_package_that_imports_itself_by_its_name_is_no_other_of_that_name() -> None:
    """Of packages with one name, each one's own file means itself; a package inside another is imported by both names."""
    files = {f"{at}/utils/engine.py": TRAIN for at in "ab"}
    files |= {
        f"{at}/utils/__init__.py": "from utils import engine\nengine.train()\n" for at in "ab"
    }
    case = Case(files | {"a/deep/__init__.py": "", "a/deep/lib/__init__.py": "import lib\nlib.x\n"})
    for at in "ab":
        callees = case.project.callees(case.call(f"{at}/utils/__init__.py", "engine.train()"))
        assert [item.module.path for item in callees] == [f"{at}/utils/engine.py"]
    assert case.external("a/deep/lib/__init__.py", "lib.x") == "lib.x"


def test_installed_names_are_not_taken_from_far_files() -> None:
    """A file called apex.py, or a folder called apex, does not stand for the package."""
    case = Case(
        {
            "pkg/__init__.py": "",
            "pkg/apex.py": "from apex import amp\namp.scale_loss\n",
            "apex/train.py": "from apex import amp\namp.scale_loss\n",
            "deep/er/apex.py": "",
        }
    )
    assert case.external("pkg/apex.py", "amp.scale_loss") == "apex.amp.scale_loss"
    assert case.external("apex/train.py", "amp.scale_loss") == "apex.amp.scale_loss"


def test_vendored_package_is_the_project_s() -> None:
    """An apex package in the project's root is what `import apex` reads."""
    case = Case(
        {
            "apex/__init__.py": "from . import amp\n",
            "apex/amp/__init__.py": "def initialize(): pass\n",
            "main.py": "from apex import amp\namp.initialize\n",
        }
    )
    meaning = case.project.resolve(*case.at("main.py", "amp.initialize"))
    assert isinstance(meaning, Function)


def test_reexported_amp() -> None:
    """Apex is seen through a support module, its star import and a package."""
    case = Case(
        {
            "pkg/__init__.py": "from .support import amp\n",
            "pkg/support.py": "try:\n    from apex import amp\nexcept ImportError:\n    amp = None\n",
            "pkg/more.py": "from .support import *\namp.state_dict\n",
            "main.py": "from pkg import amp\namp.scale_loss\n",
            "other.py": "import pkg.support as s\ns.amp.initialize\n",
        }
    )
    assert case.external("main.py", "amp.scale_loss") == "apex.amp.scale_loss"
    assert case.external("pkg/more.py", "amp.state_dict") == "apex.amp.state_dict"
    assert case.external("other.py", "s.amp.initialize") == "apex.amp.initialize"


def test_global_amp_imported_in_a_function() -> None:
    """`global amp` with an import in one function is seen in the others."""
    case = Case(
        {
            "main.py": """
            def setup():
                global amp
                from apex import amp
            def train():
                amp.scale_loss
            """
        }
    )
    assert case.external("main.py", "amp.scale_loss") == "apex.amp.scale_loss"


def test_amp_put_into_globals() -> None:
    """`globals()["amp"] = amp` binds the module's global name."""
    case = Case(
        {
            "main.py": """
            def setup():
                from apex import amp
                globals()["amp"] = amp
            def train():
                amp.scale_loss
            """
        }
    )
    assert case.external("main.py", "amp.scale_loss") == "apex.amp.scale_loss"


def test_star_import_from_apex() -> None:
    """A star import of Apex brings amp, even beside other star imports."""
    case = Case({"main.py": "from torch import *\nfrom apex import *\namp.scale_loss\n"})
    assert case.external("main.py", "amp.scale_loss") == "apex.amp.scale_loss"


def test_import_cycles_end() -> None:
    """Modules that import each other, and names that only refer to each other, do not hang."""
    case = Case(
        {
            "a.py": "from b import *\nfrom b import x\nfrom c import *\nx\n",
            "b.py": "from a import *\nfrom a import x\n",
            "c.py": "from a import *\nfrom c import *\n",
        }
    )
    assert case.project.resolve(*case.at("a.py", "x")) is None


def test_module_and_class_meanings() -> None:
    """Modules and classes are meanings too; plain variables are none."""
    case = Case(
        {
            "lib/__init__.py": "",
            "lib/net.py": "class Net:\n    pass\n",
            "main.py": "from lib import net\nnet\nnet.Net\nvalue = 3\nvalue\nprint\n",
        }
    )
    assert isinstance(case.project.resolve(*case.at("main.py", "net")), Module)
    assert isinstance(case.project.resolve(*case.at("main.py", "net.Net")), Class)
    assert case.project.resolve(*case.at("main.py", "value")) is None
    assert case.project.resolve(*case.at("main.py", "print")) is None


def test_module_names() -> None:
    """A module is known by its package's name and from each folder above."""
    case = Case({"src/pkg/__init__.py": "", "src/pkg/a.py": "", "tools/run.py": ""})
    modules = case.project.modules
    assert modules["src/pkg/a.py"].name == "pkg.a"
    assert set(modules["src/pkg/a.py"].names) == {"pkg.a", "a", "src.pkg.a"}
    assert modules["src/pkg/__init__.py"].name == "pkg"
    assert set(modules["tools/run.py"].names) == {"run", "tools.run"}


def test_absolute_paths() -> None:
    """Absolute paths with their root work as relative ones do."""
    case = Case(
        {
            "/home/me/p/engine.py": TRAIN,
            "/home/me/p/tools/main.py": "from engine import train\ntrain\n",
        },
        ["/home/me/p"],
    )
    assert isinstance(case.project.resolve(*case.at("/home/me/p/tools/main.py", "train")), Function)


def test_root_inside_the_package() -> None:
    """Where the given folder is itself a package, its absolute imports still work."""
    case = Case(
        {
            "/p/pkg/__init__.py": "",
            "/p/pkg/engine.py": TRAIN,
            "/p/pkg/main.py": "from pkg.engine import train\ntrain\n",
        },
        ["/p/pkg"],
    )
    assert isinstance(case.project.resolve(*case.at("/p/pkg/main.py", "train")), Function)


def test_variables_that_swap_with_each_other() -> None:
    """Many names that are assigned to each other are followed in little time."""
    names = [f"h{i}" for i in range(30)]
    swaps = "\n".join(f"{a} = {b}" for a in names for b in names if a != b)
    case = Case({"m.py": f"from apex import amp\n{swaps}\nh7 = amp\nh0.scale_loss\n"})
    assert case.external("m.py", "h0.scale_loss") == "apex.amp.scale_loss"
