"""Several ranks: each is recorded, compared with its counterpart, and named where it differs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from amp_migrate.equivalence.cli import main
from equivalence.forked import forked_launches  # noqa: F401
from equivalence.programs import replaced

pytestmark = pytest.mark.usefixtures("forked_launches")

APEX = """
import os
import torch
from apex import amp
from apex.parallel import DistributedDataParallel

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
torch.distributed.init_process_group("nccl")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
model = DistributedDataParallel(model)
torch.manual_seed(rank + 1)
for step in range(40):
    x, y = torch.randn(4, 8).cuda(), torch.randint(0, 3, (4,)).cuda()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 0.5)
    optimizer.step()
"""
COMMAND = ("torchrun", "--standalone", "--nproc-per-node", "2", "train.py")


def verify(folder: Path, *options: str) -> tuple[int, dict]:
    """Run the command under torchrun and return its exit code and JSON report."""
    fast = ("--steps", "3", "--inject-overflow", "2", "--device", "cpu", "--no-casts")
    report = folder / "report.json"
    code = main([*fast, "--json", str(report), *options, "--", *COMMAND])
    return code, json.loads(report.read_text(encoding="utf-8"))


def test_two_ranks_are_migrated_and_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Apex's DistributedDataParallel and torch's, gloo for NCCL, both ranks bit for bit."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "train.py").write_text(APEX, encoding="utf-8")
    monkeypatch.chdir(tmp_path / "project")
    code, report = verify(tmp_path)
    assert (code, report["verdict"]["word"]) == (0, "EXACT")
    assert (report["coverage"]["ranks"], report["coverage"]["skipped"]) == (2, 1)


def test_batch_norms_over_all_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Apex's and torch's run without a GPU, in training over both ranks and in evaluation."""
    over_all = replaced(APEX, "torch.nn.ReLU()", "torch.nn.BatchNorm1d(16), torch.nn.ReLU()")
    made = "optimizer = torch.optim"
    over_all = replaced(over_all, made, f"model = parallel.convert_syncbn_model(model)\n{made}")
    over_all = replaced(
        over_all, "from apex.parallel import DistributedDataParallel",
        "from apex import parallel\nfrom apex.parallel import DistributedDataParallel",
    )  # fmt: skip
    evaluating = "    optimizer.step()\n    model.eval()\n    model(x)\n    model.train()\n"
    (tmp_path / "project").mkdir()
    text = replaced(over_all, "    optimizer.step()\n", evaluating)
    (tmp_path / "project" / "train.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path / "project")
    code, report = verify(tmp_path)

    assert (code, report["verdict"]["word"]) == (0, "EXACT"), report["verdict"]


def test_a_difference_on_one_rank_is_named_with_it(tmp_path: Path) -> None:
    """Rank 0 agrees; the learning rate of rank 1 does not."""
    for name, text in (("a", APEX), ("b", replaced(APEX, "lr=0.1", "lr=0.1 + rank / 100"))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(text, encoding="utf-8")
    trees = ("--before", str(tmp_path / "a"), "--after", str(tmp_path / "b"))
    code, report = verify(tmp_path, *trees)
    assert (code, report["first_difference"]["rank"]) == (1, 1)
    assert report["verdict"]["reason"].startswith("learning rate at step 1 on rank 1")
