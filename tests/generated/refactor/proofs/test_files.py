"""Files: what each refactoring makes of a small project, where it finds no place, and that results are whole."""

from __future__ import annotations

from random import Random
from textwrap import dedent

import pytest

from generated.refactor.bases import base, names
from generated.refactor.judging.migrated import messages
from generated.refactor.project import Project
from generated.refactor.refactoring import catalogue

OWN = [r.name for r in catalogue().values() if r.family == "files"]
MAIN = "from tools import work\n\n\ndef main():\n    print(work(1))\n\n\nmain()\n"
TOOLS = "def work(x):\n    return x\n"
ONE = """\
import torch
from apex import amp


# one step
def step(loss, optimizer):
    with amp.scale_loss(loss, optimizer) as scaled:
        scaled.backward()


def main():
    step(torch.zeros(1), None)


if __name__ == "__main__":
    main()
"""


def results(name: str, files: dict[str, str], seeds: int = 60) -> list[Project]:
    """Return what a refactoring makes of a project, by many seeds."""
    project = Project({k: dedent(v).lstrip() for k, v in files.items()}, "main.py")
    changed = (catalogue()[name].apply(project, Random(seed)) for seed in range(seeds))
    return [found for found in changed if found is not None and found.files != project.files]


def test_module_is_taken() -> None:
    """Names become attributes of the module."""
    found = results("an import takes the module", {"main.py": MAIN, "tools.py": TOOLS})
    wanted = MAIN.replace("from tools import work", "import tools").replace(
        "work(1)", "tools.work(1)"
    )
    assert wanted in [p.files["main.py"] for p in found]


def test_star_with_and_without_a_list() -> None:
    """A star takes what the module has, or what it lists."""
    found = results("an import takes everything", {"main.py": MAIN, "tools.py": TOOLS})
    assert all("from tools import *\n" in p.files["main.py"] for p in found)
    assert {p.files["tools.py"] for p in found} == {TOOLS, f'__all__ = ["work"]\n{TOOLS}'}


def test_import_goes_into_the_function() -> None:
    """Each function that uses a name imports it."""
    found = results("an import goes into the functions", {"main.py": MAIN, "tools.py": TOOLS})
    wanted = "\n\ndef main():\n    from tools import work\n    print(work(1))\n\n\nmain()\n"
    assert {p.files["main.py"] for p in found} == {wanted}


def test_import_is_spelt_otherwise() -> None:
    """Within a package an import is relative or absolute."""
    files = {
        "main.py": "from kit.a import shown\n\nprint(shown)\n",
        "kit/__init__.py": "",
        "kit/a.py": "from .b import work\n\nshown = work(1)\n",
        "kit/b.py": TOOLS,
    }
    found = {p.files["kit/a.py"] for p in results("an import is spelt otherwise", files)}
    assert "from kit.b import work\n\nshown = work(1)\n" in found
    assert "from .b import work as base_work\n\nshown = base_work(1)\n" in found


def test_definition_moves_with_its_comment_and_imports() -> None:
    """What a function needs goes along; what nothing needs any more goes."""
    found = results("definitions move to a new module", {"main.py": ONE})
    texts = [
        p.files
        for p in found
        if "core.py" in p.files and "from core import step" in p.files["main.py"]
    ]
    assert texts[0]["core.py"] == (
        "from apex import amp\n\n\n# one step\ndef step(loss, optimizer):\n"
        "    with amp.scale_loss(loss, optimizer) as scaled:\n        scaled.backward()\n"
    )
    heads = [files["main.py"].partition("    step(")[0] for files in texts]
    assert "import torch\nfrom core import step\n\n\ndef main():\n" in heads


def test_definition_moves_to_another_file() -> None:
    """Who took the function from the old file takes it from the new one; an empty file goes."""
    files = {
        "main.py": "from a import f\nfrom b import g\n\nf()\ng()\n",
        "a.py": "def f():\n    pass\n",
    }
    found = results("definitions move to another module", {**files, "b.py": "def g():\n    pass\n"})
    assert found[0].files.keys() == {"main.py", "a.py"} or found[0].files.keys() == {
        "main.py",
        "b.py",
    }
    assert {p.files["main.py"] for p in found} == {
        "from a import f\nfrom a import g\n\nf()\ng()\n",
        "from b import f\nfrom b import g\n\nf()\ng()\n",
    }


