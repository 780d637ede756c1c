"""Move PyTorch training code from NVIDIA Apex AMP to native AMP."""

from __future__ import annotations

__version__ = "0.1.0"
