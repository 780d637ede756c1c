"""O1: the patches, when they cast, and the fp16 weight cache."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from reference.support import batch, linear, mlp, sgd

HALF = torch.float16
FLOAT = torch.float32


@pytest.fixture
def model(amp: Any) -> nn.Module:
    """A layer initialized under O1."""
    layer = nn.Linear(4, 4)
    amp.initialize(layer, opt_level="O1")
    return layer


def _half(*shape: int) -> torch.Tensor:
    return torch.ones(*shape, dtype=HALF)


def test_weights_and_inputs_stay_fp32(model: nn.Module) -> None:
    """Only the operation runs in fp16; the user sees an fp16 output."""
    inputs = torch.ones(2, 4)
    assert model(inputs).dtype == HALF
    assert model.weight.dtype == FLOAT
    assert inputs.dtype == FLOAT


@pytest.mark.usefixtures("model")
def test_everybody_is_affected() -> None:
    """Models never passed in, plain functions, and evaluation."""
    stranger = nn.Linear(4, 4).eval()
    with torch.no_grad():
        assert stranger(torch.ones(2, 4)).dtype == HALF
    assert (torch.ones(2, 4) @ torch.ones(4, 2)).dtype == HALF


def test_before_initialize_nothing_casts(amp: Any) -> None:
    """Importing is harmless; so are the other levels."""
    assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == FLOAT
    amp.initialize(mlp(), opt_level="O2")
    assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == FLOAT


def test_batch_norm_is_on_no_list(model: nn.Module) -> None:
    """fp16 in, fp16 out, with fp32 weights."""
    norm = nn.BatchNorm1d(4)
    assert norm(model(torch.ones(3, 4))).dtype == HALF
    assert norm.running_mean.dtype == FLOAT


@pytest.mark.usefixtures("model")
def test_python_backward_functions_see_the_patches() -> None:
    """Matrix products inside a custom backward run in fp16."""
    seen = []

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, value: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(value)
            return value * value

        @staticmethod
        def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
            (value,) = ctx.saved_tensors
            seen.append((value @ value).dtype)
            return 2 * value * grads[0]

    value = torch.ones(2, 2, requires_grad=True)
    Square.apply(value).sum().backward()
    assert seen == [HALF]


def test_disable_casts(model: nn.Module, amp: Any) -> None:
    """Off inside the block, on after it."""
    with amp.disable_casts():
        assert model(torch.ones(2, 4)).dtype == FLOAT
        assert (_half(2) * torch.ones(2)).dtype == FLOAT
    assert model(torch.ones(2, 4)).dtype == HALF


def test_an_exception_leaves_the_casts_off(model: nn.Module, amp: Any) -> None:
    """There is no finally in Apex."""
    with pytest.raises(KeyError), amp.disable_casts():
        raise KeyError
    assert model(torch.ones(2, 4)).dtype == FLOAT


def test_a_closure_runs_in_fp32(amp: Any) -> None:
    """Casts are off inside optimizer.step()."""
    layer = nn.Linear(4, 4)
    optimizer = torch.optim.LBFGS(layer.parameters(), max_iter=1)
    amp.initialize(layer, optimizer, opt_level="O1")
    seen = []

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        output = layer(torch.ones(2, 4))
        seen.append(output.dtype)
        loss = output.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert set(seen) == {FLOAT}
    assert layer(torch.ones(2, 4)).dtype == HALF


class TestCache:
    """One cast per fp32 parameter until a scale_loss block ends."""

    def _initialized(self, amp: Any) -> tuple[nn.Linear, torch.optim.Optimizer]:
        layer = linear(1.0)
        optimizer = sgd(layer)
        amp.initialize(layer, optimizer, opt_level="O1", loss_scale=1024.0)
        return layer, optimizer

    def test_a_weight_is_cast_once(self, amp: Any) -> None:
        """The second forward uses the first one's cast."""
        layer, _ = self._initialized(amp)
        layer(torch.ones(1, 2))
        assert layer.weight in amp._amp_state.handle.cache
        first = layer(torch.ones(1, 2)).grad_fn.next_functions
        assert len(amp._amp_state.handle.cache) == 1
        assert first

    def test_the_block_clears_it(self, amp: Any) -> None:
        """Also with delay_unscale and with scale 1."""
        layer, optimizer = self._initialized(amp)
        for delay in (True, False):
            with amp.scale_loss(
                layer(torch.ones(1, 2)).sum(), optimizer, delay_unscale=delay
            ) as scaled:
                assert len(amp._amp_state.handle.cache) == 1
                scaled.backward()
            assert len(amp._amp_state.handle.cache) == 0

    def test_the_short_cut_clears_it(self, amp: Any) -> None:
        """With a static scale of 1 nothing is scaled, but the cache is cleared."""
        layer = linear()
        optimizer = sgd(layer)
        amp.initialize(layer, optimizer, opt_level="O1", loss_scale=1.0)
        with amp.scale_loss(layer(torch.ones(1, 2)).sum(), optimizer) as scaled:
            scaled.backward()
        assert len(amp._amp_state.handle.cache) == 0

    def test_evaluation_keeps_stale_weights(self, amp: Any) -> None:
        """A weight changed in place between two evaluations is not cast again."""
        layer, _ = self._initialized(amp)
        with torch.no_grad():
            assert layer(torch.ones(1, 2)).item() == 2.0
            layer.weight.fill_(5.0)
            assert layer(torch.ones(1, 2)).item() == 2.0

    def test_training_after_evaluation_casts_anew(self, amp: Any) -> None:
        """A cast made without gradients does not serve a forward with them."""
        layer, optimizer = self._initialized(amp)
        with torch.no_grad():
            layer(torch.ones(1, 2))
            layer.weight.fill_(5.0)
        output = layer(torch.ones(1, 2))
        assert output.item() == 10.0
        with amp.scale_loss(output.sum(), optimizer) as scaled:
            scaled.backward()
        assert layer.weight.grad.tolist() == [[1.0, 1.0]]

    def test_evaluation_reuses_the_training_cast(self, amp: Any) -> None:
        """Without gradients any cast will do."""
        layer, _ = self._initialized(amp)
        layer(torch.ones(1, 2))
        with torch.no_grad():
            layer(torch.ones(1, 2))
        assert layer(torch.ones(1, 2)).requires_grad

    def test_two_forwards_add_their_gradients_in_fp16(self, amp: Any) -> None:
        """Both go through one cast: 2048 + 1 is 2048 in fp16."""
        layer, optimizer = self._initialized(amp)
        total = layer(torch.full((1, 2), 2.0)).float() + layer(torch.full((1, 2), 2.0**-10)).float()
        with amp.scale_loss(total.sum(), optimizer) as scaled:
            scaled.backward()
        assert layer.weight.grad[0, 0].item() == 2.0

    def test_a_foreign_cast_is_an_error(self, amp: Any) -> None:
        """A cached tensor with gradients must come from its parameter."""
        layer, _ = self._initialized(amp)
        layer(torch.ones(1, 2))
        cache = amp._amp_state.handle.cache
        other = nn.Parameter(torch.ones(1, 2))
        layer.weight, old = other, layer.weight
        if isinstance(cache, dict):
            cache[other] = cache[old]
        else:
            cache._casts[other] = cache._casts[old]
        with pytest.raises(RuntimeError, match="not cache"):
            layer(torch.ones(1, 2))

    def test_fp16_parameters_are_not_cached(self, amp: Any) -> None:
        """There is nothing to cast."""
        self._initialized(amp)
        F.linear(_half(1, 2), nn.Parameter(_half(3, 2)))
        assert len(amp._amp_state.handle.cache) == 0


