"""How grave a finding is to a program that reads reports."""

from __future__ import annotations

from amp_migrate.plan.model import Status

LEVELS = {
    Status.LEFT: "error",
    Status.FIXED: "warning",
    Status.MIGRATED: "warning",
    Status.NOTE: "note",
}
STANDING = frozenset({Status.LEFT, Status.NOTE})
"""What still holds when the changes are written."""
