"""What entering a context does."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.training.contexts import Context, context

_IMPORTS = "import torch\nfrom contextlib import nullcontext\nfrom functools import partial\nfrom torch.cuda.amp import autocast\n"
_DO: dict[str, tuple[str, Context]] = {
    "called": ("with torch.no_grad():\n    run()", Context.NO_GRAD),
    "off": ("with autocast(enabled=False):\n    run()", Context.NO_CASTS),
    "either": ("with autocast() if fp16 else nullcontext():\n    run()", Context.CASTS),
    "by a name": ("quiet = torch.no_grad()\nwith quiet:\n    run()", Context.NO_GRAD),
    "of a function": (
        "def casts(on):\n    return autocast(enabled=on)\nwith casts(fp16):\n    run()",
        Context.CASTS,
    ),
    "a partial": (
        "off = partial(autocast, enabled=False)\nwith off():\n    run()",
        Context.NO_CASTS,
    ),
    "a partial of a partial": (
        "cast = partial(autocast)\ncast = partial(cast, enabled=False)\nwith cast():\n    run()",
        Context.CASTS,
    ),
}
_DO_NOTHING = {
    "another one": "with open(path):\n    run()",
    "a partial of itself": "timed = partial(timed, 3)\nwith timed():\n    run()",
    "two that are partials of each other": "a = partial(b)\nb = partial(a)\nwith a():\n    run()",
    "itself": "def held():\n    return held()\nwith held():\n    run()",
}


def _entered(text: str) -> Context | None:
    tree = Tree("train.py", _IMPORTS + dedent(text))
    project = build({"train.py": tree}, ["."])
    node = next(iter(tree.nodes(ast.With)))
    return context(project, project.modules["train.py"], node.items[0].context_expr)


@pytest.mark.parametrize(("text", "what"), _DO.values(), ids=_DO)
def test_contexts(text: str, what: Context) -> None:
    """A context is known by what makes it, also through names, partials and functions."""
    assert _entered(text) is what


@pytest.mark.parametrize("text", _DO_NOTHING.values(), ids=_DO_NOTHING)
def test_other_contexts(text: str) -> None:
    """Nothing is told of other contexts, also where a name leads back to itself."""
    assert _entered(text) is None
