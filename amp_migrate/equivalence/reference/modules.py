"""The module names of Apex and what each offers."""

from __future__ import annotations

import importlib.machinery
import sys
from types import ModuleType

import torch

from amp_migrate.equivalence.reference import contrib, fused, multi_tensor, normalization
from amp_migrate.equivalence.reference.amp import decorators, frontend, handle, old_api, state
from amp_migrate.equivalence.reference.casts import lists, patching
from amp_migrate.equivalence.reference.fp16 import convert
from amp_migrate.equivalence.reference.fp16 import fused as fused_optimizer
from amp_migrate.equivalence.reference.fp16 import helpers as fp16_utils
from amp_migrate.equivalence.reference.fp16 import optimizer as fp16_optimizer
from amp_migrate.equivalence.reference.optimizers import scaler
from amp_migrate.equivalence.reference.parallel import ddp, larc, syncbn

_AMP: dict[str, object] = {
    "initialize": frontend.initialize,
    "state_dict": frontend.state_dict,
    "load_state_dict": frontend.load_state_dict,
    "scale_loss": handle.scale_loss,
    "disable_casts": handle.disable_casts,
    "master_params": state.master_params,
    "init": patching.init,
    "half_function": decorators.half_function,
    "float_function": decorators.float_function,
    "promote_function": decorators.promote_function,
    "register_half_function": decorators.register_half_function,
    "register_float_function": decorators.register_float_function,
    "register_promote_function": decorators.register_promote_function,
}
_PARALLEL: dict[str, object] = {
    "DistributedDataParallel": ddp.DistributedDataParallel,
    "Reducer": ddp.Reducer,
}
_SYNCBN: dict[str, object] = {"SyncBatchNorm": syncbn.SyncBatchNorm}
_NORMS: dict[str, object] = {
    "FusedLayerNorm": normalization.FusedLayerNorm,
    "MixedFusedLayerNorm": normalization.MixedFusedLayerNorm,
    "FusedRMSNorm": normalization.FusedRMSNorm,
    "MixedFusedRMSNorm": normalization.MixedFusedRMSNorm,
}
_NORM_FUNCTIONS: dict[str, object] = {
    "FusedLayerNormAffineFunction": normalization.FusedLayerNormAffineFunction,
    "FusedLayerNormFunction": normalization.FusedLayerNormFunction,
    "fused_layer_norm": normalization.fused_layer_norm,
    "fused_layer_norm_affine": normalization.fused_layer_norm_affine,
    "fused_rms_norm": normalization.fused_rms_norm,
    "fused_rms_norm_affine": normalization.fused_rms_norm_affine,
    "mixed_dtype_fused_layer_norm_affine": normalization.mixed_dtype_fused_layer_norm_affine,
}
_HELPERS: dict[str, object] = {
    "tofp16": fp16_utils.tofp16,
    "BN_convert_float": fp16_utils.BN_convert_float,
    "network_to_half": fp16_utils.network_to_half,
    "FP16Model": fp16_utils.FP16Model,
    "convert_module": convert.convert_module,
    "convert_network": convert.convert_network,
    "prep_param_lists": fp16_utils.prep_param_lists,
    "model_grads_to_master_grads": fp16_utils.model_grads_to_master_grads,
    "master_params_to_model_params": fp16_utils.master_params_to_model_params,
    "to_python_float": fp16_utils.to_python_float,
    "clip_grad_norm": torch.nn.utils.clip_grad_norm_,
}
_SCALERS: dict[str, object] = {
    "LossScaler": fp16_utils.LossScaler,
    "DynamicLossScaler": fp16_utils.DynamicLossScaler,
}
_FP16_OPTIMIZER: dict[str, object] = {"FP16_Optimizer": fp16_optimizer.FP16_Optimizer}
_FUSED_FP16: dict[str, object] = {"FP16_Optimizer": fused_optimizer.FP16_Optimizer}
_OLD_ADAM: dict[str, object] = {"FusedAdam": fused.OldFusedAdam}
_CLIP: dict[str, object] = {"clip_grad_norm_": contrib.clip_grad_norm_}
_XENTROPY: dict[str, object] = {"SoftmaxCrossEntropyLoss": contrib.SoftmaxCrossEntropyLoss}
_FUSED: dict[str, object] = {
    "FusedAdagrad": fused.FusedAdagrad,
    "FusedAdam": fused.FusedAdamOfBoth,
    "FusedLAMB": fused.FusedLAMB,
    "FusedNovoGrad": fused.FusedNovoGrad,
    "FusedSGD": fused.FusedSGD,
}


