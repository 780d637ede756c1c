"""`torch.cuda.amp` becomes `torch.amp`: calls, imports, and what has to stay."""

from __future__ import annotations

from textwrap import dedent

import pytest
from rules.native.support import upgraded

from amp_migrate.facts.tree import Tree
from amp_migrate.plan import native
from amp_migrate.plan.model import Drop, Hoist, ReplaceExpression, Status
from amp_migrate.source.span import Span


def _is(after: str, expected: str) -> bool:
    return after == dedent(expected).lstrip("\n")


def test_names_in_full_take_the_device_first() -> None:
    """`enabled` was the first argument of autocast and is no more; GradScaler keeps its order."""
    after = upgraded(
        """
        import torch

        scaler = torch.cuda.amp.GradScaler(1024.0, enabled=True)
        plain = torch.cuda.amp.GradScaler()
        with torch.cuda.amp.autocast(False, torch.bfloat16), torch.cuda.amp.autocast(dtype=torch.float16):
            pass
        """
    )
    assert _is(
        after,
        """
        import torch

        scaler = torch.amp.GradScaler("cuda", 1024.0, enabled=True)
        plain = torch.amp.GradScaler("cuda")
        with torch.amp.autocast("cuda", enabled=False, dtype=torch.bfloat16), torch.amp.autocast("cuda", dtype=torch.float16):
            pass
        """,
    )


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("from torch.cuda.amp import autocast", "from torch.amp import autocast", "autocast"),
        (
            "from torch.cuda.amp import autocast as cast",
            "from torch.amp import autocast as cast",
            "cast",
        ),
        (
            "from torch.cuda.amp.autocast_mode import autocast",
            "from torch.amp import autocast",
            "autocast",
        ),
        ("from torch.cuda import amp", "from torch import amp", "amp.autocast"),
        ("import torch.cuda.amp as amp", "import torch.amp as amp", "amp.autocast"),
        ("import torch as th", "import torch as th", "th.cuda.amp.autocast"),
    ],
)
def test_every_way_of_importing(old: str, new: str, name: str) -> None:
    """Whatever the name is bound by, the import and the call change together."""
    after = upgraded(f"{old}\nwith {name}(enabled=True):\n    pass\n")
    called = name.replace(".cuda", "")
    assert after == f'{new}\nwith {called}("cuda", enabled=True):\n    pass\n'


def test_decorators_of_functions_get_the_device() -> None:
    """A bare decorator becomes a call."""
    after = upgraded(
        """
        from torch.cuda.amp import custom_bwd, custom_fwd


        @custom_fwd(cast_inputs=None)
        def forward(ctx, x):
            return x


        @custom_bwd
        def backward(ctx, g):
            return g
        """
    )
    assert '@custom_fwd(cast_inputs=None, device_type="cuda")' in after
    assert '@custom_bwd(device_type="cuda")' in after
    assert "from torch.amp import custom_bwd, custom_fwd" in after


def test_types_follow_and_comments_stay() -> None:
    """The old GradScaler is a subclass of the new one: a type check by the old name would fail."""
    after = upgraded(
        """
        from torch.cuda.amp import GradScaler  # scaling


        def make(old: GradScaler) -> GradScaler:
            if isinstance(old, (int, GradScaler)):
                return old
            return GradScaler(
                init_scale=2.0**10,  # low
            )
        """
    )
    assert "from torch.amp import GradScaler  # scaling" in after
    assert 'GradScaler(\n        "cuda",\n        init_scale=2.0**10,  # low\n    )' in after


@pytest.mark.parametrize(
    "program",
    [
        "try:\n    from torch.cuda.amp import autocast\nexcept ImportError:\n    autocast = None\nautocast()\n",
        "from torch.cuda.amp import autocast\nCONTEXTS = {'amp': autocast}\n",
        "from torch.cuda.amp import GradScaler\nclass Scaler(GradScaler):\n    pass\n",
        "from torch.cuda import amp\nprint(hasattr(amp, 'autocast'), amp.autocast())\n",
        "from torch.cuda.amp import autocast\n__all__ = ['autocast']\nautocast()\n",
        "from torch.cuda.amp import autocast\ndef run(*args):\n    return autocast(*args)\n",
        "from torch.amp import autocast\nwith autocast('cuda'):\n    pass\n",
        "from torch.cuda.amp import autocast\n",
    ],
)
def test_what_cannot_be_followed_stays(program: str) -> None:
    """A name with a second meaning, handed on or derived from keeps its old spelling everywhere."""
    assert upgraded(program) == program


def test_one_name_of_several_stays() -> None:
    """An import is split where only some of its names can change."""
    after = upgraded(
        """
        from torch.cuda.amp import GradScaler, autocast

        KINDS = [GradScaler]
        with autocast():
            pass
        """
    )
    assert _is(
        after,
        """
        from torch.cuda.amp import GradScaler
        from torch.amp import autocast

        KINDS = [GradScaler]
        with autocast("cuda"):
            pass
        """,
    )


def test_a_name_that_another_file_takes_stays() -> None:
    """The other file calls it in the old way."""
    program = "from torch.cuda.amp import autocast\nwith autocast():\n    pass\n"
    assert upgraded(program, others=["from program import autocast\nautocast()\n"]) == program
    assert upgraded(program, others=["from .program import *\n"]) == program
    assert upgraded(program, others=["from torch.cuda.amp import autocast\n"]) != program


def test_edits_already_planned_win() -> None:
    """Nothing is edited in what other edits remove or rewrite."""
    program = dedent(
        """\
        import torch
        if apex:
            a = torch.cuda.amp.GradScaler()
        else:
            b = torch.cuda.amp.GradScaler()
        c = torch.cuda.amp.GradScaler()
        d = torch.cuda.amp.GradScaler()
        """
    )
    tree = Tree("program.py", program)
    branch, c, d = tree.module.body[1:]
    edits = [
        Hoist(tree.span(branch), "orelse"),
        Drop(tree.span(c)),
        ReplaceExpression(tree.span(d.value), "None"),  # type: ignore[attr-defined]
    ]
    found = native.upgrade(tree, edits)
    assert [f.finding.span.line for f in found] == [5]
    assert upgraded(program, edits) == 'import torch\nb = torch.amp.GradScaler("cuda")\nd = None\n'


def test_a_name_that_an_edit_writes_stays() -> None:
    """An edit's text calls the name in the old way."""
    tree = Tree("p.py", "from torch.cuda.amp import autocast\nx = 1\nautocast()\n")
    edit = ReplaceExpression(Span(2, 4, 2, 5), "autocast()")
    assert native.upgrade(tree)
    assert not native.upgrade(tree, [edit])


def test_uses_are_reported_one_by_one() -> None:
    """The import and each use are migrated places."""
    tree = Tree("p.py", "from torch.cuda.amp import autocast\nautocast()\nautocast()\n")
    found = [d.finding for d in native.upgrade(tree)]
    assert [(f.span.line, f.code, f.status) for f in found] == [
        (line, "AMP401", Status.MIGRATED) for line in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("import torch\ntorch.cuda.amp.autocast()", True),
        ("from torch.cuda import amp", True),
        ("from torch.amp import autocast", True),
        ("import torch\nsample = 1", False),
        ("from apex import amp", False),
    ],
)
def test_the_cheap_test(text: str, answer: bool) -> None:
    """A line tells whether native AMP may be there."""
    assert native.applies(text) is answer
