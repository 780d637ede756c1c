"""Plans and the texts made of them, until one passes every check."""

from __future__ import annotations
