"""Data parallelism and synchronized batch norm, alone and on two ranks."""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.multiprocessing.spawn import start_processes

from amp_migrate.equivalence import reference
from reference.support import batch, linear, mlp, model_digest


def _parallel() -> Any:
    return importlib.import_module("apex.parallel")


class TestAlone:
    """Without a process group."""

    def test_ddp_passes_through(self, amp: Any) -> None:
        """Only the "module." prefix shows."""
        model = _parallel().DistributedDataParallel(linear(1.0), delay_allreduce=True)
        model(torch.ones(1, 2)).sum().backward()
        assert model.module.weight.grad.tolist() == [[1.0, 1.0]]
        assert list(model.state_dict()) == ["module.weight"]

    def test_refused_arguments(self, amp: Any) -> None:
        """ValueError."""
        with pytest.raises(ValueError, match="shared_param"):
            _parallel().DistributedDataParallel(linear(), shared_param=True)
        with pytest.raises(ValueError, match="allreduce_trigger_params"):
            _parallel().DistributedDataParallel(
                linear(), delay_allreduce=True, allreduce_trigger_params=[]
            )

    def test_reducer_does_nothing(self, amp: Any) -> None:
        """There is nobody to average with."""
        model = linear()
        model.weight.grad = torch.ones(1, 2)
        _parallel().Reducer(model).reduce()
        assert model.weight.grad.tolist() == [[1.0, 1.0]]

    def test_sync_batch_norm_is_batch_norm(self, amp: Any) -> None:
        """In training and evaluation, for any number of dimensions, running statistics too."""
        for shape, kind in (
            ((8, 3), nn.BatchNorm1d),
            ((8, 3, 4), nn.BatchNorm1d),
            ((8, 3, 4, 4), nn.BatchNorm2d),
        ):
            ours, theirs = _parallel().SyncBatchNorm(3), kind(3)
            for training in (True, False):
                ours.train(training)
                theirs.train(training)
                inputs = torch.randn(shape)
                assert torch.equal(ours(inputs), theirs(inputs))
            assert model_digest(ours) == model_digest(theirs)

    def test_options_of_sync_batch_norm(self, amp: Any) -> None:
        """Channels last, addition and clamping."""
        plain = _parallel().SyncBatchNorm(3)
        fancy = _parallel().SyncBatchNorm(3, channel_last=True, fuse_relu=True)
        inputs, added = torch.randn(4, 5, 5, 3), torch.randn(4, 5, 5, 3)
        expected = plain(inputs.movedim(-1, 1)).movedim(1, -1) + added
        assert torch.equal(fancy(inputs, added), expected.relu())
        with pytest.raises(ValueError, match="at least 2D"):
            plain(torch.ones(3))

    def test_convert_syncbn_model(self, amp: Any) -> None:
        """New parameters of equal value, trainable and training; the statistics are shared."""
        model = mlp().eval()
        norm = model[2]
        norm.weight.requires_grad_(False)
        converted = _parallel().convert_syncbn_model(model)
        new = converted[2]
        assert converted is model
        assert isinstance(new, _parallel().SyncBatchNorm)
        assert torch.equal(new.weight, norm.weight)
        assert new.weight is not norm.weight
        assert new.weight.requires_grad
        assert new.training
        assert new.running_mean is norm.running_mean

    def test_convert_at_the_root(self, amp: Any) -> None:
        """A batch norm gives a new root; instance norms stay; there may be no weights."""
        convert = _parallel().convert_syncbn_model
        assert isinstance(convert(nn.BatchNorm2d(3, affine=False)), _parallel().SyncBatchNorm)
        instance = nn.InstanceNorm2d(3)
        assert convert(instance) is instance

    def test_group_of_all(self, amp: Any) -> None:
        """Size 0 means the default group."""
        assert _parallel().create_syncbn_process_group(0) is None


