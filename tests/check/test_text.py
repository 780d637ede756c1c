"""The last look at a rewrite before it is written."""

from __future__ import annotations

import pytest

from amp_migrate.check.text import check


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("x = 1\n", "x = = 1\n", "does not compile: invalid syntax"),
        ("def f():\n    pass\n", "return 1\n", "does not compile: 'return' outside function"),
        ("x = 1\n", "x = 1\x00\n", "does not compile"),
        ("x = 1\n", "x = scaler\n", "uses 'scaler', which nothing defines"),
        ("x = y\n", "x = y + y\n", "uses 'y', which nothing defines"),
        ("x = 1\n", "import torch\nx = 1\n", "imports 'torch' and does not use it"),
        (
            "import torch\nprint(torch)\n",
            "import torch\n",
            "imports 'torch' and does not use it",
        ),
        ("def f():\n    pass\n", "def f():\n    a = 1\n", "assigns 'a' and does not use it"),
        (
            "a = 1\n\n\ndef f():\n    print(a)\n",
            "a = 1\n\n\ndef f():\n    print(a)\n    a = 2\n",
            "uses 'a' before it is assigned",
        ),
        ("__all__ = []\n", "__all__ = ['f']\n", "exports 'f', which nothing defines"),
    ],
)
def test_reason_names_what_the_rewrite_broke(before: str, after: str, reason: str) -> None:
    found = check(before, after, "a.py")

    assert found is not None
    assert found.startswith(reason)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("print(i)\n", "if 1:\n    print(i)\n", id="name that was undefined before"),
        pytest.param(
            "import os\nx = 1\n", "import os\nx = 2\n", id="import that was unused before"
        ),
        pytest.param(
            "def f():\n    a = 1\n", "def f():\n    b = 0\n    a = b\n", id="unused local"
        ),
        pytest.param("return 1\nx = 1\n", "return 1\nx = 2\n", id="never compiled"),
        pytest.param("s = '\\d'\n", "s = '\\d' + ''\n", id="only a warning"),
        pytest.param("from m import *\nf()\n", "from m import *\ng()\n", id="star import"),
    ],
)
def test_faults_of_the_program_itself_do_not_count(before: str, after: str) -> None:
    assert check(before, after, "a.py") is None


def test_top_level_await_is_python_in_a_notebook_alone() -> None:
    before, after = "x = 1\n", "async def f(): ...\nawait f()\n"

    assert check(before, after, "a.ipynb") is None
    assert "outside function" in str(check(before, after, "a.py"))


def test_edit_over_the_border_of_cells_is_refused() -> None:
    before = "a = 1\n# %% [cell 2]\nb = 2\n"

    assert (
        check(before, "a = 1\nb = 2\n", "a.ipynb")
        == "would change code across the border of two cells"
    )
    assert check(before, "a = 3\n# %% [cell 2]\nb = 2\n", "a.ipynb") is None


def test_cell_marker_pushed_into_a_block_is_refused() -> None:
    before = "a = 1\n# %% [cell 2]\nb = 2\n"
    after = "if 1:\n    a = 1\n    # %% [cell 2]\n    b = 2\n"

    assert check(before, after, "a.ipynb") is not None


_AMP = "from apex import amp\nimport sys\nsys\n"
_NO_AMP = "import sys\nsys\n"


@pytest.mark.parametrize(
    "asked",
    [
        'on = "amp" in globals()',
        'on = "amp" not in dir()',
        'on = globals().get("amp")',
        'on = vars()["amp"]',
        'on = hasattr(sys.modules[__name__], "amp")',
        'on = getattr(sys.modules[__name__], "amp", None)',
    ],
)
def test_a_name_that_is_gone_is_looked_for_no_more(asked: str) -> None:
    assert "looks for 'amp'" in str(check(f"{_AMP}{asked}\n", f"{_NO_AMP}{asked}\n", "a.py"))
    assert check(f"{_AMP}{asked}\n", f"{_AMP}{asked} is None\n", "a.py") is None


@pytest.mark.parametrize(
    "asked",
    [
        'on = "amp" in SETTINGS',
        'on = SETTINGS.get("amp")',
        'f = lambda: "amp" in locals()',
        'globals()["amp"] = 1',
    ],
)
def test_names_that_are_looked_for_elsewhere_do_not_count(asked: str) -> None:
    before, after = (f"{text}SETTINGS = {{}}\n{asked}\n" for text in (_AMP, _NO_AMP))
    assert check(before, after, "a.py") is None
