"""What tests of torch's version come out as where native AMP runs, and the variables that follow from them."""

from __future__ import annotations

import ast

import pytest

from amp_migrate.availability.versions import Versions
from tests.project.helpers import Case

HEAD = "import torch\nfrom packaging import version\nfrom distutils.version import LooseVersion\n"
ANSWERS = [
    ("version.parse(torch.__version__) < version.parse('1.6')", False),
    ("version.parse(torch.__version__) >= version.parse('1.6.0')", True),
    ("LooseVersion(torch.__version__) >= '1.5'", True),
    ("LooseVersion('1.6') <= LooseVersion(torch.__version__)", True),
    ("version.parse('1.6') > version.parse(torch.__version__)", False),
    ("version.parse(torch.__version__) > version.parse('1.6')", None),
    ("version.parse(torch.__version__) < version.parse('1.7')", None),
    ("version.parse(torch.__version__) == version.parse('1.6')", None),
    ("torch.__version__ >= '1.6'", None),
    ("version.parse(lib.__version__) < version.parse('1.6')", None),
    ("version.parse(torch.__version__) < version.parse(needed)", None),
]
FLAGS = [
    ("flag = False\nif {old}:\n    flag = True\n", False),
    ("if {old}:\n    flag = False\nelse:\n    flag = True\n", True),
    ("flag = False\nif {old}:\n    pass\nelif ready():\n    flag = True\n", None),
    ("flag = False\nif ready():\n    flag = True\n", None),
    ("flag = False\nfrom settings import *\n", None),
    ("flag = False\ndef turn():\n    global flag\n    flag = True\n", None),
    ("flag = False\nfor flag in options():\n    pass\n", None),
    ("flag = False\ndef flag():\n    pass\n", None),
    ("flag = 'no'\n", None),
]
OLD = "version.parse(torch.__version__) < version.parse('1.6')"


def versions(text: str) -> Versions:
    """Return what is known of a file with this text."""
    project = Case({"train.py": HEAD + text}).project
    return Versions(project, project.modules["train.py"])


@pytest.mark.parametrize(("test", "answer"), ANSWERS)
def test_only_what_every_torch_with_native_amp_answers_alike_is_settled(
    test: str, answer: bool | None
) -> None:
    """1.6 and later; text is compared letter by letter, and other libraries have other versions."""
    found = versions(f"if {test}:\n    pass\n")
    node = found._module.tree.module.body[-1]
    assert isinstance(node, ast.If)
    assert found.known(node.test) is answer
    assert found.asks is (answer is not None)


@pytest.mark.parametrize(("text", "value"), FLAGS)
def test_a_flag_is_known_where_nothing_else_sets_it(text: str, value: bool | None) -> None:
    """Branches for an older torch never run; whatever else may bind the name leaves it open."""
    found = versions(text.format(old=OLD))
    assert found.flags.get("flag") is value


def test_a_local_of_the_same_name_is_another_variable() -> None:
    """The answer belongs to the variable of the top level."""
    found = versions("flag = False\ndef run(flag):\n    if flag:\n        return 1\n")
    (test,) = (n.test for n in ast.walk(found._module.tree.module) if isinstance(n, ast.If))
    assert found.known(test) is None
