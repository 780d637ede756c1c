"""A clean-room reference of `apex.amp` as of Apex 25.04, in pure torch, for CPU and CUDA.

`install` makes `import apex` find it. It behaves as Apex with its documented repairs for
torch >= 1.10. Torch is imported by `install`, not by importing this package.
"""

from __future__ import annotations

LABEL = "reference Apex (validated against 25.04)"


def install(device: str = "auto", casts: bool = True, quiet: bool = False) -> None:
    """Put the modules of `apex` into sys.modules, replacing any that are there.

    On `device` "cpu" every floating tensor is cast, on "cuda" those on a GPU; "auto" is CUDA where
    available. Without `casts` every level runs in fp32 and keeps its loss scale; `quiet` drops the
    messages of AMP. Raises ValueError on another device.
    """
    from amp_migrate.equivalence.reference import modules
    from amp_migrate.equivalence.reference.settings import settings

    settings.choose(device, casts, quiet)
    modules.unregister()
    modules.register()


def reset() -> None:
    """Undo all patches and forget the AMP state, as in a new process, keeping the modules."""
    from amp_migrate.equivalence.reference.amp.decorators import registry
    from amp_migrate.equivalence.reference.amp.state import amp_state
    from amp_migrate.equivalence.reference.casts.patching import remove_all
    from amp_migrate.equivalence.reference.optimizers.scaler import LossScaler

    remove_all()
    registry.clear()
    amp_state.clear()
    LossScaler.warned_unscaling_non_fp32_grad = False


def uninstall() -> None:
    """Undo all patches and take the modules of `apex` out of sys.modules."""
    from amp_migrate.equivalence.reference import modules

    reset()
    modules.unregister()
