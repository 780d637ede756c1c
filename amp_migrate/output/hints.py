"""What is said once below a report: about the spelling that was written, and how a patch is applied."""

from __future__ import annotations

import os

from amp_migrate.output.formats.diff import skipped_by_git
from amp_migrate.report import Report
from amp_migrate.settings import Settings

_OLD_SPELLING, _NEW_SPELLING = b"torch.cuda.amp", b"torch.amp"


def spelling_hint(settings: Settings, report: Report) -> str:
    """Return why the spelling is what it is, where the user left the choice to the tool."""
    if settings.api != "auto" or not report.changes or settings.only_fixes:
        return ""
    if report.api == "torch.amp":
        if not any(_NEW_SPELLING in change.after for change in report.changes):
            return ""
        why = "the project declares torch >= 2.4"
        if report.installed_torch:
            why = f"torch {report.installed_torch} is installed here"
        return f"hint: {why}, so this is torch.amp; see --api"
    if any(_OLD_SPELLING in change.after for change in report.changes):
        return "hint: torch >= 2.4 warns about torch.cuda.amp; --api torch.amp writes its new name"
    return ""


def apply_hint(report: Report) -> str:
    """Return where to apply a patch of files outside of the working directory, which git passes over."""
    root = skipped_by_git(change.path for change in report.changes)
    if root is None:
        return ""
    return f"hint: apply this patch from the root of the repository: git -C {os.path.relpath(root)} apply"