@pytest.mark.usefixtures("model")
class TestPromotion:
    """Operations on several tensors."""

    @pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv"])
    def test_augmented_assignment_rebinds_to_fp32(self, name: str) -> None:
        """`half += float` makes a new fp32 tensor; the old one keeps its values."""
        half = _half(2)
        alias = half
        half = getattr(operator, name)(half, torch.full((2,), 3.0))
        assert half.dtype == FLOAT
        assert alias.dtype == HALF
        assert alias.tolist() == [1.0, 1.0]

    def test_augmented_assignment_of_one_dtype_is_in_place(self) -> None:
        """fp32 += fp32 as ever."""
        value = torch.ones(2)
        alias = value
        value += torch.ones(2)
        assert alias is value

    @pytest.mark.parametrize("name", ["add_", "mul_", "div_", "sub_", "addcmul_"])
    def test_in_place_methods_keep_the_dtype(self, name: str) -> None:
        """The argument follows self."""
        half = _half(2)
        other = torch.full((2,), 3.0)
        arguments = (other, other) if name == "addcmul_" else (other,)
        assert getattr(half, name)(*arguments) is half
        assert half.dtype == HALF

    @pytest.mark.parametrize("name", ["exp_", "log_", "rsqrt_", "reciprocal_"])
    def test_in_place_fp32_methods_refuse_fp16(self, name: str) -> None:
        """Their result could not be stored."""
        with pytest.raises(NotImplementedError, match=f"in-place method {name} on fp16"):
            getattr(_half(2), name)()
        assert getattr(torch.ones(2), name)().dtype == FLOAT

    def test_in_place_fp32_functions_refuse_fp16(self) -> None:
        """As the methods."""
        with pytest.raises(NotImplementedError, match="in-place function exp_ with fp16"):
            torch.exp_(_half(2))

    def test_refusals_outlast_disable_casts(self, amp: Any) -> None:
        """They do not ask whether casts are on."""
        with amp.disable_casts():
            with pytest.raises(NotImplementedError):
                _half(2).exp_()
            with pytest.raises(NotImplementedError):
                F.binary_cross_entropy(_half(2), _half(2))

    def test_zero_dim_fp32_promotes(self) -> None:
        """Unlike native: fp16 times an fp32 scalar tensor is fp32."""
        assert (_half(2) * torch.tensor(1e-9)).dtype == FLOAT
        assert (_half(2) * 1e-9).dtype == HALF

    def test_three_dtypes_are_too_many(self) -> None:
        """Anything but fp16 with fp32."""
        with pytest.raises(NotImplementedError, match="types to promote"):
            _half(2) + torch.ones(2, dtype=torch.float64)
        with pytest.raises(NotImplementedError, match="types to promote"):
            torch.addcmul(_half(2), torch.ones(2), torch.ones(2, dtype=torch.float64))

    def test_integers_do_not_count(self) -> None:
        """Neither as a mix nor to be cast."""
        assert (_half(2) + torch.ones(2, dtype=torch.long)).dtype == HALF

    def test_sequences(self) -> None:
        """Functions on sequences look at all members; one dtype passes."""
        assert torch.cat([_half(2), _half(2)]).dtype == HALF
        assert torch.cat([_half(2), torch.ones(2)]).dtype == FLOAT
        assert torch.stack((torch.ones(2), _half(2)), dim=1).dtype == FLOAT

    def test_keyword_arguments_are_cast(self) -> None:
        """As positional ones."""
        assert F.linear(input=torch.ones(2, 4), weight=torch.ones(3, 4)).dtype == HALF
        assert torch.add(input=_half(2), other=torch.ones(2)).dtype == FLOAT


