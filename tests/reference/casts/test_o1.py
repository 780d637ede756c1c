"""O1: the patches, when they cast, and the fp16 weight cache."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from reference.support import batch, halves, mlp, sgd

HALF = torch.float16
FLOAT = torch.float32


@pytest.fixture
def model(amp: Any) -> nn.Module:
    """A layer initialized under O1."""
    layer = nn.Linear(4, 4)
    amp.initialize(layer, opt_level="O1")
    return layer


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
        assert (halves(2) * torch.ones(2)).dtype == FLOAT
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


@pytest.mark.usefixtures("model")
class TestPromotion:
    """Operations on several tensors."""

    @pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv"])
    def test_augmented_assignment_rebinds_to_fp32(self, name: str) -> None:
        """`half += float` makes a new fp32 tensor; the old one keeps its values."""
        half = halves(2)
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
        half = halves(2)
        other = torch.full((2,), 3.0)
        arguments = (other, other) if name == "addcmul_" else (other,)
        assert getattr(half, name)(*arguments) is half
        assert half.dtype == HALF

    @pytest.mark.parametrize("name", ["exp_", "log_", "rsqrt_", "reciprocal_"])
    def test_in_place_fp32_methods_refuse_fp16(self, name: str) -> None:
        """Their result could not be stored."""
        with pytest.raises(NotImplementedError, match=f"in-place method {name} on fp16"):
            getattr(halves(2), name)()
        assert getattr(torch.ones(2), name)().dtype == FLOAT

    def test_in_place_fp32_functions_refuse_fp16(self) -> None:
        """As the methods."""
        with pytest.raises(NotImplementedError, match="in-place function exp_ with fp16"):
            torch.exp_(halves(2))

    def test_refusals_outlast_disable_casts(self, amp: Any) -> None:
        """They do not ask whether casts are on."""
        with amp.disable_casts():
            with pytest.raises(NotImplementedError):
                halves(2).exp_()
            with pytest.raises(NotImplementedError):
                F.binary_cross_entropy(halves(2), halves(2))

    def test_zero_dim_fp32_promotes(self) -> None:
        """Unlike native: fp16 times an fp32 scalar tensor is fp32."""
        assert (halves(2) * torch.tensor(1e-9)).dtype == FLOAT
        assert (halves(2) * 1e-9).dtype == HALF

    def test_three_dtypes_are_too_many(self) -> None:
        """Anything but fp16 with fp32."""
        with pytest.raises(NotImplementedError, match="types to promote"):
            halves(2) + torch.ones(2, dtype=torch.float64)
        with pytest.raises(NotImplementedError, match="types to promote"):
            torch.addcmul(halves(2), torch.ones(2), torch.ones(2, dtype=torch.float64))

    def test_integers_do_not_count(self) -> None:
        """Neither as a mix nor to be cast."""
        assert (halves(2) + torch.ones(2, dtype=torch.long)).dtype == HALF

    def test_sequences(self) -> None:
        """Functions on sequences look at all members; one dtype passes."""
        assert torch.cat([halves(2), halves(2)]).dtype == HALF
        assert torch.cat([halves(2), torch.ones(2)]).dtype == FLOAT
        assert torch.stack((torch.ones(2), halves(2)), dim=1).dtype == FLOAT

    def test_keyword_arguments_are_cast(self) -> None:
        """As positional ones."""
        assert F.linear(input=torch.ones(2, 4), weight=torch.ones(3, 4)).dtype == HALF
        assert torch.add(input=halves(2), other=torch.ones(2)).dtype == FLOAT


@pytest.mark.usefixtures("model")
class TestLosses:
    """Losses, and the one that is banned."""

    def test_binary_cross_entropy_refuses_fp16(self) -> None:
        """In the functional and the module form."""
        probabilities = torch.sigmoid(halves(2, 4))
        with pytest.raises(NotImplementedError, match="BCEWithLogitsLoss"):
            F.binary_cross_entropy(probabilities, halves(2, 4))
        with pytest.raises(NotImplementedError, match="BCEWithLogitsLoss"):
            nn.BCELoss()(probabilities, torch.ones(2, 4))

    def test_binary_cross_entropy_works_in_fp32(self) -> None:
        """Native autocast on CUDA raises here."""
        assert nn.BCELoss()(torch.full((2,), 0.5), torch.ones(2)).dtype == FLOAT

    def test_with_logits_is_fp32(self) -> None:
        """The recommended form."""
        assert nn.BCEWithLogitsLoss()(halves(2), halves(2)).dtype == FLOAT


def test_init_can_allow_the_banned_loss(amp: Any) -> None:
    """It then runs in fp32."""
    amp.init(allow_banned=True)
    assert F.binary_cross_entropy(halves(2) * 0.5, halves(2)).dtype == FLOAT


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
