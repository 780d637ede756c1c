"""What O0, O2 and O3 do to a model: weights, inputs, outputs, state dict."""

from __future__ import annotations

import collections
import copy
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn

from reference.support import batch, cnn, linear, mlp, sgd


class Echo(nn.Module):
    """Returns what it is given and remembers its dtypes."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.seen: Any = None

    def forward(self, value: Any, extra: Any = None) -> Any:
        """`value`, unchanged."""
        self.seen = (value, extra)
        return value


class Pair(NamedTuple):
    """An output with names."""

    first: torch.Tensor
    second: torch.Tensor


class Packet:
    """A batch class of the user, with its own `to`."""

    def __init__(self, data: torch.Tensor) -> None:
        self.data = data

    def to(self, dtype: torch.dtype) -> Packet:
        """A packet of that dtype."""
        return Packet(self.data.to(dtype))


def _dtypes(model: nn.Module) -> dict[str, torch.dtype]:
    named = [*model.named_parameters(), *model.named_buffers()]
    return {name: tensor.dtype for name, tensor in named if tensor.is_floating_point()}


@pytest.mark.parametrize(
    ("level", "keep", "batchnorm"),
    [
        ("O0", None, torch.float32),
        ("O2", None, torch.float32),
        ("O2", False, torch.float16),
        ("O3", None, torch.float16),
        ("O3", True, torch.float32),
    ],
)
def test_weights(level: str, keep: bool | None, batchnorm: torch.dtype, amp: Any) -> None:
    """fp16 under O2 and O3; batch norms by keep_batchnorm_fp32."""
    model = mlp()
    amp.initialize(model, opt_level=level, keep_batchnorm_fp32=keep)
    other = torch.float32 if level == "O0" else torch.float16
    expected = {n: batchnorm if n.startswith("2.") else other for n in _dtypes(model)}
    assert _dtypes(model) == expected


def test_only_batch_norms_with_weights_stay_fp32(amp: Any) -> None:
    """affine=False, instance, layer and group norms and plain buffers become fp16."""
    model = nn.Sequential(
        nn.BatchNorm1d(4, affine=False),
        nn.InstanceNorm1d(4, affine=True),
        nn.LayerNorm(4),
        nn.GroupNorm(2, 4),
    )
    model.register_buffer("table", torch.zeros(3))
    amp.initialize(model, opt_level="O2")
    assert set(_dtypes(model).values()) == {torch.float16}


def test_casting_switched_off(amp: Any) -> None:
    """`cast_model_type=False` leaves model, inputs and outputs."""
    model = Echo()
    amp.initialize(model, opt_level="O2", cast_model_type=False)
    value = torch.ones(2, dtype=torch.float64)
    assert model(value) is value


def test_o0_is_not_a_no_op(amp: Any) -> None:
    """float64 inputs and weights become float32."""
    model = Echo().double()
    amp.initialize(model, opt_level="O0")
    assert model(torch.ones(2, dtype=torch.float64)).dtype == torch.float32
    assert model.scale.dtype == torch.float32


@pytest.mark.parametrize("level", ["O2", "O3"])
def test_inputs_are_rounded_and_outputs_widened(level: str, amp: Any) -> None:
    """fp16 inputs overflow at 65504 and have 11 bits; outputs are float32."""
    model = Echo()
    amp.initialize(model, opt_level=level)
    output = model(torch.tensor([1e5, 3.0, 2049.0]))
    assert output.dtype == torch.float32
    assert output.tolist() == [float("inf"), 3.0, 2048.0]
    model.eval()
    with torch.no_grad():
        assert model(torch.tensor([2049.0])).item() == 2048.0


def test_output_dtype_override(amp: Any) -> None:
    """`cast_model_outputs` wins, and acts under O1 too."""
    model = linear()
    amp.initialize(model, opt_level="O2", cast_model_outputs=torch.float16)
    assert model(torch.ones(1, 2)).dtype == torch.float16
    other = linear()
    amp.initialize(other, opt_level="O1", cast_model_outputs=torch.float64)
    assert other(torch.ones(1, 2)).dtype == torch.float64


def test_containers(amp: Any) -> None:
    """Tensors are found in lists, tuples, mappings and batches; other values pass."""
    model = Echo()
    amp.initialize(model, opt_level="O2")
    data = [torch.ones(1), (torch.ones(1), torch.ones(1, dtype=torch.long)), {"k": torch.ones(1)}]
    model(data, extra=[1, 2.0, "text", None, True])
    (first, (second, integers), mapping), extra = model.seen
    assert [t.dtype for t in (first, second, integers, mapping["k"])] == [
        torch.float16,
        torch.float16,
        torch.int64,
        torch.float16,
    ]
    assert extra == [1, 2.0, "text", None, True]
    model(Packet(torch.ones(1)))
    assert model.seen[0].data.dtype == torch.float16


def test_packed_sequences(amp: Any) -> None:
    """They have a `to`."""
    model = Echo()
    amp.initialize(model, opt_level="O2")
    packed = nn.utils.rnn.pack_sequence([torch.ones(2, 3)])
    assert model(packed).data.dtype == torch.float32
    assert model.seen[0].data.dtype == torch.float16


def test_mappings_come_back_as_plain_dicts(amp: Any) -> None:
    """An OrderedDict loses its class."""
    model = Echo()
    amp.initialize(model, opt_level="O0")
    output = model(collections.OrderedDict(a=torch.ones(1)))
    assert type(output) is dict
    assert output["a"].dtype == torch.float32


def test_named_tuples_cannot_be_rebuilt(amp: Any) -> None:
    """TypeError, as in Apex."""
    model = Echo()
    amp.initialize(model, opt_level="O0")
    with pytest.raises(TypeError):
        model(Pair(torch.ones(1), torch.ones(1)))


def test_only_the_forward_is_patched(amp: Any) -> None:
    """A submodule called directly refuses fp32 under O2."""
    model = nn.Sequential(linear())
    amp.initialize(model, opt_level="O2")
    assert model.forward(torch.ones(1, 2)).dtype == torch.float32
    with pytest.raises(RuntimeError):
        model[0](torch.ones(1, 2))


@pytest.mark.parametrize(("level", "lives"), [("O0", True), ("O1", False), ("O2", True)])
def test_a_deep_copy_runs_the_original(level: str, lives: bool, amp: Any) -> None:
    """The copied forward still belongs to the original, except under O1."""
    model = linear(1.0)
    amp.initialize(model, opt_level=level)
    twin = copy.deepcopy(model)
    with torch.no_grad():
        model.weight.fill_(5.0)
    assert twin(torch.ones(1, 2)).item() == (10.0 if lives else 2.0)


@pytest.mark.parametrize("level", ["O2", "O3"])
def test_state_dict_is_fp32_with_fp16_precision(level: str, amp: Any) -> None:
    """The rounded weights, as new tensors; the model keeps its own."""
    model = cnn()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    amp.initialize(model, opt_level=level, keep_batchnorm_fp32=False)
    saved = model.state_dict()
    assert list(saved) == list(before)
    assert all(v.dtype == before[k].dtype for k, v in saved.items())
    assert torch.equal(saved["0.weight"], before["0.weight"].half().float())
    assert not torch.equal(saved["0.weight"], before["0.weight"])
    assert model[0].weight.dtype == torch.float16


def test_an_fp32_state_dict_loads_into_an_o2_model(amp: Any) -> None:
    """It is rounded to fp16 again."""
    model = mlp()
    amp.initialize(model, opt_level="O2")
    images, _ = batch(0)
    expected = model(images)
    other = mlp()
    amp.initialize(other, opt_level="O2")
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(images), expected)


def test_optimizer_state_follows_the_weights(amp: Any) -> None:
    """State made before initialize is cast to the new dtype."""
    model = linear()
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    amp.initialize(model, optimizer, opt_level="O3")
    assert optimizer.state[model.weight]["exp_avg"].dtype == torch.float16


def test_the_model_is_the_same_object(amp: Any) -> None:
    """A call without assignment is effective."""
    model = linear()
    amp.initialize(model, sgd(model), opt_level="O3")
    assert model.weight.dtype == torch.float16