@pytest.mark.usefixtures("model")
class TestLosses:
    """Losses, and the one that is banned."""

    def test_binary_cross_entropy_refuses_fp16(self) -> None:
        """In the functional and the module form."""
        probabilities = torch.sigmoid(_half(2, 4))
        with pytest.raises(NotImplementedError, match="BCEWithLogitsLoss"):
            F.binary_cross_entropy(probabilities, _half(2, 4))
        with pytest.raises(NotImplementedError, match="BCEWithLogitsLoss"):
            nn.BCELoss()(probabilities, torch.ones(2, 4))

    def test_binary_cross_entropy_works_in_fp32(self) -> None:
        """Native autocast on CUDA raises here."""
        assert nn.BCELoss()(torch.full((2,), 0.5), torch.ones(2)).dtype == FLOAT

    def test_with_logits_is_fp32(self) -> None:
        """The recommended form."""
        assert nn.BCEWithLogitsLoss()(_half(2), _half(2)).dtype == FLOAT


def test_init_can_allow_the_banned_loss(amp: Any) -> None:
    """It then runs in fp32."""
    amp.init(allow_banned=True)
    assert F.binary_cross_entropy(_half(2) * 0.5, _half(2)).dtype == FLOAT


@pytest.mark.usefixtures("model")
class TestModules:
    """Layers that need care."""

    @pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
    @pytest.mark.parametrize("bidirectional", [False, True])
    def test_recurrent_layers(self, kind: Any, bidirectional: bool) -> None:
        """They run in fp16 on fp16 and fp32 inputs, and their fp32 weights get fp32 gradients."""
        layer = kind(4, 3, num_layers=2, bidirectional=bidirectional)
        for inputs in (torch.ones(5, 2, 4), _half(5, 2, 4)):
            layer.zero_grad()
            output, _ = layer(inputs)
            assert output.dtype == HALF
            output.float().sum().backward()
            assert {p.grad.dtype for p in layer.parameters()} == {FLOAT}
            assert all(bool(p.grad.abs().sum() > 0) for p in layer.parameters())

    def test_relu_rnn(self) -> None:
        """The other non-linearity."""
        assert nn.RNN(4, 3, nonlinearity="relu")(torch.ones(5, 2, 4))[0].dtype == HALF

    @pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
    def test_recurrent_layers_compute_what_fp16_layers_do(self, kind: Any) -> None:
        """The cast weights in their order."""
        layer = kind(4, 3, num_layers=2)
        inputs = torch.randn(5, 2, 4)
        output, _ = layer(inputs)
        twin = kind(4, 3, num_layers=2).half()
        twin.load_state_dict(layer.state_dict())
        assert torch.equal(twin(inputs.half())[0], output)

    def test_packed_sequences(self) -> None:
        """And hidden states given by the user."""
        packed = nn.utils.rnn.pack_sequence([torch.ones(3, 4), torch.ones(2, 4)])
        state = (torch.zeros(1, 2, 3), torch.zeros(1, 2, 3))
        output, (hidden, _) = nn.LSTM(4, 3)(packed, state)
        assert output.data.dtype == hidden.dtype == HALF

    @pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
    def test_recurrent_cells(self, kind: Any, amp: Any) -> None:
        """Their weights go through the cache."""
        cell = kind(4, 3)
        hidden = cell(torch.ones(2, 4))
        output = hidden[0] if isinstance(hidden, tuple) else hidden
        assert output.dtype == HALF
        cell(_half(2, 4), hidden)
        assert cell.weight_ih in amp._amp_state.handle.cache

    def test_recurrent_layers_in_fp32_without_casts(self, amp: Any) -> None:
        """disable_casts reaches them."""
        with amp.disable_casts():
            assert nn.LSTM(4, 3)(torch.ones(5, 2, 4))[0].dtype == FLOAT
            assert nn.GRUCell(4, 3)(torch.ones(2, 4)).dtype == FLOAT

    def test_multihead_attention(self) -> None:
        """One weight used three times; softmax in fp32 in between."""
        attention = nn.MultiheadAttention(4, 2)
        output, weights = attention(torch.ones(3, 2, 4), torch.ones(3, 2, 4), torch.ones(3, 2, 4))
        assert output.dtype == HALF
        output.float().sum().backward()
        assert attention.in_proj_weight.grad.dtype == FLOAT
        assert weights.dtype in (HALF, FLOAT)

    def test_prelu(self) -> None:
        """fp16, by the documented repair."""
        assert nn.PReLU()(_half(2, 4)).dtype == HALF

    def test_a_module_called_twice(self) -> None:
        """The cache finds its parent node, by the documented repair."""
        layer = nn.Linear(4, 4)
        layer(layer(torch.ones(2, 4))).float().sum().backward()
        assert layer.weight.grad.dtype == FLOAT


def test_training_with_a_scheduler(amp: Any) -> None:
    """Schedulers look into the patched step."""
    layer = mlp()
    optimizer = sgd(layer, lr=0.1)
    amp.initialize(layer, optimizer, opt_level="O1")
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    images, labels = batch(0)
    with amp.scale_loss(F.cross_entropy(layer(images), labels), optimizer) as scaled:
        scaled.backward()
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.01)
