"""Units that edit one place, and so are one."""

from __future__ import annotations

from amp_migrate.plan.model import AddParameter, AddWithItem, Decision, Edit, RenameParameter, Wrap


def entangled(made: list[list[Decision]]) -> tuple[int, int] | None:
    """Return two units that give parameters or autocast to the same place, and so are one."""
    owners: dict[tuple[str, Edit], int] = {}
    for number, decisions in enumerate(made):
        for decision in decisions:
            for path, edit in decision.edits:
                if isinstance(edit, AddParameter | RenameParameter | Wrap | AddWithItem):
                    other = owners.setdefault((path, edit), number)
                    if other != number:
                        return other, number
    return None
