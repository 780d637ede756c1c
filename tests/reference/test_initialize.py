"""amp.initialize: properties, their overrides, and what may be passed."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from reference.support import batch, linear, mlp, sgd

_DEFAULTS = {
    "O0": (torch.float32, False, None, False, 1.0),
    "O1": (None, True, None, None, "dynamic"),
    "O2": (torch.float16, False, True, True, "dynamic"),
    "O3": (torch.float16, False, False, False, 1.0),
}
_NAMES = (
    "cast_model_type",
    "patch_torch_functions",
    "keep_batchnorm_fp32",
    "master_weights",
    "loss_scale",
)


@pytest.mark.parametrize("level", sorted(_DEFAULTS))
def test_defaults_of_the_levels(level: str, amp: Any) -> None:
    """The table of properties."""
    amp.initialize(mlp(), opt_level=level)
    options = amp._amp_state.opt_properties.options
    assert tuple(options[name] for name in _NAMES) == _DEFAULTS[level]
    assert options["enabled"] is True
    assert options["opt_level"] == level


def test_level_defaults_to_o1(amp: Any) -> None:
    """`opt_level` may be left out."""
    amp.initialize(mlp())
    assert amp._amp_state.opt_properties.opt_level == "O1"


@pytest.mark.parametrize("level", ["o1", 1, "01", None])
def test_unknown_level(level: Any, amp: Any) -> None:
    """Only the four names."""
    with pytest.raises(RuntimeError, match="Unexpected optimization level"):
        amp.initialize(mlp(), opt_level=level)


@pytest.mark.parametrize(
    ("level", "override"),
    [
        ("O1", {"master_weights": True}),
        ("O1", {"master_weights": False}),
        ("O1", {"keep_batchnorm_fp32": True}),
        ("O1", {"keep_batchnorm_fp32": False}),
        ("O1", {"keep_batchnorm_fp32": "None"}),
        ("O1", {"cast_model_type": torch.float16}),
        ("O0", {"patch_torch_functions": True}),
        ("O2", {"patch_torch_functions": True}),
        ("O3", {"patch_torch_functions": True}),
    ],
)
def test_contradictory_overrides(level: str, override: dict[str, Any], amp: Any) -> None:
    """RuntimeError, as in Apex."""
    with pytest.raises(RuntimeError):
        amp.initialize(mlp(), opt_level=level, **override)


@pytest.mark.parametrize(
    ("level", "name", "given", "kept"),
    [
        ("O2", "keep_batchnorm_fp32", "True", True),
        ("O2", "keep_batchnorm_fp32", "False", False),
        ("O3", "keep_batchnorm_fp32", True, True),
        ("O2", "loss_scale", "128.0", 128.0),
        ("O3", "loss_scale", "dynamic", "dynamic"),
        ("O0", "loss_scale", 4, 4.0),
        ("O2", "master_weights", False, False),
        ("O3", "cast_model_type", torch.bfloat16, torch.bfloat16),
        ("O1", "cast_model_type", torch.float32, torch.float32),
        ("O1", "cast_model_type", False, False),
        ("O1", "patch_torch_functions", False, False),
    ],
)
def test_accepted_overrides(level: str, name: str, given: Any, kept: Any, amp: Any) -> None:
    """What is given replaces the default, strings converted."""
    amp.initialize(mlp(), opt_level=level, **{name: given})
    value = amp._amp_state.opt_properties.options[name]
    assert value == kept
    assert type(value) is type(kept)


def test_bad_keep_batchnorm(amp: Any) -> None:
    """Neither a bool nor "True" or "False"."""
    with pytest.raises(AssertionError, match="keep_batchnorm_fp32 must be"):
        amp.initialize(mlp(), opt_level="O2", keep_batchnorm_fp32="yes")


def test_bad_loss_scale(amp: Any) -> None:
    """Neither "dynamic" nor a number."""
    with pytest.raises(ValueError, match="Dynamic"):
        amp.initialize(mlp(), opt_level="O1", loss_scale="Dynamic")


def test_loss_scale_zero_is_not_dynamic(amp: Any) -> None:
    """It scales by 0 and fails to unscale."""
    model = linear()
    optimizer = sgd(model)
    amp.initialize(model, optimizer, opt_level="O0", loss_scale=0)
    with (
        pytest.raises(ZeroDivisionError),
        amp.scale_loss(model(torch.ones(1, 2)).sum(), optimizer) as scaled,
    ):
        scaled.backward()


def test_dynamic_scale_needs_a_maximum(amp: Any) -> None:
    """`max_loss_scale=None` cannot be compared."""
    with pytest.raises(TypeError):
        amp.initialize(mlp(), opt_level="O1", max_loss_scale=None)


def test_cudnn_must_be_enabled(amp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even on the CPU."""
    monkeypatch.setattr(torch.backends.cudnn, "enabled", False)
    with pytest.raises(RuntimeError, match="cudnn"):
        amp.initialize(mlp(), opt_level="O1")