def test_file_becomes_several() -> None:
    """Models and training have a file each."""
    model = "class Net(torch.nn.Module):\n    pass\n\n\n"
    found = results(
        "a file becomes several", {"main.py": ONE.replace("# one step", model + "# one step")}
    )
    assert any({"main.py", "models.py", "engine.py"} <= p.files.keys() for p in found)


def test_module_goes_into_the_file_that_imports_it() -> None:
    """Its imports go to the imports, its code below them."""
    files = {
        "main.py": f"import os\n{MAIN}print(os)\n",
        "tools.py": f"import os\nimport sys\n\n\n{TOOLS}print(sys)\n",
    }
    found = results("a module goes into the file that imports it", files)
    assert [dict(p.files) for p in found[:1]] == [
        {
            "main.py": "import os\nimport sys\n\n\ndef work(x):\n    return x\nprint(sys)\n\n\n"
            "def main():\n    print(work(1))\n\n\nmain()\nprint(os)\n"
        }
    ]


def test_modules_go_into_a_package() -> None:
    """Scripts stay; modules import each other relatively or not."""
    files = {"main.py": MAIN, "tools.py": f"from more import x\n\n\n{TOOLS}", "more.py": "x = 1\n"}
    found = [p for p in results("modules go into a package", files) if "kit/tools.py" in p.files]
    assert {p.files["main.py"].splitlines()[0] for p in found} == {"from kit.tools import work"}
    assert {p.files["kit/tools.py"].splitlines()[0] for p in found} == {
        "from .more import x",
        "from kit.more import x",
    }


def test_package_offers_names() -> None:
    """The package itself has what its module defines."""
    files = {
        "main.py": MAIN.replace("tools", "kit.tools"),
        "kit/tools.py": TOOLS,
        "kit/__init__.py": "",
    }
    found = results("a package offers the names of its modules", files)
    assert {p.files["main.py"].splitlines()[0] for p in found} == {"from kit import work"}
    assert {p.files["kit/__init__.py"] for p in found} == {
        "from .tools import work\n",
        "from kit.tools import work\n",
        "from .tools import *\n",
    }


SCRIPT = """\
import argparse
import torch
from apex import amp
from engine import step, validate


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    args = parser.parse_args()
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if args.fp16:
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    step(args, model, optimizer)
    validate(model)


if __name__ == "__main__":
    main()
"""
ENGINE = """\
from apex import amp


def step(args, model, optimizer):
    print(amp)


def validate(model):
    model.eval()
"""


def test_script_without_apex() -> None:
    """It is the script without the branches of the switch, which it no longer has, and runs beside it."""
    (changed, *_) = results(
        "a script beside trains without Apex", {"main.py": SCRIPT, "engine.py": ENGINE}
    )
    ((path, arguments),) = changed.more
    wanted = SCRIPT.replace("from apex import amp\n", "").replace(
        'parser.add_argument("--fp16", action="store_true")', "parser.set_defaults(fp16=False)"
    )
    start, stop = wanted.index("    if args.fp16:"), wanted.index("    step(")
    assert changed.files[path] == wanted[:start] + wanted[stop:] and arguments == ()


def test_script_that_evaluates() -> None:
    """It makes what the evaluation needs."""
    (changed, *_) = results("a script beside evaluates", {"main.py": SCRIPT, "engine.py": ENGINE})
    ((path, _),) = changed.more
    assert changed.files[path] == (
        "import torch\nfrom engine import validate\n\n\ndef main():\n    model = torch.nn.Linear(1, 1)\n"
        '    print(validate(model))\n\n\nif __name__ == "__main__":\n    main()\n'
    )


def test_script_that_nobody_migrates() -> None:
    """It trains in pure half precision, or hands Apex to a library; what is left in it is no fault."""
    found = results("a script beside cannot be migrated", {"main.py": SCRIPT, "engine.py": ENGINE})
    assert all(p.beside and not p.more and p.files["main.py"] == SCRIPT for p in found)
    texts = {p.files[p.beside[0]] for p in found}
    assert SCRIPT.replace('"O1"', '"O3"') in texts
    assert any("        mixed_hooks.register(amp)\n" in source for source in texts)