def _on_two_ranks(check: Callable[[int], None]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        start_processes(_rank, (check, folder), nprocs=2, start_method="fork")


def _rank(rank: int, check: Callable[[int], None], folder: str) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    reference.install("cpu", quiet=True)
    try:
        check(rank)
    finally:
        dist.destroy_process_group()


def _mean_over_ranks(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.clone()
    dist.all_reduce(tensor)
    return tensor / 2


def _check_averages(rank: int) -> None:
    for options in (
        {},
        {"delay_allreduce": True},
        {"allreduce_always_fp32": True},
        {"gradient_predivide_factor": 2.0},
    ):
        layer = linear(float(rank))
        layer.register_buffer("own", torch.tensor(float(rank)))
        model = _parallel().DistributedDataParallel(layer, **options)
        assert layer.weight.tolist() == [[0.0, 0.0]]
        assert layer.own.item() == rank
        for expected in ([1.5, 1.5], [3.0, 3.0]):
            model(torch.full((1, 2), rank + 1.0)).sum().backward()
            assert layer.weight.grad.tolist() == [expected]


def _check_exceptions(rank: int) -> None:
    layer = linear(1.0)
    model = _parallel().DistributedDataParallel(layer, gradient_average=False)
    model(torch.full((1, 2), rank + 1.0)).sum().backward()
    assert layer.weight.grad.tolist() == [[3.0, 3.0]]
    layer.weight.grad = None
    model.disable_allreduce()
    model(torch.full((1, 2), rank + 1.0)).sum().backward()
    assert layer.weight.grad.tolist() == [[rank + 1.0, rank + 1.0]]
    model.enable_allreduce()
    model(torch.full((1, 2), rank + 1.0)).sum().backward()
    assert layer.weight.grad.tolist() == [[3.0 + 3.0, 3.0 + 3.0]]


def _check_unused_parameters(rank: int) -> None:
    model = _parallel().DistributedDataParallel(nn.ModuleList([linear(1.0), linear(1.0)]))
    model.module[0](torch.full((1, 2), rank + 1.0)).sum().backward()
    assert model.module[0].weight.grad.tolist() == [[1.5, 1.5]]
    assert model.module[1].weight.grad is None


def _check_amp(rank: int) -> None:
    amp = importlib.import_module("apex.amp")
    layer = linear(1.0)
    optimizer = torch.optim.SGD(layer.parameters(), lr=1.0)
    amp.initialize(layer, optimizer, opt_level="O2", loss_scale=4.0)
    model = _parallel().DistributedDataParallel(layer)
    for _ in range(2):
        with amp.scale_loss(model(torch.full((1, 2), rank + 1.0)).sum(), optimizer) as scaled:
            scaled.backward()
    assert next(amp.master_params(optimizer)).grad.tolist() == [[3.0, 3.0]]


def _check_reducer(rank: int) -> None:
    layer = linear(float(rank))
    reducer = _parallel().Reducer(layer)
    layer(torch.full((1, 2), rank + 1.0)).sum().backward()
    reducer.reduce()
    assert layer.weight.tolist() == [[0.0, 0.0]]
    assert layer.weight.grad.tolist() == [[1.5, 1.5]]
    loose = [torch.full((2,), float(rank)), torch.full((1,), float(rank)).half()]
    _parallel().Reducer(loose).reduce()
    assert [tensor[0].item() for tensor in loose] == [0.5, 0.5]


def _check_sync_batch_norm(rank: int) -> None:
    whole = torch.randn(8, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    for momentum in (0.1, None):
        plain = nn.BatchNorm2d(3, momentum=momentum)
        ours = _parallel().SyncBatchNorm(3, momentum=momentum)
        all_inputs = whole.clone().requires_grad_()
        expected = plain(all_inputs)
        expected.square().mul(torch.arange(8.0).view(8, 1, 1, 1)).sum().backward()
        part = whole[4 * rank : 4 * rank + 4].clone().requires_grad_()
        output = ours(part)
        weights = torch.arange(8.0)[4 * rank : 4 * rank + 4].view(4, 1, 1, 1)
        output.square().mul(weights).sum().backward()
        torch.testing.assert_close(output, expected[4 * rank : 4 * rank + 4])
        torch.testing.assert_close(ours.running_mean, plain.running_mean)
        torch.testing.assert_close(ours.running_var, plain.running_var)
        gradient = all_inputs.grad[4 * rank : 4 * rank + 4]
        torch.testing.assert_close(part.grad, gradient, rtol=1e-3, atol=1e-4)
        shared = _mean_over_ranks(ours.weight.grad) * 2
        torch.testing.assert_close(shared, plain.weight.grad, rtol=1e-3, atol=1e-4)
    assert _parallel().create_syncbn_process_group(1) is not None


@pytest.mark.parametrize(
    "check",
    [
        _check_averages,
        _check_exceptions,
        _check_unused_parameters,
        _check_amp,
        _check_reducer,
        _check_sync_batch_norm,
    ],
)
def test_two_ranks(check: Callable[[int], None]) -> None:
    """Every check holds on both ranks."""
    assert batch(0)[0].shape == (8, 1, 4, 4)
    _on_two_ranks(check)
