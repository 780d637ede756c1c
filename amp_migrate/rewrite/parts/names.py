"""What the names of a list become when some of them are changed."""

from __future__ import annotations

from collections.abc import Sequence

from amp_migrate.plan.model import RenameKeyword, RenameParameter
from amp_migrate.rewrite.errors import EditError

Rename = RenameParameter | RenameKeyword


def new_names(present: Sequence[str], edits: Sequence[Rename]) -> dict[str, str]:
    """Return the new name by the old one, all changed at once.

    Raises `EditError` for a name that is not `present`, one changed twice, or one that would
    then stand there twice.
    """
    changed: dict[str, str] = {}
    for edit in edits:
        if edit.old not in present:
            raise EditError(edit, f"nothing there is named {edit.old}")
        if edit.old in changed:
            raise EditError(edit, f"another edit renames {edit.old}")
        changed[edit.old] = edit.new
    after = [changed.get(name, name) for name in present]
    for edit in edits:
        if after.count(edit.new) > 1:
            raise EditError(edit, f"something there is named {edit.new} already")
    return changed