@pytest.mark.parametrize("level", ["O0", "O1", "O2", "O3"])
def test_shapes_in_are_shapes_out(level: str, amp: Any) -> None:
    """Single or list on either side; the same objects come back."""
    for many_models in (False, True):
        for many_optimizers in (False, True):
            model = mlp()
            optimizer = sgd(model)
            models = [model] if many_models else model
            optimizers = [optimizer] if many_optimizers else optimizer
            result = amp.initialize(models, optimizers, opt_level=level)
            assert isinstance(result, tuple)
            assert result == (models, optimizers)
            assert result[0] is models
            assert result[1] is optimizers


def test_models_alone(amp: Any) -> None:
    """Without optimizers only the models come back."""
    model = mlp()
    assert amp.initialize(model, opt_level="O2") is model
    models = [mlp()]
    assert amp.initialize(models, opt_level="O2") is models


def test_an_empty_list_of_optimizers(amp: Any) -> None:
    """It comes back with the model."""
    model = mlp()
    assert amp.initialize(model, [], opt_level="O0") == (model, [])


def test_positional_arguments(amp: Any) -> None:
    """models, optimizers, enabled, opt_level, in that order."""
    model = mlp()
    amp.initialize(model, sgd(model), True, "O3")
    assert model[1].weight.dtype == torch.float16


@pytest.mark.parametrize("which", ["models", "optimizers"])
def test_tuples_are_refused(which: str, amp: Any) -> None:
    """Only lists."""
    model = mlp()
    models: Any = (model,) if which == "models" else model
    optimizers: Any = (sgd(model),) if which == "optimizers" else sgd(model)
    with pytest.raises(TypeError, match=which):
        amp.initialize(models, optimizers, opt_level="O0")


def test_an_optimizer_only_once(amp: Any) -> None:
    """Its methods are patched already."""
    model = mlp()
    optimizer = sgd(model)
    amp.initialize(model, optimizer, opt_level="O0")
    with pytest.raises(RuntimeError, match="only be passed through"):
        amp.initialize(model, optimizer, opt_level="O0")


def test_parallel_wrappers_come_after(amp: Any) -> None:
    """A DataParallel model is refused."""
    with pytest.raises(RuntimeError, match="DataParallel"):
        amp.initialize(torch.nn.DataParallel(mlp()), opt_level="O1")


def test_half_models_are_refused(amp: Any) -> None:
    """Parameters and buffers must be fp32, unless the check is switched off."""
    with pytest.raises(RuntimeError, match="do not need to call"):
        amp.initialize(mlp().half(), opt_level="O2")
    buffered = mlp()
    buffered.register_buffer("table", torch.zeros(1).half())
    with pytest.raises(RuntimeError, match="Found buffer table"):
        amp.initialize(buffered, opt_level="O2")
    amp._amp_state.allow_incoming_model_not_fp32 = True
    amp.initialize(mlp().half(), opt_level="O2")


def test_fp16_optimizer_is_refused(amp: Any) -> None:
    """It does its own loss scaling."""
    from apex.fp16_utils import FP16_Optimizer

    model = mlp()
    wrapped = FP16_Optimizer(sgd(model), verbose=False)
    for optimizers in (wrapped, [wrapped]):
        with pytest.raises(RuntimeError, match="FP16_Optimizer"):
            amp.initialize(model, optimizers, opt_level="O0")


def test_disabled(amp: Any) -> None:
    """Arguments come back untouched, the loss is not scaled, and there is no state to save."""
    model = mlp()
    optimizer = sgd(model)
    assert amp.initialize(model, optimizer, enabled=False, opt_level="O2") == (model, optimizer)
    assert amp.initialize(model, enabled=False) is model
    assert "forward" not in vars(model)
    loss = model(batch(0)[0]).sum()
    with amp.scale_loss(loss, optimizer) as scaled:
        assert scaled is loss
        scaled.backward()
    optimizer.step()
    with pytest.raises(AttributeError):
        amp.state_dict()


def test_float64_optimizer_parameters_are_refused_at_the_first_backward(amp: Any) -> None:
    """AMP knows fp16 and fp32 only."""
    model = linear().double()
    optimizer = sgd(model)
    amp.initialize(model, optimizer, opt_level="O1")
    with (
        pytest.raises(TypeError, match=r"FloatTensor or torch\.cuda\.HalfTensor"),
        amp.scale_loss(torch.ones(1), optimizer),
    ):
        pass


def test_several_initializations(amp: Any) -> None:
    """A second call adds its optimizer and replaces the loss scalers."""
    first, second = mlp(), mlp()
    one, two = sgd(first), sgd(second)
    amp.initialize(first, one, opt_level="O1", num_losses=2)
    amp.initialize(second, two, opt_level="O1")
    assert len(amp._amp_state.loss_scalers) == 1
    for model, optimizer in ((first, one), (second, two)):
        images, labels = batch(0)
        with amp.scale_loss(
            torch.nn.functional.cross_entropy(model(images), labels), optimizer
        ) as scaled:
            scaled.backward()
        optimizer.step()
    assert amp._amp_state.loss_scalers[0]._unskipped == 2
