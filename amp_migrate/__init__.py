"""Move PyTorch training code from NVIDIA Apex AMP to native AMP."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amp_migrate.api import Result, migrate_project, migrate_source
    from amp_migrate.plan.model import Finding, Status
    from amp_migrate.settings import Settings

__version__ = "0.1.0"
__all__ = [
    "Finding",
    "Result",
    "Settings",
    "Status",
    "__version__",
    "migrate_project",
    "migrate_source",
]
_HOMES = {
    "Finding": "amp_migrate.plan.model",
    "Result": "amp_migrate.api",
    "Settings": "amp_migrate.settings",
    "Status": "amp_migrate.plan.model",
    "migrate_project": "amp_migrate.api",
    "migrate_source": "amp_migrate.api",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for: the command line starts without it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
