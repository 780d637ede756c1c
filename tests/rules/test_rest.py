"""The rest of Apex across files, and where its rules hold back."""

from __future__ import annotations

from textwrap import dedent

import torch

from amp_migrate.engine import migrate
from amp_migrate.outcome import Result
from amp_migrate.rules.rest.amp304_optimizers import _OPTIMIZERS
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

_DDP = "from apex.parallel import DistributedDataParallel as DDP\n"


def _run(files: dict[str, str], **settings: object) -> tuple[Result, dict[str, str]]:
    sources = [
        Source.from_bytes(name, dedent(text).lstrip("\n").encode()) for name, text in files.items()
    ]
    result = migrate(sources, Settings(api="torch.cuda.amp").updated(settings))
    assert [o.failed for o in result.outcomes if o.failed] == []
    after = {o.path: o.before.text if o.after is None else o.after for o in result.outcomes}
    return result, after


def _found(result: Result) -> set[tuple[str, int, str, str]]:
    return {(f.path, f.span.line, f.code, f.status.value) for f in result.plan.findings()}


def test_a_wrapper_that_another_file_hands_on() -> None:
    """Both files end up with torch's class, and neither imports Apex."""
    files = {
        "compat.py": _DDP + "\n\ndef is_wrapped(m):\n    return isinstance(m, DDP)\n",
        "main.py": "import torch\nfrom compat import DDP, is_wrapped\n\nmodel = DDP(make())\nprint(is_wrapped(model), torch)\n",
    }
    _, after = _run(files)
    assert "apex" not in "".join(after.values())
    assert "torch.nn.parallel.DistributedDataParallel(" in after["main.py"]
    assert "from compat import is_wrapped\n" in after["main.py"]


def test_a_fused_layer_that_another_file_takes_stays() -> None:
    """It still exists, so the file that hands it on is no guard to fold."""
    files = {
        "layers.py": "try:\n    from apex.normalization import FusedLayerNorm as LayerNorm\nexcept ImportError:\n    from torch.nn import LayerNorm\n",
        "model.py": "from layers import LayerNorm\n\nnorm = LayerNorm(8)\n",
        "bare.py": "from apex.normalization import FusedRMSNorm\n",
        "other.py": "from bare import FusedRMSNorm\n\nnorm = FusedRMSNorm(8)\n",
    }
    result, after = _run(files)
    assert after == files
    assert ("model.py", 3, "AMP305", "note") in _found(result)


def test_an_ignored_rule_leaves_its_uses() -> None:
    """`--ignore AMP301` keeps the wrapper with its import."""
    files = {"main.py": _DDP + "model = DDP(make())\n"}
    result, after = _run(files, ignore=("AMP301",))
    assert after == files
    assert result.tally.migrated == 0


def test_switches_of_the_wrapper_are_left() -> None:
    """Torch's class has no disable_allreduce: the call is named, and fails loudly."""
    files = {"main.py": _DDP + "model = DDP(make())\nmodel.disable_allreduce()\n"}
    result, _ = _run(files)
    assert ("main.py", 3, "AMP301", "left") in _found(result)


def test_a_line_that_fits_is_not_broken() -> None:
    """The call is spread over lines only where it must be."""
    files = {"main.py": "import apex\nm = apex.parallel.SyncBatchNorm(8, channel_last=False)\n"}
    _, after = _run(files)
    assert after["main.py"].endswith("m = torch.nn.SyncBatchNorm(8)\n")


def test_a_wrapper_beside_a_unit_that_is_left() -> None:
    """The wrapper is part of the training, and stays with it; another program's goes."""
    files = {
        "main.py": """
            import torch
            try:
                from apex import amp
                from apex.parallel import DistributedDataParallel as ApexDDP
            except ImportError:
                raise ImportError("Please install apex")

            def train(model, optimizer, loader):
                model, optimizer = amp.initialize(model, optimizer, opt_level="O3")
                model = ApexDDP(model)
                for x in loader:
                    with amp.scale_loss(model(x), optimizer) as scaled:
                        scaled.backward()
                    optimizer.step()
            """,
        "other.py": """
            from apex.parallel import DistributedDataParallel

            def wrap(model):
                return DistributedDataParallel(model)
            """,
    }
    result, after = _run(files)
    assert result.tally.left
    assert "ApexDDP(model)" in after["main.py"]
    assert "from apex.parallel import DistributedDataParallel as ApexDDP" in after["main.py"]
    assert "apex" not in after["other.py"]


def test_arguments_that_are_kept_exist_in_torch() -> None:
    """What is written for a fused optimizer is accepted by torch's, in meaning and by name."""
    values = {"lr": 0.1, "eps": 1e-8, "betas": (0.9, 0.99), "momentum": 0.9, "dampening": 0.0}
    values |= {"weight_decay": 0.0, "nesterov": True, "capturable": False}
    for known in _OPTIMIZERS.values():
        params = [torch.nn.Parameter(torch.ones(2))]
        kept = {name: values[name] for name in known.kept - {"params"}}
        optimizer = getattr(torch.optim, known.torch)(params, **kept)
        assert set(kept) <= set(optimizer.defaults)


def test_the_limit_of_a_fused_lamb_is_the_one_that_it_is_given() -> None:
    """What it clips by is told as the call has it, by name or by place, and as Apex has it by default."""
    head = "from apex.optimizers import FusedLAMB\n\n\ndef made(net, args):\n    return FusedLAMB("
    defaults = "1e-3, True, (0.9, 0.999), 1e-6, 0.01, False, True, True, True"
    for given, limit in (
        ("net.parameters(), max_grad_norm=args.limit", "args.limit"),
        (f"net.parameters(), {defaults}, 0.5", "0.5"),
        ("net.parameters(), lr=1e-3", "1.0"),
    ):
        result, _ = _run({"a.py": f"{head}{given})\n"})
        advice = [f.advice or "" for f in result.plan.findings() if f.code == "AMP304"]
        assert any(f"it clips by max_grad_norm={limit} itself" in each for each in advice)