def _held(overrides: lists.Overrides) -> dict[str, object]:
    return {"FP16_FUNCS": overrides.FP16_FUNCS, "FP32_FUNCS": overrides.FP32_FUNCS}


CONTENTS: dict[str, dict[str, object]] = {
    "apex": {},
    "apex.amp": {**_AMP, "_amp_state": state.amp_state},
    "apex.amp._amp_state": {
        "_amp_state": state.amp_state,
        "master_params": state.master_params,
        "maybe_print": state.maybe_print,
        "warn_or_err": state.warn_or_raise,
    },
    "apex.amp.amp": _AMP,
    "apex.amp.frontend": {
        "initialize": frontend.initialize,
        "state_dict": frontend.state_dict,
        "load_state_dict": frontend.load_state_dict,
    },
    "apex.amp.handle": {
        "AmpHandle": handle.AmpHandle,
        "NoOpHandle": handle.NoOpHandle,
        "scale_loss": handle.scale_loss,
        "disable_casts": handle.disable_casts,
    },
    "apex.amp.lists": {},
    "apex.amp.lists.functional_overrides": _held(lists.FUNCTIONAL),
    "apex.amp.lists.torch_overrides": _held(lists.TORCH),
    "apex.amp.lists.tensor_overrides": _held(lists.TENSOR),
    "apex.amp.opt": {"OptimWrapper": old_api.OptimWrapper},
    "apex.amp.scaler": {"LossScaler": scaler.LossScaler},
    "apex.parallel": {
        **_PARALLEL,
        **_SYNCBN,
        "convert_syncbn_model": syncbn.convert_syncbn_model,
        "create_syncbn_process_group": syncbn.create_syncbn_process_group,
    },
    "apex.parallel.LARC": {"LARC": larc.LARC},
    "apex.parallel.distributed": _PARALLEL,
    "apex.parallel.sync_batchnorm": _SYNCBN,
    "apex.parallel.optimized_sync_batchnorm": _SYNCBN,
    "apex.fp16_utils": {**_HELPERS, **_SCALERS, **_FP16_OPTIMIZER},
    "apex.fp16_utils.fp16util": _HELPERS,
    "apex.fp16_utils.fp16_optimizer": _FP16_OPTIMIZER,
    "apex.fp16_utils.loss_scaler": _SCALERS,
    "apex.optimizers": {**_FUSED, **_FUSED_FP16},
    "apex.optimizers.fp16_optimizer": _FUSED_FP16,
    "apex.optimizers.fused_adagrad": {"FusedAdagrad": fused.FusedAdagrad},
    "apex.optimizers.fused_adam": {"FusedAdam": fused.FusedAdamOfBoth},
    "apex.optimizers.fused_lamb": {"FusedLAMB": fused.FusedLAMB},
    "apex.optimizers.fused_novograd": {"FusedNovoGrad": fused.FusedNovoGrad},
    "apex.optimizers.fused_sgd": {"FusedSGD": fused.FusedSGD},
    "apex.normalization": _NORMS,
    "apex.normalization.fused_layer_norm": {**_NORMS, **_NORM_FUNCTIONS},
    "apex.multi_tensor_apply": {
        "MultiTensorApply": multi_tensor.MultiTensorApply,
        "multi_tensor_applier": multi_tensor.multi_tensor_applier,
    },
    "apex.contrib": {},
    "apex.contrib.clip_grad": _CLIP,
    "apex.contrib.clip_grad.clip_grad": _CLIP,
    "apex.contrib.optimizers": {**_OLD_ADAM, **_FUSED_FP16},
    "apex.contrib.optimizers.fp16_optimizer": _FUSED_FP16,
    "apex.contrib.optimizers.fused_adam": _OLD_ADAM,
    "apex.contrib.xentropy": _XENTROPY,
    "apex.contrib.xentropy.softmax_xentropy": _XENTROPY,
}


def register() -> None:
    """Enter all modules into sys.modules, each an attribute of its parent."""
    for name, contents in CONTENTS.items():
        module = ModuleType(name, "Reference implementation.")
        # `importlib.util.find_spec("apex")` raises on a module without a spec.
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        module.__path__ = []
        vars(module).update(contents)
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        # `apex.amp._amp_state` the attribute is the state, not the module of that name.
        if parent and child not in CONTENTS[parent]:
            setattr(sys.modules[parent], child, module)


def unregister() -> None:
    """Take every module of `apex` out of sys.modules."""
    if "apex" in sys.modules:
        for name in [n for n in sys.modules if n == "apex" or n.startswith("apex.")]:
            del sys.modules[name]