NOWHERE = [
    ("an import takes the module", {"main.py": "import os\n\nos.work()\n"}),
    (
        "an import takes everything",
        {"main.py": "from tools import _work\n\n_work()\n", "tools.py": "def _work():\n    pass\n"},
    ),
    ("an import takes everything", {"main.py": MAIN, "tools.py": "__all__ = []\n" + TOOLS}),
    (
        "an import goes into the functions",
        {"main.py": "from tools import work\n\nwork()\n", "tools.py": TOOLS},
    ),
    ("an import is spelt otherwise", {"main.py": "import tools\n", "tools.py": TOOLS}),
    ("definitions move to a new module", {"main.py": "x = input()\n\n\ndef f():\n    return x\n"}),
    ("definitions move to a new module", {"main.py": "def f():\n    global x\n    x = 1\n"}),
    (
        "definitions move to another module",
        {
            "main.py": "from a import f\n\nf()\n",
            "a.py": "import main\n\n\ndef f():\n    main.x()\n",
        },
    ),
    ("a file becomes several", {"main.py": "def main():\n    pass\n"}),
    (
        "a module goes into the file that imports it",
        {
            "main.py": f"{MAIN}\n\ndef helper():\n    pass\n",
            "tools.py": f"def helper():\n    return 2\n\n\n{TOOLS}",
        },
    ),
    (
        "a module goes into the file that imports it",
        {"main.py": MAIN, "tools.py": f"{TOOLS}\nprint(__name__)\n"},
    ),
    ("modules go into a package", {"main.py": "x = 1\n"}),
    (
        "a package offers the names of its modules",
        {"main.py": "from kit.work import work\n", "kit/work.py": TOOLS, "kit/__init__.py": ""},
    ),
    (
        "a script beside trains without Apex",
        {"main.py": SCRIPT.replace("if args.fp16", "if True"), "engine.py": ENGINE},
    ),
    (
        "a script beside evaluates",
        {"main.py": SCRIPT, "engine.py": ENGINE.replace("eval()", "train()")},
    ),
    (
        "a script beside cannot be migrated",
        {"main.py": SCRIPT, "engine.py": ENGINE.replace("from apex import amp", "amp = 1")},
    ),
]


@pytest.mark.parametrize(("name", "files"), NOWHERE)
def test_nowhere(name: str, files: dict[str, str]) -> None:
    """Where its precondition does not hold, a refactoring leaves a project alone."""
    assert results(name, files, seeds=15) == []


def test_results_are_whole() -> None:
    """Whatever the base and the draw: what a refactoring returns compiles, and names nothing unknown that the base does not."""
    rng = Random(12)
    for _ in range(12):
        project, name = base(rng.choice(names())).project, rng.choice(OWN)
        changed = catalogue()[name].apply(project, rng)
        had = {m for path, source in project.files.items() for m in messages(path, source.encode())}
        for path, source in changed.files.items() if changed else ():
            compile(source, path, "exec", dont_inherit=True)
            new = messages(path, source.encode())
            assert not [m for m in new if "undefined name" in m and m not in had], (name, path)


def test_definitions_stay_where_files_would_import_each_other() -> None:
    """A file gets nothing that needs the file itself, by whatever name, or a third one that needs it."""
    over = "from core import Base as First\n\n\nclass Wide(First):\n    pass\n"
    files = {
        "main.py": "from wide import Wide\n\nprint(Wide.__mro__)\n",
        "core.py": "class Base:\n    pass\n",
        "wide.py": over,
        "eager.py": "from wide import Wide\n\n\nclass Eager(Wide):\n    pass\n",
    }
    for found in results("definitions move to another module", files):
        assert "import" not in found.files["core.py"]


def test_definitions_stay_that_are_asked_for_by_name() -> None:
    """A file that looks itself up keeps what it defines, and one that is imported for what it does stays imported."""
    asks = "import sys\n\n\nclass Probe:\n    pass\n\n\ndef main():\n    print(getattr(sys.modules[__name__], 'Probe'))\n\n\nmain()\n"
    assert not results("definitions move to a new module", {"main.py": asks})
    files = {
        "main.py": "from tools import work\n\nprint(work(1))\n",
        "tools.py": "import marks\n\n\ndef work(x):\n    return x\n",
        "marks.py": "print('here')\n",
        "limits.py": "MOST = 3\n",
    }
    assert not results("definitions move to another module", files)
