"""The module names of Apex and what each offers."""

from __future__ import annotations

import importlib.machinery
import sys
from types import ModuleType

from . import decorators, frontend, handle, old_api, patching, scaler, state
from .fp16_optimizer import FP16_Optimizer
from .larc import LARC

AMP = {
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

CONTENTS: dict[str, dict[str, object]] = {
    "apex": {},
    "apex.amp": {**AMP, "_amp_state": state.amp_state},
    "apex.amp._amp_state": {
        "_amp_state": state.amp_state,
        "master_params": state.master_params,
        "maybe_print": state.maybe_print,
        "warn_or_err": state.warn_or_raise,
    },
    "apex.amp.amp": {"init": patching.init},
    "apex.amp.frontend": {"initialize": frontend.initialize},
    "apex.amp.handle": {
        "AmpHandle": handle.AmpHandle,
        "NoOpHandle": handle.NoOpHandle,
        "scale_loss": handle.scale_loss,
        "disable_casts": handle.disable_casts,
    },
    "apex.amp.opt": {"OptimWrapper": old_api.OptimWrapper},
    "apex.amp.scaler": {"LossScaler": scaler.LossScaler},
    "apex.parallel": {},
    "apex.parallel.LARC": {"LARC": LARC},
    "apex.fp16_utils": {"FP16_Optimizer": FP16_Optimizer},
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
    for name in [n for n in sys.modules if n == "apex" or n.startswith("apex.")]:
        del sys.modules[name]
